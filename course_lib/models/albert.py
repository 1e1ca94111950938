"""ALBERT (Lan et al. 2019): BERT with far fewer parameters, because layers share them and embeddings are small.

What changes here: embeddings of d_embedding features that a matrix takes to d_model (section 3.1, factorized embedding
parameterization), and layers that are the same one again and again (cross-layer parameter sharing).
"""

from dataclasses import dataclass
from typing import ClassVar

from course_lib.checkpoints.folders import find_checkpoint
from course_lib.checkpoints.names import Renames
from course_lib.checkpoints.pretrained import Family
from course_lib.models.bert import RENAMES as BERT_RENAMES
from course_lib.models.bert import BertConfig
from course_lib.models.config_json import Border, check_keys, reader_of, write
from course_lib.models.fields import check_dropouts, check_sizes


@dataclass(frozen=True)
class AlbertConfig(BertConfig):
    """The sizes of an ALBERT, as `BertConfig`; the defaults are those of the released base model, version 2.

    Raises
    ------
    ValueError : as `BertConfig`; more groups than layers.
    """

    vocab_size: int = 30000
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation: str = "gelu_new"
    classifier_dropout: float = 0.1
    d_embedding: int = 128  # features of the embeddings, E in the paper
    n_groups: int = 1  # how many layers have weights of their own; the n_layers are divided among them in order

    border: ClassVar[Border] = Border(
        name="ALBERT",
        model_type="albert",
        keys={
            **BertConfig.border.keys,
            "classifier_dropout": "classifier_dropout_prob",
            "d_embedding": "embedding_size",
            "n_groups": "num_hidden_groups",
        },
        fixed={**BertConfig.border.fixed, "inner_group_num": 1},
        absent={"d_model": 4096, "n_heads": 64, "d_ff": 16384},
    )

    def __post_init__(self):
        super().__post_init__()
        check_sizes(self, "d_embedding", "n_groups")
        check_dropouts(self, "classifier_dropout")
        if self.n_groups > self.n_layers:
            raise ValueError(f"n_groups={self.n_groups} is more than there are layers, n_layers={self.n_layers}")

    @property
    def for_encoder(self) -> dict:
        """The arguments of the encoder, beside the attention function."""
        return {**super().for_encoder, "n_groups": self.n_groups}


check_keys(AlbertConfig)


_LAYER = "encoder.albert_layer_groups.{n}.albert_layers.0."  # inner_group_num is 1

RENAMES = {
    **{theirs: ours for theirs, ours in BERT_RENAMES.items() if theirs.startswith("embeddings.")},
    "encoder.embedding_hidden_mapping_in.{p}": "embeddings.project.{p}",
    f"{_LAYER}attention.query.{{p}}": "encoder.layers.{n}.attention.q_proj.{p}",
    f"{_LAYER}attention.key.{{p}}": "encoder.layers.{n}.attention.k_proj.{p}",
    f"{_LAYER}attention.value.{{p}}": "encoder.layers.{n}.attention.v_proj.{p}",
    f"{_LAYER}attention.dense.{{p}}": "encoder.layers.{n}.attention.out_proj.{p}",
    f"{_LAYER}attention.LayerNorm.{{p}}": "encoder.layers.{n}.norm1.{p}",
    f"{_LAYER}ffn.{{p}}": "encoder.layers.{n}.feed_forward.linear1.{p}",
    f"{_LAYER}ffn_output.{{p}}": "encoder.layers.{n}.feed_forward.linear2.{p}",
    f"{_LAYER}full_layer_layer_norm.{{p}}": "encoder.layers.{n}.norm2.{p}",
    "encoder.LayerNorm.{p}": "encoder.norm.{p}",
    "pooler.{p}": "pooler.{p}",
    "predictions.dense.{p}": "head.transform.{p}",
    "predictions.LayerNorm.{p}": "head.norm.{p}",
    "predictions.bias": "head.bias",
    "predictions.decoder.{p}": None,  # a copy of a tied weight
    "classifier.{p}": "classifier.{p}",
    "qa_outputs.{p}": "qa_outputs.{p}",
    "sop_classifier.classifier.{p}": None,  # of the pretraining's second task, the order of two sentences
}

ALBERT = Family(
    name="ALBERT",
    config=AlbertConfig,
    read_config=reader_of(AlbertConfig),
    write_config=write,
    find=find_checkpoint,
    names=Renames(
        RENAMES,
        prefix="albert.",
        heads=("predictions.", "classifier.", "qa_outputs.", "sop_classifier."),
        ours="bert.",
    ),
    ties={
        "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
        "predictions.decoder.bias": "predictions.bias",
    },
    tied_part="head",
    heads=("pooler", "head", "classifier", "qa_outputs"),
    of_another_task={"pooler": "classifier"},
    encoder="AlbertModel",
    classes=(
        "AlbertModel",
        "AlbertForMaskedLM",
        "AlbertForSequenceClassification",
        "AlbertForTokenClassification",
        "AlbertForQuestionAnswering",
    ),
)
