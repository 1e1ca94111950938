"""What warm kernels are forked from: a script that bubblewrap runs, has imported modules, and waits for requests.

It never runs a student's code, and reads nothing of theirs: what a kernel needs, the kernel's own first process reads.
Between the two are name spaces of the kernel's own, so that it is as far from its parent, and from other kernels, as it
is from the rest of the machine:

    the parent             in bubblewrap, with the right to make name spaces and to mount, and with one thread
      a middle one         asks for name spaces of which its children are, and ends
        the first process  makes what the kernel sees, gives all rights away, and ends with the grader or the kernel
          the kernel       closes all that is open, and goes on as `python -m ipykernel_launcher` would

A request is a message with four open files: a channel for the answers, the grader's process, the job (JSON), and the
files beside the notebook (an archive of tar's). The answers are `first` and `kernel`, from these processes, so that the
system tells the grader who they are; or what could not be done. Nothing but the standard library is imported here, and
what a kernel imports when it starts, and the modules that the grader names.
"""

import contextlib
import ctypes
import fcntl
import gc
import importlib
import json
import os
import resource
import select
import shutil
import signal
import socket
import struct
import sys
import tarfile

# From linux/sched.h, mount.h, prctl.h, capability.h, sockios.h and if.h
NEW_MOUNTS, NEW_IPC, NEW_USERS, NEW_PROCESSES, NEW_NETWORK = 1 << 17, 1 << 27, 1 << 28, 1 << 29, 1 << 30
READ_ONLY, NO_SETUID, NO_DEVICES, NO_PROGRAMS, REMOUNT, BIND, ALL_BELOW, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
DUMPABLE, DROP_BOUND = 4, 24
CAPABILITIES, ALL_RIGHTS = 0x20080522, "/proc/sys/kernel/cap_last_cap"
SET_FLAGS, UP_AND_RUNNING = 0x8914, 0x41
OF_KERNEL = (
    "ipykernel_launcher", "ipykernel.kernelapp", "ipykernel.debugger", "IPython.core.completerlib",
    "IPython.core.oinspect", "IPython.core.debugger", "IPython.core.logger", "IPython.extensions.storemagic",
    "tornado.platform.asyncio", "psutil", "sqlite3",
)  # fmt: skip
BACKEND = "MPLBACKEND"  # Matplotlib reads it when it is imported, and ipykernel sets it when it starts: too late here

libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Import, then fork a kernel for each request, until the grader ends; and in such a kernel, run it.

    An import that never ends is ended with the grader, too.

    The command's arguments are the socket of the requests, the grader's process (both open), the seconds after which
    it ends if it has nothing to do, and the modules.
    """
    del sys.path[0]  # this file's folder
    requests, grader, idle_s, *modules = sys.argv[1:]
    requests, grader = socket.socket(fileno=int(requests)), int(grader)
    plots_with = os.environ.get(BACKEND)
    os.environ.setdefault(BACKEND, "module://matplotlib_inline.backend_inline")
    importing = os.getpid()
    if (guard := os.fork()) == 0:  # until the imports are over, which may be never, it looks whether the grader ends
        ready, _, _ = select.select([grader, os.pidfd_open(importing)], [], [])
        if grader in ready:
            os.kill(importing, signal.SIGKILL)
        os._exit(0)
    for name in (*OF_KERNEL, *modules):
        importlib.import_module(name)
    os.kill(guard, signal.SIGKILL)  # from here on, `serve` looks
    os.waitpid(guard, 0)
    if plots_with is None:
        del os.environ[BACKEND]
    os.dup2(1, 2)  # no longer to where the grader reads why an import failed
    if os.fork() == 0:  # libraries end their threads before a fork, and start them again when they compute
        os._exit(0)
    os.wait()
    gc.freeze()  # what is imported stays, in each kernel
    command = serve(requests, grader, float(idle_s))
    sys.argv = [sys.modules["ipykernel_launcher"].__file__, *command]
    sys.modules["ipykernel.kernelapp"].launch_new_instance()


def serve(requests: socket.socket, grader: int, idle_s: float) -> list[str]:
    """Fork a kernel for each request; returns in the kernels alone, with the arguments of their command.

    Whenever so many seconds have gone by without a request, it looks whether a kernel runs, and ends if none does:
    whoever grades may be a server that goes on for weeks.
    """
    while True:
        ready, _, _ = select.select([requests, grader], [], [], idle_s)
        if not ready:
            # bubblewrap's own process and this one
            if sum(name.isdigit() for name in os.listdir("/proc")) == 2:
                os._exit(0)
            continue
        message, given = b"", []
        if grader not in ready:
            message, given, _, _ = socket.recv_fds(requests, 16, 4)
        if not message:
            os._exit(0)
        threads, why = len(os.listdir("/proc/self/task")), ""
        if threads > 1:
            why = f"the parent has {threads} threads after its imports"
        else:
            try:
                middle = os.fork()
            except OSError as error:  # there may be no more processes: just now
                why = f"no process could be forked: {error.strerror}"
            else:
                if middle == 0:
                    requests.close()
                    os.close(grader)
                    return _set_apart(*given)
                os.waitpid(middle, 0)
        if why:
            with contextlib.suppress(OSError):  # the grader waits no longer
                os.write(given[0], why.encode())
        for number in given:
            os.close(number)


def _set_apart(channel: int, grader: int, job: int, beside: int) -> list[str]:
    """In the middle process, and the first; returns in the kernel."""
    channel = socket.socket(fileno=channel)
    try:
        _need(libc.unshare(NEW_MOUNTS | NEW_PROCESSES), "new name spaces")
        if os.fork():
            os._exit(0)
        about = json.loads(os.pread(job, os.fstat(job).st_size, 0))
        proc = file_system(about, beside)
        give_rights_away(proc)
        for number in (job, beside, proc):
            os.close(number)
        _need(libc.prctl(DUMPABLE, 0, 0, 0, 0), "a process that no other looks into")
        kernel = os.fork()
    except BaseException as error:
        channel.send(str(error).encode()[:1000] or b"unknown")
        os._exit(1)
    if kernel == 0:
        try:
            return _kernel(channel, about)
        except Exception as error:
            channel.send(str(error).encode()[:1000])
            os._exit(1)
    try:
        watched = [os.pidfd_open(kernel), grader]
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # from here on, whoever ends is gone without being waited for
        channel.send(b"first")
        if channel.recv(16):  # the grader has got hold of this process; else it has given up
            channel.close()
            select.select(watched, [], [])
    finally:
        os._exit(0)


def _kernel(channel: socket.socket, about: dict) -> list[str]:
    """In the kernel: what it has of its own, and nothing of the parent's."""
    os.setsid()  # no longer of the parent's process group, which it could send signals to
    _need(libc.prctl(DUMPABLE, 1, 0, 0, 0), "a process as others are")
    for name, most in about["limits"].items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name.upper()}"), (most, most))
    os.chdir(about["work"])
    # What draws by itself has drawn its first number in the parent, and all kernels would go on with the same ones.
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()
    channel.send(b"kernel")
    channel.close()
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    if not about["command"]:  # a trial
        os._exit(0)
    return about["command"]


def file_system(about: dict, beside: int) -> int:
    """Replace every folder that can be written to, and /proc, by the kernel's own.

    Parameters
    ----------
    about : the job: where its folders are, how large they may become, and what is kept of those that are replaced
    beside : the files beside the notebook, an archive

    Returns
    -------
    /proc, open, where it can be written to
    """
    before = os.open("/tmp", os.O_RDONLY)
    kept = {place: os.open(place, os.O_PATH) for place in about["kept"]}
    mount("", "/", "", ALL_BELOW | PRIVATE)
    mount("tmpfs", about["sockets"], "tmpfs", NO_SETUID | NO_DEVICES, f"size={about['small']},mode=755")
    known = os.open(about["connection"], os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(known, about["known"].encode())
    os.close(known)
    mount("tmpfs", about["beside"], "tmpfs", NO_SETUID | NO_DEVICES, f"size={about['most']},mode=755")
    with open(beside, "rb", closefd=False) as file, tarfile.open(fileobj=file) as archive:
        # Python 3.11.4 and later ask for a filter; the archive is the grader's, of files and folders alone
        archive.extractall(about["beside"], **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    # of the file system itself and not of one of its places: it is read-only wherever it is bound
    mount("", about["beside"], "", REMOUNT | READ_ONLY | NO_SETUID | NO_DEVICES, f"size={about['most']}")
    for path in ("/tmp", "/dev/shm"):
        mount("tmpfs", path, "tmpfs", NO_SETUID | NO_DEVICES, f"size={about['scratch']},mode=755")
    for entry in os.scandir(before):  # what libraries have written at their import, as Keras does
        if entry.is_dir() and not any(place.startswith(f"/tmp/{entry.name}/") for place in kept):
            shutil.copytree(f"/proc/self/fd/{before}/{entry.name}", f"/tmp/{entry.name}", symlinks=True)
    os.close(before)
    for place, what in kept.items():
        os.makedirs(os.path.dirname(place), exist_ok=True)
        bind(f"/proc/self/fd/{what}", place)
        os.close(what)
    for name in os.listdir(about["beside"]):
        bind(f"{about['beside']}/{name}", f"{about['work']}/{name}")
    mount("devpts", "/dev/pts", "devpts", NO_SETUID | NO_PROGRAMS, "newinstance,ptmxmode=0666,mode=620")
    mount("proc", "/proc", "proc", NO_SETUID | NO_DEVICES | NO_PROGRAMS)
    proc = os.open("/proc", os.O_PATH)
    # Whoever grades as root has root's user in here, too, without root's rights: /proc/sys does not look at rights.
    mount("/proc", "/proc", "", BIND)
    mount("", "/proc", "", REMOUNT | BIND | READ_ONLY | NO_SETUID | NO_DEVICES | NO_PROGRAMS)
    for path in about["closed"]:
        mount(os.devnull, path, "", BIND)
    return proc


def give_rights_away(proc: int) -> None:
    """Make this process one of a user without rights, in a name space of users in which no other can be made.

    That no program gives it new ones, and which calls are refused, it has from bubblewrap, as its parent has.

    proc : /proc, open, where it can be written to
    """
    user, group = os.getuid(), os.getgid()
    _need(libc.unshare(NEW_USERS | NEW_NETWORK | NEW_IPC), "a name space of users")
    for name, said in {
        "self/setgroups": "deny", "self/uid_map": f"1000 {user} 1", "self/gid_map": f"1000 {group} 1",
        "sys/user/max_user_namespaces": "0",
    }.items():  # fmt: skip
        number = os.open(name, os.O_WRONLY, dir_fd=proc)
        os.write(number, said.encode())
        os.close(number)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        fcntl.ioctl(own, SET_FLAGS, struct.pack("16sH22x", b"lo", UP_AND_RUNNING))
    with open(ALL_RIGHTS) as file:
        last = int(file.read())
    for right in range(last + 1):
        _need(libc.prctl(DROP_BOUND, right, 0, 0, 0), "to be without rights")
    _need(libc.capset(struct.pack("Ii", CAPABILITIES, 0), bytes(24)), "to give rights away")


def bind(source: str, place: str) -> None:
    """Show a file or a folder, and what is mounted below it, at a new place."""
    os.mkdir(place) if os.path.isdir(source) else os.close(os.open(place, os.O_CREAT))
    mount(source, place, "", BIND | ALL_BELOW)


def mount(source: str, place: str, kind: str, flags: int, settings: str = "") -> None:
    """The system's call.

    Raises
    ------
    OSError : it is not allowed.
    """
    given = source.encode(), place.encode(), kind.encode(), ctypes.c_ulong(flags), settings.encode()
    _need(libc.mount(*given), f"{kind or 'a change'} at {place}")


def _need(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    main()
