"""The page of mistakes lists those of the lectures, each with what is said of it and the cells that make it."""

import re
import sys
from pathlib import Path

import nbformat
import pytest

from tests.support.lecture_files import LECTURES, prose, read

sys.path.insert(0, str(Path(__file__).parents[2] / "book" / "_ext"))
import lecture_mistakes
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

CELLS = [
    new_markdown_cell("# T\n\n**Not one of them.** x"),
    new_markdown_cell("## What goes wrong\n\nSeldom an error.\n\n**The axis\nis wrong.** See [it](21-x.ipynb):"),
    new_code_cell("1 / 2", outputs=[new_output("stream", name="stdout", text="0.5\n")]),
    new_code_cell("claims(a=1)", metadata={"tags": ["remove-cell"]}),
    new_markdown_cell("Half of it is 0.5<!--a-->.\n\n1. **Another.** Text\n2. **A third.** More"),
    new_markdown_cell("## Exercises\n\n**Not this.**"),
    new_code_cell("no"),
]


@pytest.fixture
def path(tmp_path):
    nbformat.write(new_notebook(cells=CELLS), tmp_path / "one.ipynb")
    return tmp_path / "one.ipynb"


def test_a_mistake_is_its_name_its_text_and_its_cells(path):
    before, *found = lecture_mistakes.mistakes(path)
    assert [mistake.name for mistake in found] == ["The axis is wrong.", "Another.", "A third."]
    assert found[0].text == ["See [it](21-x.ipynb):", "Half of it is 0.5<!--a-->."] and found[1].text == ["Text"]
    assert found[0].cells == [("1 / 2", "0.5")] and not (before.cells or found[1].cells or found[2].cells)


def test_what_is_moved_points_to_where_it_did():
    assert lecture_mistakes.moved("See [it](21-x.ipynb#a):") == "See [it](/notebooks/21-x.ipynb#a)."
    assert lecture_mistakes.moved("[N](../book/notation.md): x") == "[N](/book/notation.md): x"


@pytest.mark.parametrize("lecture", LECTURES, ids=lambda path: path.stem)
def test_every_lecture_shows_mistakes_and_all_of_them_are_listed(lecture):
    section = prose(read(lecture)).partition("\n## What goes wrong\n")[2].partition("\n## ")[0]
    bold = re.findall(r"^(?:\d+\. |- )?\*\*", section, flags=re.MULTILINE)
    _, *found = lecture_mistakes.mistakes(lecture)
    assert len(found) == len(bold) >= 2
    assert all(mistake.text[0] for mistake in found)


def test_the_list_names_every_lecture(monkeypatch):
    lines = lecture_mistakes.listing()
    assert [path.stem for path in LECTURES if f"/notebooks/{path.stem}.ipynb#what-goes-wrong" not in str(lines)] == []
    monkeypatch.setattr(lecture_mistakes, "mistakes", lambda path: [lecture_mistakes.Mistake("")])
    with pytest.raises(ValueError, match="has no mistake in bold"):
        lecture_mistakes.listing()
