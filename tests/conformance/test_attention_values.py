"""attention, fused_attention and MultiHeadAttention against the loop specification."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.masks import causal_mask, padding_mask
from tests.support import specification, states

B, H, T, S, D_K, D_V = 2, 3, 5, 7, 4, 6
D_MODEL = 12


def queries_keys_values(rng, lead=(B, H)):
    return rng.normal(size=(*lead, T, D_K)), rng.normal(size=(*lead, S, D_K)), rng.normal(size=(*lead, S, D_V))


def masks(rng):
    """Masks that broadcast in every way, some with rows that allow nothing."""
    ids = np.array([[5, 3, 9, 4, 0, 0, 0], [7, 1, 2, 8, 6, 4, 0]])
    full = rng.random((B, H, T, S)) < 0.5
    full[1, 2, 3] = False
    return {
        "none": None,
        "padding": padding_mask(ids),
        "causal": causal_mask(T, S),
        "both": padding_mask(ids) & causal_mask(T, S),
        "full": full,
        "keys only": np.array([True, False, True, True, False, True, True]),
        "queries by keys": full[0, 0],
        "nothing allowed": np.zeros((1, 1, 1, 1), dtype=bool),
        "one value": np.array(False),
    }


MASKS = list(masks(np.random.default_rng(0)))


@pytest.mark.parametrize("mask", MASKS)
def test_attention_equals_the_specification(backend, rng, mask):
    q, k, v = queries_keys_values(rng)
    mask = masks(rng)[mask]
    output, weights = backend.call(backend.function("attention"), q, k, v, mask=mask)
    expected_output, expected_weights = specification.attention(q, k, v, mask)
    assert_allclose(output, expected_output, **backend.tolerance)
    assert_allclose(weights, expected_weights, **backend.tolerance)


@pytest.mark.parametrize("mask", MASKS)
def test_fused_attention_equals_the_specification(backend, rng, mask):
    q, k, v = queries_keys_values(rng)
    mask = masks(rng)[mask]
    output, weights = backend.call(backend.function("fused_attention"), q, k, v, mask=mask)
    assert weights is None
    assert_allclose(output, specification.attention(q, k, v, mask)[0], **backend.tolerance)


@pytest.mark.parametrize("name", ["attention", "fused_attention"])
@pytest.mark.parametrize("lead", [(), (3,), (2, 1, 3)], ids=str)
def test_any_leading_axes(backend, rng, name, lead):
    q, k, v = queries_keys_values(rng, lead)
    mask = rng.random((T, S)) < 0.6
    output = backend.call(backend.function(name), q, k, v, mask=mask).output
    assert_allclose(output, specification.attention(q, k, v, mask)[0], **backend.tolerance)


@pytest.mark.parametrize("lead", [(1, 3), (2, 3)], ids=str)
@pytest.mark.parametrize("length", [1, T])
def test_fused_attention_of_few_queries_of_few_sequences(backend, rng, lead, length):
    """One query of one sequence, as decoding asks for each token, may go a way of its own."""
    q, k, v = queries_keys_values(rng, lead)
    q, mask = q[..., :length, :], np.array([True, False, True, True, False, True, True])
    output = backend.call(backend.function("fused_attention"), q, k, v, mask=mask).output
    assert_allclose(output, specification.attention(q, k, v, mask)[0], **backend.tolerance)


@pytest.mark.parametrize("shape", [(2, 3, 4), (5,), (1, 1)], ids=str)
def test_softmax_equals_the_specification(backend, rng, shape):
    scores = 3.0 * rng.normal(size=shape)
    expected = np.array(
        [specification.softmax(row.tolist(), [True] * shape[-1]) for row in scores.reshape(-1, shape[-1])]
    )
    weights = backend.call(backend.function("softmax"), scores)
    assert_allclose(weights, expected.reshape(shape), **backend.tolerance)


@pytest.mark.parametrize("attention", ["attention", "fused_attention"])
@pytest.mark.parametrize("mask", MASKS)
def test_multi_head_attention_equals_the_specification(backend, rng, attention, mask):
    q, k, v = rng.normal(size=(B, T, D_MODEL)), rng.normal(size=(B, S, D_MODEL)), rng.normal(size=(B, S, D_MODEL))
    mask = masks(rng)[mask]
    state = states.random_state(states.multi_head_attention(D_MODEL))
    layer = backend.make("MultiHeadAttention", D_MODEL, H, attention=backend.function(attention), state=state)
    output, weights = backend.call(layer, q, k, v, mask=mask)
    expected_output, expected_weights = specification.multi_head_attention(state, "", q, k, v, mask, H)
    assert_allclose(output, expected_output, **backend.tolerance)
    if attention == "attention":
        assert_allclose(weights, expected_weights, **backend.tolerance)
    else:
        assert weights is None


def test_split_gives_each_head_its_own_features_and_merge_is_the_inverse(backend, rng):
    x = rng.normal(size=(B, T, D_MODEL))
    layer = backend.make("MultiHeadAttention", D_MODEL, H)
    heads = backend.call(layer.split, x)
    assert heads.shape == (B, H, T, D_MODEL // H)
    for h in range(H):
        assert_allclose(heads[:, h], x[:, :, 4 * h : 4 * h + 4], **backend.tolerance)
    assert_allclose(backend.call(layer.merge, heads), x, **backend.tolerance)


def test_padding_mask_is_made_in_the_tensors_own_framework(backend):
    ids = np.array([[4, 2, 0, 9], [0, 0, 7, 7]])
    mask = padding_mask(backend.tensor(ids), pad_id=7)
    assert isinstance(mask, type(backend.tensor(ids)))
    expected = [[[[True, True, True, True]]], [[[True, True, False, False]]]]
    assert backend.array(mask).dtype == bool
    np.testing.assert_array_equal(backend.array(mask), expected)
