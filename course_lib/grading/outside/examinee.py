"""The student's kernel as the hidden tests reach it: a call goes in, a value comes out, and nothing else."""

import collections
import contextlib
import importlib
import json
import secrets
import time
from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np

from course_lib._extras import needed
from course_lib.grading.clock import Fed, starved
from course_lib.grading.compare import CheckFailed
from course_lib.grading.contain import LIMIT_S, Stopped, contained
from course_lib.grading.frameworks import OWNERS, loaded
from course_lib.grading.outside.derivatives import Call, Derivatives
from course_lib.grading.outside.said import changes_of, end_of, error_of, too_large
from course_lib.grading.values import Budget, Malformed, read, write

with needed("lab"):
    import zmq
    from jupyter_client import AsyncKernelManager, BlockingKernelClient

START = '__import__("course_lib.grading.answering", fromlist=["serve_notebook"]).serve_notebook("{token}")'
LARGEST = 48 * 2**20  # bytes of a frame from a kernel: whoever sends more is cut off
WAITING = 4  # messages of a kernel that wait to be read: one that answers has one, and one more where it was stopped
GRACE_S = 2  # beyond the seconds that a call may take: for the answer, and again after an interrupt
MOST_S = 60  # beyond that, at most, where the machine is busy with others: that time is not the student's, see `clock`
STARTS_S, IMPORTS_S = 60, 600
FATAL = 2  # so many calls of a function may cost a kernel each, before it is called no more
PASSES_S = 0.05  # of each call: about what a busy machine takes to pass it on, and is not of the student's time
VALUES = 1_000  # of functions of ours, for one call; and the most values in the arguments of each
VALUE_BYTES = 2**17  # of these arguments: what is ours must not be made to compute for ever
DEPTH = 8  # of calls in calls: a function of ours may call the student's, as one that undoes a mistake does


class LimitedManager(AsyncKernelManager):
    """A kernel manager whose clients take no message that is too large."""

    def client(self, **settings):
        """A client of the kernel."""
        return limited(super().client(**settings))


class NoKernel(RuntimeError):
    """No kernel can be started: nobody's fault who is graded, so that no mark may come of it."""


class Kernel(Protocol):
    """What an examinee needs of whoever runs the kernel."""

    def connection(self) -> dict: ...
    def alive(self) -> bool: ...
    def interrupt(self) -> None: ...
    def renew(self) -> None: ...
    def starved(self) -> float: ...
    def time_is_over(self) -> bool: ...


class Examinee:
    """Calls the functions of the notebook that runs in a kernel.

    Everything that comes from there is a student's. It is read as a value; where that fails, the call fails.
    """

    def __init__(self, kernel: Kernel):
        self.kernel, self._fed = kernel, Fed(lambda: starved() + self.kernel.starved())
        self._client = self._request = None
        self._token = b""  # of the request
        self._lost = False
        self._fatal: collections.Counter = collections.Counter()  # (function, what was served) -> kernels
        self._called: tuple = ()
        self.seconds, self.end = LIMIT_S, float("inf")  # of a test, for all its calls; and when they are over: `clock`
        self.changed: list[tuple] = []  # arguments as they were given, and as the student's functions left them
        self.derivatives = Derivatives()
        # Of the call that is under way and of those within it:
        self._depth = self._wanted = 0
        self._end = 0.0, 0.0  # when its answer is awaited no more: see `_in`
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
        forms = {key: write(value, Budget(keep=self._keep, follow=call.gives)) for key, value in arguments.items()}
        asked = {"name": name, "given": forms, "served": sorted(served), **self.derivatives.about(call)}

        def understood(said: dict):
            return read(said["value"], Budget(follow=call.gets if call.followed else None))

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
            self._wanted = 0
        begun, self._called = self.clock(), call.key
        # within another call that call's seconds hold
        asked["seconds"] = 0 if self._depth else min(self.seconds, max(0.01, self.end - begun))
        try:
            with self.derivatives.under_way(call):
                said = self._ask(asked, call.served)
                self.changed += changes_of(arguments, said.get("changed", {}))
                if said["kind"] == "returned":
                    return understood(said)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            why = str(error) if isinstance(error, Malformed) else "it is no answer"
            raise CheckFailed(f"What `{name}` hands back cannot be read: {why}.") from None
        finally:
            self._fatal[call.key] += self._lost
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
            values = {name: read(said["values"][name]) for name in names if name in said["values"]}
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
        """Import what the notebook has imported of those that have tensors; and which of them it is written in."""
        self.recover()
        try:
            said = self._ask({"frameworks": list(OWNERS)}, {})
        except (CheckFailed, ValueError):  # as the first call will say
            self._lost, said = True, {}
        name, imported = said.get("name"), said.get("loaded")
        for each in OWNERS:
            if isinstance(imported, list) and each in imported:
                with contextlib.suppress(CheckFailed), contained(IMPORTS_S):  # for what they print at their start
                    importlib.import_module(each)
        self.derivatives.framework = name if isinstance(name, str) and loaded(name) else None

    def prepare(self) -> None:
        """Let the kernel answer, a new one where the last call lost the old one; before a test, outside of its time."""
        self.recover()
        if not self._request and not self._lost and not self.kernel.time_is_over():
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
            self._lost = False

    def finish(self) -> None:
        """No more is asked for now: the kernel runs cells again, another one where this one was lost."""
        if self._request and not self._lost:
            try:
                self._tell("null")
                self._next(self._in(GRACE_S))
                self._lost = True  # it goes on
            except (CheckFailed, Malformed):
                self._lost = self._request is not None  # its reply, which ends the request, is what was waited for
        self._request = None
        self.recover()

    def close(self) -> None:
        """Let go of the kernel; the next call looks for it anew."""
        if self._client:
            self._client.stop_channels()
        self._client = self._request = None

    def _ask(self, asked: dict, served: dict[str, Callable]) -> dict:
        if self.kernel.time_is_over():
            raise CheckFailed("The time for the whole notebook was over.")
        try:
            if not self._request or self._lost:
                self._start()
            said = asked
            if not self._depth:
                self._end = self._in(asked.get("seconds", GRACE_S) + GRACE_S)
            while True:
                self._tell(json.dumps(said))
                answer = self._next(self._end)
                if answer.get("kind") != "wanted":
                    return answer
                said = self._value_of_ours(answer, served)
        except BaseException:  # an alarm, too: what is under way there is not known any more
            self._lost = True
            raise

    def _start(self) -> None:
        """Let the kernel answer."""
        if self._lost:
            raise CheckFailed("Your code ended the process that it runs in.")
        if not self._client:
            self._client = limited(BlockingKernelClient())
            self._client.context.setsockopt(zmq.RCVHWM, WAITING)
            self._client.load_connection_info(self.kernel.connection())
            self._client.start_channels(shell=True, iopub=False, stdin=True, hb=False, control=False)
        token = secrets.token_hex(16)
        self._token = token.encode()
        self._request = self._client.execute(
            START.format(token=token), silent=True, store_history=False, allow_stdin=False
        )
        self._tell("")  # whom to answer
        self._next(self._in(STARTS_S))  # it is ready

    def _tell(self, text: str) -> None:
        """Send what `answering` waits for."""
        try:
            self._client.stdin_channel.socket.send_multipart([self._token, text.encode()], zmq.NOBLOCK)
        except zmq.Again:  # a thousand are waiting there already
            raise CheckFailed("Your code does not listen to what the tests ask.") from None

    def _in(self, seconds: float) -> tuple[float, float]:
        """When so many seconds have gone by on our `clock`, and the time by which it is enough, whatever that says."""
        return self.clock() + seconds, time.monotonic() + seconds + MOST_S

    def _next(self, end: tuple[float, float]) -> dict:
        """The next thing that the kernel says about our request, until `_in` says that it is enough."""
        poller = zmq.Poller()
        for channel in (self._client.stdin_channel, self._client.shell_channel):
            poller.register(channel.socket, zmq.POLLIN)
        interrupted = False
        while True:
            for socket, _ in poller.poll(200):
                try:
                    if socket is self._client.stdin_channel.socket:
                        token, *frames = socket.recv_multipart()
                        if token != self._token or len(frames) != 1:
                            continue  # it answers an earlier request, or is none of ours
                        answer = json.loads(frames[0])
                        if isinstance(answer, dict):
                            return answer
                        raise Malformed("it is no answer")
                    _, message = self._client.session.recv(socket)
                    if message and message["parent_header"].get("msg_id") == self._request:
                        self._request = None
                        raise self._stopped() if interrupted else CheckFailed(end_of(message["content"]))
                except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
                    if isinstance(error, Malformed):
                        raise
                    raise Malformed("it is no message") from None
            if not self.kernel.alive():
                raise CheckFailed("Your code ended the process that it runs in.")
            if self.clock() > end[0] or time.monotonic() > end[1]:
                if interrupted:
                    self._fatal[self._called] = FATAL
                    raise self._stopped()
                interrupted, end = True, self._in(GRACE_S)
                self.kernel.interrupt()

    def _stopped(self) -> Stopped:
        return Stopped(
            f"Stopped after {self.seconds:g} seconds. Is there a loop that never ends? Any right answer takes far less "
            "than one second here."
        )

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
        budget = Budget(VALUE_BYTES, VALUES, follow=inner.takes)
        given = {key: read(form, budget) for key, form in forms.items()}
        if any(map(too_large, given.values())):
            raise Malformed("it asks for values that are too large")
        by_place = [value for key, value in given.items() if key.isdigit()]
        by_name = {key: value for key, value in given.items() if not key.isdigit()}
        value = function(*by_place, **by_name)
        return {"value": write(value, Budget(keep=self._keep, follow=inner.returns)), "number": number}

    def _derivatives(self, wanted: dict, served: dict[str, Callable]) -> dict:
        cotangent = read(wanted.get("cotangent"), Budget(VALUE_BYTES, VALUES))
        found = self.derivatives.pulled(wanted["pull"], wanted.get("place"), cotangent)
        return {"derivatives": [write(each) for each in found]}


def limited(client):
    """A client whose sockets, which it has yet to open, are closed at a frame that is too large."""
    client.context.setsockopt(zmq.MAXMSGSIZE, LARGEST)
    return client
