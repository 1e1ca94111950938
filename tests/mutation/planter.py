"""A process that has imported the frameworks, but not course_lib, and forks for each bug that is sent to it.

Reads a bug (JSON) from each line of its input, and answers with a line: {"code": pytest's, "failed": the tests that
failed, "log": the end of what was printed}. A test of the suite starts in a fork in a second this way, not in ten.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before the frameworks are imported: no thread pools to fork
os.environ["TF_NUM_INTRAOP_THREADS"] = "1"
os.environ["TF_NUM_INTEROP_THREADS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # none is needed here, and some take a second to import

import gc
import json
import shlex
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from planting import LIBRARY, TESTS, Bug, plant

SECONDS = 600  # for one bug, which takes seconds where nothing else runs


class Recorder:
    """A pytest plug-in that remembers the tests that failed."""

    def __init__(self):
        self.failed = []

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed.append(report.nodeid)


def import_frameworks() -> None:
    """Everything heavy and nothing of course_lib."""
    import IPython.display  # noqa: F401
    import keras  # noqa: F401
    import nbconvert.exporters  # noqa: F401
    import nbgrader.server_extensions.formgrader  # noqa: F401
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


def try_out(bug: Bug) -> dict:
    """Plant a bug in a fork of this process, and run there the tests that must notice."""
    with tempfile.TemporaryDirectory(prefix="planted-bug-") as folder:
        pid = os.fork()
        if pid == 0:
            _in_the_fork(bug, Path(folder))  # does not return
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        record, log = Path(folder, "failed.json"), Path(folder, "log.txt")
        failed = json.loads(record.read_text()) if record.is_file() else []
        return {"code": code, "failed": failed, "log": log.read_text(errors="replace")[-3000:]}


def _in_the_fork(bug: Bug, folder: Path) -> None:
    code = 99
    try:
        signal.alarm(SECONDS)
        log = os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.stdout = sys.stderr = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
        sys.path.insert(0, str(LIBRARY.parent))
        os.environ["PYTHONPATH"] = str(LIBRARY.parent)  # for `tests`; conftest puts the library in front
        os.chdir(LIBRARY.parent)
        if bug.copy:
            os.environ["PYTHONSAFEPATH"] = "1"  # else a process would find the library of its folder before the copy
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)  # what the tests leave goes with it
        library = plant(bug, folder)
        recorder, only = Recorder(), ["-k", bug.only] if bug.only else []
        files = [str(TESTS / name) for name in bug.tests.split()]
        arguments = ["-q", "-x", "--tb=short", "--no-header", "-p", "no:cacheprovider", *only, *files]
        arguments += ["-o", f"pythonpath={shlex.quote(str(library))}"]
        code = int(pytest.main(arguments, [recorder]))
        (folder / "failed.json").write_text(json.dumps(recorder.failed))
    except BaseException as error:
        print(repr(error))
        code = 99
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a framework prints is no answer
    import_frameworks()
    for line in sys.stdin:
        print(json.dumps(try_out(Bug(**json.loads(line)))), file=answers, flush=True)
