"""Batches: every example once, little padding, an order that the seed decides."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from course_lib.batches.texts import Batches, check_examples
from course_lib.text.padding import head_and_tail, padded


@pytest.fixture
def sequences():
    rng = np.random.default_rng(0)
    return [rng.integers(1, 99, size=n) for n in rng.integers(2, 40, size=333)]


@pytest.mark.parametrize("seed", [None, 0, 5])
def test_every_example_comes_once_and_unchanged(sequences, seed):
    batches = Batches(sequences, 32, seed=seed)
    assert len(batches) == 11 == len(list(batches))
    assert sorted(np.concatenate([b.rows for b in batches])) == list(range(333))
    for ids, rows in batches:
        for row_ids, row in zip(ids, rows, strict=True):
            assert_array_equal(row_ids[: len(sequences[row])], sequences[row])
            assert not row_ids[len(sequences[row]) :].any()


def test_a_batch_is_as_long_as_its_longest_sequence(sequences):
    for ids, rows in Batches(sequences, 16, seed=1):
        assert ids.shape == (len(rows), max(len(sequences[row]) for row in rows))


def test_sorting_by_length_leaves_a_third_of_the_padding(sequences):
    def padding(groups):
        return sum((padded([sequences[row] for row in rows]) == 0).sum() for rows in groups)

    random_groups = np.array_split(np.random.default_rng(1).permutation(333), 11)
    assert padding(b.rows for b in Batches(sequences, 32, seed=1)) < padding(random_groups) / 3


def test_the_seed_decides_the_order(sequences):
    first, again, other = (Batches(sequences, 32, seed=seed) for seed in (1, 1, 2))
    assert_array_equal(np.concatenate(first.groups), np.concatenate(again.groups))
    assert any(len(a) != len(b) or (a != b).any() for a, b in zip(first.groups, other.groups, strict=True))


def test_batches_do_not_come_in_order_of_length(sequences):
    lengths = [ids.shape[1] for ids, _ in Batches(sequences, 16, seed=3)]
    assert lengths != sorted(lengths)
    assert abs(np.corrcoef(lengths, np.arange(len(lengths)))[0, 1]) < 0.6


def test_without_a_seed_the_batches_are_sorted_by_length(sequences):
    lengths = [ids.shape[1] for ids, _ in Batches(sequences, 32)]
    assert lengths == sorted(lengths)


def test_lengths_round_up_to_a_multiple_and_padding_is_the_given_id():
    ids = padded([np.array([3, 4, 5]), np.array([6])], pad_id=9, multiple=4)
    assert_array_equal(ids, [[3, 4, 5, 9], [6, 9, 9, 9]])
    assert {b.ids.shape[1] for b in Batches([np.ones(n, int) for n in range(1, 20)], 2, multiple=8)} == {8, 16, 24}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], 32), "at least one sequence"),
        (([np.array([], int)], 32), "at least one token"),
        (([np.array([1])], 2.5), "batch_size must be a whole number of 1 or more, got 2.5"),
        (([np.array([1])], 1, None, 0.5), "pad_id must be a whole number of 0 or more, got 0.5"),
        (([np.array([1])], 0), "batch_size must be a whole number of 1 or more"),
        (([np.array([1])], 2, None, 0, 0), "multiple must be a whole number of 1 or more"),
    ],
)
def test_bad_batches(arguments, message):
    with pytest.raises(ValueError, match=message):
        Batches(*arguments)


@pytest.mark.parametrize("sequences", [[], [np.array([1]), np.array([], int)]])
def test_padding_nothing(sequences):
    with pytest.raises(ValueError, match="at least one"):
        padded(sequences)


def test_head_and_tail_keeps_both_ends():
    ids = np.arange(100)
    assert_array_equal(head_and_tail(ids, 10, 4), [0, 1, 2, 3, 94, 95, 96, 97, 98, 99])
    assert_array_equal(head_and_tail(ids, 100, 4), ids)
    assert_array_equal(head_and_tail(np.arange(7), 10, 4), np.arange(7))


@pytest.mark.parametrize("head", [0, 10, -1])
def test_head_and_tail_refuses_an_end_without_a_token(head):
    with pytest.raises(ValueError, match=r"head must lie in 1 \.\.\. 9"):
        head_and_tail(np.arange(100), 10, head)


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([0, 1], ValueError, r"labels must have shape \(3,\)"),
        ([0, 1, 2], ValueError, r"must lie in 0 \.\.\. 1, got 0 to 2"),
        ([0.0, 1.0, 1.0], TypeError, "must be integers"),
        ([[0], [1], [1]], ValueError, "must have shape"),
    ],
)
def test_bad_labels(labels, error, message):
    with pytest.raises(error, match=message):
        check_examples([np.array([1])] * 3, labels, 2)
