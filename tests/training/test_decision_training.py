"""A Decision Transformer trained by the loop: the same in both frameworks, for actions that are numbers and for ids."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.batches.texts import IGNORED
from course_lib.batches.trajectories import TrajectoryBatch, returns_to_go
from course_lib.models.decision import DecisionConfig
from course_lib.models.vit import ViTConfig
from course_lib.training import reading
from tests.support import states, tasks
from tests.support.backends import TENSORFLOW, TORCH

CONFIG = DecisionConfig(3, 2, 12, 1, 3, 20, 9, True, 0.0, 0.0, 0.0)
BOTH = {"torch": TORCH, "tensorflow": TENSORFLOW}
RNG = np.random.default_rng(0)
REAL = np.arange(5) < RNG.integers(2, 6, size=(32, 1))
REAL[0] = True
REAL[1::2] = REAL[1::2, ::-1]  # padding on the left, which the steps behind it would see
STATES = RNG.normal(size=(32, 5, 3)).astype(np.float32)
RETURNS = RNG.choice([-1.0, 1.0], size=(32, 1, 1)).repeat(5, axis=1).astype(np.float32)
TIMES = RNG.integers(0, 4, size=(32, 1)) + np.arange(5)
NUMBERS = np.tanh(2 * RETURNS * STATES[..., :2]).astype(np.float32)  # what is done depends on what was wanted
IDS = (RETURNS * STATES[..., :1] > 0)[..., 0].astype(np.int64)
KINDS = {"numbers": (CONFIG, NUMBERS), "ids": (replace(CONFIG, action_tanh=False), IDS)}


def batches(actions, n=8):
    rows = [slice(i, i + n) for i in range(0, len(STATES), n)]
    return [TrajectoryBatch(*(array[r] for array in (STATES, actions, RETURNS, TIMES, REAL))) for r in rows]


def objective_of(library):
    return tasks.module(library, "decisions").actions()


def trained(library, kind, steps, config=None, **settings):
    usual, actions = KINDS[kind]
    config = config or usual
    model = BOTH[library].make(
        "DecisionTransformer", config, state=states.random_state(states.decision(config), seed=2)
    )
    loop, objective, held_out = tasks.module(library, "loop"), objective_of(library), batches(actions, 20)
    given = {"rate": 1e-2, "steps": steps, "progress": False} | settings
    history = loop.train(model, lambda epoch: batches(actions), objective, held_out, **given)
    return history, BOTH[library].lib.get_state(model), loop.evaluate(model, held_out, objective)


@pytest.mark.parametrize("kind", KINDS)
def test_fifty_steps_agree_between_the_frameworks(kind):
    # numbers at a lower rate: where their loss swings, rounding errors grow
    runs = [trained(library, kind, 50, rate={"numbers": 2e-3, "ids": 1e-2}[kind]) for library in BOTH]
    losses = [history.loss for history, _, _ in runs]
    assert len(losses[0]) == 50
    assert_allclose(losses[0], losses[1], rtol=0, atol=1e-3)
    assert losses[0][-4:].mean() < 0.75 * losses[0][:4].mean()
    assert_allclose(runs[1][2].nll, runs[0][2].nll, atol=1e-3)
    before = states.random_state(states.decision(KINDS[kind][0]), seed=2)
    for name, value in runs[0][1].items():
        if not name.endswith("k_proj.bias"):  # it adds the same to all scores of a query, so its gradient is noise
            assert_allclose(runs[1][1][name], value, rtol=0, atol=1e-3, err_msg=name)
            stands = name.startswith(("predict_state", "predict_return"))
            assert (abs(before[name] - value).max() < 1e-6) == stands, name
    for evaluation in (evaluation for *_, evaluation in runs):
        assert evaluation.n_tokens == REAL.sum()
        assert evaluation.accuracy > 0.8 if kind == "ids" else np.isnan(evaluation.accuracy)


@pytest.mark.parametrize("library", BOTH)
def test_the_loss_is_the_mean_squared_error_of_the_real_steps(library):
    backend = BOTH[library]
    model = backend.make("DecisionTransformer", CONFIG, state=states.random_state(states.decision(CONFIG)))
    (whole,) = batches(NUMBERS, 32)
    padded = whole._replace(actions=np.where(REAL[..., None], NUMBERS, 99.0).astype(np.float32))
    output = backend.call(model, STATES, NUMBERS, RETURNS, TIMES, real=REAL)
    expected = ((output.actions - NUMBERS) ** 2)[REAL].mean()
    for batch in (whole, padded):
        found = tasks.module(library, "loop").evaluate(model, [batch], objective_of(library))
        assert_allclose(found.nll, expected, rtol=1e-5)


def test_a_training_goes_on_where_it_was_saved(tmp_path):
    """With validations whose accuracy is no number."""
    halves = [trained("torch", "numbers", n, checkpoint=tmp_path, validate_every=2)[0] for n in (4, 8)]
    whole = trained("torch", "numbers", 8, validate_every=2)[0]
    assert_allclose(halves[1].loss, whole.loss, rtol=1e-6)
    assert [look.step for look in halves[1].validation] == [2, 4, 6, 8]


@pytest.mark.parametrize("library", BOTH)
def test_what_is_wrong_with_a_batch_is_said_before_the_training(library):
    for kind, config, message in (
        ("numbers", replace(CONFIG, d_state=4), r"^states of batch 0 of validation must have shape \(B, T, 4\)"),
        ("numbers", replace(CONFIG, max_len=5), "the times of batch 0 of validation must lie in 0 ... 4"),
        ("ids", CONFIG, "the actions of batch 0 of validation are ids, whose logits a tanh would bound"),
        ("ids", replace(CONFIG, action_tanh=False, d_action=1), "the actions of batch 0 .* must lie in 0 ... 0"),
    ):
        with pytest.raises(ValueError, match=message):
            trained(library, kind, 1, config)


def test_how_a_batch_is_read():
    model = SimpleNamespace(config=CONFIG)
    (batch,) = batches(NUMBERS.astype(np.float64), 32)
    update = reading.trajectories(model, "B", batch)
    assert update.counts == (REAL.sum(),) and update.arrays["actions"].dtype == np.float32
    assert set(update.arrays) == set(TrajectoryBatch._fields)
    assert reading.trajectories(model, "B", batch._replace(real=None)).counts == (32 * 5,)
    assert reading.trajectories(model, "B", tuple(batch)).counts == update.counts

    free = SimpleNamespace(config=replace(CONFIG, action_tanh=False))
    assert reading.trajectories(free, "B", tuple(batch._replace(actions=IDS))).counts == (REAL.sum(),)
    update = reading.trajectories(free, "B", batch._replace(actions=np.where(REAL, IDS, 77)))
    assert_allclose(update.arrays["labels"], np.where(REAL, IDS, IGNORED))
    assert_allclose(update.arrays["actions"][REAL], np.eye(2)[IDS[REAL]])
    assert np.isfinite(update.arrays["actions"]).all()


@pytest.mark.parametrize("changes, error, message", [
    ({"states": STATES[:, :4]}, ValueError, "does not fit its states: T is 4 there"),
    ({"states": STATES.astype(int)}, TypeError, "states of B must be numbers of floating point, got int64"),
    ({"returns": RETURNS[..., 0]}, ValueError, r"returns of B must have shape \(B, T, 1\)"),
    ({"actions": NUMBERS[..., 0]}, TypeError, "one of d_action=2 each, they must be integers"),
    ({"times": TIMES / 2}, TypeError, "times of B must be integers"),
    ({"times": TIMES - 4}, ValueError, "times of B must lie in 0 ... 8, got ids from -4"),
    ({"real": REAL.astype(int)}, TypeError, "the real of B must be boolean"),
    ({"states": None}, TypeError, "states of B must be an array"),
])  # fmt: skip
def test_what_is_no_batch(changes, error, message):
    (batch,) = batches(NUMBERS, 32)
    with pytest.raises(error, match=message):
        reading.trajectories(SimpleNamespace(config=CONFIG), "B", batch._replace(**changes))


def test_what_reads_no_trajectories_or_is_none():
    with pytest.raises(TypeError, match="a SimpleNamespace reads no trajectories"):
        reading.trajectories(SimpleNamespace(config=ViTConfig()), "B", batches(NUMBERS)[0])
    with pytest.raises(TypeError, match=r"B must be a TrajectoryBatch\(states, actions, returns, times, real\); got"):
        reading.trajectories(SimpleNamespace(config=CONFIG), "B", STATES)


def test_returns_to_go():
    assert_allclose(returns_to_go([1, 0, -2, 5]), [4, 3, 3, 5])
    assert_allclose(returns_to_go([]), [])
    with pytest.raises(ValueError, match=r"rewards must be those of one episode, \(T,\), got \(1, 2\)"):
        returns_to_go([[1, 2]])
