"""Where an attention head looks: at the token before, or behind earlier occurrences of the token it stands at.

An induction head (Olsson et al. 2022) predicts that what followed a token earlier follows it again. It attends to the
positions behind that token's earlier occurrences; a head in a layer below must have told these what stands before them.
"""

import numpy as np


def previous_token(weights) -> np.ndarray:
    """The mean weight that each head gives to the position before: weights (B, H, T, T) -> (H,).

    Raises
    ------
    ValueError : not four axes, or fewer than two positions.
    """
    weights = _checked(weights)
    return np.diagonal(weights, offset=-1, axis1=2, axis2=3).mean(axis=(0, 2))


def followers(ids) -> np.ndarray:
    """Where the token of a query has stood one position before: ids (B, T) -> boolean (B, T, T), a row for each query.

    A position s counts for the query t if 1 <= s <= t and the token at s - 1 is that at t.
    """
    ids = np.asarray(ids)
    before = np.concatenate([np.full((len(ids), 1), -1), ids[:, :-1]], axis=1)  # (B, S), -1 before the first
    return np.tril(before[:, None, :] == ids[:, :, None])


def induction(weights, ids) -> np.ndarray:
    """The mean weight that each head gives to the `followers`: weights (B, H, T, T), ids (B, T) -> (H,).

    Queries whose token is new do not count.

    Raises
    ------
    ValueError : other shapes, or no token that comes twice.
    """
    weights, there = _checked(weights), _followers_of(weights, ids)
    mass = (weights * there[:, None]).sum(axis=-1)  # (B, H, T)
    return mass.transpose(1, 0, 2)[:, there.any(axis=-1)].mean(axis=1)


def induction_by_chance(ids) -> float:
    """What `induction` is of a head that attends to all positions so far alike; errors as there."""
    length = np.asarray(ids).shape[1]
    even = np.tril(np.ones((length, length))) / np.arange(1, length + 1)[:, None]
    return float(induction(np.broadcast_to(even, (len(ids), 1, length, length)), ids)[0])


def _followers_of(weights, ids) -> np.ndarray:
    if np.shape(ids) != (weights.shape[0], weights.shape[2]):
        raise ValueError(f"ids must have the shape (B, T) of weights {weights.shape}, got {np.shape(ids)}")
    there = followers(ids)
    if not there.any():
        raise ValueError("no token comes twice, so that no position follows an earlier one")
    return there


def _checked(weights) -> np.ndarray:
    weights = np.asarray(weights)
    if weights.ndim != 4 or weights.shape[2] != weights.shape[3] or weights.shape[2] < 2:
        raise ValueError(f"weights must have shape (B, H, T, T) with T of 2 or more, got {weights.shape}")
    return weights
