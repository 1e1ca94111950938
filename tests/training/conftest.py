"""What the tests of training share: each framework with a small classifier, and examples."""

import numpy as np
import pytest

from tests.support.classifiers import FRAMEWORKS, build


@pytest.fixture(params=FRAMEWORKS)
def framework(request):
    """Each framework that trains, with a fresh classifier."""
    return build(request.param)


@pytest.fixture
def examples():
    """96 sequences of 3 to 12 tokens; the label says whether token 5 occurs, which is easy to learn."""
    rng = np.random.default_rng(3)
    sequences = [rng.integers(6, 40, size=rng.integers(3, 13)) for _ in range(96)]
    labels = np.arange(96) % 2
    for sequence, label in zip(sequences, labels, strict=True):
        if label:
            sequence[rng.integers(len(sequence))] = 5
    return sequences, labels
