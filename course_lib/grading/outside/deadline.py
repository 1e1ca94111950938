"""Hidden tests in a process that can be ended, where nobody else would end nbgrader's own.

An alarm ends a loop in Python. In C, as in `sum(range(n))`, nobody hears it: only the process can be ended.
"""

import asyncio
import contextlib
import contextvars
import logging
import logging.handlers
import multiprocessing
import multiprocessing.connection
import pickle
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterator

from course_lib._extras import needed
from course_lib.grading.marking import apart
from course_lib.grading.marking.apart import Apart
from course_lib.grading.outside.configured import warn_once

with needed("lab"):
    from nbgrader.converters.base import NbGraderException


class NoProcess(Exception):
    """No process can be made for the work; the message says why."""


def is_alone() -> bool:
    """Whether a process may be forked from this one.

    Not from Jupyter's server, where Formgrader grades: a fork has the locks of its threads, and not who opens them.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return apart.FORK == "fork" and threading.active_count() == 1
    return False


def in_time(limit_s: float, log: logging.Logger, work: Callable, *arguments):
    """The result of `work(*arguments)`, in a process of its own; what it logs there is logged here.

    Raises
    ------
    NoProcess : there is none, and nothing has been done.
    Unfinished : it took longer than `limit_s`, or was killed.
    NbGraderException : it failed; why was logged.
    """
    hears, tells = multiprocessing.Pipe(duplex=False)
    start, around = ("fork", contextlib.nullcontext()) if is_alone() else ("spawn", _without_main())
    with contextlib.closing(hears), contextlib.closing(tells):
        try:
            with around:
                under_way = Apart(limit_s, _telling, tells, log, _level(log), work, *arguments, start=start)
        except (AssertionError, AttributeError, TypeError, pickle.PicklingError) as error:  # a lambda in the settings
            raise NoProcess(f"{type(error).__name__}: {error}") from None
        tells.close()
        try:
            for record in _told(hears, under_way):
                if record.name == log.name:
                    log.handle(record)
                else:  # such as that kernels start cold, which each process says
                    warn_once(log, record.getMessage())
            return under_way.result()
        finally:
            under_way.stop()


def _told(hears, under_way: Apart) -> Iterator[logging.LogRecord]:
    """What the process logs, until it is over."""
    is_over = False
    while not is_over:
        multiprocessing.connection.wait([hears, under_way.answer], max(0, under_way.end - time.monotonic()))
        is_over = under_way.is_over  # before it is listened to: nothing is logged after the answer
        try:
            while hears.poll():
                yield hears.recv()
        except (EOFError, OSError):  # it has ended, perhaps in the midst of a word
            return


def _level(log: logging.Logger) -> int:
    """Of what somebody here listens to: nbgrader's own handlers pass over most of what it logs."""
    return max(log.level, min((each.level for each in log.handlers), default=logging.WARNING))


def _telling(tells, log: logging.Logger, level: int, work: Callable, *arguments):
    """In the child."""
    handler = logging.handlers.QueueHandler(types.SimpleNamespace(put_nowait=tells.send))
    log.setLevel(level)
    log.propagate = False
    for each in (log, logging.getLogger()):
        each.handlers = [handler]
    try:
        # without the variables of this thread's: the loop among them is also that of the process it was forked from
        return contextvars.Context().run(work, *arguments)
    except Exception as error:  # of any class, and who asked may not be able to read it
        log.error(traceback.format_exc())
        raise NbGraderException(f"{type(error).__name__}: {error}") from None


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """A block in which a process that starts does not run this one's script again: it may grade without asking."""
    main, sys.modules["__main__"] = sys.modules["__main__"], types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
