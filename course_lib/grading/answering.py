"""In the student's kernel: call the student's functions with what the examiner sends, and hand back what they return.

Nothing here is trusted, since the student's code can change all of it; whoever does so changes what is handed back, and
that is all. Neither expected values nor the tests are here. `course_lib.grading.outside` is the other side.
"""

import contextlib
import json
import sys
import time
from collections.abc import Callable

import numpy as np

from course_lib.grading.compare import CheckFailed
from course_lib.grading.contain import Stopped, contained
from course_lib.grading.values import Malformed, read, write

TEXT = 2_000  # letters of an error
JOINS_S = 60  # for the examiner's socket to be joined to ours
ERRORS = {
    kind.__name__: kind
    for kind in (
        ArithmeticError, AssertionError, AttributeError, FloatingPointError, IndexError, KeyError, LookupError,
        MemoryError, NameError, NotImplementedError, OverflowError, RecursionError, RuntimeError, TypeError, ValueError,
        ZeroDivisionError,
    )
}  # fmt: skip


def serve_notebook() -> None:
    """Answer for the notebook of this kernel until the examiner has no more to ask."""
    from IPython import get_ipython

    shell = get_ipython()
    serve(shell.user_ns, _heard(shell.kernel))


def _heard(kernel) -> Callable[[str], str]:
    """The kernel's `raw_input`, whose first message waits for the examiner.

    The request to answer comes through one socket, and what we say leaves through another, which ZeroMQ may have yet to
    join to the examiner's. It drops without a word what is addressed to nobody whom it knows, and both sides would wait
    for each other: on a busy machine a few starts in a hundred were lost so, and with them honest points.
    """
    import zmq

    def ask(said: str) -> str:
        nonlocal first
        if not first:
            return kernel.raw_input(said)
        first, last = False, time.monotonic() + JOINS_S
        while True:
            kernel.stdin_socket.setsockopt(zmq.ROUTER_MANDATORY, 1)  # an error in the place of silence
            try:
                return kernel.raw_input(said)
            except zmq.ZMQError as error:
                if error.errno != zmq.EHOSTUNREACH or time.monotonic() > last:
                    raise
                time.sleep(0.005)
            finally:
                kernel.stdin_socket.setsockopt(zmq.ROUTER_MANDATORY, 0)

    first = True
    return ask


def serve(namespace: dict, ask: Callable[[str], str]) -> None:
    """Answer what the examiner asks.

    Args:
        namespace: the notebook's `globals()`.
        ask: sends a text to the examiner, and returns the text that comes back.
    """
    said: dict = {"kind": "ready"}
    while (asked := json.loads(ask(json.dumps(said)))) is not None:
        if "loaded" in asked:
            said = {"kind": "loaded", "names": [name for name in asked["loaded"] if sys.modules.get(name) is not None]}
        else:
            said = _called(namespace, asked, ask)


def _called(namespace: dict, asked: dict, ask: Callable[[str], str]) -> dict:
    if asked["name"] not in namespace:
        return {"kind": "missing"}
    function = namespace[asked["name"]]
    given = {key: read(form) for key, form in asked["given"].items()}
    before = {key: value.copy() for key, value in given.items() if isinstance(value, np.ndarray)}
    by_place = [value for key, value in given.items() if key.isdigit()]
    by_name = {key: value for key, value in given.items() if not key.isdigit()}
    with _replaced(namespace, {name: _served(name, ask) for name in asked["served"]}):
        try:
            with contained(asked["seconds"]):
                said = {"kind": "returned", "value": write(function(*by_place, **by_name))}
        except CheckFailed as failure:
            error = failure.__context__ or failure
            if isinstance(error, Malformed):  # of `write`, and no error of the student's
                return {"kind": "unwritten", "text": str(error)}
            said = {"kind": "raised", "types": [kind.__name__ for kind in type(error).__mro__][:20]}
            said |= {"text": str(failure)[:TEXT], "stopped": isinstance(failure, Stopped)}
    said["changed"] = {key: write(given[key]) for key, value in before.items() if not _same(given[key], value)}
    return said


def _same(array, before) -> bool:
    return array.shape == before.shape and array.tobytes() == before.tobytes()


def _served(name: str, ask: Callable[[str], str]) -> Callable:
    """A right version of an earlier part: the examiner computes its values, once that part is marked."""

    def serve_right_value(*given, **named):
        forms = {str(place): write(value) for place, value in enumerate(given)}
        forms |= {key: write(value) for key, value in named.items()}
        answer = json.loads(ask(json.dumps({"kind": "wanted", "name": name, "given": forms})))
        if "raised" in answer:
            raise ERRORS.get(answer["raised"], RuntimeError)(answer["text"])
        return read(answer["value"])

    return serve_right_value


@contextlib.contextmanager
def _replaced(namespace: dict, functions: dict):
    before = {name: namespace[name] for name in functions if name in namespace}
    namespace.update(functions)
    try:
        yield
    finally:
        for name in functions:
            namespace.pop(name, None)
        namespace.update(before)
