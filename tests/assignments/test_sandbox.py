"""The sandbox of a kernel: what it sees, what it may use, how it ends, and what is said where there is none."""

import json
import os
import struct
import sys
import xmlrpc

import psutil
import pytest
from jupyter_client.kernelspec import KernelSpecManager

from course_lib.grading.outside import execute
from course_lib.grading.sandbox import view
from course_lib.grading.sandbox.__main__ import main
from course_lib.grading.sandbox.calls import filter_of
from course_lib.grading.sandbox.provisioner import NAME, sandboxed
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


def test_what_holds_memory_that_nobody_shows_is_refused(inside):
    code = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
found = []
add_key = {"x86_64": 248, "aarch64": 217}[os.uname().machine]
calls = [
    lambda: libc.memfd_create(b"x", 0),
    lambda: libc.shmget(0, ctypes.c_size_t(4096), 0o1600),
    lambda: libc.syscall(add_key, b"user", b"kept", b"for the next one", ctypes.c_size_t(16), -3),
]
for call in calls:
    found.append([call(), errno.errorcode[ctypes.get_errno()]])
found
"""
    assert said(inside, code) == [[-1, "ENOSYS"]] * 3


def test_the_filter_is_a_program_whose_jumps_stay_inside_and_other_machines_have_none():
    assert filter_of("unknown") == b""
    for machine in ("x86_64", "aarch64"):
        steps = list(struct.iter_unpack("=HBBI", filter_of(machine)))
        refuse = steps[-1]
        for place, (code, yes, no, _) in enumerate(steps):
            assert max(place + 1 + yes, place + 1 + no) < len(steps) or code == 0x06
            if code in (0x15, 0x35) and place > 1:
                assert steps[place + 1 + yes] == refuse and steps[place + 1 + no] != refuse
        assert steps[1 + 1 + steps[1][2]] == refuse  # another architecture's call


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
    "memory let go": (
        "import mmap\nkept = []\nwhile True:\n    kept.append(mmap.mmap(-1, 2**25))\n"
        "    kept[-1].write(bytes(2**25))\n    kept[-1].madvise(mmap.MADV_DONTNEED)\n"
        "    len(kept) > 40 and print(1 / 0)",
        {},
        "GiB of memory",
    ),
    "files": ("for n in range(10**9):\n    open(f'/tmp/{n}', 'w').close()", {}, "files"),
    "time": ("while True:\n    pass", {"seconds": 3.0}, "it ran for 3 seconds"),
}


@pytest.mark.parametrize(("code", "settings", "why"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_whoever_takes_too_much_is_ended_with_a_reason(start, tmp_path, code, settings, why):
    with kernel(tmp_path, **settings, **start) as (manager, client):
        client.execute(code)
        assert wait_for(lambda: manager.provisioner.ended, 60) and why in manager.provisioner.ended
        assert wait_for(lambda: not manager.is_alive())


def test_one_process_gets_no_more_memory_than_all_may_have(start, tmp_path):
    with kernel(tmp_path, **start) as (_, client):
        code = "import numpy\ntry:\n    numpy.ones(2**28)\n    got = True\nexcept MemoryError:\n    got = False\ngot"
        assert said(client, code) is False


def test_a_folder_that_is_hidden_stays_empty_below_one_that_is_seen(start, tmp_path):
    with kernel(tmp_path, hidden=[os.path.dirname(xmlrpc.__file__), "/nowhere"], **start) as (_, client):
        assert said(client, f"import os\nos.listdir({os.path.dirname(xmlrpc.__file__)!r})") == []


def test_a_package_that_is_not_installed_is_named():
    with pytest.raises(ValueError, match="'no-such-package', which is not installed here"):
        view._only(("no-such-package",))


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
        settings = execute.ExecuteOutside(assignments={"hw": ["numpy"]})
        with pytest.raises(SandboxMissing, match="(?s)apt install bubblewrap.*ExecuteOutside.sandbox = 'off'"):
            execute.check_sandbox(settings, "hw")
        settings.sandbox = "off"
        execute.check_sandbox(settings, "hw")
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
