"""For each objective a tiny model with the same weights in both frameworks, and batches that it can learn from."""

import importlib
from dataclasses import replace
from types import SimpleNamespace

import keras
import numpy as np
import torch
from torch import nn

import course_lib.tensorflow
import course_lib.tensorflow.training.objectives
import course_lib.torch
import course_lib.torch.training.objectives
from course_lib.batches.contrastive import ContrastiveBatch
from course_lib.batches.masked import MaskedBatch, PretrainingBatch
from course_lib.batches.spans import SpanBatch
from course_lib.batches.texts import IGNORED, Batch, TextBatch, TokenBatch
from course_lib.models.bert import BertConfig
from course_lib.tensorflow.layers import dense, embedding
from tests.support import translators

# One layer: tracing a step in TensorFlow takes as long as the model has variables, and all else takes no time.
SIZES = {"vocab_size": 30, "d_model": 12, "n_layers": 1, "n_heads": 3, "d_ff": 20, "max_len": 16, "n_classes": 3}
# weights drawn wide: with BERT's 0.02 so small a model has gradients as small as AdamW's epsilon
CONFIG = BertConfig(**SIZES, dropout=0.0, attention_dropout=0.0, init_std=0.3, pad_id=1)
DROPOUT = replace(CONFIG, dropout=0.3, attention_dropout=0.3)
DEEP = replace(CONFIG, n_layers=2)  # for what tells layers apart
LIBRARIES = {"torch": course_lib.torch, "tensorflow": course_lib.tensorflow}


class TorchBigram(nn.Module):
    """The next token from the last one, with a table: the smallest causal model."""

    pad_id = 1

    def __init__(self, config):
        super().__init__()
        self.embeddings = nn.Embedding(config.vocab_size, config.d_model)
        self.head = nn.Linear(config.d_model, config.vocab_size)

    def forward(self, ids):
        return SimpleNamespace(logits=self.head(self.embeddings(ids)))


class TensorFlowBigram(keras.Model):
    """The same in Keras."""

    pad_id = 1

    def __init__(self, config):
        super().__init__()
        self.embeddings = embedding(config.vocab_size, config.d_model, 1.0)
        self.head = dense(config.d_model, config.vocab_size)

    def call(self, ids, training=False):
        return SimpleNamespace(logits=self.head(self.embeddings(ids)))


def _class(name):
    return lambda library: getattr(LIBRARIES[library], name)


def _own(torch_class, tensorflow_class):
    return lambda library: {"torch": torch_class, "tensorflow": tensorflow_class}[library]


MODELS = {
    "next_token": _own(TorchBigram, TensorFlowBigram),
    "classification": _class("BertForSequenceClassification"),
    "token_labels": _class("BertForTokenClassification"),
    "spans": _class("BertForQuestionAnswering"),
    "masked_lm": _class("BertForMaskedLM"),
    "pretraining": _class("BertForPreTraining"),
    "contrastive": lambda library: lambda config: LIBRARIES[library].BertModel(config, pooler=False),
    "distillation": _class("BertForSequenceClassification"),
}
TASKS = ["translation", *MODELS]


def build(library: str, task: str, config: BertConfig = CONFIG, seed: int = 7):
    """A model with the weights that the seed gives in PyTorch."""
    if task == "translation":
        return translators.build(library, "transformer")
    torch.manual_seed(seed)
    state = course_lib.torch.get_state(MODELS[task]("torch")(config))
    model = MODELS[task](library)(config)
    LIBRARIES[library].set_state(model, state)
    return model


def objective(library: str, task: str):
    """The task's objective; a teacher has the same weights in both frameworks."""
    objectives = module(library, "objectives")
    if task == "distillation":
        return objectives.distillation(build(library, task, seed=8), temperature=2.0, alpha=0.7)
    return getattr(objectives, task)()


def texts(rng, n: int, least: int = 4, most: int = 12):
    """n sequences as ids (n, T), padded with 1."""
    lengths = rng.integers(least, most + 1, size=n)
    ids = rng.integers(2, SIZES["vocab_size"], size=(n, lengths.max()))
    ids[np.arange(ids.shape[1]) >= lengths[:, None]] = CONFIG.pad_id
    return ids


def batch(task: str, rng, n: int = 8):
    """A batch of n examples."""
    ids = texts(rng, n)
    real = ids != CONFIG.pad_id
    segments = (real & (np.arange(ids.shape[1]) >= 3)).astype(np.int64)
    chosen = real & (rng.random(ids.shape) < 0.3)
    chosen[:, 1] = True
    labels = np.where(chosen, ids, IGNORED)
    blanked = np.where(chosen, 2, ids)
    if task == "next_token":
        return Batch(ids, np.arange(n))
    if task in ("classification", "distillation"):
        return TextBatch(ids, segments, ids[:, 0] % 3)
    if task == "token_labels":
        return TokenBatch(ids, np.where(chosen, ids % 3, IGNORED))
    if task == "spans":
        starts = rng.integers(0, 3, size=n)
        return SpanBatch(ids, segments, starts, starts + ids[:, 0] % 2)
    if task == "masked_lm":
        return MaskedBatch(blanked, labels)
    if task == "pretraining":
        return PretrainingBatch(blanked, segments, labels, ids[:, 2] % 2)
    return ContrastiveBatch(ids, np.where(real, (ids + 1) % 27 + 2, CONFIG.pad_id)[:, :-1])


def batches(task: str, n_batches: int = 5, n: int = 8, seed: int = 3):
    """epoch -> its batches, other ones in every epoch."""
    if task == "translation":
        return translators.batches(n_batches * n, n, seed)
    return lambda epoch: [batch(task, np.random.default_rng([seed, epoch, i]), n) for i in range(n_batches)]


def module(library: str, name: str):
    """A module of a framework's training."""
    return importlib.import_module(f"course_lib.{library}.training.{name}")


def train(library: str, task: str, model=None, given=None, **arguments):
    """A training by the loop: of a model of the task, on its batches."""
    settings = {"rate": 1e-2, "progress": False, **arguments}
    model = build(library, task) if model is None else model
    return module(library, "loop").train(model, given or batches(task), objective(library, task), **settings)
