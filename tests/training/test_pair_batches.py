"""Batches of pairs: every pair once, tokens within the limit, an order that seed, epoch and number decide."""

import numpy as np
import pytest
import tensorflow as tf
import torch
from numpy.testing import assert_array_equal

import course_lib.tensorflow.training.loader
import course_lib.torch.training.loader
from course_lib.batches.pairs import PairBatch, PairBatches

LOADERS = {
    "torch": course_lib.torch.training.loader.data_loader,
    "tensorflow": course_lib.tensorflow.training.loader.data_loader,
}


@pytest.fixture
def pairs():
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, 30, size=700)
    others = np.maximum(2, lengths + rng.integers(-3, 8, size=700))
    return tuple([rng.integers(1, 99, size=n) for n in side] for side in (lengths, others))


def equal(first, second):
    return all(a.shape == b.shape and (a == b).all() for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("seed", [None, 0, 5])
def test_every_pair_comes_once_and_unchanged(pairs, seed):
    batches = PairBatches(*pairs, 500, seed=seed)
    assert sorted(np.concatenate([b.rows for b in batches])) == list(range(700))
    for source, target, rows in batches:
        for ids, side in ((source, pairs[0]), (target, pairs[1])):
            assert ids.shape == (len(rows), max(len(side[row]) for row in rows)) and ids.dtype == np.int64
            for row_ids, row in zip(ids, rows, strict=True):
                assert_array_equal(row_ids[: len(side[row])], side[row])
                assert not row_ids[len(side[row]) :].any()


@pytest.mark.parametrize("multiple", [1, 8])
def test_a_batch_is_full_and_not_fuller(pairs, multiple):
    sizes = np.array([b.source.size + b.target.size for b in PairBatches(*pairs, 800, multiple=multiple)])
    assert sizes.max() <= 800
    assert np.median(sizes) > 700, "as equal as whole pairs allow"


def test_little_is_padding(pairs):
    batches = list(PairBatches(*pairs, 800, seed=3))
    all_ids = sum(b.source.size + b.target.size for b in batches)
    padding = sum((b.source == 0).sum() + (b.target == 0).sum() for b in batches)
    assert padding / all_ids < 0.12  # pairs in random order would make it a half


def test_a_pair_longer_than_the_limit_is_a_batch_of_its_own():
    sources, targets = [np.ones(n, int) for n in (3, 90, 4)], [np.ones(n, int) for n in (3, 80, 4)]
    shapes = sorted((b.source.shape, b.target.shape) for b in PairBatches(sources, targets, 40))
    assert shapes == [((1, 90), (1, 80)), ((2, 4), (2, 4))]


def test_seed_and_epoch_decide_the_order_and_the_company(pairs):
    batches = PairBatches(*pairs, 500, seed=1)
    again = PairBatches(*pairs, 500, seed=1)
    assert all(equal(a, b) for a, b in zip(batches, again, strict=True))
    for other in (PairBatches(*pairs, 500, seed=2), batches.epoch(1)):
        assert len(other) == len(batches)
        together = [{frozenset(b.rows.tolist()) for b in one} for one in (batches, other)]
        assert len(together[0] & together[1]) < len(batches) / 2, "the same pairs do not always meet"


def test_any_epoch_can_be_entered_anywhere(pairs):
    batches = PairBatches(*pairs, 500, seed=4)
    straight = [list(batches.epoch(epoch)) for epoch in range(4)]
    afresh = PairBatches(*pairs, 500, seed=4, epoch=3)
    assert equal(afresh[5], straight[3][5])
    assert equal(PairBatches(*pairs, 500, seed=4, epoch=2).epoch(1)[7], straight[1][7])
    assert equal(batches[2], straight[0][2]), "asking for another epoch leaves this one as it is"


def test_steps_count_on_from_epoch_to_epoch(pairs):
    batches = PairBatches(*pairs, 500, seed=4)
    n = len(batches)
    two = [*batches, *batches.epoch(1)]
    assert all(equal(a, b) for a, b in zip(batches.steps(0, 2 * n), two, strict=True))
    assert all(equal(a, b) for a, b in zip(batches.steps(n - 2, n + 3), two[n - 2 : n + 3], strict=True))
    endless = batches.epoch(1).steps(n + 1)
    assert equal(next(endless), two[n + 1])


def test_every_epoch_has_the_same_shapes(pairs):
    batches = PairBatches(*pairs, 500, seed=4, multiple=4)
    shapes = [sorted((b.source.shape, b.target.shape) for b in batches.epoch(epoch)) for epoch in range(3)]
    assert shapes[0] == shapes[1] == shapes[2]
    assert all(length % 4 == 0 for (_, s), (_, t) in shapes[0] for length in (s, t))


def test_batches_do_not_come_in_order_of_length(pairs):
    lengths = [b.target.shape[1] for b in PairBatches(*pairs, 300, seed=2)]
    assert abs(np.corrcoef(lengths, np.arange(len(lengths)))[0, 1]) < 0.4


def test_without_a_seed_the_pairs_are_sorted_by_length(pairs):
    lengths = [b.target.shape[1] for b in PairBatches(*pairs, 300, seed=None)]
    assert lengths == sorted(lengths)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], []), "at least one pair"),
        (([np.array([1])], []), "there are 1 sources but 0 targets"),
        (([np.array([1])], [np.array([], int)]), "every sequence needs at least one token"),
        (([np.array([1])], [np.array([1])], "x"), "max_tokens must be a whole number of 1 or more, got 'x'"),
        (([np.array([1])], [np.array([1])], 0), "max_tokens must be a whole number of 1 or more, got 0"),
        (([np.array([1])], [np.array([1])], 9, 0, -1), "epoch must be a whole number of 0 or more, got -1"),
        (([np.array([1])], [np.array([1])], 9, 0, 0, 0, 0), "multiple must be a whole number of 1 or more, got 0"),
    ],
)
def test_bad_pairs(arguments, message):
    with pytest.raises(ValueError, match=message):
        PairBatches(*arguments)


def test_no_epoch_before_the_first(pairs):
    with pytest.raises(ValueError, match="epoch must be a whole number of 0 or more, got -1"):
        PairBatches(*pairs).epoch(-1)


@pytest.mark.parametrize("first", [0, 3])
def test_both_frameworks_get_the_same_batches(pairs, first):
    batches = PairBatches(*pairs, 500, seed=6, epoch=2)
    loaded = {name: list(loader(batches, first)) for name, loader in LOADERS.items()}
    for name, found in loaded.items():
        assert len(found) == len(LOADERS[name](batches, first)) == len(batches) - first
        for ours, theirs in zip(list(batches)[first:], found, strict=True):
            assert isinstance(theirs, PairBatch) and equal(ours, [part.numpy() for part in theirs])
    assert loaded["torch"][0].source.dtype == torch.int64 and loaded["tensorflow"][0].source.dtype == tf.int64


def test_reading_leaves_the_random_state_alone(pairs):
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    next(iter(LOADERS["torch"](PairBatches(*pairs))))
    assert_array_equal(torch.rand(4), expected)


@pytest.mark.parametrize("name", LOADERS)
def test_a_loader_begins_inside_the_epoch(pairs, name):
    batches = PairBatches(*pairs, 500)
    assert list(LOADERS[name](batches, len(batches))) == []
    with pytest.raises(ValueError, match=rf"first must lie in 0 \.\.\. {len(batches)}"):
        LOADERS[name](batches, len(batches) + 1)
