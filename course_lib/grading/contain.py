"""Run a student's code so that nothing but its result can reach the mark.

nbgrader 0.9 gives zero to a graded cell with any text on standard error, so a right answer that warns
would lose everything. It reads a displayed value as the mark, so a wrong answer that displays one could
win it. Here both are thrown away, and an endless loop or a call of `sys.exit` ends in an ordinary failure.
"""

import _thread
import contextlib
import functools
import io
import logging
import os
import signal
import sys
import threading
import time
import traceback
import warnings

import numpy as np

from course_lib.grading.compare import CheckFailed

LIMIT_S = 3.0
AGAIN_S = 0.05  # from one alarm to the next: time for the code that was stopped to put its own things in order


class Stopped(CheckFailed):
    """The time limit ended the code under test."""


class _TimeIsUp(BaseException):
    """Raised by the alarm; no `except Exception` in a student's loop catches it."""


class _TimeIsUpAgain(_TimeIsUp):
    """Raised by the alarm where the code goes on, since something like `while True: try: ... except: pass` caught it.

    To make one sets off the next alarm. Python looks for alarms between its steps, but not on the way from a `raise`
    to its `except`: so the next one is raised behind the `except`, which cannot catch it, and so on outwards.
    """

    __init__ = staticmethod(functools.partial(_thread.interrupt_main, getattr(signal, "SIGALRM", signal.SIGINT)))


class _Discard(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)

    def writable(self) -> bool:
        return True


@contextlib.contextmanager
def contained(limit_s: float = LIMIT_S):
    """Throw away output, warnings and log records; turn every way to fail into `CheckFailed`.

    Args:
        limit_s: seconds after which a loop is stopped. Python code is stopped; one long call inside NumPy is
            not, nor is anything where the platform has no `SIGALRM` (Windows). nbgrader's own limit per cell
            stands behind this one.

    Raises:
        CheckFailed: for any exception of the code inside, an exit, or the time limit. `KeyboardInterrupt`
            passes: it is how nbgrader and Jupyter stop a cell.
    """
    try:
        with _silence(), _alarm(limit_s):
            try:
                yield
            except (CheckFailed, KeyboardInterrupt, _TimeIsUp):
                raise
            except NotImplementedError:
                raise CheckFailed(
                    "Not written yet: the function raises NotImplementedError. Replace that line by your code, run "
                    "its cell, then run this one again."
                ) from None
            except BaseException as error:
                raise CheckFailed(_described(error)) from None  # in here, since its text may be a student's code, too
    except _TimeIsUp:
        raise Stopped(
            f"Stopped after {limit_s:g} seconds. Is there a loop that never ends? Any right answer takes far "
            "less than one second here."
        ) from None


@contextlib.contextmanager
def _silence():
    """Let nobody hear the code inside, in however many threads there is some.

    A stopped test can go on in its thread while the next one begins. Whoever then restored what he had found would
    restore the silence of the other: so the first keeps what there was, and the last brings it back.
    """
    one = object()
    try:
        _fall_silent(one)
        with np.errstate(all="ignore"):  # of this thread alone
            yield
    finally:
        _speak_again(one)


_silent: set[object] = set()  # an object for each `_silence` that lasts
_silent_lock = threading.RLock()
_before_silence = contextlib.ExitStack()  # brings back what speaks


def _fall_silent(one: object) -> None:
    with _silent_lock:
        if not _silent:
            _keep_what_speaks()
        _silent.add(one)
        sys.stdout, sys.stderr, sys.displayhook = _Discard(), _Discard(), lambda value: None
        warnings.simplefilter("ignore")
        # A handler made earlier keeps the old stream, and would write to it in spite of the new one.
        logging.disable(logging.CRITICAL)


def _keep_what_speaks() -> None:
    _before_silence.enter_context(_descriptor_silenced(2))
    _before_silence.enter_context(warnings.catch_warnings())
    for name in ("stdout", "stderr", "displayhook"):
        _before_silence.callback(setattr, sys, name, getattr(sys, name))
    _before_silence.callback(logging.disable, logging.root.manager.disable)


def _speak_again(one: object) -> None:
    with _silent_lock:
        _silent.discard(one)
        if not _silent:
            _before_silence.close()


@contextlib.contextmanager
def _descriptor_silenced(number: int):
    """Point a file descriptor at nothing: libraries in C write there, past `sys.stderr`."""
    try:
        saved = os.dup(number)
    except OSError:
        yield  # a process without standard error has nothing to silence
        return
    try:
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), number)
        yield
    finally:
        os.dup2(saved, number)
        os.close(saved)


@contextlib.contextmanager
def _alarm(limit_s: float):
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    entered, alarms, over, begun = _first_outside(sys._getframe()), 0, False, time.monotonic()

    def stop(signum, frame):
        nonlocal alarms
        if over or _first_outside(frame) is entered is not frame or _keeps_order(frame):
            return  # to stop the undoing would leave it half done
        alarms += 1
        raise _TimeIsUp if alarms == 1 else _TimeIsUpAgain

    before = signal.signal(signal.SIGALRM, stop)
    left, again = signal.setitimer(
        signal.ITIMER_REAL, limit_s, AGAIN_S
    )  # of the alarm around this one, if there is one
    try:
        yield
    finally:
        over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - begun), AGAIN_S), again)


def _keeps_order(frame) -> bool:
    """Whether a silence inside the code under test begins or ends here, or in what that calls."""
    ours = {_fall_silent.__code__, _speak_again.__code__}
    while frame is not None and frame.f_code not in ours:
        frame = frame.f_back
    return frame is not None


def _first_outside(frame):
    """The frame that called this module, directly or through a `with`; any other frame is its own."""
    ours = {function.__code__.co_filename for function in (_first_outside, contextlib.contextmanager)}
    while frame.f_code.co_filename in ours:
        frame = frame.f_back
    return frame


def _described(error: BaseException) -> str:
    """As `_describe`; of an exception whose own code fails when it is asked for its text, its kind."""
    try:
        return _describe(error)
    except (KeyboardInterrupt, _TimeIsUp):
        raise
    except BaseException:
        return f"{type(error).__name__}, whose text cannot be read: its own code fails."


def _describe(error: BaseException) -> str:
    """Say what was raised, and in which line of the notebook."""
    message = f"{type(error).__name__}: {error}".rstrip(": ")
    own = [f for f in traceback.extract_tb(error.__traceback__) if _in_notebook(f.filename) and f.name != "_"]
    if isinstance(error, SystemExit):
        message = "Your code called exit, which would stop the notebook"
    if not own:
        return f"{message}."
    return f"{message}\nin {own[-1].name}, line {own[-1].lineno} of its cell:  {own[-1].line}"


def _in_notebook(filename: str) -> bool:
    return "ipykernel_" in filename or filename.startswith("<ipython-input")
