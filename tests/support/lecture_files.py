"""Reading lectures: their cells, the numbers that their prose quotes, and the numbers that their cells printed."""

import re
from pathlib import Path
from typing import NamedTuple

import nbformat

from course_lib.lecture.show import CLAIM

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
LECTURES = sorted(NOTEBOOKS.glob("[0-9][0-9]-*.ipynb"))
EXECUTED = sorted(NOTEBOOKS.glob("*.ipynb"))  # the lectures, and pages that run as they do

NUMBER = r"[-\u2212]?\d[\d,]*(?:\.\d+)?"
QUOTED = re.compile(rf"(?P<number>{NUMBER})(?P<percent>\s?%)?<!--\s*(?P<name>\w+)\s*-->")


class Quote(NamedTuple):
    """A number in the prose with the name of the claim that it quotes; a percentage has become a fraction."""

    name: str
    value: float
    half_digit: float  # half of the last digit that the prose gives
    text: str


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def prose(notebook) -> str:
    """The Markdown cells up to the references, one after the other.

    Without the descriptions of live figures: `book/draw_live.py` computes their numbers, and a test holds them to it.
    """
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    text = re.sub(r"^!\[[^\]]*\]\(live/[\w-]+\.svg\)$", "", text, flags=re.MULTILINE)
    return re.sub(r"^## References\n.*?(?=^## |\Z)", "", text, flags=re.MULTILINE | re.DOTALL)


def claims(notebook) -> dict[str, float]:
    """The numbers that `course_lib.lecture.show.claims` kept in the committed outputs of executed cells.

    A number counts only in a cell that calls `claims` with its name, so that none can be written in by hand.

    Raises
    ------
    ValueError : a name claimed twice.
    """
    found: dict[str, float] = {}
    for cell in notebook.cells:
        if cell.cell_type != "code" or cell.execution_count is None or "claims(" not in cell.source:
            continue
        for output in cell.get("outputs", []):
            claim = output.get("data", {}).get(CLAIM)
            if claim is None or not re.search(rf"\b{claim['name']}\s*=|\*\*", cell.source):
                continue
            if claim["name"] in found:
                raise ValueError(f"{claim['name']!r} is claimed twice; give each number a name of its own")
            found[claim["name"]] = float(claim["value"])
    return found


def quotes(text: str) -> list[Quote]:
    """The numbers of a text that are followed by `<!--name-->`."""
    found = []
    for match in QUOTED.finditer(text):
        digits = match["number"].replace(",", "").replace("\u2212", "-")
        decimals = len(digits.partition(".")[2])
        scale = 0.01 if match["percent"] else 1.0
        found.append(Quote(match["name"], float(digits) * scale, 0.5 * 10.0**-decimals * scale, match[0]))
    return found


def loose_numbers(text: str) -> list[str]:
    """The decimal numbers and percentages of a text that quote no claim.

    Not counted: mathematics, code, addresses of links, and the numbers of sections, equations and versions.
    """
    for pattern in (
        r"```.*?```|~~~.*?~~~",  # code blocks, then maths, before code spans, which may hold a dollar sign
        r"`[^`]*`",
        r"\$\$.*?\$\$",
        r"\$[^$]*\$",
        r"\]\([^)]*\)|<https?://[^>]*>|https?://\S+",
        r"\b(?:section|equation|table|figure|version|Python)s? \d+(?:\.\d+)+(?:(?:,| and| to) \d+(?:\.\d+)+)*",
    ):
        text = re.sub(pattern, " ", text, flags=re.DOTALL)
    text = QUOTED.sub(" ", text)
    return re.findall(rf"{NUMBER}\s?(?:%|per ?cent\b)|[-\u2212]?\d[\d,]*\.\d+", text)
