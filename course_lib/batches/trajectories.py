"""Batches of trajectories: what an agent saw, did and was yet to be paid, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from course_lib.batches.epochs import Epoch, cut
from course_lib.checks import check_count


class Episode(NamedTuple):
    """One episode of T steps, as it happened: `course_lib.acting.rollouts.rollout` returns it."""

    states: np.ndarray  # float32 (T, d_state), before each action
    actions: np.ndarray  # int64 (T,), or float32 (T, d_action)
    rewards: np.ndarray  # float64 (T,), after each action
    ended: bool = True  # False: it was cut short, and what would have followed is not known

    @property
    def total(self) -> float:
        """The return of the episode: the sum of its rewards."""
        return float(self.rewards.sum())


class TrajectoryBatch(NamedTuple):
    """T steps of B episodes, padded where these have fewer.

    The actions are numbers, or ids where each is one of d_action.
    """

    states: np.ndarray  # float32 (B, T, d_state)
    actions: np.ndarray  # float32 (B, T, d_action), or int64 (B, T)
    returns: np.ndarray  # float32 (B, T, 1), the returns-to-go
    times: np.ndarray  # int64 (B, T), the number of each step in its episode
    real: np.ndarray | None  # boolean (B, T), False at padding; None: all are real


def returns_to_go(rewards) -> np.ndarray:
    """The sum of the rewards from each step to the episode's end (Chen et al. 2021, section 3).

    Parameters
    ----------
    rewards : of the steps of one episode, shape (T,)

    Returns
    -------
    float64, shape (T,); in a batch they stand as (B, T, 1).

    Raises
    ------
    ValueError : another shape.
    """
    rewards = np.asarray(rewards, dtype=np.float64)
    if rewards.ndim != 1:
        raise ValueError(f"rewards must be those of one episode, (T,), got {rewards.shape}")
    return np.cumsum(rewards[::-1])[::-1].copy()


class TrajectoryBatches(Epoch):
    """One epoch of windows of episodes in batches; `epoch(e)` gives the others.

    Windows of a batch with fewer steps than its longest are padded on the right: `real` is False there.

    Parameters
    ----------
    episodes : of one step or more each
    batch_size : windows a batch; the last one may have fewer
    length : steps of a window: every run of so many steps of an episode is one, and so is an episode with fewer; None
        takes whole episodes
    scale : what the returns-to-go are divided by, in the units of the rewards; acting needs the same one
    seed : of the order, or None: as they stand, for validation
    epoch : which one, counted from 0; each has an order of its own

    Raises
    ------
    ValueError : no episode, one without a step or with another number of actions or rewards than of states, a size
        below one, a scale that is not positive.
    """

    def __init__(
        self,
        episodes: Sequence[Episode],
        batch_size: int = 64,
        length: int | None = None,
        scale: float = 1.0,
        seed: int | None = 0,
        epoch: int = 0,
    ):
        check_count("batch_size", batch_size)
        check_count("epoch", epoch, 0)
        if length is not None:
            check_count("length", length)
        if not scale > 0:
            raise ValueError(f"scale must be positive, the size of a large return; got {scale!r}")
        for i, episode in enumerate(episodes):
            counts = tuple(map(len, episode[:3]))
            if len(set(counts)) > 1 or counts[0] == 0:
                raise ValueError(
                    f"an episode has a state, an action and a reward for each step, of one or more; number {i} has "
                    f"{counts}"
                )
        if not len(episodes):
            raise ValueError("there must be an episode")
        self.episodes, self.batch_size, self.length, self.seed = episodes, batch_size, length, seed
        self.returns = [returns_to_go(episode.rewards) / scale for episode in episodes]
        self.windows = np.array([
            (i, start)
            for i, episode in enumerate(episodes)
            for start in range(1 if length is None else max(1, len(episode.rewards) - length + 1))
        ])  # fmt: skip
        self._enter(epoch)

    def _shuffle(self, epoch: int) -> None:
        n = len(self.windows)
        rows = np.arange(n) if self.seed is None else np.random.default_rng([self.seed, epoch]).permutation(n)
        self.groups = cut(rows, self.batch_size)

    def __getitem__(self, i: int) -> TrajectoryBatch:
        parts = [self._window(*self.windows[row]) for row in self.groups[i]]
        steps = max(len(part.times) for part in parts)
        return TrajectoryBatch(*(np.stack([_padded(x, steps) for x in arrays]) for arrays in zip(*parts, strict=True)))

    def _window(self, i: int, start: int) -> TrajectoryBatch:
        states, actions = self.episodes[i][:2]
        end = len(states) if self.length is None else min(len(states), start + self.length)
        actions = np.asarray(actions)
        return TrajectoryBatch(
            np.asarray(states[start:end], np.float32),
            actions[start:end].astype(np.int64 if actions.dtype.kind in "iu" else np.float32),
            self.returns[i][start:end, None].astype(np.float32),
            np.arange(start, end),
            np.ones(end - start, bool),
        )


def _padded(steps, n: int) -> np.ndarray:
    """Zeros behind the steps of a window, until there are n of them."""
    return np.concatenate([steps, np.zeros((n - len(steps), *steps.shape[1:]), steps.dtype)])
