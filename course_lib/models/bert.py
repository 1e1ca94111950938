"""BERT: its sizes, what it returns, what `transformers` calls its weights, and the border to config.json."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from course_lib.checkpoints.folders import find_checkpoint as find
from course_lib.checkpoints.names import Renames
from course_lib.checkpoints.pretrained import Family
from course_lib.checks import check_choice, check_heads
from course_lib.models.blocks import ACTIVATIONS, BlockConfig
from course_lib.models.config_json import Border, check_keys, read, reader_of, write
from course_lib.models.fields import (
    check_class_names,
    check_dropouts,
    check_norm_eps,
    check_pad_id,
    check_sizes,
    check_switches,
    is_number,
    make_plain,
)

POOLINGS = ("first", "mean")
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
    "pooling": "classifier_pooling",
    "pre_norm": "pre_norm",
}

# Settings of a config.json that change the computation, and the only value that our BERT computes. A
# chunk_size_feed_forward is not among them: the same products in parts, it saves memory and changes no value.
_FIXED = {
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
        positive, a pad_id outside the vocabulary, an unknown activation or pooling, not one label for each class.
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
    problem_type: str | None = None  # what `transformers` trains a classifier for; only `train` reads it
    pooling: str = "first"  # what a classifier of texts reads: the pooled first token, or the "mean" of the real ones
    pre_norm: bool = False  # normalise before each sub-layer and once more at the end (Xiong et al. 2020)

    # what other members of the family have otherwise
    segment_table: ClassVar[bool] = True  # whether segments have vectors
    pooler: ClassVar[bool] = True  # whether a classifier reads the first token by way of a pooler
    border: ClassVar[Border] = Border("BERT", "bert", _KEYS, _FIXED)

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
        check_choice("pooling", self.pooling, POOLINGS)
        check_switches(self, "pre_norm")
        check_class_names(self)

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
            pre_norm=self.pre_norm,
        )

    @property
    def for_encoder(self) -> dict:
        """The arguments of the encoder, beside the attention function."""
        return {"n_layers": self.n_layers, "config": self.block}

    @property
    def longest(self) -> int:
        """How many tokens a text may have."""
        return self.max_len

    @property
    def d_embedding(self) -> int:
        """The features of the embeddings and of the head that predicts tokens."""
        return self.d_model

    @property
    def head_activation(self) -> str:
        """The activation in the head that predicts tokens."""
        return self.activation

    @property
    def head_dropout(self) -> float:
        """The dropout before the classifier."""
        return self.dropout if self.classifier_dropout is None else self.classifier_dropout

    @property
    def token_dropout(self) -> float:
        """The dropout before the classifier of tokens."""
        return self.head_dropout

    @property
    def answer_dropout(self) -> float:
        """The dropout before the layer that finds answers."""
        return 0.0

    @classmethod
    def from_hugging_face(cls, settings: dict) -> "BertConfig":
        """Read the contents of a config.json; a key that is absent or null means the default, as of pad_token_id 0.

        Raises
        ------
        UnsupportedConfigError : not a model of this kind, or a setting that ours does not compute.
        """
        return read(cls, settings)

    def to_hugging_face(self, architecture: str) -> dict:
        """The contents of a config.json that `transformers` opens as the class `architecture`.

        It has no BERT with `pre_norm`. By another model_type its Auto classes refuse the folder, and BertModel warns.
        """
        return write(self, architecture)


check_keys(BertConfig)


# Hugging Face's name -> ours, without the leading "bert."; {n} is the layer's number.
# None = dropped on purpose: buffers, copies of tied weights (`TIES` looks at them first).
RENAMES = {
    "embeddings.word_embeddings.weight": "embeddings.token.weight",
    "embeddings.position_embeddings.weight": "embeddings.position.weight",
    "embeddings.token_type_embeddings.weight": "embeddings.segment.weight",
    "embeddings.LayerNorm.{p}": "embeddings.norm.{p}",
    "encoder.layer.{n}.attention.self.query.{p}": "encoder.layers.{n}.attention.q_proj.{p}",
    "encoder.layer.{n}.attention.self.key.{p}": "encoder.layers.{n}.attention.k_proj.{p}",
    "encoder.layer.{n}.attention.self.value.{p}": "encoder.layers.{n}.attention.v_proj.{p}",
    "encoder.layer.{n}.attention.output.dense.{p}": "encoder.layers.{n}.attention.out_proj.{p}",
    "encoder.layer.{n}.attention.output.LayerNorm.{p}": "encoder.layers.{n}.norm1.{p}",
    "encoder.layer.{n}.intermediate.dense.{p}": "encoder.layers.{n}.feed_forward.linear1.{p}",
    "encoder.layer.{n}.output.dense.{p}": "encoder.layers.{n}.feed_forward.linear2.{p}",
    "encoder.layer.{n}.output.LayerNorm.{p}": "encoder.layers.{n}.norm2.{p}",
    "encoder.LayerNorm.{p}": "encoder.norm.{p}",
    "pooler.dense.{p}": "pooler.{p}",
    "cls.predictions.transform.dense.{p}": "head.transform.{p}",
    "cls.predictions.transform.LayerNorm.{p}": "head.norm.{p}",
    "cls.predictions.bias": "head.bias",
    "cls.seq_relationship.{p}": "next_sentence.{p}",
    "classifier.{p}": "classifier.{p}",
    "qa_outputs.{p}": "qa_outputs.{p}",
    "embeddings.position_ids": None,
    "cls.predictions.decoder.{p}": None,
}

# of each tied weight that a masked language model's file may hold twice, the second name and the first
TIES = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}


class BertOutput(NamedTuple):
    """Of `BertModel`."""

    last_hidden: Any  # (B, T, d_model)
    pooled: Any  # (B, d_model), or None without a pooler
    hidden: tuple | None  # as in EncoderOutput
    weights: tuple | None  # as in EncoderOutput


BERT = Family(
    name="BERT",
    config=BertConfig,
    read_config=reader_of(BertConfig),
    write_config=write,
    find=find,
    names=Renames(RENAMES, prefix="bert.", heads=("cls.", "classifier.", "qa_outputs.")),
    ties=TIES,
    tied_part="head",
    heads=("pooler", "head", "next_sentence", "classifier", "qa_outputs"),
    of_another_task={"pooler": "classifier"},
    encoder="BertModel",
    classes=(
        "BertModel",
        "BertForMaskedLM",
        "BertForPreTraining",
        "BertForSequenceClassification",
        "BertForTokenClassification",
        "BertForQuestionAnswering",
    ),
)
