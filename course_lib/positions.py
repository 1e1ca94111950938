"""Tables of positions as NumPy arrays, computed once for every framework."""

import numpy as np

from course_lib.checks import check_even


def sinusoidal_table(max_len: int, d_model: int) -> np.ndarray:
    """Sines in the even features and cosines in the odd ones, from wavelength 2 pi to 10000 * 2 pi.

    PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model)).
    Source: Vaswani et al. 2017, section 3.5.

    Returns
    -------
    float64 array, shape (max_len, d_model), positions counted from 0.

    Raises
    ------
    ValueError : d_model is odd.
    """
    check_even(d_model)
    rates = 10000.0 ** (-np.arange(0, d_model, 2) / d_model)
    angles = np.arange(max_len)[:, None] * rates  # (max_len, d_model / 2)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(max_len, d_model)
