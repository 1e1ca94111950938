"""Entities by heart: on small sentences, and with the published figures on CoNLL-2003."""

import pytest
from numpy.testing import assert_allclose

from course_lib.data import conll
from course_lib.evaluation.entities import entity_scores
from course_lib.evaluation.entity_baselines import KnownEntities

WORDS = [["New", "York", "and", "York"], ["York", "sleeps"], ["Ann", "York"], ["Bath"], ["Bath"]]
TAGS = [["B-LOC", "I-LOC", "O", "B-LOC"], ["B-PER", "O"], ["B-PER", "I-PER"], ["B-ORG"], ["B-LOC"]]


def test_what_is_known_comes_from_memory_the_longest_first():
    fitted = KnownEntities().fit([*WORDS, ["York"]], [*TAGS, ["B-PER"]])
    found = fitted.predict([["New", "York", "York"], ["Ann", "York", "Ann"], ["Bath", "new"], []])
    assert found == [["B-LOC", "I-LOC", "B-PER"], ["B-PER", "I-PER", "O"], ["B-LOC", "O"], []]


def test_without_entities_nothing_is_known():
    assert KnownEntities().fit([["a"]], [["O"]]).predict([["a", "b"]]) == [["O", "O"]]


@pytest.mark.parametrize(
    ("sentences", "tags", "message"),
    [
        ([["a"]], [], "1 sentences but tags of 0"),
        ([["a", "b"]], [["O"]], "sentence 0 has 2 words but 1 tags"),
        ([["a"]], [["PER"]], "tag 0 is 'PER'; IOB2 knows O"),
    ],
)
def test_what_is_refused(sentences, tags, message):
    with pytest.raises(ValueError, match=message):
        KnownEntities().fit(sentences, tags)


def test_the_published_figures_of_memory_on_conll_2003():
    """As the paper and the page of the shared task have them: precision, recall and F1 in per cent, to two places."""
    train = conll.load("train", progress=False)
    fitted = KnownEntities().fit(train.words, train.tags)
    for part, expected in (("validation", (78.33, 65.23, 71.18)), ("test", (71.91, 50.90, 59.61))):
        own = conll.load(part, progress=False)
        found = entity_scores(fitted.predict(own.words), own.tags).micro
        assert_allclose([100 * value for value in found[:3]], expected, atol=0.005)
