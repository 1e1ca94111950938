"""DecoderLayer, Decoder and Transformer against the loop specification, and against torch.nn.Transformer."""

import math
import warnings

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from course_lib.masks import causal_mask
from course_lib.models.blocks import BlockConfig
from course_lib.models.transformer import TransformerConfig
from tests.support import specification, states

B, T, S, D_MODEL, H, D_FF = 2, 4, 5, 6, 3, 10
SIZES = {"source_vocab": 11, "target_vocab": 9, "d_model": 6, "n_layers": 2, "n_heads": 3, "d_ff": 10, "max_len": 8}
SOURCE = np.array([[3, 10, 1, 7, 5], [2, 8, 4, 0, 0]])
TARGET = np.array([[1, 8, 3, 2], [1, 5, 0, 0]])
VARIANTS = {
    "paper": {},
    "pre-norm": {"pre_norm": True},
    "learned positions, own output": {"positions": "learned", "tie_output": False},
    "no positions, gelu": {"positions": None, "activation": "gelu"},
    "shared embeddings": {"target_vocab": 11, "share_embeddings": True},
    "shared embeddings, own output, another padding": {
        "target_vocab": 11,
        "share_embeddings": True,
        "tie_output": False,
        "pad_id": 3,
    },
    "wide epsilon": {"norm_eps": 0.1},
}


def config_of(variant, **changes):
    return TransformerConfig(**{**SIZES, "dropout": 0.0, **VARIANTS[variant], **changes})


def problem(rng):
    x, memory = rng.normal(size=(B, T, D_MODEL)), rng.normal(size=(B, S, D_MODEL))
    return x, memory, rng.random((B, 1, T, T)) < 0.6, rng.random((B, H, T, S)) < 0.6


@pytest.mark.parametrize("norm", ["post_norm", "pre_norm"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_decoder_layer(backend, rng, norm, activation):
    x, memory, mask, memory_mask = problem(rng)
    state = states.random_state(states.decoder_layer(D_MODEL, D_FF))
    settings = {"activation": activation, "pre_norm": norm == "pre_norm"}
    layer = backend.make("DecoderLayer", BlockConfig(D_MODEL, H, D_FF, **settings), state=state)
    found = backend.call(layer, x, memory, mask=mask, memory_mask=memory_mask)
    expected = specification.decoder_layer(state, "", x, memory, mask, memory_mask, H, **settings)
    assert found._fields == ("output", "self_weights", "cross_weights")
    for result, wanted in zip(found, expected, strict=True):
        assert_allclose(result, wanted, **backend.tolerance)


@pytest.mark.parametrize("norm", ["post_norm", "pre_norm"])
@pytest.mark.parametrize("attention", ["attention", "fused_attention"])
def test_decoder(backend, rng, norm, attention):
    x, memory, _, memory_mask = problem(rng)
    pre_norm, mask = norm == "pre_norm", causal_mask(T)
    state = states.random_state(states.decoder(2, D_MODEL, D_FF, pre_norm))
    model = backend.make(
        "Decoder", 2, BlockConfig(D_MODEL, H, D_FF, pre_norm=pre_norm), backend.function(attention), state=state
    )
    last, hidden, to_target, to_memory = backend.call(
        model, x, memory, mask=mask, memory_mask=memory_mask, return_layers=True
    )
    expected = specification.decoder(state, "", x, memory, mask, memory_mask, 2, H, pre_norm=pre_norm)
    assert_allclose(last, expected[0], **backend.tolerance)
    assert_allclose(hidden, expected[1], **backend.tolerance)
    if attention == "attention":
        assert_allclose(to_target, expected[2], **backend.tolerance)
        assert_allclose(to_memory, expected[3], **backend.tolerance)
    else:
        assert to_target == to_memory == (None, None)
    assert backend.call(model, x, memory, mask=mask, memory_mask=memory_mask)[1:] == (None, None, None)


@pytest.mark.parametrize("attention", ["attention", "fused_attention"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_transformer(backend, variant, attention):
    config = config_of(variant)
    state = states.random_state(states.transformer(config))
    model = backend.make("Transformer", config, attention=backend.function(attention), state=state)
    found = backend.call(model, SOURCE, TARGET, return_layers=True)
    logits, encoded, decoded = specification.transformer(state, config, SOURCE, TARGET)
    assert_allclose(found.logits, logits, **backend.tolerance)
    assert_allclose(found.encoder_hidden, encoded[1], **backend.tolerance)
    assert_allclose(found.decoder_hidden, decoded[1], **backend.tolerance)
    if attention == "attention":
        assert_allclose(found.encoder_weights, encoded[2], **backend.tolerance)
        assert_allclose(found.self_weights, decoded[2], **backend.tolerance)
        assert_allclose(found.cross_weights, decoded[3], **backend.tolerance)
    assert backend.call(model, SOURCE, TARGET)[1:] == (None,) * 5


def test_shared_keys_and_values_are_those_of_every_head(backend):
    """A Transformer with one head of keys and values is one with equal heads."""
    config, state = config_of("paper"), states.random_state(states.transformer(config_of("paper")))
    shared, d_head = {}, D_MODEL // H
    for name, value in state.items():
        shared[name] = value
        if "k_proj" in name or "v_proj" in name:
            shared[name] = value[:d_head]
            state[name] = np.concatenate([value[:d_head]] * H)
    model = backend.make("Transformer", config_of("paper", n_kv_heads=1), state=shared)
    expected = specification.transformer(state, config, SOURCE, TARGET)[0]
    assert_allclose(backend.call(model, SOURCE, TARGET).logits, expected, **backend.tolerance)


def test_rotary_positions_turn_queries_and_keys_of_self_attention_alone(backend):
    attention = backend.function("attention")

    def queries_and_keys(positions):
        """Of the encoder's first layer, and of the decoder's first self- and cross-attention."""
        seen = []

        def noting(q, k, v, mask=None, **options):
            seen.append(backend.array((q, k)))
            return attention(q, k, v, mask, **options)

        config = config_of("paper", positions=positions, d_model=12, n_layers=1)
        state = states.random_state(states.transformer(config))
        model = backend.make("Transformer", config, attention=noting, state=state)
        memory = backend.call(model, SOURCE, TARGET, return_layers=True).encoder_hidden[-1]
        return seen, memory, backend.lib.get_state(model)

    turned, memory, state = queries_and_keys("rotary")
    plain, _, _ = queries_and_keys(None)
    for call in (0, 1):  # their inputs are the embeddings, equal in both models
        for found, unturned in zip(turned[call], plain[call], strict=True):
            assert_allclose(found, specification.turned(unturned), **backend.tolerance)
    keys = specification.linear(state, "decoder.layers.0.cross_attention.k_proj", memory)
    assert_allclose(turned[2][1], keys.reshape(2, 5, 3, 4).transpose(0, 2, 1, 3), **backend.tolerance)


def fill_torch_attention(layer, state, prefix):
    with torch.no_grad():
        for kind in ("weight", "bias"):
            stacked = np.concatenate([state[f"{prefix}{p}_proj.{kind}"] for p in "qkv"])
            getattr(layer, f"in_proj_{kind}").copy_(torch.from_numpy(stacked))
            getattr(layer.out_proj, kind).copy_(torch.from_numpy(state[f"{prefix}out_proj.{kind}"]))


@pytest.mark.parametrize("norm", ["post_norm", "pre_norm"])
@pytest.mark.parametrize("attention", ["attention", "fused_attention"])
def test_it_equals_torch_nn_transformer(backend, rng, norm, attention):
    """With the same weights and masks; nn.Transformer ends post-norm stacks with one norm more, taken off here."""
    pre_norm = norm == "pre_norm"
    config = config_of("paper", pre_norm=pre_norm, d_model=12)
    state = states.random_state(states.transformer(config))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nested tensors will not be used
        theirs = torch.nn.Transformer(
            12, 3, 2, 2, 10, dropout=0.0, batch_first=True, norm_first=pre_norm, dtype=torch.float64
        ).eval()
    plain = {name.replace("feed_forward.", ""): torch.from_numpy(v) for name, v in state.items()}
    theirs.load_state_dict({name: v for name, v in plain.items() if "attention" not in name}, strict=False)
    for n in range(2):
        fill_torch_attention(theirs.encoder.layers[n].self_attn, state, f"encoder.layers.{n}.attention.")
        fill_torch_attention(theirs.decoder.layers[n].self_attn, state, f"decoder.layers.{n}.self_attention.")
        fill_torch_attention(theirs.decoder.layers[n].multihead_attn, state, f"decoder.layers.{n}.cross_attention.")
    if not pre_norm:
        theirs.encoder.norm = theirs.decoder.norm = None
    source, target = (
        torch.from_numpy(math.sqrt(12) * state[f"{side}_embedding.weight"][ids] + specification.sinusoids(8, 12)[:n])
        for side, ids, n in (("source", SOURCE, 5), ("target", TARGET, 4))
    )
    hidden_source, hidden_target = torch.from_numpy(SOURCE == 0), torch.from_numpy(TARGET == 0)  # there True = hidden
    expected = (
        theirs(
            source,
            target,
            tgt_mask=~torch.ones(4, 4, dtype=torch.bool).tril(),
            src_key_padding_mask=hidden_source,
            memory_key_padding_mask=hidden_source,
            tgt_key_padding_mask=hidden_target,
        )
        @ torch.from_numpy(state["target_embedding.weight"]).T
    )
    model = backend.make("Transformer", config, attention=backend.function(attention), state=state)
    found = backend.call(model, SOURCE, TARGET).logits
    assert_allclose(found, expected.detach(), rtol=1e-5, atol=1e-5)


def test_fresh_weights(backend):
    """Embeddings times sqrt(d_model) have unit variance; linear layers are Glorot's, their biases zero."""
    config = TransformerConfig(300, 200, d_model=64, n_layers=1, n_heads=4, d_ff=128, tie_output=False)
    state = backend.lib.get_state(backend.make("Transformer", config))
    assert state.keys() == states.transformer(config).keys()
    for side in ("source", "target"):
        assert_allclose(8 * state[f"{side}_embedding.weight"].std(), 1.0, atol=0.03)
    for name, value in state.items():
        if value.ndim == 2 and "embedding" not in name:
            bound = math.sqrt(6 / sum(value.shape))
            assert 0.95 * bound < np.abs(value).max() <= 1.0001 * bound, name
        elif name.endswith("bias"):
            assert not value.any(), name


def test_it_trains_every_weight(training_backend):
    config = config_of("learned positions, own output", activation="gelu", max_len=5)
    shapes = states.transformer(config)
    model = training_backend.make("Transformer", config, state=states.random_state(shapes))
    _, gradients = training_backend.gradients(model, SOURCE, np.concatenate([TARGET, TARGET[:, :1]], axis=1))
    assert gradients.keys() == shapes.keys()
    still = [name for name, gradient in gradients.items() if np.abs(gradient).max() < 1e-6]
    assert all(name.endswith("k_proj.bias") for name in still), still  # softmax does not see it
