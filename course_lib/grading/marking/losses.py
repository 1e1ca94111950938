"""Questions of an assignment, and what an executed notebook says of those that did not earn all their points."""

import itertools
import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

from course_lib._extras import needed

with needed("lab"):
    import nbformat
    from nbgrader.api import Gradebook

WHY = 300  # letters of a reason
WIDTH = 80  # at which `CheckFailed` wraps its lines
REASON = " " * 12  # before each line of a reason, in a report of `Score`
ARROW = re.compile(r"^-+> *\d+ +(.+)$", re.MULTILINE)  # where IPython's traceback points
COLOUR = re.compile(r"\x1b\[[\d;]*m")


def asked_of(gradebook: Gradebook, assignment: str) -> dict[tuple[str, str], float]:
    """The points of each question that carries some, and that no person must mark, by its notebook and its name."""
    found = {}
    for notebook in gradebook.find_assignment(assignment).notebooks:
        by_hand = {cell.name for cell in notebook.solution_cells}
        cells = [cell for cell in notebook.grade_cells if cell.max_score and cell.name not in by_hand]
        found |= {(notebook.name, cell.name): cell.max_score for cell in cells}
    return found


def losses(folder: Path) -> dict[str, str]:
    """What the executed notebooks say of each question that did not earn everything."""
    found = {}
    for path in sorted(folder.glob("*.ipynb")):
        try:
            cells = nbformat.read(path, as_version=4).cells
        except (OSError, ValueError):  # of a notebook that somebody else wrote, and no mark hangs on it
            continue
        for cell in cells:
            texts = [_text(output) for output in cell.get("outputs", [])]
            lines = [line.strip() for text in texts for line in _report(text) if _lost(line)]
            if question := cell.metadata.get("nbgrader", {}).get("grade_id"):
                found[question] = "; ".join(filter(None, lines))[:WHY]
    return found


def _text(output: nbformat.NotebookNode) -> str:
    """What an output says; of an error all in one line, and of one without words the line that raised it."""
    if output.output_type == "error" and output.evalue:
        return "; ".join(filter(None, map(str.strip, _unwrapped(output.evalue.splitlines()))))
    if output.output_type == "error":
        pointed = ARROW.search(COLOUR.sub("", "\n".join(output.traceback)))
        return ": ".join([output.ename, *([pointed[1]] if pointed else [])])
    if output.get("name") == "stderr":  # as nbgrader's own Execute leaves it
        return f"text on standard error, {output.text.strip().partition(chr(10))[0]}"
    return output.get("text", "")


def _report(text: str) -> list[str]:
    """The lines of what a cell of tests says, without the points of the whole."""
    found = []
    for is_reason, lines in itertools.groupby(text.splitlines()[1:] or [text], lambda line: line.startswith(REASON)):
        these = [line.removeprefix(REASON) for line in lines]
        found += _unwrapped(these) if is_reason else these
    return found


def _unwrapped(lines: Iterable[str]) -> list[str]:
    """Lines as they were written: two of which wrapping would make these two again are one."""
    found, before = [], ""
    for line in lines:
        for between in ("", " "):  # it breaks words, too, at a hyphen or where they are long
            if textwrap.wrap(before + between + line, WIDTH) == [before, line]:
                found[-1] += between + line
                break
        else:
            found.append(line)
        before = line
    return found


def _lost(line: str) -> bool:
    """Whether a line of a report says more than that a test earned all that it is worth."""
    words = line.split()
    return not (len(words) > 2 and words[1] == "of" and words[0] == words[2])
