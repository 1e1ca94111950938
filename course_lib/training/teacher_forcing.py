"""What a model that generates is trained on: the pairs of a batch, for teacher forcing."""

from typing import NamedTuple

import numpy as np

from course_lib.models.bert import BertConfig
from course_lib.models.gpt import GPTConfig


class Example(NamedTuple):
    """A batch for teacher forcing: the model reads `source` and `inputs` and shall predict `labels`."""

    source: np.ndarray  # (B, S)
    inputs: np.ndarray  # (B, T - 1): the target without its last token
    labels: np.ndarray  # (B, T - 1): the target without its first token


def teacher_forcing(batch) -> Example:
    """A batch of pairs -> the arrays of one update; `batch` starts with source ids (B, S) and target ids (B, T)."""
    source, target = batch[:2]
    return Example(source, target[:, :-1], target[:, 1:])


def pad_id_of(model) -> int:
    """The padding id of a translation model: its own, or its config's; TypeError for a model that does not translate.

    A model says so by having one; a BERT and a GPT, which have one too, read a single text.
    """
    config = getattr(model, "config", None)
    owner = model if hasattr(model, "pad_id") else config
    if not hasattr(owner, "pad_id") or isinstance(config, (BertConfig, GPTConfig)):
        raise TypeError(
            f"a {type(model).__name__} does not read source and target: give a model that translates, such as a "
            "Transformer or a Seq2Seq; a BERT is fine-tuned by `training.classifier`, and a GPT learns `next_token`"
        )
    return owner.pad_id
