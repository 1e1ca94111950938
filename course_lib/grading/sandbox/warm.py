"""The grader's side of a warm start: a parent in the sandbox that has imported modules, and kernels forked from it.

There is one parent for each process that grades and for what its kernels have in common, started when it is first
asked for. Processes that are forked after that share it: a request is one message on a socket, with a channel of its
own for the answers, so that nobody waits for a turn. A parent ends with the process that started it, or when it has
long had nothing to do, and a kernel with the one that asked for it. `parent` says what happens inside.
"""

import asyncio
import contextlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from course_lib._extras import needed
from course_lib.grading.sandbox import view
from course_lib.grading.sandbox.calls import filter_of

with needed("lab"):
    import psutil

SCRIPT = f"{view.import_path()}/course_lib/grading/sandbox/parent.py"
CONNECTION = f"{view.SOCKETS}/connection.json"
BESIDE = "/run/beside"  # where the kernel has the files beside its notebook, bound to their places
MOST_BESIDE = 64 * 2**20  # bytes of these: they are copied into memory
IMPORTS_S, FORKS_S, ENDS_S, LOOKS_S = 300, 30, 5, 0.005
IDLE_S = 300  # as often a parent looks whether it has a kernel, or ends: Jupyter, where Formgrader grades, goes on
GONE = "the parent ended"
# As view.ISOLATED, with the rights to set kernels apart. As user 0: another one bubblewrap would put into a second name
# space of users, whose rights do not reach the mounts. Not to die with a thread of the grader's: see `serve`.
ISOLATED = (
    "--unshare-all", "--unshare-user", "--new-session", "--uid", "0", "--gid", "0",
    "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETFCAP",
)  # fmt: skip
SENDER = struct.Struct("3i")  # of SCM_CREDENTIALS: the process as the receiver counts, its user, its group


class NotWarm(Exception):
    """No kernel can be forked, and one has to start cold; the message says why."""


class ParentGone(NotWarm):
    """The parent ended before it had forked this kernel. Another one may be started."""


class Kind(NamedTuple):
    """What all kernels of one parent have in common."""

    modules: tuple[str, ...]  # that they have imported
    packages: tuple[str, ...] | None
    hidden: tuple[str, ...]
    environment: tuple[str, ...]  # arguments of bubblewrap


class Job(NamedTuple):
    """What one kernel has of its own."""

    command: list[str]  # arguments of ipykernel_launcher
    known: str  # its connection file
    limits: dict[str, int]  # of each process: name as in `resource`, without RLIMIT_ -> most
    scratch: int  # bytes that it may write
    folder: Path  # where its notebook lies


class Forked:
    """The first process of a kernel's name space: used as a `Popen` is, but no child of this process."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int):
        self.pid, self._number = pid, os.pidfd_open(pid)
        weakref.finalize(self, os.close, self._number)

    def poll(self) -> int | None:
        """None while it runs, and then 0: the system says to its parent alone how it ended."""
        return 0 if _readable(self._number, 0) else None

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended.

        Raises
        ------
        subprocess.TimeoutExpired : it has not, after so many seconds.
        """
        if not _readable(self._number, timeout):
            raise subprocess.TimeoutExpired("a forked kernel", timeout)
        return 0

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it still runs."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it ended just then
                signal.pidfd_send_signal(self._number, number)

    def kill(self) -> None:
        """End it, and with it every process of its name space."""
        self.send_signal(signal.SIGKILL)


class Parent:
    """A parent; when this is made, it begins to import."""

    def __init__(self, kind: Kind):
        files = view.arguments(Path(os.devnull), MOST_BESIDE, kind.packages, kind.hidden)
        self._kept = sorted(_outermost(part for part in files if part.startswith("/tmp/") and part != view.WORK))
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.kind, self.has_worked, self._said = kind, False, tempfile.TemporaryFile()
        me, refused = os.pidfd_open(os.getpid()), holding(filter_of())
        command = [
            view.bubblewrap(), *ISOLATED, *kind.environment, "--dir", BESIDE, *files,
            *(["--seccomp", str(refused)] if filter_of() else []),
            "--", sys.executable, SCRIPT, str(theirs.fileno()), str(me), str(IDLE_S), *kind.modules,
        ]  # fmt: skip
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._said,
            pass_fds=[theirs.fileno(), me, refused], start_new_session=True, env={},
        )  # fmt: skip
        theirs.close()
        os.close(me)
        os.close(refused)

    @property
    def is_gone(self) -> bool:
        """Whether it has ended."""
        poll = select.poll()
        poll.register(self._requests, 0)
        return bool(poll.poll(0))

    @property
    def is_over(self) -> bool:
        """Whether it has ended and might work again: it forked kernels, or had nothing to do."""
        if not self.is_gone:
            return False
        with contextlib.suppress(subprocess.TimeoutExpired):  # bubblewrap itself ends a moment later
            self.process.wait(ENDS_S)
        return self.has_worked or self.process.returncode == 0

    async def works(self) -> None:
        """Wait for its imports, and let it fork a kernel that ends at once.

        Raises
        ------
        NotWarm : it cannot import a module, or the system does not allow what it has to do.
        """
        if not self.has_worked:
            try:
                await self.fork(Job([], "", {}, 2**20, Path(os.devnull)), IMPORTS_S)
            except ParentGone as error:
                lines = os.pread(self._said.fileno(), 2**20, 0).decode(errors="replace").split("\n")
                raise NotWarm(next(filter(None, reversed(lines)), str(error))) from None
            self.has_worked = True

    async def fork(self, job: Job, seconds: float = FORKS_S) -> tuple[Forked, int]:
        """The first process of a new kernel's name space, and the kernel's number as the system counts.

        Raises
        ------
        NotWarm : it cannot be forked, or not in so many seconds.
        """
        channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        channel.setblocking(False)
        with channel, contextlib.ExitStack() as given:
            given.callback(theirs.close)
            me, about = os.pidfd_open(os.getpid()), holding(json.dumps(_described(job, self._kept)).encode())
            given.callback(os.close, me)
            given.callback(os.close, about)
            beside = _packed(view.arguments(job.folder, 0, self.kind.packages, self.kind.hidden))
            given.callback(os.close, beside)
            try:
                socket.send_fds(self._requests, [b"fork"], [theirs.fileno(), me, about, beside])
            except (BrokenPipeError, ConnectionResetError):
                raise ParentGone(GONE) from None
            given.close()  # whoever else has the other end is in the sandbox
            told = await _told(channel, seconds)
            try:
                first = Forked(told["first"])
                channel.send(b"go on")  # until now it waited: its number was its own
            except (ProcessLookupError, BrokenPipeError):
                raise NotWarm("the kernel ended while it was forked") from None
        return first, told["kernel"]

    def end(self) -> None:
        """End it, whatever it does, and all kernels that were forked from it."""
        last = time.monotonic() + ENDS_S
        while self.process.poll() is None and time.monotonic() < last:
            with contextlib.suppress(psutil.NoSuchProcess):
                # the first process of its name space, with which the system itself ends all others; if it is there yet
                for first in psutil.Process(self.process.pid).children():
                    first.kill()
            time.sleep(LOOKS_S)


_parents: dict[Kind, Parent | str] = {}  # or why there is none
_lock = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lock._at_fork_reinit)  # another thread may hold it just then


def begun(kind: Kind) -> Parent:
    """The parent of this kind, which may still import; it is started if there is none, or none any longer.

    Raises
    ------
    NotWarm : it did not work here when it was tried.
    """
    with _lock:
        parent = _parents.get(kind)
        if parent is None or isinstance(parent, Parent) and parent.is_over:
            _parents[kind] = parent = Parent(kind)
    if isinstance(parent, str):
        raise NotWarm(parent)
    return parent


async def started(kind: Kind) -> Parent:
    """As `begun`, and tried.

    Raises
    ------
    NotWarm : it does not work here. This is kept, and not tried again.
    """
    parent = begun(kind)
    try:
        await parent.works()
    except NotWarm as error:
        _parents[kind] = str(error)
        parent.end()
        raise
    return parent


async def forked(kind: Kind, job: Job) -> tuple[Forked, int]:
    """A new kernel: the first process of its name space, and the kernel's number as the system counts.

    Raises
    ------
    NotWarm : it cannot be forked.
    """
    try:
        return await (await started(kind)).fork(job)
    except ParentGone:  # just now
        return await (await started(kind)).fork(job)


def end_parents() -> None:
    """End all parents that this process knows, and the kernels that were forked from them."""
    with _lock:
        for kind, parent in list(_parents.items()):
            if isinstance(parent, Parent):  # why there is none is kept
                parent.end()
                del _parents[kind]


def holding(content: bytes) -> int:
    """A file without a name, open, to be read from its beginning."""
    number = os.memfd_create("held")
    os.write(number, content)
    os.lseek(number, 0, os.SEEK_SET)
    return number


def _outermost(places: Iterable[str]) -> set[str]:
    """Those that do not lie below another one."""
    found = set(places)
    return {place for place in found if not any(place.startswith(f"{other}/") for other in found)}


def _described(job: Job, kept: list[str]) -> dict:
    """What the kernel's first process is told; kept : places in /tmp where a part of Python is installed."""
    return {
        "command": job.command, "known": job.known, "limits": job.limits, "scratch": job.scratch, "work": view.WORK,
        "sockets": view.SOCKETS, "small": view.SMALL, "connection": CONNECTION, "beside": BESIDE,
        "most": 2 * MOST_BESIDE, "kept": kept, "closed": view.of_root(),
    }  # fmt: skip


def _packed(seen: list[str]) -> int:
    """The files beside a notebook, an open archive: those that these arguments of bubblewrap bind if they are there."""
    left = MOST_BESIDE

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        nonlocal left
        if entry.islnk():  # one more name of a file that is there already: it is written once more
            entry.type, entry.size = tarfile.REGTYPE, os.stat(os.path.join(folder, entry.name)).st_size
        left -= entry.size
        if left < 0:
            raise NotWarm(f"the files beside the notebook are larger than {MOST_BESIDE >> 20} MiB")
        return entry if entry.isreg() or entry.isdir() else None

    with os.fdopen(os.memfd_create("beside"), "w+b") as file:
        with tarfile.TarFile(fileobj=file, mode="w") as archive:
            for kind, source, _ in zip(seen, seen[1:], seen[2:], strict=False):
                if kind == "--ro-bind-try":
                    folder, name = os.path.split(source)
                    archive.add(source, name, filter=plain)
        file.seek(0)
        return os.dup(file.fileno())


async def _told(channel: socket.socket, seconds: float) -> dict[str, int]:
    """The numbers of the processes that answer, as the system outside counts."""
    numbers: dict[str, int] = {}
    last = time.monotonic() + seconds
    while len(numbers) < 2:
        try:
            said, about, _, _ = channel.recvmsg(2000, socket.CMSG_SPACE(SENDER.size))
        except BlockingIOError:
            if time.monotonic() > last:
                raise NotWarm(f"no kernel was forked in {seconds:g} seconds") from None
            await asyncio.sleep(LOOKS_S)
            continue
        if not said:
            raise ParentGone(GONE)
        if (name := said.decode()) not in ("first", "kernel"):
            raise NotWarm(name)
        numbers[name] = SENDER.unpack(about[0][2])[0]
    return numbers


def _readable(number: int, seconds: float | None) -> bool:
    poll = select.poll()
    poll.register(number, select.POLLIN)
    return bool(poll.poll(None if seconds is None else 1000 * seconds))
