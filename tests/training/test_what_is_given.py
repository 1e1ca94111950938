"""Batches, texts, limits and models given by mistake are named before the first update; what can be meant is taken."""

import importlib

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from course_lib.batches.pairs import PairBatches
from course_lib.batches.texts import Batches
from course_lib.models.seq2seq import Seq2SeqConfig
from course_lib.models.transformer import TransformerConfig
from tests.support import classifiers, translators

SOURCE, TARGET = np.array([[3, 4, 5], [6, 7, 0]]), np.array([[1, 3, 2], [1, 4, 2]])


@pytest.fixture(params=["torch", "tensorflow"])
def library(request):
    return request.param


def train(library, batch=(SOURCE, TARGET), model=None, **arguments):
    module = importlib.import_module(f"course_lib.{library}.training.translation")
    settings = {"steps": 2, "progress": False, **arguments}
    return module.train(model or translators.build(library), lambda epoch: [batch], **settings)


class NoNumber:
    """As a scheduler of PyTorch's."""


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        ((SOURCE.tolist(), TARGET), TypeError, "the source of batch 0 of epoch 0 must be an array .* got list"),
        ({"source": SOURCE}, TypeError, r"batch 0 of epoch 0 must begin with source ids \(B, S\).* got dict"),
        (SOURCE[:1], TypeError, "batch 0 of epoch 0 must begin with .* got ndarray"),
        ((SOURCE, TARGET[0]), ValueError, r"the target of batch 0 of epoch 0 must have shape \(B, T\), got \(3,\)"),
        ((SOURCE, TARGET / 2), TypeError, "the target of batch 0 of epoch 0 must be integers, got float64"),
        ((SOURCE[:0], TARGET[:0]), ValueError, "the source of batch 0 of epoch 0 has no sequence"),
        ((SOURCE, TARGET * [1, 0, 0]), ValueError, "batch 0 of epoch 0 has no target token besides padding"),
        ((SOURCE, TARGET[:, :1]), ValueError, "batch 0 of epoch 0 has no target token besides padding"),
    ],
)
def test_what_is_no_batch_has_a_name(library, batch, error, message):
    if library == "torch" or isinstance(batch, dict):  # the check is the same, and a graph takes long to trace
        with pytest.raises(error, match=message):
            train(library, batch)
    if "besides" not in message:
        with pytest.raises(error, match=message.replace("epoch 0", "validation")):
            train(library, validation=[batch])


def test_any_integers_are_taken(library):
    kinds = [np.int32, np.uint8, np.uint64, ">i8", ">u2"]
    of_any, of_one = ([(SOURCE.astype(d), TARGET.astype(d)) for d in given] for given in (kinds, [np.int64] * 5))
    module = importlib.import_module(f"course_lib.{library}.training.translation")
    found, expected = (
        module.train(translators.build(library), lambda epoch, b=b: b, validation=b, epochs=1, progress=False)
        for b in (of_any, of_one)
    )
    assert len(found.loss) == 5 and found.best.nll == expected.best.nll
    assert_array_equal(found.loss, expected.loss)


def test_tensors_of_any_integers_are_taken():
    same = tuple(torch.tensor(ids, dtype=torch.int32) for ids in (SOURCE, TARGET))
    assert_array_equal(train("torch", same).loss, train("torch").loss)


def transformer(library):
    return translators.LIBRARIES[library].Transformer(TransformerConfig(23, 23, 12, 1, 3, 20, max_len=12))


def recurrent(library):
    return translators.LIBRARIES[library].Seq2Seq(Seq2SeqConfig(23, 23, 12, 12))


@pytest.mark.parametrize("make", [transformer, recurrent])
def test_held_out_ids_outside_of_the_vocabulary(library, make):
    for side, bad in ((0, 23), (1, -1)):
        pair = [SOURCE.copy(), TARGET.copy()]
        pair[side][0, 1] = bad
        message = f"the {('source', 'target')[side]} of batch 1 of validation must lie in 0 ... 22, got ids from"
        with pytest.raises(ValueError, match=message):
            train(library, model=make(library), validation=[(SOURCE, TARGET), pair])


def test_held_out_padding_alone(library):
    with pytest.raises(ValueError, match="validation has no target token besides padding"):
        train(library, validation=[(SOURCE, TARGET * 0)])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"steps": "3"}, TypeError, "steps must be a number, got '3'"),
        ({"steps": 2.5}, ValueError, "steps must be a whole number, got 2.5"),
        ({"epochs": 1.5}, ValueError, "epochs must be a whole number, got 1.5"),
        ({"validate_every": 2.5}, ValueError, "validate_every must be a whole number, got 2.5"),
        ({"patience": 1}, ValueError, "patience counts validations, and there is no validation"),
        ({"rate": "1e-3"}, TypeError, "the rate must be a number, or a function of the step, got '1e-3'"),
        ({"rate": NoNumber()}, TypeError, "the rate must be a number, or a function of the step, got <.*NoNumber"),
        ({"rate": lambda step: None}, TypeError, "the rate at step 0 must be a number, got None"),
        ({"max_norm": "1"}, TypeError, "max_norm must be a number, got '1'"),
        ({"smoothing": None}, TypeError, "smoothing must be a number, got None"),
    ],
)
def test_what_is_no_limit_and_no_rate(library, arguments, error, message):
    with pytest.raises(error, match=message):
        train(library, **arguments)


def test_saving_may_wait_for_the_end(library, tmp_path):
    steps = 2.0  # a whole number
    assert len(train(library, checkpoint=tmp_path, save_every=float("inf"), steps=steps).loss) == 2
    assert train(library, checkpoint=tmp_path).stopped_by == "steps"


def freeze(library, model):
    if library == "torch":
        model.requires_grad_(False)
    else:
        model.trainable = False
    return model


def test_what_has_nothing_to_train(library, examples):
    with pytest.raises(ValueError, match="all parameters are frozen"):
        train(library, model=freeze(library, translators.build(library)))
    run = classifiers.build(library)
    with pytest.raises(ValueError, match="all parameters are frozen"):
        run.training.train(freeze(library, run.model), *examples, progress=False)


def test_weights_in_float16_are_refused_by_pytorch_too(examples):
    with pytest.raises(ValueError, match="weights in float16 are too coarse.*; keep them in float32 .*autocast"):
        train("torch", model=translators.build("torch").half())
    run = classifiers.build("torch")
    with pytest.raises(ValueError, match="weights in float16 are too coarse"):
        run.training.train(run.model.half(), *examples, progress=False)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients_there_is_no_training(mode, examples):
    run = classifiers.build("torch")
    with mode():
        with pytest.raises(RuntimeError, match="train outside of torch.no_grad"):
            train("torch")
        with pytest.raises(RuntimeError, match="train outside of torch.no_grad"):
            run.training.train(run.model, *examples, progress=False)


@pytest.mark.parametrize("kind", ["BertForMaskedLM", "BertForTokenClassification", "BertModel", "Transformer"])
def test_what_does_not_classify(framework, examples, kind):
    library = classifiers.FRAMEWORKS[framework.name]
    config = TransformerConfig(40, 40, 12, 1, 3, 20) if kind == "Transformer" else classifiers.CONFIG
    model = getattr(library, kind)(config)
    before = library.get_state(model)
    with pytest.raises(TypeError, match=f"a {kind} does not classify .*BertForSequenceClassification"):
        framework.training.train(model, *examples, progress=False)
    for name, value in library.get_state(model).items():
        assert_array_equal(value, before[name])
    with pytest.raises(TypeError, match=f"a {kind} does not classify"):
        framework.training.predict(model, examples[0])


def test_what_is_no_texts(framework, examples):
    with pytest.raises(ValueError, match="there must be at least one sequence"):
        framework.training.train(framework.model, [], [], progress=False)
    for texts, kind in (((ids for ids in examples[0]), "generator"), (dict(enumerate(examples[0])), "dict")):
        with pytest.raises(TypeError, match=f"sequences must be many arrays of token ids, got {kind}"):
            framework.training.train(framework.model, texts, examples[1], progress=False)


@pytest.mark.parametrize(("n_steps", "lr"), [(0, 1e-3), ("3", 1e-3), (3, "1e-3")])
def test_what_makes_no_optimizer(framework, n_steps, lr):
    message = "n_steps must be a whole number of 1 or more" if n_steps != 3 else "lr must be a number, got '1e-3'"
    with pytest.raises((ValueError, TypeError), match=message):
        framework.training.make_optimizer(framework.model, n_steps, lr)


class Labelled:
    """As a pandas Series, shuffled: `series[i]` is what has the label i, and its order is another."""

    def __init__(self, items, labels):
        self.items, self.labels = list(items), list(labels)
        self.iloc = self.items

    def __len__(self):
        return len(self.items)

    def __iter__(self):
        return iter(self.items)

    def __getitem__(self, label):
        return self.items[self.labels.index(label)]

    def __array__(self, dtype=None, copy=None):
        return np.array(self.items, dtype=dtype)


def test_a_shuffled_series_is_taken_in_its_order(framework, examples):
    plain = [items[:8] for items in examples]
    series = [Labelled(items, np.random.default_rng(1).permutation(8)) for items in plain]
    found, expected = (classifiers.build(framework.name) for _ in range(2))
    settings = {"batch_size": 4, "progress": False}
    losses = found.training.train(found.model, *series, **settings)
    assert_array_equal(losses, expected.training.train(expected.model, *plain, **settings))
    function = found.training.predict
    assert_array_equal(function(found.model, series[0]), function(found.model, plain[0]))


def test_batches_of_a_shuffled_series():
    """Also of a part, which lacks the label 0."""
    sources, targets = translators.pairs()
    labels = 100 + np.random.default_rng(1).permutation(60)
    for ours, theirs in (
        (Batches(Labelled(sources, labels), 7), Batches(sources, 7)),
        (PairBatches(Labelled(sources, labels), Labelled(targets, labels), 200), PairBatches(sources, targets, 200)),
    ):
        for a, b in zip(ours, theirs, strict=True):
            assert_array_equal(a[0], b[0])
            assert_array_equal(a[-1], b[-1])
