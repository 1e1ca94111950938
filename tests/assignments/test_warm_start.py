"""The warm start of a kernel: what is there already, and that nothing else is; who lives how long; what if it fails.

What a sandbox holds, whichever way its kernel starts, stands in test_sandbox.py.
"""

import asyncio
import contextlib
import errno
import importlib.util
import json
import logging
import os
import signal
import socket
import time

import psutil
import pytest
from jupyter_client.manager import KernelManager

from course_lib.grading.marking.apart import Apart
from course_lib.grading.outside.execute import SandboxedSpecs
from course_lib.grading.sandbox import provisioner, view, warm
from course_lib.grading.sandbox.parent import serve
from course_lib.grading.sandbox.provisioner import SandboxProvisioner
from tests.support.sandbox import NEEDS_SANDBOX, SETTINGS, kernel, said, wait_for

pytestmark = NEEDS_SANDBOX
NUMPY = {"warm": ["numpy"]}
LARGE = {"memory": 4 * 2**30, "processes": 40, "scratch": 2**27}
TAUGHT = {"torch": ["torch", "torch._dynamo"], "tensorflow": ["tensorflow"]}  # framework -> modules
TRAINS = {
    "torch": """
model = torch.nn.Linear(3, 1)
adam, before = torch.optim.Adam(model.parameters()), model.weight.detach().clone()
model(torch.ones(4, 3)).square().sum().backward()
adam.step()
bool((model.weight != before).all())""",
    "tensorflow": """
model = tensorflow.keras.Sequential([tensorflow.keras.Input([3]), tensorflow.keras.layers.Dense(1)])
model.compile("adam", "mse")
before = model.get_weights()[0]
history = model.fit(tensorflow.ones([4, 3]), 7 * tensorflow.ones([4, 1]), verbose=0)
bool((model.get_weights()[0] != before).all())""",
}


def parents():
    """The parents of this process that can fork."""
    return [each for each in warm._parents.values() if isinstance(each, warm.Parent) and not each.is_gone]


def insides(parent):
    """The processes of a parent and of all kernels that were forked from it, bubblewrap's own among them."""
    return psutil.Process(parent.process.pid).children(recursive=True)


@pytest.fixture
def alone(monkeypatch):
    """Parents of this test alone, which end with it."""
    monkeypatch.setattr(warm, "_parents", {})
    provisioner._say_once.cache_clear()
    yield
    warm.end_parents()


# What is there, and what is not

SEEN = """
import os, resource, sys
status = open("/proc/self/status").read().splitlines()
kept = ("Cap", "NoNewPrivs", "Seccomp:", "Uid", "Gid", "SigIgn", "SigBlk")
rights = [line for line in status if line.startswith(kept)]
limits = [resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT")]
places = [line.split()[3:6] for line in open("/proc/self/mountinfo")]
writable = sorted({where for _, where, how in places if how.startswith("rw") and where[:5] not in ("/dev/", "/proc")})
opened = set()
for one in os.listdir("/proc/self/fd"):
    try:
        opened.add(os.readlink(f"/proc/self/fd/{one}").rstrip("]0123456789"))
    except FileNotFoundError:  # closed again
        pass
[sys.path, sys.argv, sys.flags[:], dict(os.environ), os.getcwd(), rights, limits, writable, sorted(opened)]
"""  # fmt: skip


def test_it_is_as_a_cold_one_would_be(tmp_path):
    files = "import os\nsorted(os.listdir('/tmp'))"  # more than the scratch where the course lies below /tmp
    with kernel(tmp_path) as (_, client):
        cold, beside = said(client, SEEN), said(client, files)
    with kernel(tmp_path, **NUMPY) as (_, client):
        assert said(client, "import sys\n'numpy' in sys.modules") is True
        forked = said(client, SEEN)
        assert said(client, "import os\n[os.getpid(), os.getpgid(0), os.getsid(0)]") == [2, 2, 2]
        assert said(client, files) == beside
    assert forked == cold and "/tmp" in forked[7] and forked[5]


@pytest.mark.parametrize("framework", TAUGHT)
def test_a_framework_is_imported_and_trains(tmp_path, framework):
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    with kernel(tmp_path, packages=[framework], warm=TAUGHT[framework], **LARGE) as (_, client):
        code = f"""
import sys, time
there, before = {framework!r} in sys.modules, time.process_time()
import {framework}
[there, time.process_time() - before]
"""
        there, seconds = said(client, code)
        assert there and seconds < 0.1
        assert said(client, TRAINS[framework]) is True


def test_threads_that_a_library_starts_at_its_import_start_again_when_it_computes(tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    code = "import numpy\nfloat((numpy.ones((600, 600)) @ numpy.ones((600, 600))).sum())"
    with kernel(tmp_path, **NUMPY) as (_, client):
        assert abs(said(client, code) - 600**3) < 1


def test_a_library_of_pictures_draws_into_the_notebook_and_finds_what_it_wrote_at_its_import(tmp_path, monkeypatch):
    if importlib.util.find_spec("matplotlib") is None:
        pytest.skip("matplotlib is not installed")
    monkeypatch.delenv("MPLBACKEND", raising=False)
    code = """
import os, matplotlib.pyplot
written = sorted(name for _, _, names in os.walk("/tmp/.cache") for name in names if "font" in name)
[matplotlib.get_backend(), written, sorted(os.environ)]
"""
    found = []
    for start in ({}, {"warm": ["matplotlib.pyplot"]}):
        with kernel(tmp_path, packages=["matplotlib"], **start) as (_, client):
            found.append(said(client, code))
    assert found[0] == found[1] and "inline" in found[0][0] and found[0][1]


def test_files_beside_the_notebook_are_there_to_be_read_as_in_a_cold_one(tmp_path):
    (tmp_path / "hw.ipynb").write_text("hidden tests")
    (tmp_path / "folder" / "below").mkdir(parents=True)
    (tmp_path / "folder" / "below" / "data.csv").write_text("1,2")
    (tmp_path / "folder" / "link.csv").symlink_to("/etc/hostname")
    (tmp_path / "mine.txt").write_text("3")
    (tmp_path / "mine.txt").chmod(0o600)
    code = """
import os
could = []
for change in (
    lambda: open("folder/below/data.csv", "a"), lambda: open("folder/new", "w"), lambda: os.unlink("mine.txt"),
    lambda: os.chmod("mine.txt", 0o666), lambda: os.rename("mine.txt", "other"), lambda: open("mine.txt", "w"),
    lambda: open("/run/beside/new", "w"),
):
    try:
        change()
        could.append("changed")
    except OSError:
        pass
open("new", "w").close()
[open("folder/below/data.csv").read(), open("mine.txt").read(), sorted(os.listdir()), could]
"""  # fmt: skip
    with kernel(tmp_path, **NUMPY) as (_, client):
        assert said(client, code) == ["1,2", "3", ["folder", "mine.txt", "new"], []]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "hw.ipynb", "mine.txt"]


def test_a_file_that_has_two_names_is_there_by_both(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "data.csv").write_text("1,2")
    for name in ("same.csv", "folder/same.csv"):
        (tmp_path / name).hardlink_to(tmp_path / "data.csv")
    code = "[open(name).read() for name in ('data.csv', 'same.csv', 'folder/same.csv')]"
    for start in ({}, NUMPY):
        with kernel(tmp_path, **start) as (_, client):
            assert said(client, code) == ["1,2"] * 3


def test_what_it_may_not_import_it_cannot(tmp_path):
    code = "import importlib.util as found\n[found.find_spec(one) is None for one in ('numpy', 'torch', 'scipy')]"
    with kernel(tmp_path, **NUMPY) as (_, client):
        assert said(client, code) == [False, True, True]


# Nothing goes from one submission to the next

LEAVES = """
import multiprocessing.shared_memory, os, socket, subprocess, sys, threading, types
import numpy
numpy.trace = numpy.mine = len
__builtins__.mine = os.environ["MINE"] = "left"
sys.modules["left"] = types.ModuleType("left")
sys.path.append("/left")
numpy.random.seed(0)
numpy.set_printoptions(precision=1)
for folder in ("/tmp", "/dev/shm", "/run/kernel", "/tmp/work"):
    open(folder + "/left", "w").close()
memory = multiprocessing.shared_memory.SharedMemory("shared", True, 8)
named, listening = socket.socket(socket.AF_UNIX), socket.socket()
named.bind("\\0left")
named.listen()
listening.bind(("127.0.0.1", 4321))
listening.listen()
waiting = subprocess.Popen(["sleep", "600"], start_new_session=True)
os.openpty()
True
"""
FINDS = """
import multiprocessing.shared_memory, os, socket, sys
import numpy
found = [name for name in ("trace", "mine") if getattr(numpy, name, None) is len]
found += ["builtin"] if hasattr(__builtins__, "mine") else []
found += ["variable"] if "MINE" in os.environ else []
found += ["module"] if "left" in sys.modules else []
found += ["path"] if "/left" in sys.path else []
found += ["option"] if numpy.get_printoptions()["precision"] == 1 else []
found += [name for name in ("/tmp", "/dev/shm", "/run/kernel", "/tmp/work") if os.path.exists(name + "/left")]
found += ["process"] if len([name for name in os.listdir("/proc") if name.isdigit()]) > 2 else []
found += ["terminal"] if os.listdir("/dev/pts") != ["ptmx"] else []
for family, address in ((socket.AF_UNIX, "\\0left"), (socket.AF_INET, ("127.0.0.1", 4321))):
    try:
        socket.socket(family).connect(address)
        found.append("socket")
    except OSError:
        pass
try:
    multiprocessing.shared_memory.SharedMemory("shared")
    found.append("memory")
except FileNotFoundError:
    pass
found
"""


def test_what_one_leaves_the_next_does_not_find_neither_beside_it_nor_after_it(tmp_path):
    with kernel(tmp_path, **NUMPY) as (first, client):
        assert said(client, LEAVES) is True
        assert len(said(client, FINDS)) == 16  # so that they are there to be found
        with kernel(tmp_path, **NUMPY) as (second, beside):
            assert said(beside, FINDS) == []
            spaces = [
                os.stat(f"/proc/{one.provisioner.kernel_pid}/ns/{name}").st_ino
                for one in (first, second) for name in ("mnt", "pid", "ipc", "net", "user")
            ]  # fmt: skip
            assert len(set(spaces)) == 10
    with kernel(tmp_path, **NUMPY) as (_, after):
        assert said(after, FINDS) == []


DRAWS = {
    "numpy": """
import random, tempfile, uuid
[random.random(), numpy.random.rand(), numpy.random.default_rng().random(), uuid.uuid4().hex, tempfile.mktemp()]
""",
    "torch": "[torch.rand(1).item(), torch.randn(1).item(), torch.initial_seed()]",
    "tensorflow": "import keras\n[float(each.random.uniform([])) for each in (tensorflow, keras)]",
}


@pytest.mark.parametrize("library", DRAWS)
def test_random_numbers_are_each_ones_own_as_in_new_processes(tmp_path, library):
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    settings = {"packages": [library], "warm": TAUGHT.get(library, ["numpy.random"])} | LARGE
    drawn = []
    for _ in range(2):
        with kernel(tmp_path, **settings) as (_, client):
            drawn.append(said(client, f"import {library}\n{DRAWS[library].strip()}"))
    assert all(mine != other for mine, other in zip(*drawn, strict=True))


# Out of a kernel's reach

ATTACKS = """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
did = []
def tries(name, attack):
    try:
        result = attack()
    except (OSError, PermissionError):
        return
    if result not in (-1, None):
        did.append([name, str(result)[:80]])
tries("attach", lambda: libc.ptrace(16, 1, 0, 0))
tries("read the first's memory", lambda: open("/proc/1/mem", "rb"))
tries("the first's files", lambda: [os.readlink("/proc/1/fd/" + name) for name in ["0", *os.listdir("/proc/1/fd")]])
tries("the first's variables", lambda: open("/proc/1/environ").read())
tries("what the first has open", lambda: libc.syscall(438, os.pidfd_open(1), 0, 0))
tries("join", lambda: libc.setns(os.open("/proc/1/ns/mnt", os.O_RDONLY), 0))
tries("mount", lambda: libc.mount(b"proc", b"/tmp", b"proc", 0, None))
tries("bind", lambda: libc.mount(b"/", b"/tmp", None, 4096 | 16384, None))
for place in (b"/tmp", b"/proc", b"/dev/shm", b"/tmp/work", b"/run/kernel", b"/dev/pts"):
    tries(f"unmount {place}", lambda: libc.umount2(place, 2))
for kind in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000):
    tries(f"new name space {kind:x}", lambda: libc.unshare(kind))
tries("clone", lambda: libc.syscall(56 if os.uname().machine == "x86_64" else 220, 0x10000000 | 17, 0, 0, 0, 0))
tries("settings", lambda: open("/proc/sys/kernel/core_pattern", "w"))
tries("its own settings", lambda: open("/proc/self/oom_score_adj", "w"))
tries("users", lambda: open("/proc/sys/user/max_user_namespaces", "w"))
tries("rights", lambda: open("/proc/self/uid_map", "w"))
tries("host's name", lambda: libc.sethostname(b"x", 1))
tries("change of root", lambda: os.chroot("/tmp"))
tries("pid of the outside", lambda: os.pidfd_open(PID))
tries("signal", lambda: os.kill(PID, 0) or "reached")
tries("course", lambda: os.listdir(FOLDER))
tries("root of the first", lambda: [one for one in os.listdir("/proc/1/root") if one not in os.listdir("/")] or None)
did
"""


def test_it_reaches_neither_its_parent_nor_the_machine(tmp_path):
    with kernel(tmp_path, **NUMPY) as (manager, client):
        assert said(client, ATTACKS.replace("PID", str(os.getpid())).replace("FOLDER", repr(str(tmp_path)))) == []
        pids = said(client, "import os\nsorted(int(name) for name in os.listdir('/proc') if name.isdigit())")
        assert pids == [1, 2]
        assert said(client, "import os\n[os.getppid(), os.getuid(), os.getgid()]") == [1, 1000, 1000]
        rights = [psutil.Process(manager.provisioner.pid)]
        rights = open(f"/proc/{rights[0].pid}/status").read()
        assert {line.split()[1].strip("0") for line in rights.splitlines() if line.startswith("Cap")} == {""}


@pytest.mark.parametrize("whom", ["-1", "0", "1", "os.getpgid(1)", "-os.getppid()"])
def test_whoever_kills_all_that_can_be_reached_kills_itself_alone(tmp_path, whom):
    with kernel(tmp_path, **NUMPY) as (_, other), kernel(tmp_path, **NUMPY) as (manager, client):
        before = [each.process.pid for each in parents()]
        client.execute(
            "import os, signal\nfor number in (9, 15, 2):\n    try:\n"
            f"        os.kill({whom}, number)\n    except OSError:\n        pass\nos._exit(1)"
        )
        assert wait_for(lambda: not manager.is_alive())
        assert said(other, "1 + 1") == 2 and [each.process.pid for each in parents()] == before


def test_whoever_ended_and_has_no_parent_any_longer_leaves_no_zombie(tmp_path):
    code = """
import os, subprocess, time
subprocess.run(["sh", "-c", "sleep 0.2 & sleep 0.2 &"])
counts, end = [0], time.monotonic() + 20
while counts[-1] != 2 and time.monotonic() < end:
    counts.append(sum(name.isdigit() for name in os.listdir("/proc")))
counts
"""
    with kernel(tmp_path, **NUMPY) as (_, client):
        counts = said(client, code)
        assert counts[1] == 4 and counts[-1] == 2


# How long they live


def test_all_share_one_parent_and_another_takes_its_place_when_it_is_gone(alone, tmp_path):
    with kernel(tmp_path, **NUMPY) as (_, client), kernel(tmp_path, **NUMPY) as (manager, _):
        (parent,) = parents()
        assert (
            len(insides(parent)) == 2 + 2 * 2
        )  # bubblewrap's first and the parent; of each kernel, its first and itself
        manager.provisioner.process.kill()
        assert wait_for(lambda: not manager.is_alive()) and said(client, "1 + 1") == 2
        insides(parent)[1].kill()  # after bubblewrap's own first one
        assert wait_for(lambda: parent.is_gone)
    with kernel(tmp_path, **NUMPY) as (_, client):
        assert said(client, "import sys\n'numpy' in sys.modules") is True
        (another,) = parents()
        assert another is not parent


def test_a_parent_ends_when_it_has_long_had_no_kernel_and_another_takes_its_place(alone, tmp_path, monkeypatch):
    monkeypatch.setattr(warm, "IDLE_S", 2)
    with kernel(tmp_path, **NUMPY) as (_, client):
        (parent,) = parents()
        time.sleep(5)
        assert said(client, "1 + 1") == 2 and not parent.is_gone
    assert wait_for(lambda: parent.is_gone) and wait_for(lambda: not insides(parent))
    with kernel(tmp_path, **NUMPY) as (_, client):
        assert said(client, "import sys\n'numpy' in sys.modules") is True


def test_a_parent_that_ended_before_it_was_tried_is_no_reason_to_start_cold(alone, monkeypatch):
    kind = warm.Kind(("json",), ("numpy",), (), ("--setenv", "PYTHONPATH", view.import_path()))
    monkeypatch.setattr(warm, "IDLE_S", 0.5)
    warm._parents[kind] = first = warm.Parent(kind)
    assert wait_for(lambda: first.is_gone)
    monkeypatch.setattr(warm, "IDLE_S", 300)
    assert asyncio.run(warm.started(kind)) is not first


def grade(folder, pipe=None):
    """Start a kernel; the numbers of its processes, and of its parent. With a pipe: say them there, and wait."""
    with kernel(folder, **NUMPY) as (manager, client):
        said(client, "1 + 1")
        found = [manager.provisioner.pid, manager.provisioner.kernel_pid, *(each.process.pid for each in parents())]
        if pipe is not None:
            helper = os.fork()  # has all open that this process has
            if helper:
                os.write(pipe, json.dumps([*found, helper]).encode())
            time.sleep(600)
        return found


@contextlib.contextmanager
def waiting(folder):
    """The numbers of a process that `grade`s and waits, and what it says of its kernel's."""
    ours, theirs = os.pipe()
    grader = Apart(120, grade, folder, theirs)
    *found, helper = json.loads(os.read(ours, 1000))
    try:
        yield grader._process.pid, *found
    finally:
        os.kill(helper, signal.SIGKILL)
        grader.stop()
        os.close(ours)
        os.close(theirs)


def test_forked_graders_share_the_parent_and_their_kernels_end_with_them(alone, tmp_path):
    assert asyncio.run(SandboxProvisioner(packages=["numpy"], **NUMPY).prepare()) == ""
    (parent,) = parents()
    for pid, _, used in [each.result() for each in [Apart(120, grade, tmp_path) for _ in range(2)]]:
        assert used == parent.process.pid and wait_for(lambda pid=pid: not psutil.pid_exists(pid))
    with waiting(tmp_path) as (grader, pid, kernel_pid, _):
        assert psutil.pid_exists(pid) and psutil.pid_exists(kernel_pid)
        os.kill(grader, signal.SIGKILL)
        assert wait_for(lambda: not psutil.pid_exists(pid) and not psutil.pid_exists(kernel_pid))
        assert len(insides(parent)) == 2  # bubblewrap's first process, and the parent: it goes on


def test_a_parent_and_its_kernels_end_with_the_process_that_started_it(alone, tmp_path):
    with waiting(tmp_path) as (grader, pid, kernel_pid, parent):
        family = [psutil.Process(pid), psutil.Process(kernel_pid), *psutil.Process(parent).children(recursive=True)]
        assert parents() == [] and len(family) >= 4
        os.kill(grader, signal.SIGKILL)
        ended = wait_for(lambda: not any(each.is_running() for each in family))
        for each in family:  # where it does not, it is not to stay for ever
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        assert ended


@pytest.fixture
def endless(alone, tmp_path, monkeypatch):
    """What a parent has in common with its kernels, with a module whose import never ends."""
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "endless.py").write_text("import time\nwhile True:\n    time.sleep(1)\n")
    monkeypatch.setattr(view, "SYSTEM", (*view.SYSTEM, str(tmp_path / "library")))
    path = f"{view.import_path()}:{tmp_path / 'library'}"
    return warm.Kind(("endless",), ("numpy",), (), ("--setenv", "PYTHONPATH", path))


def imports(kind, pipe=None):
    """A parent and its processes, one of which imports. With a pipe: say their numbers there, and wait."""
    parent = warm.Parent(kind)
    # bubblewrap's own two, the one that imports, and the one that waits for the grader's end
    assert wait_for(lambda: len(insides(parent)) == 3)
    family = [psutil.Process(parent.process.pid), *insides(parent)]
    time.sleep(1)
    if pipe is not None:
        os.write(pipe, json.dumps([each.pid for each in family]).encode())
        time.sleep(600)
    return parent, family


def test_a_parent_whose_import_never_ends_can_be_ended(endless):
    parent, family = imports(endless)
    parent.end()
    assert parent.process.returncode is not None and wait_for(lambda: not any(each.is_running() for each in family))


def test_a_parent_whose_import_never_ends_ends_with_the_process_that_started_it(endless):
    ours, theirs = os.pipe()
    grader = Apart(120, imports, endless, theirs)
    family = [psutil.Process(pid) for pid in json.loads(os.read(ours, 1000))]
    os.kill(grader._process.pid, signal.SIGKILL)
    ended = wait_for(lambda: not any(each.is_running() for each in family))
    for each in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()
    grader.stop()
    os.close(ours)
    os.close(theirs)
    assert ended


def test_a_parent_is_ended_with_the_kernels_that_were_forked_from_it(alone, tmp_path):
    with kernel(tmp_path, **NUMPY) as (manager, _):
        family = [each for parent in parents() for each in insides(parent)]
        warm.end_parents()
        assert wait_for(lambda: not any(each.is_running() for each in family)) and len(family) == 4
        assert wait_for(lambda: not manager.is_alive()) and warm._parents == {}


# Where it does not work


class Ended(BaseException):
    """In the place of the end of this process."""


def test_a_kernel_that_cannot_be_forked_just_now_does_not_cost_the_parent(monkeypatch):
    def fails():
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def ends(status):
        raise Ended

    monkeypatch.setattr(os, "fork", fails)
    monkeypatch.setattr(os, "_exit", ends)
    monkeypatch.setattr(os, "listdir", lambda place: ["1"])
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channels = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(3)]
    channels[0][0].close()  # who has given up meanwhile
    with open(os.devnull) as nothing:
        for _, channel in channels:
            socket.send_fds(ours, [b"fork"], [channel.fileno(), *[nothing.fileno()] * 3])
    ours.shutdown(socket.SHUT_WR)
    grader = os.pidfd_open(os.getpid())
    with pytest.raises(Ended):
        serve(theirs, grader, 60)
    said = [channel.recv(200).decode() for channel, _ in channels[1:]]
    assert said == ["no process could be forked: Resource temporarily unavailable"] * 2
    os.close(grader)
    for each in (ours, theirs, *sum(channels, ())):
        each.close()


def cold_reason(folder, caplog, **settings):
    """Why kernels of these settings start cold, in a sandbox nevertheless; that is said once."""
    found = set()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            specs = SandboxedSpecs(settings=SETTINGS | settings)
            manager = KernelManager(kernel_name="python3", kernel_spec_manager=specs)
            manager.start_kernel(cwd=str(folder))
            client = manager.blocking_client()
            client.start_channels()
            client.wait_for_ready(timeout=120)
            code = "import sys, os\n['numpy' in sys.modules, os.getuid(), os.path.exists('/etc/passwd'), os.getppid()]"
            assert said(client, code) == [False, 1000, False, 1]
            found.add(manager.provisioner.not_warm)
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    (why,) = found
    assert [record.getMessage() for record in caplog.records].count(f"Kernels start cold in the sandbox: {why}") == 1
    return why


def test_a_module_that_cannot_be_imported_is_named(alone, tmp_path, caplog):
    assert cold_reason(tmp_path, caplog, warm=["numpy", "torch"]) == "ModuleNotFoundError: No module named 'torch'"
    prepared = SandboxProvisioner(packages=["numpy"], warm=["numpy", "torch"]).prepare()
    assert asyncio.run(prepared) == "ModuleNotFoundError: No module named 'torch'"


@pytest.mark.parametrize("right", ["CAP_SYS_ADMIN", "CAP_SETFCAP"])
def test_where_the_system_does_not_allow_it_that_is_said(alone, tmp_path, caplog, monkeypatch, right):
    place = warm.ISOLATED.index(right)
    monkeypatch.setattr(warm, "ISOLATED", warm.ISOLATED[: place - 1] + warm.ISOLATED[place + 1 :])
    assert "Operation not permitted" in cold_reason(tmp_path, caplog, **NUMPY)


def test_files_that_are_too_large_to_be_copied_are_seen_by_a_cold_one(alone, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(warm, "MOST_BESIDE", 2**20)
    (tmp_path / "data.csv").write_bytes(bytes(2**20 + 1))
    assert cold_reason(tmp_path, caplog, **NUMPY) == "the files beside the notebook are larger than 1 MiB"
    (tmp_path / "data.csv").write_bytes(bytes(2**20 - 1))
    with kernel(tmp_path, **NUMPY) as (_, client):
        assert said(client, "len(open('data.csv').read())") == 2**20 - 1


def test_a_library_that_leaves_threads_is_not_forked(alone, tmp_path, caplog):
    why = cold_reason(tmp_path, caplog, packages=["numpy", "pyarrow"], warm=["pyarrow"])
    assert "threads after its imports" in why


def test_what_is_installed_below_tmp_is_there_and_nothing_else_of_it(alone, tmp_path, monkeypatch):
    (tmp_path / "library" / "below").mkdir(parents=True)
    (tmp_path / "library" / "below" / "one.py").write_text("1")
    (tmp_path / "library" / "two").symlink_to("below")
    (tmp_path / "other").mkdir()
    seen = [tmp_path / "library" / "below", tmp_path / "library" / "two"]
    monkeypatch.setattr(view, "SYSTEM", (*view.SYSTEM, *map(str, seen)))
    code = f"""
import os
try:
    open("{seen[0]}/one.py", "w")
    could = True
except OSError:
    could = False
[sorted(os.listdir("{tmp_path}")), sorted(os.listdir("{tmp_path}/library")), open("{seen[1]}/one.py").read(), could]
"""
    for start in ({}, NUMPY):
        with kernel(tmp_path / "other", **start) as (_, client):
            assert said(client, code) == [["library"], ["below", "two"], "1", False]


def test_another_kernel_than_pythons_starts_cold():
    asked = SandboxProvisioner(**NUMPY)._start_warm(["/usr/bin/python3", "-m", "other"], None, [], "")
    assert asyncio.run(asked) is False


def test_without_the_setting_there_is_no_parent(alone, tmp_path):
    with kernel(tmp_path) as (manager, client):
        assert said(client, "import sys\n'numpy' in sys.modules") is False
        assert warm._parents == {} and manager.provisioner.not_warm == ""
