"""Each figure of a lecture has a number of its own under it, which leads to it."""

import nbformat
import pytest
from nbformat.v4 import new_notebook

from tests.support.tiny_book import build, code, text

SVG = '<svg xmlns="http://www.w3.org/2000/svg" class="diagram" width="9" height="9"><title>A square</title></svg>'
CELLS = [
    text("# B\n\n![A square](diagrams/square.svg)\n\nBetween ![words](diagrams/square.svg) a picture."),
    code("draw()", figure=True),
    code("print('no figure')", printed="no figure"),
    code("draw()", figure=True),
]
METADATA = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    built = build(
        tmp_path_factory.mktemp("figures"),
        [text("```{toctree}\nnotebooks/22-y\nbook/z\n```")],
        extensions=("diagrams", "figure_numbers"),
        files={
            "notebooks/22-y.ipynb": nbformat.writes(new_notebook(cells=CELLS, metadata=METADATA)),
            "notebooks/diagrams/square.svg": SVG,
            "book/z.md": "# C\n\n![A square](../notebooks/diagrams/square.svg)\n",
        },
        nitpicky=True,
        numfig=True,  # as Jupyter Book sets it
    )
    assert built.warnings == ""
    return built


def test_figures_are_counted_by_lecture_and_others_are_not(book):
    links = book.page("notebooks/22-y").select("a.figure-number")
    assert [link.text for link in links] == [f"Figure 22.{n}" for n in (1, 2, 3, 4)]
    assert [link["href"] for link in links] == [f"#{link['id']}" for link in links]
    assert book.page("book/z").select("a.figure-number") == []


def test_a_number_follows_its_figure(book):
    before = [link.find_previous_sibling().name for link in book.page("notebooks/22-y").select("a.figure-number")]
    assert before == ["svg", "svg", "img", "img"]
