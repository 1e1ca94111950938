"""Batches of single texts for training and prediction: those of similar length together, little padding."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from course_lib.batches.epochs import Epoch, batches_of
from course_lib.checks import check_count
from course_lib.text.padding import lengths_of, positional, stacked

IGNORED = -100  # the label of what no loss counts, as PyTorch, `transformers` and the tools around them have it


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
        self.groups = batches_of(lengths, batch_size, seed)

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, i: int) -> Batch:
        rows = self.groups[i]
        return Batch(stacked([self.sequences[row] for row in rows], self.pad_id, self.multiple), rows)

    def __iter__(self) -> Iterator[Batch]:
        return (self[i] for i in range(len(self)))


class TextBatches(Epoch):
    """One epoch of labelled texts in the batches of `Batches`, for classification; `epoch(e)` gives the others.

    Parameters
    ----------
    sequences : N integer arrays of shape (length,)
    labels : integers, shape (N,), IGNORED for none
    batch_size, pad_id, multiple : as for `Batches`
    seed : of the order, or None: sorted by length, for validation
    epoch : which one, counted from 0; each has an order of its own, that of `epochs_of`
    segments : N integer arrays of the same lengths, for texts of several parts; None for none

    Raises
    ------
    ValueError : as for `Batches`; not one label for each text, not one segment for each token.
    TypeError : labels, ids or segments that are not integers.
    """

    def __init__(
        self,
        sequences: Sequence[np.ndarray],
        labels,
        batch_size: int = 32,
        seed: int | None = 0,
        epoch: int = 0,
        pad_id: int = 0,
        multiple: int = 1,
        segments: Sequence[np.ndarray] | None = None,
    ):
        check_count("epoch", epoch, 0)
        self.sequences, self.batch_size = positional("sequences", sequences), batch_size
        self.seed, self.pad_id, self.multiple = seed, pad_id, multiple
        self._enter(epoch)
        self.labels = self._check_labels(labels)
        self.segments = None if segments is None else self._beside("segments", segments)

    def _shuffle(self, epoch: int) -> None:
        order = None if self.seed is None else self._order(epoch)
        self._batches = Batches(self.sequences, self.batch_size, order, self.pad_id, self.multiple)
        self.groups = self._batches.groups

    def __getitem__(self, i: int) -> TextBatch:
        ids, rows = self._batches[i]
        segments = None if self.segments is None else self._stacked(self.segments, rows, 0)
        return TextBatch(ids, segments, self.labels[rows])

    def _order(self, epoch: int):
        return 1000 * self.seed + epoch  # that of `epochs_of`, in which seeds repeat one another after 1,000 epochs

    def _check_labels(self, labels):
        return check_labels_of(self.sequences, labels)

    def _beside(self, name: str, values) -> Sequence[np.ndarray]:
        """N arrays beside those of the ids, of the same lengths."""
        values = positional(name, values)
        ours, theirs = (lengths_of(n, v) for n, v in (("sequences", self.sequences), (name, values)))
        if len(ours) != len(theirs) or (ours != theirs).any():
            raise ValueError(f"{name} must be as many arrays as sequences, each of the same length as its sequence")
        return values

    def _stacked(self, values, rows, fill: int) -> np.ndarray:
        return stacked([values[row] for row in rows], fill, self.multiple)


class TokenBatches(TextBatches):
    """One epoch of texts whose tokens have labels; arguments and errors as for `TextBatches`.

    `labels` are N integer arrays of the lengths of the sequences, IGNORED where none counts. There are no segments.
    """

    def __getitem__(self, i: int) -> TokenBatch:
        ids, rows = self._batches[i]
        return TokenBatch(ids, self._stacked(self.labels, rows, IGNORED))

    def _order(self, epoch: int):
        return [self.seed, epoch]

    def _check_labels(self, labels):
        return self._beside("labels", labels)


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
    labels = check_labels_of(sequences, labels, f", 0 ... {n_classes - 1}")
    if labels.size and not 0 <= labels.min() <= labels.max() < n_classes:
        raise ValueError(f"labels must lie in 0 ... {n_classes - 1}, got {labels.min()} to {labels.max()}")
    return labels


def check_labels_of(sequences: Sequence[np.ndarray], labels, which: str = "") -> np.ndarray:
    """The labels as an int64 array (N,), one for each sequence; ValueError and TypeError as for `check_examples`."""
    labels = np.asarray(labels)
    if not np.issubdtype(labels.dtype, np.integer):
        raise TypeError(f"labels must be integers{which}, got {labels.dtype}")
    if labels.shape != (len(sequences),):
        raise ValueError(
            f"there are {len(sequences)} sequences, so labels must have shape ({len(sequences)},), got {labels.shape}"
        )
    return labels.astype(np.int64)
