"""What BERT's heads return."""

from typing import Any, NamedTuple


class MaskedLMOutput(NamedTuple):
    """Of `BertForMaskedLM`."""

    logits: Any  # (B, T, V); of N tokens alone, (N, V), with `at`
    hidden: tuple | None
    weights: tuple | None


class PretrainingOutput(NamedTuple):
    """Of `BertForPreTraining`."""

    masked_logits: Any  # (B, T, V); of N tokens alone, (N, V), with `at`
    next_logits: Any  # (B, 2): that the second text follows the first, and that it does not
    hidden: tuple | None  # as in EncoderOutput
    weights: tuple | None  # as in EncoderOutput


class ClassifierOutput(NamedTuple):
    """Of `BertForSequenceClassification`."""

    logits: Any  # (B, n_classes)
    hidden: tuple | None
    weights: tuple | None


class TokenClassifierOutput(NamedTuple):
    """Of `BertForTokenClassification`."""

    logits: Any  # (B, T, n_classes)
    hidden: tuple | None
    weights: tuple | None


class AnswerOutput(NamedTuple):
    """Of `BertForQuestionAnswering`."""

    start_logits: Any  # (B, T): that the answer starts at this token
    end_logits: Any  # (B, T): that this token is its last
    hidden: tuple | None
    weights: tuple | None
