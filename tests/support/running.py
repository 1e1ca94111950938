"""Which processes still run, for tests of what must be over."""

import contextlib
from collections.abc import Iterable

import psutil


def still_running(numbers: Iterable[int]) -> list[int]:
    """Those of these processes that have not ended; one that only nobody has waited for has."""
    found = []
    for number in numbers:
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(number).status() != psutil.STATUS_ZOMBIE:
                found.append(number)
    return found
