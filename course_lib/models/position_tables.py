"""Tables of positions and frequencies as NumPy arrays, computed once for every framework."""

import functools

import numpy as np

from course_lib.checks import check_count, check_even, check_positive


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
    check_even("d_model of sinusoidal positions", d_model)
    rates = 10000.0 ** (-np.arange(0, d_model, 2) / d_model)
    angles = np.arange(max_len)[:, None] * rates  # (max_len, d_model / 2)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(max_len, d_model)


def sinusoidal_halves(max_len: int, d_model: int) -> np.ndarray:
    """Sines in the first half of the features and cosines in the second, from wavelength 2 pi to 10000 * 2 pi.

    Feature i has sin(pos / 10000^(i / (d_model / 2 - 1))), feature d_model / 2 + i the cosine of the same.
    Source: the encoder of Whisper (Radford et al. 2023, section 2.2), whose code orders them so.

    Returns
    -------
    float64 array, shape (max_len, d_model), positions counted from 0.

    Raises
    ------
    ValueError : d_model is odd, or below 4, which leaves one wavelength.
    """
    check_even("d_model of sinusoidal positions", d_model)
    if d_model < 4:
        raise ValueError(f"d_model must be 4 or more, for a shortest wavelength and a longest one; got {d_model}")
    rates = 10000.0 ** (-np.arange(d_model // 2) / (d_model // 2 - 1))
    angles = np.arange(max_len)[:, None] * rates  # (max_len, d_model / 2)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def rotary_rates(d_head: int, base: float = 10000.0) -> np.ndarray:
    """By how much each pair of features turns from one position to the next: base^(-2i / d_head), in radians.

    Source: Su et al. 2021, eq. 15.

    Returns
    -------
    float64 array, shape (d_head / 2,).

    Raises
    ------
    ValueError : d_head is odd, or a base that is not positive.
    """
    check_even("d_head of rotary positions", d_head)
    check_positive("base", base)
    return base ** (-np.arange(0, d_head, 2) / d_head)


def harmonics(n_harmonics: int, longest: float) -> np.ndarray:
    """The angular frequencies 2 pi m / longest, m = 1 ... n_harmonics, in radians per unit of time.

    Source: Pimentel et al. 2023, the temporal modulation of their section 3.

    Returns
    -------
    float64 array, shape (n_harmonics,).

    Raises
    ------
    ValueError : no harmonic, or a longest period that is not positive.
    """
    check_positive("n_harmonics", n_harmonics)
    check_positive("longest", longest)
    return 2 * np.pi * np.arange(1, n_harmonics + 1) / longest


def relative_buckets(n_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True) -> np.ndarray:
    """The bucket of each distance, position of the key less that of the query, from -max_distance to max_distance.

    Half of the buckets hold one distance each, the other half ranges that grow logarithmically; what lies further than
    max_distance shares the bucket of max_distance (Raffel et al. 2020, section 2.1). Bidirectional, the keys before a
    query and those after it have half of the buckets each; else the keys after it have that of the query itself.

    Returns
    -------
    int64 array, shape (2 max_distance + 1,), of numbers from 0 to n_buckets - 1.

    Raises
    ------
    ValueError : fewer than two buckets for a direction, or a max_distance within the distances that have their own.
    """
    check_buckets(n_buckets, max_distance, bidirectional)
    distances = np.arange(-max_distance, max_distance + 1)
    n = n_buckets // 2 if bidirectional else n_buckets  # of one direction
    n_exact = n // 2
    ahead = np.where(distances > 0, n, 0) if bidirectional else 0
    far = np.abs(distances) if bidirectional else np.maximum(-distances, 0)
    ratio = np.log(np.maximum(far, n_exact) / n_exact) / np.log(max_distance / n_exact)
    grown = n_exact + np.floor(ratio * (n - n_exact) + 1e-9).astype(np.int64)  # what is whole stays so when rounded
    return ahead + np.where(far < n_exact, far, np.minimum(grown, n - 1))


def check_buckets(n_buckets: int, max_distance: int, bidirectional: bool = True) -> None:
    """Raise ValueError unless there are buckets for near distances and for far ones, up to max_distance."""
    check_count("n_buckets", n_buckets, 4 if bidirectional else 2)
    n_exact = n_buckets // 4 if bidirectional else n_buckets // 2
    check_count("max_distance", max_distance, 1)
    if max_distance <= n_exact:
        raise ValueError(
            f"max_distance must be {n_exact + 1} or more, as each of the first {n_exact} distances has a bucket of its "
            f"own with n_buckets={n_buckets}; got {max_distance}"
        )


def made_by(maker, *arguments):
    """Decorate a function that `maker(*arguments)` defines inside itself, so that what holds it can be pickled.

    Pickle finds functions by their names, and one inside another has none: it is written as the call that made it.
    """
    return lambda function: Made(function, maker, arguments)


class Made:
    """A function and the call that made it; see `made_by`."""

    def __init__(self, function, maker, arguments):
        self.function, self.maker, self.arguments = function, maker, arguments
        functools.update_wrapper(self, function)

    def __call__(self, *arguments, **keywords):
        return self.function(*arguments, **keywords)

    def __reduce__(self):
        return self.maker, self.arguments


def cubic_weights(n: int, n_new: int, a: float = -0.75) -> np.ndarray:
    """Cubic interpolation of n samples at n_new places as a matrix (n_new, n): W P W'^T resizes a grid P, bicubic.

    The cubic convolution of Keys (1981) with the four samples around each place: at a distance d up to 1 the weight is
    (a + 2) d^3 - (a + 3) d^2 + 1, and up to 2 it is a (d^3 - 5 d^2 + 8 d - 4). A sample stands in the middle of its
    share of the line, and beyond the ends the last one goes on.

    `a` is -0.75 in `torch.nn.functional.interpolate`, by which ViT's positions are interpolated in `transformers`.
    `tf.image.resize` has -0.5 and other ends, so it gives other numbers.
    """
    centres = (np.arange(n_new) + 0.5) * n / n_new - 0.5  # (n_new,), in samples
    taps = np.floor(centres)[:, None] + np.arange(-1, 3)  # (n_new, 4): the samples around each
    x = np.abs(centres[:, None] - taps)
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * (x**3 - 5 * x**2 + 8 * x - 4)
    here = np.clip(taps, 0, n - 1)[..., None] == np.arange(n)  # (n_new, 4, n)
    return (np.where(x <= 1, near, far)[..., None] * here).sum(axis=1)
