"""Batches of trajectories: what an agent saw, did and was yet to be paid, step by step."""

from typing import NamedTuple

import numpy as np


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
