"""The live figures of masks and of positions: they compute what the library does, and answer what the lectures ask."""

import re

import numpy as np
import pytest

from course_lib.models.position_tables import sinusoidal_table
from tests.support.live_page import draw_live
from tests.support.plain_page import as_number, drawn

draw_plain = draw_live.draw_plain
CLOSE = {"rtol": 1e-9, "atol": 1e-12}


# What each mask does


def batch_of(texts, left):
    rows = [text.split() for text in texts]
    length = max(map(len, rows))
    fill = [["[PAD]"] * (length - len(row)) for row in rows]
    return [pad + row if left else row + pad for row, pad in zip(rows, fill, strict=True)]


@pytest.mark.parametrize("kind", ["none", "padding", "causal", "both"])
@pytest.mark.parametrize("left", [False, True])
def test_masks_and_weights_are_the_librarys(compute, kind, left):
    texts = ["she sees a white dog", "she sees it"]
    body = "const { batch, mask, weigh } = use('figures/masks'); "
    body += "return batch(given.texts, given.left).map((tokens) => { "
    body += "const seen = mask(given.kind, tokens); return [tokens, seen, weigh(seen)]; });"
    found = compute(body, texts=texts, left=left, kind=kind)
    assert [tokens for tokens, _, _ in found] == batch_of(texts, left)
    for tokens, seen, weights in found:
        expected, shares = draw_plain.masked(tuple(tokens), kind)
        assert seen == expected.tolist()
        np.testing.assert_allclose(weights, shares, **CLOSE)


def grid(figure):
    """The cells as they are read: a weight, or None where it is hidden."""
    rows = figure.locator("tbody tr").all()
    cells = [[cell.inner_text() for cell in row.locator("td").all()] for row in rows]
    return [[None if "hidden" in said else float(said) for said in row] for row in cells]


def test_the_masks_show_what_their_drawing_shows(visit):
    figure = visit.figure("masks")
    for left, tokens in enumerate(draw_plain.MASKED):
        figure.locator(".live-form").get_by_text(("right", "left")[left], exact=True).click()
        for kind in ("padding", "causal", "both"):
            figure.locator(".live-form").get_by_text(kind, exact=True).click()
            mask, weights = draw_plain.masked(tokens, kind)
            told = [[float(f"{w:.2f}") if may else None for w, may in zip(*r, strict=True)]
                    for r in zip(weights, mask, strict=True)]  # fmt: skip
            assert grid(figure) == told
            assert f"{mask.sum()} of 25 pairs are open." in visit.said("masks")
            shown = " ".join(t.text for t in drawn("masks").find_all("text"))
            assert all(f"{w:.2f}".removeprefix("0") in shown for w in weights[mask])


def test_the_lectures_question_about_padding_has_its_answer(visit):
    figure, found = visit.figure("masks"), {}
    for side in ("right", "left"):
        figure.locator(".live-form").get_by_text(side, exact=True).click()
        for kind in ("none", "causal", "both"):
            figure.locator(".live-form").get_by_text(kind, exact=True).click()
            found[side, kind] = grid(figure), visit.said("masks")
    differ = {
        side: [t for t in range(5) if found[side, "causal"][0][t] != found[side, "both"][0][t]]
        for side in ("right", "left")
    }
    assert differ == {"right": [3, 4], "left": [0, 1, 2, 3, 4]}, "no word's row, and every row"
    assert re.search(r"“\w+” gives 0\.[1-9]\d of its weight to padding", found["right", "none"][1])
    assert "No word gives any weight to padding." in found["right", "causal"][1]
    assert re.search(r"“\w+” gives 0\.[1-9]\d of its weight to padding", found["left", "causal"][1])
    assert "A query at position 1, 2 may see nothing: its weights are all zero." in found["left", "both"][1]


def test_a_reader_types_a_batch_of_their_own(visit):
    figure = visit.figure("masks")
    figure.get_by_label("The second sentence").fill("  one two three four five six ")
    assert "36 of 36 pairs are open." in visit.said("masks"), "longest of all: it has no padding"
    figure.locator(".live-form").get_by_text("first sentence", exact=True).click()
    heads = figure.locator("thead th").all_inner_texts()
    assert heads == ["she", "sees", "a", "white", "dog", "[PAD]"]
    assert "to padding" in visit.said("masks")


@pytest.mark.parametrize(
    ("which", "typed", "said"),
    [
        ("second", "  ", "The second sentence has no word: type one."),
        ("second", "[PAD]", "The second sentence has [PAD], which is no word: it comes where a sentence is shorter."),
        ("first", "a [PAD] c", "The first sentence has [PAD], which is no word: it comes where a sentence is shorter."),
        ("first", "a b c d e f g", "The first sentence has 7 words, and 6 are the most here: shorten it."),
    ],
)
def test_a_batch_that_does_not_fit_is_said(visit, which, typed, said):
    figure = visit.figure("masks")
    field = figure.get_by_label(f"The {which} sentence")
    field.fill(typed)
    status = visit.page.locator(f"#{field.get_attribute('aria-describedby')}")
    assert status.inner_text().endswith(said) and field.get_attribute("aria-invalid") == "true"
    assert figure.locator("table, [aria-invalid]").count() == 1 and visit.said("masks") == ""
    field.fill("a word")
    assert figure.locator("table").count() == 1 and figure.locator("[aria-invalid]").count() == 0


def test_masks_are_chosen_from_the_keyboard(visit):
    figure = visit.figure("masks")
    figure.get_by_label("The second sentence").focus()
    visit.page.keyboard.press("Tab")
    visit.page.keyboard.press("ArrowRight")
    assert visit.said("masks").startswith("With the padding mask, 15 of 25 pairs are open."), "three keys of five"
    visit.page.keyboard.press("Tab")
    visit.page.keyboard.press("ArrowRight")
    assert figure.locator("thead th").all_inner_texts()[0] == "[PAD]"


# Positions as clocks


@pytest.mark.parametrize("p", [0, 5, 100])
def test_positions_are_the_librarys(compute, p):
    table = sinusoidal_table(141, 16)
    body = "const { position, product } = use('figures/clocks'); return [position(given.p), product(given.p, given.s)];"
    vector, product = compute(body, p=p, s=p + 17)
    np.testing.assert_allclose(vector, table[p], **CLOSE)
    assert product == pytest.approx(table[p] @ table[p + 17], abs=1e-9)


def test_the_clocks_show_what_their_drawing_shows(visit):
    told = re.findall(r"([\d.]+) for positions (\d+) and (\d+)", drawn("clocks")["aria-label"])
    assert len(told) == 3
    figure = visit.figure("clocks")
    words = [t.text for t in drawn("clocks").find_all("text")]
    for row, (value, p, s) in enumerate(told):
        visit.drag("clocks", "First position", int(p))
        visit.drag("clocks", "Distance to the second", int(s) - int(p))
        assert f"Positions {p} and {s}: the dot product is {value}." in visit.said("clocks")
        cosines = figure.locator(".live-dials div span:last-child").all_inner_texts()
        assert cosines == words[9 * row + 1 : 9 * row + 9]
        assert sum(map(as_number, cosines)) == pytest.approx(float(value), abs=0.05)
        assert f"and {value} at the distances" in figure.locator(".live-curve").get_attribute("aria-label")


def test_the_dot_product_stays_when_both_positions_move_on_and_hands_turn(visit):
    figure = visit.figure("clocks")
    hands = "lines => lines.map(line => [Number(line.getAttribute('x2')), Number(line.getAttribute('y2'))])"
    first = figure.get_by_label("First position")
    before = visit.said("clocks"), np.array(figure.locator(".live-hand").evaluate_all(hands))
    first.focus()
    for _ in range(4):
        visit.page.keyboard.press("ArrowRight")
    assert visit.said("clocks").startswith("Positions 9 and 12:")
    product = re.search(r"product is ([\d.]+)\.", before[0])[1]
    assert f"product is {product}." in visit.said("clocks")
    after = np.array(figure.locator(".live-hand").evaluate_all(hands))
    table = sinusoidal_table(101, 16)
    for hand, length, s in ((after[0::2], 24, 12), (after[1::2], 20, 9)):
        np.testing.assert_allclose(hand[:, 0], length * table[s, 0::2], atol=0.01)
        np.testing.assert_allclose(hand[:, 1], -length * table[s, 1::2], atol=0.01)
    moved = np.abs(after - before[1]).max(axis=1)
    assert moved[0] > 10 and moved[-1] < 0.1, "the first pair turns far, the last hardly at all"


def test_the_curve_marks_the_distance_on_both_sides(visit):
    visit.drag("clocks", "Distance to the second", 10)
    points = visit.figure("clocks").locator(".live-curve circle")
    (x, y), (u, v) = (tuple(float(point.get_attribute(name)) for name in ("cx", "cy")) for point in points.all())
    assert y == v and abs(x - 170) == pytest.approx(abs(u - 170)) and x != u
    line = visit.figure("clocks").locator("polyline").get_attribute("points").split()
    drawn_at = [tuple(map(float, point.split(","))) for point in line]
    assert (x, y) in drawn_at and (u, v) in drawn_at and len(drawn_at) == 81
