"""A page on paper and under a finger: figures that are printed, sliders that let it scroll, tables that go on."""

import io

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.support.live_page import FIGURES, PLAIN, write_page
from tests.support.plain_page import Visit, drawn
from tests.support.site_checker import FOLLOW


@pytest.mark.parametrize("name", PLAIN)
def test_on_paper_stands_the_drawing_and_on_the_screen_the_living_figure(visit, name):
    figure = visit.figure(name)
    drawing = figure.locator("> svg.diagram")
    display = "(drawing) => getComputedStyle(drawing).display"
    assert drawing.get_attribute("aria-label") == drawn(name)["aria-label"]
    assert drawing.evaluate(display) == "none", "it would be heard beside the figure"
    shown = "(figure) => [...figure.children].filter((part) => part.checkVisibility()).map((part) => part.tagName)"
    assert len(figure.evaluate(shown)) > 2
    visit.page.emulate_media(media="print")
    assert figure.evaluate(shown) == ["svg"]
    assert figure.evaluate("(figure) => getComputedStyle(figure).breakInside") == "avoid"
    visit.page.emulate_media(media="screen")
    assert drawing.is_hidden()


def test_a_model_is_printed_with_what_it_was_asked_and_what_it_answered(browser, tmp_path):
    assert "blank" in FIGURES
    page = browser.new_page()
    page.set_default_timeout(600_000)
    page.goto(write_page(tmp_path, ("blank",)).as_uri())
    figure = page.locator(".live-figure")
    page.emulate_media(media="print")
    assert figure.locator("svg.diagram").is_visible() and figure.locator("form").is_hidden(), (
        "the drawing says what is asked"
    )
    page.emulate_media(media="screen")
    figure.get_by_role("button", name="Fill the blank").click()
    expect(figure.locator(".live-bars")).to_be_visible()
    page.emulate_media(media="print")
    assert figure.locator("input[type=text]").is_visible() and figure.locator(".live-bars").is_visible()
    assert figure.locator("button:visible").count() == 0
    bars = figure.locator(".live-bar")
    kept = bars.evaluate_all("(all) => all.map((bar) => getComputedStyle(bar).printColorAdjust)")
    assert kept == ["exact"] * bars.count() and kept, "a browser prints no ground that it is not told to keep"
    page.close()


@pytest.fixture
def finger(browser, plain):
    """A telephone with the figures that need no model, and a finger that comes down on a slider and moves."""
    visit = Visit(browser.new_page(has_touch=True, is_mobile=True, viewport={"width": 360, "height": 700}), plain)
    touch = visit.page.context.new_cdp_session(visit.page)

    def move(slider, across, down, steps=12):
        box = slider.bounding_box()
        x, y = box["x"] + 0.9 * box["width"], box["y"] + box["height"] / 2
        for step in range(steps + 1):
            point = {"x": x + across * step / steps, "y": y + down * step / steps}
            kind = "touchMove" if step else "touchStart"
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
            visit.page.wait_for_timeout(16)
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        visit.page.wait_for_timeout(100)

    visit.move = move
    yield visit
    assert not visit.complaints
    visit.page.close()


@pytest.mark.parametrize("label", ["Width", "Divisor"])
def test_a_finger_that_scrolls_moves_no_slider(finger, label):
    figure = finger.figure("scale")
    figure.locator(".live-line label").nth(1).tap()
    slider = figure.get_by_label(label)
    state = "(figure) => [...figure.querySelectorAll('input')].map((input) => `${input.value} ${input.checked}`)"
    slider.evaluate("(slider) => slider.scrollIntoView({ block: 'center' })")
    before, said, top = figure.evaluate(state), finger.said("scale"), finger.page.evaluate("scrollY")
    finger.move(slider, across=4, down=-200)
    assert finger.page.evaluate("scrollY") > top + 50
    assert figure.evaluate(state) == before and finger.said("scale") == said


def test_a_finger_that_goes_sideways_drags_and_one_that_taps_chooses(finger):
    figure = finger.figure("scale")
    width = figure.get_by_label("Width")
    width.evaluate("(slider) => slider.scrollIntoView({ block: 'center' })")
    top = finger.page.evaluate("scrollY")
    finger.move(width, across=-120, down=10)
    dragged = width.get_attribute("aria-valuetext")
    assert dragged not in ("4", "512") and finger.said("scale").startswith(f"Width {dragged},")
    finger.move(width, across=0, down=0, steps=1)
    tapped = width.get_attribute("aria-valuetext")
    assert int(tapped) > int(dragged) and finger.said("scale").startswith(f"Width {tapped},")
    assert finger.page.evaluate("scrollY") == top


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["book/syllabus.html", "book/elsewhere.html"])
def test_a_table_that_goes_on_has_a_shadow_there(browser, address, name, scheme):
    page = browser.new_page(viewport={"width": 360, "height": 1600}, color_scheme=scheme, reduced_motion="reduce")
    page.set_default_timeout(600_000)
    page.goto(address + name)
    page.evaluate(FOLLOW, scheme)
    box = page.locator(".pst-scrollable-table-container").last
    wide = box.evaluate("(box) => box.scrollWidth - box.clientWidth")
    assert wide > 100
    for scrolled, left, right in ((0, False, True), (wide // 2, True, True), (wide, True, False)):
        box.evaluate("(box, left) => { box.scrollIntoView({ block: 'center' }); box.scrollLeft = left; }", scrolled)
        for row in ("thead tr", "tbody tr"):
            assert shadows(page, box, box.locator(row).first) == (left, right), (scrolled, row)
    page.close()


def shadows(page, box, row):
    """Whether the left and the right edge of a box have another colour than the middle, in a row above its words."""
    outer, inner = box.bounding_box(), row.bounding_box()
    clip = {"x": outer["x"], "y": inner["y"] + 2, "width": outer["width"], "height": 3}
    strip = np.asarray(Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("L"), dtype=float)[1]
    ground = np.median(strip)
    return tuple(bool(abs(np.median(edge) - ground) > 12) for edge in (strip[2:6], strip[-6:-2]))
