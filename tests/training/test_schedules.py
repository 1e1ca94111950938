"""The learning rate rises to its peak, then falls to nothing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.schedules import warmup_then_linear_decay


def test_values():
    factors = [warmup_then_linear_decay(step, 10, 2) for step in range(11)]
    assert_allclose(factors, [1 / 3, 2 / 3, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8, 0])


def test_without_warm_up_it_starts_at_the_peak():
    assert_allclose(warmup_then_linear_decay(np.arange(4), 4, 0), [1, 0.75, 0.5, 0.25])


@pytest.mark.parametrize("warmup", [-1, 10, 11])
def test_warm_up_must_end_before_training_does(warmup):
    with pytest.raises(ValueError, match="warmup must lie in"):
        warmup_then_linear_decay(0, 10, warmup)
