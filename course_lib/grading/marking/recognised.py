"""Which released cell each cell of a student's notebook is, whatever became of its metadata.

A cell is known by its grade id or, where that is lost, by the functions that it defines, by its words, or by its place.
"""

from course_lib._extras import needed
from course_lib.grading.marking.released import Release, Released, defined, grade_id
from course_lib.grading.marking.strays import is_prose, lines_of

with needed("lab"):
    from nbformat import NotebookNode

ALIKE = 0.6  # of the lines of two cells together; cells of different parts of an assignment stay below


def owners(cells: list[NotebookNode], release: Release) -> dict[int, str]:
    """The place of every recognised cell -> the name of the released cell that it is."""
    owner = {i: grade_id(cell) for i, cell in enumerate(cells) if grade_id(cell) in release.named}
    for place in _misplaced(cells, owner, release):
        del owner[place]
    for look in (_by_definition, _by_words):
        for cell in release.cells:
            held = [cells[i] for i in owner if owner[i] == cell.name]
            if not held or (cell.defines and cell.answer and all(same(each, cell) for each in held)):
                free = [i for i in range(len(cells)) if i not in owner and cells[i].source.strip()]
                place = look(cell, cells, free)
                if place is not None:
                    owner[place] = cell.name
    for number, cell in enumerate(release.cells):
        if cell.answer and cell.cell_type == "markdown":
            for place in _by_place(number, cells, owner, release):
                owner[place] = cell.name
    return dict(sorted(owner.items()))


def released_text(cell: NotebookNode, release: Release) -> str | None:
    """The text of the assignment that somebody wrote into."""
    if cell.cell_type != "markdown":
        return None
    own = lines_of(cell.source)
    whole = [text for text in release.texts if lines_of(text) and lines_of(text) <= own]
    return max(whole, key=len, default=None)


def same(cell: NotebookNode, released: Released) -> bool:
    """Whether a cell is as it was released, whatever its blanks."""
    return squeezed(cell.source) == squeezed(released.source)


def squeezed(source: str) -> str:
    """A text without its blanks."""
    return "".join(source.split())


def _misplaced(cells: list[NotebookNode], owner: dict[int, str], release: Release) -> list[int]:
    """Cells that define nothing of their own answer, but all of another one's, which its own cell does not have."""
    held = {name: [cells[i] for i in owner if owner[i] == name] for name in release.answers}
    wanted = {
        name: cell.defines
        for name, cell in release.answers.items()
        if cell.defines and not any(cell.defines <= defined(c.source) and not same(c, cell) for c in held[name])
    }
    return [
        i
        for i, name in owner.items()
        if name in release.answers
        and (own := release.answers[name].defines)
        and not own & (found := defined(cells[i].source))
        and any(defines <= found for other, defines in wanted.items() if other != name)
    ]


def _by_definition(cell: Released, cells, free: list[int]) -> int | None:
    found = [i for i in free if cell.answer and cell.defines and cell.defines <= defined(cells[i].source)]
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
    if any(owner[i] == cell.name and not same(cells[i], cell) for i in owner):
        return []
    before, after = ({other.name for other in part} for part in (release.cells[:number], release.cells[number + 1 :]))
    first = 1 + max((i for i in owner if owner[i] in before), default=-1)
    end = min((i for i in owner if owner[i] in after and i >= first), default=len(cells))
    texts = {"", *map(squeezed, release.texts)}
    return [
        i
        for i in range(first, end)
        if i not in owner
        and squeezed(cells[i].source) not in texts
        and (cells[i].cell_type != "code" or is_prose(cells[i].source))
    ]
