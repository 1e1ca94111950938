"""What a student changed of that which only the course writes: it has no effect, but whoever grades is told."""

import ast
import html
import re
from collections.abc import Iterable

from course_lib._extras import needed
from course_lib.grading.marking.recognised import owners
from course_lib.grading.marking.record import KIND, POINTS, READ_ONLY, TEST, UNLOCKED
from course_lib.grading.marking.released import Release, Released, grade_id, listed
from course_lib.grading.marking.strays import lines_of, parsed, stray_code

with needed("lab"):
    from nbformat import NotebookNode
    from nbgrader.utils import compute_checksum

EARLIER = "a cell is that of another release, and the present one counts"
TYPESET = str.maketrans("‘’“”\u00a0", "''\"\" ")  # what a program for texts makes of code, and what it was
DAMAGE = re.compile(r"\\(?:x..|u....|[nt])|[^!-~]|\?")  # what a conversion may do to texts in code, and layout


def changes(cells: list[NotebookNode], release: Release) -> list[str]:
    """One sentence for each way in which what only the course writes was changed; nothing of it has an effect.

    It is no change where cells mean what the released one means, however they are laid out, commented, cut in pieces
    or damaged in their letters, and none where a cell is as another release had it. What was written into one besides,
    and has a cell of its own, is none either.
    """
    held: dict[str | None, list[NotebookNode]] = {}
    for cell in cells:
        held.setdefault(grade_id(cell), []).append(cell)
    if release.given.keys() - held:  # some have lost their names
        for i, name in owners(cells, release).items():
            held.setdefault(name, [cells[i]])
    found: dict[str, list[str]] = {}
    for name, known in release.named.items():
        given, own = release.given.get(name), held.get(name)
        if not given or not own:
            continue
        named = [cell for cell in own if grade_id(cell) == name]
        if any(_is_of_another_release(cell, known, given) for cell in named):
            found.setdefault(EARLIER, []).append(name)
            continue
        said = {sentence for cell in named for sentence in _other_marks(cell.metadata["nbgrader"], given)}
        if not known.answer and known.cell_type == "code" and _means_another(own, known, cells):
            said.add(READ_ONLY if known.points is None else TEST)
        for sentence in said:
            found.setdefault(sentence, []).append(name)
    return [f"{sentence}: {listed(names)!r}" for sentence, names in sorted(found.items())]


def _is_of_another_release(cell: NotebookNode, known: Released, given: dict) -> bool:
    """Whether its metadata are those of a cell that students once got; one that is not theirs is as it was then."""
    checksum = cell.metadata["nbgrader"].get("checksum")
    if not isinstance(checksum, str) or checksum == given.get("checksum"):
        return False
    try:
        return known.answer or compute_checksum(cell) == checksum
    except (KeyError, TypeError, ValueError):
        return False


def _other_marks(marks: dict, given: dict) -> Iterable[str]:
    """What is other in nbgrader's metadata. What is missing there, or of another type, was lost and not changed."""
    if type(marks.get("points")) in (int, float) and marks["points"] != given.get("points"):
        yield POINTS
    if marks.get("locked") is False and given.get("locked") is True:
        yield UNLOCKED
    if any(marks.get(key) is (not given.get(key)) for key in ("grade", "solution", "task")):
        yield KIND


def _means_another(own: list[NotebookNode], known: Released, cells: list[NotebookNode]) -> bool:
    """Whether the cells of one name lack what was released, or have more of it than is taken out of them."""
    texts = [cell.source for cell in own]
    if all(_without_ends(text) == _without_ends(known.shown) for text in texts):
        return False
    wanted, *there = map(_statements, (known.shown, *texts))
    if wanted is None or None in there:
        return not _lines(known.shown) <= set().union(*(_lines(cell.source) for cell in cells))
    taken = [_statements(stray_code(text, known.shown, known.points is not None)) or set() for text in texts]
    if set().union(*there) - wanted - set().union(*taken):
        return True
    lost = wanted - set().union(*there)
    return bool(lost) and not lost <= set().union(*(_statements(cell.source) or set() for cell in cells))


def _statements(source: str) -> set[str] | None:
    """What the statements of a cell mean, whatever their layout and damaged letters; None where nobody can tell."""
    tree = parsed(html.unescape(source).translate(TYPESET))
    try:
        return tree and {DAMAGE.sub("", ast.dump(statement)) for statement in tree.body}
    except RecursionError:  # it is nested too deeply
        return None


def _lines(source: str) -> set[str]:
    return {DAMAGE.sub("", line) for line in lines_of(html.unescape(source).translate(TYPESET))}


def _without_ends(source: str) -> list[str]:
    return [line.rstrip() for line in source.splitlines() if line.strip()]
