"""Gradients by inputs and weights: PyTorch's and TensorFlow's against central differences of the NumPy reference.

NumPy differentiates a sample of places of every array; `TORCH` against `TENSORFLOW` covers them all.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.masks import causal_mask, padding_mask
from course_lib.models.bert import BertConfig
from course_lib.models.blocks import BlockConfig
from tests.support import states
from tests.support.backends import NUMPY, TENSORFLOW, TORCH, cotangent

B, T, S, D_MODEL, H, D_FF = 2, 4, 5, 6, 3, 10
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}

CONFIG = BertConfig(vocab_size=11, d_model=6, n_layers=2, n_heads=3, d_ff=8, max_len=6, n_classes=3)
IDS = np.array([[2, 5, 10, 1], [9, 4, 0, 0]])
SEGMENTS = np.array([[0, 1, 1, 1], [0, 0, 0, 0]])


def mask_with_an_empty_row(rng):
    mask = rng.random((B, H, T, S)) < 0.6
    mask[0, 1, 2] = False
    return mask


def compare(results):
    """results: backend -> (gradients by input, gradients by weight)."""
    inputs, weights = results[TORCH]
    for i, gradient in enumerate(inputs):
        if gradient is None:
            continue
        assert_allclose(results[TENSORFLOW][0][i], gradient, **TOLERANCE, err_msg=f"input {i}")
        numerical = results[NUMPY][0][i]
        known = ~np.isnan(numerical)
        assert known.sum() >= min(24, numerical.size)
        assert_allclose(gradient[known], numerical[known], **TOLERANCE, err_msg=f"input {i}")
    assert weights.keys() == results[TENSORFLOW][1].keys() == results[NUMPY][1].keys()
    for name, gradient in weights.items():
        assert_allclose(results[TENSORFLOW][1][name], gradient, **TOLERANCE, err_msg=name)
        numerical = results[NUMPY][1][name]
        known = ~np.isnan(numerical)
        assert known.any()
        assert_allclose(gradient[known], numerical[known], **TOLERANCE, err_msg=name)


def of_module(name, arguments, state, inputs, **constants):
    constants = {
        backend: {key: backend.tensor(value) for key, value in constants.items()}
        for backend in (NUMPY, TORCH, TENSORFLOW)
    }
    return {
        backend: backend.gradients(backend.make(name, *arguments, state=state), *inputs, **constants[backend])
        for backend in (NUMPY, TORCH, TENSORFLOW)
    }


@pytest.mark.parametrize("masked", [False, True], ids=["no mask", "mask"])
@pytest.mark.parametrize("name", ["attention", "fused_attention"])
def test_attention(rng, name, masked):
    inputs = [rng.normal(size=(B, H, n, d)) for n, d in ((T, 4), (S, 4), (S, 3))]
    mask = mask_with_an_empty_row(rng) if masked else None
    results = {
        backend: backend.gradients(backend.function(name), *inputs, mask=backend.tensor(mask))
        for backend in (NUMPY, TORCH, TENSORFLOW)
    }
    compare(results)
    assert max(np.abs(gradient).max() for gradient in results[TORCH][0]) > 0.1  # and not zero everywhere


def test_fused_attention_has_the_gradients_of_attention(training_backend, rng):
    backend = training_backend
    inputs = [rng.normal(size=(B, H, n, d)) for n, d in ((T, 4), (S, 4), (S, 3))]
    for mask in (None, backend.tensor(mask_with_an_empty_row(rng)), backend.tensor(causal_mask(T, S))):
        plain, _ = backend.gradients(backend.function("attention"), *inputs, mask=mask, dropout=0.0)
        fused, _ = backend.gradients(backend.function("fused_attention"), *inputs, mask=mask, dropout=0.0)
        for expected, gradient in zip(plain, fused, strict=True):
            assert_allclose(gradient, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("masked", [False, True], ids=["no mask", "mask"])
@pytest.mark.parametrize("name", ["attention", "fused_attention"])
def test_attention_with_dropout(training_backend, rng, name, masked):
    """The gradient is that of the weights that were dropped: a step along it gains what it promises.

    The generator starts from the same seed each time, so that the same weights fall.
    """
    backend, function = training_backend, training_backend.function(name)
    inputs = [rng.normal(size=(B, H, n, d)) for n, d in ((T, 4), (S, 4), (S, 3))]
    mask = mask_with_an_empty_row(rng) if masked else None
    backend.seed(5)
    by_input, _ = backend.gradients(function, *inputs, mask=backend.tensor(mask), dropout=0.4)

    def loss(arrays):
        backend.seed(5)
        output = backend.call(function, *arrays, mask=mask, dropout=0.4).output.astype(np.float64)
        return (output * cotangent(output.shape)).sum()

    for i, gradient in enumerate(by_input):
        step = 1e-2 * gradient / np.linalg.norm(gradient)
        above, below = ([x + sign * step if j == i else x for j, x in enumerate(inputs)] for sign in (1, -1))
        assert_allclose((loss(above) - loss(below)) / 2e-2, np.linalg.norm(gradient), rtol=2e-3)


def test_softmax(rng):
    scores = rng.normal(size=(3, 5))
    compare({backend: backend.gradients(backend.function("softmax"), scores) for backend in (NUMPY, TORCH, TENSORFLOW)})


def test_multi_head_attention(rng):
    inputs = [rng.normal(size=(B, n, D_MODEL)) for n in (T, S, S)]
    state = states.random_state(states.multi_head_attention(D_MODEL))
    compare(of_module("MultiHeadAttention", (D_MODEL, H), state, inputs, mask=mask_with_an_empty_row(rng)))


def test_feed_forward(rng):
    state = states.random_state(states.feed_forward(D_MODEL, D_FF))
    compare(of_module("FeedForward", (D_MODEL, D_FF, "gelu"), state, [rng.normal(size=(B, T, D_MODEL))]))


def test_learned_positions(rng):
    state = {"weight": rng.normal(size=(6, D_MODEL))}
    compare(of_module("LearnedPositions", (D_MODEL, 6), state, [rng.normal(size=(B, T, D_MODEL))]))


def test_sinusoidal_positions(rng):
    compare(of_module("SinusoidalPositions", (D_MODEL, 6), None, [rng.normal(size=(B, T, D_MODEL))]))


@pytest.mark.parametrize("norm", ["post_norm", "pre_norm"])
def test_encoder(rng, norm):
    pre_norm = norm == "pre_norm"
    state = states.random_state(states.encoder(2, D_MODEL, D_FF, pre_norm))
    arguments = (2, BlockConfig(D_MODEL, H, D_FF, activation="gelu", pre_norm=pre_norm))
    compare(of_module("Encoder", arguments, state, [rng.normal(size=(B, T, D_MODEL))], mask=causal_mask(T)))


@pytest.mark.parametrize("name", states.BERTS)
def test_bert(rng, name):
    shapes = states.BERTS[name](CONFIG)
    state = states.random_state(shapes)
    results = of_module(name, (CONFIG,), state, [IDS], mask=padding_mask(IDS), segments=SEGMENTS)
    compare(results)
    table = next(key for key in shapes if key.endswith("token.weight"))
    slopes = results[TORCH][1][table]
    if name not in ("BertForMaskedLM", "BertForPreTraining"):  # there the table is the output matrix too
        assert_allclose(slopes[3], 0.0, atol=1e-7)  # a token that does not occur
    assert np.abs(slopes[5]).max() > 1e-3
