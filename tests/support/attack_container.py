"""A container for a grader without a sandbox of its own, and what is seen from outside of what happened in it.

    python -m tests.support.attack_container FOLDER PYTHON     FOLDER/home is copied, PYTHON the environment it sees

It runs `sh run` in a copy of that home, in name spaces of its own for processes, users, network and the rest, with a
read-only system and limits that are set from outside. The copy is in memory and of limited size, and nobody but this
process and the container sees it. What was seen is printed at the end, as JSON.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from course_lib.grading.sandbox.view import OF_PYTHON, SYSTEM
from course_lib.grading.sandbox.watch import Limits, too_much
from tests.support.attack_traces import digests, leaked, marks

HOME = "/home/instructor"  # in the container
ENDED, LEFT_S = "ended", 3  # a file that `run` makes after the last submission, and seconds in which it then waits
OWN = {"timeout", "prlimit", "bwrap", "sh", "sleep"}  # the container's own processes
LOOKS_S = 0.4
OURS = Limits(memory=2**30, processes=32, seconds=3600)  # what our sandbox is given in the tests
HARD = Limits(memory=6 * 2**30, processes=150, seconds=170)  # here it is ended from outside
OUR_SCRATCH, HARD_SCRATCH = 2**26, 2**28  # bytes in each folder in memory
EACH = {"data": 3 * 2**30, "fsize": HARD_SCRATCH, "core": 0, "cpu": int(HARD.seconds), "nofile": 4096}
ON_A_DISK_OF_ITS_OWN = ["unshare", "--user", "--map-root-user", "--mount"]


def limits_of_each() -> dict[str, int]:
    """What one process may have; of processes the system counts all that this user has, outside too, and threads."""
    running = sum(1 for _ in Path("/proc").glob("[0-9]*/task/*"))
    return EACH | {"nproc": running + 2 * HARD.processes}


def seen_in(folder: Path, python: Path) -> dict:
    """Run the container in a process that has the mount name space to itself, and return what that one saw.

    Args:
        folder: its `home` is what the container finds as its home, `run` in it the shell script.
        python: the folder of the environment that may be seen.
    """
    command = [*ON_A_DISK_OF_ITS_OWN, sys.executable, "-m", __name__, str(folder), str(python)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HARD.seconds + 120)
    if done.returncode:
        raise RuntimeError(f"the container could not be used: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def command(home: Path, python: Path, script: str) -> list[str]:
    """The container as arguments: `script` is run by a shell in it.

    Args:
        home: what may be written, beside /tmp and /dev/shm, which are in memory and new.
        python: the folder of the environment that may be seen.
        script: for the shell.
    """
    roots = dict.fromkeys([str(python), sys.base_prefix])
    seen = [*SYSTEM, *(str(Path(root, part)) for root in roots for part in OF_PYTHON)]
    scratch = str(HARD_SCRATCH)
    given = ["--size", scratch, "--tmpfs", "/tmp", "--bind", str(home), HOME]
    for path in seen:
        if os.path.islink(path) and path in SYSTEM:
            given += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path):
            given += ["--ro-bind", path, path]
    for path in ("/etc/hosts", "/etc/nsswitch.conf"):
        given += ["--ro-bind-try", path, path]
    given += ["--proc", "/proc", "--dev", "/dev", "--size", scratch, "--tmpfs", "/dev/shm", "--remount-ro", "/"]
    known = {
        "PATH": f"{python}/bin:/usr/bin:/bin", "HOME": HOME, "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1",
        "PYTHONPATH": f"{HOME}/library",
    }  # fmt: skip
    given += [part for name, value in known.items() for part in ("--setenv", name, value)]
    return [
        "timeout", "-s", "KILL", str(HARD.seconds + 30),
        "prlimit", *(f"--{name}={limit}" for name, limit in limits_of_each().items()), "--",
        "bwrap", "--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000", "--die-with-parent",
        "--new-session", "--cap-drop", "ALL", "--hostname", "localhost", "--clearenv", *given, "--chdir", HOME, "--",
        "sh", "-c", script,
    ]  # fmt: skip


def watched(process: subprocess.Popen, home: Path) -> dict:
    """What is seen of a container while it runs: what it took beyond our limits, what was left, how it was ended."""
    begun, taken, killed, ended, left = time.monotonic(), "", "", 0.0, []
    while process.poll() is None:
        now = time.monotonic()
        with contextlib.suppress(psutil.Error, OSError):
            first = psutil.Process(process.pid)
            family = first.children(recursive=True)
            roots = (f"/proc/{each.pid}/root" for each in reversed(family))
            root = next((root for root in roots if os.path.exists(f"{root}{HOME}/run")), "")
            if root:  # it has begun
                taken = taken or too_much(first, root, OURS) or too_large(root)
                killed = killed or beyond(family)
            if not ended and (home / ENDED).exists():
                ended = now
            if ended and now - ended > LEFT_S / 2:
                left = sorted({each.name() for each in family} - OWN)
        if now - begun > HARD.seconds:
            killed = killed or f"it ran for {HARD.seconds:g} seconds"
        if killed:
            for each in [*psutil.Process(process.pid).children(recursive=True), process]:
                with contextlib.suppress(psutil.Error):
                    each.kill()
            break
        time.sleep(LOOKS_S)
    process.wait()
    return {"seconds": (ended or time.monotonic()) - begun, "taken": taken, "killed": killed, "left": left}


def beyond(family: list[psutil.Process]) -> str:
    """Why a container has to be ended from outside; "" if it has not. What it writes is limited by its folders."""
    if len(family) > HARD.processes:
        return f"it started more than {HARD.processes} processes"
    if sum(each.memory_info().rss for each in family) > HARD.memory:
        return f"it used more than {HARD.memory / 2**30:.2g} GiB of memory"
    return ""


def too_large(root: str) -> str:
    """What was written into its folders beyond our limit; "" if nothing."""
    for folder in ("/tmp", "/dev/shm", HOME):
        state = os.statvfs(root + folder)
        if (state.f_blocks - state.f_bfree) * state.f_frsize > OUR_SCRATCH:
            return f"it wrote more than {OUR_SCRATCH // 2**20} MiB"
    return ""


def main(folder: Path, python: Path) -> None:
    """Make the disk, run the container, and print what was seen."""
    home = Path(tempfile.mkdtemp())
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=640m,nr_inodes=200k", "none", str(home)], check=True)
    subprocess.run(["cp", "-r", f"{folder}/home/.", str(home)], check=True)
    before = digests(home)
    process = subprocess.Popen(
        command(home, python, (home / "run").read_text()), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    seen = watched(process, home)
    after = digests(home)
    changed = [name for name in {*before, *after} if before.get(name) != after.get(name)]
    outlived = [str(path.relative_to(home)) for path in home.rglob("outlived")]
    output = home / "output.txt"
    said = output.read_text(errors="replace")[-4000:] if output.is_file() and not output.is_symlink() else ""
    print(json.dumps({
        **seen, "marks": marks(home), "leaked": leaked(home), "changed": sorted(changed), "said": said,
        "left": [*seen["left"], *outlived],
    }))  # fmt: skip
    subprocess.run(["umount", "--lazy", str(home)], check=True)
    home.rmdir()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
