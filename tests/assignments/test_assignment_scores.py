"""What right and wrong solutions of each assignment earn."""

import contextlib
import itertools
import re

import pytest

from tests.assignments.variants.banks import BANKS
from tests.support.course import ROOT, maximum
from tests.support.proof import lost
from tests.support.quick import QuickScorer, scores, source_of

EVERY = 4


def with_bank(*kinds):
    """Parametrise by a bank and one of its solutions of these kinds."""
    pairs = [(bank, variant) for bank in BANKS for kind in kinds for variant in getattr(bank, kind)]
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
    """One solution in so many, with one of twenty seeds; the proof tried every solution with all of them."""
    scorer, seeds = scorers(bank), itertools.cycle(range(1, 21))
    for variant, seed in zip((bank.right + bank.wrong)[::EVERY], seeds, strict=False):
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
def test_the_same_submission_gets_the_same_score_ten_times(scorers, bank):
    scorer, variant = scorers(bank), bank.wrong[0]
    assert all(lost(scorer, scorer.run(variant.cells)) == variant.loses for _ in range(10))


def reported(notebook, mark: str) -> set[tuple[str, str]]:
    """The hidden tests, by cell and name, whose line in the report begins with this mark."""
    found = set()
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            lines = re.findall(rf"^  (?:{mark}) of [\d.]+  (.*)$", output.get("text", ""), re.MULTILINE)
            found |= {(cell.metadata.nbgrader.grade_id, line) for line in lines}
    return found


def reported_slips(notebook) -> set[tuple[str, str]]:
    """The mistakes that were charged once, by cell and name."""
    found = set()
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            lines = re.findall(r"^  -[\d.]+  (.*) \(charged here alone", output.get("text", ""), re.MULTILINE)
            found |= {(cell.metadata.nbgrader.grade_id, line) for line in lines}
    return found


@each_bank
def test_every_hidden_test_fails_for_some_wrong_solution(scorers, bank):
    scorer = scorers(bank)
    every = reported(scorer.outcome(bank.right[0]), r"[\d.]+")
    assert len(every) > 20
    missing = every - set().union(*(reported(scorer.outcome(variant), "0") for variant in bank.wrong))
    if missing:  # for those that fail only for a mistake with a price of its own, which is undone first
        source = source_of(bank.assignment)
        for cell in source.cells:
            cell.source = cell.source.replace(", slips=slips)", ")")
        with contextlib.closing(QuickScorer(source, bank.modules)) as strict:
            for variant in bank.wrong:
                if missing and reported_slips(scorer.outcome(variant)):
                    missing -= reported(strict.run(variant.cells), "0")
    assert missing == set()


@each_bank
def test_every_mistake_that_has_one_price_is_made_by_some_wrong_solution(scorers, bank):
    tests = {
        cell.metadata.nbgrader.grade_id: cell.source
        for cell in scorers(bank).graded.cells
        if "nbgrader" in cell.metadata
    }
    every = {(name, what) for name, source in tests.items() for what in re.findall(r'Slip\(\s*"([^"]+)"', source)}
    report = set().union(*(reported_slips(scorers(bank).outcome(variant)) for variant in bank.wrong))
    assert every == report


@each_bank
def test_every_score_is_a_plain_float_within_its_cell(scorers, bank):
    scorer = scorers(bank)
    for variant in bank.wrong[::6] + bank.right[::4]:
        for cell in scorer.outcome(variant).cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id")
            if name in maximum(scorer.graded):
                result = cell.outputs[-1]
                assert result.output_type == "execute_result"
                assert 0 <= float(result.data["text/plain"]) <= cell.metadata.nbgrader.points
                assert "np." not in result.data["text/plain"]
