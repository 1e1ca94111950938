"""The same weights in `torch.nn` and `keras.layers`: outside references for attention and the encoder layer."""

import keras
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from course_lib.models.blocks import BlockConfig
from tests.support import states

B, T, S, D_MODEL, H, D_FF = 2, 5, 7, 12, 3, 10


def as_torch(value):
    return torch.from_numpy(np.array(value, dtype=np.float64))


def fill_torch_attention(layer, state, prefix=""):
    """Our separate projections into the one stacked matrix of nn.MultiheadAttention."""
    with torch.no_grad():
        for kind in ("weight", "bias"):
            stacked = np.concatenate([state[f"{prefix}{p}_proj.{kind}"] for p in "qkv"])
            getattr(layer, f"in_proj_{kind}").copy_(as_torch(stacked))
            getattr(layer.out_proj, kind).copy_(as_torch(state[f"{prefix}out_proj.{kind}"]))


def mask_without_empty_rows(rng, shape):
    mask = rng.random(shape) < 0.6
    mask[..., 0] = True  # PyTorch gives NaN for an empty row
    return mask


@pytest.mark.parametrize("masked", [False, True], ids=["no mask", "mask"])
def test_torch_multi_head_attention(backend, rng, masked):
    q, k, v = (rng.normal(size=(B, n, D_MODEL)) for n in (T, S, S))
    mask = mask_without_empty_rows(rng, (B, H, T, S)) if masked else None
    state = states.random_state(states.multi_head_attention(D_MODEL))
    theirs = torch.nn.MultiheadAttention(D_MODEL, H, batch_first=True, dtype=torch.float64).eval()
    fill_torch_attention(theirs, state)
    hidden = None if mask is None else torch.from_numpy(~mask.reshape(B * H, T, S))  # there True = hidden
    expected, weights = theirs(as_torch(q), as_torch(k), as_torch(v), attn_mask=hidden, average_attn_weights=False)
    output = backend.call(backend.make("MultiHeadAttention", D_MODEL, H, state=state), q, k, v, mask=mask)
    assert_allclose(output.output, expected.detach(), **backend.tolerance)
    assert_allclose(output.weights, weights.detach(), **backend.tolerance)


@pytest.mark.parametrize("masked", [False, True], ids=["no mask", "mask"])
def test_keras_multi_head_attention(backend, rng, masked):
    q, k, v = (rng.normal(size=(B, n, D_MODEL)).astype(np.float32) for n in (T, S, S))
    mask = mask_without_empty_rows(rng, (B, 1, T, S)) if masked else None
    state = states.random_state(states.multi_head_attention(D_MODEL))
    theirs = keras.layers.MultiHeadAttention(H, D_MODEL // H)
    theirs.build(query_shape=q.shape, value_shape=v.shape, key_shape=k.shape)
    names = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "attention_output": "out_proj"}
    for variable in theirs.variables:
        part, kind = variable.path.split("/")[-2:]
        if part in names:
            value = state[f"{names[part]}.{'weight' if kind == 'kernel' else 'bias'}"]
            variable.assign((value.T if kind == "kernel" else value).reshape(variable.shape))
    expected, weights = theirs(
        query=q, key=k, value=v, return_attention_scores=True, attention_mask=None if mask is None else mask[:, 0]
    )
    output = backend.call(backend.make("MultiHeadAttention", D_MODEL, H, state=state), q, k, v, mask=mask)
    assert_allclose(output.output, expected.numpy(), rtol=1e-4, atol=1e-5)
    assert_allclose(output.weights, weights.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm", ["post_norm", "pre_norm"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_torch_encoder_layer(backend, rng, norm, activation):
    pre_norm = norm == "pre_norm"
    x, mask = rng.normal(size=(B, T, D_MODEL)), mask_without_empty_rows(rng, (T, T))
    state = states.random_state(states.encoder_layer(D_MODEL, D_FF))
    theirs = torch.nn.TransformerEncoderLayer(
        D_MODEL, H, D_FF, 0.0, activation, norm_first=pre_norm, batch_first=True, dtype=torch.float64
    ).eval()
    fill_torch_attention(theirs.self_attn, state, "attention.")
    plain = {name.removeprefix("feed_forward."): value for name, value in state.items() if "attention" not in name}
    theirs.load_state_dict({name: as_torch(value) for name, value in plain.items()}, strict=False)
    expected = theirs(as_torch(x), src_mask=torch.from_numpy(~mask)).detach()
    block = BlockConfig(D_MODEL, H, D_FF, activation=activation, pre_norm=pre_norm)
    ours = backend.make("EncoderLayer", block, state=state)
    assert_allclose(backend.call(ours, x, mask=mask)[0], expected, **backend.tolerance)


def test_torch_functional_attention(backend, rng):
    q, k, v = rng.normal(size=(B, H, T, 4)), rng.normal(size=(B, H, S, 4)), rng.normal(size=(B, H, S, 6))
    mask = mask_without_empty_rows(rng, (B, 1, T, S))
    expected = torch.nn.functional.scaled_dot_product_attention(
        as_torch(q), as_torch(k), as_torch(v), torch.from_numpy(mask)
    )
    for name in ("attention", "fused_attention"):
        output = backend.call(backend.function(name), q, k, v, mask=mask).output
        assert_allclose(output, expected, **backend.tolerance)
