"""Sphinx extension: ``{lecture-mistakes}`` lists the mistakes that the lectures show, read from the lectures.

A lecture has a section "What goes wrong", in which each mistake begins with its name in bold, and the cells below make
it. The list has the name, what the lecture says of it, and, folded, the cells and what they printed.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from course_map import ROOT, Computed, lectures, with_titles
from sphinx.application import Sphinx

HEADING = "## What goes wrong"
NAMED = re.compile(r"(?:\d+\. |- )?\*\*(.+?)\*\*(.*)", re.DOTALL)
UNSHOWN = {"remove-cell", "remove-input", "solution"}


@dataclass
class Mistake:
    """One of a lecture: its name, the paragraphs about it, and the code and the output of the cells that make it."""

    name: str
    text: list[str] = field(default_factory=list)
    cells: list[tuple[str, str]] = field(default_factory=list)


def mistakes(path: Path) -> list[Mistake]:
    """Those that a lecture shows, in their order; cells before the first belong to one more, which has no name."""
    found, inside = [Mistake("")], False
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            if inside and not UNSHOWN & set(cell.metadata.get("tags", [])):
                printed = "".join(output.get("text", "") for output in cell.outputs)
                found[-1].cells.append((cell.source, printed.rstrip()))
            continue
        for paragraph in re.split(r"\n\n+|\n(?=\d+\. |- )", cell.source.strip()):
            if paragraph.startswith("## "):
                inside = paragraph.startswith(HEADING)
            elif inside and (named := NAMED.match(paragraph)):
                found.append(Mistake(" ".join(named[1].split()), [" ".join(named[2].split())]))
            elif inside and found[-1].name:
                found[-1].text.append(paragraph)
    return found


def shown(cells: list[tuple[str, str]]) -> list[str]:
    """Cells and what they printed, folded, in MyST."""
    if not cells:
        return []
    lines = ["````{dropdown} The code, and what it prints", ""]
    for source, printed in cells:
        lines += ["```python", *source.splitlines(), "```", ""]
        lines += ["```text", *printed.splitlines(), "```", ""] if printed else []
    return [*lines, "````", ""]


def moved(text: str) -> str:
    """A paragraph of a lecture as it can stand elsewhere: a cell that it leads to and its links are not beside it."""
    text = re.sub(r":$", ".", text)
    return re.sub(r"\]\(\.\./book/", "](/book/", re.sub(r"\]\((?=\d\d-)", "](/notebooks/", text))


def listing() -> list[str]:
    """The mistakes of all lectures, in MyST. Raises ValueError for a lecture that shows none."""
    lines = []
    for lecture in lectures().values():
        before, *named = mistakes(ROOT / "notebooks" / f"{lecture.stem}.ipynb")
        if not named:
            raise ValueError(f"{lecture.stem} has no mistake in bold below {HEADING!r}")
        place = f"/notebooks/{lecture.stem}.ipynb#what-goes-wrong"
        lines += ["{.rubric}", f"[{lecture.number} {lecture.title}]({place})", ""]
        lines += shown(before.cells)
        for mistake in named:
            first, *more = [with_titles(moved(text), lecture.numbers) for text in mistake.text]
            lines += [f"**{mistake.name}** {first}", "", *shown(mistake.cells)]
            lines += [line for text in more for line in (*text.splitlines(), "")]
    return lines


class LectureMistakes(Computed):
    def lines(self) -> list[str]:
        return listing()


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("lecture-mistakes", LectureMistakes)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
