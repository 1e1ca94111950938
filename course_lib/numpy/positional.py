"""Positions added to the embeddings, since attention alone does not see order (Vaswani et al. 2017, section 3.5)."""

import numpy as np

from course_lib.checks import check_features, check_length
from course_lib.numpy.layers import Module
from course_lib.positions import sinusoidal_table


class SinusoidalPositions(Module):
    """x + sinusoids of the position; nothing is learned.

    Raises
    ------
    ValueError : an odd d_model.
    """

    def __init__(self, d_model: int, max_len: int = 512):
        self.d_model, self.max_len = d_model, max_len
        # wrapped in a tuple: a bare array would count as a parameter
        self._table = (sinusoidal_table(max_len, d_model),)

    def __call__(self, x):
        """(B, T, d_model) -> (B, T, d_model); ValueError when T is over max_len."""
        check_features("x", x.shape, self.d_model)
        check_length(x.shape[1], self.max_len)
        return x + self._table[0][: x.shape[1]]


class LearnedPositions(Module):
    """x + one learned vector per position, as in BERT (Devlin et al. 2018, section 3).

    Fresh vectors are normal with the standard deviation `std`.
    """

    def __init__(self, d_model: int, max_len: int = 512, std: float = 0.02):
        self.d_model, self.max_len = d_model, max_len
        self.weight = np.random.normal(0.0, std, (max_len, d_model))

    def __call__(self, x):
        """(B, T, d_model) -> (B, T, d_model); ValueError when T is over max_len."""
        check_features("x", x.shape, self.d_model)
        check_length(x.shape[1], self.max_len)
        return x + self.weight[: x.shape[1]]
