"""Positions, since attention alone does not see order: added, turned into queries and keys, or modulating by time."""

import numpy as np

from course_lib.checks import check_features, check_length, check_times
from course_lib.models.position_tables import (
    harmonics,
    made_by,
    relative_buckets,
    rotary_rates,
    sinusoidal_halves,
    sinusoidal_table,
)
from course_lib.numpy.layers import Linear, Module


class SinusoidalPositions(Module):
    """x + sinusoids of the position; nothing is learned.

    Parameters
    ----------
    d_model, max_len : features, and positions at most
    halves : sines in the first half of the features and cosines in the second, as in Whisper's encoder; False takes
        turns, as the Transformer does

    Raises
    ------
    ValueError : an odd d_model.
    """

    def __init__(self, d_model: int, max_len: int = 512, halves: bool = False):
        self.d_model, self.max_len = d_model, max_len
        table = sinusoidal_halves if halves else sinusoidal_table
        # wrapped in a tuple: a bare array would count as a parameter
        self._table = (table(max_len, d_model),)

    def __call__(self, x, first=0):
        """(B, T, d_model) -> (B, T, d_model), for positions from `first` on; ValueError beyond max_len."""
        check_features("x", x.shape, self.d_model)
        check_length(first + x.shape[1], self.max_len)
        return x + self._table[0][first : first + x.shape[1]]


class LearnedPositions(Module):
    """x + one learned vector per position, as in BERT (Devlin et al. 2018, section 3).

    Fresh vectors are normal with the standard deviation `std`.
    """

    def __init__(self, d_model: int, max_len: int = 512, std: float = 0.02):
        self.d_model, self.max_len = d_model, max_len
        self.weight = np.random.normal(0.0, std, (max_len, d_model))

    def __call__(self, x, first=0):
        """(B, T, d_model) -> (B, T, d_model), for positions from `first` on; ValueError beyond max_len."""
        check_features("x", x.shape, self.d_model)
        check_length(first + x.shape[1], self.max_len)
        return x + self.weight[first : first + x.shape[1]]


def rotate(x, first: int = 0, base: float = 10000.0):
    """Turn the pair of features (2i, 2i + 1) at position p by the angle p base^(-2i / d_head): rotary positions.

    The product of a query and a key that are turned so depends on their distance and not on where they stand
    (Su et al. 2021, section 3.2.2, eq. 34).

    Parameters
    ----------
    x : shape (..., T, d_head)
    first : the position of x[..., 0, :]
    base : of the geometric series of angles

    Returns
    -------
    Shape (..., T, d_head).

    Raises
    ------
    ValueError : an odd d_head, or a base that is not positive.
    """
    angles = np.arange(first, first + x.shape[-2])[:, None] * rotary_rates(x.shape[-1], base)  # (T, d_head / 2)
    even, odd, cos, sin = x[..., 0::2], x[..., 1::2], np.cos(angles), np.sin(angles)
    return np.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).reshape(x.shape)


def rotary(attention, base: float = 10000.0):
    """An attention function that sees order: `attention` on queries and keys that were turned by their positions.

    With more keys than queries, the queries are the last ones, as in `masks.causal_mask`: positions S - T to S - 1.
    For self-attention only; the positions of two different sequences have nothing to do with each other.

    Parameters
    ----------
    attention : an attention function
    base : as for `rotate`

    Returns
    -------
    A function of q (..., T, d_k), k (..., S, d_k), v (..., S, d_v) and what else `attention` takes.
    """

    @made_by(rotary, attention, base)
    def rotated(q, k, v, mask=None, **options):
        first = k.shape[-2] - q.shape[-2]
        return attention(rotate(q, first, base), rotate(k, 0, base), v, mask, **options)

    return rotated


class RelativePositions(Module):
    """Numbers that are added to the scores of self-attention, one for each head and range of distances, learned.

    The distances fall into buckets, see `relative_buckets` (Raffel et al. 2020, section 2.1). All layers of a stack may
    share the numbers. Fresh ones are normal with the standard deviation `std`.

    Parameters
    ----------
    n_heads : heads of the attention, each with numbers of its own
    n_buckets : ranges of distances
    max_distance : from which on all distances share a bucket
    bidirectional : tell keys before a query from those after it; False for a causal attention
    std : of the fresh numbers

    Raises
    ------
    ValueError : fewer than two buckets for a direction, or a max_distance within the distances that have their own.
    """

    def __init__(
        self,
        n_heads: int,
        n_buckets: int = 32,
        max_distance: int = 128,
        bidirectional: bool = True,
        std: float = 0.02,
    ):
        self.max_distance = max_distance
        self.table = (relative_buckets(n_buckets, max_distance, bidirectional),)  # wrapped, as above
        self.weight = np.random.normal(0.0, std, (n_buckets, n_heads))

    def __call__(self, x, first=0):
        """For T tokens from position `first` on: x (B, T, d_model) -> bias (1, n_heads, T, first + T).

        Queries are the T tokens, keys these and the `first` before them, as in decoding by steps.
        """
        keys = np.arange(first + x.shape[1])
        distances = np.clip(keys - keys[first:, None], -self.max_distance, self.max_distance)  # (T, first + T)
        buckets = self.table[0][distances + self.max_distance]
        return self.weight[buckets].transpose(2, 0, 1)[None]


class TimeModulation(Module):
    """scale(t) x + shift(t), where scale and shift are Fourier series of the time t: positions for irregular samples.

    Feature-wise modulation (FiLM) by time, after Pimentel et al. 2023 (arXiv:2201.08482, temporal modulation): the
    features sin(w t), cos(w t) at the frequencies w = 2 pi m / longest, m = 1 ... n_harmonics, are mapped linearly to
    one scale and one shift per feature of x. The untrained map leaves scales near 1 and shifts near 0.

    Parameters
    ----------
    d_model : features of x
    n_harmonics : terms of the series
    longest : the period of the first harmonic, in units of time; longer than the observed time, else it repeats

    Raises
    ------
    ValueError : no harmonic, or a longest period that is not positive.
    """

    def __init__(self, d_model: int, n_harmonics: int = 16, longest: float = 1.0):
        self.d_model = d_model
        self._rates = (harmonics(n_harmonics, longest),)  # in a tuple: a bare array would count as a parameter
        self.linear = Linear(2 * n_harmonics, 2 * d_model)
        self.linear.bias[:d_model] = 1.0

    def __call__(self, x, times):
        """Modulate by time.

        Parameters
        ----------
        x : shape (B, T, d_model)
        times : shape (B, T), in the units of `longest`

        Returns
        -------
        Shape (B, T, d_model).

        Raises
        ------
        ValueError : another shape.
        """
        check_times(x.shape, times.shape, self.d_model)
        angles = times[..., None] * self._rates[0]  # (B, T, n_harmonics)
        modulation = self.linear(np.concatenate([np.sin(angles), np.cos(angles)], axis=-1))  # (B, T, 2 d_model)
        return modulation[..., : self.d_model] * x + modulation[..., self.d_model :]
