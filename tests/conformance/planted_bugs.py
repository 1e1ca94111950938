"""Plant one bug after another in a copy of course_lib and see that the suite notices every one.

    python tests/conformance/planted_bugs.py [part of a bug's name or file ...]

Prints a table and ends with 1 when a bug survives, cannot be planted, or breaks the import instead of a test.
The tests that noticed run once more on the sound library and must pass there.

The frameworks are imported once, before they compute anything; every bug gets a process forked from that one.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before the frameworks are imported: no thread pools to fork
os.environ["TF_NUM_INTRAOP_THREADS"] = "1"
os.environ["TF_NUM_INTEROP_THREADS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # none is needed here, and some take a second to import

import gc
import json
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest
from bugs import BUGS
from tqdm import tqdm

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SECONDS_FOR_A_BUG = 300
CAUGHT, SURVIVED = int(pytest.ExitCode.TESTS_FAILED), int(pytest.ExitCode.OK)


class Recorder:
    """A pytest plug-in that remembers the tests that failed."""

    def __init__(self):
        self.failed = []

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed.append(report.nodeid)


def import_frameworks():
    """Everything heavy and nothing of course_lib."""
    import IPython.display  # noqa: F401
    import keras  # noqa: F401
    import safetensors.torch  # noqa: F401
    import scipy.special  # noqa: F401
    import tensorflow  # noqa: F401
    import tokenizers  # noqa: F401
    import torch
    from transformers import BertForMaskedLM, BertForSequenceClassification, BertModel  # noqa: F401

    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # the children would copy every page that their collector touches
    assert "course_lib" not in sys.modules


def plant(bug, folder):
    """Copy course_lib into the folder with the bug in it."""
    shutil.copytree(ROOT / "course_lib", folder / "course_lib")  # with what Python has compiled
    if bug is None:
        return
    path = folder / "course_lib" / bug.file
    text = path.read_text(encoding="utf-8")
    if text.count(bug.old) != 1:
        raise ValueError(f"{bug.file}: the text of the bug {bug.name!r} occurs {text.count(bug.old)} times, not once")
    path.write_text(text.replace(bug.old, bug.new), encoding="utf-8")
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        compiled.unlink()


def run_tests(folder, arguments):
    """In the forked process: pytest on the copy in the folder. Never returns."""
    signal.alarm(SECONDS_FOR_A_BUG)
    log = os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.stdout = sys.stderr = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    code = 99
    try:
        sys.path.insert(0, str(folder))
        os.chdir(ROOT)
        recorder = Recorder()
        code = int(pytest.main(["-q", "--tb=short", "--no-header", "-p", "no:cacheprovider", *arguments], [recorder]))
        import course_lib

        if not Path(course_lib.__file__).is_relative_to(folder):
            raise RuntimeError(f"the tests ran on {course_lib.__file__} and not on the copy")
        (folder / "failed.json").write_text(json.dumps(recorder.failed))
    except BaseException as error:
        print(repr(error))
        code = 99
    finally:
        sys.stdout.flush()
        os._exit(code)


def start(bug, arguments):
    folder = Path(tempfile.mkdtemp(prefix="planted-bug-")).resolve()
    try:
        plant(bug, folder)
    except ValueError:
        shutil.rmtree(folder)
        raise
    pid = os.fork()
    if pid == 0:
        run_tests(folder, arguments)
    return pid, folder


def finish(folder, status):
    """(exit code, tests that failed, end of the log); the folder goes."""
    code = os.waitstatus_to_exitcode(status)
    record, log = folder / "failed.json", folder / "log.txt"
    failed = json.loads(record.read_text()) if record.is_file() else []
    tail = log.read_text(errors="replace")[-1500:] if log.is_file() else ""
    shutil.rmtree(folder)
    return code, failed, tail


def arguments_of(bug):
    only = ["-k", bug.only] if bug.only else []
    return ["-x", *only, *(str((HERE / name).resolve()) for name in bug.tests.split())]


def try_all(bugs, workers):
    """Yield (bug, code, failed, tail) as they end."""
    waiting, running = list(bugs), {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                bug = waiting.pop(0)
                try:
                    pid, folder = start(bug, arguments_of(bug))
                    running[pid] = (bug, folder)
                except ValueError as error:
                    yield bug, 98, [], str(error)
            if running:
                pid, status = os.wait()
                if pid in running:
                    bug, folder = running.pop(pid)
                    yield bug, *finish(folder, status)
    finally:
        for pid, (_, folder) in running.items():  # only after an interruption
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            shutil.rmtree(folder, ignore_errors=True)


def main(wanted):
    bugs = [bug for bug in BUGS if not wanted or any(word in f"{bug.name} {bug.file}" for word in wanted)]
    if not bugs:
        print(f"no bug's name or file contains {' or '.join(wanted)}")
        return 2
    began = time.monotonic()
    import_frameworks()
    results = []
    workers = min(4, os.cpu_count() or 1)
    bar = tqdm(try_all(bugs, workers), total=len(bugs), desc="planting", unit="bug", dynamic_ncols=True)
    for result in bar:
        results.append(result)
    order = {bug: place for place, bug in enumerate(bugs)}
    results.sort(key=lambda result: order[result[0]])

    print(f"\n{'bug':<62} {'file':<26} {'result':<9} noticed by")
    for bug, code, failed, _ in results:
        verdict = {CAUGHT: "caught", SURVIVED: "SURVIVED"}.get(code, "BROKEN")
        noticed = failed[0].split("/")[-1].replace("::", " ") if failed else ""
        print(f"{bug.name:<62} {bug.file:<26} {verdict:<9} {noticed}")

    bad = [result for result in results if result[1] != CAUGHT]
    for bug, code, _, tail in bad:
        print(f"\n--- {bug.name} ({bug.file}): exit code {code}\n{tail}")

    witnesses = sorted({failed[0] for _, code, failed, _ in results if code == CAUGHT and failed})
    pid, folder = start(None, [str(ROOT / name) for name in witnesses])
    code, failed, tail = finish(folder, os.waitpid(pid, 0)[1])
    sound = code == 0
    if not sound:
        print(f"\nOn the library without a bug these fail too: {failed}\n{tail}")
    caught = len(results) - len(bad)
    print(
        f"\n{caught} of {len(results)} bugs caught by {len(witnesses)} tests, which "
        f"{'pass' if sound else 'DO NOT PASS'} on the sound library; {time.monotonic() - began:.0f} s"
    )
    return 0 if not bad and sound else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
