"""What the batches of all trainings share: epochs that can be entered anywhere, and batches of similar lengths."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from course_lib.checks import check_count

POOL = 16  # batches' worth of examples that are sorted by length together


class Epoch(Sequence):
    """One epoch of batches, which knows the others: batch k of epoch e depends on seed, e and k and nothing before.

    Who inherits sets `groups`, the rows of each batch, in `_shuffle(epoch)`, and says in `__getitem__` what a batch is.
    """

    groups: Sequence[np.ndarray]
    number: int

    def epoch(self, epoch: int) -> Self:
        """The batches of another epoch of the same examples; ValueError for a negative one."""
        check_count("epoch", epoch, 0)
        other = copy.copy(self)
        other._enter(epoch)
        return other

    def steps(self, first: int = 0, last: int | None = None) -> Iterator[Any]:
        """The batches number first ... last - 1, counted on from epoch to epoch; without `last` there is no end."""
        batches, n = self, len(self)
        for step in range(first, last) if last is not None else itertools.count(first):
            if step // n != batches.number:
                batches = self.epoch(step // n)
            yield batches[step % n]

    def _enter(self, epoch: int) -> None:
        self.number = epoch
        self._shuffle(epoch)

    def _shuffle(self, epoch: int) -> None:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))


def similar_lengths(lengths: np.ndarray, batch_size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """The rows of each batch, in random order: rows are shuffled, dealt into pools, and sorted by length within these.

    So little of a batch is padding, and sequences of equal lengths stay shuffled. There are always as many batches.
    """
    pools = cut(rng.permutation(len(lengths)), POOL * batch_size)
    groups = [group for pool in pools for group in cut(pool[np.argsort(lengths[pool], kind="stable")], batch_size)]
    return [groups[i] for i in rng.permutation(len(groups))]


def batches_of(lengths: np.ndarray, batch_size: int, seed) -> list[np.ndarray]:
    """The rows of each batch: as by `similar_lengths` in the order of a seed; without one (None), sorted by length."""
    if seed is None:
        return cut(np.argsort(lengths, kind="stable"), batch_size)
    return similar_lengths(lengths, batch_size, np.random.default_rng(seed))


def cut(rows: np.ndarray, size: int) -> list[np.ndarray]:
    """The rows in pieces of `size`, the last of which may have fewer."""
    return [rows[i : i + size] for i in range(0, len(rows), size)]
