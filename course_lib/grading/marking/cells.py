"""The student's answers, put into the notebook that was released.

All that nbgrader knows of a cell comes from the gradebook, as does the text of the tests. The student's other cells
stay between the same neighbours; what was written into a cell that is not the student's becomes such a cell.
"""

import ast
import re
import urllib.parse
from collections.abc import Iterable, Sequence

from course_lib._extras import needed
from course_lib.grading.marking.changed import changes
from course_lib.grading.marking.recognised import owners, released_text, same, squeezed
from course_lib.grading.marking.released import Release, Released, defined, grade_id, listed
from course_lib.grading.marking.strays import own_cell, parsed, stray_code, stray_text

with needed("lab"):
    from nbformat import NotebookNode
    from nbformat.v4 import new_code_cell, new_notebook

ELSEWHERE = (
    "*(This cell is as it was released. A text of the student's own may stand elsewhere, or beside the notebook.)*"
)
AS_IS = "!'()*;,/?:@&=+$#"  # what JavaScript's encodeURI leaves of a name


def known_in(notebook: NotebookNode, release: Release) -> tuple[int, int]:
    """How many answers of the release this notebook holds that are not the stub, and how many of its cells in all."""
    cells, _ = _set_apart(notebook.cells, release)
    owner = owners(cells, release)
    known, given = set(owner.values()), {owner[i] for i in owner if not same(cells[i], release.named[owner[i]])}
    inside = set().union(*(defined(cell.source) for cell in cells))
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
    notes += changes(notebook.cells, release)
    owner = owners(cells, release)
    _drop_copies(cells, owner, release)
    holders = {cell.name: [i for i in owner if owner[i] == cell.name] for cell in release.cells}

    for i, name in owner.items():
        if grade_id(cells[i]) in release.named and grade_id(cells[i]) != name:
            notes.append(f"the answer of {name} stood in the cell of {grade_id(cells[i])}")
    unnamed = [name for name, places in holders.items() if any(grade_id(cells[i]) not in release.named for i in places)]
    there = {grade_id(cell) for cell in notebook.cells}
    if lost := [name for name in unnamed if name not in there]:
        notes.append(f"the metadata of {listed(lost)} were lost and restored")
    if beside_it := [name for name in unnamed if name in there]:
        notes.append(f"what is in {listed(beside_it)} stood in a cell of the student's own")
    ends = {name: places[-1] for name, places in holders.items() if places}
    if list(ends.values()) != sorted(ends.values()):
        notes.append("the cells were in another order")

    others = _following(cells, owner, ends)
    texts = {squeezed(text) for text in release.texts}
    inside = any(
        each.cell_type != "code" and squeezed(each.source) not in texts for part in others.values() for each in part
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
        notes.append(f"{listed(missing)} missing and put back")
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
    owner, made, changed = owners(cells, release), [], []
    for i, cell in enumerate(cells):
        made.append(NotebookNode(cell, metadata=NotebookNode(cell.metadata)))
        known = release.named.get(owner.get(i))
        if known and known.answer:
            if grade_id(cell) == known.name:
                continue
            known = None
        text = known.shown if known else released_text(cell, release)
        if text is None or squeezed(text) == squeezed(cell.source):
            continue
        graded = bool(known and known.points is not None)
        is_code = cell.cell_type == "code"
        own = stray_code(cell.source, text, graded) if is_code else stray_text(cell.source, text)
        made[-1].source = text
        if own.strip():
            new = own_cell(own, is_code)
            files = {name: each for name, each in cell.get("attachments", {}).items() if _shown(name).search(own)}
            if files and new.cell_type == "markdown":
                new.attachments = files
            # A test needs the code that is written into it; what is written into any other cell may need that cell.
            made.insert(len(made) - (graded and new.cell_type == "code"), new)
            changed.append(known.name if known else "a text of the assignment")
    notes = [f"what was written into {listed(changed)} has a cell of its own"] if changed else []
    return made, notes


def _drop_copies(cells, owner: dict[int, str], release: Release) -> None:
    """Of several cells with one answer, a copy that is the empty stub, or comes once more below, says nothing."""
    for name in release.answers:
        places = [i for i in owner if owner[i] == name]
        texts = [[line.rstrip() for line in cells[i].source.splitlines() if line.strip()] for i in places]
        stubs = [same(cells[i], release.named[name]) for i in places]
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
        if cell.cell_type == "code":
            *before, last = _versions([part.source for part in own])
            return [*map(new_code_cell, before), cell.cell(last)]
        text, pictures = _joined(own)
        made = cell.cell(text)
        if cell.cell_type == "markdown" and pictures:
            made.attachments = pictures
        return [made]
    if cell.defines and any(cell.defines <= defined(other.source) for other in cells):
        notes.append(f"{cell.name} was handed in inside another cell")
        return [cell.cell("# Handed in inside another cell.")]
    notes.append(f"{cell.name} was missing; its empty stub was put back")
    return [cell.cell()]


def _joined(cells: list[NotebookNode]) -> tuple[str, dict[str, dict]]:
    """Several cells of a written answer as one text, and its pictures: every cell may have an `image.png`."""
    texts, pictures = [], {}
    for cell in cells:
        text, files = cell.source, cell.get("attachments", {})
        for name, picture in files.items():
            new, number = name, 1
            while pictures.get(new, picture) != picture or (new != name and new in files):
                number += 1
                new = f"{number}-{name}"
            if new != name:
                text = _shown(name).sub(lambda found, new=new: f"attachment:{urllib.parse.quote(new)}", text)
            pictures[new] = picture
        texts.append(text)
    return "\n\n".join(texts), pictures


def _shown(picture: str) -> re.Pattern:
    """How a text shows a picture that is attached to its cell."""
    written = picture, urllib.parse.quote(picture), urllib.parse.quote(picture, safe=AS_IS)
    names = "|".join(map(re.escape, written))
    return re.compile(rf"attachment:(?:{names})(?![\w.%-])")


def _versions(parts: list[str]) -> list[str]:
    """Several cells of one answer: each as it is, so that an error in one stops no other; halves are put together.

    What is no Python comes first: whoever marks sees it, and it is never the answer where there is another.
    """
    whole = "\n\n".join(parts)
    if all(map(_stands_alone, parts)) or parsed(whole) is None:
        right = [part for part in parts if parsed(part) is not None]
        return [*(part for part in parts if part not in right), *right] if right else [whole]
    return [whole]


def _stands_alone(source: str) -> bool:
    return parsed(source) is not None and not source.lstrip("\n")[:1].isspace()


def _unwritten(cell: NotebookNode, released: Released) -> bool:
    return not cell.get("attachments") and (same(cell, released) or not cell.source.strip())
