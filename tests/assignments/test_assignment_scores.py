"""What right and wrong solutions of each assignment earn."""

import itertools
import re

import pytest

from tests.assignments.variants.banks import BANKS
from tests.support.course import ROOT, maximum
from tests.support.proof import lost, tried_anew
from tests.support.quick import scores


def with_bank(*kinds):
    """Parametrise by a bank and some of its solutions of these kinds; the record has all."""
    pairs = [(bank, variant) for bank in BANKS for kind in kinds for variant in tried_anew(bank)[kind]]
    return pytest.mark.parametrize(("bank", "variant"), pairs, ids=lambda value: getattr(value, "name", str(value)))


each_bank = pytest.mark.parametrize("bank", BANKS, ids=str)


def test_every_assignment_has_a_bank():
    assert {bank.assignment for bank in BANKS} == {path.name for path in (ROOT / "assignments" / "source").iterdir()}


@each_bank
def test_the_points_are_those_the_notebook_promises(scorers, bank):
    """The table at the beginning adds up to those of the cells, and those of the written answers."""
    graded = scorers(bank).graded
    table = "".join(cell.source for cell in graded.cells[:3] if "| points |" in cell.source)
    promised = [sum(map(int, re.findall(r"\d+", row))) for row in re.findall(r"^\| \d.*\| ([\d +]+) \|$", table, re.M)]
    together = int(re.search(r"\*\*together\*\* \| \*\*(\d+)", table)[1])
    written = [
        c.metadata.nbgrader.points for c in graded.cells if c.cell_type == "markdown" and "nbgrader" in c.metadata
    ]
    assert written and sum(promised) == together == sum(maximum(graded).values()) + sum(written)


@with_bank("wrong", "tricks")
def test_a_wrong_solution_loses_exactly_the_points_it_should(scorers, bank, variant):
    scorer = scorers(bank)
    assert lost(scorer, scorer.outcome(variant)) == variant.loses, variant.why


@with_bank("right")
def test_a_right_solution_in_another_style_loses_nothing(scorers, bank, variant):
    scorer = scorers(bank)
    assert lost(scorer, scorer.outcome(variant)) == {}, variant.why


@each_bank
def test_other_inputs_give_the_same_scores(scorers, bank):
    """Each with one of twenty seeds; the proof tried every solution with all of them."""
    scorer, seeds = scorers(bank), itertools.cycle(range(1, 21))
    for variant, seed in zip((bank.right + bank.wrong)[2::32], seeds, strict=False):
        assert lost(scorer, scorer.run(variant.cells, seed=seed)) == variant.loses, (variant.name, seed)


@each_bank
def test_there_are_as_many_solutions_as_promised(bank):
    assert len(bank.wrong) >= 25 and len(bank.right) >= 10
    names = [variant.name for variant in bank.wrong + bank.right + bank.tricks]
    assert len(names) == len(set(names))
    for variant in bank.wrong + bank.tricks:
        assert variant.loses and variant.why, variant.name


@each_bank
def test_the_untouched_release_earns_nothing_and_raises_in_no_graded_cell(scorers, bank):
    scorer = scorers(bank)
    notebook = scorer.run({}, base={})
    hidden = maximum(scorer.graded)
    assert {name: scores(notebook)[name] for name in hidden} == dict.fromkeys(hidden, 0)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") in hidden:
            assert {output.output_type for output in cell.outputs} == {"stream", "execute_result"}
            assert "Not written yet" in cell.outputs[0].text


@each_bank
def test_the_same_submission_gets_the_same_score_again(scorers, bank):
    """And to the letter the same outputs: a grader that draws anew shows it there before a point depends on it."""
    scorer, variant = scorers(bank), bank.wrong[0]
    first, second = scorer.run(variant.cells), scorer.run(variant.cells)
    assert lost(scorer, first) == lost(scorer, second) == variant.loses
    assert [cell.get("outputs") for cell in first.cells] == [cell.get("outputs") for cell in second.cells]


@each_bank
def test_every_score_is_a_plain_float_within_its_cell(scorers, bank):
    scorer = scorers(bank)
    for variant in sum(tried_anew(bank).values(), []):
        for cell in scorer.outcome(variant).cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id")
            if name in maximum(scorer.graded):
                result = cell.outputs[-1]
                assert result.output_type == "execute_result"
                assert 0 <= float(result.data["text/plain"]) <= cell.metadata.nbgrader.points
                assert "np." not in result.data["text/plain"]
