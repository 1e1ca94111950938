"""Episodes in batches: windows, returns to go, padding, epochs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.batches.trajectories import Episode, TrajectoryBatches

EPISODES = [
    Episode(np.arange(2.0 * n).reshape(n, 2) + 100 * n, np.arange(n) % 3, -np.ones(n)) for n in (3, 1, 5)
]  # fmt: skip


def whole(batches):
    return [np.concatenate([getattr(b, name)[b.real] for b in batches]) for name in ("states", "actions", "returns")]


def test_whole_episodes_with_padding_on_the_right():
    (batch,) = TrajectoryBatches(EPISODES, scale=2.0, seed=None)
    assert_array_equal(batch.real, np.arange(5) < np.array([[3], [1], [5]]))
    assert_array_equal(batch.states[0], [[300, 301], [302, 303], [304, 305], [0, 0], [0, 0]])
    assert_array_equal(batch.actions, [[0, 1, 2, 0, 0], [0, 0, 0, 0, 0], [0, 1, 2, 0, 1]])
    assert_allclose(batch.returns[..., 0], [[-1.5, -1, -0.5, 0, 0], [-0.5, 0, 0, 0, 0], [-2.5, -2, -1.5, -1, -0.5]])
    assert_array_equal(batch.times[2], [0, 1, 2, 3, 4])
    assert [x.dtype for x in batch] == [np.float32, np.int64, np.float32, np.int64, bool]


def test_windows_are_every_run_of_steps_with_the_times_of_the_episode():
    batches = TrajectoryBatches(EPISODES, 2, length=3, seed=None)
    assert batches.windows.tolist() == [[0, 0], [1, 0], [2, 0], [2, 1], [2, 2]] and len(batches) == 3
    third = batches[1]
    assert_array_equal(third.times, [[0, 1, 2], [1, 2, 3]])
    assert_allclose(third.returns[..., 0], [[-5, -4, -3], [-4, -3, -2]])  # to the episode's end, not the window's
    assert_array_equal(batches[0].real, [[True, True, True], [True, False, False]])
    assert_array_equal(TrajectoryBatches(EPISODES, 99, length=1, seed=None)[0].times[:, 0], [0, 1, 2, 0, 0, 1, 2, 3, 4])


def test_epochs_hold_the_same_in_other_orders():
    batches = TrajectoryBatches(EPISODES, 2, length=2, seed=3)
    other = batches.epoch(1)
    assert [len(b.times) for b in batches] == [2, 2, 2, 1]
    for one, two in zip(whole(batches), whole(other), strict=True):
        assert not np.array_equal(one, two)
        assert_array_equal(np.sort(one.reshape(len(one), -1)[:, 0]), np.sort(two.reshape(len(two), -1)[:, 0]))
    for one, two in zip(whole(batches), whole(TrajectoryBatches(EPISODES, 2, length=2, seed=3)), strict=True):
        assert_array_equal(one, two)


def test_actions_that_are_numbers_stay_numbers():
    numbers = [episode._replace(actions=np.full((len(episode.rewards), 2), 0.5)) for episode in EPISODES]
    (batch,) = TrajectoryBatches(numbers, seed=None)
    assert batch.actions.shape == (3, 5, 2) and batch.actions.dtype == np.float32
    assert_allclose(batch.actions[0], [[0.5] * 2] * 3 + [[0, 0]] * 2)


def test_what_is_no_episode():
    broken = EPISODES[0]._replace(rewards=np.ones(2))
    for arguments, message in (
        (([],), "there must be an episode"),
        (([EPISODES[0], broken],), r"number 1 has \(3, 3, 2\)"),
        (([Episode(np.zeros((0, 2)), np.zeros(0, int), np.zeros(0))],), r"of one or more; number 0 has \(0, 0, 0\)"),
        ((EPISODES, 0), "batch_size"),
        ((EPISODES, 2, 0), "length"),
        ((EPISODES, 2, None, -1.0), "scale must be positive"),
        ((EPISODES, 2, None, 1.0, 0, -1), "epoch"),
    ):
        with pytest.raises(ValueError, match=message):
            TrajectoryBatches(*arguments)
