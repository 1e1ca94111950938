"""Numbers that the prose quotes: what is said on hover, and that nothing of the machinery is shown."""

import pytest
from nbformat.v4 import new_code_cell, new_output

from course_lib.lecture.show import CLAIM
from tests.support.tiny_book import build, text

ACCURACY = {"name": "accuracy", "value": "0.8347", "interval": ["0.81", "0.85"], "how": 'train.py, "seeds" 0 to 2'}


def keeping(source: str, *claims: dict, printed: str = "", tags: tuple[str, ...] = ()):
    """A code cell whose outputs keep these claims."""
    outputs = [new_output("stream", name="stdout", text=printed)] if printed else []
    outputs += [new_output("display_data", {CLAIM: claim}) for claim in claims]
    return new_code_cell(source, outputs=outputs, execution_count=1, metadata={"tags": list(tags)})


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    cells = [
        text("It reaches 0.83<!--accuracy-->, or **83%**<!--accuracy-->, from −3<!--low--> and 4<!--unknown-->."),
        keeping("x = 1\nclaims(\n    accuracy=f(x),\n)\nprint(x)", ACCURACY, printed="1\n"),
        keeping("claims(low=-3)", {"name": "low", "value": "-3"}, tags=("remove-cell",)),
        keeping("claims(other=-3)", {"name": "other", "value": "-3"}),
        keeping("y = 2\nclaims(more=y)", {"name": "more", "value": "2"}),
    ]
    book = build(tmp_path_factory.mktemp("claims") / "book", cells, extensions=("claims",))
    assert book.warnings == ""
    return book.page()


def test_a_quoted_number_says_on_hover_what_computed_it(page):
    said = [(number.text, number["title"]) for number in page.select("span.claim")]
    accuracy = '0.8347 [0.81, 0.85], computed by train.py, "seeds" 0 to 2'
    assert said == [("0.83", accuracy), ("83%", accuracy), ("−3", "-3, from a cell of this page")]
    assert page.p.text == "It reaches 0.83, or 83%, from −3 and 4."


def test_the_machinery_is_not_shown(page):
    assert "claims(" not in page.text
    cells = [cell.select_one(".cell_input").text.strip() for cell in page.select("div.cell")]
    assert cells == ["x = 1\nprint(x)", "y = 2"], "a cell of nothing else is gone"
    assert [output.text.strip() for output in page.select(".cell_output")] == ["1"], "and so is an empty output"
