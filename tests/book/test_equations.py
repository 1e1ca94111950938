"""Each displayed formula of a lecture has a number of its own, which leads to it and covers nothing."""

import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tests.support.lecture_files import LECTURES, read
from tests.support.tiny_book import build, text

ROOT = Path(__file__).parents[2]
PAGE = """# A

$$
a
$$

Inline $b$, and

- in a list:

  $$
  c \\\\ d
  $$

See {eq}`21.2` and {eq}`own`.

```{math}
:label: own
e
```
"""


# A formula that a cell shows has no number, nor takes one from the next.
SHOWN_BY_CELL = new_output("display_data", {"text/latex": "$$z$$", "text/plain": "z"})
METADATA = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}
CELLS = [text("# B"), new_code_cell("show()", outputs=[SHOWN_BY_CELL], metadata={"tags": []}), text("$$\nx\n$$")]
LECTURE = new_notebook(cells=CELLS, metadata=METADATA)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    built = build(
        tmp_path_factory.mktemp("equations"),
        [text("```{toctree}\nnotebooks/21-x\nnotebooks/22-y\nbook/z\n```")],
        extensions=("equations", "sphinx.ext.mathjax"),
        files={
            "notebooks/21-x.md": PAGE,
            "notebooks/22-y.ipynb": nbformat.writes(LECTURE),
            "book/z.md": "# C\n\n$$\ny\n$$\n",
        },
        myst_enable_extensions=["dollarmath"],
        nitpicky=True,
        numfig=True,  # as Jupyter Book sets it
    )
    assert built.warnings == ""
    return built


def numbers(page):
    return [(link.text, link["href"].removeprefix("#")) for link in page.select(".equation > .eqno")]


def test_formulas_are_counted_by_lecture_and_others_are_not(book):
    assert numbers(book.page("notebooks/21-x"))[:2] == [("(21.1)", "equation-21-1"), ("(21.2)", "equation-21-2")]
    assert numbers(book.page("notebooks/22-y")) == [("(22.1)", "equation-22-1")]
    assert numbers(book.page("book/z")) == []


def test_a_number_leads_to_its_formula_alone(book):
    page = book.page("notebooks/21-x")
    for (_, anchor), formula in zip(numbers(page)[:2], ["a", r"\begin{split}c\\d\end{split}"], strict=True):
        (found,) = page.select(f'[id="{anchor}"]')
        assert "".join(found.select_one("div.math").text.split()) == rf"\[{formula}\]"
    assert len({link["aria-label"] for link in page.select(".eqno")}) == 3


def test_a_reference_says_the_number_and_a_label_of_ones_own_stays(book):
    page = book.page("notebooks/21-x")
    cited = {link["href"].rpartition("#")[2]: link.text for link in page.select("a.reference.internal") if link.text}
    assert cited["equation-21-2"] == "(21.2)"
    assert (cited["equation-own"], "equation-own") in numbers(page)


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_no_lecture_numbers_its_formulas_itself(path):
    markdown = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    assert re.findall(r"\\tag\b|\\label\b|\\begin\{(?:equation|align|gather|multline)\}", markdown) == []


SHOWN = """<!doctype html><html data-theme="light"><style>{styles}</style><body style="margin: 16px">
<article class="bd-article"><div class="equation" id="e"><div class="math">
<div style="width: {width}px; height: 50px">formula</div></div><a class="eqno" href="#e">(21.12)</a></div></article>"""


@pytest.mark.parametrize(
    ("screen", "formula", "place"),
    [(360, 200, "beside"), (360, 1100, "under"), (1280, 1100, "beside"), (1280, 1240, "under"), (1280, 2000, "under")],
)
def test_a_number_stands_beside_its_formula_or_under_it(browser, tmp_path, screen, formula, place):
    styles = (ROOT / "book" / "_static" / "custom.css").read_text(encoding="utf-8")
    (tmp_path / "a.html").write_text(SHOWN.format(styles=styles, width=formula), encoding="utf-8")
    tab = browser.new_page(viewport={"width": screen, "height": 600})
    tab.goto((tmp_path / "a.html").as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") == screen
    box, number = tab.locator("div.math").bounding_box(), tab.locator(".eqno").bounding_box()
    beside, under = number["x"] >= box["x"] + box["width"], number["y"] >= box["y"] + box["height"]
    assert (beside, under) == (place == "beside", place == "under")
    assert box["width"] >= min(formula, screen - 40), "a formula that scrolls though there is room"
    assert number["x"] + number["width"] <= screen
    tab.close()
