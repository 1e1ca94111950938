"""What right and wrong solutions earn."""

import re

import pytest
from variants import right, tricks, wrong_attention, wrong_heads, wrong_softmax_and_masks

from tests.support.course import maximum
from tests.support.quick import scores

WRONG = wrong_softmax_and_masks.VARIANTS + wrong_attention.VARIANTS + wrong_heads.VARIANTS
RIGHT = right.VARIANTS


def lost(scorer, variant) -> dict[str, float]:
    earned = scores(scorer.outcome(variant))
    return {name: of - earned[name] for name, of in maximum(scorer.graded).items() if earned[name] != of}


def test_the_points_are_those_the_notebook_promises(scorer):
    points = maximum(scorer.graded)
    assert points == {
        "test-softmax": 4, "test-padding-mask": 2, "test-causal-mask": 2, "test-attention": 5,
        "test-masked-attention": 5, "test-split-heads": 2, "test-merge-heads": 2, "test-multi-head-attention": 4,
    }
    assert sum(points.values()) == 26


@pytest.mark.parametrize("variant", WRONG + tricks.VARIANTS, ids=lambda v: v.name)
def test_a_wrong_solution_loses_exactly_the_points_it_should(scorer, variant):
    assert lost(scorer, variant) == variant.loses, variant.why


@pytest.mark.parametrize("variant", RIGHT, ids=lambda v: v.name)
def test_a_right_solution_in_another_style_loses_nothing(scorer, variant):
    assert lost(scorer, variant) == {}, variant.why


def test_there_are_as_many_solutions_as_promised():
    assert len(WRONG) >= 25 and len(RIGHT) >= 8
    names = [variant.name for variant in WRONG + RIGHT + tricks.VARIANTS]
    assert len(names) == len(set(names))
    for variant in WRONG + tricks.VARIANTS:
        assert variant.loses and variant.why, variant.name


def test_the_untouched_release_earns_nothing_and_raises_in_no_graded_cell(scorer):
    notebook = scorer.run({}, base={})
    hidden = maximum(scorer.graded)
    assert {name: scores(notebook)[name] for name in hidden} == dict.fromkeys(hidden, 0)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") in hidden:
            assert {output.output_type for output in cell.outputs} == {"stream", "execute_result"}
            assert "Not written yet" in cell.outputs[0].text


@pytest.mark.parametrize("name", ["no scale", "mask after the softmax", "softmax changes its argument"])
def test_the_same_submission_gets_the_same_score_ten_times(scorer, name):
    variant = next(variant for variant in WRONG if variant.name == name)
    ten = [scorer.score(variant.cells) for _ in range(10)]
    assert all(score == ten[0] for score in ten)
    assert ten[0] == scores(scorer.outcome(variant))


def reported(notebook, mark: str) -> set[tuple[str, str]]:
    """The hidden tests, by cell and name, whose line in the report begins with this mark."""
    found = set()
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            lines = re.findall(rf"^  (?:{mark}) of [\d.]+  (.*)$", output.get("text", ""), re.MULTILINE)
            found |= {(cell.metadata.nbgrader.grade_id, line) for line in lines}
    return found


def test_every_hidden_test_fails_for_some_wrong_solution(scorer):
    every = reported(scorer.outcome(RIGHT[0]), r"[\d.]+")
    assert len(every) == 35
    failed = set().union(*(reported(scorer.outcome(variant), "0") for variant in WRONG))
    assert every - failed == set()


def test_every_score_is_a_plain_float_within_its_cell(scorer):
    for variant in WRONG[::6] + RIGHT[::4]:
        for cell in scorer.outcome(variant).cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id")
            if name in maximum(scorer.graded):
                result = cell.outputs[-1]
                assert result.output_type == "execute_result"
                assert 0 <= float(result.data["text/plain"]) <= cell.metadata.nbgrader.points
                assert "np." not in result.data["text/plain"]
