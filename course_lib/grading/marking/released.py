"""What was released: the cells that nbgrader knows, as the gradebook has them, and the texts between them."""

import re
from typing import NamedTuple

from course_lib._extras import needed
from course_lib.grading.marking.reading import new_cell

with needed("lab"):
    from nbformat import NotebookNode
    from nbgrader.api import Gradebook

DEFINED = re.compile(r"^(?:async )?(?:def|class) +(\w+)", re.MULTILINE)


class Released(NamedTuple):
    """One cell of the released notebook that nbgrader knows."""

    name: str  # its grade id
    cell_type: str
    source: str  # what is graded: a test with its hidden part
    checksum: str
    locked: bool
    answer: bool  # a student writes it
    points: float | None = None  # None where it is not graded
    task: bool = False
    shown: str = ""  # what students got

    @property
    def defines(self) -> set[str]:
        """The functions and classes at the top of the cell."""
        return defined(self.source) if self.cell_type == "code" else set()

    def cell(self, source: str | None = None) -> NotebookNode:
        """This cell as nbgrader would have released it, with another source if one is given."""
        made = new_cell(self.cell_type, self.source if source is None else source)
        made.metadata["nbgrader"] = {
            "schema_version": 3, "grade_id": self.name, "cell_type": self.cell_type, "checksum": self.checksum,
            "grade": self.points is not None and not self.task, "solution": self.answer, "locked": self.locked,
            "task": self.task,
        }  # fmt: skip
        if self.points is not None:
            made.metadata["nbgrader"]["points"] = self.points
        return made


class Release(NamedTuple):
    """A released notebook: the cells that nbgrader knows, in their order, and the texts of the others."""

    cells: list[Released]
    texts: list[str]
    given: dict[str, dict] = {}  # what nbgrader wrote into the cells that students got, by name

    @property
    def named(self) -> dict[str, Released]:
        """All of them by name."""
        return {cell.name: cell for cell in self.cells}

    @property
    def answers(self) -> dict[str, Released]:
        """The cells that a student writes, by name."""
        return {cell.name: cell for cell in self.cells if cell.answer}


def release_of(gradebook: Gradebook, assignment: str, name: str, notebook: NotebookNode | None) -> Release:
    """What the gradebook knows of a notebook; `notebook`, the released one, has the order and the other cells.

    Raises
    ------
    nbgrader.api.MissingEntry : the notebook is not in the gradebook.
    """
    known = gradebook.find_notebook(name, assignment)
    points = {cell.name: cell.max_score for cell in (*known.grade_cells, *known.task_cells)}
    answers, tasks = ({c.name for c in cells} for cells in (known.solution_cells, known.task_cells))
    cells = notebook.cells if notebook else []
    shown = {grade_id(cell): cell.source for cell in cells}
    found = {
        c.name: Released(
            c.name, c.cell_type, c.source, c.checksum, c.locked, c.name in answers, points.get(c.name),
            c.name in tasks, shown.get(c.name, c.source),
        )
        for c in known.source_cells
    }  # fmt: skip
    order = [name for name in map(grade_id, cells) if name in found]
    texts = [cell.source for cell in cells if grade_id(cell) not in found]
    given = {grade_id(cell): dict(cell.metadata["nbgrader"]) for cell in cells if grade_id(cell) in found}
    return Release([found[name] for name in [*order, *(name for name in found if name not in order)]], texts, given)


def grade_id(cell: NotebookNode) -> str | None:
    """The name nbgrader knows a cell by; None where the metadata has no such name."""
    metadata = cell.metadata.get("nbgrader")
    name = metadata.get("grade_id") if isinstance(metadata, dict) else None
    return name.strip() if isinstance(name, str) and name.strip() else None


def defined(source: str) -> set[str]:
    """The functions and classes at the top of some code, which need not be whole."""
    return set(DEFINED.findall(source))


def listed(names: list[str]) -> str:
    """Names of cells as a sentence has them: three of them, and how many more."""
    return ", ".join(names) if len(names) < 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
