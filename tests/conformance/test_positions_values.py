"""Rotary and time-modulated positions: the definition, what they promise, gradients and errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.masks import causal_mask
from tests.support import specification, states
from tests.support.backends import NUMPY, TENSORFLOW, TORCH

B, H, T, S, D = 2, 3, 4, 6, 8


@pytest.mark.parametrize("first, base", [(0, 10000.0), (3, 10000.0), (1, 50.0)])
def test_rotation(backend, rng, first, base):
    x = rng.normal(size=(B, H, T, D))
    found = backend.call(backend.function("rotate"), x, first=first, base=base)
    assert_allclose(found, specification.turned(x, first, base), **backend.tolerance)
    assert_allclose(np.linalg.norm(found, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-5)


@pytest.mark.parametrize("name", ["attention", "fused_attention"])
def test_rotary_attention(backend, rng, name):
    """Equal to attention on turned queries and keys, the queries being the last ones."""
    q, k, v = (rng.normal(size=(B, H, n, D)) for n in (T, S, S))
    mask = rng.random((B, 1, T, S)) < 0.7
    turning = backend.function("rotary")(backend.function(name), 100.0)
    output, weights = backend.call(turning, q, k, v, mask=mask)
    turned = specification.turned(q, S - T, 100.0), specification.turned(k, 0, 100.0)
    expected, expected_weights = specification.attention(*turned, v, mask)
    assert_allclose(output, expected, **backend.tolerance)
    if name == "attention":
        assert_allclose(weights, expected_weights, **backend.tolerance)


def test_rotary_attention_sees_distances_only(backend, rng):
    """Shifting all tokens together changes no weight; shifting one does."""
    q, k = rng.normal(size=(1, 1, T, D)), rng.normal(size=(1, 1, T, D))
    rotate = backend.function("rotate")

    def scores(first_query, first_key):
        turned = [backend.call(rotate, x, first=first) for x, first in ((q, first_query), (k, first_key))]
        return turned[0] @ turned[1].swapaxes(-1, -2)

    assert_allclose(scores(7, 7), scores(0, 0), rtol=1e-4, atol=1e-5)
    assert np.abs(scores(7, 6) - scores(0, 0)).max() > 0.1


def test_rotary_attention_hands_on_dropout(backend, rng):
    seen = []

    def noting(q, k, v, mask=None, dropout=0.0, **options):
        seen.append(dropout)
        return v, None

    x = rng.normal(size=(B, H, T, D))
    backend.call(backend.function("rotary")(noting), x, x, x, dropout=0.25)
    assert seen == [0.25]


def film(backend, longest=3.0):
    state = states.random_state(states.linear("linear", 10, 12))
    return backend.make("TimeModulation", 6, 5, longest, state=state), state


def test_time_modulation(backend, rng):
    x, times = rng.normal(size=(B, T, 6)), np.sort(rng.uniform(0, 3, size=(B, T)), axis=1)
    layer, state = film(backend)
    expected = specification.time_modulation(state, x, times, 5, 3.0)
    assert_allclose(backend.call(layer, x, times), expected, **backend.tolerance)


def test_fresh_time_modulation_leaves_x_nearly_alone(backend, rng):
    backend.seed(3)
    layer = backend.make("TimeModulation", 6, 5, 3.0)
    state = backend.lib.get_state(layer)
    assert_allclose(state["linear.bias"], [1.0] * 6 + [0.0] * 6)
    assert list(state) == ["linear.weight", "linear.bias"] and state["linear.weight"].shape == (12, 10)


def test_time_modulation_depends_on_the_time_and_not_on_the_place(backend, rng):
    layer, _ = film(backend)
    x, times = rng.normal(size=(1, T, 6)), rng.uniform(0, 3, size=(1, T))
    order = [2, 0, 3, 1]
    before = backend.call(layer, x, times)
    assert_allclose(backend.call(layer, x[:, order], times[:, order]), before[:, order], **backend.tolerance)
    assert_allclose(backend.call(layer, x, times + 3.0), before, rtol=1e-4, atol=1e-5)  # one period later
    assert np.abs(backend.call(layer, x, times + 1.0) - before).max() > 0.1


def test_gradients(rng):
    x, times = rng.normal(size=(B, T, 6)), rng.uniform(0, 3, size=(B, T))
    results = {b: b.gradients(film(b)[0], x, times) for b in (TORCH, TENSORFLOW, NUMPY)}
    for i in range(2):
        numerical = results[NUMPY][0][i]
        known = ~np.isnan(numerical)
        for b in (TORCH, TENSORFLOW):
            assert_allclose(results[b][0][i][known], numerical[known], rtol=1e-4, atol=1e-4)
    for name, gradient in results[TORCH][1].items():
        assert_allclose(results[TENSORFLOW][1][name], gradient, rtol=1e-4, atol=1e-5)
    q = rng.normal(size=(B, H, T, D))
    turned = {b: b.gradients(b.function("rotary")(b.function("attention")), q, q, q, mask=b.tensor(causal_mask(T)))[0]
              for b in (TORCH, TENSORFLOW)}  # fmt: skip
    for ours, theirs in zip(turned[TORCH], turned[TENSORFLOW], strict=True):
        assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_bad_arguments(backend, rng):
    rotate, layer = backend.function("rotate"), film(backend)[0]
    with pytest.raises(ValueError, match="even"):
        backend.call(rotate, rng.normal(size=(2, 3, 5)))
    with pytest.raises(ValueError, match="base must be positive"):
        backend.call(rotate, rng.normal(size=(2, 3, 4)), base=-1.0)
    with pytest.raises(ValueError, match="n_harmonics must be positive"):
        backend.make("TimeModulation", 6, 0, 1.0)
    with pytest.raises(ValueError, match="longest must be positive"):
        backend.make("TimeModulation", 6, 2, 0.0)
    with pytest.raises(ValueError, match="times must have shape"):
        backend.call(layer, rng.normal(size=(B, T, 6)), rng.normal(size=(B, T + 1)))
    with pytest.raises(ValueError, match="times must have shape"):
        backend.call(layer, rng.normal(size=(B, T, 6)), rng.normal(size=(T,)))
    with pytest.raises(ValueError, match="x must have shape"):
        backend.call(layer, rng.normal(size=(B, T, 5)), rng.normal(size=(B, T)))
