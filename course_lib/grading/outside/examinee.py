"""The student's kernel as the hidden tests reach it: a call goes in, a value comes out, and nothing else."""

import collections
import contextlib
import importlib
import json
from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np

from course_lib.grading.clock import Fed, starved
from course_lib.grading.compare import CheckFailed
from course_lib.grading.contain import LIMIT_S, Stopped, contained
from course_lib.grading.frameworks import ALIKE, OWNERS, Pair, fastest_beside, loaded
from course_lib.grading.outside import channel
from course_lib.grading.outside.channel import GRACE_S, Channel
from course_lib.grading.outside.derivatives import Call, Derivatives
from course_lib.grading.outside.memory import at_most, end_of_memory
from course_lib.grading.outside.said import changes_of, end_of, error_of, too_large
from course_lib.grading.values import BYTES, Budget, Malformed, read, write

IMPORTS_S = 600
FATAL = 2  # so many calls of a function may cost a kernel each, before it is called no more
PASSES_S = 0.05  # of each call: about what a busy machine takes to pass it on, and is not of the student's time
VALUES = 1_000  # of functions of ours, for one call; and the most values in the arguments of each
VALUE_BYTES = 2**17  # of these arguments: what is ours must not be made to compute for ever
DEPTH = 8  # of calls in calls: a function of ours may call the student's, as one that undoes a mistake does
ENDED = "Your code ended the process that it runs in."
BUSY = (
    "The tests could not begin: your code kept its process busy. Does something of it run on, in a thread perhaps? "
    "If not, the machine was busy with other work: ask for it to be graded again."
)


def _imported(module: str) -> bool:
    with contextlib.suppress(CheckFailed), contained(IMPORTS_S):  # for what it prints at its start
        importlib.import_module(module)
    return loaded(module) is not None


class NoKernel(RuntimeError):
    """No kernel can be started: nobody's fault who is graded, so that no mark may come of it."""


class Kernel(channel.Kernel, Protocol):
    """What an examinee needs of whoever runs the kernel."""

    def renew(self) -> None: ...
    def starved(self) -> float: ...
    def time_is_over(self) -> bool: ...


class Examinee:
    """Calls the functions of the notebook that runs in a kernel.

    Everything that comes from there is a student's. It is read as a value; where that fails, the call fails.
    """

    def __init__(self, kernel: Kernel):
        self.kernel, self._fed = kernel, Fed(lambda: starved() + self.kernel.starved())
        self._channel = Channel(kernel, self.clock)
        self._lost, self._why_lost, self._asked_nothing = False, ENDED, False
        self._fatal: collections.Counter = collections.Counter()  # (function, what was served) -> kernels
        self._called: tuple = ()
        self.seconds, self.end = LIMIT_S, float("inf")  # of a test, for all its calls; and when they are over: `clock`
        self.changed: list[tuple] = []  # arguments as they were given, and as the student's functions left them
        self.derivatives = Derivatives()
        # Of the call that is under way and of those within it:
        self._depth = self._wanted = 0
        self._left = BYTES  # of what functions of ours may return to it, all together
        self._most: int | None = None  # bytes that this process may have while these compute
        self._end = 0.0, 0.0  # when its answer is awaited no more: see `Channel.within`
        self._functions: list[Callable] = []  # that it may call, by their places
        self._raised: list[Exception] = []  # by what it called; what of these comes back is raised again

    def clock(self) -> float:
        """Seconds as they go by for the student's code: not those in which the machine has no processor for it, or us.

        Else somebody whose work keeps it busy, while others are marked on it, would cost these their points. A wrong
        one costs more time at most, and what a student's own processes do to it costs that of their notebook.
        """
        return self._fed()

    def call(self, name: str, given: tuple, named: dict, served: dict[str, Callable]):
        """What the student's function of this name returns. Ours stay as they are; `changed` has what it changes.

        Parameters
        ----------
        name, given, named : of the function; its arguments, functions among them, which it may call during this call
        served : right versions of earlier parts, which stand in the place of the student's own for this call

        Raises
        ------
        CheckFailed : it took too long, ended its kernel, or handed back what is no value.
        Exception : it raised one; the nearest of Python's own, with the text that a student is shown. What a function
            of ours raised, it is raised again.
        """
        if not self._depth:
            self._functions, self._raised = [], []
        call = self.derivatives.call((name, *sorted(served)), served, self._pull)
        arguments = {str(place): value for place, value in enumerate(given)} | named
        forms = {key: write(value, self._budget(self._keep, call.gives)) for key, value in arguments.items()}
        asked = {"name": name, "given": forms, "served": sorted(served), **self.derivatives.about(call)}

        def understood(said: dict):
            return read(said["value"], self._budget(follow=call.gets if call.followed else None))

        return self._answer(call, asked, arguments, understood)

    def _pull(self, call: Call, place: int, cotangent: np.ndarray) -> list[np.ndarray | None]:
        """Derivatives of a call."""
        asked = {"pull": call.number, "place": place, "cotangent": write(cotangent)}
        return self._answer(call, asked, {}, lambda said: call.understood(said["derivatives"]))

    def _answer(self, call: Call, asked: dict, arguments: dict, understood: Callable):
        name = call.key[0]
        if self._fatal[call.key] >= FATAL:
            raise CheckFailed(
                f"`{name}` ended its process in earlier tests, or could not be stopped. It was not called."
            )
        if self._depth >= DEPTH:
            raise CheckFailed(f"`{name}` and the functions that it is given call each other without end.")
        if not self._depth:
            self._wanted, self._left, self._most = 0, BYTES, end_of_memory()
        begun, self._called, lost_before = self.clock(), call.key, self._lost
        # within another call that call's seconds hold
        asked["seconds"] = 0 if self._depth else min(self.seconds, max(0.01, self.end - begun))
        try:
            with self.derivatives.under_way(call):
                said = self._ask(asked, call.served)
                self.changed += changes_of(arguments, said.get("changed", {}), self.derivatives.frameworks)
                if said["kind"] == "returned":
                    return understood(said)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            why = str(error) if isinstance(error, Malformed) else "it is no answer"
            raise CheckFailed(f"What `{name}` hands back cannot be read: {why}.") from None
        finally:
            self._fatal[call.key] += self._lost and not (lost_before or self._asked_nothing)
            if not self._depth:  # not of the student's time: to go there and back, and so for each value of ours
                self.end += min(self.clock() - begun, PASSES_S * (1 + self._wanted))
        if said["kind"] == "missing":
            raise error_of(["NameError"], f"NameError: name {name!r} is not defined.")
        if said["kind"] == "raised":
            if said.get("stopped") is True:
                raise self._stopped()
            again = said.get("again")
            if type(again) is int and 0 <= again < len(self._raised):
                raise self._raised[again]
            raise error_of(said.get("types"), said.get("text"))
        why = str(said.get("text"))[:80] if said["kind"] == "unwritten" else "it is no answer"
        raise CheckFailed(f"What `{name}` hands back cannot be read: {why}.")

    def values(self, names: Iterable[str]) -> tuple[dict, list[str]]:
        """What the notebook has under these names that is no function, and the names that it lacks, as it says."""
        self.recover()
        names = list(names)
        try:
            said = self._ask({"values": names}, {})
            values = {name: read(said["values"][name], self._budget()) for name in names if name in said["values"]}
            return values, [name for name in names if name in said["missing"]]
        except CheckFailed:  # as the first call will say
            self._lost = True
        except (ValueError, LookupError, TypeError, AttributeError):  # no answer: let the first call find out
            pass
        return {}, []

    def loaded(self, names: Iterable[str]) -> list[str]:
        """Which of some modules the notebook has loaded, as it says."""
        self.recover()
        said = self._ask({"loaded": list(names)}, {}).get("names")
        return [name for name in names if isinstance(said, list) and name in said]

    def look_for_a_framework(self) -> None:
        """Which of those that have tensors the notebook is written in; import what the tests compute in for it."""
        self.recover()
        try:
            said = self._ask({"frameworks": list(OWNERS)}, {})
        except (CheckFailed, ValueError):  # as the first call will say
            self._lost, said = True, {}
        name, imported = said.get("name"), said.get("loaded")
        imported = [each for each in OWNERS if isinstance(imported, list) and each in imported]
        ours = fastest_beside(name) if name in imported else None
        if ours in (None, name) or not _imported(ours):  # which may be installed and not to be imported
            for each in imported:
                _imported(each)
            ours = name
        self.derivatives.frameworks = Pair(ours, name) if name in imported and loaded(ours) else ALIKE

    def prepare(self) -> None:
        """Let the kernel answer, a new one where the last call lost the old one; before a test, outside of its time."""
        self.recover()
        if not self._channel.is_open and not self._lost and not self.kernel.time_is_over():
            try:
                self._start()
            except (CheckFailed, Malformed):
                self._lost = True  # as the first call will say

    def recover(self) -> None:
        """A new kernel where the last call lost the old one."""
        if self._lost and not self.kernel.time_is_over():
            self.close()
            try:
                self.kernel.renew()
            except Exception as error:
                raise NoKernel(f"no kernel could be started again: {type(error).__name__}: {error}") from error
            self._lost, self._why_lost, self._asked_nothing = False, ENDED, False

    def finish(self) -> None:
        """No more is asked for now: the kernel runs cells again, another one where this one was lost."""
        if self._channel.is_open and not self._lost:
            try:
                self._channel.tell("null")
                self._channel.hear(self._channel.within(GRACE_S))
                self._lost = True  # it goes on
            except channel.Over:
                pass
            except (channel.Gone, channel.Deaf, channel.Unstoppable, Malformed):
                self._lost = True
        self._channel.forget()
        self.recover()

    def close(self) -> None:
        """Let go of the kernel; the next call looks for it anew."""
        self._channel.close()

    def _ask(self, asked: dict, served: dict[str, Callable]) -> dict:
        if self.kernel.time_is_over():
            raise CheckFailed("The time for the whole notebook was over.")
        try:
            if not self._channel.is_open or self._lost:
                self._start()
            said = asked
            if not self._depth:
                self._end = self._channel.within(asked.get("seconds", GRACE_S) + GRACE_S)
            while True:
                answer = self._said_to(said)
                if answer.get("kind") != "wanted":
                    return answer
                said = self._value_of_ours(answer, served)
        except BaseException:  # an alarm, too: what is under way there is not known any more
            self._lost = True
            raise

    def _start(self) -> None:
        """Let the kernel answer."""
        if self._lost:
            raise CheckFailed(self._why_lost)
        try:
            with self._understood():
                self._channel.open()
        except CheckFailed as error:
            self._asked_nothing = True
            self._why_lost = BUSY if isinstance(error, Stopped) else str(error)  # no test has begun that was stopped
            raise CheckFailed(self._why_lost) from None

    def _said_to(self, asked: dict) -> dict:
        with self._understood():
            self._channel.tell(json.dumps(asked))
            try:
                return self._channel.hear(self._end)
            except channel.Unstoppable:
                self._fatal[self._called] = FATAL
                raise

    @contextlib.contextmanager
    def _understood(self):
        """A block in which the kernel is spoken to: what its silence means for a test."""
        try:
            yield
        except channel.Deaf:
            raise CheckFailed("Your code does not listen to what the tests ask.") from None
        except channel.Gone:
            raise CheckFailed(ENDED) from None
        except channel.Over as over:
            raise self._stopped() if over.interrupted else CheckFailed(end_of(over.content)) from None
        except channel.Unstoppable:
            raise self._stopped() from None

    def _stopped(self) -> Stopped:
        return Stopped(
            f"Stopped after {self.seconds:g} seconds. Is there a loop that never ends? Any right answer takes far less "
            "than one second here."
        )

    def _budget(self, keep: Callable | None = None, follow: Callable | None = None) -> Budget:
        return Budget(keep=keep, follow=follow, frameworks=self.derivatives.frameworks)

    def _keep(self, function: Callable) -> int:
        self._functions.append(function)
        return len(self._functions) - 1

    def _value_of_ours(self, wanted: dict, served: dict[str, Callable]) -> dict:
        """What a function of ours returns that the student's asks for, or derivatives of that; or what is raised."""
        self._wanted += 1
        if self._wanted > VALUES:
            raise Malformed(f"it asks for more than {VALUES} values")
        answer = self._derivatives if "pull" in wanted else self._returned
        self._depth += 1
        try:
            with at_most(self._most):
                return answer(wanted, served)
        except Exception as error:
            if self._lost or isinstance(error, Malformed):
                raise
            self._raised.append(error)
            text = str(error)[:300]
            return {"raised": type(error).__name__, "text": text, "again": len(self._raised) - 1}
        finally:
            self._depth -= 1

    def _returned(self, wanted: dict, served: dict[str, Callable]) -> dict:
        which, forms = wanted.get("which"), wanted.get("given")
        if type(which) is int and 0 <= which < len(self._functions):
            function = self._functions[which]
        elif isinstance(which, str) and which in served:
            function = served[which]
        else:
            raise Malformed("it asks for a value that is not to be had")
        number, inner = self.derivatives.inner()
        budget = Budget(VALUE_BYTES, VALUES, follow=inner.takes, frameworks=self.derivatives.frameworks)
        given = {key: self.derivatives.as_taken(read(form, budget)) for key, form in forms.items()}
        if any(map(too_large, given.values())):
            raise Malformed("it asks for values that are too large")
        by_place = [value for key, value in given.items() if key.isdigit()]
        by_name = {key: value for key, value in given.items() if not key.isdigit()}
        value, budget = function(*by_place, **by_name), self._budget(self._keep, inner.returns)
        budget.bytes = self._left
        form = write(value, budget)
        self._left = budget.bytes
        return {"value": form, "number": number}

    def _derivatives(self, wanted: dict, served: dict[str, Callable]) -> dict:
        cotangent = read(wanted.get("cotangent"), Budget(VALUE_BYTES, VALUES))
        found = self.derivatives.pulled(wanted["pull"], wanted.get("place"), cotangent)
        return {"derivatives": [write(each) for each in found]}
