"""The student's answers, put into the notebook that was released: whatever became of the cells' metadata.

A cell is known by its grade id or, where that is lost, by the functions that it defines, by its words, or by its place.
Everything that nbgrader knows of a cell (points, checksum, type, who may edit it) then comes from the gradebook, as
does the text of the tests. The student's other cells stay where they were, between the same neighbours; what was
written into a cell that is not the student's becomes such a cell.
"""

import ast
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from course_lib._extras import needed
from course_lib.grading.marking.reading import NEW_CELL
from course_lib.grading.marking.strays import is_prose, lines_of, own_cell, parsed, stray_code, stray_text

with needed("lab"):
    from nbformat import NotebookNode
    from nbformat.v4 import new_code_cell, new_notebook
    from nbgrader.api import Gradebook

ELSEWHERE = (
    "*(This cell is as it was released. A text of the student's own may stand elsewhere, or beside the notebook.)*"
)
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
    texts: list[str]

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
    return Release([found[name] for name in [*order, *(name for name in found if name not in order)]], texts)


def grade_id(cell: NotebookNode) -> str | None:
    """The name nbgrader knows a cell by; None where the metadata has no such name."""
    metadata = cell.metadata.get("nbgrader")
    name = metadata.get("grade_id") if isinstance(metadata, dict) else None
    return name.strip() if isinstance(name, str) and name.strip() else None


def known_in(notebook: NotebookNode, release: Release) -> tuple[int, int]:
    """How many answers of the release this notebook holds that are not the stub, and how many of its cells in all."""
    cells, _ = _set_apart(notebook.cells, release)
    owner = _owners(cells, release)
    known, given = set(owner.values()), {owner[i] for i in owner if not _same(cells[i], release.named[owner[i]])}
    inside = set().union(*(_defined(cell.source) for cell in cells))
    merged = {name for name, cell in release.answers.items() if cell.defines and cell.defines <= inside} - known
    return len(given & {*release.answers}) + len(merged), len(known | merged)


def belongs(notebook: NotebookNode, release: Release) -> bool:
    """Whether it is this assignment's: it holds half of the cells, or half of the answers. One cell is no evidence."""
    answers, known = known_in(notebook, release)
    return 2 * known >= len(release.cells) or 2 * answers >= max(len(release.answers), 1)


def rebuilt(notebook: NotebookNode, release: Release, beside: Sequence[str] = ()) -> tuple[NotebookNode, list[str]]:
    """The released notebook with the student's answers and other cells, and one sentence for each repair.

    `notebook` is one that `read_notebook` returned, `beside` names the files in which a written answer may stand.
    """
    cells, notes = _set_apart(notebook.cells, release)
    owner = _owners(cells, release)
    _drop_copies(cells, owner, release)
    holders = {cell.name: [i for i in owner if owner[i] == cell.name] for cell in release.cells}

    for i, name in owner.items():
        if grade_id(cells[i]) in release.named and grade_id(cells[i]) != name:
            notes.append(f"the answer of {name} stood in the cell of {grade_id(cells[i])}")
    lost = [name for name, places in holders.items() if any(grade_id(cells[i]) not in release.named for i in places)]
    if lost:
        notes.append(f"the metadata of {_listed(lost)} were lost and restored")
    ends = {name: places[-1] for name, places in holders.items() if places}
    if list(ends.values()) != sorted(ends.values()):
        notes.append("the cells were in another order")

    others = _following(cells, owner, ends)
    texts = {_squeezed(text) for text in release.texts}
    inside = any(
        each.cell_type != "code" and _squeezed(each.source) not in texts for part in others.values() for each in part
    )
    elsewhere = [*["the student wrote texts elsewhere"][:inside], *(f"{file!r} lies beside it" for file in beside[:3])]
    made = others.pop(None, [])
    for cell in release.cells:
        places = holders[cell.name]
        if cell.answer:
            made += _answer(cell, [cells[i] for i in places], cells, notes)
            if len(places) > 1:
                notes.append(f"{cell.name} stood in {len(places)} cells; all count")
            if elsewhere and cell.cell_type == "markdown" and _unwritten(made[-1], cell):
                made[-1].source += f"\n\n{ELSEWHERE}"  # so that a person looks, and nbgrader gives no zero
                notes.append(f"{cell.name} is empty, but {' and '.join(elsewhere)}: look for it")
        else:
            made.append(cell.cell())
        made += others.pop(cell.name, [])
    missing = [cell.name for cell in release.cells if not cell.answer and not holders[cell.name]]
    if missing:
        notes.append(f"{_listed(missing)} missing and put back")
    for number, cell in enumerate(made):
        cell["id"] = f"cell-{number}"
    return new_notebook(cells=made), notes


def unwritten(notebook: NotebookNode, release: Release) -> bool:
    """Whether every answer of a rebuilt notebook is empty, or as it was released."""
    answers = [cell for cell in notebook.cells if grade_id(cell) in release.answers]
    return bool(answers) and all(_unwritten(cell, release.named[grade_id(cell)]) for cell in answers)


def imported(sources: Iterable[str]) -> set[str]:
    """The modules that code imports, without what stands behind a point."""
    found = set()
    for node in (node for source in sources for node in ast.walk(parsed(source) or ast.Module())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        found |= {name.partition(".")[0] for name in names}
    return found


def _set_apart(cells: list[NotebookNode], release: Release) -> tuple[list[NotebookNode], list[str]]:
    """Copies of the cells, in which what the student wrote into a cell of the course's stands in a cell of its own."""
    owner, made, changed = _owners(cells, release), [], []
    for i, cell in enumerate(cells):
        made.append(NotebookNode(cell, metadata=NotebookNode(cell.metadata)))
        known = release.named.get(owner.get(i))
        if known and known.answer:
            if grade_id(cell) == known.name:
                continue
            known = None
        text = known.shown if known else _released_text(cell, release)
        if text is None or _squeezed(text) == _squeezed(cell.source):
            continue
        graded = bool(known and known.points is not None)
        is_code = cell.cell_type == "code"
        own = stray_code(cell.source, text, graded) if is_code else stray_text(cell.source, text)
        made[-1].source = text
        if own.strip():
            new = own_cell(own, is_code)
            # A test needs the code that is written into it; what is written into any other cell may need that cell.
            made.insert(len(made) - (graded and new.cell_type == "code"), new)
            changed.append(known.name if known else "a text of the assignment")
    notes = [f"what was written into {_listed(changed)} has a cell of its own"] if changed else []
    return made, notes


def _released_text(cell: NotebookNode, release: Release) -> str | None:
    """The text of the assignment that somebody wrote into."""
    if cell.cell_type != "markdown":
        return None
    own = lines_of(cell.source)
    whole = [text for text in release.texts if lines_of(text) and lines_of(text) <= own]
    return max(whole, key=len, default=None)


def _owners(cells: list[NotebookNode], release: Release) -> dict[int, str]:
    """The place of every recognised cell -> the name of the released cell that it is."""
    owner = {i: grade_id(cell) for i, cell in enumerate(cells) if grade_id(cell) in release.named}
    for place in _misplaced(cells, owner, release):
        del owner[place]
    for look in (_by_definition, _by_words):
        for cell in release.cells:
            held = [cells[i] for i in owner if owner[i] == cell.name]
            if not held or (cell.defines and cell.answer and all(_same(each, cell) for each in held)):
                free = [i for i in range(len(cells)) if i not in owner and cells[i].source.strip()]
                place = look(cell, cells, free)
                if place is not None:
                    owner[place] = cell.name
    for number, cell in enumerate(release.cells):
        if cell.answer and cell.cell_type == "markdown":
            for place in _by_place(number, cells, owner, release):
                owner[place] = cell.name
    return dict(sorted(owner.items()))


def _misplaced(cells: list[NotebookNode], owner: dict[int, str], release: Release) -> list[int]:
    """Cells that define nothing of their own answer, but all of another one's, which its own cell does not have."""
    held = {name: [cells[i] for i in owner if owner[i] == name] for name in release.answers}
    wanted = {
        name: cell.defines
        for name, cell in release.answers.items()
        if cell.defines and not any(cell.defines <= _defined(c.source) and not _same(c, cell) for c in held[name])
    }
    return [
        i
        for i, name in owner.items()
        if name in release.answers
        and (own := release.answers[name].defines)
        and not own & (found := _defined(cells[i].source))
        and any(defines <= found for other, defines in wanted.items() if other != name)
    ]


def _by_definition(cell: Released, cells, free: list[int]) -> int | None:
    found = [i for i in free if cell.answer and cell.defines and cell.defines <= _defined(cells[i].source)]
    return found[-1] if found else None  # of several versions the last is the one that counts in Python, too


def _by_words(cell: Released, cells, free: list[int]) -> int | None:
    best, place = ALIKE, None
    lines = lines_of(cell.shown)
    for i in [] if cell.answer and cell.defines else free:
        own = lines_of(cells[i].source)
        alike = len(lines & own) / len(lines | own) if own else 0.0
        if alike > best:
            best, place = alike, i
    return place


def _by_place(number: int, cells, owner: dict[int, str], release: Release) -> list[int]:
    """A written answer shares no word with its stub: it is the text between the neighbours that are known.

    Where the stub stands as it was released, the answer may have been written above or below it.
    """
    cell = release.cells[number]
    if any(owner[i] == cell.name and not _same(cells[i], cell) for i in owner):
        return []
    before, after = ({other.name for other in part} for part in (release.cells[:number], release.cells[number + 1 :]))
    first = 1 + max((i for i in owner if owner[i] in before), default=-1)
    end = min((i for i in owner if owner[i] in after and i >= first), default=len(cells))
    texts = {"", *map(_squeezed, release.texts)}
    return [
        i
        for i in range(first, end)
        if i not in owner
        and _squeezed(cells[i].source) not in texts
        and (cells[i].cell_type != "code" or is_prose(cells[i].source))
    ]


def _drop_copies(cells, owner: dict[int, str], release: Release) -> None:
    """Of several cells with one answer, a copy that is the empty stub, or comes once more below, says nothing."""
    for name in release.answers:
        places = [i for i in owner if owner[i] == name]
        texts = [[line.rstrip() for line in cells[i].source.splitlines() if line.strip()] for i in places]
        stubs = [_same(cells[i], release.named[name]) for i in places]
        for n, i in enumerate(places):
            if (stubs[n] and not all(stubs)) or texts[n] in texts[n + 1 :]:
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


def _answer(cell: Released, own: list[NotebookNode], cells, notes: list[str]) -> list[NotebookNode]:
    """The cell with the student's answer, last, after what else the answer is made of."""
    if own:
        parts = [part.source for part in own]
        if cell.cell_type == "code":
            *before, last = _versions(parts)
            return [*map(new_code_cell, before), cell.cell(last)]
        made = cell.cell("\n\n".join(parts))
        pictures = {name: files for part in own for name, files in part.get("attachments", {}).items()}
        if cell.cell_type == "markdown" and pictures:
            made.attachments = pictures
        return [made]
    if cell.defines and any(cell.defines <= _defined(other.source) for other in cells):
        notes.append(f"{cell.name} was handed in inside another cell")
        return [cell.cell("# Handed in inside another cell.")]
    notes.append(f"{cell.name} was missing; its empty stub was put back")
    return [cell.cell()]


def _versions(parts: list[str]) -> list[str]:
    """Several cells of one answer: each as it is, so that an error in one stops no other; halves are put together."""
    whole = "\n\n".join(parts)
    if all(map(_stands_alone, parts)) or parsed(whole) is None:
        return [*(part for part in parts if parsed(part) is not None)] or [whole]
    return [whole]


def _stands_alone(source: str) -> bool:
    return parsed(source) is not None and not source.lstrip("\n")[:1].isspace()


def _defined(source: str) -> set[str]:
    return set(DEFINED.findall(source))


def _same(cell: NotebookNode, released: Released) -> bool:
    return _squeezed(cell.source) == _squeezed(released.source)


def _unwritten(cell: NotebookNode, released: Released) -> bool:
    return not cell.get("attachments") and (_same(cell, released) or not cell.source.strip())


def _squeezed(source: str) -> str:
    return "".join(source.split())


def _listed(names: list[str]) -> str:
    return ", ".join(names) if len(names) < 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
