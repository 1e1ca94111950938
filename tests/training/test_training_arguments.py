"""What a training is given by mistake gets one clear error before the first update; what can be meant is taken."""

import importlib

import keras
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import course_lib.tensorflow
from course_lib.batches.pairs import PairBatches
from course_lib.batches.texts import Batches
from course_lib.models.bert_heads import MaskedLMOutput
from course_lib.models.transformer import TransformerConfig
from course_lib.text.padding import padded
from course_lib.training.arguments import settings_of
from tests.support import translators
from tests.support.keras_sketch import TensorFlowSketch

NAN, INF = float("nan"), float("inf")


@pytest.fixture(params=["torch", "tensorflow"])
def library(request):
    return request.param


def train(library, batches=None, model=None, **arguments):
    module = importlib.import_module(f"course_lib.{library}.training.translation")
    settings = {"steps": 1, "progress": False, **arguments}
    return module.train(model or translators.build(library), batches or translators.batches(), **settings)


def test_pair_batches_are_taken_as_they_are():
    batches = PairBatches(*translators.pairs(), 200)
    steps = len(batches) + 2
    ours, expected = (train("torch", given, steps=steps) for given in (batches, batches.epoch))
    assert_array_equal(ours.loss, expected.loss)


def test_what_shows_only_in_the_training():
    with pytest.raises(TypeError, match="epoch 0 must be a sequence of batches, got list_iterator"):
        train("torch", lambda epoch: iter([]))
    with pytest.raises(ValueError, match="the rate at step 1 must be a number of 0 or more, got -inf"):
        train("torch", rate=lambda step: -INF if step else 1.0, steps=2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"batches": translators.batches()(0)}, TypeError, "a function of the epoch, such as .* got list"),
        ({"validation": translators.batches()}, TypeError, "validation must be a sequence of batches.* got function"),
        ({"validation": iter([])}, TypeError, "validation must be a sequence of batches.* got list_iterator"),
        ({"validation": []}, ValueError, "validation has no batches"),
        ({"rate": -1}, ValueError, "the rate must be a number of 0 or more, got -1"),
        ({"rate": NAN}, ValueError, "the rate must be a number of 0 or more, got nan"),
        ({"max_norm": -1.0}, ValueError, "max_norm must be positive, got -1.0"),
        ({"max_norm": NAN}, ValueError, "max_norm must be positive, got nan"),
        ({"save_every": NAN}, ValueError, "save_every must be a number of 0 or more"),
    ],
)
def test_what_makes_no_training(library, arguments, error, message):
    with pytest.raises(error, match=message):
        train(library, **arguments)


@pytest.mark.parametrize("side", [0, 1])
def test_a_held_out_sequence_that_is_too_long(library, side):
    """It would be found by the first validation, which may be hours away."""
    model = translators.LIBRARIES[library].Transformer(TransformerConfig(23, 23, 12, 1, 3, 20, max_len=12))
    before = translators.LIBRARIES[library].get_state(model)
    name = next(iter(before))
    fits = (np.full((1, 12), 5), np.full((1, 13), 5))
    long = [fits, tuple(np.pad(ids, ((0, 0), (0, i == side)), constant_values=6) for i, ids in enumerate(fits))]
    with pytest.raises(ValueError, match="batch 1 of validation has a sequence of 13 tokens, over the maximum of 12"):
        train(library, model=model, validation=long)
    assert_array_equal(translators.LIBRARIES[library].get_state(model)[name], before[name])
    if library == "torch":
        assert train(library, model=model, validation=[fits]).best.step == 1


def test_a_sequence_that_is_too_long_for_fine_tuning(framework, examples):
    sequences = [*examples[0][:-1], np.full(17, 7)]
    before = framework.get_state(framework.model)
    with pytest.raises(ValueError, match=r"sequences\[95\] has 17 tokens, over the maximum of 16; truncate"):
        framework.training.train(framework.model, sequences, examples[1], progress=False)
    for name, value in framework.get_state(framework.model).items():
        assert_array_equal(value, before[name])


def test_a_model_whose_config_is_a_dict():
    """One of the user's own, with a pad_id of its own."""
    model = translators.build("torch")
    model.config = {"dropout": 0.0, "sizes": [1, 2], "max_len": 20}
    assert len(train("torch", model=model, validation=translators.batches(10)(0)).loss) == 1
    assert settings_of(model) == {"dropout": 0.0, "max_len": 20}


def test_a_model_that_does_not_translate(library):
    from tests.support import classifiers

    for model in (classifiers.build(library).model, classifiers.build(library).model.bert):
        with pytest.raises(TypeError, match="a Bert.* does not read source and target"):
            train(library, model=model)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lr": -1.0}, "lr must be a number of 0 or more, got -1.0"),
        ({"lr": NAN}, "lr must be a number of 0 or more, got nan"),
        ({"weight_decay": -0.1}, "weight_decay must be a number of 0 or more"),
        ({"max_norm": -1.0}, "max_norm must be positive"),
        ({"warmup": 1.0}, r"warmup is a fraction of the updates and must lie in \[0, 1\), got 1.0"),
        ({"warmup": -0.1}, r"warmup is a fraction .* got -0.1"),
        ({"warmup": NAN}, r"warmup is a fraction .* got nan"),
    ],
)
def test_what_makes_no_fine_tuning(framework, examples, arguments, message):
    with pytest.raises(ValueError, match=message):
        framework.training.train(framework.model, *examples, progress=False, **arguments)


def test_fine_tuning_without_a_largest_norm(framework, examples):
    sequences, labels = examples[0][:8], examples[1][:8]
    losses = framework.training.train(framework.model, sequences, labels, epochs=2, max_norm=None, progress=False)
    assert len(losses) == 2 and np.isfinite(losses).all()


IDS = np.array([3, 4])
NO_IDS = [
    (["a text"], TypeError, r"\[0\] is 'a text', not token ids; encode the texts by a tokenizer first"),
    ([IDS, None], TypeError, r"\[1\] is None, not token ids"),
    ("a text", TypeError, "must be many arrays of token ids, got str"),
    (None, TypeError, "must be many arrays of token ids, got NoneType"),
    ([IDS, np.array([0.5])], TypeError, r"\[1\] must be integers, got float64"),
    ([[1, 2], [3.5]], TypeError, r"\[1\] must be integers, got float64"),
    ([IDS[None]], ValueError, r"\[0\] must have shape \(length,\), got \(1, 2\)"),
]


@pytest.mark.parametrize(("ids", "error", "message"), NO_IDS)
def test_what_is_no_ids(ids, error, message):
    for make in (Batches, padded, lambda ids: PairBatches([IDS], ids), lambda ids: PairBatches(ids, [IDS])):
        with pytest.raises(error, match=message):
            make(ids)


@pytest.mark.parametrize(("ids", "error", "message"), NO_IDS[:2])
def test_what_is_no_ids_is_not_trained_on(framework, ids, error, message):
    with pytest.raises(error, match=message):
        framework.training.train(framework.model, ids, np.zeros(len(ids), int), progress=False)


def test_lists_of_ids_are_taken():
    assert_array_equal(padded([[1, 2], [3]]), [[1, 2], [3, 0]])
    assert_array_equal(Batches([[1, 2], [3]])[0].ids, [[3, 0], [1, 2]])


class Headed(TensorFlowSketch):
    """A model with one more layer of Keras's, kept in some way, whose output is added or not."""

    def __init__(self, extra, used=True):
        super().__init__(0.0)
        self.extra, self.used = extra, used

    def call(self, source_ids, target_ids):
        logits = super().call(source_ids, target_ids).logits
        layer = self.extra["layer"] if isinstance(self.extra, dict) else self.extra
        return MaskedLMOutput(logits + layer(logits) if self.used else logits, None, None)


def built(layer):
    layer.build((None, None, translators.VOCABULARY))
    return layer


def with_lora():
    model = translators.build("tensorflow")
    model.output_layer.enable_lora(2)
    return model


def test_a_training_with_lora_is_not_saved_but_has_its_best(tmp_path):
    """What is saved is the sum of a matrix and its LoRA: Adam's averages of the two would fit nothing."""
    model, held_out = with_lora(), translators.batches(10)(0)
    before = [variable.numpy() for variable in model.trainable_variables]
    with pytest.raises(ValueError, match="lora_kernel_a could not be .*; train without a checkpoint"):
        train("tensorflow", model=model, checkpoint=tmp_path)
    for variable, value in zip(model.trainable_variables, before, strict=True):
        assert_array_equal(variable.numpy(), value)
    history = train("tensorflow", model=model, validation=held_out)
    found = course_lib.tensorflow.training.translation.evaluate(model, held_out)
    assert_allclose(found.nll, history.best.nll, rtol=1e-5)


def test_all_of_keras_weights_are_resumed(tmp_path):
    """Also those that no attribute leads to, and averages that have no gradient."""

    def losses(stops, folder):
        for steps in stops:
            keras.utils.set_random_seed(0)
            model = Headed({"layer": built(keras.layers.BatchNormalization())})
            found = train("tensorflow", model=model, steps=steps, checkpoint=folder, validate_every=1, rate=1e-2).loss
        return found

    assert_allclose(losses([2, 4], tmp_path), losses([4], None), rtol=1e-4)


def test_a_weight_without_gradient_has_a_name():
    unused = built(keras.layers.Dense(3, name="beside"))
    with pytest.raises(ValueError, match="no gradient reaches beside/kernel, beside/bias: .* freeze it"):
        train("tensorflow", model=Headed(unused, used=False))


@pytest.mark.parametrize("max_norm", [None, 1.0])
def test_weights_in_float16_are_refused(max_norm):
    config = TransformerConfig(23, 23, 12, 1, 3, 20)
    with pytest.raises(ValueError, match="mixed_float16"):
        train("tensorflow", model=course_lib.tensorflow.Transformer(config, dtype="float16"), max_norm=max_norm)
