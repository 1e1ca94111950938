"""Training in half precision: autocast around a whole training, predictions in bfloat16, and Keras's policies."""

import contextlib
import importlib

import keras
import numpy as np
import pytest
import tensorflow as tf
import torch
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.batches.texts import Batches
from course_lib.tensorflow.training import optimizers
from course_lib.torch.training.optimizers import adam
from course_lib.training.teacher_forcing import teacher_forcing
from tests.support import classifiers, translators

MIXED = ("cpu", torch.bfloat16)
translation = importlib.import_module("course_lib.torch.training.translation")


def test_autocast_around_a_training_is_autocast_around_each_step():
    """A validation between two updates, too, leaves nothing behind that the next update would compute with."""
    pairs, held_out = translators.batches(), translators.batches(20, seed=5)(0)
    model, expected = (translators.build("torch", "transformer") for _ in range(2))
    with torch.autocast(*MIXED):
        history = translation.train(model, pairs, held_out, rate=1e-2, steps=12, validate_every=5, progress=False)
        after = translation.evaluate(model, held_out)
    optimizer = adam(expected)
    optimizer.param_groups[0]["lr"] = 1e-2
    losses, looks = [], {}
    for step in range(12):
        with torch.autocast(*MIXED):
            batch = teacher_forcing(pairs(step // 6)[step % 6])
            losses.append(float(translation.train_step(expected, optimizer, batch, 0.1)))
        if step + 1 in (5, 10, 12):
            with torch.autocast(*MIXED):
                looks[step + 1] = translation.evaluate(expected, held_out).nll
    assert_array_equal(history.loss, losses)
    assert {look.step: look.nll for look in history.validation} == looks
    assert after.nll == history.best.nll


def test_autocast_around_fine_tuning_is_autocast_around_each_step(examples):
    sequences, labels = examples
    run, expected = classifiers.build("torch"), classifiers.build("torch").model
    with torch.autocast(*MIXED):
        before = run.training.predict(run.model, sequences)
        losses = run.training.train(run.model, sequences, labels, batch_size=16, lr=1e-2, progress=False)
        logits = run.training.predict(run.model, sequences)
    optimizer, schedule = run.training.make_optimizer(expected, 6, 1e-2)
    expected.train()
    for (ids, rows), loss in zip(Batches(sequences, 16, seed=0), losses, strict=True):
        with torch.autocast(*MIXED):
            assert float(run.training.train_step(expected, optimizer, ids, labels[rows])) == loss
        schedule.step()
    with torch.autocast(*MIXED):
        assert_array_equal(logits, run.training.predict(expected, sequences))
    assert logits.dtype == np.float32 and np.abs(logits - before).max() > 0.1


def test_a_bfloat16_classifier_predicts_and_embeds(examples):
    run = classifiers.build("torch")
    expected = run.training.predict(run.model, examples[0]), run.training.embed(run.model.bert, examples[0])
    run.model.to(torch.bfloat16)
    found = run.training.predict(run.model, examples[0]), run.training.embed(run.model.bert, examples[0])
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == np.float32
        assert_allclose(ours, theirs, atol=0.1)  # eight bits of significand through two layers, values of size 1


@contextlib.contextmanager
def policy(name):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


@pytest.mark.parametrize(("name", "stops"), [("mixed_float16", [5, 9]), ("mixed_bfloat16", [9])])
def test_keras_policies_train_and_are_resumed(tmp_path, name, stops):
    """In pieces for float16, which has a state of its own: the scale of the loss."""
    training = importlib.import_module("course_lib.tensorflow.training.translation")
    held_out = translators.batches(20, seed=5)(0)
    settings = {"rate": 1e-2, "validate_every": 4, "progress": False, "max_norm": 0.5}
    for steps in stops:
        with policy(name):
            model = translators.build("tensorflow", "transformer")
            history = training.train(
                model, translators.batches(), held_out, steps=steps, checkpoint=tmp_path, **settings
            )
    in_float32 = translators.build("torch", "transformer")
    expected = translation.train(in_float32, translators.batches(), held_out, steps=9, **settings)
    # losses of about 3 from logits of 8 (bfloat16) or 11 bits
    assert_allclose(history.loss, expected.loss, atol=0.05)
    assert_allclose(history.best.nll, expected.best.nll, atol=0.05)


def test_float16_scales_its_loss_and_clips_the_gradient_as_it_is_without():
    """A step of plain gradient descent shows the size of a gradient, which Adam hides."""
    training = importlib.import_module("course_lib.tensorflow.training.translation")
    batch = teacher_forcing(translators.batches()(0)[0])
    in_float32 = translators.build("torch", "transformer")
    before = translators.LIBRARIES["torch"].get_state(in_float32)
    translation.train_step(in_float32, torch.optim.SGD(in_float32.parameters(), 1.0), batch, 0.1, 0.01)
    expected = translators.LIBRARIES["torch"].get_state(in_float32)
    with policy("mixed_float16"):
        model = translators.build("tensorflow", "transformer")
        assert isinstance(optimizers.adam(model), keras.optimizers.LossScaleOptimizer)
        optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(1.0), initial_scale=2.0**10)
        optimizer.build(model.trainable_variables)
        training.make_train_step(model, optimizer, 0.1, 0.01)(*map(tf.convert_to_tensor, batch))
    found = translators.LIBRARIES["tensorflow"].get_state(model)
    ours, theirs = (
        np.concatenate([(state[name] - before[name]).ravel() for name in before]) for state in (found, expected)
    )
    assert np.linalg.norm(ours - theirs) < 0.05 * 0.01
    assert_allclose([np.linalg.norm(ours), np.linalg.norm(theirs)], 0.01, rtol=0.02)


def test_a_mixed_classifier_scales_its_loss_whatever_the_global_policy_is(examples):
    sequences, labels = examples[0][:32], examples[1][:32]
    with policy("mixed_float16"):
        run = classifiers.build("tensorflow")
    assert run.training.Logits(run.model).dtype_policy.name == "mixed_float16"  # this makes `compile` scale the loss
    losses = run.training.train(run.model, sequences, labels, batch_size=16, progress=False)
    in_float32 = classifiers.build("torch")
    expected = in_float32.training.train(in_float32.model, sequences, labels, batch_size=16, progress=False)
    assert_allclose(losses, expected, atol=0.02)
    assert run.training.predict(run.model, sequences).dtype == np.float32
