"""The live figure that trains: a head of attention learns a soft dictionary in the page, as the library's does."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from notebooks.experiments import score_scale
from tests.support.live_page import draw_live
from tests.support.plain_page import as_number, drawn

draw_dictionary = draw_live.draw_dictionary
LEARN = """
const { setsOf, newSets, headOf, measure, descend, BATCH, DATA_SEED } = use('figures/dictionary');
const head = headOf(given.seed, given.size, given.kind);
const [data, sets] = [use('figures/numbers').uniforms(DATA_SEED + given.seed), newSets()];
const [losses, shares] = [[], [measure(head, sets).right]];
for (let i = 0; i < given.steps; i++) {
  losses.push(descend(head, setsOf(data, BATCH), given.rate));
  shares.push(measure(head, sets).right);
}
return [losses, shares];
"""


@pytest.mark.parametrize(
    ("size", "kind", "rate", "steps"),
    [
        (256, {"divided": True}, 1.0, 60),
        (256, {}, 0.1, 60),
        (256, {"small": True}, 0.1, 30),
        (64, {"divided": True}, 3.0, 30),
        (4, {"divided": True}, 0.3, 30),
        (16, {}, 1.0, 4),  # where nothing is learned, a rounding grows
    ],
)
def test_a_head_learns_in_the_page_as_in_the_library(compute, size, kind, rate, steps):
    losses, shares = compute(LEARN, size=size, kind=kind, rate=rate, steps=steps, seed=2)
    expected, right = draw_dictionary.learn(
        size, kind.get("divided", False), rate, kind.get("small", False), seed=2, steps=steps
    )
    np.testing.assert_allclose(losses, expected, atol=1e-4)
    np.testing.assert_allclose(shares, right, atol=0.0051)  # of 200 sets one may be a tie
    assert losses[0] != losses[-1]


def test_the_task_is_that_of_the_experiment(compute):
    body = "const { newSets, SIZES, RATES, KINDS, STEPS } = use('figures/dictionary'); const [set] = newSets(); "
    body += "return [SIZES, RATES, KINDS.length, STEPS, set.query.length, set.keys.length, newSets().length];"
    sizes, rates, kinds, *numbers = compute(body)
    assert sizes == list(score_scale.HEADS) and rates == list(score_scale.RATES)
    assert kinds == len({(run.scaled, run.small_start) for run in score_scale.RUNS.values()})
    assert numbers == [score_scale.STEPS, score_scale.D, score_scale.N_KEYS, draw_dictionary.NEW]


def test_what_guessing_gets_is_the_librarys(compute):
    found = compute("const { newSets, guessing } = use('figures/dictionary'); return guessing(newSets());")
    assert found == pytest.approx(draw_dictionary.guessing())


def choose(visit, size, kind, rate):
    figure = visit.figure("dictionary")
    for said in (f"{size}", kind):
        figure.locator(".live-line label", has_text=re.compile(f"^{said}$")).click()
    visit.drag("dictionary", "Learning rate", score_scale.RATES.index(rate))


def train(visit, steps=60):
    """Press the button and wait for the end; returns the share that is right then."""
    visit.figure("dictionary").locator("button.live-main").click()
    ended = re.compile(rf"After {steps} steps, ([\d.]+) are right\.")
    expect(visit.figure("dictionary").locator(".live-said")).to_have_text(ended, timeout=120_000)
    return float(ended.search(visit.said("dictionary"))[1])


def test_the_reader_finds_what_the_drawing_and_the_lecture_say(visit):
    words = " | ".join(t.text for t in drawn("dictionary").find_all("text"))
    figure = visit.figure("dictionary")
    assert visit.said("dictionary").startswith("Head of 256, not divided, rate 1. Before training, 0.1")
    assert "the largest weight is 0.9" in visit.said("dictionary")
    unlearned = train(visit)
    guess = float(re.search(r"a guess, ([\d.]+)", words)[1])
    assert unlearned < guess + 0.1 and f"right in {guess:.3f}." in visit.said("dictionary")
    choose(visit, 256, "nothing", 0.1)
    assert "Not trained yet." in visit.said("dictionary")
    slower = train(visit)
    choose(visit, 256, "√dₖ", 1.0)
    divided = train(visit)
    assert f"divided by 16, rate 1: {divided:.3f}" in words and f"not divided, rate 0.1: {slower:.3f}" in words
    assert divided > 0.95 and slower > 0.9
    assert visit.columns("dictionary") == [[60, divided], [60, slower], [60, unlearned]], "the newest stands first"
    assert figure.locator("svg .live-before").count() == 2
    own = re.search(r"weight of ([\d.]+)", figure.locator(".live-bars-up").get_attribute("aria-label"))[1]
    assert as_number(own) > 0.5


def test_a_head_trains_on_and_a_new_choice_ends_its_training(visit):
    button = visit.figure("dictionary").locator("button.live-main")
    choose(visit, 4, "√dₖ", 0.1)
    train(visit)
    assert button.inner_text() == "Train 60 more"
    train(visit, 120)
    assert [steps for steps, _ in visit.columns("dictionary")] == [120]
    button.click()
    choose(visit, 16, "nothing", 0.3)
    assert "Not trained yet." in visit.said("dictionary") and button.inner_text() == "Train 60 steps"
    visit.page.wait_for_timeout(200)
    assert "Not trained yet." in visit.said("dictionary"), "the training before has ended"
    visit.figure("dictionary").get_by_role("button", name="Other random numbers").click()
    assert visit.figure("dictionary").locator(".live-bars").count() == 0, "results of other numbers are gone"


def test_it_trains_from_the_keyboard(visit):
    figure, keyboard = visit.figure("dictionary"), visit.page.keyboard
    figure.get_by_label("4", exact=True).focus()
    keyboard.press("Space")
    keyboard.press("Tab")
    keyboard.press("ArrowLeft")
    keyboard.press("Tab")
    keyboard.press("ArrowLeft")
    assert visit.said("dictionary").startswith("Head of 4, divided by 2, rate 0.3.")
    keyboard.press("Tab")
    keyboard.press("Enter")
    expect(figure.locator(".live-said")).to_have_text(re.compile("After 60 steps"), timeout=120_000)
    assert figure.locator("button.live-main").evaluate("e => e === document.activeElement"), "focus stays"
