"""RoBERTa (Liu et al. 2019): BERT with positions of real tokens alone and a classifier of two layers.

What is not said here is as in `models/bert.py`; the encoder of a model with a head is its `bert` here, too.
"""

import keras
import tensorflow as tf

from course_lib.checks import check_length
from course_lib.models.roberta import ROBERTA, RobertaConfig
from course_lib.tensorflow.layers import dense
from course_lib.tensorflow.models.bert import BertEmbeddings, BertModel
from course_lib.tensorflow.models.bert_heads import (
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from course_lib.tensorflow.serialization import Portable


class RobertaEmbeddings(BertEmbeddings):
    """BERT's, but real tokens have the positions pad_id + 1, pad_id + 2, ..., and padding that of pad_id.

    So padding on the left moves no token to another position.
    """

    def add_positions(self, x, ids):
        """x (B, T, d_model) of the tokens ids (B, T) -> x + their positions' vectors; ValueError beyond max_len."""
        pad_id = self.config.pad_id
        check_length(ids.shape[1], self.config.longest)
        real = tf.cast(ids != pad_id, tf.int32)  # (B, T)
        vectors = tf.gather(self.position.weight, tf.cumsum(real, axis=1) * real + pad_id)
        return x + tf.cast(vectors, x.dtype)


class RobertaModel(BertModel):
    """BERT's encoder on other positions; arguments and outputs as for `BertModel`, (B, T, d_model)."""

    family = ROBERTA
    architecture = "RobertaModel"
    Embeddings = RobertaEmbeddings


class RobertaForMaskedLM(BertForMaskedLM):
    """RoBERTa with the head of its pretraining, dynamically masked (section 4.1); logits (B, T, V)."""

    family = ROBERTA
    architecture = "RobertaForMaskedLM"
    Base = RobertaModel


class RobertaHead(Portable, keras.layers.Layer):
    """A linear layer and tanh, then the classes: a pooler of the classifier's own."""

    def __init__(self, config: RobertaConfig):
        super().__init__()
        self.dense = dense(config.d_model, config.d_model, config.init_std)
        self.dropout = keras.layers.Dropout(config.head_dropout)
        self.out_proj = dense(config.d_model, config.n_classes, config.init_std)

    def call(self, x):
        """(B, d_model) -> (B, n_classes)."""
        return self.out_proj(self.dropout(tf.tanh(self.dense(x))))


class RobertaForSequenceClassification(BertForSequenceClassification):
    """RoBERTa with a classifier of two layers on the first token; logits (B, n_classes)."""

    family = ROBERTA
    architecture = "RobertaForSequenceClassification"
    Base = RobertaModel

    def make_classifier(self, config: RobertaConfig):
        """What takes the vectors of texts (B, d_model) to logits (B, n_classes), after a first dropout."""
        return RobertaHead(config)


class RobertaForTokenClassification(BertForTokenClassification):
    """RoBERTa with a linear classifier on each token; logits (B, T, n_classes)."""

    family = ROBERTA
    architecture = "RobertaForTokenClassification"
    Base = RobertaModel


class RobertaForQuestionAnswering(BertForQuestionAnswering):
    """RoBERTa that finds an answer in a text; start_logits and end_logits (B, T)."""

    family = ROBERTA
    architecture = "RobertaForQuestionAnswering"
    Base = RobertaModel
