"""Limits on what all processes of a kernel have together: a thread that looks, and ends them where it is too much."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from course_lib._extras import needed

with needed("lab"):
    import psutil

LOOKS_S = 0.25  # from one look to the next: what a process takes in between comes on top
NAMELESS = (b"/dev/zero", b"/memfd:", b"/SYSV")  # as the system names what has no file
THREADS = 4  # for each process that there may be; the system itself sets no limit to those of root
FILES = 20_000  # in a folder in memory: an empty one takes memory, too


class Limits(NamedTuple):
    """What a kernel and all that it started may have together."""

    memory: int  # bytes
    processes: int
    seconds: float  # from its start


def watch(process: psutil.Process, root: str, limits: Limits, end: Callable[[str], None]) -> None:
    """Start to look after a process and its descendants, until it ends.

    Parameters
    ----------
    process : the first one of the sandbox
    root : its file system, as this process sees it
    limits : what they may have
    end : called with the reason where they have more
    """
    threading.Thread(target=_look, args=(process, root, limits, end), daemon=True).start()


def _look(process: psutil.Process, root: str, limits: Limits, end: Callable[[str], None]) -> None:
    last = time.monotonic() + limits.seconds
    while _runs(process):
        why = f"it ran for {limits.seconds:g} seconds" if time.monotonic() > last else ""
        try:
            why = too_much(process, root, limits) or why
        except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):  # one that ended just then
            pass
        except Exception as error:  # whoever cannot be measured may not go on: a student could be the cause
            why = f"what it uses could not be measured ({type(error).__name__})"
        if why:
            return end(why)
        time.sleep(LOOKS_S)


def _runs(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def too_much(process: psutil.Process, root: str, limits: Limits) -> str:
    """What a process and its descendants have more of than they may; "" if nothing."""
    family = process.children(recursive=True)
    if len(family) > limits.processes:
        return f"it started more than {limits.processes} processes"
    if _sum(lambda each: each.num_threads(), family) > THREADS * limits.processes:
        return f"it started more than {THREADS * limits.processes} threads"
    in_files = 0
    for folder in ("/tmp", "/dev/shm"):
        with contextlib.suppress(OSError):
            state = os.statvfs(root + folder)
            in_files += (state.f_blocks - state.f_bfree) * state.f_frsize
            if state.f_files - state.f_ffree > FILES:
                return f"it wrote more than {FILES} files"
    in_files += shared(family)
    # What forks share is in the quick sum more than once: only where that is too much, the slow one is asked.
    quick, slow = (lambda each: each.memory_info().rss), (lambda each: each.memory_full_info().pss)
    if in_files + _sum(quick, family) > limits.memory and in_files + _sum(slow, family) > limits.memory:
        return f"it used more than {limits.memory / 2**30:.2g} GiB of memory"
    return ""


def shared(family: list[psutil.Process]) -> int:
    """Bytes of the mappings without a file that processes may share, each counted once.

    Their pages stay when every process has said that it needs them no more, and then count as nobody's. So their whole
    length counts, and what a process has of them besides counts twice: few have any.
    """
    found: dict[bytes, int] = {}
    for each in family:
        with contextlib.suppress(OSError):
            # a name may hold whatever else Python takes for the end of a line
            for line in Path(f"/proc/{each.pid}/maps").read_bytes().split(b"\n")[:-1]:
                place, rights, _, _, inode, *name = line.split(maxsplit=5)
                if rights[3:] == b"s" and name and name[0].startswith(NAMELESS):
                    first, last = (int(number, 16) for number in place.split(b"-"))
                    found[inode] = max(found.get(inode, 0), last - first)
    return sum(found.values())


def _sum(amount: Callable[[psutil.Process], int], family: list[psutil.Process]) -> int:
    total = 0
    for each in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            total += amount(each)
    return total
