"""Questions of an assignment, and what an executed notebook says of those that did not earn all their points."""

import re
from pathlib import Path

from course_lib._extras import needed

with needed("lab"):
    import nbformat
    from nbgrader.api import Gradebook

WHY = 300  # letters of a reason
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
            lines = [line.strip() for text in texts for line in text.splitlines()[1:] or [text] if _lost(line)]
            if question := cell.metadata.get("nbgrader", {}).get("grade_id"):
                found[question] = "; ".join(filter(None, lines))[:WHY]
    return found


def _text(output: nbformat.NotebookNode) -> str:
    """What an output says; of an error all in one line, and of one without words the line that raised it."""
    if output.output_type == "error" and output.evalue:
        return "; ".join(filter(None, map(str.strip, output.evalue.splitlines())))
    if output.output_type == "error":
        pointed = ARROW.search(COLOUR.sub("", "\n".join(output.traceback)))
        return ": ".join([output.ename, *([pointed[1]] if pointed else [])])
    if output.get("name") == "stderr":  # as nbgrader's own Execute leaves it
        return f"text on standard error, {output.text.strip().partition(chr(10))[0]}"
    return output.get("text", "")


def _lost(line: str) -> bool:
    """Whether a line of a report says more than that a test earned all that it is worth."""
    words = line.split()
    return not (len(words) > 2 and words[1] == "of" and words[0] == words[2])
