"""Exact attention by blocks: the numbers and gradients of `attention`, in memory that grows with the length alone."""

import importlib

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.numpy.efficient import blockwise as numpy_blockwise
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
from tests.support.backends import NUMPY, TENSORFLOW, TORCH, cotangent

SIZE = 3  # divides neither length
every_case = pytest.mark.parametrize("case", list(CASES))


@every_case
def test_the_numbers_of_attention(backend, rng, case):
    q, k, v, bias, options = problem(rng, case)
    double = in_float64(backend)
    expected = double.call(backend.function("attention"), q, k, v, bias=bias, **options).output
    output, weights = double.call(backend.lib.blockwise(SIZE), q, k, v, bias=bias, **options)
    assert weights is None
    assert_allclose(output, expected, rtol=1e-12, atol=1e-12)


def test_blocks_of_any_size(backend, rng):
    q, k, v, bias, options = problem(rng, "causal, padding, bias of T5")
    expected = backend.call(backend.function("attention"), q, k, v, bias=bias, **options).output
    for function in (backend.lib.blockwise(1), backend.lib.blockwise(7), backend.function("blockwise_attention")):
        assert_allclose(backend.call(function, q, k, v, bias=bias, **options).output, expected, **backend.tolerance)


@pytest.mark.parametrize("case", [
    "some", "causal, padding, bias of T5", "two share, bias of ALiBi", "all share, bias of a query", "one query",
])  # fmt: skip
def test_the_gradients_of_attention(training_backend, rng, case):
    inputs = problem(rng, case)
    expected = slopes(in_float64(TORCH), TORCH.lib.attention, *inputs)
    found = slopes(in_float64(training_backend), training_backend.lib.blockwise(SIZE), *inputs)
    for ours, theirs in zip(found, expected, strict=True):
        assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def test_single_precision(training_backend, rng):
    q, k, v, bias, options = problem(rng, "causal, padding, bias of T5")
    expected = NUMPY.call(NUMPY.lib.attention, q, k, v, bias=bias, **options).output
    output = training_backend.call(training_backend.lib.blockwise(SIZE), q, k, v, bias=bias, **options).output
    assert_allclose(output, expected, rtol=1e-5, atol=1e-6)
    expected = slopes(in_float64(TORCH), TORCH.lib.attention, q, k, v, bias, options)
    found = slopes(training_backend, training_backend.lib.blockwise(SIZE), q, k, v, bias, options)
    for ours, theirs in zip(found, expected, strict=True):
        assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@every_case
def test_the_explicit_gradients_of_numpy(rng, case):
    q, k, v, bias, options = problem(rng, case)
    expected = slopes(in_float64(TORCH), TORCH.lib.attention, q, k, v, bias, options)
    scale = options.get("scale", q.shape[-1] ** -0.5)
    mask = np.atleast_2d(options["mask"]) if "mask" in options else None
    row = None if bias is None else np.atleast_2d(bias)
    tiles = numpy_blockwise.Tiles(mask, row, scale, options.get("causal", False), 0.0, 0, SIZE)
    found = numpy_blockwise.forward(q, k, v, tiles)
    *ours, d_bias = numpy_blockwise.backward(cotangent(found[0].shape), q, k, v, *found, tiles)
    if bias is not None:
        ours.append(d_bias.reshape(bias.shape))
    for slope, theirs in zip(ours, expected, strict=True):
        assert_allclose(slope, theirs, rtol=1e-10, atol=1e-10)


def test_scores_that_overflow_when_they_are_exponentials(backend, rng):
    q, k, v, *_ = problem(rng, "nothing")
    output = backend.call(backend.lib.blockwise(SIZE), 300.0 * q, k, v).output
    assert_allclose(output, backend.call(backend.function("attention"), 300.0 * q, k, v).output, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("hidden", [-np.inf, None, -1e9])
def test_a_very_low_bias_never_loses_to_what_is_hidden(backend, rng, hidden):
    q, k, v, *_ = problem(rng, "nothing")
    hidden = float(np.finfo(backend.float_type).min) if hidden is None else hidden
    bias, mask = np.where(np.arange(7) < 4, hidden, 0.0), np.arange(7) < 5
    bias = np.where(np.arange(5)[:, None] == 1, np.where(mask, hidden, 0.0), bias)  # to the query 1 all is low
    expected = backend.call(backend.function("attention"), q, k, v, bias=bias, mask=mask).output
    output = backend.call(backend.lib.blockwise(SIZE), q, k, v, bias=bias, mask=mask).output
    assert_allclose(output, expected, rtol=1e-4, atol=1e-4)
    assert np.isfinite(output).all()


@pytest.mark.parametrize("hidden, n_blocks", [("nothing", 16), ("future", 10), ("padding", 8), ("queries", 12)])
def test_a_block_that_is_hidden_whole_is_skipped(backend, rng, monkeypatch, hidden, n_blocks):
    """Four blocks by four; the keys of a block are read once for its scores, and its values once."""
    module = importlib.import_module(f"course_lib.{backend.name}.efficient.blockwise")
    read, for_every_head = [], module.for_every_head
    monkeypatch.setattr(module, "for_every_head", lambda x, q: read.append(1) or for_every_head(x, q))
    x = rng.normal(size=(2, 8, 4))
    mask = {"padding": np.arange(8) < 4, "queries": np.arange(8)[:, None] > 1}.get(hidden)
    backend.call(module.blockwise(2), x, x, x, mask=mask, causal=hidden == "future")
    assert len(read) == 2 * n_blocks


def test_memory_in_numpy(rng):
    """Twice the length takes twice the bytes, forward and backward; the formula takes four times as many."""

    def peaks(of):
        return [peak_of_numpy(lambda n=n: of(rng.normal(size=(1, n, 8)))) for n in (256, 512)]

    def both(x):
        tiles = numpy_blockwise.Tiles(None, None, 1.0, True, 0.0, 0, 16)
        numpy_blockwise.backward(x, x, x, x, *numpy_blockwise.forward(x, x, x, tiles), tiles)

    short, long = peaks(both)
    assert long < 2.2 * short
    short, long = peaks(lambda x: NUMPY.lib.attention(x, x, x, causal=True))
    assert long > 3.5 * short


def test_memory_in_pytorch():
    """What is kept grows with the length, and nothing that is made on the way is as large as the scores."""
    import torch

    def sizes(function, measure, n):
        q, k, v = (torch.randn(1, 2, n, 8, requires_grad=True) for _ in range(3))
        bias = torch.randn(2, 1, n, requires_grad=True)
        return measure(lambda: function(q, k, v, bias=bias, causal=True).output)

    blocks = TORCH.lib.blockwise(16)
    for measure in (kept_by_torch, largest_of_torch):
        short, long = (sizes(blocks, measure, n) for n in (128, 256))
        assert long <= 2 * short
        short, long = (sizes(TORCH.lib.attention, measure, n) for n in (128, 256))
        assert long > 3.5 * short
    assert sizes(blocks, largest_of_torch, 128) == 2 * 128 * 8


def test_memory_in_tensorflow():
    shapes = [(1, 2, 128, 8)] * 3

    def largest(function):
        return largest_of_tensorflow(lambda q, k, v: function(q, k, v, causal=True).output, *shapes)

    assert largest(TENSORFLOW.lib.blockwise(16)) == 2 * 128 * 8
    assert largest(TENSORFLOW.lib.attention) == 2 * 128 * 128


def test_dropout_drops_weights_and_others_in_each_block(backend):
    n, p = 32, 0.3
    q, v = np.zeros((2, n, 4)), np.broadcast_to(np.eye(n), (2, n, n)).copy()  # weights of 1 / n, which the output shows
    backend.seed(3)
    weights = n * (1 - p) * backend.call(backend.lib.blockwise(8), q, q, v, dropout=p).output
    assert_allclose(weights, np.round(weights), atol=1e-4)
    fell = weights < 0.5
    assert abs(fell.mean() - p) < 4 * np.sqrt(p * (1 - p) / fell.size)
    blocks = {block.tobytes() for half in fell for rows in np.split(half, 4) for block in np.split(rows, 4, axis=1)}
    assert len(blocks) == 32
    again = n * (1 - p) * backend.call(backend.lib.blockwise(8), q, q, v, dropout=p).output
    assert ((again < 0.5) != fell).any()


def test_gradients_with_dropout_are_those_of_what_fell(training_backend, rng):
    backend, function = training_backend, training_backend.lib.blockwise(SIZE)
    inputs = list(problem(rng, "some")[:3])
    backend.seed(5)
    by_input, _ = backend.gradients(function, *inputs, dropout=0.4)

    def loss(arrays):
        backend.seed(5)
        output = backend.call(function, *arrays, dropout=0.4).output.astype(np.float64)
        return (output * cotangent(output.shape)).sum()

    for i, gradient in enumerate(by_input):
        step = 1e-2 * gradient / np.linalg.norm(gradient)
        above, below = ([x + sign * step if j == i else x for j, x in enumerate(inputs)] for sign in (1, -1))
        assert_allclose((loss(above) - loss(below)) / 2e-2, np.linalg.norm(gradient), rtol=2e-3)


def test_what_is_refused(backend, rng):
    for size in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="block_size must be a whole number of 1 or more"):
            backend.lib.blockwise(size)
    q, k, v, *_ = problem(rng, "nothing")
    call, function = backend.call, backend.function("blockwise_attention")
    with pytest.raises(ValueError, match="same number of features"):
        call(function, q, k[..., :2], v)
    with pytest.raises(TypeError, match="must be boolean"):
        call(function, q, k, v, mask=np.ones((5, 7)))
    with pytest.raises(ValueError, match="at least as many keys"):
        call(function, k, q, q, causal=True)
    with pytest.raises(ValueError, match="dropout is a probability"):
        call(function, q, k, v, dropout=1.0)
    with pytest.raises(ValueError, match="scale must be positive"):
        call(function, q, k, v, scale=0.0)
