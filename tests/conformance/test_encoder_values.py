"""FeedForward, positions, EncoderLayer and Encoder against the loop specification."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.masks import causal_mask
from course_lib.models.blocks import ACTIVATIONS, BlockConfig
from tests.support import specification, states

B, T, D_MODEL, H, D_FF = 2, 5, 6, 3, 10


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_feed_forward(backend, rng, activation):
    x = rng.normal(size=(B, T, D_MODEL))
    state = states.random_state(states.feed_forward(D_MODEL, D_FF), scale=1.0)
    layer = backend.make("FeedForward", D_MODEL, D_FF, activation, state=state)
    assert_allclose(backend.call(layer, x), specification.feed_forward(state, "", x, activation), **backend.tolerance)


def test_feed_forward_is_relu_by_default(backend, rng):
    x = rng.normal(size=(B, T, D_MODEL))
    state = states.random_state(states.feed_forward(D_MODEL, D_FF), scale=1.0)
    layer = backend.make("FeedForward", D_MODEL, D_FF, state=state)
    assert_allclose(backend.call(layer, x), specification.feed_forward(state, "", x, "relu"), **backend.tolerance)


def test_sinusoidal_positions(backend, rng):
    x = rng.normal(size=(B, T, D_MODEL))
    layer = backend.make("SinusoidalPositions", D_MODEL, max_len=9)
    assert_allclose(backend.call(layer, x), x + specification.sinusoids(9, D_MODEL)[:T], **backend.tolerance)
    assert backend.lib.get_state(layer) == {}  # nothing to learn, nothing to save


def test_learned_positions(backend, rng):
    x = rng.normal(size=(B, T, D_MODEL))
    table = rng.normal(size=(9, D_MODEL))
    layer = backend.make("LearnedPositions", D_MODEL, max_len=9, state={"weight": table})
    assert_allclose(backend.call(layer, x), x + table[:T], **backend.tolerance)


@pytest.mark.parametrize("norm", ["post_norm", "pre_norm"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_encoder_layer(backend, rng, norm, activation):
    pre_norm = norm == "pre_norm"
    x, mask = rng.normal(size=(B, T, D_MODEL)), rng.random((B, 1, T, T)) < 0.6
    state = states.random_state(states.encoder_layer(D_MODEL, D_FF))
    block = BlockConfig(D_MODEL, H, D_FF, activation=activation, pre_norm=pre_norm)
    layer = backend.make("EncoderLayer", block, state=state)
    output, weights = backend.call(layer, x, mask=mask)
    expected_output, expected_weights = specification.encoder_layer(state, "", x, mask, H, activation, pre_norm)
    assert_allclose(output, expected_output, **backend.tolerance)
    assert_allclose(weights, expected_weights, **backend.tolerance)


@pytest.mark.parametrize("norm", ["post_norm", "pre_norm"])
@pytest.mark.parametrize("eps", [1e-12, 1e-5, 1e-3])
def test_norm_eps_counts_where_the_variance_is_small(backend, rng, norm, eps):
    pre_norm = norm == "pre_norm"
    x = 1e-3 * rng.normal(size=(B, T, D_MODEL))
    state = states.random_state(states.encoder_layer(D_MODEL, D_FF), scale=0.2)
    for name in ("attention.out_proj", "feed_forward.linear2"):  # leave the residual alone: it stays small
        state[f"{name}.weight"] *= 1e-4
        state[f"{name}.bias"] *= 1e-4
    state["norm1.weight"] *= 1e-3
    state["norm1.bias"] *= 1e-4
    layer = backend.make("EncoderLayer", BlockConfig(D_MODEL, H, D_FF, pre_norm=pre_norm, norm_eps=eps), state=state)
    output, _ = backend.call(layer, x)
    expected, _ = specification.encoder_layer(state, "", x, None, H, "relu", pre_norm, eps)
    scale = np.abs(expected).max()
    assert_allclose(output / scale, expected / scale, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("norm", ["post_norm", "pre_norm"])
@pytest.mark.parametrize("attention", ["attention", "fused_attention"])
def test_encoder(backend, rng, norm, attention):
    pre_norm = norm == "pre_norm"
    x, mask = rng.normal(size=(B, T, D_MODEL)), causal_mask(T)
    state = states.random_state(states.encoder(2, D_MODEL, D_FF, pre_norm))
    model = backend.make(
        "Encoder", 2, BlockConfig(D_MODEL, H, D_FF, pre_norm=pre_norm), backend.function(attention), state=state
    )
    last, hidden, tables = backend.call(model, x, mask=mask, return_layers=True)
    expected_last, expected_hidden, expected_tables = specification.encoder(state, "", x, mask, 2, H, pre_norm=pre_norm)
    assert_allclose(last, expected_last, **backend.tolerance)
    assert len(hidden) == 3 and len(tables) == 2
    for result, expected in zip(hidden, expected_hidden, strict=True):
        assert_allclose(result, expected, **backend.tolerance)
    if attention == "attention":
        for result, expected in zip(tables, expected_tables, strict=True):
            assert_allclose(result, expected, **backend.tolerance)
    else:
        assert tables == (None, None)


def test_encoder_returns_the_layers_only_when_asked(backend, rng):
    x = rng.normal(size=(B, T, D_MODEL))
    state = states.random_state(states.encoder(2, D_MODEL, D_FF))
    model = backend.make("Encoder", 2, BlockConfig(D_MODEL, H, D_FF), state=state)
    last, hidden, tables = backend.call(model, x)
    assert hidden is None and tables is None
    assert_allclose(last, specification.encoder(state, "", x, None, 2, H)[0], **backend.tolerance)
