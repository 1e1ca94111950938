"""Vectors of counts: their products are the mutual information that a loop finds."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.text.count_vectors import count_vectors

SIZE = 9


@pytest.fixture
def documents():
    rng = np.random.default_rng(0)
    return [rng.choice(SIZE - 1, size=n, p=np.arange(1, SIZE) / 36) for n in (30, 1, 0, 12, 25)]


def information(documents, reach, ignored=()):
    """The positive pointwise mutual information, by its definition."""
    counts = np.zeros((SIZE, SIZE))
    for ids in documents:
        for i, one in enumerate(ids):
            for j, other in enumerate(ids):
                if i != j and abs(i - j) <= reach and one not in ignored and other not in ignored:
                    counts[one, other] += 1.0 if 2 * abs(i - j) <= reach else 0.5
    total = counts.sum(axis=1)
    context = total**0.75
    found = np.zeros((SIZE, SIZE))
    for one, other in zip(*counts.nonzero(), strict=True):
        log = math.log(counts[one, other] * context.sum() / (total[one] * context[other]))
        found[one, other] = max(0.0, log)
    return found


@pytest.mark.parametrize("reach, ignored", [(4, ()), (1, ()), (3, (7,))])
def test_the_products_are_those_of_the_loop(documents, reach, ignored):
    vectors = count_vectors(documents, SIZE, SIZE - 1, reach, ignored)
    expected = information(documents, reach, ignored)
    assert vectors.dtype == np.float32 and vectors.shape == (SIZE, SIZE - 1)
    assert_allclose(vectors @ vectors.T, expected @ expected.T, atol=1e-4)  # U S (U S)' = M M'
    unseen = [SIZE - 1, *ignored]
    assert not vectors[unseen].any() and vectors[0].any()


def test_fewer_features_are_the_largest_factors(documents):
    whole, part = (count_vectors(documents, SIZE, n) for n in (SIZE - 1, 3))
    lost = np.linalg.norm(whole @ whole.T - part @ part.T)
    assert lost < np.linalg.norm(whole @ whole.T - whole[:, 1:4] @ whole[:, 1:4].T)
    assert_allclose(part, count_vectors(documents, SIZE, 3, seed=0))


@pytest.mark.parametrize("changes, error, message", [
    ({"vocab_size": 5}, ValueError, r"ids must lie in 0 \.\.\. 4"),
    ({"n_features": SIZE}, ValueError, "below vocab_size=9"),
    ({"n_features": 0}, ValueError, "n_features"),
    ({"reach": 0}, ValueError, "reach"),
    ({"ignored": tuple(range(SIZE))}, ValueError, "two tokens near each other"),
    ({"documents": []}, ValueError, "two tokens near each other"),
    ({"documents": ["a text"]}, TypeError, "token ids"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(documents, changes, error, message):
    arguments = {"documents": documents, "vocab_size": SIZE, "n_features": 4} | changes
    with pytest.raises(error, match=message):
        count_vectors(**arguments)
