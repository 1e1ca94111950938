"""Limits on what all processes of a kernel have together: a thread that looks, and ends them where it is too much.

It also puts what a kernel has started behind all others who want a processor.

Memory is what they have, their page tables, what they wrote into folders in memory, and what their sockets may hold.
Besides, the system keeps things for them that it shows to nobody, or to none but root: what is in pipes, locks on
files, what is awaited by epoll. Of these each user may have so many, as the system is set; some have no limit. Only a
control group around the grader holds for them, too: `systemd-run --user --scope -p MemoryMax=8G make grade ...`, say.
Where the machine's memory runs out, the system ends a student's processes before any other (`provisioner`).
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from course_lib._extras import needed
from course_lib.grading.sandbox.view import SOCKETS

with needed("lab"):
    import psutil

LOOKS_S = 0.25  # from one look to the next: what a process takes in between comes on top
NAMELESS = (b"/dev/zero", b"/memfd:", b"/SYSV")  # as the system names what has no file
THREADS = 4  # for each process that there may be; the system itself sets no limit to those of root
FILES = 20_000  # in a folder in memory: an empty one takes memory, too
MAPPINGS = 100_000  # a process has one or two thousand with a framework; to look through more would take too long
LAST = 19  # the lowest priority
SOCKET = 416 * 2**10  # bytes that one holds, as the system is set when it is new; `calls` refuses to enlarge it
SENT = 2 * 2**30  # bytes by which the grader may grow: messages that it has not read, or that never end, lie there


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
    last, grader = time.monotonic() + limits.seconds, psutil.Process()
    most = grader.memory_info().rss + SENT
    while _runs(process):
        why = f"it ran for {limits.seconds:g} seconds" if time.monotonic() > last else ""
        if grader.memory_info().rss > most:
            why = f"the grader's memory grew by more than {SENT / 2**30:.2g} GiB: it sent too much"
        try:
            put_behind(process)
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


def put_behind(process: psutil.Process) -> None:
    """What a kernel has started gets the lowest priority: it must not take the machine from other students' kernels."""
    kernels = process.children()[:1]
    for each in process.children(recursive=True):
        with contextlib.suppress(psutil.Error, OSError):
            if each not in kernels and each.nice() < LAST:
                each.nice(LAST)
                # each session has a share of its own, which the priority of its processes does not change
                Path(f"/proc/{each.pid}/autogroup").write_text(str(LAST))


def too_much(process: psutil.Process, root: str, limits: Limits) -> str:
    """What a process and its descendants have more of than they may; "" if nothing."""
    family = process.children(recursive=True)
    if len(family) > limits.processes:
        return f"it started more than {limits.processes} processes"
    if _sum(lambda each: each.num_threads(), family) > THREADS * limits.processes:
        return f"it started more than {THREADS * limits.processes} threads"
    beside = 0  # bytes that are no process's own
    for folder in ("/tmp", "/dev/shm", SOCKETS):
        with contextlib.suppress(OSError):
            state = os.statvfs(root + folder)
            beside += (state.f_blocks - state.f_bfree) * state.f_frsize
            if state.f_files - state.f_ffree > FILES:
                return f"it wrote more than {FILES} files"
    kept, mappings = shared(family)
    if mappings > MAPPINGS:
        return f"it made more than {MAPPINGS} mappings of memory"
    beside += kept + in_sockets(process) + _sum(page_tables, family)
    # What forks share is in the quick sum more than once: only where that is too much, the slow one is asked.
    quick, slow = (lambda each: each.memory_info().rss), (lambda each: each.memory_full_info().pss)
    if beside + _sum(quick, family) > limits.memory and beside + _sum(slow, family) > limits.memory:
        return f"it used more than {limits.memory / 2**30:.2g} GiB of memory"
    return ""


def shared(family: list[psutil.Process]) -> tuple[int, int]:
    """Bytes of the mappings without a file that processes may share, each counted once; and the number of all mappings.

    Their pages stay when every process has said that it needs them no more, and then count as nobody's. So their whole
    length counts, and what a process has of them besides counts twice: few have any. Where there are more mappings than
    MAPPINGS, no more are looked at.
    """
    found: dict[bytes, int] = {}
    mappings = 0
    for each in family:
        if mappings > MAPPINGS:
            break
        with contextlib.suppress(OSError):
            # a name may hold whatever else Python takes for the end of a line
            lines = Path(f"/proc/{each.pid}/maps").read_bytes().split(b"\n")[:-1]
            mappings += len(lines)
            for line in lines:
                place, rights, _, _, inode, *name = line.split(maxsplit=5)
                if rights[3:] == b"s" and name and name[0].startswith(NAMELESS):
                    first, last = (int(number, 16) for number in place.split(b"-"))
                    found[inode] = max(found.get(inode, 0), last - first)
    return sum(found.values()), mappings


def page_tables(process: psutil.Process) -> int:
    """Bytes in which the system keeps where a process's memory is: a page of it for each 2 MiB that are touched."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process.pid}/status").read_bytes().split(b"\n"):
            if line.startswith(b"VmPTE:"):
                return int(line.split()[1]) * 2**10
    return 0


def in_sockets(process: psutil.Process) -> int:
    """Bytes that the sockets of a process's network may hold: all what a new one can, those of TCP also what waits.

    The buffers of TCP grow by themselves. The system shows what waits in them, without what it needs around it, and
    has a limit for all on the machine together (`net.ipv4.tcp_mem`).
    """
    network, total = Path(f"/proc/{process.pid}/net"), 0
    with contextlib.suppress(OSError):
        total += SOCKET * int((network / "sockstat").read_bytes().split()[2])
    for kind in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (network / kind).read_bytes().splitlines()[1:]:
                total += sum(int(waiting, 16) for waiting in line.split()[4].split(b":"))
    return total


def _sum(amount: Callable[[psutil.Process], int], family: list[psutil.Process]) -> int:
    total = 0
    for each in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            total += amount(each)
    return total
