"""What a training measured."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Validation(NamedTuple):
    """What the held-out pairs said after `step` updates and `seconds` of training."""

    step: int
    seconds: float
    nll: float  # as in Evaluation
    accuracy: float


class Evaluation(NamedTuple):
    """How well a model predicts held-out target tokens, given the true ones before."""

    n_tokens: int
    nll: float  # mean negative log-likelihood of a token, in nats; exp of it is the perplexity
    accuracy: float  # fraction of tokens whose most probable prediction is right

    @classmethod
    def from_counts(cls, counts) -> "Evaluation":
        """From one row (tokens, summed nll, right predictions) a batch; ValueError when there is no token."""
        n_tokens, nll, right = np.asarray(counts, dtype=np.float64).reshape(-1, 3).sum(axis=0)
        if n_tokens == 0:
            raise ValueError("there is no target token to evaluate on")
        return cls(int(n_tokens), nll / n_tokens, right / n_tokens)


@dataclass(frozen=True)
class History:
    """What a training measured.

    `loss`, `tokens` and `seconds` have one entry per update: the loss that was minimised, target tokens of the batch,
    and time since the start without validation and saving (float64, int64, float64; shape (n_steps,)).
    `validation` lists the looks at the held-out pairs; `best` is the one whose weights the model now has, None without.
    `stopped_by` is the limit that ended it: "epochs", "steps", "seconds" or "patience".
    """

    loss: np.ndarray
    tokens: np.ndarray
    seconds: np.ndarray
    validation: list[Validation]
    best: Validation | None
    stopped_by: str
