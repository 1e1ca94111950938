"""A measured value and its confidence interval."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from course_lib.checks import check_count


class Estimate(NamedTuple):
    """A value and the ends of its confidence interval: fractions here, 0 to 100 for BLEU and chrF."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def bootstrap(
    statistics, score: Callable, confidence: float = 0.95, n_resamples: int = 1000, seed: int = 0
) -> Estimate:
    """A score of sums over N examples, and the interval in which it varies when the examples are drawn anew.

    N of the N examples are drawn with replacement, many times (Efron 1979; the quantiles of what comes out).

    Parameters
    ----------
    statistics : numbers that add up over examples, (N, K), such as right answers and their number
    score : turns sums (..., K) into scores (...); draws for which it is NaN, with nothing to measure, are left out
    confidence : of the interval; it covers the draw of the examples, not the luck of another training seed
    n_resamples, seed : of the draws

    Raises
    ------
    ValueError : no example, not one row for each, a confidence outside (0, 1), or no resample.
    """
    statistics = np.asarray(statistics, dtype=np.float64)
    if statistics.ndim != 2 or len(statistics) == 0:
        raise ValueError(f"statistics must have shape (N, K) with N of 1 or more, got {statistics.shape}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, such as 0.95; got {confidence}")
    check_count("n_resamples", n_resamples)
    n, rng = len(statistics), np.random.default_rng(seed)
    draws = [rng.multinomial(n, np.full(n, 1 / n)) @ statistics for _ in range(n_resamples)]  # each (K,)
    value, found = float(score(statistics.sum(0))), score(np.array(draws))
    found = found[~np.isnan(found)] if not np.isnan(found).all() else value
    low, high = np.quantile(found, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Estimate(value, float(low), float(high))
