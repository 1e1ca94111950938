"""T5, an encoder and a decoder of texts: its sizes, the names of its weights, and the border to config.json."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from course_lib.checkpoints.folders import find_checkpoint as find
from course_lib.checkpoints.names import Renames
from course_lib.checkpoints.pretrained import Family
from course_lib.checks import check_choice
from course_lib.models.blocks import ACTIVATIONS, BlockConfig
from course_lib.models.config_json import known_fields, usable
from course_lib.models.fields import (
    check_dropouts,
    check_norm_eps,
    check_pad_id,
    check_sizes,
    check_switches,
    is_number,
    make_plain,
)
from course_lib.models.position_tables import check_buckets

# Our field -> the key in a T5's config.json.
_KEYS = {
    "vocab_size": "vocab_size",
    "d_model": "d_model",
    "n_layers": "num_layers",
    "n_decoder_layers": "num_decoder_layers",
    "n_heads": "num_heads",
    "d_head": "d_kv",
    "d_ff": "d_ff",
    "n_buckets": "relative_attention_num_buckets",
    "max_distance": "relative_attention_max_distance",
    "dropout": "dropout_rate",
    "norm_eps": "layer_norm_epsilon",
    "tie_output": "tie_word_embeddings",
    "init_factor": "initializer_factor",
    "pad_id": "pad_token_id",
    "start_id": "decoder_start_token_id",
    "end_id": "eos_token_id",
}

# Settings of a config.json that change the computation, and the only value that our T5 computes.
_FIXED = {"model_type": "t5", "is_encoder_decoder": True}


@dataclass(frozen=True)
class T5Config:
    """The sizes of a T5; the defaults are those of T5-Small (Raffel et al. 2020, section 3.7).

    Raises
    ------
    ValueError : a size below one, fewer than four buckets, a max_distance within the distances that have a bucket of
        their own, a dropout outside [0, 1), a norm_eps that is not positive, a pad_id, start_id or end_id outside the
        vocabulary, padding that ends a text, an unknown activation, a gate of the exact "gelu".
    """

    vocab_size: int = 32128
    d_model: int = 512
    n_layers: int = 6  # of the encoder
    n_decoder_layers: int = 6
    n_heads: int = 8
    d_head: int = 64  # of each head; n_heads * d_head need not be d_model
    d_ff: int = 2048
    n_buckets: int = 32  # of relative positions
    max_distance: int = 128  # in tokens, from which on all distances share a bucket
    dropout: float = 0.1  # of sub-layers, attention weights, feed-forward features, and each stack's input and output
    norm_eps: float = 1e-6
    activation: str = "relu"  # "gelu_new" with a gate in T5 1.1
    gated: bool = False
    tie_output: bool = True  # the token table, divided by sqrt(d_model), is the output matrix too; not in T5 1.1
    init_factor: float = 1.0  # what the standard deviations of fresh weights are multiplied by
    pad_id: int = 0
    start_id: int = 0  # what a target begins with; T5's is its padding
    end_id: int | None = 1  # the token that ends a source and a target; where to stop generating, and no more

    def __post_init__(self):
        make_plain(self)
        check_sizes(self, "vocab_size", "d_model", "n_layers", "n_decoder_layers", "n_heads", "d_head", "d_ff")
        check_buckets(self.n_buckets, self.max_distance)
        check_buckets(self.n_buckets, self.max_distance, bidirectional=False)
        check_dropouts(self, "dropout")
        check_norm_eps(self.norm_eps)
        check_switches(self, "gated", "tie_output")
        check_choice("activation", self.activation, ACTIVATIONS)
        if self.gated and self.activation == "gelu":
            raise ValueError('a gate goes by "gelu_new", which T5 and its files call gated-gelu; got "gelu"')
        if not is_number(self.init_factor) or self.init_factor < 0:
            raise ValueError(f"init_factor is a factor of 0 or more, got {self.init_factor!r}")
        for name in ("pad_id", "start_id", *(("end_id",) if self.end_id is not None else ())):
            check_pad_id(getattr(self, name), "vocab_size", self.vocab_size, name)
        if self.pad_id == self.end_id:
            raise ValueError(f"the token {self.pad_id} ends a text, so it cannot be padding, too, which is hidden")

    @property
    def block(self) -> BlockConfig:
        """Of which encoder and decoder are built: scores as they are, nothing that is added, normalised before."""
        return BlockConfig(
            self.d_model,
            self.n_heads,
            self.d_ff,
            dropout=self.dropout,
            attention_dropout=self.dropout,
            feed_forward_dropout=self.dropout,
            activation=self.activation,
            gated=self.gated,
            pre_norm=True,
            norm="rms",
            norm_eps=self.norm_eps,
            d_head=self.d_head,
            scale=1.0,
            linear_bias=False,
        )

    def std_of(self, name: str) -> float | None:
        """The standard deviation of the fresh weights of this name; None for those of a norm, which are ones.

        Queries are narrower by sqrt(d_head), which makes up for the missing scale of the scores; the tokens' vectors
        are as large as what a norm returns. An output matrix of its own gives logits of the size of a tied one's.
        """
        part = name.split(".")[-2]
        d_inner = self.n_heads * self.d_head
        before = {"token": 1, "q_proj": self.d_model * self.d_head, "linear2": self.d_ff}
        before["out_proj"] = d_inner if "attention" in name else self.d_model
        return None if "norm" in part else self.init_factor * before.get(part, self.d_model) ** -0.5

    @classmethod
    def from_hugging_face(cls, settings: dict) -> "T5Config":
        """Read the contents of a T5's config.json; a key that is absent means the default.

        Raises
        ------
        UnsupportedConfigError : not a T5, or a setting that ours does not compute.
        """
        known = known_fields(settings, "T5", _KEYS, _FIXED)
        with usable():
            known.setdefault("n_decoder_layers", known.get("n_layers", cls.n_layers))
            known.setdefault("start_id", known.get("pad_id", cls.pad_id))
            if isinstance(known.get("end_id"), list):
                known["end_id"] = known["end_id"][0]
            elif "eos_token_id" in settings:
                known.setdefault("end_id", None)
            if settings.get("scale_decoder_outputs") is False:  # what transformers 5 writes of an untied output
                known["tie_output"] = False
            name = settings.get("feed_forward_proj")
            *gate, activation = ("relu" if name is None else name).split("-")
            if gate not in ([], ["gated"]):
                raise ValueError(f"feed_forward_proj={name!r} is no activation")
            known |= {"gated": bool(gate), "activation": "gelu_new" if gate and activation == "gelu" else activation}
            return cls(**known)

    def to_hugging_face(self, architecture: str = "T5ForConditionalGeneration") -> dict:
        """The contents of a config.json that `transformers` opens as the class `architecture`."""
        name = "gelu" if self.gated and self.activation == "gelu_new" else self.activation
        return {
            "architectures": [architecture],
            "model_type": "t5",
            "is_encoder_decoder": True,
            **{theirs: getattr(self, ours) for ours, theirs in _KEYS.items()},
            "feed_forward_proj": f"gated-{name}" if self.gated else name,
        }


class T5Output(NamedTuple):
    """Of `T5`; all but the logits only with return_layers=True."""

    logits: Any  # (B, T, V)
    encoder_hidden: tuple | None  # as in EncoderOutput
    encoder_weights: tuple | None  # n_layers times (B, H, S, S)
    decoder_hidden: tuple | None  # as in DecoderOutput
    self_weights: tuple | None  # n_decoder_layers times (B, H, T, T)
    cross_weights: tuple | None  # n_decoder_layers times (B, H, T, S)


class T5Memory(NamedTuple):
    """Of `T5.encode`: all that the decoder needs of the source."""

    hidden: Any  # (B, S, d_model), the encoder's output
    mask: Any  # boolean (B, 1, 1, S), True = a real token


class T5State(NamedTuple):
    """What a `T5` keeps of the t target tokens it has read; `step` adds to it."""

    memory_mask: Any  # boolean (B, 1, 1, S), True = a real token of the source
    caches: tuple  # a LayerCache for each layer


def _attention(theirs: str, ours: str) -> dict:
    letters = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"}
    return {f"{theirs}.{letter}.weight": f"{ours}.{name}.weight" for letter, name in letters.items()}


def _stack(side: str, attentions: dict) -> dict:
    """The names of the encoder or the decoder, whose sub-layers are counted."""
    theirs, ours = side + ".block.{n}.layer.", side + ".layers.{n}."
    table = {}
    for i, (their_name, our_name) in enumerate(attentions.items()):
        table |= _attention(f"{theirs}{i}.{their_name}", ours + our_name)
        table[f"{theirs}{i}.layer_norm.weight"] = f"{ours}norm{i + 1}.weight"
    last = len(attentions)
    return table | {
        f"{theirs}{last}.layer_norm.weight": f"{ours}norm{last + 1}.weight",
        f"{theirs}{last}.DenseReluDense.wo.weight": f"{ours}feed_forward.linear2.weight",
        f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight": f"{side}_position.weight",
        f"{side}.final_layer_norm.weight": f"{side}.norm.weight",
        f"{side}.embed_tokens.weight": None,  # a copy of the token table
    }


# Hugging Face's name -> ours; {n} is the layer's number. None = dropped on purpose: copies of the token table, and a
# bias of cross-attention that old files hold and nothing uses.
RENAMES = {
    "shared.weight": "token.weight",
    **_stack("encoder", {"SelfAttention": "attention"}),
    **_stack("decoder", {"SelfAttention": "self_attention", "EncDecAttention": "cross_attention"}),
    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": None,
}
_COPIES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")


def by_config(config: T5Config) -> Mapping:
    """The names of weights, and which hold the same: the gate and the output matrix of its own have a say in it."""
    table, copies = dict(RENAMES), _COPIES
    for side, last in (("encoder", 1), ("decoder", 2)):
        theirs, ours = f"{side}.block.{{n}}.layer.{last}.DenseReluDense.", f"{side}.layers.{{n}}.feed_forward."
        first = {"wi_0": "linear1", "wi_1": "gate"} if config.gated else {"wi": "linear1"}
        table |= {f"{theirs}{name}.weight": f"{ours}{part}.weight" for name, part in first.items()}
    table["lm_head.weight"] = None if config.tie_output else "out_proj.weight"
    copies += ("lm_head.weight",) if config.tie_output else ()
    return {"names": Renames(table), "ties": dict.fromkeys(copies, "shared.weight")}


def check_config(config) -> T5Config:
    """The configuration; TypeError unless it is a T5Config."""
    if not isinstance(config, T5Config):
        raise TypeError(f"a T5 is built of a T5Config, got {config!r}")
    return config


def read_config(settings: dict, architecture: str = "T5") -> T5Config:
    """The configuration that a config.json describes, whichever class it was saved from."""
    return T5Config.from_hugging_face(settings)


T5_FAMILY = Family(
    name="T5",
    config=T5Config,
    read_config=read_config,
    write_config=T5Config.to_hugging_face,
    find=find,
    by_config=by_config,
    tied_part="token",
    heads=("out_proj",),
)
