"""Live figures that need no model, as a reader meets them: what holds of all, why there is a scale, and the steps."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from course_lib.numpy import attention, softmax
from tests.support.live_page import PLAIN, draw_live
from tests.support.plain_page import THEME, Visit, drawn
from tests.support.site_checker import COLOURS, CONTENT

draw_plain = draw_live.draw_plain
CLOSE = {"rtol": 1e-9, "atol": 1e-12}


@pytest.fixture
def alone(browser, plain):
    """A visit in a tab of its own: it has loaded nothing before, and keeps what a test puts into it."""
    opened = Visit(browser.new_page(), plain)
    yield opened
    assert not opened.complaints
    opened.page.close()


# What holds of all of them


def test_no_model_and_nothing_from_elsewhere_is_loaded_even_when_used(alone, plain):
    for slider in alone.page.locator("input[type=range]").all():
        slider.focus()
        slider.press("ArrowRight")
    asked = [url.removeprefix(plain.as_uri() + "/") for url in alone.requests if not url.startswith("data:")]
    named = [name for name in asked if name.endswith(".js")]
    assert set(named) == {f"_static/live/{name}.js" for name in ("live", "figures/controls", "figures/numbers")} | {
        f"_static/live/figures/{name}.js" for name in (*PLAIN, "start")
    }
    assert sum((plain / name).stat().st_size for name in asked) < 160_000  # the drawings of five figures are half of it


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_a_figure_can_be_read_and_touched_in_light_and_dark_and_on_a_phone(browser, plain, theme, width):
    visit = Visit(browser.new_page(viewport={"width": width, "height": 900}), plain)
    page = visit.page
    page.evaluate(THEME, theme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not [finding for finding in page.evaluate(CONTENT) if finding[0] != "heading"]
    assert not page.evaluate(COLOURS, theme)["findings"]
    small = page.eval_on_selector_all(
        ".live-figure :is(button, select, input:not([type=radio]), .live-line label)",
        "all => all.map(e => e.getBoundingClientRect()).filter(b => Math.min(b.width, b.height) < 24).length",
    )
    assert small == 0, "a finger needs 24 pixels (WCAG 2.2, 2.5.8)"
    unnamed = page.eval_on_selector_all(
        ".live-figure :is(input, select)",
        "all => all.filter(e => !e.labels.length && !e.getAttribute('aria-label')).length",
    )
    assert unnamed == 0
    painted = page.eval_on_selector_all(
        ".live-bar", "all => all.filter(e => getComputedStyle(e).backgroundColor !== 'rgba(0, 0, 0, 0)').length"
    )
    assert painted == page.locator(".live-bar").count(), "a bar without a colour"
    page.close()


def test_without_scripts_the_drawing_stands_there_and_says_what_it_shows(browser, plain):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((plain / "index.html").as_uri())
    for name in PLAIN:
        drawing = page.locator(f".live-figure[data-live={name}] svg")
        assert drawing.is_visible() and drawing.get_attribute("aria-label") == drawn(name)["aria-label"]
    assert page.locator("form, input, button").count() == 0, "nothing that would not work"
    context.close()


def test_a_sentence_is_read_aloud_when_the_reader_pauses(alone):
    said = alone.figure("scale").locator(".live-said")
    said.evaluate("(element) => { element.dataset.kept = 'yes'; }")
    assert said.get_attribute("aria-live") == "polite"
    expect(said).not_to_have_attribute("aria-busy", "true")  # the pause since the page came: the clock cannot hold it
    alone.page.clock.install(time=0)
    alone.page.clock.pause_at(3600)  # from now on only run_for lets time pass, however busy the machine is
    for value in (3, 4, 5):
        alone.drag("scale", "Width", value)
        alone.page.clock.run_for(100)
        assert said.get_attribute("aria-busy") == "true", "a drag says a hundred things, and one of them is read"
    alone.page.clock.run_for(500)
    assert said.get_attribute("aria-busy") is None
    assert said.get_attribute("data-kept") == "yes" and said.inner_text().startswith("Width 32,")


# Why there is a scale


@pytest.mark.parametrize(("seed", "n"), [(1, 8), (64, 7), (2**31, 4608)])
def test_random_numbers_are_those_of_the_drawing_and_normal(compute, seed, n):
    found = compute("return Array.from(use('figures/numbers').normals(given.seed, given.n));", seed=seed, n=n)
    np.testing.assert_allclose(found, draw_plain.normals(seed, n), **CLOSE)
    if n > 1000:
        assert abs(np.mean(found)) < 0.05 and abs(np.var(found) - 1) < 0.06
        assert abs(np.mean(np.abs(found) < 1) - 0.683) < 0.02


@pytest.mark.parametrize("scores", [[0.0, 0.0, 0.0], [1.0, -2.0, 3.5, 0.25], [900.0, 899.0], [-5.0]])
def test_weights_and_their_gradient(compute, scores):
    body = "const { softmax, trace } = use('figures/numbers'); const w = softmax(given.scores); "
    weights, trace = compute(body + "return [w, trace(w)];", scores=scores)
    z = np.array(scores)
    np.testing.assert_allclose(weights, softmax(z), **CLOSE)
    step = 1e-5 * np.eye(len(z))
    by_differences = sum((softmax(z + d)[i] - softmax(z - d)[i]) / 2e-5 for i, d in enumerate(step))
    assert trace == pytest.approx(by_differences, abs=1e-8)


def test_products_of_random_vectors_are_those_of_the_drawing(compute):
    body = "const { productsOf, typical, DRAWS } = use('figures/scale'); "
    body += "const draws = Array.from({ length: DRAWS }, (_, i) => productsOf(i + 1)); return [draws, typical(draws)];"
    draws, typical = compute(body)
    assert len(draws) == draw_plain.DRAWS and typical + 1 == draw_plain.typical()
    for seed in (1, 5, 256):
        for i, found in enumerate(draws[seed - 1]):
            np.testing.assert_allclose(found, draw_plain.products(seed, 2**i), **CLOSE)


def test_the_scale_shows_what_its_drawing_shows(visit):
    svg = drawn("scale")
    shown = np.reshape([float(t.text) for t in svg.find_all("text") if re.fullmatch(r"\d\.\d\d", t.text)], (3, 8))
    told = [float(x) for x in re.findall(r"(\d\.\d\d) for dₖ = ", svg["aria-label"])]
    figure = visit.figure("scale")
    for i, (width, kind) in enumerate(((2, "nothing"), (9, "nothing"), (9, "√dₖ"))):
        visit.drag("scale", "Width", width)
        figure.locator(".live-line label", has_text=re.compile(f"^{kind}$")).click()
        assert [weight for _, weight in visit.columns("scale")] == shown[i].tolist()
        assert visit.columns("scale", 1)[0][0] == told[i]
        assert f"Of 8 weights the largest is {told[i]:.2f} on average" in visit.said("scale")
    assert told[0] < 0.6 and told[1] > 0.9 and told[2] < 0.6, "what the lecture asks its reader to see"


def test_the_root_holds_the_scale_at_every_width_and_the_width_itself_does_not(visit):
    of = {"√dₖ": [], "dₖ": [], "nothing": []}
    for kind, found in of.items():
        visit.figure("scale").locator(".live-line label", has_text=re.compile(f"^{kind}$")).click()
        for width in range(2, 10):
            visit.drag("scale", "Width", width)
            found.append(visit.columns("scale", 1)[0][0])
    assert max(of["√dₖ"]) - min(of["√dₖ"]) < 0.1
    assert of["nothing"] == sorted(of["nothing"]) and of["nothing"][-1] > 0.9
    assert of["dₖ"] == sorted(of["dₖ"], reverse=True) and of["dₖ"][-1] < 0.14, "nearly 1/8: it chooses nothing any more"


@pytest.mark.parametrize("width", [2, 4, 16, 32, 64, 512])
def test_the_gradient_that_reaches_the_products_is_the_librarys(compute, width):
    body = "const { measure, productsOf, WIDTHS, DRAWS } = use('figures/scale'); "
    body += "const draws = Array.from({ length: DRAWS }, (_, i) => productsOf(i + 1)); "
    body += "return given.divisors.map((by) => measure(draws, 3, WIDTHS.indexOf(given.width), by));"
    divisors = [1.0, np.sqrt(width), width]
    products = np.stack([draw_plain.products(seed, width) for seed in range(1, draw_plain.DRAWS + 1)])
    found = compute(body, width=width, divisors=divisors)
    for measured, divisor in zip(found, divisors, strict=True):
        w = softmax(products / divisor)
        jacobian = (np.eye(8) * w[:, None] - w[:, None] * w[:, :, None]) / divisor  # of the weights by the products
        gradient = np.trace(jacobian, axis1=1, axis2=2)
        assert measured["gradient"] == pytest.approx(np.median(gradient), abs=1e-12)
        assert measured["here"]["gradient"] == pytest.approx(gradient[3], abs=1e-12)
        assert measured["largest"] == pytest.approx(w.max(axis=-1).mean())
        assert measured["spread"] == pytest.approx(np.sqrt(np.mean(np.square(products / divisor))))
    if width == 512:
        none, root, whole = (measured["gradient"] for measured in found)
        assert none < 0.001 * 0.875 and root > 10 * whole > 10 * none, "what the front page says"
        assert round(found[2]["spread"], 2) == 0.04 and 22 < found[0]["spread"] < 23
        leads = np.diff(np.sort(products, axis=1)[:, -2:], axis=1)
        assert np.median(leads) > 8, "a lead of 10 is common"
    if width >= 32:
        assert (found[1]["gradient"] > found[0]["gradient"]) == (width >= 64), "the root pays from about 64 numbers on"
    if width == 16:
        assert found[0]["gradient"] > found[1]["gradient"] > found[2]["gradient"], "in short lists nothing saturates"


def test_the_scale_works_from_the_keyboard(visit):
    figure, keyboard = visit.figure("scale"), visit.page.keyboard
    width = figure.get_by_label("Width")
    width.focus()
    keyboard.press("End")
    assert width.get_attribute("aria-valuetext") == "512"
    before = visit.said("scale")
    assert before.startswith("Width 512, divided by nothing:")
    keyboard.press("Tab")
    keyboard.press("ArrowRight")
    assert visit.said("scale").startswith("Width 512, divided by √512 = 22.63:")
    assert figure.get_by_label("Divisor").get_attribute("aria-valuetext") == "22.63", "the slider follows the choice"
    keyboard.press("Tab")
    keyboard.press("ArrowLeft")
    assert visit.said("scale").startswith("Width 512, divided by 19.03:")
    assert figure.locator("input[type=radio]:checked + label").inner_text() == "as dragged"
    weights = visit.columns("scale")
    keyboard.press("Tab")
    keyboard.press("Enter")
    assert visit.columns("scale") != weights, "other random numbers"


def test_a_small_deviation_has_a_second_decimal(visit):
    visit.figure("scale").locator(".live-line label", has_text=re.compile("^dₖ$")).click()
    visit.drag("scale", "Width", 9)
    deviation = re.search(r"lie about ([\d.]+) from zero\.", visit.said("scale"))[1]
    draws = [draw_plain.products(seed, 512) / 512 for seed in range(1, draw_plain.DRAWS + 1)]
    assert deviation == f"{np.sqrt(np.mean(np.square(draws))):.2f}" and float(deviation) < 0.1


def test_the_scale_works_by_touch(browser, plain):
    context = browser.new_context(has_touch=True, is_mobile=True, viewport={"width": 360, "height": 800})
    page = context.new_page()
    page.goto((plain / "index.html").as_uri())
    width = page.get_by_label("Width")
    box = width.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] - 4, box["y"] + box["height"] / 2)
    assert width.get_attribute("aria-valuetext") == "512"
    page.locator(".live-figure[data-live=scale] .live-line label", has_text=re.compile("^dₖ$")).tap()
    assert "divided by 512" in page.locator("[data-live=scale] .live-said").inner_text()
    context.close()


# Attention by hand


@pytest.mark.parametrize("case", range(4))
def test_each_step_of_attention_is_the_librarys(compute, case):
    rng = np.random.default_rng(case)
    q, k, v = draw_plain.STEPS.values() if case == 0 else rng.uniform(-9, 9, size=(3, 2, 2))
    body = "return use('figures/steps').attend({ query: given.q, key: given.k, value: given.v });"
    found = compute(body, q=q, k=k, v=v)
    q, k, v = (np.asarray(numbers, dtype=float) for numbers in (q, k, v))
    expected = attention(q, k, v)
    np.testing.assert_allclose([steps["weights"] for steps in found], expected.weights, **CLOSE)
    np.testing.assert_allclose([steps["output"] for steps in found], expected.output, **CLOSE)
    np.testing.assert_allclose([steps["scaled"] for steps in found], q @ k.T / np.sqrt(2), **CLOSE)
    for steps in found:
        np.testing.assert_allclose(np.array(steps["exp"]) / steps["total"], steps["weights"], **CLOSE)


def test_the_steps_begin_with_what_their_drawing_shows(visit, compute):
    assert compute("return use('figures/steps').FIRST;") == draw_plain.STEPS
    figure = visit.figure("steps")
    table = figure.locator(".live-table").first
    cells = [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]
    words = " | ".join(t.text for t in drawn("steps").find_all("text"))
    for product, scaled, exp, weight in cells[:2]:
        assert f"{product} | divided by √2: {scaled} | exponential: {exp} | " in words
        assert f"divided by {cells[2][2]}: {weight}" in words
    assert (
        figure.locator(".live-sum")
        .first.inner_text()
        .replace("\u00a0", " ")
        .endswith("0.06 · (0, 0) + 0.94 · (1, 1) = (0.94, 0.94)")
    )
    assert "0.06 · (0, 0) + 0.94 · (1, 1)" in words and "it becomes (0.94, 0.94)" in words


@pytest.mark.parametrize(
    "changed",
    [{"query of it, number 1": "-2"}, {"key of cup, number 2": "-1"}, {"key of it, number 1": "2"}],
    ids="{0}".format,
)
def test_the_lectures_puzzle_has_the_answers_that_it_promises(visit, changed):
    figure = visit.figure("steps")
    assert "“it” takes 0.06 from “it” and 0.94 from “cup”" in visit.said("steps")
    for name, number in changed.items():
        figure.get_by_label(name).fill(number)
    assert "“it” takes 0.50 from “it” and 0.50 from “cup”" in visit.said("steps")
    figure.get_by_role("button").click()
    assert "“it” takes 0.06 from “it” and 0.94 from “cup”" in visit.said("steps")


def test_no_value_moves_a_weight(visit):
    figure = visit.figure("steps")
    before = figure.locator(".live-table td[style]").all_inner_texts()
    figure.get_by_label("value of cup, number 1").fill("-7.5")
    assert figure.locator(".live-table td[style]").all_inner_texts() == before
    assert "becomes (−7.08,\u00a00.94)" in visit.said("steps")


def test_negative_numbers_are_multiplied_in_brackets(visit):
    visit.figure("steps").get_by_label("query of it, number 1").fill("-2.5")
    product = visit.figure("steps").locator(".live-table tbody tr").nth(1).locator("td").first
    assert product.inner_text() == "(−2.5) · 1 + 2 · 1 = −0.5"


def test_no_product_is_rounded_and_no_exponential_is_zero(visit):
    figure = visit.figure("steps")
    for field, number in (
        ("query of it, number 1", "0.25"),
        ("query of it, number 2", "-9"),
        ("key of cup, number 1", "0.15"),
    ):
        figure.get_by_label(field).fill(number)
    figure.get_by_label("key of cup, number 2").fill("9")
    cells = figure.locator(".live-table tbody tr").nth(1).locator("td").all_inner_texts()
    assert cells[0] == "0.25 · 0.15 + (−9) · 9 = −80.9625"
    assert cells[2] == f"{np.exp(-80.9625 / np.sqrt(2)):.1e}".replace("e-", " · 10^−")


@pytest.mark.parametrize("typed", ["", "10", "-9.5", "1e3", "0.125", "1e-9"])
def test_what_is_no_number_is_said_and_nothing_old_stands_under_it(visit, typed):
    figure = visit.figure("steps")
    field = figure.get_by_label("key of cup, number 2")
    field.fill(typed)
    status = visit.page.locator(f"#{field.get_attribute('aria-describedby')}")
    assert status.inner_text() == "Type a number from −9 to 9, with 2 decimals at most, as the key of cup, number 2."
    assert status.get_attribute("role") == "status" and field.get_attribute("aria-invalid") == "true"
    assert figure.locator("table").count() == 0 and visit.said("steps") == ""
    assert figure.locator("[aria-invalid]").count() == 1
    field.fill("1")
    assert figure.locator("[aria-invalid]").count() == 0 and figure.locator("table").count() == 2
    assert status.inner_text() == ""


def test_numbers_change_from_the_keyboard(visit):
    visit.figure("steps").get_by_label("query of it, number 1").focus()
    for _ in range(8):
        visit.page.keyboard.press("ArrowDown")
    assert "“it” takes 0.50 from “it” and 0.50 from “cup”" in visit.said("steps"), "eight halves down: −2"
