"""What a training measured."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np


class Evaluation(NamedTuple):
    """How well a model predicts held-out labels: target tokens given the true ones before, classes, blanks, ..."""

    n_tokens: int  # or texts, or whatever has a label
    nll: float  # mean negative log-likelihood of a label, in nats, whose exp is the perplexity; of numbers their loss
    accuracy: float  # fraction of the labels whose most probable prediction is right; NaN of numbers

    @classmethod
    def from_counts(cls, counts, counted: str = "target token") -> Self:
        """From one row (labels, summed nll, right predictions) a batch; ValueError when there is no label."""
        n_tokens, nll, right = np.asarray(counts, dtype=np.float64).reshape(-1, 3).sum(axis=0)
        if n_tokens == 0:
            raise ValueError(f"there is no {counted} to evaluate on")
        return cls(int(n_tokens), nll / n_tokens, right / n_tokens)


class JointEvaluation(NamedTuple):
    """How well a model does several tasks at once: `n_tokens` and `accuracy` are the first one's, `nll` the sum."""

    n_tokens: int
    nll: float
    accuracy: float
    parts: dict[str, Evaluation]

    @classmethod
    def from_counts(cls, counts, names) -> Self:
        """From one (P, 3) a batch, rows as for `Evaluation`; ValueError when one of the P parts has no label."""
        counts = np.asarray(counts, dtype=np.float64).reshape(-1, len(names), 3)
        rows = zip(names, counts.swapaxes(0, 1), strict=True)
        parts = {name: Evaluation.from_counts(own, f"label of the part {name!r}") for name, own in rows}
        first = parts[names[0]]
        return cls(first.n_tokens, sum(part.nll for part in parts.values()), first.accuracy, parts)


class Validation(NamedTuple):
    """What the held-out data said after `step` updates and `seconds` of training."""

    step: int
    seconds: float
    nll: float  # as in Evaluation
    accuracy: float


class JointValidation(NamedTuple):
    """What the held-out data of several tasks at once said; `nll` and `accuracy` as in JointEvaluation."""

    step: int
    seconds: float
    nll: float
    accuracy: float
    parts: dict[str, Evaluation]


def validation_of(step: int, seconds: float, found: Evaluation | JointEvaluation) -> Validation | JointValidation:
    """What was found after `step` updates and `seconds` of training."""
    look = Validation(step, seconds, float(found.nll), float(found.accuracy))
    return JointValidation(*look, found.parts) if isinstance(found, JointEvaluation) else look


def as_validation(look) -> Validation | JointValidation:
    """A validation as JSON has it, a list, as it was."""
    if len(look) == len(Validation._fields):
        return Validation(*look)
    return JointValidation(*look[:-1], {name: Evaluation(*part) for name, part in look[-1].items()})


@dataclass(frozen=True)
class History:
    """What a training measured.

    `loss`, `tokens` and `seconds` have one entry per update: the loss that was minimised, the labels that it is a mean
    over (target tokens, texts, ...; those of its first part), and time since the start without validation and saving
    (float64, int64, float64; shape (n_steps,)). `validation` lists the looks at the held-out data; `best` is the one
    whose weights the model now has, None without. `stopped_by` is the limit that ended it: "epochs", "steps", "seconds"
    or "patience".
    """

    loss: np.ndarray
    tokens: np.ndarray
    seconds: np.ndarray
    validation: list[Validation | JointValidation]
    best: Validation | JointValidation | None
    stopped_by: str
