"""BERT's heads for other tasks: both tasks of its pretraining, a label for each token, answers in a text."""

from course_lib.models.bert import BERT, BertConfig
from course_lib.models.bert_heads import AnswerOutput, PretrainingOutput, TokenClassifierOutput
from course_lib.models.hugging_face import check_config
from course_lib.numpy.attention import attention
from course_lib.numpy.layers import Linear, Module, chosen
from course_lib.numpy.models.bert import BertModel, MaskedLMHead, initialise
from course_lib.numpy.pretrained import Checkpoint


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
