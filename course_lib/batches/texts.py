"""Batches of single texts for training and prediction: those of similar length together, little padding."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from course_lib.checks import check_count
from course_lib.text.padding import lengths_of, positional, stacked

IGNORED = -100  # the label of what no loss counts, as PyTorch, `transformers` and the tools around them have it
POOL = 16  # batches' worth of examples that are sorted by length together


class Batch(NamedTuple):
    """B examples: `ids`, int64 (B, T), padded to their longest; `rows`, int64 (B,), where they stand in the data."""

    ids: np.ndarray
    rows: np.ndarray


class TextBatch(NamedTuple):
    """B labelled texts: `ids` and `segments`, int64 (B, T), padded; `labels`, int64 (B,); `segments` None: one text."""

    ids: np.ndarray
    segments: np.ndarray | None
    labels: np.ndarray


class TokenBatch(NamedTuple):
    """B texts whose tokens have labels: `ids`, int64 (B, T), padded; `labels`, int64 (B, T), IGNORED where none is."""

    ids: np.ndarray
    labels: np.ndarray


class Batches(Sequence):
    """One pass over the examples in batches of similar length.

    With a seed the examples are shuffled, dealt into pools of 16 batches, sorted by length within each pool,
    cut into batches, and the batches shuffled: order stays random, yet little of a batch is padding. Without
    one (for prediction) all examples are sorted by length, and `rows` says where each belongs.

    Parameters
    ----------
    sequences : N integer arrays of shape (length,), as `WordPiece.encode(..., pad=False).ids`
    batch_size : examples a batch; the last one may have fewer
    seed : of the order, or None
    pad_id : what to pad with
    multiple : round the lengths of the batches up to a multiple of this

    Raises
    ------
    ValueError : no sequences, an empty one, or a size below one.
    TypeError : something other than integers, such as texts.
    """

    def __init__(
        self,
        sequences: Sequence[np.ndarray],
        batch_size: int = 32,
        seed: int | None = None,
        pad_id: int = 0,
        multiple: int = 1,
    ):
        for name, value, least in (("batch_size", batch_size, 1), ("multiple", multiple, 1), ("pad_id", pad_id, 0)):
            check_count(name, value, least)
        sequences = positional("sequences", sequences)
        lengths = lengths_of("sequences", sequences)
        if lengths.size == 0 or lengths.min() == 0:
            raise ValueError("there must be at least one sequence, and every sequence needs at least one token")
        self.sequences, self.pad_id, self.multiple = sequences, pad_id, multiple
        if seed is None:
            order = np.argsort(lengths, kind="stable")
            self.groups = _cut(order, batch_size)
        else:
            rng = np.random.default_rng(seed)
            pools = _cut(rng.permutation(len(lengths)), POOL * batch_size)
            groups = [g for pool in pools for g in _cut(pool[np.argsort(lengths[pool], kind="stable")], batch_size)]
            self.groups = [groups[i] for i in rng.permutation(len(groups))]

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, i: int) -> Batch:
        rows = self.groups[i]
        return Batch(stacked([self.sequences[row] for row in rows], self.pad_id, self.multiple), rows)

    def __iter__(self) -> Iterator[Batch]:
        return (self[i] for i in range(len(self)))


def epochs_of(
    sequences: Sequence[np.ndarray], epochs: int, batch_size: int, seed: int, pad_id: int = 0
) -> list[Batches]:
    """The batches of each epoch in turn, each in an order of its own; every framework trains on these.

    Raises
    ------
    ValueError : fewer than one epoch, or as for `Batches`.
    """
    check_count("epochs", epochs)
    check_count("seed", seed, 0)
    return [Batches(sequences, batch_size, seed=1000 * seed + epoch, pad_id=pad_id) for epoch in range(epochs)]


def check_examples(sequences: Sequence[np.ndarray], labels, n_classes: int) -> np.ndarray:
    """The labels as an int64 array (N,), one for each sequence.

    Raises
    ------
    ValueError : no sequence, not one label for each, or a label outside 0 ... n_classes - 1.
    TypeError : labels that are not integers.
    """
    if len(positional("sequences", sequences)) == 0:
        raise ValueError("there must be at least one sequence to train on")
    labels = np.asarray(labels)
    if not np.issubdtype(labels.dtype, np.integer):
        raise TypeError(f"labels must be integers, 0 ... {n_classes - 1}, got {labels.dtype}")
    if labels.shape != (len(sequences),):
        raise ValueError(
            f"there are {len(sequences)} sequences, so labels must have shape ({len(sequences)},), got {labels.shape}"
        )
    if labels.size and not 0 <= labels.min() <= labels.max() < n_classes:
        raise ValueError(f"labels must lie in 0 ... {n_classes - 1}, got {labels.min()} to {labels.max()}")
    return labels.astype(np.int64)


def _cut(rows: np.ndarray, size: int) -> list[np.ndarray]:
    return [rows[i : i + size] for i in range(0, len(rows), size)]
