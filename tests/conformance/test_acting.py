"""Acting with a model: what it is asked, what it reads, and the loop with an environment."""

import functools
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.acting.rollouts import Asking, rollout
from course_lib.models.decision import DecisionConfig
from tests.support import states

CONFIG = DecisionConfig(4, 3, 12, n_layers=1, n_heads=3, d_ff=10, max_len=9, action_tanh=False)
RNG = np.random.default_rng(0)
STATES = RNG.normal(size=(5, 4)).astype(np.float32)


@functools.cache
def build(backend, **changes):
    return backend.make("DecisionTransformer", CONFIG, state=states.random_state(states.decision(CONFIG)))


class Notes:
    """Stands for a model: notes what it is asked, and answers with the time."""

    d_action = 3

    def __init__(self):
        self.asked = []

    def __call__(self, *inputs):
        self.asked.append(inputs)
        return np.eye(3)[inputs[3][-1] % 3]


class Counter:
    """An environment that counts up to `end`; each action is its reward."""

    def __init__(self, end, cut=99):
        self.end, self.cut, self.seeds = end, cut, []

    def reset(self, seed=None):
        self.seeds.append(seed)
        self.at = 0
        return self.at, {"anything": 1}

    def step(self, action):
        self.at += 1
        return self.at, float(action), self.at == self.end, self.at == self.cut, {}


def test_the_next_action_is_the_models_for_the_last_step(backend):
    model = build(backend)
    actions, returns, times = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 1)), np.arange(5)
    arrays = [x.astype(np.float32) for x in (STATES, actions, returns)]
    found = backend.lib.NextAction(model)(*arrays, times)
    expected = backend.call(model, *(x[None] for x in (*arrays, times))).actions[0, -1]
    assert isinstance(found, np.ndarray) and found.shape == (3,)
    assert_allclose(found, expected, **backend.tolerance)


def test_a_model_in_training_answers_without_dropout_and_stays_in_training(training_backend):
    model = training_backend.make("DecisionTransformer", CONFIG)
    if training_backend.name == "torch":
        model.train()
    next_action = training_backend.lib.NextAction(model)
    inputs = STATES, np.zeros((5, 3), np.float32), np.ones((5, 1), np.float32), np.arange(5)
    assert_allclose(next_action(*inputs), next_action(*inputs), rtol=0)
    if training_backend.name == "torch":
        assert model.training


def test_what_is_asked_falls_by_what_was_paid():
    notes = Notes()
    policy = Asking(notes, asked=-6.0, scale=2.0)
    assert policy(STATES[:1], [], []) == 0
    assert policy(STATES[:3], [2, 1], [-1.0, -3.0]) == 2
    (first, second) = notes.asked
    assert_allclose(first[2], [[-3.0]])
    assert_allclose(second[2], [[-3.0], [-2.5], [-1.0]])
    assert_array_equal(second[0], STATES[:3])
    assert_array_equal(second[1], [[0, 0, 1], [0, 1, 0], [0, 0, 0]])  # the last is not chosen yet
    assert_array_equal(second[3], [0, 1, 2])
    assert {x.dtype for x in second[:3]} == {np.dtype(np.float32)}


def test_a_context_is_the_last_steps_with_their_times():
    notes = Notes()
    Asking(notes, -6.0, context=2)(STATES, [2, 1, 0, 1], [-1.0, -1.0, -1.0, -1.0])
    read, done, returns, times = notes.asked[0]
    assert_array_equal(read, STATES[3:])
    assert_array_equal(done, [[0, 1, 0], [0, 0, 0]])
    assert_allclose(returns, [[-3.0], [-2.0]])
    assert_array_equal(times, [3, 4])


def test_numbers_are_passed_on_as_they_are():
    notes = Notes()
    policy = Asking(notes, 1.0, choose=lambda numbers: numbers)
    assert_allclose(policy(STATES[:2], [np.array([0.5, -0.5, 0.0])], [0.0]), [0, 1, 0])
    assert_allclose(notes.asked[0][1], [[0.5, -0.5, 0.0], [0, 0, 0]])


def test_an_episode_by_hand():
    env = Counter(3)
    seen = []

    def policy(read, actions, rewards):
        seen.append((len(read), list(actions), list(rewards)))
        return len(rewards) + 1

    episode = rollout(env, policy, lambda n: [n, 10 * n], 50, seed=7)
    assert_array_equal(episode.states, [[0, 0], [1, 10], [2, 20]])
    assert episode.states.dtype == np.float32
    assert_array_equal(episode.actions, [1, 2, 3])
    assert_array_equal(episode.rewards, [1, 2, 3])
    assert episode.total == 6 and episode.ended and env.seeds == [7]
    assert seen == [(1, [], []), (2, [1], [1.0]), (3, [1, 2], [1.0, 2.0])]


@pytest.mark.parametrize("env, limit", [(Counter(9, cut=2), 50), (Counter(9), 2)], ids=["cut by the world", "limit"])
def test_an_episode_that_is_cut_short_has_not_ended(env, limit):
    episode = rollout(env, lambda *_: 0, lambda n: [n], limit)
    assert len(episode.states) == len(episode.rewards) == 2 and not episode.ended


def test_a_model_acts_in_all_frameworks_alike(backend):
    policy = Asking(backend.lib.NextAction(build(backend)), asked=4.0, scale=2.0, context=3)
    episode = rollout(Counter(5), policy, lambda n: STATES[n], 9)
    assert episode.actions.tolist() == [int(a) for a in expected_actions()]


def expected_actions():
    """Written from the definition, with the NumPy model, whole windows at a time."""
    from course_lib import numpy as in_numpy

    model = in_numpy.DecisionTransformer(CONFIG)
    in_numpy.set_state(model, states.random_state(states.decision(CONFIG)))
    actions, to_go = [], [4.0]
    for t in range(5):
        first = max(0, t - 2)
        done = np.eye(3)[[*actions, 0]]
        done[-1] = 0
        inputs = STATES[first : t + 1], done[first:], np.array(to_go)[first:, None] / 2, np.arange(first, t + 1)
        actions.append(model(*(x[None] for x in inputs)).actions[0, -1].argmax())
        to_go.append(to_go[-1] - actions[-1])
    return actions


def test_what_cannot_be_asked():
    for arguments, message in (
        ({"scale": 0.0}, "scale must be positive"),
        ({"context": 0}, "context"),
    ):
        with pytest.raises(ValueError, match=message):
            Asking(Notes(), 1.0, **arguments)
    with pytest.raises(ValueError, match="max_steps"):
        rollout(Counter(3), lambda *_: 0, lambda n: [n], 0)
    with pytest.raises(AttributeError):
        Asking(SimpleNamespace(), 1.0)(STATES[:1], [], [])
