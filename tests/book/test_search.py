"""The search of the published book answers what a reader types: in which order, and in which words it quotes."""

import functools
from urllib.parse import quote

import pytest

LECTURES = "notebooks/"
SELF_ATTENTION = "notebooks/21-self-attention.html"


@pytest.fixture(scope="module")
def search(browser, address):
    """A function of what is typed; returns the results in their order, each (address, what is quoted)."""
    page = browser.new_page()
    page.set_default_timeout(600_000)

    @functools.cache
    def results(typed):
        page.goto(f"{address}search.html?q={quote(typed)}")
        page.wait_for_function("document.querySelector('.search-summary')?.innerText")
        hits = page.locator("#search-results ul.search > li")
        # names of the library are quoted by what they are, and all others by a text that is fetched
        page.wait_for_function(
            "[...document.querySelectorAll('#search-results ul.search > li')].every((hit) => hit.children.length > 1)"
        )
        return [
            (hit.locator("a").first.get_attribute("href"), hit.locator(":scope > :nth-child(2)").inner_text())
            for hit in hits.all()
        ]

    yield results
    page.close()


def places(found):
    return [address for address, _ in found]


@pytest.mark.parametrize("typed", ["BLEU", "softmax", "self-attention", "self attention", "positional encoding"])
def test_a_term_finds_its_definition_first_and_then_lectures(search, typed):
    found = search(typed)
    address, quoted = found[0]
    assert address.startswith("book/glossary.html#term-")
    assert len(quoted) > len(typed) + 40, "the definition, not the word alone"
    assert places(found)[1].startswith(LECTURES)


@pytest.mark.parametrize("typed", ["softmax", "self-attention", "self attention"])
def test_the_lecture_that_has_it_in_its_title_or_a_heading_comes_second(search, typed):
    assert places(search(typed))[1] == SELF_ATTENTION


@pytest.mark.parametrize("typed", ["square root of d_k", "why square root"])
def test_a_question_about_the_root_finds_the_lecture_that_asks_it(search, typed):
    assert places(search(typed))[0] == SELF_ATTENTION


@pytest.mark.parametrize("typed", ["scaled dot-product attention", "scaled dot product attention"])
def test_lectures_stand_above_the_pages_on_teaching_and_on_the_library(search, typed):
    found = places(search(typed))
    assert SELF_ATTENTION in found[:2]
    of_lectures = [place for place, address in enumerate(found) if address.startswith("notebooks/2")]
    others = [place for place, address in enumerate(found) if address.startswith("book/")]
    assert of_lectures[:3] == [1, 2, 3] and min(others) > 3


@pytest.mark.parametrize("typed", ["QK^T", "Q K^T", "d_model", "attention_mask", "√d"])
def test_a_symbol_is_found_by_its_row_with_and_without_spaces(search, typed):
    found = search(typed)
    assert found[0][0].startswith("book/notation.html#")
    assert len(found) < 35, "and not by every name that has its letters"


def test_spaces_in_a_formula_change_nothing(search):
    assert search("Q K^T") == search("QK^T")


def test_a_name_of_the_library_is_still_found_as_one(search):
    found = places(search("MultiHeadAttention"))
    named = [f"book/api/{name}.html#course_lib.{name}.MultiHeadAttention" for name in ("numpy", "tensorflow", "torch")]
    assert found[1:4] == named, "behind the notation page, which says what other libraries call it"


def test_a_page_is_found_by_its_title(search):
    assert places(search("glossary"))[0] == "book/glossary.html"
    assert places(search("bibliography"))[0] == "book/bibliography.html"


@pytest.mark.parametrize("typed", ["running softmax", "softmax", "square root of d_k"])
def test_nothing_is_quoted_with_the_signs_of_a_formula(search, typed):
    found = search(typed)
    assert not [quoted for _, quoted in found if any(sign in quoted for sign in (r"\(", r"\)", r"\[", r"\]"))]


def test_what_can_be_said_without_latex_is(search):
    assert search("running softmax")[0][1].startswith("ℓ")
