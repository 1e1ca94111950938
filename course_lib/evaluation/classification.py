"""How good a classifier is, and how sure one can be: accuracy with intervals, paired comparisons, confusion."""

import numpy as np
from scipy import stats

from course_lib.evaluation.estimate import Estimate


def accuracy(predictions, labels, confidence: float = 0.95) -> Estimate:
    """The fraction predicted rightly, with Wilson's interval (Wilson 1927).

    Parameters
    ----------
    predictions, labels : integers, shape (N,)
    confidence : of the interval; it covers the draw of the N examples, not the luck of another training seed

    Raises
    ------
    ValueError : arrays of unequal or zero length, not of one axis, or a confidence outside (0, 1).
    """
    predictions, labels = _pair(predictions, labels)
    right = int((predictions == labels).sum())
    interval = stats.binomtest(right, len(labels)).proportion_ci(_checked(confidence), method="wilson")
    return Estimate(right / len(labels), float(interval.low), float(interval.high))


def accuracy_difference(first, second, labels, confidence: float = 0.95) -> Estimate:
    """Accuracy of `first` minus accuracy of `second` on the same examples, with a paired interval.

    Each example counts +1 where only the first is right, -1 where only the second is, 0 where they agree;
    the interval is the normal one for the mean of these N numbers.

    Parameters
    ----------
    first, second, labels : integers, shape (N,)

    Raises
    ------
    ValueError : as for `accuracy`, or fewer than two examples.
    """
    first, labels = _pair(first, labels)
    second, labels = _pair(second, labels)
    if len(labels) < 2:
        raise ValueError("an interval for a difference needs two examples or more")
    gains = (first == labels).astype(float) - (second == labels)  # (N,)
    half = stats.norm.ppf(0.5 + _checked(confidence) / 2) * gains.std(ddof=1) / np.sqrt(len(gains))
    return Estimate(float(gains.mean()), float(gains.mean() - half), float(gains.mean() + half))


def mcnemar(first, second, labels) -> float:
    """The exact McNemar test: the probability of so unequal a split of the disagreements if both were as good.

    Source: McNemar 1947; two-sided binomial test on the examples that only one of the two predicts rightly.

    Raises
    ------
    ValueError : as for `accuracy`.
    """
    first, labels = _pair(first, labels)
    second, labels = _pair(second, labels)
    only_first = int(((first == labels) & (second != labels)).sum())
    only_second = int(((first != labels) & (second == labels)).sum())
    if only_first + only_second == 0:
        return 1.0
    return float(stats.binomtest(only_first, only_first + only_second).pvalue)


def _pair(predictions, labels) -> tuple[np.ndarray, np.ndarray]:
    predictions, labels = np.asarray(predictions), np.asarray(labels)
    if predictions.shape != labels.shape or labels.ndim != 1 or len(labels) == 0:
        raise ValueError(
            f"predictions and labels must both have shape (N,) with N of 1 or more, got {predictions.shape} "
            f"and {labels.shape}; take the argmax of logits over the classes first"
        )
    return predictions, labels


def _checked(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, such as 0.95; got {confidence}")
    return confidence
