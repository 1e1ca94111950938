"""BERT's heads for other tasks: both tasks of its pretraining, a label for each token, answers in a text."""

import keras

from course_lib.models.bert import BERT, BertConfig
from course_lib.models.bert_heads import AnswerOutput, PretrainingOutput, TokenClassifierOutput
from course_lib.models.hugging_face import check_config
from course_lib.tensorflow.attention import attention
from course_lib.tensorflow.fitting import Fittable
from course_lib.tensorflow.layers import ExplicitMask, chosen, dense, table_of
from course_lib.tensorflow.models.bert import BertModel, MaskedLMHead
from course_lib.tensorflow.pretrained import Checkpoint


class BertForPreTraining(Checkpoint, Fittable, ExplicitMask, keras.Model):
    """BERT with the heads of both its pretraining tasks: masked tokens and the next sentence (section 3.1).

    The order of `next_logits` is that of the released BERT: first that the second text follows, then that it does not.

    Keras's own loop takes a loss for each, `compile(loss={"masked_logits": ..., "next_logits": ...})`, and labels by
    the same names.
    """

    family = BERT
    architecture = "BertForPreTraining"
    Base = BertModel

    def __init__(self, config: BertConfig, attention=attention):
        super().__init__()
        self.config = check_config(config, self.family)
        self.bert = self.Base(config, attention)
        self.head = MaskedLMHead(config)
        self.next_sentence = dense(config.d_model, 2, config.init_std)

    def call(self, ids, mask=None, segments=None, return_layers=False, at=None, training=False):
        """Arguments and errors as for `BertModel`, `at` as for `BertForMaskedLM`.

        Returns
        -------
        PretrainingOutput : masked_logits (B, T, V) or (N, V), next_logits (B, 2), hidden, weights.
        """
        last_hidden, pooled, hidden, weights = self.bert(ids, mask=mask, segments=segments, return_layers=return_layers)
        masked_logits = self.head(chosen(last_hidden, at), table_of(self.bert.embeddings.token))
        return PretrainingOutput(masked_logits, self.next_sentence(pooled), hidden, weights)


class BertForTokenClassification(Checkpoint, Fittable, ExplicitMask, keras.Model):
    """BERT with a linear classifier on each token, as for named entities (section 5.3)."""

    family = BERT
    architecture = "BertForTokenClassification"
    Base = BertModel

    def __init__(self, config: BertConfig, attention=attention):
        super().__init__()
        self.config = check_config(config, self.family)
        self.bert = self.Base(config, attention, pooler=False)
        self.dropout = keras.layers.Dropout(config.token_dropout)
        self.classifier = dense(config.d_model, config.n_classes, config.init_std)

    def call(self, ids, mask=None, segments=None, return_layers=False, training=False):
        """Arguments and errors as for `BertModel`.

        Returns
        -------
        TokenClassifierOutput : logits (B, T, n_classes), hidden, weights.
        """
        last_hidden, _, hidden, weights = self.bert(ids, mask=mask, segments=segments, return_layers=return_layers)
        return TokenClassifierOutput(self.classifier(self.dropout(last_hidden)), hidden, weights)


class BertForQuestionAnswering(Checkpoint, Fittable, ExplicitMask, keras.Model):
    """BERT that finds an answer in a text: its start and its end, each a product with one vector (section 4.2)."""

    family = BERT
    architecture = "BertForQuestionAnswering"
    Base = BertModel

    def __init__(self, config: BertConfig, attention=attention):
        super().__init__()
        self.config = check_config(config, self.family)
        self.bert = self.Base(config, attention, pooler=False)
        self.dropout = keras.layers.Dropout(config.answer_dropout)  # BERT has none
        self.qa_outputs = dense(config.d_model, 2, config.init_std)

    def call(self, ids, mask=None, segments=None, return_layers=False, training=False):
        """Arguments and errors as for `BertModel`.

        Returns
        -------
        AnswerOutput : start_logits (B, T), end_logits (B, T), hidden, weights.
        """
        last_hidden, _, hidden, weights = self.bert(ids, mask=mask, segments=segments, return_layers=return_layers)
        logits = self.qa_outputs(self.dropout(last_hidden))  # (B, T, 2)
        return AnswerOutput(logits[..., 0], logits[..., 1], hidden, weights)
