"""What a language model has to beat: counts of up to `order` tokens in a row, smoothed as Kneser and Ney do.

The probability of a token w after a context h is interpolated with that after the shorter context h', the last tokens
of h:

    p(w | h) = (c(h w) - D(c(h w))) / c(h) + (D_1 N_1(h) + D_2 N_2(h) + D_3 N_3(h)) / c(h) * p(w | h')

N_i(h) is how many tokens were counted i times after h, the last of them three times or more, and D the discount of a
count of one, two, three or more (Chen and Goodman 1999, "modified Kneser-Ney"). The longest context counts how often a
token stood there. Every shorter one counts before how many different tokens h w stood: a token that is frequent behind
one other alone is no likely guess elsewhere. Below one token lies the uniform distribution.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize_scalar

from course_lib.checks import check_count
from course_lib.text.padding import lengths_of, positional

_LARGEST = 2**62  # what a key of `order` tokens must stay below


class KneserNey:
    """Counts of a training text, and the probabilities that follow from them.

    Discounts are first those that Chen and Goodman derive from how many n-grams were counted one to four times; `tune`
    chooses them on other text. Attribute: `discounts`, (order, 3), of one token first.

    Parameters
    ----------
    sequences : N integer arrays (length,), the training texts
    vocab_size : ids lie in 0 ... vocab_size - 1
    border : an id that stands for what is before the first token of a text, as often as needed
    order : tokens of the longest n-gram, the predicted one included; 1 looks at no context

    Raises
    ------
    TypeError : something other than integers, such as texts.
    ValueError : no token, an id outside the vocabulary, or n-grams of more than 62 bits.
    """

    def __init__(self, sequences: Sequence[np.ndarray], vocab_size: int, border: int, order: int = 5):
        check_count("order", order)
        check_count("vocab_size", vocab_size)
        if vocab_size**order > _LARGEST:
            raise ValueError(f"{order} tokens of a vocabulary of {vocab_size} do not fit into one number of 62 bits")
        self.vocab_size, self.border, self.order = vocab_size, border, order
        history, tokens = self._read(sequences)
        keys = np.unique(self._key(history, tokens, order), return_counts=True)
        self._tables = [_Table(*keys, vocab_size)]
        for n in range(order - 1, 0, -1):  # types of n + 1 tokens, without the first of these
            longer = np.unique(self._key(history, tokens, n + 1))
            self._tables.insert(0, _Table(*np.unique(longer % vocab_size**n, return_counts=True), vocab_size))
        self.discounts = np.stack([_derived(table.counts) for table in self._tables])  # (order, 3)

    def tune(self, sequences: Sequence[np.ndarray], sweeps: int = 2) -> KneserNey:
        """Choose the discounts under which these texts are most probable, one after the other; return the model."""
        found = self._look_up(*self._read(sequences))
        for _ in range(sweeps):
            for n in range(self.order):
                for i in range(3):

                    def loss(value, n=n, i=i):
                        self.discounts[n, i] = value
                        return -np.log(self._probabilities(found)).mean()

                    best = minimize_scalar(loss, bounds=(0, i + 1), method="bounded", options={"xatol": 5e-3})
                    self.discounts[n, i] = best.x
        return self

    def losses(self, sequences: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The loss of every token of each text in nats, from those before it: N float arrays (length,)."""
        losses = -np.log(self._probabilities(self._look_up(*self._read(sequences))))
        return np.split(losses, np.cumsum([len(ids) for ids in sequences])[:-1])

    def probabilities(self, context) -> np.ndarray:
        """Of every token after a context, integers (t,) with the beginning of the text at 0: float (vocab_size,)."""
        before = [self.border] * self.order + list(context)
        history = np.array(before[len(before) - self.order + 1 :], dtype=np.int64)
        every = np.arange(self.vocab_size)
        return self._probabilities(self._look_up(np.tile(history, (len(every), 1)), every))

    def _read(self, sequences) -> tuple[np.ndarray, np.ndarray]:
        """What stands before each token, (N, order - 1), and the tokens, (N,), of all texts."""
        sequences = positional("sequences", sequences)
        if lengths_of("sequences", sequences).sum() == 0:
            raise ValueError("there must be a text with at least one token")
        border = np.full(self.order - 1, self.border, dtype=np.int64)
        history = []
        for ids in sequences:
            stream = np.concatenate([border, np.asarray(ids, dtype=np.int64)])
            if len(ids):
                windows = np.lib.stride_tricks.sliding_window_view(stream[:-1] if self.order > 1 else stream, len(ids))
                history.append(windows[: self.order - 1].T)
        tokens = np.concatenate([np.asarray(ids, dtype=np.int64) for ids in sequences])
        if tokens.min() < 0 or tokens.max() >= self.vocab_size:
            raise ValueError(f"ids must lie in 0 ... {self.vocab_size - 1}, got {tokens.min()} to {tokens.max()}")
        return np.concatenate(history), tokens

    def _key(self, history, tokens, n: int) -> np.ndarray:
        """The last n tokens as one number, the predicted one its last digit: int64 (N,)."""
        key = np.zeros(len(tokens), dtype=np.int64)
        for place in range(self.order - n, self.order - 1):
            key = (key + history[:, place]) * self.vocab_size
        return key + tokens

    def _look_up(self, history, tokens) -> list[tuple]:
        """For each order: the counts of N tokens, of their contexts, and how many were counted once, twice, more."""
        return [table.look_up(self._key(history, tokens, n)) for n, table in enumerate(self._tables, start=1)]

    def _probabilities(self, found) -> np.ndarray:
        p = np.full(len(found[0][0]), 1 / self.vocab_size)
        for (counts, totals, types), discounts in zip(found, self.discounts, strict=True):
            own = counts - np.concatenate([[0.0], discounts])[np.minimum(counts, 3)]  # (N,)
            p = np.where(totals > 0, (own + types @ discounts * p) / np.maximum(totals, 1), p)
        return p


class _Table:
    """The n-grams of one order: sorted keys, so that those of a context are a block."""

    def __init__(self, keys: np.ndarray, counts: np.ndarray, vocab_size: int):
        self._size, self._keys, self.counts = vocab_size, keys, counts
        self._contexts, first = np.unique(keys // vocab_size, return_index=True)
        self._totals = np.add.reduceat(counts, first)
        kinds = np.stack([counts == 1, counts == 2, counts >= 3], axis=1).astype(np.int64)
        self._types = np.add.reduceat(kinds, first)  # (contexts, 3)

    def look_up(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The counts (N,) of n-grams, the totals (N,) of their contexts, and these contexts' N_i (N, 3)."""
        place, there = _places(self._keys, keys)
        context, known = _places(self._contexts, keys // self._size)
        return (
            np.where(there, self.counts[place], 0),
            np.where(known, self._totals[context], 0),
            np.where(known[:, None], self._types[context], 0),
        )


def _places(keys, wanted) -> tuple[np.ndarray, np.ndarray]:
    """Where each wanted key would stand, and whether it does."""
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return place, keys[place] == wanted


def _derived(counts) -> np.ndarray:
    """The three discounts that follow from how many n-grams were counted one to four times; halves of 1, 2, 3 else."""
    n = [int((counts == i).sum()) for i in range(1, 5)]
    if min(n) == 0:
        return np.array([0.5, 1.0, 1.5])
    y = n[0] / (n[0] + 2 * n[1])
    return np.clip([i - (i + 1) * y * n[i] / n[i - 1] for i in (1, 2, 3)], 1e-3, [1, 2, 3])  # 0 would leave nothing
