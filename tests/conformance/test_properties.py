"""What must hold whatever the weights: masks, order, padding, extremes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.masks import causal_mask, padding_mask
from course_lib.models.bert import BertConfig
from course_lib.models.blocks import BlockConfig
from tests.support import states

B, H, T, S, D = 2, 3, 5, 7, 4
D_MODEL, D_FF = 12, 10
BOTH = pytest.mark.parametrize("name", ["attention", "fused_attention"])


def q_k_v(rng, scale=1.0):
    return [scale * rng.normal(size=(B, H, n, D)) for n in (T, S, S)]


def multi_head(backend, name="attention", seed=0):
    state = states.random_state(states.multi_head_attention(D_MODEL), seed)
    return backend.make("MultiHeadAttention", D_MODEL, H, attention=backend.function(name), state=state)


def encoder(backend, pre_norm=False, seed=0):
    state = states.random_state(states.encoder(2, D_MODEL, D_FF, pre_norm), seed)
    return backend.make("Encoder", 2, BlockConfig(D_MODEL, H, D_FF, pre_norm=pre_norm), state=state)


@BOTH
def test_true_attends(backend, rng, name):
    """A query that may see one key gets that key's value."""
    q, k, v = q_k_v(rng)
    for key in (0, 3, S - 1):
        mask = np.arange(S) == key
        output = backend.call(backend.function(name), q, k, v, mask=mask).output
        assert_allclose(output, np.broadcast_to(v[:, :, key : key + 1], output.shape), rtol=1e-6)


@BOTH
def test_a_hidden_key_and_value_change_nothing(backend, rng, name):
    q, k, v = q_k_v(rng)
    mask = np.array([True, True, False, True, False, True, True])
    before = backend.call(backend.function(name), q, k, v, mask=mask).output
    k[:, :, ~mask], v[:, :, ~mask] = 50.0, -1e3
    assert_allclose(backend.call(backend.function(name), q, k, v, mask=mask).output, before, **backend.tolerance)
    k[:, :, 0], v[:, :, 0] = 2.0, 3.0
    assert np.abs(backend.call(backend.function(name), q, k, v, mask=mask).output - before).max() > 0.1


@BOTH
def test_an_empty_row_gives_zeros_and_finite_gradients(backend, rng, name):
    q, k, v = q_k_v(rng)
    mask = np.ones((B, 1, T, S), dtype=bool)
    mask[1, 0, 2] = False
    output, weights = backend.call(backend.function(name), q, k, v, mask=mask)
    assert_allclose(output[1, :, 2], 0.0, atol=1e-7)
    assert np.abs(output[0]).min() > 0 and np.isfinite(output).all()
    if weights is not None:
        assert_allclose(weights[1, :, 2], 0.0, atol=1e-7)
    if backend.has_training:
        by_input, _ = backend.gradients(backend.function(name), q, k, v, mask=backend.tensor(mask))
        assert all(np.isfinite(gradient).all() for gradient in by_input)
        assert_allclose(by_input[0][1, :, 2], 0.0, atol=1e-7)  # a query that sees nothing gets no gradient


@BOTH
def test_an_empty_row_of_multi_head_attention_is_the_output_bias(backend, rng, name):
    layer = multi_head(backend, name)
    x = rng.normal(size=(B, T, D_MODEL))
    mask = np.ones((B, 1, T, T), dtype=bool)
    mask[0, 0, 1] = False
    output = backend.call(layer, x, x, x, mask=mask).output
    bias = backend.lib.get_state(layer)["out_proj.bias"]
    assert_allclose(output[0, 1], bias, rtol=1e-6)
    if backend.has_training:
        by_input, by_weight = backend.gradients(layer, x, x, x, mask=backend.tensor(mask))
        assert all(np.isfinite(gradient).all() for gradient in (*by_input, *by_weight.values()))


@BOTH
def test_the_future_changes_nothing_before_it(backend, rng, name):
    state = states.random_state(states.encoder(2, D_MODEL, D_FF))
    model = backend.make("Encoder", 2, BlockConfig(D_MODEL, H, D_FF), backend.function(name), state=state)
    x = rng.normal(size=(B, T, D_MODEL))
    before = backend.call(model, x, mask=causal_mask(T)).last_hidden
    for t in range(1, T):
        changed = x.copy()
        changed[:, t:] += rng.normal(size=changed[:, t:].shape)
        after = backend.call(model, changed, mask=causal_mask(T)).last_hidden
        assert_allclose(after[:, :t], before[:, :t], **backend.tolerance)
        assert np.abs(after[:, t] - before[:, t]).max() > 1e-2


def test_with_more_keys_than_queries_the_queries_are_the_last_ones(backend, rng):
    layer = multi_head(backend)
    x = rng.normal(size=(B, S, D_MODEL))
    whole = backend.call(layer, x, x, x, mask=causal_mask(S)).output
    last = backend.call(layer, x[:, -2:], x, x, mask=causal_mask(2, S)).output
    assert_allclose(last, whole[:, -2:], **backend.tolerance)


@BOTH
def test_permuting_keys_values_and_mask_together_changes_nothing(backend, rng, name):
    q, k, v = q_k_v(rng)
    mask = rng.random((B, H, T, S)) < 0.6
    order = rng.permutation(S)
    before = backend.call(backend.function(name), q, k, v, mask=mask).output
    after = backend.call(backend.function(name), q, k[:, :, order], v[:, :, order], mask=mask[..., order]).output
    assert_allclose(after, before, **backend.tolerance)
    only_keys = backend.call(backend.function(name), q, k[:, :, order], v, mask=mask).output
    assert np.abs(only_keys - before).max() > 1e-2


@pytest.mark.parametrize("norm", ["post_norm", "pre_norm"])
def test_without_positions_a_permutation_of_tokens_permutes_the_output(backend, rng, norm):
    model = encoder(backend, norm == "pre_norm")
    x, order = rng.normal(size=(B, T, D_MODEL)), np.array([3, 0, 4, 1, 2])
    before = backend.call(model, x).last_hidden
    assert_allclose(backend.call(model, x[:, order]).last_hidden, before[:, order], **backend.tolerance)


@pytest.mark.parametrize("positions", ["SinusoidalPositions", "LearnedPositions"])
def test_with_positions_it_does_not(backend, rng, positions):
    model = encoder(backend)
    table = backend.make(positions, D_MODEL, 9)
    if positions == "LearnedPositions":
        backend.lib.set_state(table, {"weight": rng.normal(size=(9, D_MODEL))})
    x, order = rng.normal(size=(B, T, D_MODEL)), np.array([3, 0, 4, 1, 2])
    before = backend.call(model, backend.call(table, x)).last_hidden
    after = backend.call(model, backend.call(table, x[:, order])).last_hidden
    assert np.abs(after - before[:, order]).max() > 1e-2


def test_each_sequence_of_a_batch_is_computed_by_itself(backend, rng):
    model = encoder(backend)
    x = rng.normal(size=(3, T, D_MODEL))
    whole = backend.call(model, x).last_hidden
    for b in range(3):
        assert_allclose(backend.call(model, x[b : b + 1]).last_hidden, whole[b : b + 1], **backend.tolerance)


@pytest.mark.parametrize("name", ["attention", "fused_attention"])
def test_a_padded_batch_equals_its_sequences_one_by_one(backend, rng, name):
    config = BertConfig(vocab_size=20, d_model=D_MODEL, n_layers=2, n_heads=H, d_ff=D_FF, max_len=9)
    state = states.random_state(states.classifier(config))
    model = backend.make("BertForSequenceClassification", config, attention=backend.function(name), state=state)
    lengths = [1, 4, 7]
    ids = np.zeros((3, 7), dtype=np.int64)
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = rng.integers(1, 20, size=length)
    segments = rng.integers(0, 2, size=ids.shape)
    batch = backend.call(model, ids, mask=padding_mask(ids), segments=segments, return_layers=True)
    for b, length in enumerate(lengths):
        part = (slice(b, b + 1), slice(0, length))
        alone = backend.call(model, ids[part], segments=segments[part], return_layers=True)
        assert_allclose(batch.logits[b : b + 1], alone.logits, **backend.tolerance)
        for padded, single in zip(batch.hidden, alone.hidden, strict=True):
            assert_allclose(padded[part], single, **backend.tolerance)


@pytest.mark.parametrize("mask", ["none", "causal", "random"])
def test_rows_of_weights_sum_to_one_or_to_zero(backend, rng, mask):
    q, k, v = q_k_v(rng, scale=2.0)
    mask = {"none": None, "causal": causal_mask(T, S), "random": rng.random((B, H, T, S)) < 0.2}[mask]
    weights = backend.call(backend.function("attention"), q, k, v, mask=mask).weights
    allowed = np.broadcast_to(True if mask is None else mask, weights.shape)
    assert (weights >= 0.0).all() and (weights[~allowed] == 0.0).all()
    assert_allclose(weights.sum(axis=-1), allowed.any(axis=-1), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("size", [1e4, -1e4, 1e30])
def test_softmax_survives_large_scores(backend, size):
    scores = np.array([[size, size - abs(size) / 1e4, 0.0], [size, size, size]])
    weights = backend.call(backend.function("softmax"), scores)
    assert np.isfinite(weights).all()
    assert_allclose(weights[1], 1 / 3, rtol=1e-6)
    shifted = scores[0] - scores[0].max()
    assert_allclose(weights[0], np.exp(shifted) / np.exp(shifted).sum(), rtol=2e-4, atol=1e-12)


@BOTH
def test_attention_survives_large_scores(backend, rng, name):
    q, k, v = q_k_v(rng)
    output = backend.call(backend.function(name), 100.0 * q, 100.0 * k, v, mask=causal_mask(T, S)).output
    scores = np.where(causal_mask(T, S), q @ k.swapaxes(-1, -2), -np.inf)
    best = scores.argmax(axis=-1)  # scores of 1e4 leave the largest alone
    expected = np.take_along_axis(v, best[..., None], axis=2)
    gap = np.sort(scores, axis=-1)
    clear = gap[..., -1] - np.where(np.isfinite(gap[..., -2]), gap[..., -2], -np.inf) > 0.01
    assert clear.mean() > 0.9
    assert_allclose(output[clear], expected[clear], rtol=1e-5, atol=1e-6)


def test_one_key_gets_all_the_weight(backend, rng):
    q, k, v = rng.normal(size=(1, 1, 1, D)), rng.normal(size=(1, 1, 1, D)), rng.normal(size=(1, 1, 1, D))
    output, weights = backend.call(backend.function("attention"), q, k, v)
    assert_allclose(weights, 1.0, rtol=1e-7)
    assert_allclose(output, v, rtol=1e-6)


@BOTH
@pytest.mark.parametrize(
    "shape", [(1, 1), (1, T), (B, 1), (0, T)], ids=["one token", "one sequence", "length one", "empty"]
)
def test_small_batches(backend, rng, name, shape):
    x = rng.normal(size=(*shape, D_MODEL))
    mask = padding_mask(np.ones(shape, dtype=np.int64)) & causal_mask(shape[1])
    layer = multi_head(backend, name)
    output = backend.call(layer, x, x, x, mask=mask).output
    assert output.shape == x.shape and np.isfinite(output).all()
    if shape[1] == 1 and shape[0]:  # one key: attention passes its value through both projections
        state = backend.lib.get_state(layer)
        v = x @ state["v_proj.weight"].T + state["v_proj.bias"]
        assert_allclose(output, v @ state["out_proj.weight"].T + state["out_proj.bias"], rtol=1e-4, atol=1e-5)


def test_bert_takes_an_empty_batch(backend):
    config = BertConfig(vocab_size=20, d_model=D_MODEL, n_layers=1, n_heads=H, d_ff=D_FF, max_len=9)
    model = backend.make("BertForSequenceClassification", config)
    assert backend.call(model, np.zeros((0, 4), dtype=np.int64)).logits.shape == (0, 2)


def test_the_full_length_is_allowed(backend, rng):
    config = BertConfig(vocab_size=20, d_model=D_MODEL, n_layers=1, n_heads=H, d_ff=D_FF, max_len=9)
    model = backend.make("BertModel", config)
    assert backend.call(model, rng.integers(0, 20, size=(1, 9))).last_hidden.shape == (1, 9, D_MODEL)
    x = rng.normal(size=(1, 9, D_MODEL))
    for name in ("SinusoidalPositions", "LearnedPositions"):
        assert backend.call(backend.make(name, D_MODEL, 9), x).shape == x.shape


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_ids_of_any_integer_width(backend, kind):
    config = BertConfig(vocab_size=20, d_model=D_MODEL, n_layers=1, n_heads=H, d_ff=D_FF, max_len=9)
    model = backend.make("BertModel", config)
    ids = np.array([[3, 19, 0]])
    expected = backend.call(model, ids, segments=np.zeros_like(ids)).pooled
    result = backend.call(model, ids.astype(kind), segments=np.zeros(ids.shape, kind)).pooled
    assert_allclose(result, expected, rtol=1e-7)


@BOTH
def test_inputs_are_not_changed(backend, rng, name):
    tensors = [backend.tensor(x) for x in q_k_v(rng)]
    mask = backend.tensor(rng.random((B, 1, T, S)) < 0.5)
    before = [backend.array(x).copy() for x in (*tensors, mask)]
    backend.function(name)(*tensors, mask)
    for tensor, array in zip((*tensors, mask), before, strict=True):
        np.testing.assert_array_equal(backend.array(tensor), array)
