"""A Whisper trained by the loop to write down what it hears: the same in both frameworks, and how batches are read."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.batches.sounds import SoundBatch, SoundBatches
from course_lib.batches.texts import IGNORED
from course_lib.models.bert import BertConfig
from course_lib.models.whisper import WhisperConfig
from course_lib.training import reading
from tests.support import states, tasks
from tests.support.backends import TENSORFLOW, TORCH

# 0 is padding, 1 the start, 2 the end, 3 ... 6 what is said: one band each
CONFIG = WhisperConfig(7, 4, 12, 1, 1, 3, 2, 16, 16, 8, 6, pad_id=0, start_id=1, end_id=2)
BOTH = {"torch": TORCH, "tensorflow": TENSORFLOW}


def examples(n=32):
    """One to three tones of four frames each, and silence: (N, 4, 14) and what is said."""
    rng = np.random.default_rng(5)
    features, targets = 0.1 * rng.normal(size=(n, 4, 14)), []
    for sound in features:
        said = rng.integers(4, size=rng.integers(1, 4))
        for place, band in enumerate(said):
            sound[band, 1 + 4 * place : 5 + 4 * place] += 1
        targets.append(np.array([1, *(3 + said), 2]))
    return features, targets


FEATURES, TARGETS = examples()


def trained(library, steps, config=CONFIG, batches=None, **settings):
    model = BOTH[library].make("Whisper", config, state=states.random_state(states.whisper(config), seed=2, scale=0.3))
    loop, objective = tasks.module(library, "loop"), tasks.module(library, "transcription").transcription()
    batches = SoundBatches(FEATURES, TARGETS, 8, seed=3, multiple=5) if batches is None else batches
    given = {"rate": 1e-2, "steps": steps, "progress": False} | settings
    history = loop.train(model, batches.epoch, objective, **given)
    held_out = SoundBatches(FEATURES, TARGETS, 20, seed=None)
    return history, BOTH[library].lib.get_state(model), loop.evaluate(model, held_out, objective)


def test_fifty_steps_agree_between_the_frameworks():
    runs = [trained(library, 50, rate=3e-3) for library in BOTH]
    losses = [history.loss for history, _, _ in runs]
    assert len(losses[0]) == 50
    assert_allclose(losses[0], losses[1], rtol=0, atol=1e-3)
    assert losses[0][-4:].mean() < 0.7 * losses[0][:4].mean()
    assert_allclose(runs[1][2].nll, runs[0][2].nll, atol=1e-3)
    before = states.random_state(states.whisper(CONFIG), seed=2, scale=0.3)
    for name, value in runs[0][1].items():
        assert_allclose(runs[1][1][name], value, rtol=0, atol=1e-3, err_msg=name)
        assert abs(before[name] - value).max() > 1e-2, name
    for evaluation in (evaluation for *_, evaluation in runs):
        assert evaluation.n_tokens == sum(len(target) - 1 for target in TARGETS)


@pytest.mark.parametrize("library", BOTH)
def test_the_loss_is_that_of_the_real_tokens(library):
    """Of the token after each, by the logits of the call; smoothed where that is asked for."""
    backend, loop = BOTH[library], tasks.module(library, "loop")
    model = backend.make("Whisper", CONFIG, state=states.random_state(states.whisper(CONFIG)))
    (batch,) = SoundBatches(FEATURES, TARGETS, 32, seed=None)
    logits = backend.call(model, batch.features, batch.target[:, :-1]).logits.astype(np.float64)
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    labels = batch.target[:, 1:]
    real = labels != 0
    expected = -np.take_along_axis(logs, labels[..., None], -1)[..., 0][real].mean()
    transcription = tasks.module(library, "transcription").transcription
    assert_allclose(loop.evaluate(model, [batch], transcription()).nll, expected, rtol=1e-5)
    smoothed = 0.8 * expected - 0.2 * logs[real].mean()
    history = loop.train(model, lambda epoch: [batch], transcription(0.2), steps=1, progress=False)
    assert_allclose(history.loss[0], smoothed, rtol=1e-5)


@pytest.mark.parametrize("library", BOTH)
def test_what_is_wrong_with_a_batch_is_said_before_the_training(library):
    held_out = SoundBatches(FEATURES, TARGETS, seed=None)
    for config, message in (
        (replace(CONFIG, n_mels=5), r"the features of batch 0 of validation must have shape \(B, 5, F\)"),
        (replace(CONFIG, vocab_size=6), "the target of batch 0 of validation must lie in 0 ... 5"),
        (replace(CONFIG, max_len=3), "batch 0 of validation has a sequence of 4 tokens, over the maximum of 3"),
        (replace(CONFIG, end_id=0), "the model takes the token 0 for padding and for the end, which it would not"),
        (replace(CONFIG, pad_id=6), "the batches are padded with 0, but the model takes 6 for padding"),
    ):
        with pytest.raises(ValueError, match=message):
            trained(library, 1, config, validation=held_out)


def test_a_target_may_be_as_long_as_the_model_reads():
    """The last token is learned and not read."""
    (batch,) = SoundBatches(FEATURES, TARGETS, 32, seed=None)
    exact = SimpleNamespace(config=replace(CONFIG, max_len=batch.target.shape[1] - 1))
    assert reading.sounds(exact, "B", batch).counts > (0,)


def test_another_smoothing_is_another_training():
    for library in BOTH:
        objective = tasks.module(library, "transcription").transcription
        assert objective(0.3).settings == {"smoothing": 0.3} and objective().settings == {"smoothing": 0.0}
        assert objective().counted == "target token besides padding"


@pytest.mark.parametrize("library", BOTH)
def test_a_model_that_gives_no_logits(library):
    losses = tasks.module(library, "transcription").transcription_losses
    with pytest.raises(TypeError, match="a function gives no `logits`, which this objective needs"):
        losses(lambda *inputs, **options: (FEATURES,), FEATURES, TARGETS, TARGETS, 0.0)


def test_dropout_in_training_alone():
    """In TensorFlow, where the objective says which it is; PyTorch's model knows."""
    seen, losses = [], tasks.module("tensorflow", "transcription").transcription_losses

    def model(features, ids, training):
        seen.append(training)
        return SimpleNamespace(logits=np.zeros((1, 3, 7), np.float32))

    for training in (True, False):
        losses(model, FEATURES[:1], np.array([[1, 2, 3]]), np.array([[2, 3, 2]]), 0.0, training=training)
    losses(model, FEATURES[:1], np.array([[1, 2, 3]]), np.array([[2, 3, 2]]), 0.0)
    assert seen == [True, False, False]


def test_how_a_batch_is_read():
    model = SimpleNamespace(config=CONFIG)
    (batch,) = SoundBatches(FEATURES, TARGETS, 32, seed=None)
    update = reading.sounds(model, "B", batch)
    assert update.counts == (sum(len(target) - 1 for target in TARGETS),)
    assert update.arrays.keys() == {"features", "inputs", "labels"}
    assert update.arrays["features"].dtype == np.float32
    assert_array_equal(update.arrays["inputs"], batch.target[:, :-1])
    assert_array_equal(update.arrays["labels"], np.where(batch.target[:, 1:] == 0, IGNORED, batch.target[:, 1:]))
    wide = SoundBatch(FEATURES, batch.target)
    assert reading.sounds(model, "B", tuple(wide)).arrays["features"].dtype == np.float32
    assert reading.sounds(SimpleNamespace(_orig_mod=model), "B", batch).counts == update.counts


@pytest.mark.parametrize("changes, error, message", [
    ({"features": FEATURES[:3]}, ValueError, r"target of B has the shape \(32, 5\), which does not fit its features"),
    ({"features": FEATURES.astype(int)}, TypeError, "features of B must be numbers of floating point"),
    ({"features": FEATURES[0]}, ValueError, r"features of B must have shape \(B, n_mels, F\)"),
    ({"target": FEATURES[:, 0]}, TypeError, "target of B must be integers"),
    ({"target": None}, TypeError, "target of B must be an array"),
])  # fmt: skip
def test_what_is_no_batch(changes, error, message):
    (batch,) = SoundBatches(FEATURES, TARGETS, 32, seed=None)
    with pytest.raises(error, match=message):
        reading.sounds(SimpleNamespace(config=CONFIG), "B", batch._replace(**changes))


def test_what_hears_nothing():
    (batch,) = SoundBatches(FEATURES, TARGETS, 32, seed=None)
    with pytest.raises(TypeError, match="a SimpleNamespace reads no sounds: its config has no n_mels"):
        reading.sounds(SimpleNamespace(config=BertConfig(9, 8, 1, 2, 12)), "B", batch)


def test_batches_hold_each_sound_once_in_an_order_of_each_epoch():
    batches = SoundBatches(FEATURES, TARGETS, 10, seed=1, pad_id=9, multiple=4)
    assert [len(batch.target) for batch in batches] == [10, 10, 10, 2] and batches.pad_id == 9
    orders = []
    for epoch in (0, 1):
        rows = []
        for batch in batches.epoch(epoch):
            assert batch.features.dtype == np.float32 and batch.target.shape[1] in (4, 8)
            for sound, target in zip(batch.features, batch.target, strict=True):
                (row,) = np.flatnonzero((FEATURES.astype(np.float32) == sound).all(axis=(1, 2)))
                assert_array_equal(target, [*TARGETS[row], *[9] * (len(target) - len(TARGETS[row]))])
                rows.append(row)
        assert sorted(rows) == list(range(32))
        orders.append(rows)
    assert orders[0] != orders[1] != sorted(orders[1])
    again = SoundBatches(FEATURES, TARGETS, 10, seed=1, epoch=1, pad_id=9, multiple=4)
    assert_array_equal(again[0].features, batches.epoch(1)[0].features)
    assert_array_equal(SoundBatches(FEATURES, TARGETS, 10, seed=None)[0].features, FEATURES[:10].astype(np.float32))


@pytest.mark.parametrize("changes, error, message", [
    ({"features": FEATURES[0]}, ValueError, r"features must have shape \(N, n_mels, F\), N of 1 or more; got \(4, 14"),
    ({"features": FEATURES[:0], "targets": []}, ValueError, "N of 1 or more"),
    ({"features": FEATURES.astype(int)}, TypeError, "features must be numbers of floating point, got int64"),
    ({"targets": TARGETS[:5]}, ValueError, "there must be one target for each of 32 sounds, got 5"),
    ({"targets": [*TARGETS[:31], np.array([], int)]}, ValueError, "every target needs at least one token"),
    ({"targets": ["a text"] * 32}, TypeError, "encode the texts by a tokenizer first"),
    ({"batch_size": 0}, ValueError, "batch_size must be a whole number of 1 or more"),
    ({"epoch": -1}, ValueError, "epoch must be a whole number of 0 or more"),
    ({"multiple": 0}, ValueError, "multiple must be a whole number of 1 or more"),
])  # fmt: skip
def test_what_makes_no_batches(changes, error, message):
    with pytest.raises(error, match=message):
        SoundBatches(**{"features": FEATURES, "targets": TARGETS, **changes})
