"""The baselines learn what they can see and nothing more."""

import numpy as np

from course_lib.evaluation.baselines import frozen_features, majority, tfidf

GOOD, BAD = "a warm and moving film", "a cold and boring film"


def test_majority_takes_the_larger_class():
    model = majority().fit(["a", "b", "c"], [0, 1, 1])
    assert list(model.predict(["x", "y"])) == [1, 1]


def test_tfidf_learns_from_words():
    model = tfidf().fit([GOOD, BAD] * 10, [1, 0] * 10)
    assert list(model.predict(["moving", "boring"])) == [1, 0]


def test_tfidf_sees_pairs_of_words():
    texts = ["not good", "good not", "not bad", "bad not"] * 10
    model = tfidf().fit(texts, [0, 1, 1, 0] * 10)
    assert list(model.predict(["not good", "not bad"])) == [0, 1]


def test_frozen_features_separates_vectors_of_any_scale():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    vectors = rng.normal(size=(60, 5)) * [1, 1, 1, 1, 1e-4] + labels[:, None] * [0, 0, 0, 0, 1e-3]
    assert (frozen_features().fit(vectors, labels).predict(vectors) == labels).mean() > 0.95
