"""BERT's heads: both tasks of its pretraining, classes of texts and of tokens, answers in a text."""

import numpy as np

from course_lib.models.bert import BERT, BertConfig
from course_lib.models.bert_heads import (
    AnswerOutput,
    ClassifierOutput,
    MaskedLMOutput,
    PretrainingOutput,
    TokenClassifierOutput,
)
from course_lib.models.config_json import check_config
from course_lib.numpy.attention import attention
from course_lib.numpy.checkpoint import Checkpoint
from course_lib.numpy.layers import ACTIVATIONS, LayerNorm, Linear, Module, chosen, mean_pool
from course_lib.numpy.masks import real_tokens
from course_lib.numpy.models.bert import BertModel, initialise


class MaskedLMHead(Module):
    """A linear layer, activation and normalisation, then the token embeddings once more as the output matrix."""

    def __init__(self, config: BertConfig):
        self.transform = Linear(config.d_model, config.d_embedding)
        self.activation = ACTIVATIONS[config.head_activation]
        self.norm = LayerNorm(config.d_embedding, config.norm_eps)
        self.bias = np.zeros(config.vocab_size)
        initialise(self, config.init_std)

    def __call__(self, x, table):
        """x (..., d_model) and the token table (V, d_model) -> logits (..., V)."""
        return self.norm(self.activation(self.transform(x))) @ table.T + self.bias


class BertForMaskedLM(Checkpoint, Module):
    """BERT with the head of its first pretraining task: which token stood here? (section 3.1, task 1)."""

    family = BERT
    architecture = "BertForMaskedLM"
    Base = BertModel

    def __init__(self, config: BertConfig, attention=attention):
        self.config = check_config(config, self.family)
        self.bert = self.Base(config, attention, pooler=False)
        self.head = MaskedLMHead(config)

    def __call__(self, ids, mask=None, segments=None, return_layers=False, at=None):
        """Arguments and errors as for `BertModel` -> MaskedLMOutput: logits (B, T, V), hidden, weights.

        With `at`, boolean (B, T), the logits are of the N tokens where it is True, (N, V), in the order of the rows:
        the product with the vocabulary takes long, and training needs it for the blanks alone.
        """
        last_hidden, _, hidden, weights = self.bert(ids, mask=mask, segments=segments, return_layers=return_layers)
        return MaskedLMOutput(self.head(chosen(last_hidden, at), self.bert.embeddings.token.weight), hidden, weights)


class BertForPreTraining(Checkpoint, Module):
    """BERT with the heads of both its pretraining tasks: masked tokens and the next sentence (section 3.1).

    The order of `next_logits` is that of the released BERT: first that the second text follows, then that it does not.
    """

    family = BERT
    architecture = "BertForPreTraining"
    Base = BertModel

    def __init__(self, config: BertConfig, attention=attention):
        self.config = check_config(config, self.family)
        self.bert = self.Base(config, attention)
        self.head = MaskedLMHead(config)
        self.next_sentence = Linear(config.d_model, 2)
        initialise(self.next_sentence, config.init_std)

    def __call__(self, ids, mask=None, segments=None, return_layers=False, at=None):
        """Arguments and errors as for `BertModel`, `at` as for `BertForMaskedLM`.

        Returns
        -------
        PretrainingOutput : masked_logits (B, T, V) or (N, V), next_logits (B, 2), hidden, weights.
        """
        last_hidden, pooled, hidden, weights = self.bert(ids, mask=mask, segments=segments, return_layers=return_layers)
        masked_logits = self.head(chosen(last_hidden, at), self.bert.embeddings.token.weight)
        return PretrainingOutput(masked_logits, self.next_sentence(pooled), hidden, weights)


class BertForSequenceClassification(Checkpoint, Module):
    """BERT with a linear classifier on the pooled first token (section 4.1), or on the mean of the real tokens.

    `config.pooling` says on which; with "mean" there is no pooler. The mask says which tokens are real: those that any
    query may attend to. Without a mask all are.
    """

    family = BERT
    architecture = "BertForSequenceClassification"
    Base = BertModel

    def __init__(self, config: BertConfig, attention=attention):
        self.config = check_config(config, self.family)
        self.bert = self.Base(config, attention, pooler=config.pooler and config.pooling == "first")
        self.classifier = self.make_classifier(config)
        initialise(self.classifier, config.init_std)

    def make_classifier(self, config: BertConfig):
        """What takes the vectors of texts (B, d_model) to logits (B, n_classes)."""
        return Linear(config.d_model, config.n_classes)

    def classify(self, x):
        """Vectors of texts (B, d_model) -> logits (B, n_classes)."""
        return self.classifier(x)

    def __call__(self, ids, mask=None, segments=None, return_layers=False):
        """Arguments and errors as for `BertModel` -> ClassifierOutput: logits (B, n_classes), hidden, weights."""
        last_hidden, pooled, hidden, weights = self.bert(ids, mask=mask, segments=segments, return_layers=return_layers)
        if self.config.pooling == "mean":
            pooled = mean_pool(last_hidden, real_tokens(mask, last_hidden.shape[:2]))
        elif pooled is None:
            pooled = last_hidden[:, 0]
        return ClassifierOutput(self.classify(pooled), hidden, weights)


class BertForTokenClassification(Checkpoint, Module):
    """BERT with a linear classifier on each token, as for named entities (section 5.3)."""

    family = BERT
    architecture = "BertForTokenClassification"
    Base = BertModel

    def __init__(self, config: BertConfig, attention=attention):
        self.config = check_config(config, self.family)
        self.bert = self.Base(config, attention, pooler=False)
        self.classifier = Linear(config.d_model, config.n_classes)
        initialise(self.classifier, config.init_std)

    def __call__(self, ids, mask=None, segments=None, return_layers=False):
        """Arguments and errors as for `BertModel`.

        Returns
        -------
        TokenClassifierOutput : logits (B, T, n_classes), hidden, weights.
        """
        last_hidden, _, hidden, weights = self.bert(ids, mask=mask, segments=segments, return_layers=return_layers)
        return TokenClassifierOutput(self.classifier(last_hidden), hidden, weights)


class BertForQuestionAnswering(Checkpoint, Module):
    """BERT that finds an answer in a text: its start and its end, each a product with one vector (section 4.2)."""

    family = BERT
    architecture = "BertForQuestionAnswering"
    Base = BertModel

    def __init__(self, config: BertConfig, attention=attention):
        self.config = check_config(config, self.family)
        self.bert = self.Base(config, attention, pooler=False)
        self.qa_outputs = Linear(config.d_model, 2)
        initialise(self.qa_outputs, config.init_std)

    def __call__(self, ids, mask=None, segments=None, return_layers=False):
        """Arguments and errors as for `BertModel`.

        Returns
        -------
        AnswerOutput : start_logits (B, T), end_logits (B, T), hidden, weights.
        """
        last_hidden, _, hidden, weights = self.bert(ids, mask=mask, segments=segments, return_layers=return_layers)
        logits = self.qa_outputs(last_hidden)  # (B, T, 2)
        return AnswerOutput(logits[..., 0], logits[..., 1], hidden, weights)
