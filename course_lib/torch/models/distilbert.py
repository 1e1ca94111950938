"""DistilBERT (Sanh et al. 2019): BERT without segments and without a pooler.

What is not said here is as in `models/bert.py`; the encoder of a model with a head is its `bert` here, too.
"""

import torch
from torch import nn
from torch.nn import functional as F

from course_lib.models.distilbert import DISTILBERT, DistilBertConfig
from course_lib.models.position_tables import sinusoidal_table
from course_lib.torch.attention import attention
from course_lib.torch.models.bert import BertModel, initialise
from course_lib.torch.models.bert_heads import (
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)


class DistilBertModel(BertModel):
    """BERT's encoder without segments and pooler.

    Arguments and outputs as for `BertModel`, (B, T, d_model); `segments` are all 0 when they are given.
    """

    family = DISTILBERT
    architecture = "DistilBertModel"

    def __init__(self, config: DistilBertConfig, attention=attention, pooler: bool = False):
        if pooler:
            raise ValueError("a DistilBERT has no pooler")
        super().__init__(config, attention, pooler=False)
        if config.sinusoidal:
            with torch.no_grad():
                self.embeddings.position.weight.copy_(torch.tensor(sinusoidal_table(config.max_len, config.d_model)))


class DistilBertForMaskedLM(BertForMaskedLM):
    """DistilBERT with the head of BERT's first pretraining task; logits (B, T, V)."""

    family = DISTILBERT
    architecture = "DistilBertForMaskedLM"
    Base = DistilBertModel


class DistilBertForSequenceClassification(BertForSequenceClassification):
    """DistilBERT with a classifier of two layers, a ReLU between them, on the first token; logits (B, n_classes)."""

    family = DISTILBERT
    architecture = "DistilBertForSequenceClassification"
    Base = DistilBertModel

    def __init__(self, config: DistilBertConfig, attention=attention):
        super().__init__(config, attention)
        self.pre_classifier = nn.Linear(config.d_model, config.d_model)
        initialise(self.pre_classifier, config.init_std)

    def classify(self, x):
        """(B, d_model) -> (B, n_classes)."""
        return self.classifier(self.dropout(F.relu(self.pre_classifier(x))))


class DistilBertForTokenClassification(BertForTokenClassification):
    """DistilBERT with a linear classifier on each token; logits (B, T, n_classes)."""

    family = DISTILBERT
    architecture = "DistilBertForTokenClassification"
    Base = DistilBertModel


class DistilBertForQuestionAnswering(BertForQuestionAnswering):
    """DistilBERT that finds an answer in a text; start_logits and end_logits (B, T)."""

    family = DISTILBERT
    architecture = "DistilBertForQuestionAnswering"
    Base = DistilBertModel
