"""Batches of paired texts: every pair once and together, none alone, in an order that seed and epoch decide."""

import numpy as np
import pytest

from course_lib.batches.contrastive import ContrastiveBatches


def pairs(n):
    """Texts whose first token says which pair they belong to."""
    rng = np.random.default_rng(1)
    sides = [[np.ones(k, int) for k in rng.integers(2, 9, n)] for _ in range(2)]
    for begin, side in zip((100, 200), sides, strict=True):
        for i, ids in enumerate(side):
            ids[0] = begin + i
    return sides


@pytest.mark.parametrize("seed", [None, 0, 5])
def test_every_pair_comes_once_and_together(seed):
    batches = ContrastiveBatches(*pairs(50), 8, seed, pad_id=3, multiple=4)
    met = []
    for first, second in batches:
        assert (first[:, 0] + 100 == second[:, 0]).all()
        assert first.shape[1] % 4 == second.shape[1] % 4 == 0 and set(np.unique(first[:, 1:])) <= {1, 3}
        met += first[:, 0].tolist()
    assert sorted(met) == list(range(100, 150)) and len(batches) == 7


@pytest.mark.parametrize("seed", [None, 2])
def test_a_pair_is_never_alone(seed):
    batches = ContrastiveBatches(*pairs(33), 8, seed)
    for epoch in range(3):
        sizes = [len(first) for first, _ in batches.epoch(epoch)]
        assert len(sizes) == 4 and set(sizes) == {8}


def test_each_epoch_has_its_order():
    batches = ContrastiveBatches(*pairs(50), 8, 0)
    orders = [[first[:, 0].tolist() for first, _ in batches.epoch(epoch)] for epoch in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]


def test_what_is_no_pairs():
    first, second = pairs(5)
    for arguments, message in (
        ((first, second[1:]), "there are 5 first texts but 4 second ones"),
        ((first[:1], second[:1]), "two pairs or more"),
        ((first, [*second[1:], np.zeros(0, int)]), "every text needs at least one token"),
        ((first, second, 1), "batch_size must be a whole number of 2 or more"),
    ):
        with pytest.raises(ValueError, match=message):
            ContrastiveBatches(*arguments)
    with pytest.raises(TypeError, match=r"second\[0\] is 'a text', not token ids"):
        ContrastiveBatches(first, ["a text"] * 5)
