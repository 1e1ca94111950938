"""The sandbox of a kernel: what it sees, what it may use, how it ends, and what is said where there is none."""

import asyncio
import contextlib
import importlib.metadata
import json
import os
import resource
import signal
import socket
import stat
import struct
import subprocess
import sys
import xmlrpc

import psutil
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from traitlets import TraitError

from course_lib.grading.marking.apart import Apart
from course_lib.grading.outside.configured import check_sandbox
from course_lib.grading.outside.execute import ExecuteOutside
from course_lib.grading.sandbox import __main__ as command
from course_lib.grading.sandbox import calls, view, warm, watch
from course_lib.grading.sandbox.__main__ import main
from course_lib.grading.sandbox.calls import filter_of
from course_lib.grading.sandbox.provisioner import NAME, SandboxProvisioner, sandboxed
from course_lib.grading.sandbox.view import SandboxMissing, bubblewrap
from tests.support.sandbox import NEEDS_SANDBOX, SETTINGS, kernel, said, wait_for

pytestmark = NEEDS_SANDBOX
STARTS = {"cold": {}, "warm": {"warm": ["numpy"]}}  # test_warm_start.py says what a warm start is besides


@pytest.fixture(scope="module", params=STARTS.values(), ids=STARTS)
def start(request):
    """The settings that say how a kernel starts."""
    return request.param


@pytest.fixture(scope="module")
def inside(tmp_path_factory, start):
    """The client of a kernel that starts beside a notebook, data, and a link that leads out."""
    folder = tmp_path_factory.mktemp("handed-in")
    (folder / "hw.ipynb").write_text("hidden tests")
    (folder / "data.csv").write_text("1,2")
    (folder / "link.csv").symlink_to("/etc/hostname")
    os.environ["COURSE_OF_A_TEST"] = "secret"
    with kernel(folder, **start) as (_, client):
        yield client
    del os.environ["COURSE_OF_A_TEST"]


def test_of_its_folder_it_sees_data_alone_and_may_only_read_it(inside):
    code = "import os\ntry:\n    open('data.csv', 'a')\n    could = True\nexcept OSError:\n    could = False\n"
    assert said(inside, code + "[os.listdir(), open('data.csv').read(), could]") == [["data.csv"], "1,2", False]


def test_no_setting_of_the_machine_and_no_memory_of_another_process_can_be_written(inside):
    code = """
import os
found = []
for folder, _, names in os.walk("/proc/sys"):
    found += [folder + "/" + name for name in names]
places = found + ["/proc/1/mem", "/proc/self/mem", "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity"]
written = []
for place in places:
    try:
        os.close(os.open(place, os.O_WRONLY))
        written.append(place)
    except OSError:
        pass
[len(found) > 100, written]
"""
    assert said(inside, code) == [True, []]


def test_what_root_alone_may_read_of_the_system_nobody_reads(inside):
    closed = [
        entry.path for entry in os.scandir("/proc") if stat.S_ISREG(mode := entry.stat().st_mode) and not mode & 0o004
    ]  # fmt: skip
    code = f"""
found = []
for path in {closed}:
    try:
        found += [path] if open(path, "rb", buffering=0).read(1) else []
    except OSError:
        pass
found
"""
    assert len(closed) >= 3 and said(inside, code) == []


def test_of_the_machine_it_sees_the_system_and_python_alone(inside, tmp_path):
    home = os.path.expanduser("~")
    for path in (f"{home}/.bashrc", str(tmp_path), "/etc/passwd", "/var", "/srv"):
        assert said(inside, f"__import__('os').path.exists({path!r})") is False
    assert set(said(inside, "import os\nos.listdir('/')")) <= {
        "bin", "dev", "etc", "lib", "lib32", "lib64", "proc", "run", "sbin", "tmp", "usr", *sys.prefix.split("/"),
        *sys.base_prefix.split("/"), *__file__.split("/"),
    }  # fmt: skip


def test_only_scratch_may_be_written_to_and_its_size_is_limited(inside):
    code = """
import os, numpy, course_lib
found = []
libraries = [os.path.dirname(module.__file__) for module in (os, numpy, course_lib)]
libraries = [folder for folder in libraries if not folder.startswith("/tmp/")]  # there, it is scratch around the files
for folder in ["/", "/usr/lib", "/etc", "/dev", "/proc", *libraries, "/tmp", "/dev/shm", "/run/kernel", os.getcwd()]:
    try:
        open(folder + "/new", "w").close()
        found.append(folder)
    except OSError:
        pass
found
"""  # fmt: skip
    assert said(inside, code) == ["/tmp", "/dev/shm", "/run/kernel", "/tmp/work"]
    code = """
sizes = []
for folder in ["/tmp", "/dev/shm", "/run/kernel"]:
    with open(folder + "/large", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(2**18))
        except OSError:
            sizes.append(file.tell())
    __import__("os").unlink(folder + "/large")
sizes
"""
    assert all(0 < size <= SETTINGS["scratch"] for size in said(inside, code))


def test_no_other_name_of_a_folder_shows_what_is_closed(inside):
    code = """
import os
closed = ("scipy", "torch", "tensorflow", "nbgrader")
walk = (place for place in os.walk("/") if not place[0].startswith("/proc"))
[place[0] for place in walk if os.path.basename(place[0]) in closed and "__init__.py" in place[2]]
"""
    assert said(inside, code) == []


def test_it_imports_numpy_and_the_checks_and_no_other_library_of_the_task(inside):
    code = """
found = []
for name in "numpy course_lib.grading course_lib.numpy course_lib.models torch scipy nbgrader pip".split():
    try:
        __import__(name)
        found.append(name)
    except ImportError:
        pass
found
"""
    assert said(inside, code) == ["numpy", "course_lib.grading"]


def test_it_knows_little_of_who_grades(inside):
    code = "import os, getpass\n[sorted(os.environ), os.getuid(), os.getpid() < 100, os.getppid(), getpass.getuser()]"
    names, user, *others = said(inside, code)
    assert "COURSE_OF_A_TEST" not in names and "PYTHONPATH" in names and user == 1000
    assert others == [True, 1, "student"]


def test_tensorflow_computes_without_onednn_unless_who_grades_says_otherwise(inside):
    assert said(inside, "import os\nos.environ['TF_ENABLE_ONEDNN_OPTS']") == "0"
    given = SandboxProvisioner()._environment({"TF_ENABLE_ONEDNN_OPTS": "1"})
    assert given[given.index("TF_ENABLE_ONEDNN_OPTS") + 1] == "1"


def test_the_process_around_it_has_no_variable_of_who_grades(inside):
    code = """
try:
    found = open("/proc/1/environ", "rb").read()
except OSError:
    found = b""
b"COURSE_OF_A_TEST" in found
"""
    assert said(inside, code) is False


def test_it_has_no_network(inside):
    code = """
import socket
found = [name for _, name in socket.if_nameindex()]
try:
    socket.create_connection(("1.1.1.1", 53), timeout=2)
    found.append("connected")
except OSError as error:
    pass
found
"""
    assert said(inside, code) == ["lo"]


def test_it_cannot_gain_rights(inside):
    code = """
import ctypes
status = open("/proc/self/status").read()
rights = [line.split()[1].strip("0") for line in status.splitlines() if line.startswith("Cap")]
unshared = ctypes.CDLL(None).unshare(0x10000000)
[rights, "NoNewPrivs:\\t1" in status, unshared]
"""
    assert said(inside, code) == [[""] * 5, True, -1]


def test_an_interrupt_reaches_the_code_and_nothing_else(start, tmp_path):
    with kernel(tmp_path, **start) as (manager, client):
        # After an error a kernel drops what it was sent meanwhile, unless it is told not to.
        number = client.execute("print('begun', flush=True)\nwhile True:\n    pass", stop_on_error=False)
        while client.get_iopub_msg(timeout=60)["content"].get("text") != "begun\n":
            pass
        manager.interrupt_kernel()
        while (reply := client.get_shell_msg(timeout=60))["parent_header"]["msg_id"] != number:
            pass
        assert reply["content"]["ename"] == "KeyboardInterrupt" and manager.is_alive()
        assert said(client, "x = 3\nx") == 3
        manager.restart_kernel(now=True)
        client.stop_channels()
        again = manager.client()
        again.start_channels()
        again.wait_for_ready(timeout=120)
        assert said(again, "'x' in globals()") is False
        again.stop_channels()


def test_all_that_it_started_ends_with_it(start, tmp_path):
    with kernel(tmp_path, **start) as (manager, client):
        said(
            client,
            "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600) if os.fork() == 0 else 0\n1",
        )
        family = psutil.Process(manager.provisioner.pid).children(recursive=True)
        assert wait_for(lambda: len(psutil.Process(manager.provisioner.pid).children(recursive=True)) >= 3)
        family = psutil.Process(manager.provisioner.pid).children(recursive=True)
    assert wait_for(lambda: not any(each.is_running() for each in family))
    names = [each.name() for each in psutil.Process().children() if each.status() == psutil.STATUS_ZOMBIE]
    assert "bwrap" not in names, "one that has ended was not waited for"


def test_the_process_that_is_ended_is_the_one_with_which_all_others_end(start, tmp_path):
    with kernel(tmp_path, **start) as (manager, _):
        (inside_, *_), first = psutil.Process(manager.provisioner.pid).children(), manager.provisioner.pid
        assert inside_.pid == manager.provisioner.kernel_pid
        status = open(f"/proc/{first}/status").read()
        assert next(line for line in status.splitlines() if line.startswith("NSpid")).split()[-1] == "1"


def test_what_cannot_be_measured_is_ended(monkeypatch):
    told = []

    def fails(*given):
        raise PermissionError("not yours")

    monkeypatch.setattr(watch, "too_much", fails)
    watch._look(psutil.Process(), watch.Limits(1, 1, 5.0), told.append)
    assert told == ["what it uses could not be measured (PermissionError)"]


def test_what_holds_memory_that_nobody_shows_is_refused(inside):
    code = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
found = []
intel = os.uname().machine == "x86_64"
calls = {
    "memfd_create": lambda: libc.memfd_create(b"x", 0),
    "shmget": lambda: libc.shmget(0, ctypes.c_size_t(4096), 0o1600),
    "semget": lambda: libc.semget(0, 1, 0o1600),
    "msgget": lambda: libc.msgget(0, 0o1600),
    "mq_open": lambda: libc.syscall(240 if intel else 180, b"x", 0o102, 0o600, None),
    "add_key": lambda: libc.syscall(248 if intel else 217, b"user", b"kept", b"for the next", ctypes.c_size_t(12), -3),
    "ptrace": lambda: libc.ptrace(16, 1, None, None),
    "process_vm_readv": lambda: libc.process_vm_readv(1, None, 0, None, 0, 0),
    "process_vm_writev": lambda: libc.process_vm_writev(1, None, 0, None, 0, 0),
    "kcmp": lambda: libc.syscall(312 if intel else 272, 1, 2, 0, 0, 0),
    "pidfd_getfd": lambda: libc.syscall(438, os.pidfd_open(1), 0, 0),
    "io_setup": lambda: libc.syscall(206 if intel else 0, 1, ctypes.byref(ctypes.c_ulong())),
    "seccomp": lambda: libc.syscall(317 if intel else 277, 1, 0, None),
    "a filter of calls": lambda: libc.prctl(22, 2, None),
    "a filter of a socket": lambda: libc.setsockopt(libc.socket(1, 1, 0), 1, 26, ctypes.byref(program), 16),
    "memory that is shared without a file": lambda: libc.mmap(None, ctypes.c_size_t(4096), 3, 0x21, -1, 0),
    "a lease": lambda: libc.fcntl(opened, 1024, 1),
    "news of a folder": lambda: libc.fcntl(os.open("/usr/lib", os.O_RDONLY), 1026, 4),
    "a pair of sockets of another kind": lambda: libc.socketpair(40, 1, 0, (ctypes.c_int * 2)()),
    "io_uring_setup": lambda: libc.syscall(425, 1, ctypes.create_string_buffer(120)),
    "inotify_init": lambda: libc.inotify_init(),
    "inotify_init1": lambda: libc.inotify_init1(0),
    "fanotify_init": lambda: libc.fanotify_init(0x200, 0),
    "landlock_create_ruleset": lambda: libc.syscall(444, None, ctypes.c_size_t(0), 1),
    "bpf": lambda: libc.syscall(321 if intel else 280, 0, None, 0),
    "vmsplice": lambda: libc.vmsplice(os.pipe()[1], None, 0, 0),
    "symlink": lambda: libc.symlink(b"/", b"/tmp/link"),
    "symlinkat": lambda: libc.symlinkat(b"/", -100, b"/tmp/link"),
    "a socket of another kind": lambda: libc.socket(40, 1, 0),
    "a larger buffer to send": lambda: libc.setsockopt(libc.socket(1, 1, 0), 1, 7, ctypes.byref(large), 4),
    "a larger buffer to receive": lambda: libc.setsockopt(libc.socket(1, 1, 0), 1, 8, ctypes.byref(large), 4),
}
large, program, opened = ctypes.c_int(2**22), ctypes.create_string_buffer(16), os.open(os.__file__, os.O_RDONLY)
for name, call in calls.items():
    if [call(), errno.errorcode.get(ctypes.get_errno())] != [-1, "ENOSYS"]:
        found.append(name)
kinds = [libc.socket(kind, 1, 0) >= 0 for kind in (1, 2)]
others = libc.setsockopt(libc.socket(2, 1, 0), 1, 2, ctypes.byref(large), 4), libc.fcntl(opened, 3), libc.prctl(3)
mine = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), mmap.mmap(os.open("/tmp/x", os.O_RDWR), 1)
[len(calls), found, kinds, [one >= 0 for one in others]]
"""
    code = 'import mmap\nopen("/tmp/x", "w").write("x")\n' + code.strip()
    assert said(inside, code) == [31, [], [True, True], [True] * 3]


def test_memory_is_shared_by_files_alone_which_count(inside):
    code = """
import mmap, os
could = []
for name in ("/dev/zero", "/dev/full", "/dev/null", "/dev/shm/one"):
    try:
        could += [name] if mmap.mmap(os.open(name, os.O_RDWR | os.O_CREAT), 4096) else []
    except (OSError, ValueError) as error:
        pass
    if name == "/dev/null":
        open("/dev/shm/one", "wb").write(bytes(4096))
could
"""
    assert said(inside, code) == ["/dev/shm/one"]


def test_nobody_waits_for_a_lease_on_a_file_that_others_read(inside):
    code = """
import fcntl, glob, os, signal
signal.signal(signal.SIGIO, signal.SIG_IGN)
got = 0
for place in glob.glob(os.path.dirname(os.__file__) + "/*.py"):
    number = os.open(place, os.O_RDONLY)
    try:
        fcntl.fcntl(number, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        got += 1
    except OSError:
        pass
    os.close(number)
got
"""
    assert said(inside, code) == 0


def allows(program: bytes, machine: int, number: int, *arguments: int) -> bool:
    """What a filter says of a call."""
    steps = list(struct.iter_unpack("=HBBI", program))
    given = struct.pack("=iIQ6Q", number, machine, 0, *arguments, *[0] * (6 - len(arguments)))
    place = held = 0
    while True:
        code, yes, no, value = steps[place]
        if code == 0x06:
            return value == 0x7FFF0000
        if code == 0x20:
            (held,) = struct.unpack_from("=I", given, value)
        elif code == 0x54:
            held &= value
        else:
            place += yes if {0x15: held == value, 0x35: held >= value}[code] else no
        place += 1


@pytest.mark.parametrize(("machine", "place"), [("x86_64", 0), ("aarch64", 1)])
def test_the_filter_refuses_these_calls_and_no_others(machine, place):
    program, audit = filter_of(machine), calls.MACHINES[machine]
    refused = {numbers[place] for numbers in calls.CALLS}
    mmap, fcntl, prctl, setsockopt, socket_, pair = (rule.numbers[place] for rule in calls.RULES)
    for number in range(470):
        assert allows(program, audit, number, 2, 2, 2, 2) is (number not in refused), number
        assert not allows(program, audit + 1, number, 2, 2, 2, 2)
    assert not allows(program, audit, 0x40000000) and not allows(program, audit, 0x40000000 + mmap, 0, 4096, 3, 2)
    assert [allows(program, audit, mmap, 0, 4096, 3, how) for how in (0x01, 0x02, 0x21, 0x22, 0x4021)] == [
        True, True, False, True, False,
    ]  # fmt: skip
    assert [allows(program, audit, fcntl, 3, what) for what in (3, 1024, 1025, 1026)] == [True, False, True, False]
    assert [allows(program, audit, prctl, what) for what in (4, 22, 38)] == [True, False, True]
    options = [(1, 2), (1, 7), (1, 8), (1, 26), (1, 50), (1, 51), (1, 52), (41, 26), (6, 7)]
    assert [allows(program, audit, setsockopt, 3, *option) for option in options] == [True, *[False] * 6, True, True]
    for number in (socket_, pair):
        families = [allows(program, audit, number, family, 1) for family in (1, 2, 10, 16, 17, 40)]
        assert families == [True] * 4 + [False] * 2
    assert filter_of("unknown") == b""


HOLDING = """
import os, time, numpy
def hold(x):
    time.sleep(600)
for _ in range({processes}):
    os.fork() or hold(numpy.ones({numbers}))
"""
TOO_MUCH = {
    "processes": (HOLDING.format(processes=40, numbers=1), {}, "more than 20 processes"),
    "memory": (HOLDING.format(processes=9, numbers=2**23), {}, "GiB of memory"),
    "memory whose first thread has ended": (
        "import ctypes, os, threading, time\ndef hold():\n    kept = b'x' * 2**26\n    time.sleep(600)\n"
        "for _ in range(9):\n    if os.fork() == 0:\n        threading.Thread(target=hold).start()\n"
        "        ctypes.CDLL(None).syscall(60 if os.uname().machine == 'x86_64' else 93, 0)\ntime.sleep(600)",
        {},
        "GiB of memory",
    ),
    "memory that is handed on and on": (
        "import ctypes, os, time, numpy\nlibc = ctypes.PyDLL(None)\nfor _ in range(12):\n    if os.fork() == 0:\n"
        "        kept = numpy.ones(2**24)\n        while True:\n            libc.fork() and libc._exit(0)\n"
        "time.sleep(600)",
        {},
        "GiB of memory",
    ),
    "files": ("for n in range(10**9):\n    open(f'/tmp/{n}', 'w').close()", {}, "files"),
    "files of a kernel whose first thread has ended": (
        "import ctypes, os, threading\ndef write():\n    for n in range(10**9):\n"
        "        open(f'/tmp/{n}', 'w').close()\nthreading.Thread(target=write).start()\n"
        "ctypes.CDLL(None).syscall(60 if os.uname().machine == 'x86_64' else 93, 0)",
        {},
        "files",
    ),
    "files beside its sockets": ("for n in range(10**9):\n    open(f'/run/kernel/{n}', 'w').close()", {}, "files"),
    "page tables": (
        "import mmap, time\nwide = mmap.mmap(-1, 2**39, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ)\n"
        "for page in range(2**18):\n    wide[page * 2**21]\ntime.sleep(600)",
        {},
        "GiB of memory",
    ),
    "sockets": (
        "import os, socket, time\nall(os.fork() for _ in range(3))\n"
        "kept = [one for _ in range(400) for one in socket.socketpair()]\nfor one in kept:\n"
        "    one.setblocking(False)\n    while not time.sleep(0):\n        try:\n            one.send(bytes(2**16))\n"
        "        except BlockingIOError:\n            break\ntime.sleep(600)",
        {},
        "GiB of memory",
    ),
    "sockets of TCP": (
        "import socket, time\nlistening = socket.create_server(('127.0.0.1', 0), backlog=200)\nkept = []\n"
        "for _ in range(150):\n    kept += [socket.create_connection(listening.getsockname()), listening.accept()[0]]\n"
        "while True:\n    for one in kept:\n        one.setblocking(False)\n        try:\n"
        "            one.send(bytes(2**20))\n        except BlockingIOError:\n            time.sleep(0.001)",
        {},
        "GiB of memory",
    ),
    "mappings": (
        "import mmap, os, time\nall(os.fork() for _ in range(3))\nhow = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS\n"
        "kept = [mmap.mmap(-1, 4096, how, 1 + 2 * (n % 2)) for n in range(40_000)]\ntime.sleep(600)",
        {},
        "mappings of memory",
    ),
    "memory beside a name": (
        "import mmap, time\nfile = open('/tmp/a\\x0cb', 'w+b')\nfile.write(b'x')\nfile.flush()\n"
        "kept = mmap.mmap(file.fileno(), 1)\ntime.sleep(2)\n" + HOLDING.format(processes=9, numbers=2**23),
        {},
        "GiB of memory",
    ),
    "threads": (
        "import threading, time\nthreading.stack_size(2**16)\nfor n in range(100):\n"
        "    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()",
        {"processes": 20},
        "more than 80 threads",
    ),
    "time": ("while True:\n    pass", {"seconds": 3.0}, "it ran for 3 seconds"),
}


@pytest.mark.parametrize(("code", "settings", "why"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_whoever_takes_too_much_is_ended_with_a_reason(start, tmp_path, code, settings, why):
    with kernel(tmp_path, **settings, **start) as (manager, client):
        client.execute(code)
        assert wait_for(lambda: manager.provisioner.ended, 60) and why in manager.provisioner.ended
        assert wait_for(lambda: not manager.is_alive())


def test_memory_without_a_file_counts_where_its_pages_are_let_go(monkeypatch):
    code = """
import mmap, sys, time
kept = mmap.mmap(-1, 2**27)
kept.write(bytes(2**27))
kept.madvise(mmap.MADV_DONTNEED)
print(flush=True)
time.sleep(600)
"""
    monkeypatch.setattr(watch, "in_sockets", lambda process: 0)
    with subprocess.Popen(["sh", "-c", '"$0" -c "$1"; :', sys.executable, code], stdout=subprocess.PIPE) as around:
        family = psutil.Process(around.pid)
        try:
            around.stdout.readline()
            assert watch.too_much(family, "/nowhere", watch.Limits(2**28, 5, 1.0)) == ""
            assert "GiB of memory" in watch.too_much(family, "/nowhere", watch.Limits(2**27, 5, 1.0))
            monkeypatch.setattr(os.path, "exists", lambda place: False)  # a Linux that does not say who is whose child
            assert list(watch.descendants(family.pid)) == [each.pid for each in family.children()]
        finally:
            for each in family.children():
                each.kill()


def test_each_process_is_measured_as_soon_as_it_is_known(monkeypatch):
    steps = []

    def known(first):
        for number in (1, 2):
            steps.append(f"known {number}")
            yield number

    monkeypatch.setattr(watch, "descendants", known)
    monkeypatch.setattr(watch, "_said", lambda number, file: steps.append(f"measured {number}") or {})
    monkeypatch.setattr(watch, "shared", lambda family: (0, 0))
    monkeypatch.setattr(watch, "in_sockets", lambda process: 0)
    assert watch.too_much(psutil.Process(), "/nowhere", watch.Limits(2**30, 5, 1.0)) == ""
    assert steps == ["known 1", "measured 1", "known 2", "measured 2"]


def test_memory_in_swap_counts(monkeypatch):
    said = {"status": {b"Threads": 1, b"VmRSS": 2**10, b"VmPTE": 8, b"VmSwap": 2**20}, "smaps_rollup": {b"Pss": 2**10}}
    said["smaps_rollup"][b"SwapPss"] = 2**20
    monkeypatch.setattr(watch, "_said", lambda number, file: said[file])
    monkeypatch.setattr(watch, "descendants", lambda first: iter([first]))
    monkeypatch.setattr(watch, "in_sockets", lambda process: 0)
    limits = watch.Limits(2**30, 5, 1.0)
    assert watch.too_much(psutil.Process(), "/nowhere", limits) == "it used more than 1 GiB of memory"
    said["smaps_rollup"][b"SwapPss"] = 0
    assert watch.too_much(psutil.Process(), "/nowhere", limits) == ""


def test_connections_are_looked_through_where_there_can_be_one(monkeypatch):
    """Which takes long on a large machine; one socket waits in each kernel for what is printed."""
    code = """
import socket
waits = socket.create_server(("127.0.0.1", 0))
print("one", flush=True)
input()
ends = socket.create_connection(waits.getsockname()), waits.accept()
print("two", flush=True)
input()
"""
    apart = [bubblewrap(), "--unshare-net", "--dev-bind", "/", "/", sys.executable, "-c", code]
    looked, read = [], watch.Path.read_bytes
    monkeypatch.setattr(watch.Path, "read_bytes", lambda path: looked.append(path.name) or read(path))
    with subprocess.Popen(apart, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as outer:
        for said in ("one", "two"):
            assert outer.stdout.readline().strip() == said
            looked.clear()
            assert watch.in_sockets(psutil.Process(outer.pid).children(recursive=True)[-1]) > 0
            assert ("tcp" in looked) == (said == "two"), said
            print(file=outer.stdin, flush=True)


def test_where_the_machine_has_no_more_memory_the_system_ends_it_and_not_who_grades(start, tmp_path):
    with kernel(tmp_path, **start) as (manager, client):
        code = """
import os
told, tell = os.pipe()
if os.fork() == 0:
    try:
        open("/proc/self/oom_score_adj", "w").write("0")
    except OSError:
        pass
    os.write(tell, open("/proc/self/oom_score_adj", "rb").read())
    os._exit(0)
os.read(told, 10).decode()
"""
        assert said(client, code) == "1000\n"
        assert open("/proc/self/oom_score_adj").read() != "1000\n"


# The way of a kernel's messages, past what sends them one by one
ENDLESS = """
import time, zmq
sends = get_ipython().kernel.iopub_thread.socket
part = 0
while True:
    part += 1  # a new one now and then: the first is lost where the client has not said yet that it wants any
    sends.send(bytes(2**22), zmq.SNDMORE if part % 100 else 0)
    time.sleep(0.02)
"""


def test_a_message_without_an_end_does_not_fill_the_memory_of_who_grades(start, tmp_path, monkeypatch):
    monkeypatch.setattr(watch, "SENT", 2**27)
    grader = psutil.Process()
    before = grader.memory_info().rss
    with kernel(tmp_path, memory=2**31, **start) as (manager, client):
        client.execute(ENDLESS)
        assert wait_for(lambda: manager.provisioner.ended, 60)
        assert "the grader's memory grew by more than 0.12 GiB" in manager.provisioner.ended
        assert grader.memory_info().rss - before < 2**29


def test_who_connects_is_not_led_to_a_socket_elsewhere(start, tmp_path):
    (tmp_path / "handed-in").mkdir()
    with socket.socket(socket.AF_UNIX) as elsewhere, kernel(tmp_path / "handed-in", **start) as (manager, client):
        elsewhere.bind(str(tmp_path / "elsewhere"))
        elsewhere.listen()
        code = f"""
import os
try:
    os.symlink({str(tmp_path / "elsewhere")!r}, "/run/kernel/s-99")
except OSError:
    pass
os.listdir("/run/kernel")
"""
        assert len(said(client, code)) >= 5
        with socket.socket(socket.AF_UNIX) as connects, pytest.raises(OSError):
            connects.connect(f"{manager.ip}-99")


def test_what_a_kernel_starts_stands_behind_all_others_and_the_kernel_does_not(inside):
    code = """
import os, subprocess, time
other = subprocess.Popen(["sleep", "60"], start_new_session=True)
deadline = time.monotonic() + 30
while os.getpriority(os.PRIO_PROCESS, other.pid) < 19 and time.monotonic() < deadline:
    time.sleep(0.1)
found = os.getpriority(os.PRIO_PROCESS, other.pid), os.getpriority(os.PRIO_PROCESS, 0)
other.kill()
[*found, other.wait() < 0]
"""
    behind, kernels, _ = said(inside, code)
    assert behind == 19 and kernels == os.getpriority(os.PRIO_PROCESS, 0)


def test_nothing_that_a_kernel_starts_gets_out_of_its_place_behind_others(start, tmp_path):
    code = """
import os, subprocess, threading, time
beside = subprocess.Popen(["sleep", "600"])
if os.fork() == 0:
    for _ in range(40):  # before it is put behind, and after
        threading.Thread(target=time.sleep, args=(600,)).start()
        time.sleep(0.05)
    os.setsid()  # a share of its own
    time.sleep(600)
True
"""
    with kernel(tmp_path, **start) as (manager, client):
        assert said(client, code)
        of_kernel, *started = watch.descendants(manager.provisioner.pid)
        assert of_kernel == manager.provisioner.kernel_pid and len(started) == 2
        alone = max(started)

        def threads():
            return [int(one) for one in os.listdir(f"/proc/{alone}/task")]

        assert wait_for(lambda: os.getsid(alone) != os.getsid(of_kernel))
        assert wait_for(lambda: all(os.getpriority(os.PRIO_PROCESS, one) == 19 for one in threads()))
        assert len(threads()) == 41 and os.getpriority(os.PRIO_PROCESS, of_kernel) == os.getpriority(os.PRIO_PROCESS, 0)
        with contextlib.suppress(FileNotFoundError):  # not every Linux shares its processors by sessions
            assert wait_for(lambda: open(f"/proc/{alone}/autogroup").read().split()[-1:] in ([], ["19"]))
            assert open(f"/proc/{of_kernel}/autogroup").read().split()[-1:] in ([], ["0"])


def test_a_start_that_fails_late_leaves_no_process(tmp_path, monkeypatch):
    begun = []

    async def fails(self, first, around):
        begun.append(psutil.Process(first))
        raise RuntimeError("no kernel was found")

    monkeypatch.setattr(SandboxProvisioner, "_kernel", fails)
    with pytest.raises(RuntimeError, match="no kernel was found"), kernel(tmp_path):
        pass
    assert wait_for(lambda: not begun[0].is_running() or begun[0].status() == psutil.STATUS_ZOMBIE)


def test_an_interrupt_does_not_reach_a_process_that_has_got_its_number(start, tmp_path):
    with kernel(tmp_path, **start) as (manager, _), subprocess.Popen(["sleep", "600"]) as other:
        try:
            manager.provisioner.process.kill()
            assert wait_for(lambda: not manager.is_alive())
            manager.provisioner.kernel_pid = other.pid  # as the system might number it
            asyncio.run(manager.provisioner.send_signal(signal.SIGINT))
            assert manager.provisioner._kernel_itself() is None
            with contextlib.suppress(subprocess.TimeoutExpired):
                other.wait(1)
            assert other.poll() is None
        finally:
            other.kill()


def test_one_process_gets_no_more_memory_than_all_may_have(start, tmp_path):
    with kernel(tmp_path, **start) as (_, client):
        code = "import numpy\ntry:\n    numpy.ones(2**28)\n    got = True\nexcept MemoryError:\n    got = False\ngot"
        assert said(client, code) is False


def limit_in_a_kernel(folder, start):
    """Bytes that one may write into a file, whose settings say more than its grader may."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**29, 2**29))
    with kernel(folder, scratch=2**30, **start) as (_, client):
        return said(client, "import resource\nresource.getrlimit(resource.RLIMIT_FSIZE)")


def test_a_kernel_that_may_have_more_than_its_grader_has_as_much(start, tmp_path):
    assert Apart(120, limit_in_a_kernel, tmp_path, start).result() == [2**29] * 2


def test_a_folder_that_is_hidden_stays_empty_below_one_that_is_seen(start, tmp_path):
    with kernel(tmp_path, hidden=[os.path.dirname(xmlrpc.__file__), "/nowhere"], **start) as (_, client):
        assert said(client, f"import os\nos.listdir({os.path.dirname(xmlrpc.__file__)!r})") == []


def test_a_package_that_is_not_installed_is_named():
    with pytest.raises(ValueError, match="'no-such-package', which is not installed here"):
        view._only(("no-such-package",), view._folders())


def test_a_package_that_is_installed_elsewhere_is_named(tmp_path):
    with pytest.raises(ValueError, match="'numpy', which is installed outside of"):
        view._only(("numpy",), (str(tmp_path),))


def test_what_a_package_has_is_what_it_lists():
    """As `importlib.metadata` reads the list, which takes a second for PyTorch."""
    for name in ("numpy", "ipykernel", "matplotlib", "setuptools", "torch", "tensorflow", "six"):
        distribution = importlib.metadata.distribution(name)
        firsts = {file.parts[0] for file in distribution.files or []} - {".."}
        listed = {str(distribution.locate_file(first)) for first in firsts}
        assert set(view._files_of(name)) == {path for path in listed if os.path.exists(path)} != set()


def test_a_list_of_files_never_shows_the_folder_of_all_packages(tmp_path, monkeypatch):
    (tmp_path / "odd-1.dist-info").mkdir()
    (tmp_path / "odd-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1\n")
    listed = ['"odd,er.py",,', "/etc/passwd,,", "./odd.py,,", "../../bin/odd,,", ""]
    (tmp_path / "odd-1.dist-info" / "RECORD").write_text("\n".join(listed))
    (tmp_path / "odd,er.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert list(view._files_of("odd")) == [str(tmp_path / "odd,er.py")]


def test_the_library_may_be_installed_among_the_packages(tmp_path, monkeypatch):
    monkeypatch.setattr(view, "_folders", lambda: (str(tmp_path),))
    monkeypatch.setattr(view, "_only", lambda packages, folders: ("--tmpfs", folders[0]))
    monkeypatch.setattr(view.course_lib, "__file__", str(tmp_path / "course_lib" / "__init__.py"))
    (tmp_path / "course_lib").mkdir()
    (tmp_path / "course_lib" / "__init__.py").touch()
    given = view.arguments(tmp_path / "work", 1, ["numpy"])
    assert given.index(str(tmp_path)) < given.index(f"{tmp_path}/course_lib/__init__.py")
    assert given.index(f"{tmp_path}/course_lib/__init__.py") < len(given) - given[::-1].index(str(tmp_path)) - 1


def test_one_limit_leaves_the_others_and_a_slip_in_its_name_is_said():
    settings = ExecuteOutside(assignments={"hw": ["numpy"]}, limits={"memory": 5}).sandbox_settings("hw", "/a")
    assert (settings["memory"], settings["processes"], settings["scratch"]) == (5, 64, 2**27)
    with pytest.raises(TraitError, match="limits has no mem; it has memory, processes, scratch"):
        ExecuteOutside(limits={"mem": 5})


def test_the_installed_provisioner_is_the_one_of_the_entry_point():
    spec = sandboxed(KernelSpecManager().get_kernel_spec("python3"), memory=5)
    assert spec.metadata["kernel_provisioner"] == {"provisioner_name": NAME, "config": {"memory": 5}}
    assert "kernel_provisioner" not in KernelSpecManager().get_kernel_spec("python3").metadata


def test_where_there_is_none_it_is_said_how_to_get_it(monkeypatch, tmp_path):
    view._tried.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    try:
        with pytest.raises(SandboxMissing, match="apt install bubblewrap"):
            bubblewrap()
        settings = ExecuteOutside(assignments={"hw": ["numpy"]})
        with pytest.raises(SandboxMissing, match="(?s)apt install bubblewrap.*ExecuteOutside.sandbox = 'off'"):
            check_sandbox(settings, "hw")
        settings.sandbox = "off"
        check_sandbox(settings, "hw")
        program = tmp_path / "bwrap"
        program.write_text("#!/bin/sh\necho No permissions to create new namespace >&2\nexit 1\n")
        program.chmod(0o755)
        view._tried.cache_clear()
        with pytest.raises(SandboxMissing, match="No permissions to create new namespace.*user name spaces"):
            bubblewrap()
        program.write_text("#!/bin/sh\necho bwrap: Unknown option --disable-userns >&2\nexit 1\n")
        view._tried.cache_clear()
        with pytest.raises(SandboxMissing, match="too old here .*0.8 or later is needed"):
            bubblewrap()
    finally:
        view._tried.cache_clear()


def test_the_command_says_whether_it_works_and_installs_a_kernel(tmp_path, capsys, monkeypatch):
    assert main(["install", "--packages", "numpy", "--prefix", str(tmp_path)]) == 0
    installed = json.loads((tmp_path / "share/jupyter/kernels/python3-sandbox/kernel.json").read_text())
    config = {"provisioner_name": NAME, "config": {"packages": ["numpy"]}}
    assert installed["metadata"]["kernel_provisioner"] == config and "works here" in capsys.readouterr().out
    monkeypatch.setattr(view, "_tried", lambda: "There is none.")
    assert main([]) == 1 and capsys.readouterr().err == "There is none.\n"
    assert main(["--packages", "no-such-package"]) == 1


def test_the_command_starts_a_kernel_and_says_what_is_weaker_here(capsys, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main([]) == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert "A kernel started in it and computed" in first
    assert others == ["Kernels can start warm, too (c.ExecuteOutside.warm)."] and not warm._parents
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(command, "filter_of", lambda: b"")
    monkeypatch.setattr(command.platform, "machine", lambda: "riscv64")
    monkeypatch.setattr(warm, "ISOLATED", tuple(part for part in warm.ISOLATED if part != "CAP_SYS_ADMIN"))
    assert main([]) == 0
    _, cold, unknown, root = capsys.readouterr().out.splitlines()
    assert cold.startswith("Kernels cannot start warm, and c.ExecuteOutside.warm has no effect: ")
    assert unknown.startswith("For riscv64, the sandbox does not know the numbers of the system's calls")
    assert root.startswith("You are root. Grade as another user")


def test_the_command_says_where_no_kernel_works_in_a_sandbox_that_does(capsys, monkeypatch):
    monkeypatch.setattr(command, "LIMITS", command.LIMITS | {"memory": 2**25})
    assert main([]) == 1
    assert capsys.readouterr().err.startswith("bubblewrap works here, and no kernel does in it: ")
