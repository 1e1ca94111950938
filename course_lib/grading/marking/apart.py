"""Work in a process of its own, which has a limit, and ends with everything that it started."""

import contextlib
import ctypes
import math
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from course_lib._extras import needed

with needed("lab"):
    import psutil

GRACE_S = 120  # beyond a notebook's own limit: to start, to end, and to write
ENDS_S = 5  # for a process to end when it has nothing to do any more
MEMORY, LARGEST_FILE = 8 * 2**30, 2**30  # bytes that a work's processes may have, and may write into one file
DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG, from linux/prctl.h
FORK = "fork" if sys.platform == "linux" else "spawn"  # a fork has nbgrader imported already


class Unfinished(Exception):
    """Work that was ended from outside, or ended itself."""


class Apart:
    """`work(*arguments)`, under way in a process of its own, which ends with everything that it started.

    start : how it is made, where not as `FORK` says: "fork" or "spawn"
    """

    def __init__(self, limit_s: float, work: Callable, *arguments, start: str = ""):
        context = multiprocessing.get_context(start or FORK)
        self.answer, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_do, args=(sender, work, *arguments))
        self._process.start()
        sender.close()
        self.limit_s, self.end = limit_s, time.monotonic() + limit_s

    @property
    def is_over(self) -> bool:
        """Whether `result` need not wait."""
        return self.answer.poll(0) or time.monotonic() >= self.end

    def result(self):
        """What the work returns.

        Raises
        ------
        Unfinished : it took longer than `limit_s`, or was killed.
        Exception : what the work raised.
        """
        try:
            if not self.answer.poll(max(0, self.end - time.monotonic())):
                raise Unfinished(f"it took more than {self.limit_s:g} seconds")
            result = self.answer.recv()
        except EOFError:
            self._process.join(ENDS_S)
            raise Unfinished(f"its process {how_it_ended(self._process.exitcode)}") from None
        finally:
            self.stop()
        if isinstance(result, Exception):
            raise result
        return result

    def stop(self) -> None:
        """End it, done or not."""
        _end(self._process)
        self.answer.close()


def apart(limit_s: float, work: Callable, *arguments):
    """The result of an `Apart`."""
    return Apart(limit_s, work, *arguments).result()


def how_it_ended(code: int | None) -> str:
    """What became of a process, by its exit code: below zero, it is that of a signal."""
    if code is None:
        return "does not answer any more"
    if code >= 0:
        return f"ended with exit status {code}, and without a result"
    name = signal.Signals(-code).name
    return f"was ended by {name}" + ("; it may have asked for too much memory" if name == "SIGKILL" else "")


def wait_for_one(works: list[Apart], most_s: float = math.inf) -> None:
    """Return when one of these is over, or after so many seconds."""
    left = min(most_s, min(work.end for work in works) - time.monotonic())
    multiprocessing.connection.wait([work.answer for work in works], max(0, left))


def _do(sender, work: Callable, *arguments) -> None:
    """In the child."""
    _limit()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    try:
        _end_with_parent()
        sender.send(work(*arguments))
    except Exception as error:
        # Where Dask is imported, what an error came of is pickled with it, and not every class of it can be read.
        error.__cause__ = error.__context__ = None
        sender.send(error)


def _limit() -> None:
    """Let this process have so much memory, and write such files, and no more; where it may have less, that stays."""
    for name, most in (("RLIMIT_DATA", MEMORY), ("RLIMIT_FSIZE", LARGEST_FILE)):
        with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has no limits, and macOS not these
            import resource

            resource.setrlimit(getattr(resource, name), (most, most))


def _end_with_parent() -> None:
    """From now on this process ends with the one that started it, also where that is killed: the next run may begin."""
    parent = multiprocessing.parent_process()
    if sys.platform == "linux":  # by the system itself: a thread gets no turn during one long search for an expression
        ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent.pid:  # it has ended just before
            os._exit(1)
    else:
        threading.Thread(target=lambda: parent.join() or os._exit(1), daemon=True).start()


def _end(process) -> None:
    """End the child and whatever it started: a kernel is in a session of its own."""
    _end_children(process)
    process.join(ENDS_S)
    if process.is_alive():
        with contextlib.suppress(psutil.Error):
            psutil.Process(process.pid).suspend()  # or it might start another kernel just now, as it may have before
        _end_children(process)
        process.kill()
        process.join()


def _end_children(process) -> None:
    with contextlib.suppress(psutil.Error):
        for member in psutil.Process(process.pid).children(recursive=True) if process.is_alive() else []:
            with contextlib.suppress(psutil.Error):
                member.kill()
