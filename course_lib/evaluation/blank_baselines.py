"""What a masked language model has to beat: counts of tokens, and of tokens between the same two neighbours.

Both are measured as the model is, on the same batches with the same blanks: the loss is the negative logarithm of the
probability of the token that stood in the blank, in nats.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from course_lib.batches.masked import Masking
from course_lib.batches.texts import IGNORED
from course_lib.text.padding import lengths_of, positional

COMPONENTS = ("both neighbours", "the one before", "the one behind", "none", "the token that is read")
_STEPS = 30  # of expectation and maximisation, after which the weights stand still
_COUNTS = (1, 2, 4, 16)  # how often two neighbours were seen: from each of these on, other weights


class Blanks(NamedTuple):
    """N blanks: what the model `reads` there and in the places before and behind, and the `answers`; int64 (N,)."""

    reads: np.ndarray
    before: np.ndarray
    behind: np.ndarray
    answers: np.ndarray


class NeighbourModel:
    """Fills blanks by counts: what stood between the same two neighbours, behind the one, before the other, anywhere.

    The probability of a token w between l and r is a weighted mean of five (Jelinek and Mercer 1980): of
    count(l, w, r) / count(l, r), count(l, w) / count(l), count(w, r) / count(r), the share of w in the text, and, where
    the blank shows a token and not [MASK], 1 for this one. The share has 1 added to each count. A neighbour that was
    never seen, such as [MASK] itself, says nothing, and its part is that of the share. The weights depend on how often
    (l, r) was seen, and on whether the blank shows a token; `tune` chooses them on other text, and until then they are
    equal. Padding stands for whatever is beside the first and the last token. So this model sees both sides of a blank,
    as a masked language model does, and one token of each.

    Parameters
    ----------
    sequences : N integer arrays (length,) of training text, without blanks, with their special tokens or without
    masking : how blanks will be made; says which tokens are special, and are counted as neighbours only

    Raises
    ------
    TypeError : something other than integers, such as texts.
    ValueError : no token that is not special, or an id outside the vocabulary.
    """

    def __init__(self, sequences: Sequence[np.ndarray], masking: Masking):
        sequences = positional("sequences", sequences)
        lengths_of("sequences", sequences)
        self.masking, self._size = masking, masking.vocab_size
        border = np.array([masking.pad_id])
        stream = np.concatenate([border, *(part for ids in sequences for part in (ids, border))]).astype(np.int64)
        if stream.min() < 0 or stream.max() >= masking.vocab_size:
            raise ValueError(f"ids must lie in 0 ... {masking.vocab_size - 1}, got {stream.min()} to {stream.max()}")
        counted = ~masking.is_special[stream[1:-1]]
        before, token, behind = stream[:-2][counted], stream[1:-1][counted], stream[2:][counted]
        if len(token) == 0:
            raise ValueError("there must be a token that is not special")
        self._tables = [
            _Table(before * self._size + behind, token, self._size),
            _Table(before, token, self._size),
            _Table(behind, token, self._size),
        ]
        share = np.bincount(token, minlength=masking.vocab_size) + ~masking.is_special
        self.shares = share / share.sum()  # (V,), 0 for special tokens
        self.weights = np.full((2 * (len(_COUNTS) + 4), len(COMPONENTS)), 1 / len(COMPONENTS))

    def tune(self, batches: Iterable) -> NeighbourModel:
        """Choose the weights under which the answers of these batches are most probable; return the model.

        Source: Dempster et al. 1977, expectation and maximisation; each component has one blank more than it had, so no
        weight is 0. Take validation data: on the training text itself all weight would fall to the two neighbours.
        """
        blanks = self._blanks(batches)
        parts, groups = self._parts(blanks, blanks.answers), self._groups(blanks)
        for _ in range(_STEPS):
            joint = self.weights[groups] * parts  # (N, 5)
            joint /= joint.sum(axis=1, keepdims=True)
            for group in np.unique(groups):
                share = joint[groups == group].sum(axis=0) + 1
                self.weights[group] = share / share.sum()
        return self

    def losses(self, batches: Iterable) -> np.ndarray:
        """The loss of each blank in nats, float (N,), row by row of one batch behind the other."""
        blanks = self._blanks(batches)
        return -np.log((self.weights[self._groups(blanks)] * self._parts(blanks, blanks.answers)).sum(axis=1))

    def unigram_losses(self, batches: Iterable) -> np.ndarray:
        """The loss of each blank by the token's share in the training text alone; the mean is their cross-entropy."""
        return -np.log(self.shares[self._blanks(batches).answers])

    def predictions(self, batches: Iterable) -> np.ndarray:
        """The most probable token of each blank, int64 (N,), in the order of `losses`."""
        blanks = self._blanks(batches)
        return np.array([row.argmax() for row in self._rows(blanks)], dtype=np.int64)

    def probabilities(self, batches: Iterable) -> np.ndarray:
        """The probability of every token in each blank, float (N, V): for a few blanks, it is large."""
        return np.stack(list(self._rows(self._blanks(batches))))

    def _blanks(self, batches: Iterable) -> Blanks:
        return blanks_of(batches, self.masking.pad_id)

    def _contexts(self, blanks: Blanks) -> list[np.ndarray]:
        return [blanks.before * self._size + blanks.behind, blanks.before, blanks.behind]

    def _parts(self, blanks: Blanks, tokens: np.ndarray) -> np.ndarray:
        """What each component says of a token in each blank, (N, 5)."""
        share = self.shares[tokens]
        parts = [
            np.where(n > 0, hits / np.maximum(n, 1), share)
            for table, context in zip(self._tables, self._contexts(blanks), strict=True)
            for hits, n in [table.counts(context, tokens)]
        ]
        read = np.where(blanks.reads == self.masking.mask_id, share, blanks.reads == tokens)
        return np.stack([*parts, share, read], axis=1)

    def _groups(self, blanks: Blanks) -> np.ndarray:
        """Which weights count for each blank, int64 (N,)."""
        both, before, behind = (t.seen(c) for t, c in zip(self._tables, self._contexts(blanks), strict=True))
        seen = (before > 0) + 2 * (behind > 0)  # 0 to 3
        group = np.where(both > 0, 3 + np.searchsorted(_COUNTS, both, "right"), seen)
        return 2 * group + (blanks.reads == self.masking.mask_id)

    def _rows(self, blanks: Blanks):
        groups, contexts = self._groups(blanks), np.stack(self._contexts(blanks), axis=1)
        for read, group, keys in zip(blanks.reads, groups, contexts, strict=True):
            weights = self.weights[group].copy()
            row = np.zeros(self.masking.vocab_size)
            if read == self.masking.mask_id:
                weights[3] += weights[4]
            else:
                row[read] = weights[4]
            for number, (table, key) in enumerate(zip(self._tables, keys, strict=True)):
                tokens, counts = table.row(key)
                if len(tokens):
                    row[tokens] += weights[number] * counts / counts.sum()
                else:
                    weights[3] += weights[number]
            yield row + weights[3] * self.shares


def blanks_of(batches: Iterable, border: int) -> Blanks:
    """The blanks of batches with `ids` and `labels`, (B, T) each, with their neighbours; `border` beside the outermost.

    Raises
    ------
    ValueError : no blank at all.
    """
    found = []
    for batch in batches:
        ids, labels = np.asarray(batch.ids), np.asarray(batch.labels)
        sides = np.pad(ids, ((0, 0), (1, 1)), constant_values=border)
        blank = labels != IGNORED
        found.append(np.stack([ids[blank], sides[:, :-2][blank], sides[:, 2:][blank], labels[blank]]))
    if not found or not sum(part.shape[1] for part in found):
        raise ValueError("there must be a batch with a blank")
    return Blanks(*np.concatenate(found, axis=1))


class _Table:
    """How often each token stood in each context: sorted keys, so that those of a context are a block."""

    def __init__(self, contexts: np.ndarray, tokens: np.ndarray, size: int):
        self._size = size
        self._keys, self._counts = np.unique(contexts * size + tokens, return_counts=True)
        self._contexts, self._totals = np.unique(contexts, return_counts=True)

    def seen(self, contexts: np.ndarray) -> np.ndarray:
        return _found(self._contexts, self._totals, contexts)

    def counts(self, contexts: np.ndarray, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _found(self._keys, self._counts, contexts * self._size + tokens), self.seen(contexts)

    def row(self, context: int) -> tuple[np.ndarray, np.ndarray]:
        first, last = np.searchsorted(self._keys, [context * self._size, (context + 1) * self._size])
        return self._keys[first:last] - context * self._size, self._counts[first:last]


def _found(keys: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The value of each wanted key, 0 where there is none."""
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], 0)
