"""Associative recall: drawn as the recipe says, with the answers that a table gives."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.data.associative_recall import draw, last_value, looked_up, recalled

SIZES = {"n": 300, "length": 40, "n_pairs": 5, "n_queries": 8, "n_keys": 9, "n_values": 7}


def drawn(seed=0, **changes):
    return draw(**{**SIZES, **changes}, rng=np.random.default_rng(seed))


def test_a_sequence_is_what_the_recipe_says():
    ids, labels = drawn()
    assert ids.shape == labels.shape == (300, 40)
    keys, values = ids[:, 0:10:2], ids[:, 1:10:2]
    assert (keys.min(), keys.max(), values.min(), values.max()) == (1, 9, 10, 16)
    for row in (*keys, *values):
        assert len(set(row)) == 5  # none twice
    assert ((labels != 0).sum(axis=1) == 8).all() and (labels[:, :10] == 0).all()
    assert_array_equal(labels != 0, (ids != 0) & (np.arange(40) >= 10))
    for row, answers, sequence_keys, sequence_values in zip(ids, labels, keys, values, strict=True):
        table = dict(zip(sequence_keys, sequence_values, strict=True))
        for t in np.flatnonzero(answers):
            assert answers[t] == table[row[t]]


def test_every_key_value_place_and_pair_is_as_likely_as_another():
    ids, labels = drawn(n=6000)
    for part, n in ((ids[:, 0:10:2], 9), (ids[:, 1:10:2] - 9, 7)):
        assert_allclose(np.bincount(part.ravel(), minlength=n + 1)[1:] / part.size, 1 / n, atol=0.01)
    assert_allclose((labels != 0).mean(axis=0)[10:], 8 / 30, atol=0.03)
    asked = (ids[:, :10:2, None] == ids[:, None, 10:]).sum(axis=(0, 2)) / (8 * 6000)
    assert_allclose(asked, 1 / 5, atol=0.01)


def test_the_same_generator_draws_the_same():
    assert_array_equal(drawn(3).ids, drawn(3).ids)
    assert not np.array_equal(drawn(3).ids, drawn(4).ids)


def test_a_table_is_always_right_and_a_guess_once_in_n_pairs():
    ids, labels = drawn(n=2000)
    table = looked_up(ids, 9)
    assert recalled(table, labels).shape == (2000 * 8,)
    assert recalled(table, labels).all()
    assert_array_equal(table != 0, labels != 0)
    guess = recalled(last_value(ids, 9), labels)
    # three standard errors; the queries of a sequence are independent of each other
    assert abs(guess.mean() - 1 / 5) < 3 * np.sqrt(0.2 * 0.8 / guess.size)


def test_a_table_of_short_reach_by_hand():
    ids = np.array([[1, 8, 2, 9, 0, 2, 1]])
    assert_array_equal(looked_up(ids, 3), [[0, 0, 0, 0, 0, 9, 8]])
    assert_array_equal(looked_up(ids, 3, reach=6), [[0, 0, 0, 0, 0, 9, 8]])
    assert_array_equal(looked_up(ids, 3, reach=5), [[0, 0, 0, 0, 0, 9, 0]])
    assert_array_equal(looked_up(ids, 3, reach=2), [[0, 0, 0, 0, 0, 0, 0]])


def test_what_stood_last_counts_and_values_alone():
    assert_array_equal(looked_up(np.array([[1, 8, 1, 9, 1, 1]]), 3), [[0, 0, 8, 0, 9, 9]])
    assert_array_equal(looked_up(np.array([[1, 8, 1, 2, 1]]), 3), [[0, 0, 8, 0, 8]])
    assert_array_equal(last_value(np.array([[1, 8, 2, 9, 0, 1]]), 3), [[0, 8, 8, 9, 9, 9]])


def test_what_is_counted_by_hand():
    assert_array_equal(recalled([[5, 6, 7], [5, 0, 7]], [[0, 6, 5], [5, 0, 0]]), [True, False, True])


@pytest.mark.parametrize(("changes", "message"), [
    ({"n_pairs": 8}, "8 pairs need as many keys and values, got 9 keys and 7 values"),
    ({"n_pairs": 8, "n_values": 20, "n_keys": 7}, "got 7 keys"),
    ({"length": 17}, "5 pairs and 8 queries need 18 tokens, got 17"),
    ({"n_queries": 0}, "n_queries must be a whole number of 1 or more"),
    ({"n_values": 2.5}, "n_values must be"),
])  # fmt: skip
def test_what_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        drawn(**changes)
    drawn(length=18)  # is room enough
