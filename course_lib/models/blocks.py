"""The block that every model of the course is built of: its sizes, and what its parts return in every framework."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from course_lib.checks import check_choice, check_even, check_heads
from course_lib.models.fields import check_dropouts, check_norm_eps, check_sizes, check_switches, is_number, make_plain

ACTIVATIONS = ("gelu", "relu", "gelu_new", "silu")
NORMS = ("layer", "rms")


@dataclass(frozen=True)
class BlockConfig:
    """The sizes and the kind of a Transformer's block: of `EncoderLayer`, `DecoderLayer` and what they consist of.

    Raises
    ------
    ValueError : n_heads does not divide d_model where d_head is not given, n_kv_heads does not divide n_heads, a size
        below one, a dropout outside [0, 1), an unknown activation or norm, an odd d_head with rotary positions, a
        norm_eps, scale or rotary_base that is not positive.
    """

    d_model: int
    n_heads: int
    d_ff: int
    dropout: float = 0.0  # of each sub-layer's output, before it is added to the residual (section 5.4)
    attention_dropout: float = 0.0  # of the attention weights
    activation: str = "relu"  # "relu" (the paper), "gelu" (BERT), "gelu_new" (ALBERT), "silu" (with a gate: SwiGLU)
    pre_norm: bool = False  # False normalises after adding, as in the paper; True before (Xiong et al. 2020)
    norm: str = "layer"  # "layer", or "rms" without mean and shift (Zhang and Sennrich 2019)
    norm_eps: float = 1e-5  # added to the variance
    n_kv_heads: int | None = None  # of keys and values, for n_heads of queries (Ainslie et al. 2023); None: n_heads
    d_head: int | None = None  # features of a head; None: d_model / n_heads
    scale: float | None = None  # what q k^T is multiplied by; None: 1 / sqrt(d_head)
    linear_bias: bool = True  # whether the linear layers add a bias
    gated: bool = False  # feed-forward with a gate, activation(x W1) * (x V) (Shazeer 2020)
    rotary_base: float | None = None  # of rotary positions in self-attention, 10000 in Su et al. 2021; None: none
    feed_forward_dropout: float = 0.0  # of what feed-forward has between its matrices (Raffel et al. 2020, section 2.1)
    qkv_bias: bool | None = None  # whether queries, keys and values have a bias; None: as linear_bias says
    key_bias: bool | None = None  # whether keys do, which softmax does not see; None: as queries and values

    @property
    def for_attention(self) -> dict:
        """The arguments of `MultiHeadAttention`."""
        return {
            "d_model": self.d_model,
            "n_heads": self.n_heads,
            "dropout": self.attention_dropout,
            "n_kv_heads": self.n_kv_heads,
            "d_head": self.d_head,
            "linear_bias": self.linear_bias,
            "scale": self.scale,
            "rotary_base": self.rotary_base,
            "qkv_bias": self.qkv_bias,
            "key_bias": self.key_bias,
        }

    @property
    def for_feed_forward(self) -> dict:
        """The arguments of `FeedForward`."""
        return {
            "d_model": self.d_model,
            "d_ff": self.d_ff,
            "activation": self.activation,
            "gated": self.gated,
            "linear_bias": self.linear_bias,
            "dropout": self.feed_forward_dropout,
        }

    def __post_init__(self):
        make_plain(self)
        check_sizes(self, "d_model", "n_heads", "d_ff")
        check_sizes(self, *(name for name in ("n_kv_heads", "d_head") if getattr(self, name) is not None))
        check_dropouts(self, "dropout", "attention_dropout", "feed_forward_dropout")
        check_norm_eps(self.norm_eps)
        check_switches(self, "pre_norm", "linear_bias", "gated")
        check_switches(self, *([] if self.qkv_bias is None else ["qkv_bias"]))
        check_switches(self, *([] if self.key_bias is None else ["key_bias"]))
        check_choice("activation", self.activation, ACTIVATIONS)
        check_choice("norm", self.norm, NORMS)
        for name in ("scale", "rotary_base"):
            value = getattr(self, name)
            if value is not None and (not is_number(value) or value <= 0):
                raise ValueError(f"{name} must be a positive number, got {value!r}")
        d_head = check_heads(self.d_model, self.n_heads, self.n_kv_heads, self.d_head)
        if self.rotary_base is not None:
            check_even("d_head of rotary positions", d_head)


class AttentionOutput(NamedTuple):
    """Of `attention` (context and weights) and `MultiHeadAttention` (output and weights) in that order."""

    output: Any  # (..., T, d_v), or (B, T, d_model) for multi-head attention
    weights: Any  # (..., T, S); None from fused_attention, which never forms them


class EncoderOutput(NamedTuple):
    """Of `Encoder`."""

    last_hidden: Any  # (B, T, d_model)
    hidden: tuple | None  # n_layers + 1 times (B, T, d_model), the input first; only with return_layers=True
    weights: tuple | None  # n_layers times (B, H, T, S); only with return_layers=True


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


class LossOutput(NamedTuple):
    """Of `cross_entropy`: numbers of the framework, without axes."""

    loss: Any  # what training minimises, a mean over the real tokens
    nll: Any  # the mean negative log-likelihood of the real tokens, in nats; exp of it is the perplexity
    n_tokens: Any  # real tokens


class RNNOutput(NamedTuple):
    """Of `RNN`, and of the functions that run a cell along a sequence."""

    outputs: Any  # (B, T, d_hidden); bidirectional (B, T, 2 d_hidden) = [forward, backward]
    state: tuple  # after the last real step, as many as the cell has: (B, d_hidden), bidirectional (B, 2 d_hidden)


def check_block(config) -> BlockConfig:
    """The configuration; TypeError unless it is a BlockConfig."""
    if not isinstance(config, BlockConfig):
        raise TypeError(
            f"config must be a BlockConfig, got {config!r}; write BlockConfig(d_model=64, n_heads=4, d_ff=256)"
        )
    return config


def check_memory(memory, cross_attention) -> None:
    """Raise ValueError unless a memory is given exactly where there is a cross-attention to read it."""
    if (memory is None) != (cross_attention is None):
        raise ValueError(
            "this decoder attends to an encoder: give its output as `memory`"
            if memory is None
            else "this decoder was built with cross_attention=False and takes no memory"
        )
