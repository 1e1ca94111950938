"""In the student's kernel: call the student's functions with what the examiner sends, and hand back what they return.

Nothing here is trusted, since the student's code can change all of it; whoever does so changes what is handed back, and
that is all. Neither expected values nor the tests are here. `course_lib.grading.outside` is the other side.
"""

import builtins
import contextlib
import functools
import json
import sys
from collections.abc import Callable, Iterator

import numpy as np

from course_lib.grading.clock import Clock
from course_lib.grading.compare import CheckFailed
from course_lib.grading.contain import Stopped, contained
from course_lib.grading.followed import Asked, Kept
from course_lib.grading.frameworks import loaded
from course_lib.grading.tensors import FRAMEWORKS, Tensors
from course_lib.grading.values import Budget, Malformed, read, write

TEXT = 2_000  # letters of an error
POLLS_MS = 10
ERRORS = {
    kind.__name__: kind
    for kind in (
        ArithmeticError, AssertionError, AttributeError, FloatingPointError, IndexError, KeyError, LookupError,
        MemoryError, NameError, NotImplementedError, OverflowError, RecursionError, RuntimeError, TypeError, ValueError,
        ZeroDivisionError,
    )
}  # fmt: skip


def serve_notebook(token: str) -> None:
    """Answer for the notebook of this kernel until the examiner, who knows the token, has no more to ask."""
    from IPython import get_ipython

    # ipykernel refuses, too, by a NotImplementedError: students would be told that they did not write the function.
    shell, typed = get_ipython(), builtins.input
    builtins.input = _nobody_types
    try:
        serve(shell.user_ns, _channel(shell.kernel.stdin_socket, token.encode()))
    finally:
        builtins.input = typed


def _nobody_types(*prompt) -> str:
    raise RuntimeError("input() waits for somebody to type, and here is nobody")


def _channel(socket, token: bytes) -> Callable[[str], str]:
    """To the examiner and back, by the socket through which a kernel asks for what is typed in.

    A message of Jupyter's takes longer to make and to read than most functions of an assignment take, and there are
    hundreds in a grading: here are texts alone. The examiner's token stands before each, so that none is taken for one
    that an earlier request left, or that another user of the machine sent. And the examiner speaks first: what we say
    to nobody whom ZeroMQ knows, it drops without a word.
    """

    def received() -> tuple[bytes, str]:
        while True:
            if socket.poll(POLLS_MS):  # in between, an interrupt gets through, on Windows too
                examiner, *frames = socket.recv_multipart()
                if len(frames) == 2 and frames[0] == token:
                    return examiner, frames[1].decode()

    def ask(said: str) -> str:
        socket.send_multipart([examiner, token, said.encode()])
        return received()[1]

    examiner, _ = received()
    return ask


def serve(namespace: dict, ask: Callable[[str], str]) -> None:
    """Answer what the examiner asks.

    Args:
        namespace: the notebook's `globals()`.
        ask: sends a text to the examiner, and returns the text that comes back.
    """
    answers = _Answers(namespace, ask)
    said: dict = {"kind": "ready"}
    while (asked := json.loads(ask(json.dumps(said)))) is not None:
        said = answers.to(asked)


class _Answers:
    """Calls the notebook's functions. What it calls may call the examiner's, and these the notebook's again."""

    def __init__(self, namespace: dict, ask: Callable[[str], str]):
        self.namespace, self.ask, self.clock = namespace, ask, Clock()
        self.own: dict = {}  # the student's functions in whose place the examiner's stand now
        self.kept = Kept()

    def to(self, asked: dict) -> dict:
        """What the examiner is told."""
        if "loaded" in asked:
            return {"kind": "loaded", "names": [name for name in asked["loaded"] if sys.modules.get(name) is not None]}
        if "values" in asked:
            found = {name: self.namespace[name] for name in asked["values"] if name in self.namespace}
            values = {name: write(value) for name, value in found.items() if not callable(value)}
            return {
                "kind": "values",
                "values": values,
                "missing": [name for name in asked["values"] if name not in found],
            }
        if "frameworks" in asked:
            found = [name for name in asked["frameworks"] if loaded(name)]
            return {"kind": "frameworks", "name": self._framework(), "loaded": found}
        try:
            return self._pulled(asked) if "pull" in asked else self._called(asked)
        except Malformed as error:  # a tensor of a framework that is not in use here, say
            return {"kind": "unwritten", "text": str(error)}

    def _framework(self) -> str | None:
        """The framework in which the notebook is written."""
        try:
            return Tensors(self.namespace).framework
        except CheckFailed:
            return None

    def _called(self, asked: dict) -> dict:
        name = asked["name"]
        if name not in self.namespace:
            return {"kind": "missing"}
        function = self.own.get(name, self.namespace[name])
        owner = loaded(asked["framework"])
        if owner:
            FRAMEWORKS[owner.name].prepare(owner.module)  # as `Tensors` does
        self.kept.forget(asked["first"])
        with self.kept.call(owner, asked["keep"]) as answered:
            given = {key: self._read(form, answered and answered.takes) for key, form in asked["given"].items()}
            before = {key: self._written(value) for key, value in given.items()}
            by_place = [value for key, value in given.items() if key.isdigit()]
            by_name = {key: value for key, value in given.items() if not key.isdigit()}

            def answer() -> dict:
                value = function(*by_place, **by_name)
                return {"kind": "returned", "value": write(value, Budget(follow=answered and answered.returns))}

            with self._replaced({name: self._theirs(name) for name in asked["served"]}):
                said = self._said(asked["seconds"], answer)
        after = {key: self._written(value) for key, value in given.items()}
        said["changed"] = {key: form for key, form in after.items() if form != before[key]}
        return said

    def _pulled(self, asked: dict) -> dict:
        """Derivatives of a call that was followed."""

        def answer() -> dict:
            found = self.kept.pulled(asked["pull"], asked["place"], read(asked["cotangent"]))
            return {"kind": "returned", "derivatives": [write(each) for each in found]}

        return self._said(asked["seconds"], answer)

    def _said(self, seconds: float, answer: Callable[[], dict]) -> dict:
        """An answer, or what was raised in its place."""
        try:
            # within another call that call's limit holds
            with contained(seconds) if seconds else contextlib.nullcontext():
                if seconds:
                    self.clock.delay_alarm(seconds)
                return answer()
        except Exception as failure:
            error = failure.__context__ if isinstance(failure, CheckFailed) and failure.__context__ else failure
            if isinstance(error, Malformed):
                return {"kind": "unwritten", "text": str(error)}
            said = {"kind": "raised", "types": [kind.__name__ for kind in type(error).__mro__][:20]}
            said |= {"text": str(failure)[:TEXT], "stopped": isinstance(failure, Stopped)}
            return said | {"again": getattr(error, "examiners", None)}

    def _read(self, form, follow: Callable | None = None):
        return read(form, Budget(made=self._theirs, follow=follow))

    def _written(self, value):
        """As it is now; what is called or gone through is not looked at."""
        try:
            return None if callable(value) or isinstance(value, Iterator) else write(value)
        except Malformed:  # larger than it can have come
            return ["other", type(value).__name__]

    def _theirs(self, which: str | int) -> Callable:
        """A function of the examiner's: by its number, or by the name of an earlier part that has been marked."""

        def served_by_the_examiner(*given, **named):
            asks = Asked(functools.partial(self._pull, numbers := []), self.kept.besides)
            arguments = {str(place): value for place, value in enumerate(given)} | named
            forms = {key: write(value, Budget(follow=asks.gives)) for key, value in arguments.items()}
            answer = self._wanted({"which": which, "given": forms})
            numbers.append(answer["number"])
            return self._read(answer["value"], asks.gets)

        return served_by_the_examiner

    def _pull(self, numbers: list, place: int, cotangent: np.ndarray) -> list:
        """Derivatives of what a function of the examiner's returned, and none by what else it depends on."""
        answer = self._wanted({"pull": numbers[0], "place": place, "cotangent": write(cotangent)})
        return [read(form) for form in answer["derivatives"]]

    def _wanted(self, wanted: dict) -> dict:
        """What the examiner answers, who may ask something in between."""
        said = {"kind": "wanted", **wanted}
        while True:
            with self.clock.standing():
                answer = json.loads(self.ask(json.dumps(said)))
            if not ("given" in answer or "pull" in answer):
                break
            said = self.to(answer)
        if "raised" in answer:
            error = ERRORS.get(answer["raised"], RuntimeError)(answer["text"])
            error.examiners = answer["again"]
            raise error
        return answer

    @contextlib.contextmanager
    def _replaced(self, functions: dict):
        before = {name: self.namespace[name] for name in functions if name in self.namespace}
        own, self.own = self.own, before | self.own
        self.namespace.update(functions)
        try:
            yield
        finally:
            self.own = own
            for name in functions:
                self.namespace.pop(name, None)
            self.namespace.update(before)
