"""The sizes of the models, as frozen dataclasses, and the border to Hugging Face's config.json."""

from dataclasses import dataclass, fields

from course_lib.checks import check_choice, check_dropout, check_even, check_heads

ACTIVATIONS = ("gelu", "relu")
POSITIONS = ("sinusoidal", "learned", "rotary", None)

# Our field -> the key in a Hugging Face BERT's config.json.
_KEYS = {
    "vocab_size": "vocab_size",
    "d_model": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "d_ff": "intermediate_size",
    "max_len": "max_position_embeddings",
    "n_segments": "type_vocab_size",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "norm_eps": "layer_norm_eps",
    "activation": "hidden_act",
    "pad_id": "pad_token_id",
    "init_std": "initializer_range",
}

# Settings of a config.json that change the computation, and the only value that our BERT computes.
_FIXED = {
    "model_type": "bert",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
    "classifier_dropout": None,
    "pruned_heads": {},
    "chunk_size_feed_forward": 0,
}


class UnsupportedConfigError(ValueError):
    """A configuration that asks for something the course's models do not compute."""


@dataclass(frozen=True)
class BertConfig:
    """The sizes of a BERT; the defaults are those of BERT-base, uncased (Devlin et al. 2018, section 3).

    Raises
    ------
    ValueError : n_heads does not divide d_model, a size below one, a dropout outside [0, 1), an unknown
        activation.
    """

    vocab_size: int = 30522
    d_model: int = 768
    n_layers: int = 12
    n_heads: int = 12
    d_ff: int = 3072
    max_len: int = 512
    n_segments: int = 2
    dropout: float = 0.1
    attention_dropout: float = 0.1
    norm_eps: float = 1e-12
    activation: str = "gelu"  # the exact GELU, with the error function
    pad_id: int = 0
    init_std: float = 0.02  # of the normal distribution that fresh weights are drawn from
    n_classes: int = 2

    def __post_init__(self):
        for name in ("vocab_size", "d_model", "n_layers", "n_heads", "d_ff", "max_len", "n_segments", "n_classes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be an integer of 1 or more, got {value!r}")
        check_heads(self.d_model, self.n_heads)
        check_dropout(self.dropout)
        check_dropout(self.attention_dropout)
        check_choice("activation", self.activation, ACTIVATIONS)

    @classmethod
    def from_hugging_face(cls, settings: dict) -> "BertConfig":
        """Read the contents of a config.json.

        Raises
        ------
        UnsupportedConfigError : not a BERT, or a setting that our BERT does not compute.
        """
        if "model_type" not in settings:
            raise UnsupportedConfigError('this config.json names no "model_type"; a BERT\'s says "bert"')
        for key, value in _FIXED.items():
            if settings.get(key, value) != value:
                raise UnsupportedConfigError(
                    f"this config.json has {key}={settings[key]!r}; the course's BERT computes {value!r} only"
                )
        known = {ours: settings[theirs] for ours, theirs in _KEYS.items() if settings.get(theirs) is not None}
        labels = settings.get("id2label")
        known["n_classes"] = len(labels) if labels else settings.get("num_labels", 2)
        try:
            return cls(**known)
        except (ValueError, TypeError) as error:  # TypeError: a text where a number should stand
            raise UnsupportedConfigError(f"this config.json cannot be used: {error}") from error

    def to_hugging_face(self, architecture: str) -> dict:
        """The contents of a config.json that `transformers` opens as the class `architecture`."""
        settings = {theirs: getattr(self, ours) for ours, theirs in _KEYS.items()}
        names = {i: f"LABEL_{i}" for i in range(self.n_classes)}
        return {
            "architectures": [architecture],
            "model_type": "bert",
            "position_embedding_type": "absolute",
            **settings,
            "id2label": {str(i): name for i, name in names.items()},
            "label2id": {name: i for i, name in names.items()},
        }


assert set(_KEYS) | {"n_classes"} == {f.name for f in fields(BertConfig)}  # a new field needs its key


@dataclass(frozen=True)
class TransformerConfig:
    """The sizes of a translator; the defaults are the base model of Vaswani et al. 2017, table 3.

    Raises
    ------
    ValueError : n_heads does not divide d_model, a size below one, a dropout outside [0, 1), an unknown activation or
        kind of positions, embeddings shared between vocabularies of different sizes.
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

    def __post_init__(self):
        for name in ("source_vocab", "target_vocab", "d_model", "n_layers", "n_heads", "d_ff", "max_len"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be an integer of 1 or more, got {value!r}")
        check_heads(self.d_model, self.n_heads)
        check_dropout(self.dropout)
        check_dropout(self.attention_dropout)
        check_choice("activation", self.activation, ACTIVATIONS)
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
