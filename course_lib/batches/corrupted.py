"""Spans of a text taken out and asked for: span corruption (Raffel et al. 2020, sections 3.1.4 and 3.3.4).

`SpanCorruption` makes source and target of one sequence and puts the spans back; `CorruptedBatches` gives batches for
the objective `translation`, every epoch with other spans.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from course_lib.batches.epochs import Epoch, batches_of
from course_lib.batches.pairs import PairBatch
from course_lib.checks import check_count
from course_lib.text.padding import lengths_of, positional, stacked


class SpanCorruption:
    """Which spans are taken out, and what is written of them.

    Of a sequence, a share of the tokens is taken out in spans of random lengths at random places; how many tokens and
    spans that are depends on its length alone. Where the first span was, the source has the vocabulary's last token,
    where the second was, the last but one, and so on: the sentinels. The target has each sentinel with the tokens that
    stood there. Both end with `end_id`, and the target begins with `start_id`, for teacher forcing.

    A sequence begins with a token that stays and ends with a span, as in the code that the paper's authors released,
    and all such choices of spans are equally likely. Where that is a single span, it stands at the end: let the spans
    of short sequences be `rolled`. The paper's last sentinel, which marks the end of a target, is not written, since
    `end_id` does. Attributes are the parameters.

    Parameters
    ----------
    vocab_size : of the model, the sentinels included
    n_sentinels : how many ids at the end of the vocabulary are sentinels and nothing else
    start_id, end_id : what a target begins with, and what source and target end with; T5's
    density : share of the tokens that are taken out, between 0 and 1
    mean_span : tokens of a span in the mean, 1 or more
    rolled : move all spans by a random number of tokens, from the end round to the beginning; one of them may be cut
        in two by that

    Raises
    ------
    ValueError : a share or a mean length out of reach, no sentinel, or ids that are not below the sentinels.
    """

    def __init__(
        self,
        vocab_size: int,
        n_sentinels: int = 100,
        start_id: int = 0,
        end_id: int = 1,
        density: float = 0.15,
        mean_span: float = 3.0,
        rolled: bool = False,
    ):
        check_count("vocab_size", vocab_size)
        check_count("n_sentinels", n_sentinels)
        if not 0 < density < 1:
            raise ValueError(f"density must lie between 0 and 1, such as 0.15; got {density!r}")
        if not mean_span >= 1:
            raise ValueError(f"mean_span must be 1 or more, such as 3; got {mean_span!r}")
        self.lowest = vocab_size - n_sentinels  # of the sentinels
        for name, value in (("start_id", start_id), ("end_id", end_id)):
            check_count(name, value, 0)
            if value >= self.lowest:
                raise ValueError(
                    f"{name} must be below the sentinels, {self.lowest} ... {vocab_size - 1}, got {value}; the "
                    "vocabulary of the model needs room for them behind the tokens of the text"
                )
        self.vocab_size, self.n_sentinels, self.start_id, self.end_id = vocab_size, n_sentinels, start_id, end_id
        self.density, self.mean_span, self.rolled = density, mean_span, rolled

    def counts(self, length: int) -> tuple[int, int]:
        """How many tokens of a sequence are taken out, and in how many spans, before one of them is cut in two.

        Raises
        ------
        ValueError : a sequence of fewer than two tokens, one of which stays, or one with more spans than sentinels.
        """
        check_count("length", length, 2)
        n_out = min(max(round(length * self.density), 1), length - 1)
        n_spans = min(max(round(n_out / self.mean_span), 1), length - n_out)  # each has a token before it
        if n_spans + self.rolled > self.n_sentinels:
            raise ValueError(
                f"a sequence of {length} tokens has {n_spans + self.rolled} spans for {self.n_sentinels} sentinels; "
                "cut it into shorter ones, or reserve more"
            )
        return n_out, n_spans

    def lengths(self, length: int) -> tuple[int, int]:
        """The tokens that source and target of `length` tokens have, or one more if `rolled`; errors of `counts`."""
        n_out, n_spans = self.counts(length)
        return length - n_out + n_spans + 1, 1 + n_spans + n_out + 1

    def spans(self, length: int, rng: np.random.Generator) -> np.ndarray:
        """Which tokens are taken out: boolean (length,); errors of `counts`."""
        n_out, n_spans = self.counts(length)
        stay, out = (_parts(n, n_spans, rng) for n in (length - n_out, n_out))
        runs = np.stack([stay, out], axis=1).ravel()  # how long each run of tokens that stay or go is, by turns
        out = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
        return np.roll(out, rng.integers(length)) if self.rolled else out

    def corrupted(self, ids, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Source and target of one sequence, with spans that `rng` draws.

        Parameters
        ----------
        ids : integers, shape (length,), a text without special tokens

        Returns
        -------
        Source and target, int64 arrays, see `lengths`.

        Raises
        ------
        ValueError : as for `counts`, another shape, or a sentinel or an end among the tokens.
        TypeError : something other than integers.
        """
        (length,) = lengths_of("ids", [ids])
        ids = np.asarray(ids)
        if length and not 0 <= ids.min() <= ids.max() < self.lowest:
            raise ValueError(
                f"the tokens of a text must lie in 0 ... {self.lowest - 1}, below the sentinels; got ids from "
                f"{ids.min()} to {ids.max()}"
            )
        if (ids == self.end_id).any():
            raise ValueError(f"the tokens of a text must not hold its end, {self.end_id}, which is added here")
        out = self.spans(int(length), rng)
        first = out & ~np.append(False, out[:-1])  # of each span
        sentinels = self.vocab_size - np.cumsum(first)
        source = np.where(first, sentinels, ids)[~out | first]
        marked = np.stack([np.where(first, sentinels, -1), np.where(out, ids, -1)], axis=1).ravel()
        target = marked[marked >= 0]
        return np.append(source, self.end_id), np.concatenate([[self.start_id], target, [self.end_id]])

    def restored(self, source, target) -> np.ndarray:
        """The text of a source whose spans are those of a target: the inverse of `corrupted`.

        A target that a model wrote may lack a sentinel, and then nothing stands there; what it says before the first
        one, of one that the source does not have, or of one for the second time, is left out.

        Parameters
        ----------
        source : integers, shape (S,); what follows its end is left out
        target : integers, shape (T,), likewise

        Returns
        -------
        int64 array (length,), without special tokens.

        Raises
        ------
        ValueError : another shape. TypeError : something other than integers.
        """
        lengths_of("source and target", [source, target])
        spans, at = {}, None
        for token in self._until_end(target):
            if token >= self.lowest:
                at = None if token in spans else spans.setdefault(token, [])
            elif at is not None:
                at.append(token)
        pieces = [spans.get(token, []) if token >= self.lowest else [token] for token in self._until_end(source)]
        return np.array([token for piece in pieces for token in piece], dtype=np.int64)

    def _until_end(self, ids) -> list[int]:
        ids = np.asarray(ids).tolist()
        return ids[: ids.index(self.end_id)] if self.end_id in ids else ids


class CorruptedBatches(Epoch):
    """One epoch of sequences with spans taken out, in batches of similar lengths: source to target.

    Each epoch takes out other spans. `batches.epoch(e)[k]` depends on the sequences, the corruption, the seed, e and k
    and on nothing else, so a training that was stopped goes on from there. Sequences of one length make batches of one
    shape, if no span is `rolled`.

    Parameters
    ----------
    sequences : N integer arrays of shape (length,), texts without special tokens, of two tokens or more
    corruption : which spans are taken out
    batch_size : sequences of a batch
    seed : of the order and the spans; with None the order is that of the lengths, and every epoch has the same spans,
        for a validation
    epoch : which one, counted from 0
    pad_id : what to pad with
    multiple : round lengths up to a multiple of this: fewer different shapes, each of which XLA compiles anew

    Raises
    ------
    ValueError : no sequences, a size below one, or what the corruption cannot take spans out of.
    TypeError : something other than integers, such as texts.
    """

    def __init__(
        self,
        sequences: Sequence[np.ndarray],
        corruption: SpanCorruption,
        batch_size: int = 32,
        seed: int | None = 0,
        epoch: int = 0,
        pad_id: int = 0,
        multiple: int = 1,
    ):
        for name, value, least in (("batch_size", batch_size, 1), ("multiple", multiple, 1), ("epoch", epoch, 0)):
            check_count(name, value, least)
        self.sequences = positional("sequences", sequences)
        self._lengths = lengths_of("sequences", self.sequences)
        if len(self._lengths) == 0:
            raise ValueError("there must be at least one sequence")
        for length in np.unique(self._lengths).tolist():
            corruption.counts(length)
        self.corruption, self.batch_size, self.seed = corruption, batch_size, seed
        self.pad_id, self.multiple = pad_id, multiple
        self._enter(epoch)

    def _shuffle(self, epoch: int) -> None:
        self.groups = batches_of(self._lengths, self.batch_size, None if self.seed is None else [self.seed, epoch])

    def __getitem__(self, i: int) -> PairBatch:
        rows = self.groups[i]
        draw = [0, 0] if self.seed is None else [self.seed, self.number]
        made = [self.corruption.corrupted(self.sequences[r], np.random.default_rng([*draw, 1, int(r)])) for r in rows]
        return PairBatch(*(stacked(side, self.pad_id, self.multiple) for side in zip(*made, strict=True)), rows)


def _parts(n: int, n_parts: int, rng: np.random.Generator) -> np.ndarray:
    """n as a sum of so many whole numbers of 1 or more, all such sums equally likely: int64 (n_parts,)."""
    ends = np.sort(rng.permutation(n - 1)[: n_parts - 1]) + 1
    return np.diff(ends, prepend=0, append=n)
