"""One long text cut into windows, for a model that predicts each token from those before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from course_lib.batches.epochs import Epoch
from course_lib.batches.texts import Batch
from course_lib.checks import check_count


def joined(documents: Sequence[np.ndarray], end_id: int) -> np.ndarray:
    """Documents, integer arrays (length,), as one stream: `end_id` before each and behind the last, int64 (N,)."""
    parts = [part for ids in documents for part in ([end_id], ids)]
    return np.concatenate([*parts, [end_id]]).astype(np.int64)


class StreamBatches(Epoch):
    """One epoch of windows of a stream, `length` + 1 tokens each: so many inputs, and for each its next token.

    Every window begins with the last token of the one before. Each epoch begins elsewhere, so that windows are cut at
    other places, and has another order. What is left over at either end, and windows that fill no batch, wait for
    another epoch. Batch k of epoch e depends on seed, e and k alone.

    Parameters
    ----------
    stream : integers (N,), as `joined` makes them
    length : tokens that are predicted in a window
    batch_size : windows of a batch
    seed : of the beginning and of the order
    epoch : which one, counted from 0

    Raises
    ------
    ValueError : a stream of fewer tokens than one batch needs, or a number that is none.
    TypeError : something other than integers.
    """

    def __init__(self, stream, length: int = 128, batch_size: int = 16, seed: int = 0, epoch: int = 0):
        numbers = (("length", length, 1), ("batch_size", batch_size, 1), ("seed", seed, 0), ("epoch", epoch, 0))
        for name, value, least in numbers:
            check_count(name, value, least)
        stream = np.asarray(stream)
        if not np.issubdtype(stream.dtype, np.integer):
            raise TypeError(f"a stream must be integers, got {stream.dtype}")
        if stream.ndim != 1 or len(stream) < length * (batch_size + 1):
            raise ValueError(
                f"a stream (N,) must have {length * (batch_size + 1)} tokens or more for a batch, got {stream.shape}"
            )
        self.stream, self.length, self.batch_size, self.seed = stream, length, batch_size, seed
        self._enter(epoch)

    def _shuffle(self, epoch: int) -> None:
        rng = np.random.default_rng([self.seed, epoch])
        self._first = int(rng.integers(self.length))
        rows = rng.permutation((len(self.stream) - self.length) // self.length)
        whole = len(rows) // self.batch_size * self.batch_size
        self.groups = rows[:whole].reshape(-1, self.batch_size)

    def __getitem__(self, i: int) -> Batch:
        rows = self.groups[i]
        places = self._first + rows[:, None] * self.length + np.arange(self.length + 1)  # (B, length + 1)
        return Batch(self.stream[places].astype(np.int64), rows)


def strides(n_tokens: int, length: int, stride: int) -> Iterator[tuple[int, int, int]]:
    """How a text is read to predict each of its tokens once, with as many before it as a window allows.

    A window of at most `length` inputs moves on by `stride`; of each, only the predictions that no window before has
    made count. So every token but those at the beginning has at least `length` - `stride` before it.

    Parameters
    ----------
    n_tokens : of the text, the first of which is not predicted
    length : inputs of a window
    stride : predictions that are new in each window after the first, `length` at most

    Yields
    ------
    (first, last, new) : the window's inputs are text[first:last], its labels text[first + 1 : last + 1], and the `new`
        last ones count.

    Raises
    ------
    ValueError : fewer than two tokens, or not 1 <= stride <= length.
    """
    check_count("n_tokens", n_tokens, 2)
    check_count("stride", stride)
    if stride > length:
        raise ValueError(f"stride must be {length} at most, the inputs of a window; got {stride}")
    done = 0  # predictions made
    while done < n_tokens - 1:
        last = min(length if done == 0 else done + stride, n_tokens - 1)
        yield max(last - length, 0), last, last - done
        done = last
