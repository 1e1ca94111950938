"""Numbers that the prose quotes: what is said when one points at them, and that nothing of the machinery is shown."""

import shutil

import pytest
from nbformat.v4 import new_code_cell, new_output

from course_lib.lecture.show import CLAIM
from tests.support.tiny_book import EXTENSIONS, build, text

ACCURACY = {"name": "accuracy", "value": "0.8347", "interval": ["0.81", "0.85"], "how": 'train.py, "seeds" 0 to 2'}


def keeping(source: str, *claims: dict, printed: str = "", tags: tuple[str, ...] = ()):
    """A code cell whose outputs keep these claims."""
    outputs = [new_output("stream", name="stdout", text=printed)] if printed else []
    outputs += [new_output("display_data", {CLAIM: claim}) for claim in claims]
    return new_code_cell(source, outputs=outputs, execution_count=1, metadata={"tags": list(tags)})


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    cells = [
        text("It reaches 0.83<!--accuracy-->, or **83%**<!--accuracy-->, from −3<!--low--> and 4<!--unknown-->."),
        keeping("x = 1\nclaims(\n    accuracy=f(x),\n)\nprint(x)", ACCURACY, printed="1\n"),
        keeping("claims(low=-3)", {"name": "low", "value": "-3"}, tags=("remove-cell",)),
        keeping("claims(other=-3)", {"name": "other", "value": "-3"}),
        keeping("y = 2\nclaims(more=y)", {"name": "more", "value": "2"}),
    ]
    book = build(tmp_path_factory.mktemp("claims") / "book", cells, extensions=("claims",))
    assert book.warnings == ""
    return book


@pytest.fixture(scope="module")
def page(book):
    return book.page()


def test_a_quoted_number_says_on_hover_what_computed_it(page):
    said = [(number.text, number["title"]) for number in page.select("span.claim")]
    accuracy = '0.8347 [0.81, 0.85], computed by train.py, "seeds" 0 to 2'
    assert said == [("0.83", accuracy), ("83%", accuracy), ("−3", "-3, from a cell of this page")]
    assert page.p.text == "It reaches 0.83, or 83%, from −3 and 4."


STATIC = EXTENSIONS.parent / "_static"
CARD = "#term-card"  # the terms of the glossary have it, too


@pytest.mark.parametrize("way", ["mouse", "touch", "keyboard"])
def test_a_reader_learns_it_by_mouse_by_touch_and_by_keyboard(book, browser, way):
    for name in ("cards.js", "custom.css"):
        shutil.copy(STATIC / name, book.out / "_static")
    context = browser.new_context(has_touch=way == "touch", is_mobile=way == "touch")
    tab = context.new_page()
    tab.goto((book.out / "index.html").as_uri())
    number, other = tab.locator(".claim").first, tab.locator(".claim").nth(2)
    card = tab.locator(CARD)
    show = {
        "mouse": lambda word: word.hover(),
        "touch": lambda word: word.tap(),
        "keyboard": lambda word: press_until(tab, word),
    }[way]
    show(number)
    assert card.is_visible() and card.inner_text().startswith("0.8347 [0.81, 0.85], computed by train.py")
    assert number.get_attribute("aria-describedby") == card.get_attribute("id")
    assert number.get_attribute("title") is None, "a second card, of the browser's own"
    show(other)
    assert card.inner_text() == "-3, from a cell of this page"
    if way == "touch":
        other.evaluate("(number) => number.blur()")
        other.dispatch_event("click")  # there are telephones on which a touch gives nothing the focus
        assert card.is_visible()
        tab.locator("h1").tap()
    else:
        tab.keyboard.press("Escape")
    assert card.is_hidden()
    context.close()


def press_until(tab, word, most=20):
    """Press Tab until an element has the focus."""
    for _ in range(most):
        tab.keyboard.press("Tab")
        if word.evaluate("(element) => element === document.activeElement"):
            return
    pytest.fail(f"{most} times Tab do not reach it")


def test_the_machinery_is_not_shown(page):
    assert "claims(" not in page.text
    cells = [cell.select_one(".cell_input").text.strip() for cell in page.select("div.cell")]
    assert cells == ["x = 1\nprint(x)", "y = 2"], "a cell of nothing else is gone"
    assert [output.text.strip() for output in page.select(".cell_output")] == ["1"], "and so is an empty output"
