"""The Transformer of encoder and decoder: its sizes, what it returns, and what a folder of it holds."""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from course_lib.checkpoints.folders import find_translator as find
from course_lib.checkpoints.pretrained import Family
from course_lib.checks import check_choice, check_even, check_heads
from course_lib.errors import CheckpointError
from course_lib.models.blocks import ACTIVATIONS, NORMS, BlockConfig
from course_lib.models.fields import (
    check_dropouts,
    check_norm_eps,
    check_pad_id,
    check_sizes,
    check_switches,
    make_plain,
)

POSITIONS = ("sinusoidal", "learned", "rotary", None)


@dataclass(frozen=True)
class TransformerConfig:
    """The sizes of a translator; the defaults are the base model of Vaswani et al. 2017, table 3.

    Raises
    ------
    ValueError : n_heads does not divide d_model, n_kv_heads not n_heads, a size below one, a dropout outside [0, 1), a
        norm_eps that is not positive, a pad_id outside a vocabulary, an unknown activation, norm or kind of positions,
        embeddings shared between vocabularies of different sizes.
    """

    source_vocab: int
    target_vocab: int
    d_model: int = 512
    n_layers: int = 6  # of the encoder, and as many of the decoder
    n_heads: int = 8
    d_ff: int = 2048
    max_len: int = 512  # longest source or target, in tokens
    dropout: float = 0.1  # of every sub-layer's output, and of embeddings with positions (section 5.4)
    attention_dropout: float = 0.0  # of the attention weights; the paper has none
    activation: str = "relu"
    pre_norm: bool = False
    norm_eps: float = 1e-5
    positions: str | None = "sinusoidal"
    share_embeddings: bool = False  # one table for source and target (section 3.4), for one vocabulary of both
    tie_output: bool = True  # the target's table is the output matrix too (section 3.4; Press and Wolf 2017)
    pad_id: int = 0
    norm: str = "layer"  # or "rms"; as in a BlockConfig
    n_kv_heads: int | None = None  # of keys and values in every attention; None: n_heads

    def __post_init__(self):
        make_plain(self)
        check_sizes(self, "source_vocab", "target_vocab", "d_model", "n_layers", "n_heads", "d_ff", "max_len")
        if self.n_kv_heads is not None:
            check_sizes(self, "n_kv_heads")
        check_heads(self.d_model, self.n_heads, self.n_kv_heads)
        check_dropouts(self, "dropout", "attention_dropout")
        check_norm_eps(self.norm_eps)
        check_pad_id(self.pad_id, "source_vocab", self.source_vocab)
        check_pad_id(self.pad_id, "target_vocab", self.target_vocab)
        check_switches(self, "pre_norm", "share_embeddings", "tie_output")
        check_choice("activation", self.activation, ACTIVATIONS)
        check_choice("norm", self.norm, NORMS)
        check_choice("positions", self.positions, POSITIONS)
        if self.positions == "sinusoidal":
            check_even("d_model of sinusoidal positions", self.d_model)
        if self.positions == "rotary":
            check_even("d_head = d_model / n_heads of rotary positions", self.d_model // self.n_heads)
        if self.share_embeddings and self.source_vocab != self.target_vocab:
            raise ValueError(
                "embeddings can be shared when source and target have one vocabulary, got source_vocab="
                f"{self.source_vocab} and target_vocab={self.target_vocab}"
            )

    @property
    def block(self) -> BlockConfig:
        """Of which encoder and decoder are built."""
        return BlockConfig(
            self.d_model,
            self.n_heads,
            self.d_ff,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            activation=self.activation,
            pre_norm=self.pre_norm,
            norm=self.norm,
            norm_eps=self.norm_eps,
            n_kv_heads=self.n_kv_heads,
            rotary_base=10000.0 if self.positions == "rotary" else None,
        )

    @classmethod
    def preset(cls, name: str, source_vocab: int, target_vocab: int, **changes) -> "TransformerConfig":
        """A model of known sizes: "base" and "big" of the paper (table 3), "tutorial" (4/128/512/8), "small", "tiny".

        Parameters
        ----------
        source_vocab, target_vocab : tokens of the two languages
        changes : fields to set otherwise

        Raises
        ------
        ValueError : no preset of that name.
        """
        check_choice("the preset", name, PRESETS)
        return cls(source_vocab, target_vocab, **{**PRESETS[name], **changes})


PRESETS = {
    "base": {},
    "big": {"d_model": 1024, "n_heads": 16, "d_ff": 4096, "dropout": 0.3},
    "tutorial": {"n_layers": 4, "d_model": 128, "n_heads": 8, "d_ff": 512},
    "small": {"n_layers": 3, "d_model": 256, "n_heads": 4, "d_ff": 1024},
    "tiny": {"n_layers": 2, "d_model": 64, "n_heads": 4, "d_ff": 128},
}


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


def read_config(settings: dict, architecture: str = "Transformer") -> TransformerConfig:
    """The configuration that a config.json describes; CheckpointError for one that is not a Transformer's."""
    if kind := settings.get("model_type"):
        raise CheckpointError(
            f"this config.json is of a {kind!r}, no translator; BertModel.from_pretrained opens a 'bert'"
        )
    try:
        return TransformerConfig(**settings)
    except (TypeError, ValueError) as error:
        advice = "; Seq2Seq.from_pretrained opens a recurrent one" if "cell" in settings else ""
        raise CheckpointError(f"this config.json does not describe a translator: {error}{advice}") from error


def write_config(config: TransformerConfig, architecture: str = "Transformer") -> dict:
    """The contents of a config.json: the fields of the configuration."""
    return asdict(config)


TRANSFORMER = Family("Transformer", read_config, write_config, find)
