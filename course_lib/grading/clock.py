"""The time that somebody's code has had, on a machine that others keep busy: it stands still while they do."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable

EVERY_S = 0.05  # how old it may be what is known of waiting


def starved(process: int | str = "self") -> float:
    """Seconds in which threads of a process were ready to run, and the machine had no processor for them.

    0 of a process that has ended, and where the system does not say it: Linux does, but not in every container.
    """
    waited, folder = 0, f"/proc/{process}/task"
    with contextlib.suppress(OSError):
        for thread in os.listdir(folder):
            with contextlib.suppress(OSError):  # it has just ended
                with open(f"{folder}/{thread}/schedstat", "rb", buffering=0) as told:
                    waited += int(told.read().split()[1])
    return waited / 1e9


class Fed:
    """Seconds as they go by, but for those in which there was no processor.

    A call of a student's function asks for the time several times, and to ask how long somebody waited takes longer
    than many a call. So that is asked once in `EVERY_S`; until then, what was waited since counts as time.

    waited : seconds without a processor, so far
    """

    def __init__(self, waited: Callable[[], float] = starved):
        self._waited, self._known, self._until = waited, 0.0, float("-inf")

    def __call__(self) -> float:
        """Seconds since some moment."""
        now = time.monotonic()
        if now >= self._until:
            self._known, self._until = self._waited(), now + EVERY_S
        return now - self._known


class Clock:
    """The time that the student's code has had.

    It stands still while the examiner computes, and while the machine has no processor for this process. Works are
    marked side by side: if one of them keeps the machine busy, another that needs a tenth of a second may get it in the
    course of many, and that must cost it nothing. What sleeps or waits has no more time than what computes, as it would
    have if the time of its processor were counted.
    """

    def __init__(self):
        self._fed, self._past, self._stands = Fed(), 0.0, None

    def now(self) -> float:
        """Seconds."""
        return self._goes() if self._stands is None else self._stands

    @contextlib.contextmanager
    def standing(self):
        """A block in which no time goes by."""
        self._stands = self._goes()
        try:
            yield
        finally:
            self._past, self._stands = self._past + self._goes() - self._stands, None

    def delay_alarm(self, seconds: float) -> None:
        """Within `contained`, whose alarm comes again and again: let none through before these seconds are over."""
        if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
            return  # there is none
        stop, end = signal.getsignal(signal.SIGALRM), self.now() + seconds
        signal.signal(signal.SIGALRM, lambda number, frame: stop(number, frame) if self.now() >= end else None)

    def _goes(self) -> float:
        return self._fed() - self._past
