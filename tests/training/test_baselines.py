"""The baselines learn what they can see and nothing more."""

import numpy as np

from course_lib.evaluation.baselines import SharedWords, frozen_features, majority, tfidf, word_overlap

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


FOLLOWS = [
    ("The lighthouse keeper lit the lamp.", "His lamp shone over the harbour."),
    ("A violin lay on the table.", "She played the violin at night."),
    ("Rain fell on the vineyard.", "The vineyard was on a hill."),
    ("The train left Vienna late.", "In Vienna nobody had waited."),
    ("Bees came to the orchard.", "The orchard was full of bees."),
] * 4
APART = [(first, FOLLOWS[(n + 1) % 5][1]) for n, (first, _) in enumerate(FOLLOWS)]


def test_words_that_two_texts_share():
    shared = SharedWords().fit(FOLLOWS)
    pairs = [
        ("The orchard, the bees!", "BEES of it"), ("the of", "the of"), ("", ""), ("a snowman", "the snowman"),
        ("bees bees lamp", "bees"),
    ]  # fmt: skip
    found = shared.transform(pairs)
    np.testing.assert_allclose(found[:, 0], [1, 0, 0, 1, 1])
    np.testing.assert_allclose(found[:, 1], [1 / 2, 0, 0, 1, 1 / 2])
    assert (found[[0, 1, 4], 2] > 0).all() and found[2, 2] == 0 and found[:, 2].max() <= 1 + 1e-9
    np.testing.assert_array_equal(found[:, 3], [1, 1, 0, 0, 1])  # "snowman" stands in no training text, "a" in one side
    assert found[4, 2] > found[0, 2]


def test_rare_words_count_more_than_frequent_ones():
    found = SharedWords().fit(FOLLOWS + APART).transform([("the lamp stood", "the"), ("the lamp stood", "lamp")])
    assert found[1, 2] > found[0, 2] > 0
    (of_a_second,) = SharedWords().fit(FOLLOWS).transform([("a harbour", "the harbour")])
    assert of_a_second[2] > 0, "words of both sides are counted"


def test_word_overlap_tells_what_follows():
    labels = [1] * len(FOLLOWS) + [0] * len(APART)
    model = word_overlap().fit(FOLLOWS + APART, labels)
    assert (model.predict(FOLLOWS + APART) == labels).mean() > 0.9
    seconds = ("The boat was red.", "My bicycle was red.")
    assert list(model.predict([("A boat came.", second) for second in seconds])) == [1, 0]
