"""Windowed attention with global positions: the numbers of `attention` under its mask, in linear memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.masks import causal_mask, window_mask
from tests.support.attention_problems import (
    CASES,
    in_float64,
    kept_by_torch,
    largest_of_tensorflow,
    largest_of_torch,
    peak_of_numpy,
    problem,
    slopes,
)
from tests.support.backends import NUMPY, TENSORFLOW, TORCH
from tests.support.pairwise import pairwise

GLOBAL = {"none": (), "first": (0,), "three": (6, 1, 400)}  # of a query, of none in some cases, and of no token at all
every_pattern = pairwise(case=list(CASES), window=[0, 1, 2, 3, 9], everywhere=list(GLOBAL))


def masked(options, shape, window, positions):
    """The options of `attention` for a window."""
    seen = window_mask(window, *shape, positions)
    return {**options, "mask": seen & options["mask"] if "mask" in options else seen}


@every_pattern
def test_the_numbers_of_attention_under_its_mask(backend, rng, case, window, everywhere):
    q, k, v, bias, options = problem(rng, case)
    under = masked(options, CASES[case][0], window, GLOBAL[everywhere])
    double = in_float64(backend)
    expected = double.call(backend.function("attention"), q, k, v, bias=bias, **under).output
    output, weights = double.call(backend.lib.windowed(window, GLOBAL[everywhere]), q, k, v, bias=bias, **options)
    assert weights is None
    assert_allclose(output, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_queries, n_keys", [(40, 40), (30, 40), (1, 40), (1, 1), (2, 3)])
def test_long_inputs_of_many_chunks(backend, rng, n_queries, n_keys):
    q, k = rng.normal(size=(2, 2, n_queries, 4)), rng.normal(size=(2, 2, n_keys, 4))
    for window, positions, causal in ((4, (0, 17, 39), True), (4, (3,), False), (7, (), True)):
        mask = window_mask(window, n_queries, n_keys, positions)
        expected = backend.call(backend.function("attention"), q, k, k, mask=mask, causal=causal).output
        found = backend.call(backend.lib.windowed(window, positions), q, k, k, causal=causal).output
        assert_allclose(found, expected, **backend.tolerance)


@every_pattern
def test_the_gradients_of_attention_under_its_mask(rng, case, window, everywhere):
    q, k, v, bias, options = problem(rng, case)
    under = masked(options, CASES[case][0], window, GLOBAL[everywhere])
    double = in_float64(TORCH)
    expected = slopes(double, TORCH.lib.attention, q, k, v, bias, under)
    found = slopes(double, TORCH.lib.windowed(window, GLOBAL[everywhere]), q, k, v, bias, options)
    for ours, theirs in zip(found, expected, strict=True):
        assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("case", ["causal, padding, bias of T5", "two share, bias of ALiBi"])
def test_the_gradients_of_the_two_frameworks(rng, case):
    inputs = problem(rng, case)
    doubles = [(in_float64(backend), backend.lib.windowed(2, (1,))) for backend in (TORCH, TENSORFLOW)]
    for ours, theirs in zip(*(slopes(double, function, *inputs) for double, function in doubles), strict=True):
        assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)


def test_what_is_far_changes_nothing_and_what_is_near_does(backend, rng):
    x = rng.normal(size=(1, 12, 4))
    function = backend.lib.windowed(2, (0,))
    before = backend.call(function, x, x, x).output
    y = x.copy()
    y[:, 9] += 1.0
    changed = np.abs(backend.call(function, x, y, y).output - before).max(axis=-1)[0] > 1e-6
    assert_array_equal(changed, [t in (0, 7, 8, 9, 10, 11) for t in range(12)])
    y = x.copy()
    y[:, 0] += 1.0
    assert (np.abs(backend.call(function, x, y, y).output - before).max(axis=-1)[0] > 1e-6).all()


def test_a_window_mask_by_hand():
    o, x = False, True
    assert_array_equal(window_mask(1, 4)[0, 0], [[x, x, o, o], [x, x, x, o], [o, x, x, x], [o, o, x, x]])
    assert_array_equal(window_mask(0, 3)[0, 0], np.eye(3, dtype=bool))
    assert_array_equal(window_mask(1, 2, 5)[0, 0], [[o, o, x, x, x], [o, o, o, x, x]])
    assert_array_equal(window_mask(0, 4, global_positions=(2, 9))[0, 0],
                       [[x, o, x, o], [o, x, x, o], [x, x, x, x], [o, o, x, x]])  # fmt: skip
    assert_array_equal((window_mask(1, 3) & causal_mask(3))[0, 0], [[x, o, o], [x, x, o], [o, x, x]])
    assert window_mask(1, 4).dtype == bool and window_mask(1, 2, 5).shape == (1, 1, 2, 5)


def test_the_window_mask_of_each_framework_is_the_neutral_one(backend):
    for arguments in ((1, 4), (0, 2, 5), (2, 6, 6, (0, 4)), (9, 3), (1, 4, None, (1,))):
        mask = backend.lib.window_mask(*arguments)
        assert isinstance(mask, type(backend.tensor(np.zeros(1, dtype=bool))))
        assert_array_equal(backend.array(mask), window_mask(*arguments))
    both = backend.lib.window_mask(1, 4) & backend.lib.causal_mask(4)
    assert_array_equal(backend.array(both), window_mask(1, 4) & causal_mask(4))


def test_memory_in_numpy(rng):
    def peaks(of):
        return [peak_of_numpy(lambda n=n: of(rng.normal(size=(1, n, 8)))) for n in (512, 1024)]

    windowed = NUMPY.lib.windowed(8, (0, 5))
    short, long = peaks(lambda x: windowed(x, x, x, mask=np.ones((1, x.shape[1]), dtype=bool)))
    assert long < 2.2 * short
    short, long = peaks(lambda x: NUMPY.lib.attention(x, x, x))
    assert long > 3.5 * short


def test_memory_in_pytorch():
    import torch

    def sizes(measure, n):
        q, k, v = (torch.randn(1, 2, n, 8, requires_grad=True) for _ in range(3))
        mask, bias = torch.ones(1, 1, 1, n, dtype=torch.bool), torch.randn(2, 1, n, requires_grad=True)
        return measure(lambda: TORCH.lib.windowed(8, (0, 5))(q, k, v, mask, bias, causal=True).output)

    for measure in (kept_by_torch, largest_of_torch):
        short, long = (sizes(measure, n) for n in (256, 512))
        assert long <= 2 * short


def test_memory_in_tensorflow():
    """The largest tensors have a number for each query and each of the 8 + 8 + 2 keys of its chunk."""
    windowed = TENSORFLOW.lib.windowed(8, (0, 5))
    shape = (1, 2, 256, 8)
    assert largest_of_tensorflow(lambda x: windowed(x, x, x, causal=True).output, shape) == 2 * 256 * (8 + 8 + 2)


def test_dropout_drops_weights(backend):
    n, p = 40, 0.3
    q, v = np.zeros((3, n, 4)), np.broadcast_to(np.eye(n), (3, n, n)).copy()
    backend.seed(3)
    weights = 9 * (1 - p) * backend.call(backend.lib.windowed(4), q, q, v, dropout=p).output[:, 4:-4]  # whole windows
    seen = window_mask(4, n)[0, 0, 4:-4]
    assert_allclose(weights, np.round(weights), atol=1e-4)
    assert (weights[:, ~seen] < 0.5).all()
    kept = weights[:, seen] > 0.5
    assert abs(kept.mean() - (1 - p)) < 4 * np.sqrt(p * (1 - p) / kept.size)


def test_what_is_refused(backend, rng):
    for window in (-1, 1.5, True):
        with pytest.raises(ValueError, match="window must be a whole number of 0 or more"):
            backend.lib.windowed(window)
        with pytest.raises(ValueError, match="window must be a whole number of 0 or more"):
            backend.lib.window_mask(window, 3)
    for make in (lambda: backend.lib.windowed(2, (0, -1)), lambda: backend.lib.window_mask(2, 3, 3, (0, -1))):
        with pytest.raises(ValueError, match="a global position must be a whole number of 0 or more"):
            make()
    x, y = rng.normal(size=(2, 4, 6)), rng.normal(size=(2, 3, 6))
    with pytest.raises(ValueError, match="a window lies around .* got T=4, S=3"):
        backend.call(backend.lib.windowed(2), x, y, y)
    with pytest.raises(ValueError, match="a window lies around .* got T=4, S=3"):
        backend.lib.window_mask(2, 4, 3)
    with pytest.raises(TypeError, match="must be boolean"):
        backend.call(backend.lib.windowed(2), x, x, x, mask=np.ones((4, 4)))
    with pytest.raises(ValueError, match="same number of features"):
        backend.call(backend.lib.windowed(2), x, x[..., :2], x)


def test_lengths_that_a_traced_function_does_not_know_are_refused_by_the_mask():
    import tensorflow as tf

    @tf.function
    def traced(x):
        return TENSORFLOW.lib.window_mask(2, tf.shape(x)[0])

    with pytest.raises(TypeError, match="window_mask takes lengths that are known"):
        traced(tf.zeros(3))
