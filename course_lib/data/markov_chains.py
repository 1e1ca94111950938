"""Sequences whose best predictor is known: each from a Markov chain of its own, drawn at random.

The rows of a chain's matrix are drawn from a Dirichlet distribution, so whoever predicts must learn the chain from the
sequence itself. As the Dirichlet is conjugate, the best possible prediction is a count:

    p(j | x_1 ... x_t = i) = (n_ij + alpha) / (n_i + S alpha)

n_ij is how often j has followed i so far, n_i their sum, S the number of states. The setting is that of Edelman et al.
(2024), whose chains have a Dirichlet prior, too.
"""

from typing import NamedTuple

import numpy as np

from course_lib.checks import check_count, check_positive


class Chains(NamedTuple):
    """N sequences with their chains."""

    ids: np.ndarray  # (N, T) int64, states 0 ... S - 1
    matrices: np.ndarray  # (N, S, S): row i holds the probabilities of what follows i


def draw(n: int, length: int, n_states: int, alpha: float, rng: np.random.Generator) -> Chains:
    """Draw N chains, and of each one sequence, whose first state is uniform.

    Parameters
    ----------
    n, length : N sequences of T states
    n_states : S
    alpha : of the symmetric Dirichlet; below 1 the rows are uneven, and more can be learned
    rng : where the luck comes from

    Raises
    ------
    ValueError : a number below 1, fewer than 2 states, or an alpha that is not positive.
    """
    for name, value, least in (("n", n, 1), ("length", length, 1), ("n_states", n_states, 2)):
        check_count(name, value, least)
    check_positive("alpha", alpha)
    matrices = rng.dirichlet(np.full(n_states, alpha), size=(n, n_states))  # (N, S, S)
    cumulative = matrices.cumsum(axis=-1)
    ids = np.empty((n, length), dtype=np.int64)
    ids[:, 0] = rng.integers(n_states, size=n)
    rows = np.arange(n)
    for i in range(1, length):
        u = rng.random((n, 1)) * cumulative[rows, ids[:, i - 1], -1:]  # (N, 1)
        ids[:, i] = (cumulative[rows, ids[:, i - 1]] <= u).sum(axis=-1)
    return Chains(ids, matrices)


def bayes(ids, n_states: int, alpha: float) -> np.ndarray:
    """The best possible predictions: ids (N, T) -> (N, T, S), after each state the probabilities of the next."""
    ids = _checked(ids, n_states)
    rows, counts = np.arange(len(ids)), np.full((len(ids), n_states, n_states), float(alpha))
    found = np.empty((*ids.shape, n_states))
    for i in range(ids.shape[1]):
        if i:
            counts[rows, ids[:, i - 1], ids[:, i]] += 1
        found[:, i] = counts[rows, ids[:, i]]
    return found / found.sum(axis=-1, keepdims=True)


def unigram(ids, n_states: int, alpha: float) -> np.ndarray:
    """Predictions by how often each state has come, wherever: ids (N, T) -> (N, T, S); `alpha` is added to the counts.

    The last state does not matter to them, so they are not the best possible.
    """
    ids = _checked(ids, n_states)
    seen = (ids[..., None] == np.arange(n_states)).cumsum(axis=1) + alpha  # (N, T, S)
    return seen / seen.sum(axis=-1, keepdims=True)


def stationary(matrices) -> np.ndarray:
    """How often a chain visits each state in the long run: matrices (N, S, S) -> (N, S)."""
    matrices = np.asarray(matrices)
    size = matrices.shape[-1]
    # pi (P - 1) = 0, the last equation replaced by sum(pi) = 1
    system = (matrices - np.eye(size)).swapaxes(-1, -2)
    system[..., -1, :] = 1
    return np.linalg.solve(system, np.broadcast_to(np.eye(size)[-1][:, None], (*system.shape[:-2], size, 1)))[..., 0]


def expected_losses(chains: Chains, predictions) -> np.ndarray:
    """The loss in nats that predictions (N, T, S) have on average over the next state, of which there is one too many.

    The average is that of the true chain, so no luck of a single next state is in it: (N, T).
    """
    truth = np.take_along_axis(chains.matrices, chains.ids[..., None], axis=1)  # (N, T, S)
    return -(truth * np.log(predictions)).sum(axis=-1)


def _checked(ids, n_states: int) -> np.ndarray:
    ids = np.asarray(ids)
    if ids.ndim != 2 or ids.size == 0:
        raise ValueError(f"ids must have shape (N, T), got {ids.shape}")
    if ids.min() < 0 or ids.max() >= n_states:
        raise ValueError(f"states must lie in 0 ... {n_states - 1}, got {ids.min()} to {ids.max()}")
    return ids
