"""Whisper, which writes down what was said: its sizes, the names of its weights, and the border to config.json."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from course_lib.checkpoints.folders import find_checkpoint as find
from course_lib.checkpoints.names import Renames
from course_lib.checkpoints.pretrained import Family
from course_lib.checks import check_choice, check_even, check_heads
from course_lib.errors import CheckpointError
from course_lib.models.blocks import ACTIVATIONS, BlockConfig
from course_lib.models.config_json import known_fields, usable
from course_lib.models.fields import check_dropouts, check_pad_id, check_sizes, is_number, make_plain
from course_lib.models.position_tables import sinusoidal_halves

KERNEL = 3  # frames that each convolution sees

# Our field -> the key in a Whisper's config.json.
_KEYS = {
    "vocab_size": "vocab_size",
    "n_mels": "num_mel_bins",
    "d_model": "d_model",
    "n_layers": "encoder_layers",
    "n_decoder_layers": "decoder_layers",
    "n_heads": "encoder_attention_heads",
    "n_decoder_heads": "decoder_attention_heads",
    "d_ff": "encoder_ffn_dim",
    "d_decoder_ff": "decoder_ffn_dim",
    "max_source_len": "max_source_positions",
    "max_len": "max_target_positions",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "feed_forward_dropout": "activation_dropout",
    "activation": "activation_function",
    "init_std": "init_std",
    "pad_id": "pad_token_id",
    "start_id": "decoder_start_token_id",
    "end_id": "eos_token_id",
}

# Settings of a config.json that change the computation, and the only value that our Whisper computes.
_FIXED = {"model_type": "whisper", "is_encoder_decoder": True, "tie_word_embeddings": True}


@dataclass(frozen=True)
class WhisperConfig:
    """The sizes of a Whisper; the defaults are those of its "tiny" (Radford et al. 2023, table 1).

    Raises
    ------
    ValueError : n_heads or n_decoder_heads do not divide d_model, an odd d_model or one below 4, a size below one, a
        dropout outside [0, 1), an unknown activation, a pad_id, start_id or end_id outside the vocabulary.
    """

    vocab_size: int = 51865
    n_mels: int = 80  # bands of the spectrogram
    d_model: int = 384
    n_layers: int = 4  # of the encoder
    n_decoder_layers: int = 4
    n_heads: int = 6  # of the encoder
    n_decoder_heads: int = 6
    d_ff: int = 1536  # of the encoder
    d_decoder_ff: int = 1536
    max_source_len: int = 1500  # positions of the encoder, each of two frames: 20 ms
    max_len: int = 448  # longest target, in tokens
    dropout: float = 0.0  # of each sub-layer's output, and of what enters each stack
    attention_dropout: float = 0.0  # of the attention weights
    feed_forward_dropout: float = 0.0  # of what feed-forward has between its matrices
    activation: str = "gelu"  # of feed-forward; that of the convolutions is the GELU always
    init_std: float = 0.02  # of the normal distribution that fresh weights are drawn from
    pad_id: int = 50256  # of targets; in files of Whisper it ends a text, too, which cannot be trained so
    start_id: int = 50257  # what a target begins with
    end_id: int | None = 50256  # what it ends with; where to stop generating, and no more

    def __post_init__(self):
        make_plain(self)
        check_sizes(self, "vocab_size", "n_mels", "d_model", "n_layers", "n_decoder_layers", "n_heads")
        check_sizes(self, "n_decoder_heads", "d_ff", "d_decoder_ff", "max_source_len", "max_len")
        check_heads(self.d_model, self.n_heads)
        if self.d_model % self.n_decoder_heads:
            raise ValueError(
                f"d_model must be a multiple of n_decoder_heads, too, got d_model={self.d_model}, "
                f"n_decoder_heads={self.n_decoder_heads}"
            )
        check_even("d_model", self.d_model)
        if self.d_model < 4:
            raise ValueError(f"d_model must be 4 or more, for the sinusoids of the encoder; got {self.d_model}")
        check_dropouts(self, "dropout", "attention_dropout", "feed_forward_dropout")
        check_choice("activation", self.activation, ACTIVATIONS)
        if not is_number(self.init_std) or self.init_std < 0:
            raise ValueError(f"init_std is a standard deviation of 0 or more, got {self.init_std!r}")
        for name in ("pad_id", "start_id", *(("end_id",) if self.end_id is not None else ())):
            check_pad_id(getattr(self, name), "vocab_size", self.vocab_size, name)

    @property
    def max_frames(self) -> int:
        """The most frames of a spectrogram, of 10 ms each."""
        return 2 * self.max_source_len

    @property
    def block(self) -> BlockConfig:
        """Of which the encoder is built: normalised before, no bias of keys."""
        return BlockConfig(
            self.d_model,
            self.n_heads,
            self.d_ff,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            feed_forward_dropout=self.feed_forward_dropout,
            activation=self.activation,
            pre_norm=True,
            key_bias=False,
        )

    @property
    def decoder_block(self) -> BlockConfig:
        """Of which the decoder is built: the same with its own heads and features."""
        return BlockConfig(**{**vars(self.block), "n_heads": self.n_decoder_heads, "d_ff": self.d_decoder_ff})

    @classmethod
    def from_hugging_face(cls, settings: dict) -> "WhisperConfig":
        """Read the contents of a Whisper's config.json; a key that is absent means the default.

        Which tokens are never generated (`suppress_tokens`) is no matter of the model and is not read.

        Raises
        ------
        UnsupportedConfigError : not a Whisper, or a setting that ours does not compute.
        """
        known = known_fields(settings, "Whisper", _KEYS, _FIXED)
        with usable():
            if isinstance(known.get("end_id"), list):
                known["end_id"] = known["end_id"][0]
            elif "eos_token_id" in settings:
                known.setdefault("end_id", None)
            return cls(**known)

    def to_hugging_face(self, architecture: str = "WhisperForConditionalGeneration") -> dict:
        """The contents of a config.json that `transformers` opens as the class `architecture`."""
        return {
            "architectures": [architecture],
            **_FIXED,
            **{theirs: getattr(self, ours) for ours, theirs in _KEYS.items()},
            "bos_token_id": self.end_id,  # as Whisper's own files; nothing begins with it
            "begin_suppress_tokens": None,  # else `transformers` takes ids of Whisper's own vocabulary
        }


class WhisperOutput(NamedTuple):
    """Of `Whisper`; all but the logits only with return_layers=True. S positions are ceil(F / 2) of F frames."""

    logits: Any  # (B, T, V)
    encoder_hidden: tuple | None  # as in EncoderOutput
    encoder_weights: tuple | None  # n_layers times (B, H, S, S)
    decoder_hidden: tuple | None  # as in DecoderOutput
    self_weights: tuple | None  # n_decoder_layers times (B, H, T, T)
    cross_weights: tuple | None  # n_decoder_layers times (B, H, T, S); position s is of the time 20 s ms


class WhisperMemory(NamedTuple):
    """Of `Whisper.encode`: all that the decoder needs of the sound."""

    hidden: Any  # (B, S, d_model), the encoder's output


class WhisperState(NamedTuple):
    """What a `Whisper` keeps of the t target tokens it has read; `step` adds to it."""

    caches: tuple  # a LayerCache for each layer


def _stack(side: str, attentions: dict) -> dict:
    """The names of the encoder or the decoder: of each layer the attentions, then feed-forward."""
    theirs, ours = side + ".layers.{n}.", side + ".layers.{n}."
    table, last = {}, len(attentions) + 1
    for i, (their_name, our_name) in enumerate(attentions.items(), start=1):
        for part in ("q_proj", "v_proj", "out_proj"):
            table[f"{theirs}{their_name}.{part}.{{p}}"] = f"{ours}{our_name}.{part}.{{p}}"
        table[f"{theirs}{their_name}.k_proj.weight"] = f"{ours}{our_name}.k_proj.weight"
        table[f"{theirs}{their_name}_layer_norm.{{p}}"] = f"{ours}norm{i}.{{p}}"
    return table | {
        theirs + "fc1.{p}": ours + "feed_forward.linear1.{p}",
        theirs + "fc2.{p}": ours + "feed_forward.linear2.{p}",
        theirs + "final_layer_norm.{p}": f"{ours}norm{last}.{{p}}",
        side + ".layer_norm.{p}": side + ".norm.{p}",
    }


# Hugging Face's name -> ours, without the leading "model."; {n} is the layer's number. None = dropped on purpose: the
# copy of the tied table, and the sinusoids, which are no weights here.
_SINUSOIDS = "encoder.embed_positions.weight"
RENAMES = {
    "encoder.conv1.{p}": "conv1.{p}",
    "encoder.conv2.{p}": "conv2.{p}",
    _SINUSOIDS: None,
    **_stack("encoder", {"self_attn": "attention"}),
    "decoder.embed_tokens.weight": "token.weight",
    "decoder.embed_positions.weight": "position.weight",
    **_stack("decoder", {"self_attn": "self_attention", "encoder_attn": "cross_attention"}),
    "proj_out.weight": None,
}


class _Names(Renames):
    """The table, and the sinusoids of the encoder, which files hold: compared when read, computed when written."""

    def __init__(self, config: WhisperConfig):
        super().__init__(RENAMES, prefix="model.")
        self.config = config

    def ours(self, state, family="Whisper"):
        """As the table says; CheckpointError for positions of the encoder that are other than the sinusoids."""
        for name in (self.prefix + _SINUSOIDS, _SINUSOIDS):
            if name not in state:
                continue
            found = state[name]
            expected = sinusoidal_halves(len(found), self.config.d_model)  # of as many places as there are
            # half precision is rounded by 0.002, and float32 angles of 1500 radians by 0.0001
            if found.shape != expected.shape or not np.abs(found - expected).max() < 0.004:
                raise CheckpointError(
                    f"{name} {found.shape} holds other positions than the sinusoids {expected.shape} of a Whisper, "
                    "which are not learned"
                )
        return super().ours(state, family)

    def theirs(self, state, headed=False):
        """As the table says, and the sinusoids."""
        table = sinusoidal_halves(self.config.max_source_len, self.config.d_model).astype(np.float32)
        return super().theirs(state, headed) | {self.prefix + _SINUSOIDS: table}


def by_config(config: WhisperConfig) -> Mapping:
    """The names of weights, of which the sinusoids depend on the sizes."""
    return {"names": _Names(config)}


def check_config(config) -> WhisperConfig:
    """The configuration; TypeError unless it is a WhisperConfig."""
    if not isinstance(config, WhisperConfig):
        raise TypeError(f"a Whisper is built of a WhisperConfig, got {config!r}")
    return config


def check_sounds(config: WhisperConfig, shape, dtype, name: str = "features") -> None:
    """Check a batch of spectrograms by its shape and type; lengths that are not known yet pass.

    Raises
    ------
    TypeError : numbers that are no floating point.
    ValueError : another shape than (B, n_mels, F), no frame, more frames than max_frames.
    """
    shape = tuple(shape)
    if "float" not in str(dtype):
        raise TypeError(f"{name} must be numbers of floating point, as `log_mel` makes; got {dtype}")
    if len(shape) != 3 or shape[1] not in (None, config.n_mels):
        turned = len(shape) == 3 and shape[2] == config.n_mels
        more = "; frames stand last" if turned else "; one sound becomes a batch by [None]" if len(shape) == 2 else ""
        shown = "(" + ", ".join("?" if n is None else str(n) for n in shape) + ")"
        raise ValueError(f"{name} must have shape (B, {config.n_mels}, F), got {shown}{more}")
    if shape[2] is not None and not 1 <= shape[2] <= config.max_frames:
        raise ValueError(
            f"{name} must have 1 to {config.max_frames} frames, two for each of max_source_len="
            f"{config.max_source_len} positions, got {shape[2]}; cut the sound"
        )


def read_config(settings: dict, architecture: str = "Whisper") -> WhisperConfig:
    """The configuration that a config.json describes, whichever class it was saved from."""
    return WhisperConfig.from_hugging_face(settings)


WHISPER = Family(
    name="Whisper",
    config=WhisperConfig,
    read_config=read_config,
    write_config=WhisperConfig.to_hugging_face,
    find=find,
    ties={"proj_out.weight": "model.decoder.embed_tokens.weight"},
    tied_part="token",
    by_config=by_config,
)
