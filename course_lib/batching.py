"""Batches of token ids for training and prediction: texts of similar length together, little padding."""

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from course_lib.checks import check_count

POOL = 16  # batches' worth of examples that are sorted by length together


class Batch(NamedTuple):
    """B examples: `ids`, int64 (B, T), padded to their longest; `rows`, int64 (B,), where they stand in the data."""

    ids: np.ndarray
    rows: np.ndarray


def padded(sequences: Sequence[np.ndarray], pad_id: int = 0, multiple: int = 1) -> np.ndarray:
    """Stack B sequences of ids as one int64 array (B, T), filled with `pad_id` on the right.

    Parameters
    ----------
    sequences : B integer arrays of shape (length,)
    pad_id : what to fill with
    multiple : round T up to a multiple of this, so that fewer different shapes occur

    Raises
    ------
    ValueError : no sequence, or an empty one.
    TypeError : something other than integers, such as texts.
    """
    lengths = _lengths("sequences", sequences)
    if lengths.size == 0 or lengths.min() == 0:
        raise ValueError("a batch needs at least one sequence, and every sequence at least one token")
    return _stacked(sequences, pad_id, multiple)


def _stacked(sequences, pad_id: int, multiple: int) -> np.ndarray:
    longest = -(-max(map(len, sequences)) // multiple) * multiple
    ids = np.full((len(sequences), longest), pad_id, dtype=np.int64)  # (B, T)
    for row, sequence in zip(ids, sequences, strict=True):
        row[: len(sequence)] = sequence
    return ids


def positional(name: str, sequences) -> Sequence:
    """Sequences that are counted from 0, as a pandas Series, asked for its labels, is not; TypeError for no order."""
    if isinstance(sequences, str | Mapping) or not hasattr(sequences, "__len__"):
        raise TypeError(f"{name} must be many arrays of token ids, got {type(sequences).__name__}")
    return list(sequences) if hasattr(sequences, "iloc") else sequences


def _lengths(name: str, sequences) -> np.ndarray:
    """The length of each sequence, int64 (N,); TypeError for what is not integers, ValueError for several axes."""
    positional(name, sequences)
    lengths = np.empty(len(sequences), dtype=np.int64)
    for i, ids in enumerate(sequences):
        if type(ids) is np.ndarray and ids.ndim == 1 and ids.dtype.kind in "iu":  # the usual case, 100,000 times
            lengths[i] = len(ids)
            continue
        if ids is None or isinstance(ids, str):
            raise TypeError(f"{name}[{i}] is {ids!r:.40}, not token ids; encode the texts by a tokenizer first")
        array = ids if hasattr(ids, "dtype") else np.asarray(ids)
        if len(array.shape) != 1:
            raise ValueError(f"{name}[{i}] must have shape (length,), got {tuple(array.shape)}")
        lengths[i] = len(array)
        if "int" not in str(array.dtype) and len(array):
            raise TypeError(f"{name}[{i}] must be integers, got {array.dtype}")
    return lengths


class Batches(Sequence):
    """One pass over the examples in batches of similar length.

    With a seed the examples are shuffled, dealt into pools of 16 batches, sorted by length within each pool,
    cut into batches, and the batches shuffled: order stays random, yet little of a batch is padding. Without
    one (for prediction) all examples are sorted by length, and `rows` says where each belongs.

    Parameters
    ----------
    sequences : N integer arrays of shape (length,), as `Tokenizer.encode(..., pad=False).ids`
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
        lengths = _lengths("sequences", sequences)
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
        return Batch(_stacked([self.sequences[row] for row in rows], self.pad_id, self.multiple), rows)

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


class PairBatch(NamedTuple):
    """B pairs: `source` ids, int64 (B, S), and `target` ids, int64 (B, T), padded; `rows`, int64 (B,), their places."""

    source: np.ndarray
    target: np.ndarray
    rows: np.ndarray


class PairBatches(Sequence):
    """One epoch of pairs, in batches of similar lengths and of about equally many tokens.

    A batch has as many pairs as fit into `max_tokens`, source and target counted together, padding included: what a
    training step costs. (Vaswani et al. 2017, section 5.1, batch by tokens as well: 25,000 on each side.) Pairs are
    sorted by their lengths, those of equal lengths shuffled; the sorted pairs are cut into batches and the batches
    shuffled. So each epoch has the same number of batches of the same sizes, with other pairs in them.

    `batches.epoch(e)[k]` depends on the pairs, the seed, e and k and on nothing else: a training that was stopped goes
    on in the middle of an epoch without reading what came before.

    Parameters
    ----------
    sources, targets : N integer arrays of shape (length,) each, as `SubwordTokenizer.encode` returns them
    max_tokens : tokens of a batch at most, B * (S + T); a pair that is longer is a batch of its own
    seed : of the order, or None: sorted by length, for prediction
    epoch : which one, counted from 0; each has an order of its own
    pad_id : what to pad with
    multiple : round S and T up to a multiple of this: fewer different shapes, each of which XLA compiles anew, for more
        padding. Of the Tatoeba pairs' batches, 1% is padding with 1, 13% with 4 and 26% with 8, and an epoch has 225,
        38 and 19 different shapes

    Raises
    ------
    ValueError : no pairs, unequal numbers of sources and targets, an empty one, or a size below one.
    TypeError : something other than integers, such as texts.
    """

    def __init__(
        self,
        sources: Sequence[np.ndarray],
        targets: Sequence[np.ndarray],
        max_tokens: int = 2500,
        seed: int | None = 0,
        epoch: int = 0,
        pad_id: int = 0,
        multiple: int = 1,
    ):
        for name, value, least in (("max_tokens", max_tokens, 1), ("multiple", multiple, 1), ("epoch", epoch, 0)):
            check_count(name, value, least)
        sources, targets = positional("sources", sources), positional("targets", targets)
        sides = [_lengths("sources", sources), _lengths("targets", targets)]
        if len(sources) != len(targets):
            raise ValueError(f"there are {len(sources)} sources but {len(targets)} targets; each source needs one")
        lengths = np.stack(sides)  # (2, N)
        if lengths.size == 0 or lengths.min() == 0:
            raise ValueError("there must be at least one pair, and every sequence needs at least one token")
        self.sources, self.targets, self.pad_id, self.multiple = sources, targets, pad_id, multiple
        self._lengths = -(-lengths // multiple) * multiple
        self._ends = _ends(self._lengths[:, _by_length(self._lengths)], max_tokens)
        self.seed = seed
        self._shuffle(epoch)

    def epoch(self, epoch: int) -> "PairBatches":
        """The batches of another epoch of the same pairs; ValueError for a negative one."""
        check_count("epoch", epoch, 0)
        other = copy.copy(self)
        other._shuffle(epoch)
        return other

    def steps(self, first: int = 0, last: int | None = None) -> Iterator[PairBatch]:
        """The batches number first ... last - 1, counted on from epoch to epoch; without `last` there is no end."""
        batches, n = self, len(self)
        for step in range(first, last) if last is not None else itertools.count(first):
            if step // n != batches.number:
                batches = self.epoch(step // n)
            yield batches[step % n]

    def _shuffle(self, epoch: int) -> None:
        self.number = epoch
        rng = None if self.seed is None else np.random.default_rng([self.seed, epoch])
        rows = np.split(_by_length(self._lengths, rng), self._ends[:-1])
        self.groups = rows if rng is None else [rows[i] for i in rng.permutation(len(rows))]

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, i: int) -> PairBatch:
        rows = self.groups[i]
        sides = (self.sources, self.targets)
        ids = (_stacked([side[row] for row in rows], self.pad_id, self.multiple) for side in sides)
        return PairBatch(*ids, rows)

    def __iter__(self) -> Iterator[PairBatch]:
        return (self[i] for i in range(len(self)))


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


def head_and_tail(ids: np.ndarray, max_len: int, head: int) -> np.ndarray:
    """Cut a long sequence [CLS] ... [SEP] in its middle: `head` tokens from its start, the rest from its end.

    Source: Sun et al. 2019, section 5.3.1 (there 128 from the start and 382 from the end, of 510).

    Parameters
    ----------
    ids : shape (length,), with its special tokens
    max_len : tokens to keep, the special ones included; a shorter sequence stays as it is
    head : how many of them come from the start, [CLS] included

    Raises
    ------
    ValueError : not 1 <= head < max_len.
    """
    if not 1 <= head < max_len:
        raise ValueError(f"head must lie in 1 ... {max_len - 1}, so that both ends keep a token; got {head}")
    if len(ids) <= max_len:
        return ids
    return np.concatenate([ids[:head], ids[len(ids) - (max_len - head) :]])


def _cut(rows: np.ndarray, size: int) -> list[np.ndarray]:
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def _by_length(lengths: np.ndarray, rng: np.random.Generator | None = None) -> np.ndarray:
    """The pairs in order of target length, then of source length (2, N); those equal in both in random order."""
    order = np.arange(lengths.shape[1]) if rng is None else rng.permutation(lengths.shape[1])
    return order[np.lexsort((lengths[0][order], lengths[1][order]))]


def _ends(lengths: np.ndarray, max_tokens: int) -> np.ndarray:
    """Where each batch ends when sorted pairs of these lengths (2, N) are dealt one by one until a batch is full."""
    ends, n, longest = [], 0, (0, 0)
    for i, pair in enumerate(lengths.T.tolist()):
        grown = max(longest[0], pair[0]), max(longest[1], pair[1])
        if n and (n + 1) * sum(grown) > max_tokens:
            ends.append(i)
            n, grown = 0, tuple(pair)
        n, longest = n + 1, grown
    return np.array([*ends, lengths.shape[1]])
