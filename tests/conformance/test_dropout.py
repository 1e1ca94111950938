"""Dropout: the kept values are scaled by 1 / (1 - p), the right fraction is dropped, and none outside of training.

Bands are six standard errors wide; the generators are seeded.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.models.bert import BertConfig
from course_lib.models.blocks import BlockConfig
from tests.support import states

P = 0.3


def dropped_fraction_is(p, dropped):
    band = 6 * np.sqrt(p * (1 - p) / dropped.size)
    assert abs(dropped.mean() - p) < band, f"{dropped.mean():.3f} dropped, expected {p}"


@pytest.mark.parametrize("name", ["attention", "fused_attention"])
def test_weights_are_dropped_and_the_kept_ones_scaled(backend, rng, name):
    q, k = rng.normal(size=(4, 3, 20, 8)), rng.normal(size=(4, 3, 20, 8))
    v = np.broadcast_to(np.eye(20), (4, 3, 20, 20)).copy()  # the context is the table of weights itself
    mask = rng.random((20, 20)) < 0.8
    weights = backend.call(backend.function("attention"), q, k, v, mask=mask).weights
    context = backend.call(backend.function(name), q, k, v, mask=mask, dropout=P).output
    expected = np.broadcast_to(weights, context.shape)
    allowed = np.broadcast_to(mask, context.shape)
    dropped = (context == 0.0) & allowed
    dropped_fraction_is(P, dropped[allowed])
    assert_allclose(context[~dropped], expected[~dropped] / (1 - P), rtol=1e-4, atol=1e-6)
    dropped_per_query = dropped.sum(axis=-1)
    assert dropped_per_query.min() < dropped_per_query.max()  # single weights fall, not whole rows


def test_returned_weights_are_those_before_dropout(backend, rng):
    q, k, v = (rng.normal(size=(2, 6, 4)) for _ in range(3))
    attention = backend.function("attention")
    expected = backend.call(attention, q, k, v).weights
    assert_allclose(backend.call(attention, q, k, v, dropout=0.5).weights, expected, rtol=1e-6)


def test_the_fused_gradient_of_tensorflow_drops_the_same_weights_as_its_value(rng):
    # written by hand, unlike all others; both functions draw one number for each weight, so one seed drops the same
    import keras
    import tensorflow as tf

    from course_lib.tensorflow import attention, fused_attention

    q, k, v = (tf.constant(rng.normal(size=(2, 3, 6, 4))) for _ in range(3))
    outputs, gradients = [], []
    for function in (attention, fused_attention):
        keras.utils.set_random_seed(5)
        with tf.GradientTape() as tape:
            tape.watch([q, k, v])
            outputs.append(function(q, k, v, dropout=0.4).output)
            loss = tf.reduce_sum(outputs[-1] ** 2)
        gradients.append(tape.gradient(loss, [q, k, v]))
    assert_allclose(outputs[1], outputs[0], rtol=1e-9, atol=1e-12)
    for fused, plain in zip(gradients[1], gradients[0], strict=True):
        assert_allclose(fused, plain, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["attention", "fused_attention"])
def test_no_dropout_means_the_same_numbers_every_time(backend, rng, name):
    q, k, v = (rng.normal(size=(2, 6, 4)) for _ in range(3))
    runs = [backend.call(backend.function(name), q, k, v, dropout=0.0).output for _ in range(2)]
    assert_allclose(runs[0], runs[1], rtol=1e-7)


def spy(backend, seen):
    """An attention function that notes the dropout it was given."""

    def noting(q, k, v, mask=None, dropout=0.0, **options):
        seen.append(dropout)
        return backend.function("attention")(q, k, v, mask, 0.0)

    return noting


def test_multi_head_attention_passes_its_dropout_in_training_only(backend, rng):
    seen = []
    layer = backend.make("MultiHeadAttention", 6, 2, dropout=P, attention=spy(backend, seen))
    x = rng.normal(size=(2, 4, 6))
    backend.call(layer, x, x, x, training=False)
    assert set(seen) == {0.0}
    seen.clear()
    backend.call(layer, x, x, x, training=True)
    assert set(seen) == ({P} if backend.has_training else {0.0})


def test_attention_dropout_reaches_every_layer_of_bert(training_backend):
    backend, seen = training_backend, []
    config = BertConfig(
        vocab_size=9, d_model=6, n_layers=3, n_heads=2, d_ff=8, max_len=8, dropout=0.0, attention_dropout=P
    )
    model = backend.make("BertModel", config, attention=spy(backend, seen))
    ids = np.array([[1, 2, 3]])
    backend.call(model, ids, training=False)
    assert set(seen) == {0.0}
    seen.clear()
    backend.call(model, ids, training=True)
    assert seen[-3:] == [P, P, P] and set(seen) == {P}


def constant_layer(backend, pre_norm, attended, fed, dropout):
    """An encoder layer whose sub-layers give constants whatever comes in."""
    d_model, d_ff = 40, 8
    state = {name: np.zeros(shape) for name, shape in states.encoder_layer(d_model, d_ff).items()}
    state["attention.out_proj.bias"] += attended
    state["feed_forward.linear2.bias"] += fed
    state["norm1.weight"] += 1.0
    state["norm2.weight"] += 1.0
    return backend.make("EncoderLayer", BlockConfig(d_model, 2, d_ff, dropout=dropout, pre_norm=pre_norm), state=state)


@pytest.mark.parametrize("attended, fed", [(1.0, 0.0), (0.0, 1.0)], ids=["attention", "feed_forward"])
def test_pre_norm_sub_layers_drop_what_they_add_and_never_the_residual(training_backend, rng, attended, fed):
    backend = training_backend
    layer = constant_layer(backend, True, attended, fed, P)
    x = rng.normal(size=(5, 10, 40))
    added = backend.call(layer, x, training=True)[0] - x
    dropped = np.abs(added) < 1e-4
    dropped_fraction_is(P, dropped)
    assert_allclose(added[~dropped], 1 / (1 - P), rtol=1e-4)
    assert_allclose(backend.call(layer, x, training=False)[0], x + 1.0, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("attended, fed", [(1.0, 0.0), (0.0, 1.0)], ids=["attention", "feed_forward"])
def test_post_norm_sub_layers_drop_what_they_add(training_backend, attended, fed):
    backend = training_backend
    layer = constant_layer(backend, False, attended, fed, P)
    x = np.zeros((5, 10, 40))
    # a constant vector is normalised to zeros; one with dropped places takes two values, the lower where dropped
    assert_allclose(backend.call(layer, x, training=False)[0], 0.0, atol=1e-5)
    output = backend.call(layer, x, training=True)[0]
    dropped_fraction_is(P, output < 0.0)
    kept = (output > 0.0).sum(axis=-1)
    expected = np.sqrt((40 - kept) / kept)  # z-score of the upper of two values
    assert_allclose(output.max(axis=-1), expected, rtol=1e-3)


def test_embeddings_are_dropped_after_their_normalisation(training_backend):
    backend = training_backend
    config = BertConfig(vocab_size=9, d_model=40, n_layers=1, n_heads=2, d_ff=8, max_len=20, dropout=P)
    state = states.random_state(states.bert(config))
    state["embeddings.norm.weight"] *= 0.0
    state["embeddings.norm.bias"] = np.full(40, 2.0)
    model = backend.make("BertModel", config, state=state)
    ids = np.full((6, 20), 3)
    output = backend.call(model.embeddings, ids, training=True)
    dropped_fraction_is(P, output == 0.0)
    assert_allclose(output[output != 0.0], 2.0 / (1 - P), rtol=1e-5)
    assert_allclose(backend.call(model.embeddings, ids, training=False), 2.0, rtol=1e-6)


def test_the_classifier_drops_the_pooled_vector(training_backend):
    backend = training_backend
    config = BertConfig(vocab_size=9, d_model=40, n_layers=1, n_heads=2, d_ff=8, max_len=20, dropout=P, n_classes=1)
    state = states.random_state(states.classifier(config))
    state["bert.pooler.weight"] *= 0.0
    state["bert.pooler.bias"] = np.full(40, 50.0)  # tanh is 1
    state["classifier.weight"] = np.ones((1, 40))
    state["classifier.bias"] = np.zeros(1)
    model = backend.make("BertForSequenceClassification", config, state=state)
    ids = np.full((100, 3), 4)
    assert_allclose(backend.call(model, ids, training=False).logits, 40.0, rtol=1e-5)
    kept = backend.call(model, ids, training=True).logits * (1 - P)  # how many of the 40 were kept
    assert_allclose(kept, np.round(kept), atol=1e-3)
    assert abs(kept.mean() / 40 - (1 - P)) < 6 * np.sqrt(P * (1 - P) / 4000)
    assert kept.std() > 1.0


def test_training_draws_new_places_each_time_and_evaluation_is_repeatable(training_backend, rng):
    backend = training_backend
    layer = backend.make("EncoderLayer", BlockConfig(6, 2, 8, dropout=0.5))
    x = rng.normal(size=(3, 5, 6))
    one, two = (backend.call(layer, x, training=True)[0] for _ in range(2))
    assert np.abs(one - two).max() > 1e-3
    one, two = (backend.call(layer, x, training=False)[0] for _ in range(2))
    assert_allclose(one, two, rtol=1e-7)


@pytest.mark.parametrize("gated", [False, True])
def test_feed_forward_drops_what_stands_between_its_matrices(training_backend, rng, gated):
    backend = training_backend
    layer = backend.make("FeedForward", 40, 40, "relu", gated, False, dropout=P)
    backend.lib.set_state(layer, {name: np.eye(40) for name in backend.lib.get_state(layer)})
    x = rng.uniform(1, 2, size=(4, 30, 40))
    expected = x * x if gated else x
    output = backend.call(layer, x, training=True)
    dropped = output == 0.0
    dropped_fraction_is(P, dropped)
    assert_allclose(output[~dropped], expected[~dropped] / (1 - P), rtol=1e-5)
    assert_allclose(backend.call(layer, x), expected, rtol=1e-5)


def test_a_dropout_of_feed_forward_that_is_no_probability(backend):
    with pytest.raises(ValueError, match="dropout"):
        backend.make("FeedForward", 4, 4, dropout=1.0)


def test_a_block_hands_each_dropout_to_its_part(backend):
    config = BlockConfig(12, 3, 8, dropout=0.1, attention_dropout=0.2, feed_forward_dropout=0.3)
    assert config.for_attention["dropout"] == 0.2 and config.for_feed_forward["dropout"] == 0.3
    for name in ("EncoderLayer", "DecoderLayer"):
        layer = backend.make(name, config)
        if backend.has_training:
            assert {getattr(layer.feed_forward.dropout, rate, 0.3) for rate in ("p", "rate")} == {0.3}
