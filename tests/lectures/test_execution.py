"""The committed outputs of every lecture come out again, cell by cell, under nbval.

Each lecture runs in a pytest of its own and a kernel of its own, so that neither meets the rest of the suite; both are
forks of one process that has imported the frameworks. Cells tagged `nbval-ignore-output` are not compared; they assert
a band themselves. Those tagged `nbval-skip` are not run: what they assert of the clock holds on a quiet machine, and
`make notebooks` runs them there.

A lecture is run only if something on which its outputs depend has changed since they last came out again, as
came_out.json records; with --all-lectures every one is.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from course_lib.lecture.show import CLAIM
from tests.support import came_out
from tests.support.lecture_files import EXECUTED, LECTURES, read

ONE_THREAD = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
UNCHANGED = "came out again, and nothing has changed since; `make test ARGS=--all-lectures` runs it"


def pytest_generate_tests(metafunc):
    if "path" in metafunc.fixturenames:
        unchanged = set() if metafunc.config.getoption("--all-lectures") else came_out.unchanged()
        skipped = pytest.mark.skip(reason=UNCHANGED)
        cases = [pytest.param(path, id=path.stem, marks=skipped if path.stem in unchanged else ()) for path in EXECUTED]
        metafunc.parametrize("path", cases)


@pytest.fixture(scope="module")
def at_start():
    """The fingerprints of the lectures before the process below imports the library."""
    return came_out.fingerprints()


@pytest.fixture(scope="module")
def nbval(at_start):
    """Runs a notebook under nbval in a fork of a process and compares its outputs; the return code is pytest's."""
    # This pytest's variables would reach the kernel: agg draws no picture into a notebook.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "MPLBACKEND", "XLA_FLAGS"))}
    environment |= dict.fromkeys(ONE_THREAD, "1")  # as beside another lecture, so that the record is of one way to run
    command = [sys.executable, "-m", "tests.support.lecture_process"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, cwd=Path(__file__).parents[2], **pipes) as process:

        def run(path) -> subprocess.CompletedProcess:
            # The limit is for what hangs: a busy machine is slow, not wrong.
            process.stdin.write(json.dumps({"path": str(path), "timeout": 4 * 3600}) + "\n")
            process.stdin.flush()
            return subprocess.CompletedProcess(path, *json.loads(process.stdout.readline()))

        yield run


def test_a_lecture_comes_out_again(path, nbval, at_start, capsys, record_property):
    start = time.monotonic()
    result = nbval(path)
    with capsys.disabled():
        print(
            f" {path.stem}: {result.stdout.strip().splitlines()[-1]} ({time.monotonic() - start:.0f} s) ",
            end="",
            flush=True,
        )
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]
    now = came_out.fingerprints().get(path.stem)
    if now is not None and now == at_start.get(path.stem):  # else nobody knows of which files these outputs are
        record_property(came_out.PROPERTY, now)


@pytest.fixture(scope="module")
def beginning():
    """The real first lecture up to the end of its first cell that claims a number."""
    notebook = read(LECTURES[0])
    last = next(i for i, cell in enumerate(notebook.cells) if "claims(" in cell.source and "import" not in cell.source)
    notebook.cells = notebook.cells[: last + 1]
    return notebook


def test_a_number_changed_by_hand_in_an_output_is_found(beginning, nbval, tmp_path):
    claim = next(output.data[CLAIM] for output in beginning.cells[-1].outputs if CLAIM in output.get("data", {}))
    claim["value"] = re.sub(r"\d$", lambda digit: str((int(digit[0]) + 1) % 10), claim["value"])
    nbformat.write(beginning, tmp_path / "changed.ipynb")
    result = nbval(tmp_path / "changed.ipynb")
    assert result.returncode == 1
    others = sum(cell.cell_type == "code" for cell in beginning.cells) - 1
    assert "Cell outputs differ" in result.stdout and f"1 failed, {others} passed" in result.stdout


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("assert 1 + 1 == 3", "AssertionError"),
        ("import course_lib.grading", "import of course_lib.grading halted"),  # its fingerprint holds nothing of that
        ("import sys; sys.path.append('..'); import tests", "import of tests halted"),
        ("from tests.support.came_out import record", "'tests.support' is not a package"),
    ],
)
def test_a_lecture_that_raises_an_error_is_found(nbval, tmp_path, source, error):
    cell = nbformat.v4.new_code_cell(source, execution_count=1)
    cell.metadata["tags"] = ["nbval-ignore-output"]
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "wrong.ipynb")
    result = nbval(tmp_path / "wrong.ipynb")
    assert result.returncode == 1 and error in result.stdout, result.stdout
