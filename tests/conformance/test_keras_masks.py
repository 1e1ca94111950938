"""Keras's own padding masks, from `Embedding(mask_zero=True)` or `Masking`, in our layers."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose

from course_lib.models.blocks import BlockConfig
from tests.support.backends import TENSORFLOW

# Keras's own, of NumPy 2, while it writes weights
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")

PADDED = np.array([[3, 4, 6, 0, 0], [5, 6, 7, 8, 1], [8, 0, 0, 0, 0], [2, 2, 0, 0, 0], [9, 0, 5, 0, 1]])
BLOCK = BlockConfig(6, 3, 8)
PRE_NORM = BlockConfig(6, 3, 8, pre_norm=True)
CAUSAL = np.tril(np.ones((5, 5), dtype=bool))[None, None]
PADS = {  # a layer: what calls it on a sequence x and a memory m, and its masks made of the padding of both
    "DecoderLayer": ((BLOCK,), lambda f, x, m, **masks: f(x, m, **masks), lambda x, m: {"mask": x, "memory_mask": m}),
    "Decoder": ((1, BLOCK), lambda f, x, m, **masks: f(x, m, **masks), lambda x, m: {"mask": x, "memory_mask": m}),
    "EncoderLayer": ((BLOCK,), lambda f, x, m, **masks: f(x, **masks), lambda x, m: {"mask": x}),
    "Encoder": ((2, PRE_NORM), lambda f, x, m, **masks: f(x, **masks), lambda x, m: {"mask": x}),
    "MultiHeadAttention": ((6, 3), lambda f, x, m, **masks: f(x, m, m, **masks), lambda x, m: {"mask": m}),
    "RNN": ((6, 4, "gru", True), lambda f, x, m, **masks: f(x, **masks), lambda x, m: {"mask": x[:, 0, 0]}),
}


@pytest.mark.parametrize("n_tokens", [5, 4], ids=["B equals T", "B over T"])
@pytest.mark.parametrize("name", PADS)
def test_padding_that_keras_knows_of_is_hidden(name, n_tokens, tmp_path):
    """The masks of `Embedding(mask_zero=True)` are those of `padding_mask`: eager, functional, reopened, and passed on.

    A mask that is given joins them, and is the only one where Keras knows of none.
    """
    arguments, call, masks_of = PADS[name]
    keras.utils.set_random_seed(0)
    layer = TENSORFLOW.make(name, *arguments)
    table = keras.layers.Embedding(13, 6, mask_zero=True, embeddings_initializer="normal")
    x_ids, m_ids = tf.constant(PADDED[:, :n_tokens]), tf.constant(PADDED[::-1, :n_tokens].copy())
    plain = [tf.constant(table(ids).numpy()) for ids in (x_ids, m_ids)]
    masks = masks_of(*(TENSORFLOW.lib.padding_mask(ids) for ids in (x_ids, m_ids)))
    expected = call(layer, *plain, **masks)[0]
    assert np.abs(expected - call(layer, *plain)[0]).max() > 1e-4
    output = call(layer, table(x_ids), table(m_ids))[0]
    assert_allclose(output, expected, atol=1e-5)
    assert_allclose(output._keras_mask, x_ids != 0)  # for the next layer
    if name != "RNN":
        causal = CAUSAL[..., :n_tokens, :n_tokens]
        both = call(layer, *plain, **{**masks, "mask": masks["mask"] & causal})[0]
        assert_allclose(call(layer, table(x_ids), table(m_ids), mask=causal)[0], both, atol=1e-5)
        assert np.abs(both - expected).max() > 1e-4
    if n_tokens == 4:  # saving and compiling take as long as all else
        return
    inputs = [keras.Input((n_tokens,), dtype="int64") for _ in plain]
    functional = keras.Model(inputs, call(layer, *map(table, inputs))[0])
    functional.save(tmp_path / "functional.keras")
    again = keras.models.load_model(tmp_path / "functional.keras")
    assert_allclose(functional([x_ids, m_ids]), expected, atol=1e-5)
    assert_allclose(again.predict([x_ids, m_ids], batch_size=2, verbose=0), expected, atol=1e-5)


def test_padding_passes_through_layers_that_mix_no_tokens():
    """From the embedding through positions and a feed-forward to the second encoder layer, without a warning."""
    lib, ids = TENSORFLOW.lib, PADDED[:, :4]
    times = np.ones(ids.shape, dtype="float32")
    layers = lib.SinusoidalPositions(6, 9), lib.LearnedPositions(6, 9), lib.FeedForward(6, 8), lib.TimeModulation(6, 3)
    blocks = [lib.EncoderLayer(BLOCK) for _ in range(2)]
    x = keras.layers.Embedding(13, 6, mask_zero=True)(ids)
    y = tf.constant(x.numpy())
    for layer in layers:
        more = (times,) if layer is layers[-1] else ()
        x, y = layer(x, *more), layer(y, *more)
    for block in blocks:
        x, y = block(x)[0], block(y, mask=lib.padding_mask(ids))[0]
    assert_allclose(x, y, atol=1e-5)
    assert_allclose(keras.layers.GlobalAveragePooling1D()(x)[2], x[2, 0], atol=1e-5)  # a mean of real tokens alone
