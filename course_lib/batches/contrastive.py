"""Pairs of texts that mean the same, for sentence embeddings: batches in which each is told from the others."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from course_lib.batches.epochs import Epoch, batches_of
from course_lib.checks import check_count
from course_lib.text.padding import lengths_of, positional, stacked


class ContrastiveBatch(NamedTuple):
    """B pairs of texts: `first` ids, int64 (B, T), and `second` ids, int64 (B, S), padded."""

    first: np.ndarray
    second: np.ndarray


class ContrastiveBatches(Epoch):
    """One epoch of paired texts, each pair once, in batches of similar lengths; `epoch(e)` gives the others.

    A pair that would be alone in its batch is left out of that epoch: there is no other to tell it from. Whatever else
    is in a batch counts as different, so texts that mean the same as two of the pairs should not be many.

    Parameters
    ----------
    first, second : N integer arrays of shape (length,) each
    batch_size : pairs of a batch, two or more; the last one may have fewer
    seed : of the order, or None: in the order of the lengths, for validation
    epoch : which one, counted from 0; each has an order of its own
    pad_id : what to pad with
    multiple : round T and S up to a multiple of this

    Raises
    ------
    ValueError : fewer than two pairs, unequal numbers of texts, an empty one, or a number that is none.
    TypeError : something other than integers, such as texts.
    """

    def __init__(
        self,
        first: Sequence[np.ndarray],
        second: Sequence[np.ndarray],
        batch_size: int = 32,
        seed: int | None = 0,
        epoch: int = 0,
        pad_id: int = 0,
        multiple: int = 1,
    ):
        for name, value, least in (("batch_size", batch_size, 2), ("multiple", multiple, 1), ("epoch", epoch, 0)):
            check_count(name, value, least)
        self.first, self.second = positional("first", first), positional("second", second)
        lengths = [lengths_of("first", self.first), lengths_of("second", self.second)]
        if len(lengths[0]) != len(lengths[1]):
            raise ValueError(f"there are {len(lengths[0])} first texts but {len(lengths[1])} second ones")
        if len(lengths[0]) < 2 or min(side.min() for side in lengths) == 0:
            raise ValueError("there must be two pairs or more, and every text needs at least one token")
        self._lengths = lengths[0] + lengths[1]
        self.batch_size, self.seed, self.pad_id, self.multiple = batch_size, seed, pad_id, multiple
        self._enter(epoch)

    def _shuffle(self, epoch: int) -> None:
        groups = batches_of(self._lengths, self.batch_size, None if self.seed is None else [self.seed, epoch])
        self.groups = [rows for rows in groups if len(rows) > 1]

    def __getitem__(self, i: int) -> ContrastiveBatch:
        rows = self.groups[i]
        sides = ([side[row] for row in rows] for side in (self.first, self.second))
        return ContrastiveBatch(*(stacked(texts, self.pad_id, self.multiple) for texts in sides))
