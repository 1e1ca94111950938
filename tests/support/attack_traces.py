"""What a grader in a container, and those whom it graded, left in the home: read from outside, when all has ended.

Nothing is trusted: links are not followed, and what cannot be read counts as not there.
"""

import contextlib
import hashlib
import json
import sqlite3
from pathlib import Path

STUDENTS = ("a-good", "m-attack", "z-good")  # in the order in which they are graded


def digests(home: Path) -> dict[str, str]:
    """Every file in it that grading must not change, and modules of Python that were not there, by their path."""
    found = {}
    for path in sorted(home.rglob("*")):
        name = str(path.relative_to(home))
        kept = name.startswith(("course/source", "course/submitted", "course/release", "library"))
        if (kept or path.suffix == ".py") and path.suffix != ".pyc" and not path.is_symlink() and path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def marks(home: Path) -> dict[str, dict[str, float]]:
    """The points of every graded cell by student, as far as there are any."""
    base = home / "course" / "gradebook.db"
    if base.is_file() and not base.is_symlink():
        with contextlib.suppress(sqlite3.Error):
            return _of_gradebook(base)
    found = {}
    for student in STUDENTS:
        path = home / "course" / "marks" / f"{student}.json"
        if path.is_file() and not path.is_symlink():
            tests = json.loads(path.read_text())["tests"]
            found[student] = {test["name"]: test["score"] for test in tests if "score" in test}
    return found


def _of_gradebook(path: Path) -> dict[str, dict[str, float]]:
    query = """
        select student_id, base_cell.name, coalesce(manual_score, auto_score) from grade
        join submitted_notebook on grade.notebook_id = submitted_notebook.id
        join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id
        join base_cell on grade.cell_id = base_cell.id
    """
    found: dict[str, dict[str, float]] = {}
    with contextlib.closing(sqlite3.connect(path)) as base:
        for student, cell, score in base.execute(query):
            if score is not None:
                found.setdefault(student, {})[cell] = score
    return found


def leaked(home: Path) -> list[str]:
    """The beginnings of what the attack printed that it should not have seen."""
    found = []
    for path in (home / "course" / "autograded").glob("m-attack/**/*.ipynb"):
        if path.is_file() and not path.is_symlink():
            with contextlib.suppress(ValueError, AttributeError):
                for cell in json.loads(path.read_text(errors="replace"))["cells"]:
                    shown = ["".join(output.get("text", "")) for output in cell.get("outputs", [])]
                    found += [text[:300] for text in shown if text.startswith("leaked")]
    return found
