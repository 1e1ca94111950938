"""Limits on what all processes of a kernel have together: a thread that looks, and ends them where it is too much.

It also puts a kernel behind all others who want memory, and what it has started behind all who want a processor.

Memory is what they have, in swap too, their page tables, what they wrote into folders in memory, and what their sockets
may hold.
Besides, the system keeps things for them that it shows to nobody, or to none but root: what is in pipes, locks on
files, what is awaited by epoll. Of these each user may have so many, as the system is set; some have no limit. Only a
control group around the grader holds for them, too: `systemd-run --user --scope -p MemoryMax=8G make grade ...`, say.
Where the machine's memory runs out, the system ends a student's processes before any other.

Processes come and go while they are counted. One that hands its memory on to a child, ends, and so on for ever, is gone
when a list of all the machine's processes has been read. So each is measured as soon as its parent names it
(`descendants`), and whoever takes much is seen sooner or later, not at every look.
"""

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
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
FIRST_TO_END = "1000"  # for oom_score_adj: where the machine's memory runs out, a kernel ends and not its grader
GONE = (FileNotFoundError, ProcessLookupError)  # what the system says of a process that ended just then
SOCKET = 416 * 2**10  # bytes that one holds, as the system is set when it is new; `calls` refuses to enlarge it
# A connection has two ends; one socket alone, such as where a kernel waits for what is printed, holds 10 MB at most.
NO_CONNECTION = re.compile(rb"^TCP6?: inuse [01]\b", re.MULTILINE)
SENT = 2 * 2**30  # bytes by which the grader may grow: messages that it has not read, or that never end, lie there


class Limits(NamedTuple):
    """What a kernel and all that it started may have together."""

    memory: int  # bytes
    processes: int
    seconds: float  # from its start


def watch(process: psutil.Process, limits: Limits, end: Callable[[str], None]) -> None:
    """Start to look after a process and its descendants, until it ends.

    Parameters
    ----------
    process : the first one of the sandbox
    limits : what they may have
    end : called with the reason where they have more
    """
    threading.Thread(target=_look, args=(process, limits, end), daemon=True).start()


def _look(process: psutil.Process, limits: Limits, end: Callable[[str], None]) -> None:
    last, grader = time.monotonic() + limits.seconds, psutil.Process()
    most = grader.memory_info().rss + SENT
    while _runs(process):
        why = f"it ran for {limits.seconds:g} seconds" if time.monotonic() > last else ""
        if grader.memory_info().rss > most:
            why = f"the grader's memory grew by more than {SENT / 2**30:.2g} GiB: it sent too much"
        try:
            put_behind(process)
            kernel = next(descendants(process.pid), process.pid)
            why = too_much(process, f"/proc/{kernel}/root", limits) or why
        except (psutil.NoSuchProcess, *GONE):  # it ended just then
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
    """A kernel ends before others, and what it has started computes after others: the machine is not theirs alone."""
    family = list(descendants(process.pid))
    for kernel in family[:1]:
        with contextlib.suppress(OSError):  # where the system does not let us, its limits hold all the same
            Path(f"/proc/{kernel}/oom_score_adj").write_text(FIRST_TO_END)
    for each in family[1:]:
        with contextlib.suppress(OSError):
            for thread in map(int, os.listdir(f"/proc/{each}/task")):  # each has a priority of its own
                if os.getpriority(os.PRIO_PROCESS, thread) < LAST:
                    os.setpriority(os.PRIO_PROCESS, thread, LAST)
            # Each session has a share of its own, which the priority of its processes does not change; the kernel's
            # stays as it is.
            share = Path(f"/proc/{each}/autogroup")
            if os.getsid(each) != os.getsid(family[0]) and share.read_text().split()[-1:] not in ([], [str(LAST)]):
                share.write_text(str(LAST))


def descendants(first: int) -> Iterator[int]:
    """The processes that descend from one, each as soon as it is known: its oldest child is the first.

    Yields
    ------
    of each process the number of a thread by which the system tells of its memory: the first one's, which is the number
    of the process, or another one's where that has ended and the others go on
    """
    if not os.path.exists(f"/proc/self/task/{threading.get_native_id()}/children"):  # Linux may be built without
        yield from (_goes_on(each.pid) for each in psutil.Process(first).children(recursive=True))
        return
    left = [first]
    while left:
        number = left.pop()
        with contextlib.suppress(*GONE):
            for thread in os.listdir(f"/proc/{number}/task"):
                for child in map(int, Path(f"/proc/{number}/task/{thread}/children").read_bytes().split()):
                    yield _goes_on(child)
                    left.append(child)


def too_much(process: psutil.Process, root: str, limits: Limits) -> str:
    """What a process and its descendants have more of than they may; "" if nothing.

    root : their file system, as this process sees it
    """
    family = {each: _said(each, "status") for each in descendants(process.pid)}
    if len(family) > limits.processes:
        return f"it started more than {limits.processes} processes"
    if sum(said.get(b"Threads", 0) for said in family.values()) > THREADS * limits.processes:
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
    # in page tables the system keeps where memory is: a page of it for each 2 MiB that are touched
    beside += kept + in_sockets(process) + _sum(family.values(), b"VmPTE")
    # What forks share is in the quick sum more than once: only where that is too much, the slow one is asked.
    if beside + _sum(family.values(), b"VmRSS", b"VmSwap") > limits.memory:
        slow = (_said(each, "smaps_rollup") for each in descendants(process.pid))
        if beside + _sum(slow, b"Pss", b"SwapPss") > limits.memory:
            return f"it used more than {limits.memory / 2**30:.2g} GiB of memory"
    return ""


def shared(family: Iterable[int]) -> tuple[int, int]:
    """Bytes of the mappings without a file that processes may share, each counted once; and the number of all mappings.

    `calls` refuses to make such mappings; so there are some only where it does not know the machine's calls.
    Their pages stay when every process has said that it needs them no more, and then count as nobody's. So their whole
    length counts, and what a process has of them besides counts twice: few have any. Where there are more mappings than
    MAPPINGS, no more are looked at.
    """
    found: dict[bytes, int] = {}
    mappings = 0
    for each in family:
        if mappings > MAPPINGS:
            break
        with contextlib.suppress(*GONE):
            # a name may hold whatever else Python takes for the end of a line
            lines = Path(f"/proc/{each}/maps").read_bytes().split(b"\n")[:-1]
            mappings += len(lines)
            for line in lines:
                place, rights, _, _, inode, *name = line.split(maxsplit=5)
                if rights[3:] == b"s" and name and name[0].startswith(NAMELESS):
                    first, last = (int(number, 16) for number in place.split(b"-"))
                    found[inode] = max(found.get(inode, 0), last - first)
    return sum(found.values()), mappings


def in_sockets(process: psutil.Process) -> int:
    """Bytes that the sockets of a process's network may hold: all what a new one can, those of TCP also what waits.

    The buffers of TCP grow by themselves. The system shows what waits in them, without what it needs around it, and
    has a limit for all on the machine together (`net.ipv4.tcp_mem`).
    """
    network, total = Path(f"/proc/{process.pid}/net"), 0
    with contextlib.suppress(OSError):
        total += SOCKET * int((network / "sockstat").read_bytes().split()[2])
    for counts, kind in (("sockstat", "tcp"), ("sockstat6", "tcp6")):
        with contextlib.suppress(OSError):
            # To list those of one network the system goes through those of all, and few kernels have a connection.
            if NO_CONNECTION.search((network / counts).read_bytes()):
                continue
            for line in (network / kind).read_bytes().splitlines()[1:]:
                total += sum(int(waiting, 16) for waiting in line.split()[4].split(b":"))
    return total


def _goes_on(number: int) -> int:
    """A thread of this process that has its memory; the first one if none has."""
    with contextlib.suppress(*GONE):
        for thread in os.listdir(f"/proc/{number}/task"):
            with contextlib.suppress(*GONE):
                if not Path(f"/proc/{thread}/statm").read_bytes().startswith(b"0 "):
                    return int(thread)
    return number


def _said(number: int, file: str) -> dict[bytes, int]:
    """The numbers in a file about a process, by their names; none if it has ended. Those of memory are KiB."""
    found = {}
    with contextlib.suppress(*GONE):
        for line in Path(f"/proc/{number}/{file}").read_bytes().split(b"\n"):
            name, _, value = line.partition(b":")
            if value.split()[:1] and value.split()[0].isdigit():
                found[name] = int(value.split()[0])
    return found


def _sum(said: Iterable[dict[bytes, int]], *names: bytes) -> int:
    """Bytes that have one of these names."""
    return sum(2**10 * each.get(name, 0) for each in said for name in names)
