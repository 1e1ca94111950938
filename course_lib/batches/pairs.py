"""Pairs of sequences, for translation: encoded, and in batches of about equally many tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from course_lib.batches.epochs import Epoch
from course_lib.checks import check_count
from course_lib.text.bpe import BytePairEncoding
from course_lib.text.padding import lengths_of, positional, stacked


class PairBatch(NamedTuple):
    """B pairs: `source` ids, int64 (B, S), and `target` ids, int64 (B, T), padded; `rows`, int64 (B,), their places."""

    source: np.ndarray
    target: np.ndarray
    rows: np.ndarray


class PairBatches(Epoch):
    """One epoch of pairs, in batches of similar lengths and of about equally many tokens.

    A batch has as many pairs as fit into `max_tokens`, source and target counted together, padding included: what a
    training step costs. (Vaswani et al. 2017, section 5.1, batch by tokens as well: 25,000 on each side.) Pairs are
    sorted by their lengths, those of equal lengths shuffled; the sorted pairs are cut into batches and the batches
    shuffled. So each epoch has the same number of batches of the same sizes, with other pairs in them.

    `batches.epoch(e)[k]` depends on the pairs, the seed, e and k and on nothing else: a training that was stopped goes
    on in the middle of an epoch without reading what came before.

    Parameters
    ----------
    sources, targets : N integer arrays of shape (length,) each, as `BytePairEncoding.encode` returns them
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
        sides = [lengths_of("sources", sources), lengths_of("targets", targets)]
        if len(sources) != len(targets):
            raise ValueError(f"there are {len(sources)} sources but {len(targets)} targets; each source needs one")
        lengths = np.stack(sides)  # (2, N)
        if lengths.size == 0 or lengths.min() == 0:
            raise ValueError("there must be at least one pair, and every sequence needs at least one token")
        self.sources, self.targets, self.pad_id, self.multiple = sources, targets, pad_id, multiple
        self._lengths = -(-lengths // multiple) * multiple
        self._ends = _ends(self._lengths[:, _by_length(self._lengths)], max_tokens)
        self.seed = seed
        self._enter(epoch)

    def _shuffle(self, epoch: int) -> None:
        rng = None if self.seed is None else np.random.default_rng([self.seed, epoch])
        rows = np.split(_by_length(self._lengths, rng), self._ends[:-1])
        self.groups = rows if rng is None else [rows[i] for i in rng.permutation(len(rows))]

    def __getitem__(self, i: int) -> PairBatch:
        rows = self.groups[i]
        sides = (self.sources, self.targets)
        ids = (stacked([side[row] for row in rows], self.pad_id, self.multiple) for side in sides)
        return PairBatch(*ids, rows)


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


class EncodedPairs(NamedTuple):
    """M pairs that a model can be trained on, and how many were left out of the N that were given."""

    sources: list[np.ndarray]  # M int64 arrays (length,), [START] ... [END]
    targets: list[np.ndarray]
    rows: np.ndarray  # (M,) int64: where each stands among the N pairs
    n_empty: int  # left out: no token on one side
    n_long: int  # left out: longer than max_len on one side

    def __str__(self) -> str:
        n = len(self.rows) + self.n_empty + self.n_long
        return f"{len(self.rows):,} of {n:,} pairs kept; {self.n_empty} empty and {self.n_long} over-long ones left out"


def encode_pairs(
    sources: Sequence[str],
    targets: Sequence[str],
    source_tokenizer: BytePairEncoding,
    target_tokenizer: BytePairEncoding,
    max_len: int = 64,
) -> EncodedPairs:
    """Turn N pairs of texts into ids; leave out pairs with an empty or over-long side, and count them.

    A cut sentence would be paired with a translation of the whole, so such a pair is left out. Print the result to
    report how many: "136,008 of 136,010 pairs kept; 0 empty and 2 over-long ones left out".

    Parameters
    ----------
    sources, targets : N texts each
    source_tokenizer, target_tokenizer : may be the same one
    max_len : tokens of a sequence at most, [START] and [END] included

    Raises
    ------
    ValueError : unequal numbers of texts, or a max_len below 3, which leaves no room for a token.
    """
    if len(sources) != len(targets):
        raise ValueError(f"there are {len(sources)} sources but {len(targets)} targets; each source needs one")
    if max_len < 3:
        raise ValueError(f"max_len must be 3 or more, for [START], a token and [END]; got {max_len}")
    encoded = source_tokenizer.encode(sources), target_tokenizer.encode(targets)
    lengths = np.array([[len(ids) for ids in side] for side in encoded], dtype=np.int64)  # (2, N)
    empty = lengths.min(axis=0) <= 2
    long = ~empty & (lengths.max(axis=0) > max_len)
    rows = np.flatnonzero(~empty & ~long)
    kept = ([side[row] for row in rows] for side in encoded)
    return EncodedPairs(*kept, rows, int(empty.sum()), int(long.sum()))
