"""Small translation models for the tests of training: the same fresh weights in PyTorch and TensorFlow."""

import importlib

import numpy as np
import torch
from torch import nn

import course_lib.torch
import course_lib.torch.training.translation
from course_lib.masks import padding_mask
from course_lib.models.bert_heads import MaskedLMOutput
from course_lib.models.blocks import BlockConfig
from course_lib.models.seq2seq import Seq2SeqConfig
from course_lib.models.transformer import TransformerConfig
from course_lib.text.padding import padded

VOCABULARY, D = 23, 12
START, END = 1, 2


class TorchSketch(nn.Module):
    """The mean source vector is added to the target's, and a causal encoder reads the sum: as little as trains."""

    pad_id = 0

    def __init__(self, dropout):
        super().__init__()
        self.source, self.target = nn.Embedding(VOCABULARY, D), nn.Embedding(VOCABULARY, D)
        self.encoder = course_lib.torch.Encoder(1, BlockConfig(D, 3, 20, dropout, dropout, pre_norm=True))
        self.output = nn.Linear(D, VOCABULARY)

    def forward(self, source_ids, target_ids):
        real = (source_ids != 0)[..., None]
        context = (self.source(source_ids) * real).sum(1, keepdim=True) / real.sum(1, keepdim=True)
        mask = padding_mask(target_ids) & course_lib.torch.causal_mask(target_ids.shape[1])
        return MaskedLMOutput(self.output(self.encoder(context + self.target(target_ids), mask)[0]), None, None)


def sketch(framework: str, dropout: float):
    if framework == "torch":
        return TorchSketch(dropout)
    from tests.support.keras_sketch import TensorFlowSketch

    return TensorFlowSketch(dropout)


def transformer(framework: str, dropout: float):
    config = TransformerConfig(
        VOCABULARY, VOCABULARY, d_model=D, n_layers=1, n_heads=3, d_ff=20, dropout=dropout, attention_dropout=dropout
    )
    return LIBRARIES[framework].Transformer(config)


def seq2seq(cell="gru", score="additive", order="bahdanau"):
    """A maker of recurrent translators of one kind."""

    def make(framework: str, dropout: float):
        config = Seq2SeqConfig(VOCABULARY, VOCABULARY, D, D, cell=cell, score=score, order=order, dropout=dropout)
        return LIBRARIES[framework].Seq2Seq(config)

    return make


class Libraries(dict):
    """The library of a framework by its name, imported when asked for: a process for PyTorch alone starts sooner."""

    def __missing__(self, name):
        importlib.import_module(f"course_lib.{name}.training.translation")
        return self.setdefault(name, importlib.import_module(f"course_lib.{name}"))


LIBRARIES = Libraries()
MODELS = {"sketch": sketch, "transformer": transformer, "seq2seq": seq2seq()}
MODELS |= {
    "plain seq2seq of vanilla cells": seq2seq("rnn", None),
    "plain seq2seq of LSTM cells": seq2seq("lstm", None),
    "Luong's seq2seq with dot scores": seq2seq("gru", "dot", "luong"),
    "Luong's seq2seq of LSTM cells with general scores": seq2seq("lstm", "general", "luong"),
}


def build(framework: str, model: str = "sketch", dropout: float = 0.0):
    """A model with the weights that the seed 7 gives in PyTorch."""
    torch.manual_seed(7)
    state = course_lib.torch.get_state(MODELS[model]("torch", dropout))
    if framework == "torch":
        built = MODELS[model]("torch", dropout)
        course_lib.torch.set_state(built, state)
    else:
        built = MODELS[model]("tensorflow", dropout)
        if model == "sketch":  # Keras keeps the name `output` for itself
            state = {name.replace("output.", "output_layer."): value for name, value in state.items()}
        LIBRARIES[framework].set_state(built, state)
    return built


def pairs(n: int = 60, seed: int = 3):
    """Sentences of 2 to 7 tokens and their translation: every token one higher, in the same order."""
    rng = np.random.default_rng(seed)
    sources = [rng.integers(3, VOCABULARY, size=rng.integers(2, 8)) for _ in range(n)]
    targets = [np.concatenate([[START], 3 + (s - 2) % (VOCABULARY - 3), [END]]) for s in sources]
    return sources, targets


def batches(n: int = 60, size: int = 10, seed: int = 3):
    """epoch -> its batches (source ids, target ids, rows), in an order of the epoch's own."""
    sources, targets = pairs(n, seed)

    def of_epoch(epoch: int):
        order = np.random.default_rng([seed, epoch]).permutation(n)
        groups = [order[i : i + size] for i in range(0, n, size)]
        return [(padded([sources[i] for i in g]), padded([targets[i] for i in g]), g) for g in groups]

    return of_epoch
