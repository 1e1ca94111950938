"""What must hold of every Transformer: causality, padding, order, gradients, decoding by steps, dropout, errors."""

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_transformer_values import SIZES, SOURCE, TARGET, config_of

from course_lib.models.blocks import BlockConfig
from course_lib.models.transformer import TransformerConfig
from tests.support import states
from tests.support.backends import NUMPY, TENSORFLOW, TORCH

KINDS = {
    "paper": {},
    "pre-norm": {"pre_norm": True, "n_layers": 1},
    "learned": {"positions": "learned", "n_layers": 1},
    "rotary": {"positions": "rotary", "d_model": 12},
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
PAIRS = [(kind, "fused_attention") for kind in KINDS] + [(kind, "attention") for kind in ("paper", "rotary")]
KINDS_BY_ATTENTION = pytest.mark.parametrize(("kind", "attention"), PAIRS)


@functools.cache
def build(backend, kind="paper", attention="attention", **changes):
    """One model for all tests that ask for the same: TensorFlow traces each model's decoding anew."""
    config = config_of("paper", **KINDS[kind], **changes)
    state = states.random_state(states.transformer(config))
    return backend.make("Transformer", config, attention=backend.function(attention), state=state)


@KINDS_BY_ATTENTION
def test_the_future_changes_nothing_before_it(backend, kind, attention):
    model, target = build(backend, kind, attention), np.array([[1, 8, 3, 2], [1, 5, 7, 4]])
    before = backend.call(model, SOURCE, target).logits
    for t in range(1, 4):
        changed = target.copy()
        changed[:, t:] = 1 + (changed[:, t:] + 2) % 8
        after = backend.call(model, SOURCE, changed).logits
        assert_allclose(after[:, :t], before[:, :t], **backend.tolerance)
        assert np.abs(after[:, t] - before[:, t]).max() > 1e-2


@KINDS_BY_ATTENTION
def test_a_padded_batch_equals_its_pairs_one_by_one(backend, kind, attention):
    model = build(backend, kind, attention)
    together = backend.call(model, SOURCE, TARGET).logits
    for b in range(2):
        s, t = (SOURCE[b] != 0).sum(), (TARGET[b] != 0).sum()
        alone = backend.call(model, SOURCE[b : b + 1, :s], TARGET[b : b + 1, :t]).logits
        assert_allclose(together[b : b + 1, :t], alone, **backend.tolerance)


def test_padding_on_the_left_of_the_target_is_hidden_too(backend):
    model = build(backend, positions=None)
    alone = backend.call(model, SOURCE[:1], TARGET[:1]).logits
    padded = np.concatenate([[[0, 0]], TARGET[:1]], axis=1)
    assert_allclose(backend.call(model, SOURCE[:1], padded).logits[:, 2:], alone, **backend.tolerance)


@pytest.mark.parametrize("side", ["source", "target"])
@EVERY_KIND
def test_order_matters(backend, kind, side):
    model = build(backend, kind)
    source, target = SOURCE[:1], np.array([[1, 8, 3, 2]])
    before = backend.call(model, source, target).logits[:, -1]
    if side == "source":
        source = source[:, [1, 0, 2, 3, 4]]
    else:
        target = target[:, [0, 2, 1, 3]]
    assert np.abs(backend.call(model, source, target).logits[:, -1] - before).max() > 1e-2


def test_without_positions_the_order_of_the_source_does_not_matter(backend):
    model = build(backend, positions=None)
    before = backend.call(model, SOURCE[:1], TARGET[:1]).logits
    assert_allclose(backend.call(model, SOURCE[:1, [3, 1, 4, 0, 2]], TARGET[:1]).logits, before, **backend.tolerance)


@pytest.mark.parametrize("kind", ["paper", "pre-norm", "rotary"])
def test_gradients(kind):
    """By every weight: PyTorch's against TensorFlow's, and both against central differences of the reference."""
    results = {b: b.gradients(build(b, kind), SOURCE, TARGET)[1] for b in (TORCH, TENSORFLOW, NUMPY)}
    for name, gradient in results[TORCH].items():
        assert_allclose(results[TENSORFLOW][name], gradient, rtol=1e-4, atol=2e-5, err_msg=name)
        numerical = results[NUMPY][name]
        known = ~np.isnan(numerical)
        assert known.any()
        assert_allclose(gradient[known], numerical[known], rtol=1e-4, atol=2e-5, err_msg=name)
    assert np.abs(results[TORCH]["source_embedding.weight"][7]).max() > 1e-3


def read(step, ids, first=1):
    """The logits after each token from number `first` on, (N, t, V)."""
    return np.stack([step(ids[:, :t]) for t in range(first, ids.shape[1] + 1)], axis=1)


@KINDS_BY_ATTENTION
def test_decoding_by_steps_equals_the_whole(backend, kind, attention):
    model, ids = build(backend, kind, attention), np.array([[1, 8, 3, 2, 6, 7, 7], [1, 5, 7, 4, 8, 2, 3]])
    whole = backend.call(model, SOURCE, ids).logits
    for cached in (True, False):
        found = read(model.next_logits(SOURCE, cached), ids)
        assert isinstance(found, np.ndarray)
        assert_allclose(found, whole, **backend.tolerance)
    assert_allclose(read(model.next_logits(SOURCE[1:]), ids[1:]), whole[1:], **backend.tolerance)


@pytest.mark.parametrize("cached", [True, False])
def test_rows_may_be_reordered_repeated_and_left_out(backend, cached):
    model, step, origin = build(backend), build(backend).next_logits(SOURCE, cached), np.array([0, 1])
    ids = np.array([[1, 8], [1, 5]])
    read(step, ids)
    for rows, new in (([1, 0, 0], [4, 6, 7]), ([2, 0], [3, 8]), ([1, 1], [2, 7])):
        step.reorder(np.array(rows))
        origin, ids = origin[rows], np.concatenate([ids[rows], np.array(new)[:, None]], axis=1)
        expected = backend.call(model, SOURCE[origin], ids).logits[:, -1]
        assert_allclose(step(ids), expected, **backend.tolerance)
    assert_allclose(ids[0], [1, 5, 4, 8, 2])


def test_several_new_tokens_at_once(backend):
    model = build(backend, "rotary")
    step = model.next_logits(SOURCE)
    whole = backend.call(model, SOURCE, np.array([[1, 8, 3, 2, 6], [1, 5, 7, 4, 4]])).logits
    for t in (3, 5):
        found = step(np.array([[1, 8, 3, 2, 6], [1, 5, 7, 4, 4]])[:, :t])
        assert_allclose(found, whole[:, t - 1], **backend.tolerance)


def test_padding_of_a_finished_row_is_hidden_by_the_cache_too(backend):
    model, ids = build(backend), np.array([[1, 8, 3, 2], [1, 5, 0, 0]])
    step = model.next_logits(SOURCE)
    for t in range(1, 5):
        found = step(ids[:, :t])
    assert_allclose(found, backend.call(model, SOURCE, ids).logits[:, -1], **backend.tolerance)


def test_the_tokens_must_continue_what_was_read(backend):
    step = build(backend).next_logits(SOURCE)
    step(np.array([[1, 4], [1, 5]]))
    with pytest.raises(ValueError, match="2 tokens of each row are read"):
        step(np.array([[1, 4], [1, 5]]))
    with pytest.raises(ValueError, match="`reorder` chooses other rows"):
        step(np.array([[1, 4, 3]]))


def test_decoding_uses_no_dropout_and_leaves_the_mode_alone(training_backend):
    model = build(training_backend, dropout=0.5, attention_dropout=0.5)
    if hasattr(model, "train"):
        model.train()
    first, again = (read(model.next_logits(SOURCE), TARGET) for _ in range(2))
    assert_allclose(first, again, rtol=1e-6)
    if hasattr(model, "train"):
        assert model.training


@pytest.mark.parametrize("norm", ["post_norm", "pre_norm"])
def test_dropout_of_the_three_sub_layers_of_the_decoder(training_backend, norm):
    """Sub-layers that give the constants 1, 10 and 100 are kept or dropped one by one, and never the residual."""
    backend, d_model, p = training_backend, 40, 0.25
    state = {name: np.zeros(shape) for name, shape in states.decoder_layer(d_model, 4).items()}
    parts = ("self_attention.out_proj", "cross_attention.out_proj", "feed_forward.linear2")
    for part, constant in zip(parts, (1.0, 10.0, 100.0), strict=True):
        state[f"{part}.bias"][:] = constant
    for n in (1, 2, 3):
        state[f"norm{n}.weight"][:] = 1.0
    layer = backend.make("DecoderLayer", BlockConfig(d_model, 2, 4, dropout=p, pre_norm=True), state=state)
    x, memory = np.zeros((20, 30, d_model)), np.zeros((20, 3, d_model))
    added = backend.call(layer, x + 5000.0, memory, training=True).output - 5000.0
    kept = np.round(added * (1 - p)).astype(int)
    digits = np.stack([kept % 10, kept // 10 % 10, kept // 100])
    assert set(np.unique(digits)) == {0, 1}
    spread = 6 * np.sqrt(p * (1 - p) / kept.size)
    assert_allclose(digits.mean(axis=(1, 2, 3)), 1 - p, atol=spread)
    assert len(np.unique(kept)) == 8  # every combination: the three are independent
    if norm == "post_norm":
        layer = backend.make("DecoderLayer", BlockConfig(d_model, 2, 4, dropout=p), state=state)
        runs = [backend.call(layer, x, memory, training=True).output for _ in range(2)]
        assert np.abs(runs[0] - runs[1]).max() > 0.1
        assert_allclose(runs[0].mean(-1), 0.0, atol=1e-5)  # the last normalisation comes after the dropout


def test_dropout_of_the_embeddings_and_of_every_attention(training_backend):
    backend, attention, seen = training_backend, training_backend.function("attention"), []

    def noting(q, k, v, mask=None, dropout=0.0, **options):
        seen.append(dropout)
        return attention(q, k, v, mask)

    config = TransformerConfig(**{**SIZES, "d_model": 60, "dropout": 0.3, "attention_dropout": 0.2})
    model = backend.make("Transformer", config, attention=noting)
    out = backend.call(model, SOURCE, TARGET, training=True, return_layers=True)
    assert seen == [0.2] * 6
    for hidden in (out.encoder_hidden[0], out.decoder_hidden[0]):
        assert_allclose((hidden == 0.0).mean(), 0.3, atol=6 * np.sqrt(0.21 / hidden.size))
    seen.clear()
    still = backend.call(model, SOURCE, TARGET, return_layers=True)
    assert seen == [0.0] * 6
    assert not (still.encoder_hidden[0] == 0.0).any()
    kept = out.encoder_hidden[0] != 0.0
    assert_allclose(out.encoder_hidden[0][kept] * 0.7, still.encoder_hidden[0][kept], rtol=1e-5, atol=1e-6)


def test_bad_ids(backend):
    model = build(backend)
    with pytest.raises(ValueError, match="source_ids must lie in 0 ... 10"):
        backend.call(model, SOURCE + 5, TARGET)
    with pytest.raises(ValueError, match="target_ids must lie in 0 ... 8"):
        backend.call(model, SOURCE, TARGET + 5)
    with pytest.raises(TypeError, match="target_ids must be integers"):
        backend.call(model, SOURCE, TARGET.astype(float))
    with pytest.raises(ValueError, match="source_ids must have shape"):
        backend.call(model, SOURCE[0], TARGET)
    with pytest.raises(ValueError, match="one target for each source"):
        backend.call(model, SOURCE, TARGET[:1])
    with pytest.raises(ValueError, match=r"at least the start token, got target_ids \(2, 0\)"):
        backend.call(model, SOURCE, TARGET[:, :0])
    with pytest.raises(ValueError, match="over the maximum of 8"):
        backend.call(model, np.ones((2, 9), dtype=int), TARGET)
    with pytest.raises(ValueError, match="9 tokens is over the maximum of 8"):
        model.next_logits(np.ones((2, 9), dtype=int))
    for cached in (True, False):
        with pytest.raises(ValueError, match="9 tokens is over the maximum of 8"):
            model.next_logits(SOURCE, cached)(np.ones((len(SOURCE), 9), dtype=int))
        for positions in ("paper", "learned"):
            asked, ids = build(backend, positions).next_logits(SOURCE, cached), np.ones((len(SOURCE), 9), dtype=int)
            asked(ids[:, :8])
            with pytest.raises(ValueError, match="9 tokens is over the maximum of 8"):
                asked(ids)
    with pytest.raises(ValueError, match="source_ids must lie in"):
        model.next_logits(SOURCE + 5)


def test_a_compiled_step_serves_every_shape():
    """TensorFlow: one trace for any batch, source and target; the same numbers and gradients as eager."""
    import tensorflow as tf

    model, traces = build(TENSORFLOW, "rotary", "fused_attention"), []
    ids = tf.TensorSpec((None, None), tf.int64)

    @tf.function(input_signature=[ids, ids], autograph=False)
    def compiled(source, target):
        traces.append(1)
        return model(source, target).logits

    for source, target in ((SOURCE, TARGET), (SOURCE[:1, :3], TARGET[:1, :2])):
        expected = TENSORFLOW.call(model, source, target).logits
        assert_allclose(compiled(tf.constant(source), tf.constant(target)), expected, rtol=1e-4, atol=1e-5)
    assert len(traces) == 1


def test_decoding_follows_an_attention_function_that_was_exchanged(backend):
    """Also after the first call, for which TensorFlow traces the model."""
    config, target = config_of("paper"), np.array([[1, 8, 3], [1, 5, 7]])
    model = backend.make("Transformer", config, state=states.random_state(states.transformer(config)))
    before = read(model.next_logits(SOURCE), target)
    for layers, name in ((model.encoder, "attention"), (model.decoder, "self_attention"),
                         (model.decoder, "cross_attention")):  # fmt: skip
        getattr(layers.layers[-1], name).attention = functools.partial(backend.function("attention"), scale=3.0)
        after = backend.call(model, SOURCE, target).logits
        assert np.abs(after - before).max() > 1e-3
        before = read(model.next_logits(SOURCE), target)
        assert_allclose(before, after, **backend.tolerance)


def test_root_mean_squares_and_shared_heads_reach_every_layer_and_the_cache(backend):
    backend.seed(1)
    config = config_of("paper", norm="rms", n_kv_heads=1, pre_norm=True)
    model, target = backend.make("Transformer", config), np.array([[1, 8, 3], [1, 5, 7]])
    names = backend.lib.get_state(model)
    assert sum("norm" in name for name in names) == 2 * 2 + 1 + 2 * 3 + 1  # one weight each, and no shift
    state = model.start(model.encode(SOURCE))
    for _ in range(2):
        state = model.step(target[:, :1], state)[1]
    assert {tuple(cache.keys.shape)[1] for cache in state.caches} == {1}
    whole = backend.call(model, SOURCE, target).logits
    assert_allclose(read(model.next_logits(SOURCE), target), whole, **backend.tolerance)
