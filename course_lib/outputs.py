"""What the models return: the same named fields in every framework."""

from typing import Any, NamedTuple


class AttentionOutput(NamedTuple):
    """Of `attention` (context and weights) and `MultiHeadAttention` (output and weights) in that order."""

    output: Any  # (..., T, d_v), or (B, T, d_model) for multi-head attention
    weights: Any  # (..., T, S); None from fused_attention, which never forms them


class EncoderOutput(NamedTuple):
    """Of `Encoder`."""

    last_hidden: Any  # (B, T, d_model)
    hidden: tuple | None  # n_layers + 1 times (B, T, d_model), the input first; only with return_layers=True
    weights: tuple | None  # n_layers times (B, H, T, S); only with return_layers=True


class BertOutput(NamedTuple):
    """Of `BertModel`."""

    last_hidden: Any  # (B, T, d_model)
    pooled: Any  # (B, d_model), or None without a pooler
    hidden: tuple | None  # as in EncoderOutput
    weights: tuple | None  # as in EncoderOutput


class MaskedLMOutput(NamedTuple):
    """Of `BertForMaskedLM`."""

    logits: Any  # (B, T, V)
    hidden: tuple | None
    weights: tuple | None


class ClassifierOutput(NamedTuple):
    """Of `BertForSequenceClassification`."""

    logits: Any  # (B, n_classes)
    hidden: tuple | None
    weights: tuple | None


class LossOutput(NamedTuple):
    """Of `cross_entropy`: numbers of the framework, without axes."""

    loss: Any  # what training minimises, a mean over the real tokens
    nll: Any  # the mean negative log-likelihood of the real tokens, in nats; exp of it is the perplexity
    n_tokens: Any  # real tokens


class RNNOutput(NamedTuple):
    """Of `RNN`, and of the functions that run a cell along a sequence."""

    outputs: Any  # (B, T, d_hidden); bidirectional (B, T, 2 d_hidden) = [forward, backward]
    state: tuple  # after the last real step, as many as the cell has: (B, d_hidden), bidirectional (B, 2 d_hidden)
