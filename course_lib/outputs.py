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


class DecoderLayerOutput(NamedTuple):
    """Of `DecoderLayer`."""

    output: Any  # (B, T, d_model)
    self_weights: Any  # (B, H, T, T)
    cross_weights: Any  # (B, H, T, S)


class DecoderOutput(NamedTuple):
    """Of `Decoder`."""

    last_hidden: Any  # (B, T, d_model)
    hidden: tuple | None  # n_layers + 1 times (B, T, d_model), the input first; only with return_layers=True
    self_weights: tuple | None  # n_layers times (B, H, T, T); only with return_layers=True
    cross_weights: tuple | None  # n_layers times (B, H, T, S); only with return_layers=True


class LayerCache(NamedTuple):
    """What a decoder layer keeps of the t tokens it has read, and of the source; `Decoder.step` adds to it."""

    keys: Any  # (B, n_kv_heads, t, d_head)
    values: Any  # (B, n_kv_heads, t, d_head)
    memory_keys: Any  # (B, n_kv_heads, S, d_head); None without an encoder
    memory_values: Any  # (B, n_kv_heads, S, d_head); None without an encoder


class TransformerOutput(NamedTuple):
    """Of `Transformer`; all but the logits only with return_layers=True."""

    logits: Any  # (B, T, V)
    encoder_hidden: tuple | None  # as in EncoderOutput
    encoder_weights: tuple | None  # n_layers times (B, H, S, S)
    decoder_hidden: tuple | None  # as in DecoderOutput
    self_weights: tuple | None  # n_layers times (B, H, T, T)
    cross_weights: tuple | None  # n_layers times (B, H, T, S)


class TransformerMemory(NamedTuple):
    """Of `Transformer.encode`: all that the decoder needs of the source."""

    hidden: Any  # (B, S, d_model), the encoder's output
    mask: Any  # boolean (B, 1, 1, S), True = a real token


class TransformerState(NamedTuple):
    """What a `Transformer` keeps of the t target tokens it has read; `step` adds to it."""

    memory_mask: Any  # boolean (B, 1, 1, S), True = a real token of the source
    mask: Any  # boolean (B, 1, 1, t), True = a real token of the target
    caches: tuple  # a LayerCache for each layer


class LossOutput(NamedTuple):
    """Of `cross_entropy`: numbers of the framework, without axes."""

    loss: Any  # what training minimises, a mean over the real tokens
    nll: Any  # the mean negative log-likelihood of the real tokens, in nats; exp of it is the perplexity
    n_tokens: Any  # real tokens


class RNNOutput(NamedTuple):
    """Of `RNN`, and of the functions that run a cell along a sequence."""

    outputs: Any  # (B, T, d_hidden); bidirectional (B, T, 2 d_hidden) = [forward, backward]
    state: tuple  # after the last real step, as many as the cell has: (B, d_hidden), bidirectional (B, 2 d_hidden)


class Seq2SeqMemory(NamedTuple):
    """Of `Seq2Seq.encode`: all that the decoder needs of the source."""

    annotations: Any  # (B, S, d_hidden), the encoder's outputs [forward, backward]
    keys: Any  # what the score makes of them once for all queries, (B, S, d_hidden); None without attention
    mask: Any  # boolean (B, 1, S), True = a real token
    summary: Any  # (B, d_hidden), the encoder's last states [forward, backward]
    state: tuple  # the decoder's first state, arrays (B, d_hidden)


class Seq2SeqState(NamedTuple):
    """What a `Seq2Seq` keeps of the tokens it has read; `step` replaces it."""

    memory: Seq2SeqMemory
    hidden: tuple  # the decoder's state, arrays (B, d_hidden)


class Seq2SeqOutput(NamedTuple):
    """Of `Seq2Seq`."""

    logits: Any  # (B, T, V)
    weights: Any  # (B, T, S), the alignment; None without attention
