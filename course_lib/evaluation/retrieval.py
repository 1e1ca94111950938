"""How well texts find their partners: the rank of the right one among all, by any score of pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from course_lib.evaluation.classification import accuracy
from course_lib.evaluation.estimate import Estimate, bootstrap


class RetrievalScores(NamedTuple):
    """Of n searches: the share that find the right text first, and the mean of 1 / rank, each with its interval."""

    first: Estimate
    reciprocal: Estimate
    n: int

    def __str__(self) -> str:
        return f"right one first {self.first}, mean reciprocal rank {self.reciprocal} ({self.n:,} searches)"


def cosines(first, second) -> np.ndarray:
    """The cosine of each of N vectors with each of M others: (N, d) and (M, d) -> (N, M); 0 for a vector of zeros.

    Raises
    ------
    ValueError : not two tables of as many columns.
    """
    first, second = (np.asarray(x, dtype=np.float64) for x in (first, second))
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1]:
        raise ValueError(f"both must be vectors of one size, (N, d) and (M, d); got {first.shape} and {second.shape}")
    first, second = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in (first, second))
    return first @ second.T


def ranks(scores) -> np.ndarray:
    """The rank of each search's right text, 1 for the first: int64 (N,).

    Parameters
    ----------
    scores : (N, M) with M of N or more, how well text j answers search i; the right one of search i is text i. Of
        texts that score alike, the right one counts as the last: who cannot tell them apart has found nothing.

    Raises
    ------
    ValueError : another shape, no search, or a score that is not a number.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 2 or not 0 < scores.shape[0] <= scores.shape[1]:
        raise ValueError(f"scores must be (N, M), N searches of 1 or more, and M of N or more; got {scores.shape}")
    if np.isnan(scores).any():
        raise ValueError("a score is not a number (NaN)")
    own = np.diagonal(scores)[:, None]  # (N, 1)
    return (scores >= own).sum(axis=1)


def retrieval_scores(scores, confidence: float = 0.95, n_resamples: int = 1000, seed: int = 0) -> RetrievalScores:
    """How often the right text comes first, with Wilson's interval, and the mean reciprocal rank.

    The mean of 1 / rank is 1 if all are found first and 1/2 if all come second (Voorhees 1999).

    Parameters
    ----------
    scores : as for `ranks`
    confidence, n_resamples, seed : as for `bootstrap` of `course_lib.evaluation.estimate`

    Raises
    ------
    ValueError : as for `ranks` and `bootstrap`.
    """
    found = ranks(scores)
    reciprocal = bootstrap(
        np.stack([1 / found, np.ones(len(found))], axis=1),
        lambda sums: sums[..., 0] / sums[..., 1],
        confidence,
        n_resamples,
        seed,
    )
    return RetrievalScores(accuracy(found == 1, np.ones(len(found), dtype=bool), confidence), reciprocal, len(found))
