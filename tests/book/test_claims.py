"""Numbers that the prose quotes: what is said when one points at them, and that nothing of the machinery is shown."""

import shutil
import sys

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from nbformat.v4 import new_code_cell, new_output
from playwright.sync_api import expect

from course_lib.lecture.show import CLAIM
from tests.support.site_access import AXE
from tests.support.tiny_book import EXTENSIONS, build, text

sys.path.insert(0, str(EXTENSIONS))
import claims

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
        text("## Made *here*\n\n### A part with `code`\n\nSo 7<!--other-->.\n\n#### 1. An exercise"),
        keeping("claims(other=7)", {"name": "other", "value": "7"}),
        text("Again 7<!--counted-->, and 7<!--run-->."),
        keeping("claims('counting', counted=7)", {"name": "counted", "value": "7", "how": "counting"}),
        keeping("claims('python count.py', run=7)", {"name": "run", "value": "7", "how": "python count.py"}),
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
    accuracy = '0.8347 (0.81 to 0.85), computed by train.py, "seeds" 0 to 2'
    assert said[:3] == [("0.83", accuracy), ("83%", accuracy), ("−3", "−3, from a cell of this page")]
    where = "a cell of this page, section “A part with code”"  # who looks for it has to know it
    assert said[3:5] == [("7", f"7, from {where}"), ("7", f"7, computed by counting, in {where}")]
    assert said[5:] == [("7", "7, computed by python count.py")], "who runs a command need not look for a cell"
    assert page.p.text == "It reaches 0.83, or 83%, from −3 and 4."


@pytest.mark.parametrize(
    ("value", "interval", "said"),
    [
        ("7.11612", ["6.32451", "7.6039"], "7.116 (6.325 to 7.604)"),
        ("-1.35714", [], "−1.357"),
        ("1.23456e-05", ["-1e-07", "0"], "1.235e−05 (−1e−07 to 0)"),
        ("12345678", [], "12345678"),
        ("-12", [], "−12"),
    ],
)
def test_a_card_rounds_what_was_measured_and_not_what_was_counted(value, interval, said):
    claim = {"value": value, "interval": interval, "how": "counting"}
    assert claims.title(claim) == f"{said}, computed by counting"


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
        "keyboard": lambda word: press_until(tab, word, "Tab" if word == number else "ArrowRight"),
    }[way]
    show(number)
    assert card.is_visible() and card.inner_text().startswith("0.8347 (0.81 to 0.85), computed by train.py")
    assert number.get_attribute("aria-describedby") == card.get_attribute("id")
    assert number.get_attribute("title") is None, "a second card, of the browser's own"
    show(other)
    hint = "\nNumber 3 of 3 here: arrow keys go to the others." if way == "keyboard" else ""
    assert card.inner_text() == "−3, from a cell of this page" + hint
    if way == "touch":
        other.evaluate("(number) => number.blur()")
        other.dispatch_event("click")  # there are telephones on which a touch gives nothing the focus
        assert card.is_visible()
        tab.locator("h1").tap()
    else:
        tab.keyboard.press("Escape")
    assert card.is_hidden()
    context.close()


def press_until(tab, word, key="Tab", most=20):
    """Press a key until an element has the focus."""
    for _ in range(most):
        tab.keyboard.press(key)
        if word.evaluate("(element) => element === document.activeElement"):
            return
    pytest.fail(f"{most} times {key} do not reach it")


ROW = "| {} | 3<!--n--> and 4<!--n--> | 5<!--n--> |\n"
MANY = [
    text("Before 1<!--n-->, then **2**<!--n-->, last 3<!--n-->."),
    text("One alone: 4<!--n-->."),
    text("- an item 5<!--n-->, 6<!--n-->\n- another 7<!--n-->"),
    text("| a | b | c |\n|---|---|---|\n" + ROW.format("first") + ROW.format("second")),
    keeping("claims(n=1)", {"name": "n", "value": "1", "how": "counting"}, tags=("remove-cell",)),
]
STOPS = ["1", "4", "5", "7", "3"]  # a paragraph, another, two items of a list, a table
FOCUSED = "document.activeElement === document.body ? '' : document.activeElement.textContent"


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    built = build(tmp_path_factory.mktemp("many") / "book", MANY, extensions=("claims",))
    for name in ("cards.js", "custom.css"):
        shutil.copy(STATIC / name, built.out / "_static")
    return (built.out / "index.html").as_uri()


@pytest.fixture
def reading(browser, many):
    """The page with many numbers, and a function that presses keys and says what has the focus then."""
    tab = browser.new_page(viewport={"width": 800, "height": 300})
    tab.goto(many)
    # what the page's own theme makes a stop is no matter of ours
    tab.evaluate("document.querySelectorAll('a, input, button').forEach((other) => { other.tabIndex = -1; })")

    def press(*keys):
        for key in keys:
            tab.keyboard.press(key)
        return tab.evaluate(FOCUSED)

    yield tab, press
    tab.close()


def test_the_numbers_of_a_paragraph_are_one_stop_of_the_tab_key(reading):
    tab, press = reading
    assert tab.locator(".claim[tabindex='0']").all_inner_texts() == STOPS, "before any has had the focus"
    assert [press("Tab") for _ in STOPS] == STOPS
    assert press("Tab") == ""


def test_arrow_keys_go_from_number_to_number_and_the_stop_goes_along(reading):
    press = reading[1]
    assert [press("Tab"), *(press("ArrowRight") for _ in range(3))] == ["1", "2", "3", "3"], "the last stays"
    assert [press("ArrowLeft"), press("ArrowUp"), press("ArrowDown")] == ["2", "2", "2"], "up and down scroll"
    assert [press("Tab"), press("ArrowRight"), press("Shift+Tab")] == ["4", "4", "2"], "back to where one was"
    assert [press("ArrowLeft"), press("ArrowLeft")] == ["1", "1"]


def test_arrow_keys_go_up_and_down_in_a_table(reading):
    tab, press = reading
    press(*["Tab"] * len(STOPS))
    numbers = tab.locator("td .claim")
    assert press("ArrowRight", "ArrowRight") == "5" and press("ArrowDown") == "5"
    assert numbers.nth(5).evaluate("(number) => number === document.activeElement"), "of the second row"
    assert press("ArrowDown") == "5", "below it is nothing"
    assert press("ArrowLeft") == "4" and press("ArrowUp") == "3", "the first of two in a cell"
    assert numbers.first.evaluate("(number) => number === document.activeElement")


def test_keys_that_lead_to_no_number_are_the_browsers(reading):
    tab, press = reading
    tab.evaluate("""() => {
      window.taken = [];
      document.addEventListener("keydown", (event) => window.taken.push(event.defaultPrevented));
    }""")
    press("Tab", "Control+ArrowRight", "Shift+ArrowRight", "ArrowDown")
    assert press("ArrowRight") == "2" and press("Tab", "ArrowRight") == "4"
    taken = [
        False,
        *[False] * 4,
        False,
        True,
        False,
        False,
    ]  # Tab, two keys twice, down, right; Tab, right from one alone
    assert tab.evaluate("window.taken") == taken


def test_escape_closes_the_card_and_enter_or_space_shows_it_again(reading):
    tab, press = reading
    card = tab.locator(CARD)
    press("Tab")
    for key in ("Enter", " "):
        assert card.is_visible()
        assert press("Escape") == "1" and card.is_hidden(), "the focus stays"
        press(key)
    assert card.is_visible() and tab.evaluate("window.scrollY") == 0, "a space scrolls"
    assert press("Escape", "ArrowRight") == "2" and card.is_visible()


def test_who_comes_by_keyboard_sees_and_hears_that_there_are_others(reading):
    tab, press = reading
    press("Tab", "ArrowRight")
    said = "1, computed by counting Number 2 of 3 here: arrow keys go to the others."
    expect(tab.locator(".claim").nth(1)).to_have_accessible_description(said)
    assert tab.locator(CARD).inner_text() == said.replace(" Number", "\nNumber")
    press("Tab")
    expect(tab.locator(".claim").nth(3)).to_have_accessible_description("1, computed by counting")
    tab.locator(".claim").first.click()
    assert tab.locator(CARD).inner_text() == "1, computed by counting", "who points needs no keys"


def test_axe_finds_no_fault_in_it(reading):
    tab, press = reading
    press("Tab", "ArrowRight")
    tab.set_viewport_size({"width": 200, "height": 300})
    tab.evaluate(AXE_SCRIPT)
    found = tab.evaluate(AXE, [None, []])
    # the page has no theme
    assert [message for message in found if "claim" in message or "card" in message or "focusable" in message] == []


def test_without_scripts_nothing_takes_the_focus_and_the_titles_say_it(browser, many):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(many)
    assert tab.locator(".claim[tabindex]").count() == 0
    assert tab.locator(".claim").first.get_attribute("title") == "1, computed by counting"
    context.close()


def test_the_machinery_is_not_shown(page):
    assert "claims(" not in page.text
    cells = [cell.select_one(".cell_input").text.strip() for cell in page.select("div.cell")]
    assert cells == ["x = 1\nprint(x)", "y = 2"], "a cell of nothing else is gone"
    assert [output.text.strip() for output in page.select(".cell_output")] == ["1"], "and so is an empty output"
