"""DistilBERT (Sanh et al. 2019): BERT with half of its layers, without segments and pooler, taught by a larger BERT.

What changes here: no table of segments, no pooler, and a linear layer with a ReLU in its place before the classifier.
"""

from dataclasses import dataclass
from typing import ClassVar

from course_lib.checkpoints.folders import find_checkpoint
from course_lib.checkpoints.names import Renames
from course_lib.checkpoints.pretrained import Family
from course_lib.checks import check_even
from course_lib.models.bert import BertConfig
from course_lib.models.config_json import Border, check_keys, reader_of, write
from course_lib.models.fields import check_dropouts, check_switches

_WITHOUT_KEY = ("n_segments", "norm_eps")
_KEYS = {ours: theirs for ours, theirs in BertConfig.border.keys.items() if ours not in _WITHOUT_KEY} | {
    "d_model": "dim",
    "n_layers": "n_layers",
    "n_heads": "n_heads",
    "d_ff": "hidden_dim",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "activation": "activation",
    "classifier_dropout": "seq_classif_dropout",
    "answer_dropout": "qa_dropout",
    "sinusoidal": "sinusoidal_pos_embds",
}


@dataclass(frozen=True)
class DistilBertConfig(BertConfig):
    """The sizes of a DistilBERT, as `BertConfig`; the defaults are those of the released base model, uncased.

    Raises
    ------
    ValueError : as `BertConfig`; segments or another norm_eps, which DistilBERT does not have; an odd d_model with
        sinusoidal positions.
    """

    n_layers: int = 6
    n_segments: int = 1  # and no table of them
    classifier_dropout: float = 0.2
    answer_dropout: float = 0.1  # before the layer that finds answers
    sinusoidal: bool = False  # fresh vectors of positions are sines and cosines; trained like any other, and saved

    segment_table: ClassVar[bool] = False
    pooler: ClassVar[bool] = False
    border: ClassVar[Border] = Border(
        name="DistilBERT",
        model_type="distilbert",
        keys=_KEYS,
        fixed={"tie_word_embeddings": True, "pruned_heads": {}},
        without_key=_WITHOUT_KEY,
    )

    def __post_init__(self):
        super().__post_init__()
        check_dropouts(self, "classifier_dropout", "answer_dropout")
        check_switches(self, "sinusoidal")
        for name, value in (("n_segments", 1), ("norm_eps", 1e-12)):
            if getattr(self, name) != value:
                raise ValueError(f"{name} of a DistilBERT is {value!r}, got {getattr(self, name)!r}")
        if self.sinusoidal:
            check_even("d_model of sinusoidal positions", self.d_model)

    @property
    def token_dropout(self) -> float:
        """The dropout before the classifier of tokens: that of the layers."""
        return self.dropout


check_keys(DistilBertConfig)


RENAMES = {
    "embeddings.word_embeddings.weight": "embeddings.token.weight",
    "embeddings.position_embeddings.weight": "embeddings.position.weight",
    "embeddings.LayerNorm.{p}": "embeddings.norm.{p}",
    "transformer.layer.{n}.attention.q_lin.{p}": "encoder.layers.{n}.attention.q_proj.{p}",
    "transformer.layer.{n}.attention.k_lin.{p}": "encoder.layers.{n}.attention.k_proj.{p}",
    "transformer.layer.{n}.attention.v_lin.{p}": "encoder.layers.{n}.attention.v_proj.{p}",
    "transformer.layer.{n}.attention.out_lin.{p}": "encoder.layers.{n}.attention.out_proj.{p}",
    "transformer.layer.{n}.sa_layer_norm.{p}": "encoder.layers.{n}.norm1.{p}",
    "transformer.layer.{n}.ffn.lin1.{p}": "encoder.layers.{n}.feed_forward.linear1.{p}",
    "transformer.layer.{n}.ffn.lin2.{p}": "encoder.layers.{n}.feed_forward.linear2.{p}",
    "transformer.layer.{n}.output_layer_norm.{p}": "encoder.layers.{n}.norm2.{p}",
    "transformer.LayerNorm.{p}": "encoder.norm.{p}",
    "vocab_transform.{p}": "head.transform.{p}",
    "vocab_layer_norm.{p}": "head.norm.{p}",
    "vocab_projector.bias": "head.bias",
    "vocab_projector.weight": None,  # a copy of a tied weight
    "pre_classifier.{p}": "pre_classifier.{p}",
    "classifier.{p}": "classifier.{p}",
    "qa_outputs.{p}": "qa_outputs.{p}",
    "embeddings.position_ids": None,
}

HEADS = ("vocab_transform.", "vocab_layer_norm.", "vocab_projector.", "pre_classifier.", "classifier.", "qa_outputs.")

DISTILBERT = Family(
    name="DistilBERT",
    config=DistilBertConfig,
    read_config=reader_of(DistilBertConfig),
    write_config=write,
    find=find_checkpoint,
    names=Renames(RENAMES, prefix="distilbert.", heads=HEADS, ours="bert."),
    ties={"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"},
    tied_part="head",
    heads=("head", "pre_classifier", "classifier", "qa_outputs"),
    of_another_task={"pre_classifier": "classifier"},
    encoder="DistilBertModel",
    classes=(
        "DistilBertModel",
        "DistilBertForMaskedLM",
        "DistilBertForSequenceClassification",
        "DistilBertForTokenClassification",
        "DistilBertForQuestionAnswering",
    ),
)
