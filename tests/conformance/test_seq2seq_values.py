"""Alignment scores and the recurrent translator: against loops, stepping against teacher forcing, gradients."""

import numpy as np
import pytest
import tensorflow as tf
from numpy.testing import assert_allclose
from test_gradients import compare, of_module

from course_lib.models.seq2seq import Seq2SeqConfig
from tests.support import recurrence, specification, states
from tests.support.backends import TENSORFLOW, TORCH
from tests.support.pairwise import pairwise

V_SOURCE, V_TARGET, D_MODEL, D = 9, 11, 3, 4
SOURCE = np.array([[3, 8, 5, 2, 7], [2, 4, 0, 0, 0], [6, 3, 2, 0, 0]])
TARGET = np.array([[1, 4, 10, 2], [1, 9, 3, 3], [1, 6, 0, 0]])
SCORES = {"dot": "DotScore", "general": "GeneralScore", "additive": "AdditiveScore"}
EVERY_KIND, EVERY_SCORE, EVERY_ORDER = ["rnn", "gru", "lstm"], [None, *SCORES], ["bahdanau", "luong"]
HOW = pytest.mark.parametrize("how", EVERY_SCORE)
ORDERS = pytest.mark.parametrize("order", EVERY_ORDER)
PAIRS = pairwise(kind=EVERY_KIND, how=EVERY_SCORE, order=EVERY_ORDER)


def shapes_of(kind="gru", how="additive", order="bahdanau"):
    return states.seq2seq(V_SOURCE, V_TARGET, D_MODEL, D, kind, how, order)


def config_of(kind="gru", how="additive", order="bahdanau", **settings):
    return Seq2SeqConfig(V_SOURCE, V_TARGET, D_MODEL, D, kind, how, order=order, **settings)


def build(backend, kind="gru", how="additive", order="bahdanau", run="run_fused"):
    state = states.random_state(shapes_of(kind, how, order), scale=0.7)
    return backend.make("Seq2Seq", config_of(kind, how, order), run=backend.function(run), state=state), state


@pytest.mark.parametrize("how", SCORES)
def test_scores(backend, rng, how):
    d_query, d_key = (5, 5) if how == "dot" else (5, 3)
    query, keys = rng.normal(size=(2, 3, d_query)), rng.normal(size=(2, 4, d_key))
    state = states.random_state(states.score(how, d_query, d_key))
    score = backend.make(SCORES[how], d_query, d_key, state=state)
    expected = recurrence.scores(how, state, "", query, keys)
    assert_allclose(backend.call(score, query, keys), expected, **backend.tolerance)


@pytest.mark.parametrize("how", SCORES)
def test_gradients_of_scores(rng, how):
    d_query, d_key = (5, 5) if how == "dot" else (5, 3)
    inputs = [rng.normal(size=(2, 3, d_query)), rng.normal(size=(2, 4, d_key))]
    compare(of_module(SCORES[how], (d_query, d_key), states.random_state(states.score(how, d_query, d_key)), inputs))


@pytest.mark.parametrize("how", ["general", "additive"])
def test_fresh_weights_of_scores_are_small_and_not_zero(backend, how):
    fresh = backend.lib.get_state(backend.make(SCORES[how], 40, 20))
    assert {name: value.shape for name, value in fresh.items()} == states.score(how, 40, 20)
    for name, value in fresh.items():
        bound = (40 if name in ("weight_query", "vector") else 20) ** -0.5
        assert 0.8 * bound < np.abs(value).max() <= bound, name


def test_weighted_mean(backend, rng):
    scores, values = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4, 5))
    mask = np.array([[[1, 1, 0, 1]], [[0, 0, 0, 0]]], dtype=bool)
    for given in (None, mask):
        output, weights = backend.call(backend.function("weighted_mean"), scores, values, mask=given)
        allowed = np.broadcast_to(True if given is None else given, scores.shape)
        for b, t in np.ndindex(2, 3):
            row = specification.softmax(scores[b, t].tolist(), allowed[b, t].tolist())
            assert_allclose(weights[b, t], row, **backend.tolerance)
            assert_allclose(output[b, t], np.array(row) @ values[b], **backend.tolerance)
    assert_allclose(output[1], 0.0, atol=1e-7)  # nothing to look at


@PAIRS
def test_teacher_forcing(backend, kind, how, order):
    model, state = build(backend, kind, how, order)
    output = backend.call(model, SOURCE, TARGET)
    logits, weights = recurrence.translation(state, SOURCE, TARGET, kind, how, order)
    assert output._fields == ("logits", "weights")
    assert_allclose(output.logits, logits, **backend.tolerance)
    if how is None:
        assert output.weights is None
    else:
        assert_allclose(output.weights, weights, **backend.tolerance)
        assert_allclose(output.weights.sum(-1), 1.0, rtol=1e-5)
        assert np.abs(output.weights[1, :, 2:]).max() < 1e-12  # padding


@pytest.mark.parametrize(
    "order, how, kind", [("bahdanau", "additive", "gru"), ("luong", "general", "lstm"), ("bahdanau", None, "rnn")]
)
def test_both_ways_to_run_give_the_same(backend, kind, how, order):
    unrolled, fused = (build(backend, kind, how, order, run)[0] for run in ("run_unrolled", "run_fused"))
    expected = backend.call(unrolled, SOURCE, TARGET)
    assert_allclose(backend.call(fused, SOURCE, TARGET).logits, expected.logits, **backend.tolerance)


@PAIRS
def test_stepping_with_the_same_tokens_is_teacher_forcing(backend, kind, how, order):
    model, _ = build(backend, kind, how, order)
    whole = backend.call(model, SOURCE, TARGET)
    memory = model.encode(backend.tensor(SOURCE))
    assert memory._fields == ("annotations", "keys", "mask", "summary", "state")
    state = memory.state
    for t in range(TARGET.shape[1]):
        logits, state, weights = model.advance(backend.tensor(TARGET[:, t]), state, memory)
        assert_allclose(backend.array(logits), whole.logits[:, t], **backend.tolerance)
        if how is None:
            assert weights is None
        else:
            assert_allclose(backend.array(weights), whole.weights[:, t], **backend.tolerance)


@pytest.mark.parametrize("how, kind", [(None, "gru"), ("additive", "lstm")])
def test_next_logits_keeps_its_state(backend, how, kind):
    model, _ = build(backend, kind, how)
    whole = backend.call(model, SOURCE, TARGET).logits
    next_logits = model.next_logits(SOURCE)
    for t in range(TARGET.shape[1]):
        logits = next_logits(TARGET[:, : t + 1])
        assert type(logits) is np.ndarray and logits.shape == (3, V_TARGET)
        assert_allclose(logits, whole[:, t], **backend.tolerance)
    at_once = model.next_logits(SOURCE)(TARGET)  # several new tokens in one call
    assert_allclose(at_once, whole[:, -1], **backend.tolerance)


@pytest.mark.parametrize("how, kind", [(None, "lstm"), ("general", "gru")])
def test_next_logits_reorders_rows(backend, how, kind):
    """Beam search: one row becomes several, others end; each row goes on from the row that it continues."""
    model, _ = build(backend, kind, how)
    next_logits = model.next_logits(SOURCE)
    next_logits(TARGET[:, :1])
    rows = np.array([2, 0, 0, 2])
    next_logits.reorder(rows)
    ids = np.concatenate([TARGET[rows, :1], [[4], [5], [6], [7]]], axis=1)
    expected = backend.call(model, SOURCE[rows], ids).logits[:, -1]
    assert_allclose(next_logits(ids), expected, **backend.tolerance)
    next_logits.reorder([1])
    ids = np.concatenate([ids[1:2], [[9]]], axis=1)
    expected = backend.call(model, SOURCE[:1], ids).logits[:, -1]
    assert_allclose(next_logits(ids), expected, **backend.tolerance)


def test_next_logits_before_the_first_call_may_be_widened(backend):
    model, _ = build(backend)
    next_logits = model.next_logits(SOURCE)
    next_logits.reorder(np.repeat(np.arange(3), 2))
    expected = backend.call(model, SOURCE, TARGET[:, :1]).logits[:, 0]
    assert_allclose(next_logits(np.ones((6, 1), dtype=int)), np.repeat(expected, 2, axis=0), **backend.tolerance)


@HOW
def test_a_padded_batch_equals_its_pairs_one_by_one(backend, how):
    model, _ = build(backend, "gru", how)
    batch = backend.call(model, SOURCE, TARGET)
    for b in range(3):
        n_source, n_target = (SOURCE[b] != 0).sum(), (TARGET[b] != 0).sum()
        alone = backend.call(model, SOURCE[b : b + 1, :n_source], TARGET[b : b + 1, :n_target])
        assert_allclose(batch.logits[b, :n_target], alone.logits[0], **backend.tolerance)


@ORDERS
@HOW
def test_a_token_changes_nothing_before_it(backend, how, order):
    model, _ = build(backend, "gru", how, order)
    n = TARGET.shape[1]
    changed = np.tile(TARGET, (n, 1, 1))  # in the first nothing, in the one at t the token there: all in one batch
    for t in range(1, n):
        changed[t, :, t] = (changed[t, :, t] + 5) % V_TARGET
    logits = backend.call(model, np.tile(SOURCE, (n, 1)), changed.reshape(-1, n)).logits
    before, *others = logits.reshape(n, *TARGET.shape, V_TARGET)
    for t, after in enumerate(others, 1):
        assert_allclose(after[:, :t], before[:, :t], **backend.tolerance)
        assert np.abs(after[:, t] - before[:, t]).max() > 1e-3


def test_the_orders_differ_in_what_the_score_sees(backend):
    """With the cell's share of the context at zero, Bahdanau's weights lag Luong's by one step."""
    shapes = shapes_of("gru", "general", "luong")
    state = states.random_state(shapes, scale=0.7)
    luong = backend.make("Seq2Seq", config_of("gru", "general", "luong"), state=state)
    wider = {**state, "cell.weight_ih": np.concatenate([state["cell.weight_ih"], np.zeros((3 * D, D))], axis=1)}
    bahdanau = backend.make("Seq2Seq", config_of("gru", "general"), state=wider)
    early, late = (backend.call(model, SOURCE, TARGET).weights for model in (bahdanau, luong))
    assert_allclose(early[:, 1:], late[:, :-1], **backend.tolerance)
    assert np.abs(early[:, :1] - late[:, :1]).max() > 1e-3


def test_another_padding_id(backend):
    state = states.random_state(shapes_of())
    model = backend.make("Seq2Seq", config_of(pad_id=8), state=state)
    source = np.where(SOURCE == 8, 0, np.where(SOURCE == 0, 8, SOURCE))
    logits, weights = recurrence.translation(state, source, TARGET, "gru", "additive", "bahdanau", pad_id=8)
    output = backend.call(model, source, TARGET)
    assert_allclose(output.logits, logits, **backend.tolerance)
    assert_allclose(output.weights, weights, **backend.tolerance)


@pytest.mark.parametrize("order, how, kind", [
    ("bahdanau", "additive", "gru"),
    ("bahdanau", "general", "lstm"),
    ("bahdanau", "dot", "rnn"),
    ("bahdanau", None, "gru"),
    ("luong", "general", "gru"),
    ("luong", None, "lstm"),
])  # fmt: skip
def test_gradients(order, how, kind):
    state = states.random_state(shapes_of(kind, how, order), scale=0.6)
    results = of_module("Seq2Seq", (config_of(kind, how, order),), state, [SOURCE, TARGET])
    compare(results)
    slopes = results[TORCH][1]
    assert_allclose(slopes["source_embedding.weight"][1], 0.0, atol=1e-7)  # a token that does not occur
    assert min(np.abs(slope).max() for slope in slopes.values()) > 1e-4


@HOW
def test_parameters(backend, how):
    """Attention and none differ by the score alone."""
    fresh = backend.lib.get_state(build(backend, "lstm", how)[0])
    assert {name: value.shape for name, value in fresh.items()} == shapes_of("lstm", how)
    plain = backend.lib.get_state(build(backend, "lstm", None)[0])
    assert {name for name in fresh if name not in plain} == {f"score.{name}" for name in states.score(how, D, D)}


def test_state_round_trip(backend):
    model, state = build(backend)
    for name, value in backend.lib.get_state(model).items():
        assert_allclose(value, state[name], rtol=1e-6)


@pytest.mark.parametrize("place", ["source", "target", "readout"])
def test_dropout_in_training_only(training_backend, place):
    """Embeddings of zeros leave nothing to drop, so one place at a time shows in the alignment."""
    backend = training_backend
    state = states.random_state(shapes_of(), scale=0.7)
    for side in {"source", "target"} - {place}:
        state[f"{side}_embedding.weight"] *= 0.0
    model = backend.make("Seq2Seq", config_of(dropout=0.5), state=state)
    without = backend.make("Seq2Seq", config_of(), state=state)
    sound = backend.call(without, SOURCE, TARGET)
    assert_allclose(backend.call(model, SOURCE, TARGET).logits, sound.logits, rtol=1e-5)
    many = [np.tile(ids, (4, 1)) for ids in (SOURCE, TARGET)]  # each row has a draw of its own
    drawn = [backend.call(model, *many, training=True) for _ in range(2)]
    assert np.abs(drawn[0].logits - drawn[1].logits).max() > 0.01
    aligned = max(np.abs(output.weights - np.tile(sound.weights, (4, 1, 1))).max() for output in drawn)
    assert (aligned > 1e-3) == (place != "readout")  # the readout comes after the alignment
    assert_allclose(model.next_logits(SOURCE)(TARGET), sound.logits[:, -1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
def test_inference_in_torch_leaves_the_model_as_it_was(training):
    model = TORCH.make("Seq2Seq", config_of(dropout=0.5), state=states.random_state(shapes_of(), scale=0.7))
    expected = TORCH.call(model, SOURCE, TARGET).logits[:, -1]
    model.train(training)
    assert_allclose(model.next_logits(SOURCE)(TARGET), expected, **TORCH.tolerance)  # without dropout
    assert model.training == training


@pytest.mark.parametrize("order, how", [("bahdanau", "additive"), ("luong", "dot"), ("bahdanau", None)])
def test_tensorflow_compiled_for_any_length(how, order):
    model, state = build(TENSORFLOW, "gru", how, order)
    traces = []

    @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int64)] * 2, autograph=False)
    def compiled(source, target):
        traces.append(source.shape)
        with tf.GradientTape() as tape:
            logits = model(source, target).logits
            loss = tf.reduce_sum(logits**2)
        return logits, tape.gradient(loss, model.cell.weight_hh.value)

    for rows, n_source, n_target in ((3, 5, 4), (2, 3, 2)):
        source, target = SOURCE[:rows, :n_source], TARGET[:rows, :n_target]
        logits, slope = compiled(tf.constant(source), tf.constant(target))
        expected, _ = recurrence.translation(state, source, target, "gru", how, order)
        assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)
        assert np.abs(slope).max() > 1e-3
    assert len(traces) == 1
