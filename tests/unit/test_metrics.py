"""Accuracy, its interval, and comparisons of two classifiers on the same examples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.evaluation.classification import accuracy, accuracy_difference, mcnemar


def test_wilson_interval_of_a_worked_example():
    # 8 of 10: (8 + z^2/2 +- z sqrt(8*2/10 + z^2/4)) / (10 + z^2) with z = 1.959964
    labels = np.ones(10, int)
    z = 1.959964
    centre, half = 8 + z**2 / 2, z * np.sqrt(8 * 2 / 10 + z**2 / 4)
    expected = 0.8, (centre - half) / (10 + z**2), (centre + half) / (10 + z**2)
    assert_allclose(accuracy([1] * 8 + [0] * 2, labels), expected, rtol=1e-6)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    labels = np.ones(60, int)
    estimates = [accuracy((rng.random(60) < 0.8).astype(int), labels) for _ in range(400)]
    assert 0.92 < np.mean([e.low <= 0.8 <= e.high for e in estimates]) < 0.98


def test_perfect_predictions_keep_an_honest_lower_end():
    value, low, high = accuracy(np.ones(50, int), np.ones(50, int))
    assert value == high == 1.0
    assert 0.9 < low < 0.95


def test_a_difference_counts_only_disagreements():
    labels = np.zeros(100, int)
    first, second = np.zeros(100, int), np.zeros(100, int)
    second[:15] = 1  # only the first is right on 15
    first[15:20] = 1  # only the second is right on 5
    value, low, high = accuracy_difference(first, second, labels)
    gains = np.array([1.0] * 15 + [-1.0] * 5 + [0.0] * 80)
    half = 1.959964 * gains.std(ddof=1) / 10
    assert_allclose([value, low, high], [0.10, 0.10 - half, 0.10 + half], rtol=1e-6)
    assert_allclose(accuracy_difference(second, first, labels).value, -0.10)


def test_a_paired_interval_is_narrower_than_two_separate_ones():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 1000)
    second = np.where(rng.random(1000) < 0.75, labels, 1 - labels)
    first = np.where(rng.random(1000) < 0.05, labels, second)
    _, low, high = accuracy_difference(first, second, labels)
    separate = accuracy(first, labels)
    assert high - low < (separate.high - separate.low) / 2


def test_mcnemar_of_a_worked_example():
    labels, first, second = np.zeros(30, int), np.zeros(30, int), np.zeros(30, int)
    second[:6] = 1
    assert_allclose(mcnemar(first, second, labels), 2 / 2**6)
    assert_allclose(mcnemar(second, first, labels), 2 / 2**6)
    assert_allclose(mcnemar(first, first, labels), 1.0)


def test_a_higher_confidence_is_wider():
    labels = np.arange(50) % 2
    predictions = np.zeros(50, int)
    narrow, wide = (accuracy(predictions, labels, c) for c in (0.8, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_an_estimate_reads_well():
    assert str(accuracy([1] * 8 + [0] * 2, [1] * 10)) == "0.800 [0.490, 0.943]"


@pytest.mark.parametrize(
    "function", [accuracy, lambda p, y: accuracy_difference(p, p, y), lambda p, y: mcnemar(p, p, y)]
)
@pytest.mark.parametrize(("predictions", "labels"), [([1, 0], [1]), ([], []), ([[0.3, 0.7]], [[1, 0]])])
def test_bad_shapes(function, predictions, labels):
    with pytest.raises(ValueError, match="must both have shape"):
        function(predictions, labels)


def test_an_interval_for_a_difference_needs_two_examples():
    with pytest.raises(ValueError, match="needs two examples or more"):
        accuracy_difference([1], [0], [1])


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_bad_confidence(confidence):
    with pytest.raises(ValueError, match="between 0 and 1"):
        accuracy([1], [1], confidence)
