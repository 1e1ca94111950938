"""A copy of the nbgrader course in a temporary folder, and commands run in it."""

import atexit
import copy
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from filelock import FileLock
from nbgrader.api import Gradebook

ROOT = Path(__file__).resolve().parents[2]
ASSIGNMENT = "attention-from-scratch"
BIN = Path(sys.executable).parent
SANDBOX = "required" if sys.platform == "linux" else "off"  # there is none elsewhere


@functools.cache
def _command_process() -> subprocess.Popen:
    script = Path(__file__).with_name("command_process.py")
    process = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(_end, process)
    return process


def _end(process: subprocess.Popen) -> None:
    process.stdin.close()
    process.wait(timeout=300)


class Course:
    """An instructor's course folder with its own exchange, home and Jupyter folders.

    folder: holds course/ (nbgrader_config.py and source/), exchange/, home/ and one folder per student.
    copied_from: the course folder to start from; the repository's by default, as it is under version control.
    assignment: whose notebooks are meant below.
    """

    def __init__(self, folder: Path, copied_from: Path = ROOT / "assignments", assignment: str = ASSIGNMENT):
        self.folder, self.assignment = folder, assignment
        self.root = folder / "course"
        self.exchange = folder / "exchange"
        written = ["submitted", "autograded", "feedback", ".ipynb_checkpoints"]
        if copied_from == ROOT / "assignments":
            written += ["release", "*.db"]
        shutil.copytree(copied_from, self.root, ignore=shutil.ignore_patterns(*written))
        self.exchange.mkdir(parents=True)
        self.exchange.chmod(0o777)

    def nbgrader(self, *arguments, cwd=None, home="instructor", ok=True) -> str:
        """Run one nbgrader command; return what it wrote, both streams together."""
        status, said = self._command("nbgrader", arguments, cwd, home)
        assert not ok or status == 0, said
        return said

    def marking(self, *arguments) -> tuple[int, str]:
        """Run `python -m course_lib.grading.marking`; its status, and what it wrote."""
        return self._command("marking", arguments)

    def _command(self, program: str, arguments, cwd=None, home="instructor") -> tuple[int, str]:
        output = self.folder / "output.txt"
        job = {
            "program": program,
            "arguments": list(map(str, arguments)),
            "folder": str(cwd or self.root),
            "environment": self._environment(home),
            "output": str(output),
        }
        process = _command_process()
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        return int(process.stdout.readline()), output.read_text()

    def nbgrader_script(self, *arguments) -> str:
        """The same through the installed script, as a person would."""
        done = subprocess.run(
            [BIN / "nbgrader", *arguments], cwd=self.root, env=self._environment("instructor"), capture_output=True,
            text=True, timeout=3600,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def _environment(self, home: str) -> dict[str, str]:
        own = self.folder / "home" / home
        (own / ".jupyter").mkdir(parents=True, exist_ok=True)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "NBGRADER", "IPYTHON"))}
        return kept | {
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",  # nbgrader calls a bare `alembic`
            "HOME": str(own),
            "JUPYTER_CONFIG_DIR": str(own / ".jupyter"),
            "JUPYTER_DATA_DIR": str(own / "data"),
            "JUPYTER_RUNTIME_DIR": str(own / "runtime"),
            "IPYTHONDIR": str(own / ".ipython"),
            "NBGRADER_EXCHANGE": str(self.exchange),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(ROOT),
            "COURSE_GRADING_SANDBOX": os.environ.get("COURSE_GRADING_SANDBOX", SANDBOX),
        }

    def student_folder(self, name: str) -> Path:
        """A student's working folder, with the course's configuration and nothing else of it."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "nbgrader_config.py").write_text(
            f"c = get_config()\nc.CourseDirectory.course_id = 'attention'\nc.Exchange.root = {str(self.exchange)!r}\n"
        )
        return folder

    @property
    def release(self) -> nbformat.NotebookNode:
        """The released notebook."""
        return self._notebook("release")

    @property
    def source(self) -> nbformat.NotebookNode:
        """The source notebook, with solutions and hidden tests."""
        return self._notebook("source")

    def _notebook(self, step: str) -> nbformat.NotebookNode:
        return nbformat.read(self.root / step / self.assignment / f"{self.assignment}.ipynb", as_version=4)

    def gradebook(self) -> Gradebook:
        """The course's gradebook, open."""
        return Gradebook(f"sqlite:///{self.root}/gradebook.db", "attention")

    def submit(self, student: str, notebook: nbformat.NotebookNode) -> None:
        """Lay a notebook where `nbgrader collect` would."""
        folder = self.root / "submitted" / student / self.assignment
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / f"{self.assignment}.ipynb")

    def scores(self, student: str) -> dict[str, float]:
        """The automatic score of every graded cell, as the gradebook has it."""
        with self.gradebook() as gradebook:
            grades = gradebook.find_submission_notebook(self.assignment, self.assignment, student).grades
            return {grade.name: grade.auto_score for grade in grades}


def patient_with_all_but(endless: str) -> str:
    """Lines for nbgrader_config.py: no cell runs out of time but one, whatever the machine is busy with.

    That one may take as long as all before it, and four seconds at least: it must have begun to loop.
    """
    return f"""
import time
begun = time.monotonic()
c.Execute.timeout_func = (
    lambda cell: max(4, time.monotonic() - begun) if cell.source == {endless!r} else 1800
)
c.Execute.startup_timeout = 600
c.ExecuteToTheEnd.notebook_limit = 3600
"""


def generated_course(folder: Path, assignment: str = ASSIGNMENT) -> Course:
    """A course after `nbgrader generate_assignment`, which all processes of a test run do once."""
    shared = Path(os.environ["COURSE_TESTS_SHARED"])
    generated = shared / ("generated" if assignment == ASSIGNMENT else f"generated-{assignment}")
    with FileLock(f"{generated}.lock"):
        if not generated.exists():
            made = Course(Path(tempfile.mkdtemp(dir=shared)) / "making")
            made.nbgrader("generate_assignment", assignment)
            made.root.rename(generated)  # whole, or not there
    return Course(folder, generated, assignment)


def grade_id(cell) -> str | None:
    """The name nbgrader knows a cell by."""
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def reference_answers(source) -> dict[str, str]:
    """The code of the source notebook's solution cells, by name."""
    return {grade_id(c): c.source for c in source.cells if c.metadata.get("nbgrader", {}).get("solution")}


def filled_in(release, answers: dict[str, str]):
    """The released notebook with these cells handed in."""
    notebook = copy.deepcopy(release)
    for cell in notebook.cells:
        if grade_id(cell) in answers:
            cell.source = answers[grade_id(cell)]
    return notebook


def maximum(notebook) -> dict[str, float]:
    """The points of every automatically graded cell that has some, by name."""
    cells = [c for c in notebook.cells if c.cell_type == "code" and c.metadata.get("nbgrader", {}).get("grade")]
    return {grade_id(c): float(c.metadata.nbgrader.points) for c in cells if c.metadata.nbgrader.points}
