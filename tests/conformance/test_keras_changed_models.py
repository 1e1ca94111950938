"""Models with LoRA, in eight bits, with layers of other kinds, with our optimizer: states, files, decoding."""

import keras
import numpy as np
import pytest
from keras_models import error
from numpy.testing import assert_allclose

import course_lib.tensorflow as lib
from course_lib.config import BertConfig, TransformerConfig
from course_lib.tensorflow.training import make_optimizer

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
    return model


@pytest.mark.parametrize("change", [adapted, in_eight_bits])
def test_decoding_follows_a_changed_model(change):
    """After it has decoded once; and eight bits are near to the numbers of before."""
    keras.utils.set_random_seed(0)
    model = lib.Transformer(TransformerConfig(13, 13, **SIZES))
    before, functions = model.next_logits(IDS)(START), model.next_logits(IDS).functions
    assert model.next_logits(IDS).functions is functions  # traced once
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
    with pytest.raises(ValueError, match="has no place in the file.*quantized"):
        in_eight_bits(lib.BertModel(BertConfig(13, **SIZES))).save_pretrained(tmp_path / "bits")
    assert [path.name for path in tmp_path.iterdir()] == ["sum"]


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
    return keras.Model(inputs, lib.EncoderLayer(6, 3, 8)(inputs)[0])


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
