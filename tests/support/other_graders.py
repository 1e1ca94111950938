"""The same assignment for stock nbgrader and for otter-grader, as their users have it: tests in the student's process.

Stock nbgrader grades the source notebook as it is, hidden tests and all, with nothing in its configuration but the
name of the course. For otter-grader each cell of hidden tests becomes one file of tests, each
test a case of its own with its points; only the class that keeps the score is another (`otter_cases.py`).
"""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat

from tests.support.attack_container import LEFT_S

ASSIGNMENT = "attention-from-scratch"  # not from course.py, whose imports take seconds

PINS = ("otter-grader==7.0.0", "numpy==2.4.6", "scipy==1.17.1", "ipykernel==7.4.0")
PORT = 8000  # of a server in the container
SERVER = f"mkdir -p /tmp/served; python -m http.server {PORT} --bind 127.0.0.1 --directory /tmp/served 2>/tmp/asked &"
CONFIG = """c = get_config()
c.CourseDirectory.course_id = "attention"
"""
HERE = Path(__file__).parent


class Stock:
    """nbgrader as it is installed, without anything of ours but the library that the notebook imports."""

    name = "nbgrader"
    python = Path(sys.prefix)
    run = f"cd course; nbgrader autograde {ASSIGNMENT} >../output.txt 2>&1"

    def prepare(self, home: Path, source: Path, notebook_s: int) -> None:
        """The course after `nbgrader generate_assignment`."""
        course = home / "course"
        shutil.copytree(source.parent, course / "source" / ASSIGNMENT)
        (course / "nbgrader_config.py").write_text(CONFIG)
        own = {"HOME": str(home), "PATH": f"{self.python}/bin:{os.environ['PATH']}"}
        subprocess.run(
            [self.python / "bin" / "nbgrader", "generate_assignment", ASSIGNMENT], cwd=course, check=True,
            env=own | {"PYTHONPATH": str(home / "library")}, capture_output=True,
        )  # fmt: skip


class Otter:
    """otter-grader, without its container of Docker's, which this machine need not have."""

    name, pinned = "otter", PINS[0].split("==")[1]

    def __init__(self, python: Path):
        self.python = python
        if not (python / "bin" / "otter").exists():
            subprocess.run([sys.executable, "-m", "venv", python], check=True)
            subprocess.run([python / "bin" / "pip", "install", "--quiet", *PINS], check=True)

    def prepare(self, home: Path, source: Path, notebook_s: int) -> None:
        """The tests in otter's form, and a loop over the students."""
        course = home / "course"
        (course / "source").mkdir(parents=True)
        shutil.copy(source, course / "source")
        with zipfile.ZipFile(course / "autograder.zip", "w") as packed:
            packed.writestr("otter_config.json", "{}")
            for name, tests in files_of_tests(nbformat.read(source, as_version=4)).items():
                packed.writestr(f"tests/{name}.py", tests)
        shutil.copy(HERE / "otter_one.py", home / "library")
        self.run = (
            f"cd course; mkdir -p marks autograded; for name in $(ls submitted); do timeout -k 5 {notebook_s} "
            f"python ../library/otter_one.py submitted/$name/{ASSIGNMENT}/{ASSIGNMENT}.ipynb $name "
            ">>../output.txt 2>&1; done"
        )


def files_of_tests(source) -> dict[str, str]:
    """otter's files of tests, by the name of the graded cell."""
    head = (HERE / "otter_cases.py").read_text(encoding="utf-8")
    found = {}
    for cell in source.cells:
        said = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and said.get("grade") and said.get("points"):
            tests = re.sub(r"\bScore\(", "Cases(", cell.source)
            found[said["grade_id"]] = f"{head}\nname = {said['grade_id']!r}\n{tests}\n"
    return found


def whole_script(grader) -> str:
    """What a shell does in the container: a server to be asked, the grading, and some seconds for what is left."""
    return f"{SERVER}\n({grader.run})\nkill $! 2>/dev/null; touch ~/ended; sleep {LEFT_S}\n"
