"""Sequences from random Markov chains: drawn as they should be, and no predictor is better than the best one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.data.markov_chains import Chains, bayes, draw, expected_losses, stationary, unigram


def test_rows_are_dirichlet_and_states_follow_them():
    chains = draw(400, 300, 3, 0.5, np.random.default_rng(0))
    assert chains.ids.shape == (400, 300) and chains.matrices.shape == (400, 3, 3)
    assert_allclose(chains.matrices.sum(-1), 1)
    # of a symmetric Dirichlet: mean 1 / S, variance (S - 1) / (S^2 (S alpha + 1))
    assert_allclose(chains.matrices.mean(axis=(0, 1)), 1 / 3, atol=0.02)
    assert_allclose(chains.matrices.var(), 2 / (9 * 2.5), rtol=0.05)
    assert_allclose(np.bincount(chains.ids[:, 0], minlength=3) / 400, 1 / 3, atol=0.08)
    seen = np.zeros((400, 3, 3))
    np.add.at(seen, (np.arange(400)[:, None], chains.ids[:, :-1], chains.ids[:, 1:]), 1)
    often = seen.sum(-1) > 50
    shares = (seen / np.maximum(seen.sum(-1, keepdims=True), 1))[often]
    error = shares - chains.matrices[often]
    assert abs(error.mean()) < 1e-9 and np.sqrt((error**2).mean()) < 0.05


def test_the_same_generator_draws_the_same():
    first, second = (draw(3, 10, 4, 1.0, np.random.default_rng(7)) for _ in range(2))
    assert_array_equal(first.ids, second.ids)
    assert not np.array_equal(first.ids, draw(3, 10, 4, 1.0, np.random.default_rng(8)).ids)


def test_the_best_prediction_by_hand():
    p = bayes(np.array([[0, 1, 0, 1, 1, 0]]), 3, 0.5)[0]
    assert_allclose(p[0], [1 / 3] * 3)  # nothing has followed 0
    assert_allclose(p[2], np.array([0.5, 1.5, 0.5]) / 2.5)  # 1 has followed 0 once
    assert_allclose(p[4], np.array([1.5, 1.5, 0.5]) / 3.5)  # 0 and 1 have followed 1
    assert_allclose(p[5], np.array([0.5, 2.5, 0.5]) / 3.5)


def test_unigram_counts_by_hand():
    p = unigram(np.array([[0, 1, 0, 2]]), 3, 0.5)[0]
    assert_allclose(p[0], np.array([1.5, 0.5, 0.5]) / 2.5)
    assert_allclose(p[3], np.array([2.5, 1.5, 1.5]) / 5.5)


def test_what_a_chain_visits_in_the_long_run():
    chains = draw(20, 5000, 4, 1.0, np.random.default_rng(1))
    pi = stationary(chains.matrices)
    assert_allclose(pi.sum(-1), 1)
    assert_allclose(np.einsum("ni,nij->nj", pi, chains.matrices), pi, atol=1e-12)
    visited = np.stack([np.bincount(ids, minlength=4) for ids in chains.ids]) / 5000
    assert_allclose(visited, pi, atol=0.08)


def test_losses_are_those_of_the_next_state_on_average():
    chains = draw(4000, 12, 3, 0.5, np.random.default_rng(2))
    p = bayes(chains.ids, 3, 0.5)
    expected = expected_losses(chains, p)
    drawn = -np.log(np.take_along_axis(p[:, :-1], chains.ids[:, 1:, None], axis=-1))[..., 0]
    assert expected.shape == (4000, 12)
    assert_allclose(expected[:, :-1].mean(0), drawn.mean(0), atol=0.04)
    one = Chains(np.array([[1]]), np.array([[[1.0, 0.0], [0.25, 0.75]]]))
    assert_allclose(expected_losses(one, np.array([[[0.5, 0.5]]])), np.log(2))
    assert_allclose(expected_losses(one, np.array([[[0.2, 0.8]]])), -0.25 * np.log(0.2) - 0.75 * np.log(0.8))


def test_nothing_is_better_than_the_best_and_it_comes_to_know_the_chain():
    chains = draw(3000, 200, 3, 0.5, np.random.default_rng(3))
    best = expected_losses(chains, bayes(chains.ids, 3, 0.5)).mean(0)
    known = np.take_along_axis(chains.matrices, chains.ids[..., None], axis=1)
    entropy = expected_losses(chains, np.maximum(known, 1e-300)).mean(0)
    for other in (bayes(chains.ids, 3, 0.3), bayes(chains.ids, 3, 1.0), unigram(chains.ids, 3, 0.5)):
        assert (expected_losses(chains, other).mean(0)[5:] > best[5:]).all()
    assert best[0] == pytest.approx(np.log(3)) and 0 < best[-1] - entropy[-1] < 0.05 < best[10] - entropy[10]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 0}, "n must be"),
        ({"length": 0}, "length must be"),
        ({"n_states": 1}, "n_states must be"),
        ({"alpha": 0.0}, "alpha must be positive"),
    ],
)
def test_chains_that_cannot_be_drawn(change, message):
    with pytest.raises(ValueError, match=message):
        draw(**{"n": 1, "length": 2, "n_states": 2, "alpha": 1.0, "rng": np.random.default_rng(0)} | change)


@pytest.mark.parametrize("function", [bayes, unigram])
@pytest.mark.parametrize("ids", [np.array([0, 1]), np.array([[0, 3]]), np.array([[-1, 0]]), np.zeros((0, 2), int)])
def test_ids_that_are_no_states(function, ids):
    with pytest.raises(ValueError, match="ids must have shape|states must lie in 0 ... 2"):
        function(ids, 3, 0.5)
