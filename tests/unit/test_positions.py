"""course_lib.models.position_tables: the sinusoids of the paper."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.models.position_tables import harmonics, rotary_rates, sinusoidal_table


def test_hand_calculated_values():
    table = sinusoidal_table(3, 4)
    # d_model = 4: wavelengths 2 pi and 100 * 2 pi
    assert_allclose(table[0], [0.0, 1.0, 0.0, 1.0], atol=1e-15)
    assert_allclose(table[1], [math.sin(1.0), math.cos(1.0), math.sin(0.01), math.cos(0.01)])
    assert_allclose(table[2], [math.sin(2.0), math.cos(2.0), math.sin(0.02), math.cos(0.02)])


def test_slowest_wavelength_approaches_ten_thousand_times_two_pi():
    table = sinusoidal_table(2, 512)
    assert_allclose(table[1, 510], math.sin(10000.0 ** (-510 / 512)), rtol=1e-12)


def test_shape_and_precision():
    table = sinusoidal_table(7, 10)
    assert table.shape == (7, 10) and table.dtype == np.float64
    assert len(np.unique(table.round(9), axis=0)) == 7  # no two positions alike


def test_a_shift_is_a_rotation_that_does_not_depend_on_the_position():
    """The reason the paper gives for its choice (section 3.5)."""
    table = sinusoidal_table(40, 6)
    pairs = table.reshape(40, 3, 2)
    for shift in (1, 7):
        dots = (pairs[shift:] * pairs[:-shift]).sum(axis=-1)  # cosines of the angles between p and p + shift
        assert_allclose(dots, np.broadcast_to(dots[0], dots.shape), atol=1e-12)


@pytest.mark.parametrize("d_model", [0, 1, 5])
def test_odd_width(d_model):
    with pytest.raises(ValueError, match=f"d_model of sinusoidal positions must be an even number.*got {d_model}"):
        sinusoidal_table(3, d_model)


def test_rotary_rates_by_hand():
    assert_allclose(rotary_rates(4), [1.0, 0.01])
    assert_allclose(rotary_rates(6, 1000.0), [1.0, 0.1, 0.01])


def test_harmonics_by_hand():
    assert_allclose(harmonics(3, 10.0), [math.pi / 5, 2 * math.pi / 5, 3 * math.pi / 5])
