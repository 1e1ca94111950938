"""ALBERT (Lan et al. 2019): BERT with small embeddings and layers that share their weights.

What is not said here is as in `models/bert.py`; the encoder of a model with a head is its `bert` here, too.
"""

from course_lib.models.albert import ALBERT, AlbertConfig
from course_lib.models.blocks import BlockConfig
from course_lib.numpy.attention import attention
from course_lib.numpy.encoder import Encoder
from course_lib.numpy.layers import Linear
from course_lib.numpy.models.bert import BertEmbeddings, BertModel
from course_lib.numpy.models.bert_heads import (
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)


class AlbertEmbeddings(BertEmbeddings):
    """BERT's of d_embedding features, and a linear layer to d_model (section 3.1)."""

    def __init__(self, config: AlbertConfig):
        super().__init__(config)
        self.project = Linear(config.d_embedding, config.d_model)

    def __call__(self, ids, segments=None):
        """ids and segments (B, T) -> (B, T, d_model)."""
        return self.project(super().__call__(ids, segments))


class AlbertEncoder(Encoder):
    """n_layers layers in n_groups groups; those of a group are one layer, run again and again (section 3.1)."""

    def __init__(self, n_layers: int, config: BlockConfig, attention=attention, n_groups: int = 1):
        super().__init__(n_groups, config, attention)
        self.order = tuple(int(i / (n_layers / n_groups)) for i in range(n_layers))  # as `transformers` rounds

    def sequence(self):
        """The layers in the order in which they run."""
        return [self.layers[i] for i in self.order]


class AlbertModel(BertModel):
    """The encoder with its pooler; arguments and outputs as for `BertModel`, (B, T, d_model)."""

    family = ALBERT
    architecture = "AlbertModel"
    Embeddings, Encoder = AlbertEmbeddings, AlbertEncoder


class AlbertForMaskedLM(BertForMaskedLM):
    """ALBERT with the head of BERT's first pretraining task, in the embeddings' size; logits (B, T, V)."""

    family = ALBERT
    architecture = "AlbertForMaskedLM"
    Base = AlbertModel


class AlbertForSequenceClassification(BertForSequenceClassification):
    """ALBERT with a linear classifier on the pooled first token; logits (B, n_classes)."""

    family = ALBERT
    architecture = "AlbertForSequenceClassification"
    Base = AlbertModel


class AlbertForTokenClassification(BertForTokenClassification):
    """ALBERT with a linear classifier on each token; logits (B, T, n_classes)."""

    family = ALBERT
    architecture = "AlbertForTokenClassification"
    Base = AlbertModel


class AlbertForQuestionAnswering(BertForQuestionAnswering):
    """ALBERT that finds an answer in a text; start_logits and end_logits (B, T)."""

    family = ALBERT
    architecture = "AlbertForQuestionAnswering"
    Base = AlbertModel
