"""Losses that come as tensors from any device, and an error as soon as one, or a weight, is not a number any more."""

import math
from collections.abc import Mapping

import numpy as np

FLUSH = 10  # updates between two looks at the loss: each look makes an accelerator finish what it was given
REMEDIES = "lower the rate, lengthen its warm-up, or cut the gradient down to a smaller max_norm"


def fetched(losses, done: int, more: str = "") -> list[float]:
    """Losses as numbers: those of the updates that follow the first `done`.

    Raises
    ------
    FloatingPointError : one is NaN or infinite, after which nothing could be right; says what to do, and `more`.
    """
    numbers = [float(loss) for loss in losses]
    for step, loss in enumerate(numbers, start=done + 1):
        if not math.isfinite(loss):
            raise FloatingPointError(f"the loss of update {step} is {loss}: the training diverged; {REMEDIES}{more}")
    return numbers


def check_weights(weights: Mapping[str, np.ndarray], more: str = "") -> None:
    """Raise FloatingPointError when a weight is NaN or infinite; says which, what to do, and `more`.

    No loss tells of the last update of a training: it was computed before that.
    """
    for name, value in weights.items():
        if not np.isfinite(value).all():
            raise FloatingPointError(f"{name} is not finite: the training diverged; {REMEDIES}{more}")


class Losses:
    """The losses of a training, which are looked at every few updates only; errors as for `fetched`.

    `known` are numbers, those of the first updates; `pending` may be tensors on any device, those of the last ones.
    """

    def __init__(self, known=()):
        self.known, self.pending = list(known), []

    def append(self, loss, more: str = "") -> None:
        """Add the loss of an update, a number or a tensor on any device; `more` ends the message of an error."""
        self.pending.append(loss)
        if len(self.pending) >= FLUSH:
            self.fetch(more)

    def fetch(self, more: str = "") -> None:
        """Look at those that are not known yet."""
        fresh, self.pending = self.pending, []
        self.known += fetched(fresh, len(self.known), more)

    def numbers(self) -> np.ndarray:
        """All losses so far, float64 (n,)."""
        self.fetch()
        return np.array(self.known, dtype=np.float64)
