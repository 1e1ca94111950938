"""What training has in common in every framework: what it reads, and what it measures."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from course_lib.config import BertConfig
from course_lib.training_checks import pair_of


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


class Example(NamedTuple):
    """A batch for teacher forcing: the model reads `source` and `inputs` and shall predict `labels`."""

    source: np.ndarray  # (B, S)
    inputs: np.ndarray  # (B, T - 1): the target without its last token
    labels: np.ndarray  # (B, T - 1): the target without its first token


def teacher_forcing(batch) -> Example:
    """A batch of pairs -> the arrays of one update; `batch` starts with source ids (B, S) and target ids (B, T)."""
    source, target = batch[:2]
    return Example(source, target[:, :-1], target[:, 1:])


def example_of(name: str, batch, pad_id: int) -> tuple[Example, int]:
    """The arrays of one update, and how many target tokens they have besides padding.

    Raises
    ------
    TypeError : a batch that does not begin with two arrays of integers; it is called by its `name`.
    ValueError : arrays with other axes, no sequence, or no target token.
    """
    example = teacher_forcing(pair_of(name, batch))
    n_tokens = int((example.labels != pad_id).sum())
    if n_tokens == 0:
        raise ValueError(f"{name} has no target token besides padding, so there is nothing to learn")
    return example, n_tokens


def pad_id_of(model) -> int:
    """The padding id of a translation model: its own, or its config's; TypeError for a model that does not translate.

    A model says so by having one; a BERT, which has one too, reads a single text.
    """
    config = getattr(model, "config", None)
    owner = model if hasattr(model, "pad_id") else config
    if not hasattr(owner, "pad_id") or isinstance(config, BertConfig):
        raise TypeError(
            f"a {type(model).__name__} does not read source and target: give a model that translates, such as a "
            "Transformer or a Seq2Seq; a BERT is fine-tuned by the module `training`"
        )
    return owner.pad_id
