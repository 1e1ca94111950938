"""The learning rate rises to its peak, then falls to nothing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.training.schedules import warmup_then_inverse_root, warmup_then_linear_decay


def test_values():
    factors = [warmup_then_linear_decay(step, 10, 2) for step in range(11)]
    assert_allclose(factors, [1 / 3, 2 / 3, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8, 0])


def test_without_warm_up_it_starts_at_the_peak():
    assert_allclose(warmup_then_linear_decay(np.arange(4), 4, 0), [1, 0.75, 0.5, 0.25])


def test_a_peak_makes_it_the_rate_itself():
    rates = [warmup_then_linear_decay(step, 10, 2, 4e-3) for step in (2, 6)]
    assert_allclose(rates, [4e-3, 2e-3])
    for peak in (0, -1e-3, float("nan")):
        with pytest.raises(ValueError, match="peak must be positive"):
            warmup_then_linear_decay(0, 10, 2, peak)


@pytest.mark.parametrize("warmup", [-1, 10, 11])
def test_warm_up_must_end_before_training_does(warmup):
    with pytest.raises(ValueError, match="warmup must lie in"):
        warmup_then_linear_decay(0, 10, warmup)


def test_inverse_root_is_the_papers_equation():
    steps = np.arange(1, 40)
    expected = 16**-0.5 * np.minimum(steps**-0.5, steps * 10**-1.5)
    assert_allclose([warmup_then_inverse_root(int(n) - 1, 16, 10) for n in steps], expected)
    assert_allclose(warmup_then_inverse_root(3999, 512), 512**-0.5 * 4000**-0.5)  # the peak, 0.0007


def test_inverse_root_of_float32_tensors():
    """Early in a long warm-up the two branches differ by orders of magnitude; the smaller one must not be rounded."""
    for step in (0, 3999, 100000):
        exact = warmup_then_inverse_root(step, 512)
        assert_allclose(warmup_then_inverse_root(np.float32(step), np.float32(512), np.float32(4000)), exact, rtol=1e-5)


@pytest.mark.parametrize("sizes", [(0, 10), (8, 0)])
def test_inverse_root_needs_sizes(sizes):
    with pytest.raises(ValueError, match="must be 1 or more"):
        warmup_then_inverse_root(0, *sizes)
