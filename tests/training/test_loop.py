"""The loop for every task: accumulation, optimizers, evaluation, what is saved, and the documented example."""

import doctest
import inspect

import keras
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.batches.texts import TextBatches, TokenBatches
from tests.support import tasks, translators
from tests.support.tasks import DROPOUT, module, train

LIBRARIES = ["torch", "tensorflow"]


@pytest.fixture(params=LIBRARIES)
def library(request):
    return request.param


def sgd(library, model):
    """Plain gradient descent, which shows the size of a gradient."""
    return torch.optim.SGD(model.parameters(), 1.0) if library == "torch" else keras.optimizers.SGD(1.0)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_documented_example_runs_as_it_stands(library):
    (test,) = [test for test in doctest.DocTestFinder().find(module(library, "loop"), "loop") if test.examples]
    result = doctest.DocTestRunner().run(test)
    assert result.attempted >= 8 and not result.failed
    assert test.docstring.count("\n>>>") + test.docstring.count("\n...") <= 19


def joined(task, batches):
    """Several batches as one, of the same width."""
    if task == "translation":
        width = [max(batch[i].shape[1] for batch in batches) for i in (0, 1)]
        return tuple(
            np.concatenate([np.pad(b[i], ((0, 0), (0, width[i] - b[i].shape[1]))) for b in batches]) for i in (0, 1)
        )
    return type(batches[0])(*map(np.concatenate, zip(*batches, strict=True)))


def split(task):
    """Batches of 2, 5 and 1 examples, and one of all of them."""
    if task == "translation":
        parts = [batch[:2] for batch in (translators.batches(n, n, seed=n)(0)[0] for n in (2, 5, 1))]
        return parts, joined(task, parts)
    whole = tasks.batch(task, np.random.default_rng(5), 8)
    return [type(whole)(*(a[i:j] for a in whole)) for i, j in ((0, 2), (2, 7), (7, 8))], whole


@pytest.mark.parametrize("task", ["translation", "classification", "pretraining"])
def test_small_batches_make_the_update_of_one_large_one(library, task):
    """They count differently many predictions, and the parts of a loss in different shares."""
    parts, whole = split(task)
    states, histories = [], []
    for given, accumulate in (([whole], 1), (parts, 3)):
        model = tasks.build(library, task)
        histories.append(
            train(library, task, model, lambda epoch, g=given: g, optimizer=sgd(library, model), rate=0.1,
                  accumulate=accumulate, steps=3, max_norm=0.5)
        )  # fmt: skip
        states.append(tasks.LIBRARIES[library].get_state(model))
    assert_allclose(histories[0].loss, histories[1].loss, rtol=1e-4)
    assert_array_equal(histories[0].tokens, histories[1].tokens)
    for name, value in states[0].items():
        assert_allclose(states[1][name], value, rtol=1e-3, atol=1e-5, err_msg=name)


def test_a_bad_batch_of_a_group_has_its_name(library):
    def batches(epoch):
        found = tasks.batches("classification")(epoch)
        return [*found[:3], found[3]._replace(labels=found[3].labels + 1), found[4]]

    with pytest.raises(ValueError, match="the labels of batch 3 of epoch 0 must lie in 0 ... 2"):
        train(library, "classification", given=batches, accumulate=2, epochs=1)


def test_evaluation_counts_each_label_once_and_without_dropout(library):
    model = tasks.build(library, "pretraining", DROPOUT)
    batches, loop = tasks.batches("pretraining", 3)(0), module(library, "loop")
    objective = tasks.objective(library, "pretraining")
    found = loop.evaluate(model, batches, objective)
    assert found == loop.evaluate(model, batches, objective)
    masked, follows = found.parts["masked"], found.parts["next"]
    assert masked.n_tokens == found.n_tokens == sum((batch.labels != -100).sum() for batch in batches)
    assert follows.n_tokens == 24 and 0 < follows.accuracy < 1
    assert_allclose(found.nll, masked.nll + follows.nll)
    assert found.accuracy == masked.accuracy
    whole = [loop.evaluate(model, [batch], objective).parts["masked"] for batch in batches]
    assert_allclose(masked.nll, np.average([w.nll for w in whole], weights=[w.n_tokens for w in whole]), rtol=1e-6)


def test_what_is_no_optimizer(library):
    model, other = (tasks.build(library, "classification") for _ in range(2))
    with pytest.raises(TypeError, match="optimizer must be one of .*got str"):
        train(library, "classification", model, steps=1, optimizer="adam")
    with pytest.raises(ValueError, match="holds 25 weights that the model has not"):
        train(library, "classification", model, steps=1, optimizer=module(library, "optimizers").adamw(other))
    with pytest.raises(TypeError, match=r"objective must be an Objective.*write classification\(\)"):
        module(library, "loop").train(model, [], module(library, "objectives").classification, steps=1)


def test_keras_schedules_are_given_as_the_rate():
    schedule = keras.optimizers.schedules.CosineDecay(1e-3, 10)
    with pytest.raises(ValueError, match="schedule of its own; give it a number"):
        train("tensorflow", "classification", steps=1, optimizer=keras.optimizers.Adam(schedule))


def test_dropout_is_on_and_follows_the_seed(library):
    def losses(seed):
        model = tasks.build(library, "classification", DROPOUT)
        return train(library, "classification", model, steps=4, accumulate=2, seed=seed).loss

    first = losses(1)
    assert_allclose(first, losses(1), rtol=1e-6)
    assert np.abs(first - losses(2)).max() > 1e-3
    assert np.abs(first - train(library, "classification", steps=4, accumulate=2).loss).max() > 1e-3


def test_one_trace_serves_batches_of_every_length(monkeypatch):
    loop, found = module("tensorflow", "loop"), []
    monkeypatch.setattr(loop, "Traced", lambda *a, make=loop.Traced: found.append(make(*a)) or found[-1])
    for task in ("masked_lm", "contrastive"):
        train("tensorflow", task, epochs=2, validation=tasks.batches(task, 3)(0))
    counts = [f.experimental_get_tracing_count() for traced in found for f in traced.traced.values()]
    assert len(counts) == 4 and set(counts) == {1}


def test_xla_gives_the_same_losses():
    one = tasks.batches("classification")(0)[:1]
    first, compiled = (
        train("tensorflow", "classification", given=lambda epoch: one, steps=4, accumulate=n, jit_compile=jit).loss
        for jit, n in ((False, 1), (True, 1))
    )
    assert_allclose(compiled, first, rtol=1e-4)


def test_xla_learns_blanks_when_asked_for_all_tokens():
    one = tasks.batches("masked_lm")(0)[:1]
    losses = []
    for at in (True, False):
        objective = module("tensorflow", "objectives").masked_lm(at)
        call = (tasks.build("tensorflow", "masked_lm"), lambda epoch: one, objective)
        losses.append(
            module("tensorflow", "loop").train(*call, rate=1e-2, steps=3, progress=False, jit_compile=not at).loss
        )
    assert_allclose(*losses, rtol=1e-4)


def test_xla_is_handed_on(monkeypatch):
    asked, training = [], module("tensorflow", "translation")
    monkeypatch.setattr(module("tensorflow", "loop"), "train", lambda *a, **more: asked.append(more["jit_compile"]))
    for jit in (False, True):
        training.train(translators.build("tensorflow"), translators.batches(), steps=1, jit_compile=jit)
    assert asked == [False, True]


def test_a_compiled_model_is_trained():
    model = torch.compile(tasks.build("torch", "classification"), backend="eager")
    assert_allclose(
        train("torch", "classification", model, steps=3).loss, train("torch", "classification", steps=3).loss, rtol=1e-5
    )


def test_the_loop_takes_the_path_of_keras_fit(examples):
    from tests.support import classifiers

    sequences, labels = examples
    run, other = classifiers.build("tensorflow"), classifiers.build("tensorflow")
    expected = run.training.train(run.model, sequences, labels, epochs=2, batch_size=16, lr=3e-3, progress=False)
    schedule = run.training.WarmupThenLinearDecay(3e-3, 12, 1)
    found = module("tensorflow", "loop").train(
        other.model,
        TextBatches(sequences, labels, 16),
        module("tensorflow", "objectives").classification(),
        rate=lambda step: float(schedule(step)),
        optimizer=module("tensorflow", "optimizers").adamw(other.model),
        max_norm=1.0,
        epochs=2,
        progress=False,
    )
    assert_allclose(found.loss, expected, rtol=1e-3, atol=1e-4)


def test_labelled_batches_are_those_of_the_ids():
    from course_lib.batches.texts import IGNORED, epochs_of

    rng = np.random.default_rng(0)
    sequences = [rng.integers(2, 30, n) for n in rng.integers(3, 9, 50)]
    labels, of_tokens = np.arange(50) % 3, [ids % 3 for ids in sequences]
    texts = TextBatches(sequences, labels, 8, 4, pad_id=1, segments=of_tokens)
    tokens = TokenBatches(sequences, of_tokens, 8, 4, pad_id=1)
    for epoch, plain in enumerate(epochs_of(sequences, 2, 8, 4, 1)):
        for (ids, segments, found), (expected, rows) in zip(texts.epoch(epoch), plain, strict=True):
            assert_array_equal(ids, expected)
            assert_array_equal(found, labels[rows])
            assert_array_equal(segments, np.where(expected == 1, 0, expected % 3))
        for ids, found in tokens.epoch(epoch):
            assert_array_equal(found, np.where(ids == 1, IGNORED, ids % 3))
        rows = [ids[ids != 1].tolist() for batch in tokens.epoch(epoch) for ids in batch.ids]
        assert sorted(rows) == sorted(ids.tolist() for ids in sequences)
    order = lambda seed, epoch: [ids.tolist() for ids, _ in TokenBatches(sequences, of_tokens, 8, seed, epoch)]  # noqa: E731
    assert order(1, 0) == order(1, 0) != order(0, 1000)
    assert TextBatches(sequences, labels)[0].segments is None and texts.pad_id == 1
    with pytest.raises(ValueError, match=r"labels must have shape \(50,\), got \(49,\)"):
        TextBatches(sequences, labels[1:])
    for arguments in ({"labels": of_tokens[1:]}, {"labels": [ids[1:] for ids in of_tokens]}):
        with pytest.raises(ValueError, match="labels must be as many arrays as sequences, each of the same length"):
            TokenBatches(sequences, **arguments)
    with pytest.raises(TypeError, match="labels must be integers, got float64"):
        TextBatches(sequences, labels / 2)


def built_with(policy, task):
    """A model of Keras's that is built with a policy."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        return tasks.build("tensorflow", task)
    finally:
        keras.config.set_dtype_policy(before)


def test_float16_clips_the_gradient_as_it_is_without_the_scale():
    """A step of plain gradient descent is as long as the gradient."""
    model = built_with("mixed_float16", "classification")
    before = [variable.numpy() for variable in model.trainable_variables]
    given = {"optimizer": sgd("tensorflow", model), "rate": 1.0, "max_norm": 0.01, "steps": 1}
    train("tensorflow", "classification", model, **given)
    moved = [variable.numpy() - b for variable, b in zip(model.trainable_variables, before, strict=True)]
    assert_allclose(np.sqrt(sum((step**2).sum() for step in moved)), 0.01, rtol=0.02)


@pytest.mark.parametrize("name", ["mixed_bfloat16", "mixed_float16"])
def test_keras_policies_train_by_any_objective(name):
    model = built_with(name, "spans")
    optimizer = module("tensorflow", "optimizers").adamw(model, layer_decay=0.8)
    assert isinstance(optimizer, keras.optimizers.LossScaleOptimizer) == (name == "mixed_float16")
    found = train("tensorflow", "spans", model, steps=6, accumulate=2, optimizer=optimizer, max_norm=1.0)
    assert {variable.dtype for variable in model.trainable_variables} == {"float32"}
    model = tasks.build("torch", "spans")
    optimizer = module("torch", "optimizers").adamw(model, layer_decay=0.8)
    expected = train("torch", "spans", model, steps=6, accumulate=2, optimizer=optimizer, max_norm=1.0)
    assert_allclose(found.loss, expected.loss, atol=0.1)  # of about 3, from logits of 8 or 11 bits


def test_autocast_trains_by_any_objective():
    losses = []
    for mixed in (False, True):
        model = tasks.build("torch", "spans")
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            optimizer = module("torch", "optimizers").adamw(model, layer_decay=0.8)
            found = train("torch", "spans", model, steps=6, accumulate=2, optimizer=optimizer, max_norm=1.0)
        assert {weight.dtype for weight in model.parameters()} == {torch.float32}
        losses.append(found.loss)
    assert_allclose(losses[1], losses[0], atol=0.1)
    assert np.abs(losses[1] - losses[0]).max() > 1e-4


def test_a_training_of_several_parts_needs_labels_of_each_to_validate():
    batch = tasks.batches("pretraining", 1)(0)[0]
    none = [batch._replace(follows=batch.follows * 0 - 100)]
    with pytest.raises(ValueError, match="validation has no label of its part 'next'"):
        train("torch", "pretraining", validation=none, steps=1)
    with pytest.raises(ValueError, match="there is no label of the part 'next' to evaluate on"):
        model, objective = tasks.build("torch", "pretraining"), tasks.objective("torch", "pretraining")
        tasks.module("torch", "loop").evaluate(model, none, objective)
    assert len(train("torch", "pretraining", given=lambda epoch: none, steps=1).loss) == 1


PUBLIC = {
    "loop": ["train", "evaluate"],
    "objectives": [*tasks.TASKS],
    "optimizers": ["adam", "adamw", "set_rate", "described", "check_optimizer"],
    "freezing": ["freeze", "unfreeze", "trained"],
}


def test_the_same_calls_in_both_frameworks():
    for name, functions in PUBLIC.items():
        for function in functions:
            ours, theirs = (inspect.signature(getattr(module(library, name), function)) for library in LIBRARIES)
            more = ("jit_compile", "measure")
            shared = [parameter for parameter in theirs.parameters.values() if parameter.name not in more]
            assert list(ours.parameters.values()) == shared, (name, function)
