"""The countable rules of a lecture hold: its size, its times, its words, its citations, its diagram, its way on."""

import re

import nbformat
import pytest
import yaml

from tests.execute import GUARD
from tests.support import guide
from tests.support.lecture_files import LECTURES, NOTEBOOKS, read

TOC = yaml.safe_load((NOTEBOOKS.parent / "_toc.yml").read_text(encoding="utf-8"))
ORDER = [
    page["file"].removeprefix("notebooks/")
    for part in TOC["parts"]
    for page in part["chapters"]
    if re.match(r"notebooks/\d\d-", page["file"])
]
FOLLOWING = dict(zip(ORDER, [*ORDER[1:], None], strict=True))


def test_the_contents_list_every_lecture_in_order():
    assert [path.stem for path in LECTURES] == ORDER


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_a_lecture_keeps_to_the_guide(path):
    found = guide.faults(read(path), FOLLOWING.get(path.stem))
    assert not found, "\n".join(found)


BEGINNING = """# A question

Why? **Time:** about 5 minutes to read, 1 h 15 min of exercises. See [Vaswani et al. (2017)](https://arxiv.org/abs/1),
[Xiong et al. (2020)](https://arxiv.org/abs/2) and [Ba et al. (2016)](https://arxiv.org/abs/3).

![A drawing of the mechanism, described in enough words.](diagrams/heads.svg)"""
EXERCISES = """## Exercises

### Check your understanding

#### 1. With a pencil (★, 15 min)

Say it. *Hand in:* a number.

### Extend the code

#### 2. Write it (★★, 40 min)

*Hand in:* a function.

### An open question

#### 3. Is it so? (★★★, 20 min)

*Hand in:* half a page."""
END = """## References

- Vaswani (2017). [One](https://arxiv.org/abs/1).
- Xiong (2020). [Two](https://arxiv.org/abs/2).
- Ba (2016). [Three](https://arxiv.org/abs/3).

## Where to go next

[The next](22-next.ipynb), or [another](24-other.ipynb)."""

HIDDEN = {"source_hidden": True}


@pytest.fixture
def lecture():
    markdown, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    cells = [
        code(GUARD, id="has-course", metadata={"tags": ["remove-cell"], "jupyter": HIDDEN}),
        markdown(BEGINNING),
        code("# PyTorch\nx = 1", metadata={"tags": ["torch"]}),
        code("# TensorFlow\nx = 1\ny = 2", metadata={"tags": ["tensorflow"]}),
        code("plot(x)", metadata={"tags": ["hide-input"], "jupyter": HIDDEN}),
        markdown(f"### {guide.CURIOUS}: more", metadata={"jp-MarkdownHeadingCollapsed": True}),
        code("\n".join("x = 1" for _ in range(30))),
        markdown("## What goes wrong\n\nThis."),
        markdown(EXERCISES),
        markdown(
            "##### Solution",
            metadata={"tags": ["solution", "remove-cell"], "jp-MarkdownHeadingCollapsed": True},
        ),
        code("print(1)", metadata={"tags": ["solution"]}),
        markdown(END),
    ]
    return nbformat.v4.new_notebook(cells=cells)


def test_a_lecture_to_the_guide_has_no_fault(lecture):
    assert guide.faults(lecture, "22-next") == []
    assert guide.code(lecture) == [2]
    assert guide.exercises(lecture) == [(1, 15), (2, 40), (3, 20)]


def add(kind, source, **metadata):
    return lambda lecture: lecture.cells.insert(2, getattr(nbformat.v4, f"new_{kind}_cell")(source, metadata=metadata))


def change(cell, before, after):
    def changed(lecture):
        assert before in lecture.cells[cell].source
        lecture.cells[cell].source = lecture.cells[cell].source.replace(before, after)

    return changed


def says(lecture):
    lecture.cells[0].outputs = [nbformat.v4.new_output("stream", text="name: value")]


def forget(cell):
    return lambda lecture: lecture.cells[cell].metadata.clear()


BROKEN = {
    "too many words": (add("markdown", "word " * 3000), "words: 30"),
    "too many cells": (lambda lecture: [add("code", "x")(lecture) for _ in range(45)], "visible code cells: 46"),
    "too many lines": (lambda lecture: [add("code", "x\n" * 12)(lecture) for _ in range(30)], "lines of code: 362"),
    "a long cell": (add("code", "x\n" * 13), "13 lines"),
    "a long tab": (change(3, "y = 2", "y = 2\n" * 13), "14 lines"),
    "no time": (change(1, "**Time:**", "Time:"), "say \"**Time:**"),
    "reading takes longer": (add("markdown", "word " * 2000), "5 minutes to read; words and code take 14"),
    "exercises take longer": (change(8, "40 min", "50 min"), "1 h 15 min of exercises; theirs are [15, 50, 20]"),
    "a time that is none": (change(8, "40 min", "an hour"), "theirs are [15, None, 20]"),
    "a kind is missing": (change(8, "### An open question", "### More"), "'An open question' is missing"),
    "numbers jump": (change(8, "#### 3.", "#### 4."), "found [1, 2, 4]"),
    "nothing to hand in": (change(8, "*Hand in:* a function", "Write a function"), "what to hand in"),
    "an unheaded solution": (change(9, "##### Solution", "Look:"), "no heading `##### Solution`"),
    "a solution's heading in the book": (forget(9), "no heading `##### Solution`"),
    "open code": (forget(5), "is not collapsed"),
    "code to be folded": (lambda lecture: lecture.cells[4].metadata.pop("jupyter"), "not folded in JupyterLab"),
    "nobody asks for the course": (lambda lecture: lecture.cells.pop(0), "does not ask for the course"),
    "machinery that prints": (says, "prints something"),
    "no label": (change(2, "# PyTorch\n", ""), "does not begin with '# PyTorch'"),
    "a filler": (change(7, "This.", "This is simply so."), "'simply': leave it out"),
    "spelling": (change(7, "This.", "The optimizer."), "British"),
    "a lecture by its number": (change(7, "This.", "See lecture six."), "as a link"),
    "cited, not listed": (change(7, "This.", "[Dao (2022)](https://arxiv.org/abs/4)"), "cited and not listed: Dao"),
    "listed, not cited": (change(1, "https://arxiv.org/abs/3", "https://arxiv.org/abs/9"), "listed and not cited"),
    "few references": (change(11, "- Ba (2016). [Three](https://arxiv.org/abs/3).\n", ""), "2 references"),
    "no diagram": (change(1, "diagrams/heads.svg", "pictures/heads.png"), "no diagram"),
    "another next": (change(11, "22-next", "26-later"), "leads to 26-later"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_noticed(lecture, name):
    breaks, complaint = BROKEN[name]
    breaks(lecture)
    assert any(complaint in fault for fault in guide.faults(lecture, "22-next")), guide.faults(lecture, "22-next")


def test_words_in_code_formulas_and_solutions_do_not_count(lecture):
    before = guide.words(lecture)
    add("markdown", "$$ a b c $$\n\n```\nsimply some words\n```\n<!--name-->")(lecture)
    add("markdown", "many words of a solution", tags=["solution"])(lecture)
    assert guide.words(lecture) == before
    add("markdown", "`one two` and $x + y$")(lecture)
    assert guide.words(lecture) == before + 3
    assert not re.search("simply", str(guide.wrong_words(lecture)))
