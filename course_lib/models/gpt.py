"""GPT, a decoder alone: its sizes, what it returns, the names of its weights, and the border to config.json."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from course_lib.checkpoints.folders import find_checkpoint as find
from course_lib.checkpoints.names import Joined, Renames
from course_lib.checkpoints.pretrained import Family
from course_lib.checks import check_choice, check_heads
from course_lib.models.blocks import ACTIVATIONS, BlockConfig
from course_lib.models.config_json import known_fields, usable
from course_lib.models.fields import check_dropouts, check_norm_eps, check_pad_id, check_sizes, is_number, make_plain

# Our field -> the key in a GPT-2's config.json.
_KEYS = {
    "vocab_size": "vocab_size",
    "d_model": "n_embd",
    "n_layers": "n_layer",
    "n_heads": "n_head",
    "d_ff": "n_inner",
    "max_len": "n_positions",
    "dropout": "resid_pdrop",
    "attention_dropout": "attn_pdrop",
    "embedding_dropout": "embd_pdrop",
    "norm_eps": "layer_norm_epsilon",
    "activation": "activation_function",
    "init_std": "initializer_range",
    "pad_id": "pad_token_id",
    "end_id": "eos_token_id",
}

# Settings of a config.json that change the computation, and the only value that our GPT computes. With
# reorder_and_upcast_attn the same numbers come about in another order.
_FIXED = {
    "model_type": "gpt2",
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}


@dataclass(frozen=True)
class GPTConfig:
    """The sizes of a GPT; the defaults are those of the smallest GPT-2 (Radford et al. 2019, table 2).

    Raises
    ------
    ValueError : n_heads does not divide d_model, a size below one, a dropout outside [0, 1), a norm_eps that is not
        positive, a pad_id or an end_id outside the vocabulary, or one id for both, an unknown activation.
    """

    vocab_size: int = 50257
    d_model: int = 768
    n_layers: int = 12
    n_heads: int = 12
    d_ff: int = 3072
    max_len: int = 1024
    dropout: float = 0.1  # of each sub-layer's output
    attention_dropout: float = 0.1  # of the attention weights
    embedding_dropout: float = 0.1  # of the tokens with their positions
    norm_eps: float = 1e-5
    activation: str = "gelu_new"  # the GELU by way of a tanh
    init_std: float = 0.02  # of the normal distribution that fresh weights are drawn from
    pad_id: int | None = None  # a token that is padding and nothing else; GPT-2 has none
    end_id: int | None = None  # the token that ends a text, GPT-2's 50256; where to stop generating, and no more

    def __post_init__(self):
        make_plain(self)
        check_sizes(self, "vocab_size", "d_model", "n_layers", "n_heads", "d_ff", "max_len")
        check_heads(self.d_model, self.n_heads)
        check_dropouts(self, "dropout", "attention_dropout", "embedding_dropout")
        check_norm_eps(self.norm_eps)
        check_choice("activation", self.activation, ACTIVATIONS)
        if not is_number(self.init_std) or self.init_std < 0:
            raise ValueError(f"init_std is a standard deviation of 0 or more, got {self.init_std!r}")
        for name in ("pad_id", "end_id"):
            if getattr(self, name) is not None:
                check_pad_id(getattr(self, name), "vocab_size", self.vocab_size, name)
        if self.pad_id is not None and self.pad_id == self.end_id:
            raise ValueError(f"the token {self.pad_id} ends a text, so it cannot be padding, too, which is hidden")

    @property
    def block(self) -> BlockConfig:
        """Of which the decoder is built: it normalises before each sub-layer, and once more at the end."""
        return BlockConfig(
            self.d_model,
            self.n_heads,
            self.d_ff,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            activation=self.activation,
            norm_eps=self.norm_eps,
            pre_norm=True,
        )

    @property
    def residual_scale(self) -> float:
        """What the fresh matrices before a residual are multiplied by: 1 / sqrt(of residuals) (section 2.3)."""
        return (2 * self.n_layers) ** -0.5

    @classmethod
    def from_hugging_face(cls, settings: dict) -> "GPTConfig":
        """Read the contents of a GPT-2's config.json; a key that is absent means the default.

        An end_id outside the vocabulary is none, as `transformers` writes one of 50256 for vocabularies of any size; a
        padding that is the end of a text, too, is none.

        Raises
        ------
        UnsupportedConfigError : not a GPT-2, or a setting that ours does not compute.
        """
        known = known_fields(settings, "GPT", _KEYS, _FIXED)
        with usable():
            known.setdefault("d_ff", 4 * known.get("d_model", cls.d_model))
            ends = settings.get("eos_token_id", 50256)
            ends = ends if isinstance(ends, list) else [ends]
            known["end_id"] = next((i for i in ends if i is not None and 0 <= i < known.get("vocab_size", 50257)), None)
            if known.get("pad_id") in ends:
                known["pad_id"] = None
            return cls(**known)

    def to_hugging_face(self, architecture: str = "GPT2LMHeadModel") -> dict:
        """The contents of a config.json that `transformers` opens as the class `architecture`."""
        return {
            "architectures": [architecture],
            "model_type": "gpt2",
            **{theirs: getattr(self, ours) for ours, theirs in _KEYS.items()},
            "bos_token_id": self.end_id,  # GPT-2 has one token for the beginning and the end
        }


class GPTOutput(NamedTuple):
    """Of `GPT`."""

    logits: Any  # (B, T, V), of the token after each
    hidden: tuple | None  # n_layers + 1 times (B, T, d_model), the input first; only with return_layers=True
    weights: tuple | None  # n_layers times (B, H, T, T); only with return_layers=True


class GPTState(NamedTuple):
    """What a `GPT` keeps of the t tokens it has read; `step` adds to it."""

    caches: tuple  # a LayerCache for each layer
    real: Any  # boolean (B, t), True = no padding; None without a padding id


# Hugging Face's name -> ours, without the leading "transformer."; {n} is the layer's number. GPT-2 keeps queries, keys
# and values in one matrix, and all matrices as (d_in, d_out). None = dropped on purpose: the causal mask, which old
# files hold, the copy of the tied table, the heads of other tasks.
_OURS = "decoder.layers.{n}."
_ATTENTION = _OURS + "self_attention."
RENAMES = {
    "wte.weight": "token.weight",
    "wpe.weight": "position.weight",
    "h.{n}.ln_1.{p}": _OURS + "norm1.{p}",
    "h.{n}.attn.c_attn.{p}": Joined(
        _ATTENTION + "q_proj.{p}", _ATTENTION + "k_proj.{p}", _ATTENTION + "v_proj.{p}", transposed=True
    ),
    "h.{n}.attn.c_proj.{p}": Joined(_ATTENTION + "out_proj.{p}", transposed=True),
    "h.{n}.ln_2.{p}": _OURS + "norm3.{p}",
    "h.{n}.mlp.c_fc.{p}": Joined(_OURS + "feed_forward.linear1.{p}", transposed=True),
    "h.{n}.mlp.c_proj.{p}": Joined(_OURS + "feed_forward.linear2.{p}", transposed=True),
    "ln_f.{p}": "decoder.norm.{p}",
    "h.{n}.attn.bias": None,
    "h.{n}.attn.masked_bias": None,
    "lm_head.weight": None,
    "multiple_choice_head.summary.{p}": None,
    "score.weight": None,
    "classifier.{p}": None,
    "qa_outputs.{p}": None,
}


def check_config(config) -> GPTConfig:
    """The configuration; TypeError unless it is a GPTConfig."""
    if not isinstance(config, GPTConfig):
        raise TypeError(f"a GPT is built of a GPTConfig, got {config!r}")
    return config


def read_config(settings: dict, architecture: str = "GPT2LMHeadModel") -> GPTConfig:
    """`GPTConfig.from_hugging_face`, for any class of a GPT-2's."""
    return GPTConfig.from_hugging_face(settings)


GPT2 = Family(
    name="GPT",
    config=GPTConfig,
    read_config=read_config,
    write_config=GPTConfig.to_hugging_face,
    find=find,
    names=Renames(RENAMES, prefix="transformer.", ours=""),
    ties={"lm_head.weight": "transformer.wte.weight"},
    tied_part="token",
)
