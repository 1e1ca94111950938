"""Where heads look, against loops and by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.evaluation.head_scores import followers, induction, induction_by_chance, previous_token


@pytest.fixture
def weights():
    scores = np.tril(np.random.default_rng(0).random((3, 2, 7, 7)) + 0.1)
    return scores / scores.sum(axis=-1, keepdims=True)


IDS = np.array([[1, 2, 1, 2, 3, 1, 1], [4, 4, 4, 0, 0, 4, 1], [0, 1, 2, 3, 4, 5, 6]])


def test_followers_by_hand():
    found = followers(IDS)
    assert found.shape == (3, 7, 7)
    assert_array_equal(np.flatnonzero(found[0, 5]), [1, 3])  # 1 stood at 0 and at 2
    assert_array_equal(np.flatnonzero(found[0, 6]), [1, 3, 6])  # and at 5, behind which stands the query itself
    assert_array_equal(np.flatnonzero(found[1, 2]), [1, 2])
    assert not found[2].any() and not found[:, 0].any()


def test_scores_against_a_loop(weights):
    for head in range(2):
        before = [weights[b, head, t, t - 1] for b in range(3) for t in range(1, 7)]
        assert_allclose(previous_token(weights)[head], np.mean(before))
        behind = []
        for b, ids in enumerate(IDS):
            for t in range(7):
                places = [s for s in range(1, t + 1) if ids[s - 1] == ids[t]]
                if places:
                    behind.append(weights[b, head, t, places].sum())
        assert_allclose(induction(weights, IDS)[head], np.mean(behind))


def test_heads_that_do_nothing_else_have_a_score_of_one():
    there = followers(IDS)
    perfect = np.where(there.any(-1, keepdims=True), there / np.maximum(there.sum(-1, keepdims=True), 1), np.eye(7))
    assert_allclose(induction(perfect[:, None], IDS), 1)
    assert_allclose(previous_token(np.eye(7, k=-1)[None, None]), 1)
    assert_allclose(previous_token(np.eye(7)[None, None]), 0)


def test_chance_is_the_score_of_even_weights():
    even = np.tril(np.ones((7, 7))) / np.arange(1, 8)[:, None]
    assert_allclose(induction_by_chance(IDS), induction(np.tile(even, (3, 1, 1, 1)), IDS)[0])
    assert_allclose(induction_by_chance(np.array([[3, 3]])), 0.5)


@pytest.mark.parametrize("shape", [(2, 7, 7), (3, 2, 7, 6), (3, 2, 1, 1)])
def test_weights_of_another_shape(shape):
    for function in (previous_token, lambda w: induction(w, IDS)):
        with pytest.raises(ValueError, match="weights must have shape"):
            function(np.zeros(shape))


def test_ids_that_do_not_fit(weights):
    with pytest.raises(ValueError, match="ids must have the shape"):
        induction(weights, IDS[:2])
    with pytest.raises(ValueError, match="no token comes twice"):
        induction(weights[:1], IDS[2:])
