"""Padding with another id than 0: with two tokens renamed, in the data and in the weights, nothing else changes."""

import importlib

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.batches.pairs import PairBatches
from course_lib.models.bert import BertConfig
from course_lib.models.seq2seq import Seq2SeqConfig
from course_lib.models.transformer import TransformerConfig
from tests.support import classifiers, translators

PAD = 5
FRAMEWORKS = ["torch", "tensorflow"]
VOCABULARY = translators.VOCABULARY


def renamed(ids):
    """The token 0 is called PAD, and the token PAD is called 0."""
    return np.where(ids == 0, PAD, np.where(ids == PAD, 0, ids))


def with_renamed_rows(state, vocabulary):
    order = renamed(np.arange(vocabulary))
    return {name: value[order] if value.shape[0] == vocabulary else value for name, value in state.items()}


def classifier(framework, pad_id):
    run = classifiers.build(framework, BertConfig(**{**vars(classifiers.CONFIG), "pad_id": pad_id}))
    if pad_id:
        state = with_renamed_rows(run.get_state(run.model), classifiers.CONFIG.vocab_size)
        classifiers.FRAMEWORKS[framework].set_state(run.model, state)
    return run


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_classifier_predicts_embeds_and_trains_alike(framework, examples):
    sequences, labels = examples
    found = []
    for name, pad_id in (("torch", 0), (framework, PAD)):
        run, texts = classifier(name, pad_id), [renamed(ids) if pad_id else ids for ids in sequences]
        logits = run.training.predict(run.model, texts)
        vectors = run.training.embed(run.model.bert, texts)
        found.append((logits, vectors, run.training.train(run.model, texts, labels, batch_size=16, progress=False)))
    for ours, expected in zip(found[1], found[0], strict=True):
        assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)


def translator(framework, kind, pad_id):
    sizes = (VOCABULARY, VOCABULARY)
    library = translators.LIBRARIES[framework]
    if kind == "transformer":
        blocks = {"d_model": 12, "n_layers": 1, "n_heads": 3, "d_ff": 20, "dropout": 0.0}
        return library.Transformer(TransformerConfig(*sizes, **blocks, pad_id=pad_id))
    return library.Seq2Seq(Seq2SeqConfig(*sizes, 12, 12, score="additive", pad_id=pad_id))


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("kind", ["transformer", "seq2seq"])
def test_a_translator_trains_and_is_evaluated_alike(framework, kind):
    state = translators.LIBRARIES["torch"].get_state(translator("torch", kind, 0))
    sides = translators.pairs()
    found = []
    for name, pad_id in (("torch", 0), (framework, PAD)):
        library = translators.LIBRARIES[name]
        training = importlib.import_module(f"course_lib.{name}.training.translation")
        pairs = [[renamed(ids) for ids in side] for side in sides] if pad_id else sides
        model = translator(name, kind, pad_id)
        library.set_state(model, with_renamed_rows(state, VOCABULARY) if pad_id else state)
        batches = PairBatches(*pairs, 150, pad_id=pad_id)
        assert any((batch.source == pad_id).any() and (batch.target == pad_id).any() for batch in batches)
        before = training.evaluate(model, batches)
        history = training.train(model, batches.epoch, batches, rate=3e-3, steps=9, progress=False)
        found.append([*before, *history.loss, *history.tokens, history.validation[0].nll])
    assert_allclose(found[1], found[0], rtol=1e-3)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_batches_with_another_padding_than_the_models_are_refused(framework):
    training = importlib.import_module(f"course_lib.{framework}.training.translation")
    model, right, wrong = translators.build(framework), PairBatches(*translators.pairs()), translators.pairs()
    wrong = PairBatches(*wrong, pad_id=9999)
    mistakes = [{"batches": right.epoch, "validation": wrong}]
    if framework == "torch":  # this one shows after a graph is traced, which takes TensorFlow long
        mistakes.append({"batches": wrong.epoch})
    for given in mistakes:
        with pytest.raises(ValueError, match="padded with 9999, but the model takes 0"):
            training.train(model, **given, steps=1, progress=False)
    with pytest.raises(ValueError, match="padded with 9999, but the model takes 0"):
        training.evaluate(model, wrong)
