"""Searching for the text that means the same: ranks, their scores, and what embeddings have to beat."""

import numpy as np
import pytest

from course_lib.evaluation.retrieval import cosines, ranks, retrieval_scores
from course_lib.evaluation.retrieval_baselines import tfidf_cosine, word_overlap


def test_ranks_of_three_searches_and_four_texts():
    scores = [[0.9, 0.1, 0.2, 0.3], [0.5, 0.4, 0.1, 0.6], [0.1, 0.2, 0.3, 0.3]]
    assert ranks(scores).tolist() == [1, 3, 2]  # the last one ties with a wrong text
    found = retrieval_scores(scores)
    assert found.first.value == pytest.approx(1 / 3) and found.n == 3
    assert found.reciprocal.value == pytest.approx((1 + 1 / 3 + 1 / 2) / 3)
    assert found.reciprocal.low < found.reciprocal.value < found.reciprocal.high
    assert str(found).startswith("right one first 0.333 [")


def test_who_scores_all_alike_finds_nothing():
    assert ranks(np.zeros((5, 5))).tolist() == [5] * 5


def test_cosines_do_not_see_lengths():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(4, 3)), rng.normal(size=(6, 3))
    expected = [[a @ b / np.sqrt(a @ a) / np.sqrt(b @ b) for b in second] for a in first]
    np.testing.assert_allclose(cosines(first * [[3.0], [0.1], [7.0], [1.0]], 2 * second), expected)
    assert cosines(np.zeros((1, 3)), second).tolist() == [[0.0] * 6]


def test_word_overlap():
    found = word_overlap(["The nurse gave me a shot.", "!"], ["A NURSE gave me: the shot", "the shot hurts", "..."])
    np.testing.assert_allclose(found, [[1.0, 2 / 7, 0.0], [0.0, 0.0, 0.0]])
    assert word_overlap([], ["a"]).shape == (0, 1)


def test_tfidf_gives_rare_pieces_more_weight_and_sees_parts_of_words():
    corpus = ["the cat sleeps", "the dog sleeps", "the bird sings", "the fish swims"]
    found = tfidf_cosine(["the bird sings"], ["the bird", "the sleeps", "singing", "moody owl"], corpus)
    assert found.shape == (1, 4) and found[0, 0] > found[0, 2] > found[0, 1] > found[0, 3] == 0
    np.testing.assert_allclose(np.diagonal(tfidf_cosine(corpus, corpus, corpus)), 1.0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ranks(np.zeros((3, 2))), ValueError, "M of N or more; got \\(3, 2\\)"),
        (lambda: ranks(np.zeros(3)), ValueError, "got \\(3,\\)"),
        (lambda: ranks(np.zeros((0, 0))), ValueError, "N searches of 1 or more"),
        (lambda: ranks([[np.nan]]), ValueError, "not a number"),
        (lambda: cosines(np.zeros((2, 3)), np.zeros((2, 4))), ValueError, "vectors of one size"),
        (lambda: cosines(np.zeros(3), np.zeros((2, 3))), ValueError, "vectors of one size"),
        (lambda: word_overlap([1], ["a"]), TypeError, "first"),
        (lambda: word_overlap(["a"], [None]), TypeError, "second"),
        (lambda: tfidf_cosine(["a"], ["a"], [2]), TypeError, "corpus"),
    ],
)
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
