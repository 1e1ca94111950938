"""What must hold of a T5: causality, padding, distances, gradients, decoding, dropout, fresh weights, errors."""

import copy
import functools
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.decoding.search import beam_search, greedy, sample
from course_lib.errors import UnsupportedConfigError
from course_lib.models.bert import BertConfig
from course_lib.models.t5 import T5Config
from tests.support import states
from tests.support.backends import NUMPY, TENSORFLOW, TORCH

# as T5's own: the padding begins a target
PLAIN = T5Config(13, 12, 1, 1, 3, 5, 10, n_buckets=8, max_distance=5, dropout=0.0, pad_id=4, start_id=4, end_id=1)
# as T5 1.1: gated, an output matrix of its own; two layers, the second of which gets what a step does to the first
GATED = replace(PLAIN, n_decoder_layers=2, activation="gelu_new", gated=True, tie_output=False, start_id=2)
KINDS = {"plain": (PLAIN, "attention"), "gated": (GATED, "fused_attention")}  # each value once
EACH = pytest.mark.parametrize("kind", KINDS)
SOURCE = np.array([[5, 8, 3, 2, 6, 7, 7, 1], [4, 4, 9, 8, 2, 3, 4, 4]])
TARGET = np.array([[4, 8, 3, 2, 6, 7, 7], [4, 5, 7, 9, 8, 2, 3]])


@functools.cache
def build(backend, kind="plain"):
    """One model for all tests that ask for the same: TensorFlow traces each model's steps anew."""
    config, attention = KINDS[kind]
    state = states.random_state(states.t5(config), scale=0.3)  # scores are not scaled down
    return backend.make("T5", config, attention=backend.function(attention), state=state)


def close(backend):
    """Four times as far as elsewhere: scores that are not scaled down magnify what is rounded."""
    return {name: 4 * value for name, value in backend.tolerance.items()}


def read(step, ids, first=1):
    """The logits after each token from number `first` on, (N, t, V)."""
    return np.stack([step(ids[:, :t]) for t in range(first, ids.shape[1] + 1)], axis=1)


@EACH
def test_the_future_changes_nothing_before_it(backend, kind):
    model = build(backend, kind)
    before = backend.call(model, SOURCE, TARGET).logits
    for t in range(1, 7):
        changed = TARGET.copy()
        changed[:, t:] = (changed[:, t:] + 5) % 13
        after = backend.call(model, SOURCE, changed).logits
        assert_allclose(after[:, :t], before[:, :t], **close(backend))
        assert np.abs(after[:, t] - before[:, t]).max() > 1e-2


@EACH
def test_a_padded_batch_equals_its_texts_one_by_one(backend, kind):
    """Wherever the padding of a source stands: distances alone count. That of a target stands at its end."""
    model = build(backend, kind)
    target = np.where(np.arange(7) < [[7], [4]], TARGET, 4)
    together = backend.call(model, SOURCE, target).logits
    for source, row, n, found in zip(SOURCE, target, (7, 4), together, strict=True):
        alone = backend.call(model, source[None, source != 4], row[None, :n]).logits
        assert_allclose(found[:n], alone[0], **close(backend))


def test_what_hides_no_padding_sees_it(backend):
    state = states.random_state(states.t5(PLAIN))
    hidden, seen = (
        backend.call(backend.make("T5", replace(PLAIN, pad_id=pad_id), state=state), SOURCE, TARGET).logits
        for pad_id in (4, 0)
    )
    assert_allclose(hidden[0], seen[0], **close(backend))
    assert np.abs(seen[1] - hidden[1]).max() > 1e-3


def test_the_bias_is_that_of_the_distances(backend, rng):
    """Of each pair its own number, as a loop looks it up; bidirectional and causal, of all tokens and of the last."""
    for bidirectional, buckets in ((True, BOTH_WAYS), (False, BACKWARDS)):
        layer = backend.make("RelativePositions", 3, 8, 5, bidirectional)
        weight = rng.normal(size=(8, 3))
        backend.lib.set_state(layer, {"weight": weight})
        x = rng.normal(size=(2, 9, 4))
        expected = np.array(
            [[[weight[buckets[np.clip(s - t, -6, 6)], h] for s in range(9)] for t in range(9)] for h in range(3)]
        )
        assert_allclose(backend.call(layer, x), expected[None], rtol=1e-6)
        assert_allclose(backend.call(layer, x[:, :2], first=7), expected[None, :, 7:], rtol=1e-6)


# n_buckets 8, max_distance 5: of 8, 4 buckets for each direction, of which 2 are exact; 2 * 2.5 ** (i / 2) = 3.16, 5
BOTH_WAYS = {0: 0, -1: 1, -2: 2, -3: 2, -4: 3, -5: 3, -6: 3, 1: 5, 2: 6, 3: 6, 4: 7, 5: 7, 6: 7}
# 4 of the 8 are exact; 4 * 1.25 ** (i / 4) are 4, 4.23, 4.47, 4.73, 5
BACKWARDS = {**{-d: d for d in range(5)}, -5: 7, -6: 7, **{d: 0 for d in range(1, 7)}}


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_order_is_seen_by_the_bias_alone(backend, side):
    """With one number for all buckets, an order of the source changes nothing; in a target the last token sees all."""
    state = states.random_state(states.t5(PLAIN))
    swap = [0, 1, 2, 3, 5, 4, 6, 7]
    for flat in (False, True):
        name = f"{side}_position.weight"
        changed = state | ({name: np.ones_like(state[name])} if flat else {})
        model = backend.make("T5", PLAIN, state=changed)
        pairs = (SOURCE[:, swap], TARGET) if side == "encoder" else (SOURCE, TARGET[:, swap[:7]])
        before, after = (backend.call(model, *pair).logits[0, -1] for pair in ((SOURCE, TARGET), pairs))
        moved = np.abs(after - before).max()
        assert moved < 1e-5 if flat else moved > 1e-3


@EACH
def test_gradients(kind):
    """By every weight: PyTorch's against TensorFlow's, and both against central differences of the reference."""
    source, target = SOURCE[:, :5], TARGET[:, :4]
    results = {b: b.gradients(build(b, kind), source, target)[1] for b in (TORCH, TENSORFLOW, NUMPY)}
    assert results[TORCH].keys() == states.t5(KINDS[kind][0]).keys()
    for name, gradient in results[TORCH].items():
        assert_allclose(results[TENSORFLOW][name], gradient, rtol=1e-4, atol=1e-4, err_msg=name)
        numerical = results[NUMPY][name]
        known = ~np.isnan(numerical)
        assert known.any()
        assert_allclose(gradient[known], numerical[known], rtol=1e-4, atol=1e-4, err_msg=name)


@EACH
def test_reading_by_steps_equals_the_whole(backend, kind):
    model = build(backend, kind)
    whole = backend.call(model, SOURCE, TARGET).logits
    for cached in (True, False):
        found = read(model.next_logits(SOURCE, cached), TARGET)
        assert isinstance(found, np.ndarray)
        assert_allclose(found, whole, **close(backend))
    if kind == "plain":  # TensorFlow traces a function of its own for a single text
        assert_allclose(read(model.next_logits(SOURCE[1:]), TARGET[1:]), whole[1:], **close(backend))


@EACH
def test_several_new_tokens_at_once(backend, kind):
    """A prompt, then more than one."""
    model = build(backend, kind)
    step, whole = model.next_logits(SOURCE), backend.call(model, SOURCE, TARGET).logits
    for t in (3, 4, 7):
        assert_allclose(step(TARGET[:, :t]), whole[:, t - 1], **close(backend))


@pytest.mark.parametrize("cached", [True, False])
def test_rows_may_be_reordered_repeated_and_left_out(backend, cached):
    model, source, ids = build(backend, "gated"), SOURCE, TARGET[:, :2]
    step = model.next_logits(source, cached)
    step(ids)
    for rows, new in (([1, 0, 0], [4, 6, 7]), ([2, 0], [3, 8]), ([1, 1], [2, 7])):
        step.reorder(np.array(rows))
        source, ids = source[rows], np.concatenate([ids[rows], np.array(new)[:, None]], axis=1)
        assert_allclose(step(ids), backend.call(model, source, ids).logits[:, -1], **close(backend))


def test_the_searches_find_the_same_with_and_without_a_cache(backend):
    model = build(backend, "gated")
    start, seen = np.full((2, 1), GATED.start_id), set()
    for search in (
        lambda next_logits: greedy(next_logits, start, None, 6),
        lambda next_logits: sample(next_logits, start, 1, 6, np.random.default_rng(3), temperature=2.0, pad_id=4),
        lambda next_logits: beam_search(next_logits, start, 1, 6, 3).ids,
    ):
        found = [search(model.next_logits(SOURCE, cached)) for cached in (True, False)]
        np.testing.assert_array_equal(*found)
        seen |= set(found[0].ravel().tolist())
    assert len(seen) > 4


def test_steps_follow_an_attention_function_that_was_exchanged(backend):
    """Also after the first call, for which TensorFlow traces the model."""
    model = backend.make("T5", PLAIN, state=states.random_state(states.t5(PLAIN)))
    before = model.next_logits(SOURCE)(TARGET[:, :3])
    for part in (
        model.encoder.layers[0].attention,
        model.decoder.layers[-1].self_attention,
        model.decoder.layers[-1].cross_attention,
    ):
        inner = part.attention

        def softer(q, k, v, mask=None, scale=None, inner=inner, **options):
            return inner(q, k, v, mask, scale=3.0, **options)

        part.attention = softer
        after = backend.call(model, SOURCE, TARGET[:, :3]).logits[:, -1]
        assert np.abs(after - before).max() > 1e-3
        before = model.next_logits(SOURCE)(TARGET[:, :3])
        assert_allclose(before, after, rtol=1e-4, atol=1e-4)


def test_every_layer_is_returned_when_asked_for(backend):
    model = backend.make("T5", replace(PLAIN, n_layers=3, n_decoder_layers=2))
    assert backend.call(model, SOURCE, TARGET)[1:] == (None,) * 5
    output = backend.call(model, SOURCE, TARGET, return_layers=True)
    assert [hidden.shape for hidden in output.encoder_hidden] == [(2, 8, 12)] * 4
    assert [hidden.shape for hidden in output.decoder_hidden] == [(2, 7, 12)] * 3
    assert [weights.shape for weights in output.encoder_weights] == [(2, 3, 8, 8)] * 3
    assert [weights.shape for weights in output.self_weights] == [(2, 3, 7, 7)] * 2
    assert [weights.shape for weights in output.cross_weights] == [(2, 3, 7, 8)] * 2
    for weights in (*output.encoder_weights, *output.self_weights, *output.cross_weights):
        assert_allclose(weights.sum(-1), 1.0, rtol=1e-5)


def test_fresh_weights(backend):
    """Normal, each as wide as its inputs are many, so that what comes out of a layer is as large as what went in."""
    config = T5Config(90, 50, 2, 2, 6, 12, 80, n_buckets=90, gated=True, tie_output=False, init_factor=0.5)
    # of T5's own code, by way of that of `transformers`; but for an output matrix of its own, which is 1 there
    expected = {"token": 1.0, "q_proj": (50 * 12) ** -0.5, "linear2": 80**-0.5, "out_proj": (6 * 12) ** -0.5}
    for name, value in backend.lib.get_state(backend.make("T5", config)).items():
        part = name.split(".")[-2]
        if "norm" in part:
            assert_allclose(value, 1.0)
            continue
        std = 0.5 * (50**-0.5 if name == "out_proj.weight" else expected.get(part, 50**-0.5))
        assert_allclose(value.std(), std, rtol=0.11, err_msg=name)
        assert abs(value.mean()) < 0.2 * std


def test_dropout_where_the_paper_has_it(training_backend):
    """At both ends of each stack, on attention weights, and in sub-layers (section 2.1)."""
    backend, attention, seen = training_backend, training_backend.function("attention"), []

    def noting(q, k, v, mask=None, dropout=0.0, **options):
        seen.append(dropout)
        return attention(q, k, v, mask, **options)

    config = replace(PLAIN, d_model=60, dropout=0.3)
    model = backend.make("T5", config, attention=noting)
    block = model.decoder.config
    assert model.encoder.config == block and block.dropout == block.feed_forward_dropout == 0.3
    output = backend.call(model, SOURCE, TARGET, training=True, return_layers=True)
    assert seen == [0.3] * 3
    for hidden in (output.encoder_hidden[0], output.decoder_hidden[0]):
        assert_allclose((hidden == 0.0).mean(), 0.3, atol=6 * np.sqrt(0.21 / hidden.size))
    seen.clear()
    still = backend.call(model, SOURCE, TARGET, return_layers=True)
    assert seen == [0.0] * 3 and not (still.encoder_hidden[0] == 0.0).any()


@pytest.mark.parametrize("end", ["memory", "last"])
def test_dropout_at_the_end_of_a_stack(training_backend, end):
    """What the decoder reads of the encoder, and what logits are computed from; without any other dropout."""
    backend, read_by = training_backend, []

    def noting(q, k, v, mask=None, dropout=0.0, **options):
        read_by.append(backend.array(v))
        return backend.function("attention")(q, k, v, mask, **options)

    config = replace(PLAIN, d_model=60, vocab_size=60, n_heads=1, d_head=60, tie_output=False, dropout=0.5)
    model = backend.make("T5", config, attention=noting)
    for stack in (model.encoder, model.decoder):
        for layer in stack.layers:
            for dropout in (layer.dropout, layer.feed_forward.dropout):
                dropout.p = dropout.rate = 0.0
    itself = {"out_proj.weight": np.eye(60), "decoder.layers.0.cross_attention.v_proj.weight": np.eye(60)}
    backend.lib.set_state(model, itself, partial=True)
    logits = backend.call(model, SOURCE, TARGET, training=True).logits
    found = read_by[2] if end == "memory" else logits
    assert_allclose((found == 0.0).mean(), 0.5, atol=6 * np.sqrt(0.25 / found.size))


def test_reading_by_steps_uses_no_dropout_and_leaves_the_mode_alone(training_backend):
    model = training_backend.make("T5", replace(PLAIN, dropout=0.5))
    if hasattr(model, "train"):
        model.train()
    first, again = (read(model.next_logits(SOURCE), TARGET[:, :2]) for _ in range(2))
    assert_allclose(first, again, rtol=1e-6)
    if hasattr(model, "train"):
        assert model.training


def test_steps_in_half_precision_in_pytorch():
    import torch

    model = build(TORCH, "gated").eval()
    expected = read(model.next_logits(SOURCE), TARGET[:, :4])
    for dtype, bound in ((torch.bfloat16, 16 * 2**-8), (torch.float16, 16 * 2**-11)):
        half = copy.deepcopy(model).to(dtype)
        assert half.encoder_position.table.dtype == torch.int64
        with torch.autocast("cpu", dtype=dtype):
            under_autocast = read(model.next_logits(SOURCE), TARGET[:, :4])
        for found in (read(half.next_logits(SOURCE), TARGET[:, :4]), under_autocast):
            assert found.dtype == np.float32
            assert np.abs(found - expected).max() / np.abs(expected).max() < bound


def test_steps_in_half_precision_in_tensorflow():
    model = build(TENSORFLOW, "plain")
    half = TENSORFLOW.lib.T5(PLAIN, dtype="mixed_bfloat16")
    TENSORFLOW.lib.set_state(half, TENSORFLOW.lib.get_state(model))
    expected, found = (read(of.next_logits(SOURCE), TARGET[:, :3]) for of in (model, half))
    assert found.dtype == np.float32
    assert 0 < np.abs(found - expected).max() / np.abs(expected).max() < 40 * 2.0**-8


def test_a_norm_of_half_precision_is_computed_in_more(training_backend, rng):
    """Squares of float16 beyond 65504, and a mean of many in bfloat16: as of the same numbers in float32."""
    lib, x = training_backend.lib, 300 * rng.normal(size=(4, 3000)).astype(np.float32)
    if training_backend is TORCH:
        import torch

        for dtype, rounding in ((torch.float16, 2.0**-11), (torch.bfloat16, 2.0**-8)):
            half = torch.tensor(x, dtype=dtype)
            layer = lib.T5(replace(PLAIN, d_model=3000)).encoder.norm
            found, expected = layer.to(dtype)(half).float(), layer.float()(half.float())
            assert_allclose(found.detach(), expected.detach(), rtol=3 * rounding)
    else:
        import tensorflow as tf

        for dtype, rounding in (("float16", 2.0**-11), ("bfloat16", 2.0**-8)):
            half, kinds = tf.cast(x, dtype), (f"mixed_{dtype}", "float32")
            layers = (lib.T5(replace(PLAIN, d_model=3000), dtype=kind).encoder.norm for kind in kinds)
            found, expected = (tf.cast(layer(half), tf.float32).numpy() for layer in layers)
            assert_allclose(found, expected, rtol=3 * rounding)


@EACH
def test_a_folder_opens_as_it_was_saved_and_with_more_tokens(backend, kind, tmp_path):
    model, config = build(backend, kind), KINDS[kind][0]
    opened = type(model).from_pretrained(model.save_pretrained(tmp_path), attention=backend.function("fused_attention"))
    assert opened.config == config
    expected = backend.call(model, SOURCE, TARGET).logits
    assert_allclose(backend.call(opened, SOURCE, TARGET).logits, expected, **close(backend))
    assert backend.call(opened, SOURCE, TARGET, return_layers=True).cross_weights == (None,) * config.n_decoder_layers
    assert backend.call(opened, SOURCE, TARGET, return_layers=True).encoder_weights == (None,) * config.n_layers
    larger = type(model).from_pretrained(tmp_path, vocab_size=15, dropout=0.3)
    assert larger.config == replace(config, vocab_size=15, dropout=0.3)
    assert_allclose(backend.call(larger, SOURCE, TARGET).logits[..., :13], expected, **close(backend))


def test_bad_ids(backend):
    model = build(backend, "plain")
    for ids, error, message in [
        (TARGET + 5, ValueError, "must lie in 0 ... 12"),
        (TARGET.astype(float), TypeError, "must be integers"),
        (TARGET[0], ValueError, r"must have shape \(B, T\)"),
    ]:
        with pytest.raises(error, match=f"source_ids {message}"):
            backend.call(model, ids, TARGET)
        with pytest.raises(error, match=f"target_ids {message}"):
            backend.call(model, SOURCE, ids)
        with pytest.raises(error, match=f"source_ids {message}"):
            model.next_logits(ids)
    with pytest.raises(ValueError, match="there must be one target for each source"):
        backend.call(model, SOURCE, TARGET[:1])
    for cached in (True, False):
        with pytest.raises(ValueError, match="ids must lie in 0 ... 12"):
            model.next_logits(SOURCE, cached)(TARGET + 5)
    with pytest.raises(ValueError, match="`reorder` chooses other rows"):
        model.next_logits(SOURCE)(TARGET[:1])


def test_another_models_configuration_or_folder(backend, tmp_path):
    config = BertConfig(11, 12, 1, 3, 10, 8)
    with pytest.raises(TypeError, match="a T5 is built of a T5Config, got BertConfig"):
        backend.make("T5", config)
    with pytest.raises(TypeError, match="a BERT is built of a BertConfig, got T5Config"):
        backend.make("BertModel", PLAIN)
    backend.make("BertModel", config).save_pretrained(tmp_path / "bert")
    with pytest.raises(UnsupportedConfigError, match="holds no T5: .*; BertModel and the other classes of that name"):
        backend.lib.T5.from_pretrained(tmp_path / "bert")


@pytest.mark.parametrize("cached", [True, False])
def test_a_cache_reads_one_token_at_a_time(backend, cached, monkeypatch):
    """And without one, all tokens are read again at every step."""
    model = build(backend, "plain")
    step, read_tokens, reads = model.next_logits(SOURCE, cached), model.step, []

    def noting(self, ids, state):
        reads.append(ids.shape[1])
        return read_tokens(ids, state)

    monkeypatch.setattr(type(model), "step", noting)
    for t in (1, 2, 3):
        step(TARGET[:, :t])
    assert reads == ([1, 1, 1] if cached else [1, 2, 3])
