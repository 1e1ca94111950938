"""A small course of somebody else's, marked from outside: one notebook, an answer, and tests of `assert`."""

from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from course_lib.grading.marking.alone import open_course
from tests.support.course import ROOT, Course, filled_in

NAME = "ps1"
SPEC = {"name": "python3", "display_name": "Python 3", "language": "python"}
MEAN = "def mean(values):\n    return sum(values) / len(values)"


def source_notebook(tests: dict[str, str], answer: str = MEAN, locked: str = "", plain: str = ""):
    """Its source: cells that nobody answers, the answer, and a cell of hidden tests for each of `tests`, 2 points."""
    cells = [(None, "", plain)] if plain else []
    cells += [({"locked": True}, "given", locked)] if locked else []
    cells.append(({"solution": True}, "answer", f"### BEGIN SOLUTION\n{answer}\n### END SOLUTION"))
    for name, code in tests.items():
        about = {"grade": True, "locked": True, "points": 2}
        cells.append((about, name, f"### BEGIN HIDDEN TESTS\n{code}\n### END HIDDEN TESTS\n2.0"))
    made = []
    for about, name, code in cells:
        known = {"grade": False, "solution": False, "locked": False, "task": False, "schema_version": 3}
        metadata = {} if about is None else {"nbgrader": known | about | {"grade_id": name}}
        made.append(new_code_cell(code, metadata=metadata))
    return new_notebook(cells=made, metadata={"kernelspec": SPEC})


class OwnCourse(Course):
    """The course, generated; its configuration is this course's, with the assignment's packages."""

    def __init__(self, folder: Path, source, settings: str = ""):
        place = folder / "made" / "source" / NAME / f"{NAME}.ipynb"
        place.parent.mkdir(parents=True)
        nbformat.write(source, place)
        config = (ROOT / "assignments" / "nbgrader_config.py").read_text(encoding="utf-8")
        config += f"c.ExecuteOutside.assignments = {{{NAME!r}: ['numpy']}}\nc.ExecuteOutside.warm = {{}}\n{settings}"
        (folder / "made" / "nbgrader_config.py").write_text(config)
        super().__init__(folder, copied_from=folder / "made")
        self.nbgrader("generate_assignment", NAME)

    def hand_in(self, **answers: str) -> None:
        """Works of students, by their names: what stands in the answer."""
        release = nbformat.read(self.root / "release" / NAME / f"{NAME}.ipynb", as_version=4)
        for student, code in answers.items():
            work = self.root / "submitted" / student / NAME / f"{NAME}.ipynb"
            work.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(filled_in(release, {"answer": code}), work)

    def marks(self) -> dict[str, dict[str, float | None]]:
        """What the gradebook has."""
        with self.gradebook() as gradebook:
            found = {each.student_id: each.notebooks[0].grades for each in gradebook.find_assignment(NAME).submissions}
            return {student: {grade.name: grade.auto_score for grade in grades} for student, grades in found.items()}

    def opened(self):
        """nbgrader with its configuration."""
        return open_course(self.root)
