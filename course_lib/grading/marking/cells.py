"""The student's answers, put into the notebook that was released: whatever became of the cells' metadata.

A cell is known by its grade id or, where that is lost, by the functions that it defines, by its words, or by its place.
Everything that nbgrader knows of a cell (points, checksum, type, who may edit it) then comes from the gradebook, as
does the text of the tests. The student's other cells stay where they were, between the same neighbours.
"""

import ast
import re
from typing import NamedTuple

from course_lib._extras import needed
from course_lib.grading.marking.reading import NEW_CELL

with needed("lab"):
    from IPython.core.inputtransformer2 import TransformerManager
    from nbformat import NotebookNode
    from nbformat.v4 import new_notebook
    from nbgrader.api import Gradebook

ALIKE = 0.6  # of the lines of two cells together; cells of different parts of an assignment stay below
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
        return _defined(self.source) if self.cell_type == "code" else set()

    def cell(self, source: str | None = None) -> NotebookNode:
        """This cell as nbgrader would have released it, with another source if one is given."""
        made = NEW_CELL[self.cell_type](self.source if source is None else source)
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
    texts: frozenset[str]

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
    texts = frozenset(_squeezed(cell.source) for cell in cells if grade_id(cell) not in found)
    return Release([found[name] for name in [*order, *(name for name in found if name not in order)]], texts)


def grade_id(cell: NotebookNode) -> str | None:
    """The name nbgrader knows a cell by; None where the metadata has no such name."""
    metadata = cell.metadata.get("nbgrader")
    name = metadata.get("grade_id") if isinstance(metadata, dict) else None
    return name.strip() if isinstance(name, str) and name.strip() else None


def known_in(notebook: NotebookNode, release: Release) -> tuple[int, int]:
    """How many answers of the release this notebook holds that are not the stub, and how many of its cells in all."""
    owner, answers = _owners(notebook.cells, release), release.answers
    given = {name for i, name in owner.items() if name in answers and not _same(notebook.cells[i], answers[name])}
    return len(given), len(set(owner.values()))


def rebuilt(notebook: NotebookNode, release: Release) -> tuple[NotebookNode, list[str]]:
    """The released notebook with the student's answers and other cells, and one sentence for each repair.

    `notebook` is one that `read_notebook` returned; its cells are changed.
    """
    cells, notes = notebook.cells, []
    owner = _owners(cells, release)
    _drop_copies(cells, owner, {cell.name: cell for cell in release.cells})
    holders = {cell.name: [i for i in owner if owner[i] == cell.name] for cell in release.cells}

    lost = [name for name, places in holders.items() if any(grade_id(cells[i]) != name for i in places)]
    if lost:
        notes.append(f"the metadata of {_listed(lost)} were lost and restored")
    ends = {name: places[-1] for name, places in holders.items() if places}
    if list(ends.values()) != sorted(ends.values()):
        notes.append("the cells were in another order")

    others = _following(cells, owner, ends)
    made = others.pop(None, [])
    for cell in release.cells:
        places = holders[cell.name]
        if cell.answer:
            made.append(_answer(cell, [cells[i] for i in places], cells, notes))
            if len(places) > 1:
                notes.append(f"{cell.name} stood in {len(places)} cells; all count")
        else:
            made.append(cell.cell())
        made += others.pop(cell.name, [])
    missing = [cell.name for cell in release.cells if not cell.answer and not holders[cell.name]]
    if missing:
        notes.append(f"{_listed(missing)} missing and put back")
    for number, cell in enumerate(made):
        cell["id"] = f"cell-{number}"
    return new_notebook(cells=made), notes


def _owners(cells: list[NotebookNode], release: Release) -> dict[int, str]:
    """The place of every recognised cell -> the name of the released cell that it is."""
    by_name = {cell.name: cell for cell in release.cells}
    owner = {i: grade_id(cell) for i, cell in enumerate(cells) if grade_id(cell) in by_name}
    for look in (_by_definition, _by_words):
        for cell in release.cells:
            if cell.name not in owner.values():
                free = [i for i in range(len(cells)) if i not in owner and cells[i].source.strip()]
                place = look(cell, cells, free)
                if place is not None:
                    owner[place] = cell.name
    for number, cell in enumerate(release.cells):
        if cell.answer and cell.cell_type == "markdown":
            for place in _by_place(number, cells, owner, release):
                owner[place] = cell.name
    return dict(sorted(owner.items()))


def _by_definition(cell: Released, cells, free: list[int]) -> int | None:
    found = [i for i in free if cell.answer and cell.defines and cell.defines <= _defined(cells[i].source)]
    return found[-1] if found else None  # of several versions the last is the one that counts in Python, too


def _by_words(cell: Released, cells, free: list[int]) -> int | None:
    best, place = ALIKE, None
    lines = _lines(cell.shown)
    for i in [] if cell.answer and cell.defines else free:
        own = _lines(cells[i].source)
        alike = len(lines & own) / len(lines | own) if own else 0.0
        if alike > best:
            best, place = alike, i
    return place


def _by_place(number: int, cells, owner: dict[int, str], release: Release) -> list[int]:
    """A written answer shares no word with its stub: it is the text between the neighbours that are known.

    Where the stub stands as it was released, the answer may have been written below it.
    """
    cell = release.cells[number]
    held = [i for i in owner if owner[i] == cell.name]
    if any(not _same(cells[i], cell) for i in held):
        return []
    before, after = ({other.name for other in part} for part in (release.cells[:number], release.cells[number + 1 :]))
    first = 1 + max(held or [i for i in owner if owner[i] in before], default=-1)
    end = min((i for i in owner if owner[i] in after and i >= first), default=len(cells))
    return [
        i
        for i in range(first, end)
        if i not in owner and cells[i].cell_type != "code" and _squeezed(cells[i].source) not in {"", *release.texts}
    ]


def _drop_copies(cells, owner: dict[int, str], released: dict[str, Released]) -> None:
    """Of several cells with one name, a copy that is the empty stub, or the same again, says nothing."""
    for name in set(owner.values()):
        places = [i for i in owner if owner[i] == name]
        texts = [_squeezed(cells[i].source) for i in places]
        stub = _squeezed(released[name].source)
        answered = any(text != stub for text in texts)
        for n, i in enumerate(places):
            if (texts[n] == stub and answered) or texts[n] in texts[:n]:
                del owner[i]
                cells[i].source = ""


def _following(cells, owner: dict[int, str], ends: dict[str, int]) -> dict[str | None, list[NotebookNode]]:
    """The student's own cells, by the known cell that they follow (None: the beginning)."""
    found: dict[str | None, list[NotebookNode]] = {}
    anchor = None
    for i, cell in enumerate(cells):
        if i in owner:
            anchor = owner[i] if ends[owner[i]] == i else anchor
        elif cell.source.strip():
            cell.metadata.pop("nbgrader", None)
            found.setdefault(anchor, []).append(cell)
    return found


def _answer(cell: Released, own: list[NotebookNode], cells, notes: list[str]) -> NotebookNode:
    if own:
        parts = [part.source for part in own]
        made = cell.cell("\n\n".join(parts) if cell.cell_type != "code" else _joined(parts))
        pictures = {name: files for part in own for name, files in part.get("attachments", {}).items()}
        if cell.cell_type == "markdown" and pictures:
            made.attachments = pictures
        return made
    if cell.defines and any(cell.defines <= _defined(other.source) for other in cells):
        notes.append(f"{cell.name} was handed in inside another cell")
        return cell.cell("# Handed in inside another cell.")
    notes.append(f"{cell.name} was missing; its empty stub was put back")
    return cell.cell()


def _joined(parts: list[str]) -> str:
    """One cell of several: two halves of a function, or versions of which an old one may be no Python."""
    whole = "\n\n".join(parts)
    return whole if _is_python(whole) else "\n\n".join(filter(_is_python, parts)) or whole


def _is_python(source: str) -> bool:
    try:
        ast.parse(TransformerManager().transform_cell(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _lines(source: str) -> set[str]:
    return {line.strip() for line in source.splitlines() if line.strip()}


def _defined(source: str) -> set[str]:
    return set(DEFINED.findall(source))


def _same(cell: NotebookNode, released: Released) -> bool:
    return _squeezed(cell.source) == _squeezed(released.source)


def _squeezed(source: str) -> str:
    return "".join(source.split())


def _listed(names: list[str]) -> str:
    return ", ".join(names) if len(names) < 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
