"""The sizes of the models, as frozen dataclasses, and the border to Hugging Face's config.json."""

from dataclasses import dataclass, fields

from course_lib.checks import check_choice, check_even, check_heads
from course_lib.errors import UnsupportedConfigError
from course_lib.models.blocks import ACTIVATIONS, BlockConfig
from course_lib.models.fields import (
    check_dropouts,
    check_norm_eps,
    check_pad_id,
    check_sizes,
    check_switches,
    is_number,
    make_plain,
)

POSITIONS = ("sinusoidal", "learned", "rotary", None)
PROBLEMS = (None, "single_label_classification", "multi_label_classification", "regression")

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
    "classifier_dropout": "classifier_dropout",
    "problem_type": "problem_type",
}

# Settings of a config.json that change the computation, and the only value that our BERT computes. A
# chunk_size_feed_forward is not among them: the same products in parts, it saves memory and changes no value.
_FIXED = {
    "model_type": "bert",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
    "pruned_heads": {},
}


@dataclass(frozen=True)
class BertConfig:
    """The sizes of a BERT; the defaults are those of BERT-base, uncased (Devlin et al. 2018, section 3).

    Raises
    ------
    ValueError : n_heads does not divide d_model, a size below one, a dropout outside [0, 1), a norm_eps that is not
        positive, a pad_id outside the vocabulary, an unknown activation, not one label for each class.
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
    labels: tuple[str, ...] | None = None  # the names of the classes, as many as n_classes
    classifier_dropout: float | None = None  # before the classifier; None takes `dropout`
    problem_type: str | None = None  # what `transformers` trains a classifier for; kept, and nothing here reads it

    def __post_init__(self):
        make_plain(self)
        check_sizes(self, "vocab_size", "d_model", "n_layers", "n_heads", "d_ff", "max_len", "n_segments", "n_classes")
        check_heads(self.d_model, self.n_heads)
        check_dropouts(self, "dropout", "attention_dropout")
        if self.classifier_dropout is not None:
            check_dropouts(self, "classifier_dropout")
        check_norm_eps(self.norm_eps)
        if not is_number(self.init_std) or self.init_std < 0:
            raise ValueError(f"init_std is a standard deviation of 0 or more, got {self.init_std!r}")
        check_pad_id(self.pad_id, "vocab_size", self.vocab_size)
        check_choice("activation", self.activation, ACTIVATIONS)
        check_choice("problem_type", self.problem_type, PROBLEMS)
        if self.labels is not None:
            if not isinstance(self.labels, (tuple, list)) or not all(isinstance(label, str) for label in self.labels):
                raise ValueError(f"labels must be the names of the classes, texts; got {self.labels!r}")
            object.__setattr__(self, "labels", tuple(self.labels))  # a list would make the configuration unhashable
            if len(self.labels) != self.n_classes:
                raise ValueError(
                    f"there are {len(self.labels)} labels for n_classes={self.n_classes}; give each class its name"
                )

    @property
    def block(self) -> BlockConfig:
        """Of which the encoder is built."""
        return BlockConfig(
            self.d_model,
            self.n_heads,
            self.d_ff,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            activation=self.activation,
            norm_eps=self.norm_eps,
        )

    @property
    def head_dropout(self) -> float:
        """The dropout before the classifier."""
        return self.dropout if self.classifier_dropout is None else self.classifier_dropout

    @classmethod
    def from_hugging_face(cls, settings: dict) -> "BertConfig":
        """Read the contents of a config.json.

        Raises
        ------
        UnsupportedConfigError : not a BERT, or a setting that our BERT does not compute.
        """
        if settings.get("model_type") is None and "source_vocab" in settings:
            raise UnsupportedConfigError("this config.json is no BERT's but a translator's: load_translator opens it")
        if settings.get("model_type") is None:
            raise UnsupportedConfigError('this config.json names no "model_type"; a BERT\'s says "bert"')
        for key, value in _FIXED.items():
            if settings.get(key) not in (None, value):
                raise UnsupportedConfigError(
                    f"this config.json has {key}={settings[key]!r}; the course's BERT computes {value!r} only"
                )
        known = {ours: settings[theirs] for ours, theirs in _KEYS.items() if settings.get(theirs) is not None}
        try:
            labels, n_labels = settings.get("id2label"), settings.get("num_labels")
            if labels and n_labels is not None and len(labels) < n_labels:
                raise ValueError(f"id2label names {len(labels)} classes, but num_labels is {n_labels}")
            known["n_classes"] = len(labels) if labels else 2 if n_labels is None else n_labels
            known["labels"] = _labels(labels) if labels else None
            return cls(**known)
        except (ValueError, TypeError, AttributeError) as error:  # the last two: another kind of value
            raise UnsupportedConfigError(f"this config.json cannot be used: {error}") from error

    def to_hugging_face(self, architecture: str) -> dict:
        """The contents of a config.json that `transformers` opens as the class `architecture`."""
        settings = {theirs: getattr(self, ours) for ours, theirs in _KEYS.items()}
        for key in ("classifier_dropout", "problem_type"):  # seldom set, and null is what they are when absent
            if settings[key] is None:
                del settings[key]
        names = dict(enumerate(self.labels or _nameless(self.n_classes)))
        return {
            "architectures": [architecture],
            "model_type": "bert",
            "position_embedding_type": "absolute",
            **settings,
            "id2label": {str(i): name for i, name in names.items()},
            "label2id": {name: i for i, name in names.items()},
        }


assert set(_KEYS) | {"n_classes", "labels"} == {f.name for f in fields(BertConfig)}  # a new field needs its key


@dataclass(frozen=True)
class TransformerConfig:
    """The sizes of a translator; the defaults are the base model of Vaswani et al. 2017, table 3.

    Raises
    ------
    ValueError : n_heads does not divide d_model, a size below one, a dropout outside [0, 1), a norm_eps that is not
        positive, a pad_id outside a vocabulary, an unknown activation or kind of positions, embeddings shared between
        vocabularies of different sizes.
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
        make_plain(self)
        check_sizes(self, "source_vocab", "target_vocab", "d_model", "n_layers", "n_heads", "d_ff", "max_len")
        check_heads(self.d_model, self.n_heads)
        check_dropouts(self, "dropout", "attention_dropout")
        check_norm_eps(self.norm_eps)
        check_pad_id(self.pad_id, "source_vocab", self.source_vocab)
        check_pad_id(self.pad_id, "target_vocab", self.target_vocab)
        check_switches(self, "pre_norm", "share_embeddings", "tie_output")
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
            norm_eps=self.norm_eps,
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


def _labels(id2label: dict) -> tuple[str, ...] | None:
    """The names of the classes in order; None for those that `transformers` makes up, or where ids are left out."""
    names = {int(i): str(name) for i, name in id2label.items()}
    labels = tuple(names.get(i) for i in range(len(names)))
    return None if None in labels or labels == _nameless(len(labels)) else labels


def _nameless(n_classes: int) -> tuple[str, ...]:
    return tuple(f"LABEL_{i}" for i in range(n_classes))


PRESETS = {
    "base": {},
    "big": {"d_model": 1024, "n_heads": 16, "d_ff": 4096, "dropout": 0.3},
    "tutorial": {"n_layers": 4, "d_model": 128, "n_heads": 8, "d_ff": 512},
    "small": {"n_layers": 3, "d_model": 256, "n_heads": 4, "d_ff": 1024},
    "tiny": {"n_layers": 2, "d_model": 64, "n_heads": 4, "d_ff": 128},
}
