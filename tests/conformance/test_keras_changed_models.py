"""Models with LoRA, in eight bits, with frozen parts, other layers, our optimizer: states, files, decoding."""

import copy
import pickle

import keras
import numpy as np
import pytest
from numpy.testing import assert_allclose

import course_lib.tensorflow as lib
from course_lib.models.bert import BertConfig
from course_lib.models.blocks import BlockConfig
from course_lib.models.transformer import TransformerConfig
from course_lib.tensorflow.training.classifier import make_optimizer
from tests.support.keras_models import error

# Keras's own, of NumPy 2, while it writes weights
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")

SIZES = {"d_model": 8, "n_layers": 1, "n_heads": 2, "d_ff": 12, "max_len": 9}
IDS = np.array([[2, 4, 12, 1], [9, 4, 5, 0]])
START = np.ones((2, 1), dtype=np.int64)


def adapted(model):
    """The model with a LoRA of some size in every part that may have one."""
    for i, layer in enumerate(model._flatten_layers()):
        if hasattr(layer, "enable_lora"):
            layer.enable_lora(2)
            last = getattr(layer, f"lora_{'kernel' if hasattr(layer, 'kernel') else 'embeddings'}_b")
            last.assign(np.random.default_rng(i).normal(size=last.shape))
    return model


def in_eight_bits(model):
    with pytest.warns(UserWarning, match="does not have a `quantize` method"):  # of Keras's, for all without a matrix
        model.quantize("int8")
    linear = [layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.Dense)]
    assert linear and {layer.quantization_mode for layer in linear} == {"int8"}, "Keras passes over subclasses"
    return model


@pytest.mark.parametrize("change", [adapted, in_eight_bits])
def test_decoding_follows_a_changed_model(change):
    """After it has decoded once; and eight bits are near to the numbers of before."""
    keras.utils.set_random_seed(0)
    model = lib.Transformer(TransformerConfig(13, 13, **SIZES))
    before, functions = model.next_logits(IDS)(START), model._compiled()
    assert model._compiled() is functions  # traced once
    change(model)
    logits = model(IDS, START).logits[:, -1]
    assert_allclose(model.next_logits(IDS)(START), logits, atol=1e-4)
    far = np.abs(logits - before).max() / np.abs(before).max()
    assert far > 0.2 if change is adapted else 1e-6 < far < 0.2


def test_quantized_masked_language_models_stay_near():
    keras.utils.set_random_seed(0)
    model = lib.BertForMaskedLM(BertConfig(13, **SIZES, init_std=0.3))
    before = model(IDS).logits
    assert error(in_eight_bits(model)(IDS).logits, before) < 0.1


def test_checkpoints_hold_all_or_are_refused(tmp_path):
    """A LoRA goes in by its sum with the matrix; what has no place in the file is named."""
    keras.utils.set_random_seed(0)
    model = adapted(lib.BertModel(BertConfig(13, **SIZES)))
    model.save_pretrained(tmp_path / "sum")
    assert error(lib.BertModel.from_pretrained(tmp_path / "sum")(IDS), model(IDS)) < 1e-5

    class More(lib.BertModel):
        def __init__(self, config):
            super().__init__(config)
            self.more = keras.layers.MultiHeadAttention(2, 4)
            self.more.build((None, None, 8), (None, None, 8))

    with pytest.raises(ValueError, match="kernel.* has no place in the file.*model.save"):
        More(BertConfig(13, **SIZES)).save_pretrained(tmp_path / "more")
    More.from_pretrained(tmp_path / "sum")  # the others stay fresh
    bits = in_eight_bits(lib.BertModel(BertConfig(13, **SIZES)))
    with pytest.raises(ValueError, match="has no place in the file.*quantized.*save_weights.*into a fresh one"):
        bits.save_pretrained(tmp_path / "bits")
    assert [path.name for path in tmp_path.iterdir()] == ["sum"]
    bits.save_weights(tmp_path / "bits.weights.h5")
    fresh = in_eight_bits(lib.BertModel(BertConfig(13, **SIZES)))
    fresh.load_weights(tmp_path / "bits.weights.h5")
    assert error(fresh(IDS), bits(IDS)) < 1e-6


class Others(keras.Model):
    """Layers that no attribute or list leads to, of kinds with other weights, and of kinds with ours."""

    def __init__(self):
        super().__init__()
        self.attend, self.conv = keras.layers.MultiHeadAttention(2, 4), keras.layers.Conv1D(6, 3)
        self.by_name, self.pair = {"x": keras.layers.Dense(6)}, (keras.layers.Dense(6),)
        self.nested, self._hidden = [[keras.layers.EinsumDense("abc,cd->abd", (None, 6))]], keras.layers.Dense(6)
        self.ours = keras.Sequential([lib.FeedForward(6, 8)])

    def call(self, x):
        x = self.conv(self.attend(x, x))
        return self.ours(self.nested[0][0](self.pair[0](self.by_name["x"](self._hidden(x)))))


def functional():
    inputs = keras.Input((None, 6))
    return keras.Model(inputs, lib.EncoderLayer(BlockConfig(6, 3, 8))(inputs)[0])


@pytest.mark.parametrize("make", [Others, functional, lambda: adapted(lib.FeedForward(6, 8))])
def test_a_state_holds_all_weights(make):
    """So that another model of the class, or this one later, has the same outputs."""
    x = np.random.default_rng(0).normal(size=(2, 5, 6)).astype("float32")
    model, other = make(), make()
    expected = model(x)
    assert error(other(x), expected) > 0.01
    state = lib.get_state(model)
    lib.set_state(other, state)
    assert error(other(x), expected) < 1e-5
    for layer in model._flatten_layers():
        for variable in getattr(layer, "_trainable_variables", ()):
            variable.assign(variable + 1.0)
    lib.set_state(model, state)
    assert error(model(x), expected) < 1e-5


def reopened(model, tmp_path):
    model.save(tmp_path / "model.keras")
    return keras.models.load_model(tmp_path / "model.keras")


COPIES = {
    "file": reopened,
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "deepcopy": lambda model, _: copy.deepcopy(model),
    "clone": lambda model, _: keras.models.clone_model(model),
}


@pytest.mark.parametrize("name", COPIES)
def test_frozen_parts_stay_frozen(name, tmp_path):
    """In a copy of whatever kind: a whole with a frozen part, of which a part is trained; in a functional model, too.

    And a part, whose whole is frozen, stays ready for the time when the whole is trained.
    """
    model = lib.BertForSequenceClassification(BertConfig(13, **SIZES))
    model.bert.trainable = False
    model.bert.encoder.layers[0].attention.trainable = True
    model.bert.embeddings.token.trainable = False
    inputs = keras.Input((None, 8))
    layer = lib.FeedForward(8, 12)
    layer.linear1.trainable = False
    for whole in (model, keras.Model(inputs, layer(inputs))):
        expected = [v.trainable for v in whole.variables]
        assert len(set(expected)) == 2
        assert [v.trainable for v in COPIES[name](whole, tmp_path).variables] == expected
    model.trainable = False
    other = COPIES[name](model, tmp_path)
    assert other.get_config() == model.get_config() and not other.trainable_variables


def test_a_frozen_part_is_no_argument_of_a_subclass():
    """Such as of one that builds itself from a config in its own way."""

    class Own(lib.FeedForward):
        def __init__(self, width, **kwargs):
            super().__init__(6, width, **kwargs)

        @classmethod
        def from_config(cls, config):
            return cls(**config)

    layer = Own(4)
    assert layer.get_config().keys() == {"name", "trainable", "dtype", "width"}
    layer.linear1.trainable = False
    other = Own.from_config(layer.get_config())
    assert [v.trainable for v in other.variables] == [False, False, True, True]


def test_training_goes_on_with_a_frozen_part(tmp_path):
    """A reopened model has the optimizer's state for the variables that it trains."""
    model = lib.BertForSequenceClassification(BertConfig(13, **SIZES, dropout=0.0, attention_dropout=0.0))
    model.bert.trainable = False
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.1), loss, run_eagerly=True)
    model.fit(IDS, np.array([0, 1]), verbose=0)
    other = reopened(model, tmp_path)
    other.run_eagerly = True
    for each in (model, other):
        each.fit(IDS, np.array([0, 1]), verbose=0)
    assert error(other(IDS).logits, model(IDS).logits) < 1e-6


def test_a_model_with_our_optimizer_is_opened_again(tmp_path):
    model = lib.BertForSequenceClassification(BertConfig(13, **SIZES))
    optimizer = make_optimizer(model, 10, lr=0.5)
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    optimizer.build(model.trainable_variables)  # as `fit` does
    model.save(tmp_path / "model.keras")
    opened = keras.models.load_model(tmp_path / "model.keras")
    schedule = opened.optimizer._learning_rate
    assert schedule.get_config() == optimizer._learning_rate.get_config()
    assert error(opened(IDS), model(IDS)) < 1e-6
