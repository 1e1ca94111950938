"""Training of translation models: the same in both frameworks, equal to a loop written out, limits, early stopping."""

import importlib
import inspect
import time

import numpy as np
import pytest
import tensorflow as tf
import torch
from numpy.testing import assert_allclose
from torch.nn import functional as F

from course_lib.tensorflow.training.optimizers import adam
from course_lib.training.schedules import warmup_then_inverse_root
from tests.support import translators

SETTINGS = {"rate": 3e-3, "progress": False}


def training(framework):
    return importlib.import_module(f"course_lib.{framework}.training.translation")


def weights(framework, model):
    return importlib.import_module(f"course_lib.{framework}").get_state(model)


@pytest.fixture(params=["torch", "tensorflow"])
def framework(request):
    return request.param


@pytest.mark.parametrize("model", translators.MODELS)
def test_both_frameworks_take_the_same_path(model):
    def rate(step):
        return 0.1 * warmup_then_inverse_root(step, translators.D, 20)

    runs = [
        training(name).train(
            translators.build(name, model), translators.batches(), rate=rate, steps=100, max_norm=1.0, progress=False
        )
        for name in ("torch", "tensorflow")
    ]
    assert len(runs[0].loss) == 100
    assert runs[0].loss[-5:].mean() < runs[0].loss[:5].mean() - 0.1
    assert_allclose(runs[0].loss, runs[1].loss, rtol=0, atol=1e-3)
    assert (runs[0].tokens == runs[1].tokens).all()


def test_torch_equals_a_loop_written_out():
    ours, model = translators.build("torch"), translators.build("torch")
    history = training("torch").train(
        ours, translators.batches(), rate=lambda n: 1e-3 * (n + 1), smoothing=0.1, max_norm=0.5, steps=8, progress=False
    )
    moments = {name: [torch.zeros_like(p), torch.zeros_like(p)] for name, p in model.named_parameters()}
    pairs = [pair for epoch in (0, 1) for pair in translators.batches()(epoch)][:8]
    for step, (source, target, _) in enumerate(pairs):
        source, target = torch.as_tensor(source), torch.as_tensor(target)
        logits = model(source, target[:, :-1]).logits
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0, label_smoothing=0.1)
        assert_allclose(history.loss[step], loss.item(), rtol=1e-4)
        assert history.tokens[step] == (target[:, 1:] != 0).sum()
        model.zero_grad()
        loss.backward()
        norm = torch.sqrt(sum((p.grad**2).sum() for p in model.parameters()))
        assert norm > 0.5  # so that the clipping is tested
        with torch.no_grad():
            for name, p in model.named_parameters():
                g = p.grad * 0.5 / norm
                first, second = moments[name]
                first.mul_(0.9).add_(0.1 * g)
                second.mul_(0.98).add_(0.02 * g**2)
                unbiased = second / (1 - 0.98 ** (step + 1))
                p.sub_(1e-3 * (step + 1) * first / (1 - 0.9 ** (step + 1)) / (unbiased.sqrt() + 1e-9))
    for name, p in model.named_parameters():
        if not name.endswith("k_proj.bias"):  # its gradient is zero but for rounding, which Adam magnifies
            assert_allclose(weights("torch", ours)[name], p.detach().numpy(), rtol=1e-3, atol=1e-4, err_msg=name)


def test_it_learns_and_says_so(framework):
    model, held_out = translators.build(framework), translators.batches()(99)  # seen pairs in another order
    history = training(framework).train(
        model, translators.batches(), held_out, rate=2e-2, smoothing=0.0, epochs=15, progress=False
    )
    assert history.stopped_by == "epochs" and len(history.loss) == 90
    assert [look.step for look in history.validation] == list(range(6, 91, 6))
    assert history.loss[-6:].mean() < history.loss[:6].mean() - 0.5
    assert history.validation[-1].accuracy > history.validation[0].accuracy + 0.1
    assert (np.diff(history.seconds) >= 0).all() and history.seconds[0] > 0
    assert framework != "torch" or not model.training
    found = training(framework).evaluate(model, held_out)
    assert_allclose(found.nll, history.best.nll, rtol=1e-5)
    assert_allclose(found.accuracy, history.best.accuracy)


def test_evaluation_counts_real_tokens_once(framework):
    model = translators.build(framework, dropout=0.5)
    batches = translators.batches(30, seed=5)(0)
    found = training(framework).evaluate(model, batches)
    assert found == training(framework).evaluate(model, batches)  # no dropout
    rows = [pair for source, target, _ in batches for pair in zip(source, target, strict=True)]
    one_by_one = [(s[None, s != 0], t[None, t != 0]) for s, t in rows]
    alone = training(framework).evaluate(model, one_by_one)
    assert found.n_tokens == alone.n_tokens == sum((t[:, 1:] != 0).sum() for _, t, _ in batches)
    assert_allclose(found, alone, rtol=1e-5)


def test_padding_is_never_right(framework):
    """Also for a model that predicts padding everywhere, as the labels after the end are."""
    model = translators.build(framework)
    state = weights(framework, model)
    state["output.bias" if framework == "torch" else "output_layer.bias"][0] = 1000.0
    importlib.import_module(f"course_lib.{framework}").set_state(model, state)
    assert training(framework).evaluate(model, translators.batches()(0)).accuracy == 0


def test_early_stopping_restores_the_best_weights(framework):
    model, held_out = translators.build(framework), translators.batches(30, seed=5)(0)
    steep = lambda step: 1e-2 if step < 12 else 1.0  # noqa: E731 - from step 12 on, it can only get worse

    history = training(framework).train(
        model, translators.batches(), held_out, rate=steep, epochs=40, patience=3, validate_every=4, progress=False
    )
    assert history.stopped_by == "patience"
    assert history.best == min(history.validation, key=lambda look: look.nll)
    assert history.validation[-1].step - history.best.step == 12 and history.validation[-1].nll > history.best.nll
    assert_allclose(training(framework).evaluate(model, held_out).nll, history.best.nll, rtol=1e-5)


def test_time_is_a_limit(framework):
    history = training(framework).train(translators.build(framework), translators.batches(), seconds=0.5, **SETTINGS)
    assert history.stopped_by == "seconds"
    assert history.seconds[-1] >= 0.5 and (len(history.seconds) < 2 or history.seconds[-2] < 0.5)


def test_validation_does_not_count_as_time(framework):
    class Slow(list):
        def __iter__(self):
            time.sleep(0.2)
            return super().__iter__()

    held_out, start = Slow(translators.batches(10)(0)), time.perf_counter()
    history = training(framework).train(
        translators.build(framework), translators.batches(), held_out, steps=4, validate_every=1, **SETTINGS
    )
    assert len(history.validation) == 4
    assert history.seconds[-1] <= time.perf_counter() - start - 4 * 0.2


class Clock:
    """A clock that stands still until a batch is taken, which takes `seconds`."""

    def __init__(self, start, seconds):
        self.now, self.seconds = start, seconds

    def __call__(self):
        return self.now

    def batches(self, epoch):
        clock = self

        class Timed(list):
            def __getitem__(self, i):
                clock.now += clock.seconds
                return super().__getitem__(i)

        return Timed(translators.batches()(epoch))


@pytest.mark.parametrize("start", [0.0, 1000.0])
def test_the_clock_decides_when_time_is_over(framework, start):
    clock = Clock(start, 2.0)
    history = training(framework).train(
        translators.build(framework), clock.batches, seconds=15.0, clock=clock, **SETTINGS
    )
    assert history.stopped_by == "seconds"
    assert_allclose(history.seconds, 2.0 * np.arange(1, 9))  # into the second epoch, which begins after six


def test_the_clock_stands_still_during_validation_and_between_two_runs(framework, tmp_path):
    def run(steps, start):
        clock = Clock(start, 2.0)

        class Slow(list):
            def __iter__(self):
                clock.now += 500.0
                return super().__iter__()

        limits = {"steps": steps, "seconds": 100.0, "validate_every": 3, "checkpoint": tmp_path}
        model, held_out = translators.build(framework), Slow(translators.batches(10)(0))
        return training(framework).train(model, clock.batches, held_out, clock=clock, **limits, **SETTINGS)

    assert_allclose(run(4, 50.0).seconds, [2, 4, 6, 8])
    history = run(9, 7.0)
    assert_allclose(history.seconds, 2.0 * np.arange(1, 10))
    assert history.stopped_by == "steps"
    assert_allclose([look.seconds for look in history.validation], [6, 8, 12, 18])


def test_dropout_is_on_in_training_and_follows_the_seed(framework):
    def losses(dropout, seed):
        model = translators.build(framework, dropout=dropout)
        return training(framework).train(model, translators.batches(), steps=6, seed=seed, **SETTINGS).loss

    first = losses(0.4, 1)
    assert_allclose(first, losses(0.4, 1), rtol=1e-6)
    assert np.abs(first - losses(0.4, 2)).max() > 1e-3
    assert np.abs(first - losses(0.0, 1)).max() > 1e-3


def test_clipping_sees_the_whole_gradient_of_an_embedding():
    """Keras's own clipping would count a token that occurs twice as two gradients and not as their sum."""
    batch = (np.full((4, 3), 5), np.full((4, 5), 5))
    losses = [
        training(name).train(
            translators.build(name), lambda epoch: [batch], rate=0.1, max_norm=0.05, steps=4, progress=False
        ).loss
        for name in ("torch", "tensorflow")
    ]
    assert_allclose(*losses, atol=1e-3)


def test_tensorflow_traces_once():
    model = translators.build("tensorflow")
    step = training("tensorflow").make_train_step(model, adam(model))
    for source, target, _ in translators.batches(60, 7)(0):
        step(*map(tf.convert_to_tensor, (source, target[:, :-1], target[:, 1:])))
    assert step.experimental_get_tracing_count() == 1


def test_xla_gives_the_same_losses():
    def losses(jit):
        model = translators.build("tensorflow")
        one = translators.batches(20, 10)(0)[:1]
        return training("tensorflow").train(model, lambda epoch: one, steps=3, jit_compile=jit, **SETTINGS).loss

    assert_allclose(losses(True), losses(False), rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "training needs an end"),
        ({"steps": 0}, "steps must be positive"),
        ({"epochs": 2, "patience": 0, "validation": translators.batches(10)(0)}, "patience must be positive"),
        ({"seconds": float("nan")}, "seconds must be positive"),
    ],
)
def test_bad_limits(framework, arguments, message):
    with pytest.raises(ValueError, match=message):
        training(framework).train(translators.build(framework), translators.batches(), progress=False, **arguments)


def test_no_batches(framework):
    with pytest.raises(ValueError, match="epoch 0 has no batches"):
        training(framework).train(translators.build(framework), lambda epoch: [], epochs=1, progress=False)


def test_nothing_to_evaluate(framework):
    with pytest.raises(ValueError, match="no target token"):
        training(framework).evaluate(translators.build(framework), [])


def test_the_same_call_in_both_frameworks():
    ours, theirs = (inspect.signature(training(name).train) for name in ("torch", "tensorflow"))
    assert ours == theirs
    for name in ("History", "model", "batches", "rate", "checkpoint"):
        assert name in training("torch").train.__doc__ and name in training("tensorflow").train.__doc__
