"""Entities and their scores: against a loop from the definition of CoNLL's script, and numbers that seqeval gave."""

import random

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.evaluation.entities import Entity, entities, entity_f1, entity_scores
from course_lib.evaluation.estimate import bootstrap

TRUTH = [
    ["O", "B-PER", "I-PER", "O", "B-LOC"],
    ["B-ORG", "I-ORG", "B-ORG", "O"],
    ["B-PER", "I-LOC", "I-LOC", "O", "I-MISC"],
    ["O", "O"],
]
PREDICTED = [
    ["O", "I-PER", "I-PER", "O", "O"],
    ["B-ORG", "B-ORG", "I-ORG", "I-PER"],
    ["B-PER", "I-LOC", "B-LOC", "I-PER", "B-MISC"],
    ["I-LOC", "O"],
]
# seqeval 1.2.2, classification_report(TRUTH, PREDICTED, output_dict=True, zero_division=0)
SEQEVAL = {
    "LOC": (0.0, 0.0, 0.0, 2),
    "MISC": (1.0, 1.0, 1.0, 1),
    "ORG": (0.0, 0.0, 0.0, 2),
    "PER": (0.5, 1.0, 0.6666666666666666, 2),
    "micro": (0.3, 0.42857142857142855, 0.3529411764705882, 7),
}


def chunks(tags):
    """The entities by conlleval's two questions between neighbouring words: did one end, did one begin?"""
    found, begun = set(), None
    pairs = [("O", "")] + [(tag[0], tag[2:]) for tag in tags] + [("O", "")]
    for i, ((before, old), (now, new)) in enumerate(zip(pairs[:-1], pairs[1:], strict=True)):
        ends = before in "BI" and (now in "BO" or old != new)
        begins = now == "B" or (now == "I" and (before == "O" or old != new))
        if ends:
            found.add((old, begun, i))
        if begins:
            begun = i
    return found


def test_scores_of_seqeval():
    found = entity_scores(PREDICTED, TRUTH)
    assert list(found.types) == ["LOC", "MISC", "ORG", "PER"]
    for kind, score in {**found.types, "micro": found.micro}.items():
        assert_allclose(score, SEQEVAL[kind], rtol=1e-12, err_msg=kind)
    assert str(found.micro) == "precision 0.300, recall 0.429, F1 0.353 (7 entities)"


@pytest.mark.parametrize("seed", range(3))
def test_entities_are_those_of_the_definition_whatever_the_tags(seed):
    rng = random.Random(seed)
    tags = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "I-work-of-art"]
    for length in [0, 1, 2, *[12] * 300]:
        sentence = [rng.choice(tags) for _ in range(length)]
        assert set(entities(sentence)) == chunks(sentence), sentence


def test_broken_sequences():
    assert entities(["I-PER", "I-PER", "O"]) == [Entity("PER", 0, 2)], "without a beginning"
    assert entities(["B-PER", "I-LOC"]) == [("PER", 0, 1), ("LOC", 1, 2)], "another type"
    assert entities(["B-PER", "B-PER"]) == [("PER", 0, 1), ("PER", 1, 2)], "two neighbours"
    assert entities(["O", "B-work-of-art", "I-work-of-art"]) == [("work-of-art", 1, 3)], "up to the last word"
    assert entities([]) == []


def test_an_entity_counts_in_its_own_sentence_alone():
    assert entity_scores([["B-A"], ["O"]], [["O"], ["B-A"]]).micro == (0.0, 0.0, 0.0, 1)
    assert list(entity_scores([["B-B", "O"]], [["O", "B-A"]]).types) == ["A", "B"], "types of either side"


def test_without_any_entity_the_scores_are_zero():
    assert entity_scores([["O"]], [["O"]]) == ((0.0, 0.0, 0.0, 0), {})
    assert entity_f1([["O"], ["O"]], [["O"], ["O"]]) == (0.0, 0.0, 0.0)


def test_the_interval_of_the_f1_is_that_of_drawn_sentences():
    truth, predicted = TRUTH * 20, (PREDICTED + TRUTH) * 10
    value, low, high = entity_f1(predicted, truth)
    assert_allclose(value, entity_scores(predicted, truth).micro.f1, rtol=1e-12)
    rng, drawn = np.random.default_rng(5), []
    for _ in range(300):
        rows = rng.integers(0, len(truth), len(truth))
        drawn.append(entity_scores([predicted[i] for i in rows], [truth[i] for i in rows]).micro.f1)
    assert_allclose([low, high], np.quantile(drawn, [0.025, 0.975]), atol=0.02)
    narrow = entity_f1(predicted, truth, confidence=0.5)
    assert low < narrow.low < value < narrow.high < high


def test_draws_without_an_entity_say_nothing():
    tags = [["O"]] * 500 + [["B-X"]] * 2
    assert entity_f1(tags, tags) == (1.0, 1.0, 1.0)
    assert entity_f1(tags, tags, n_resamples=1, seed=6) == (1.0, 1.0, 1.0)
    found = entity_f1(tags, [["B-X"]] * 502)
    assert found.high < 0.05


@pytest.mark.parametrize(
    ("predicted", "truth", "error", "message"),
    [
        ([], [], ValueError, "at least one, needs predicted and true tags; there are 0 and 0"),
        ([["O"]], [["O"], ["O"]], ValueError, "there are 1 and 2"),
        ([["O"]], [["O", "O"]], ValueError, "sentence 0 has 2 words but 1 predicted tags"),
        ([["PER"]], [["O"]], ValueError, "tag 0 is 'PER'; IOB2 knows O"),
        ([["I-"]], [["O"]], ValueError, "tag 0 is 'I-'"),
        ([["E-PER"]], [["O"]], ValueError, "tag 0 is 'E-PER'"),
        ([[3]], [["O"]], TypeError, "tag 0 is a int, not a str"),
        (["O"], ["O"], TypeError, "not the str 'O'"),
    ],
)
def test_what_is_refused(predicted, truth, error, message):
    for function in (entity_scores, entity_f1):
        with pytest.raises(error, match=message):
            function(predicted, truth)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0],), r"shape \(N, K\) with N of 1 or more, got \(2,\)"),
        ((np.zeros((0, 2)),), r"got \(0, 2\)"),
        ((np.ones((2, 2)), 1.0), "confidence must lie between 0 and 1"),
        ((np.ones((2, 2)), 0.0), "confidence must lie between 0 and 1"),
        ((np.ones((2, 2)), 0.9, 0), "n_resamples must be a whole number of 1 or more"),
    ],
)
def test_what_the_bootstrap_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        bootstrap(arguments[0], lambda sums: sums[..., 0], *arguments[1:])
