"""Linear attention against a loop written from its definition, step by step, and in memory linear in the length."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.masks import padding_mask
from tests.support.attention_problems import (
    D_K,
    D_V,
    IDS,
    B,
    H,
    S,
    T,
    in_float64,
    kept_by_torch,
    largest_of_tensorflow,
    largest_of_torch,
    peak_of_numpy,
    slopes,
)
from tests.support.backends import NUMPY, TENSORFLOW, TORCH

# T and S, heads of keys, and what else it takes
CASES = {
    "nothing": ((T, S), H, {}),
    "padding": ((T, S), 2, {"mask": padding_mask(IDS)}),
    "causal": ((T, S), 2, {"causal": True}),
    "causal, padding": ((17, 17), 1, {"causal": True, "mask": np.arange(17)[::-1] % 5 != 0}),
    "one query": ((1, S), H, {"causal": True, "mask": padding_mask(IDS)}),
    "first keys hidden": ((S, S), H, {"causal": True, "mask": np.arange(S) > 2}),
}
every_case = pytest.mark.parametrize("case", list(CASES))


def problem(rng, case):
    (n_queries, n_keys), n_kv_heads, options = CASES[case]
    q = rng.normal(size=(B, H, n_queries, D_K))
    return q, rng.normal(size=(B, n_kv_heads, n_keys, D_K)), rng.normal(size=(B, n_kv_heads, n_keys, D_V)), options


def specification(q, k, v, mask=None, causal=False):
    """Each query's mean of the values, weighted by phi(q) . phi(k), a number at a time."""

    def phi(x):
        return [value + 1 if value > 0 else math.exp(value) for value in x.tolist()]

    context = np.zeros((*q.shape[:-1], v.shape[-1]))
    seen = np.broadcast_to(True if mask is None else mask, (*q.shape[:-1], k.shape[-2]))
    for b, h, t in np.ndindex(*q.shape[:-1]):
        read = h // (q.shape[1] // k.shape[1])
        last = t + k.shape[-2] - q.shape[-2] if causal else k.shape[-2]
        weights = [
            sum(a * c for a, c in zip(phi(q[b, h, t]), phi(k[b, read, s]), strict=True))
            * seen[b, h, t, s]
            * (s <= last)
            for s in range(k.shape[-2])
        ]
        if sum(weights) > 0:
            for j in range(v.shape[-1]):
                context[b, h, t, j] = sum(w * x for w, x in zip(weights, v[b, read, :, j], strict=True)) / sum(weights)
    return context


@every_case
def test_the_definition(backend, rng, case):
    q, k, v, options = problem(rng, case)
    output, weights = in_float64(backend).call(backend.function("linear_attention"), q, k, v, **options)
    assert weights is None
    assert_allclose(output, specification(q, k, v, **options), rtol=1e-12, atol=1e-12)


@every_case
def test_gradients(rng, case):
    """PyTorch's and TensorFlow's are those of central differences, and each other's."""
    q, k, v, options = problem(rng, case)
    by = {
        backend: slopes(in_float64(backend), backend.lib.linear_attention, q, k, v, None, options)
        for backend in (NUMPY, TORCH, TENSORFLOW)
    }
    for reference, torch, tensorflow in zip(*by.values(), strict=True):
        known = ~np.isnan(reference)
        assert_allclose(torch[known], reference[known], rtol=1e-6, atol=1e-7)
        assert_allclose(tensorflow, torch, rtol=1e-10, atol=1e-12)


def test_steps_of_any_size_give_what_the_whole_gives(backend, rng):
    q, k, v, options = problem(rng, "causal, padding")
    whole = backend.call(backend.function("linear_attention"), q, k, v, causal=True).output
    state, found = None, []
    for i, j in ((0, 1), (1, 3), (3, 4), (4, 13), (13, 17)):
        context, state = backend.call(
            backend.function("linear_attention_step"), q[..., i:j, :], k[..., i:j, :], v[..., i:j, :], state=state
        )
        assert state.shape == (B, 1, D_K, D_V + 1)
        found.append(context)
    assert_allclose(np.concatenate(found, axis=-2), whole, **backend.tolerance)


def test_the_state_is_the_sums_of_the_paper(backend, rng):
    _, k, v, _ = problem(rng, "nothing")
    phi = np.where(k > 0, k + 1, np.exp(np.minimum(k, 0)))
    _, state = backend.call(backend.function("linear_attention_step"), k, k, v)
    assert_allclose(state[..., :-1], np.einsum("bhsd,bhsv->bhdv", phi, v), **backend.tolerance)
    assert_allclose(state[..., -1], phi.sum(axis=-2), **backend.tolerance)


def test_features_that_overflow_when_they_are_exponentials(backend, rng):
    q, k, v, _ = problem(rng, "nothing")
    output = backend.call(backend.function("linear_attention"), 1000.0 * q, 1000.0 * k, v).output
    assert np.isfinite(output).all()
    for slope in slopes(TORCH, TORCH.lib.linear_attention, 1000.0 * q, 1000.0 * k, v, None, {}):
        assert np.isfinite(slope).all()


def test_memory_in_numpy(rng):
    def peaks(of):
        return [peak_of_numpy(lambda n=n: of(rng.normal(size=(1, n, 8)))) for n in (512, 1024)]

    for causal in (True, False):
        short, long = peaks(lambda x, causal=causal: NUMPY.lib.linear_attention(x, x, x, causal=causal))
        assert long < 2.2 * short


@pytest.mark.parametrize("causal", [True, False])
def test_memory_in_pytorch(causal):
    import torch

    def sizes(measure, n):
        q, k, v = (torch.randn(1, 2, n, 8, requires_grad=True) for _ in range(3))
        return measure(lambda: TORCH.lib.linear_attention(q, k, v, causal=causal).output)

    for measure in (kept_by_torch, largest_of_torch):
        short, long = (sizes(measure, n) for n in (256, 512))
        assert long <= 2 * short
    assert sizes(largest_of_torch, 256) <= 2 * 256 * 9  # in chunks: a state for each token would be 8 times as large


@pytest.mark.parametrize("causal", [True, False])
def test_memory_in_tensorflow(causal):
    shape = (1, 2, 256, 8)  # in chunks of 8, whose states are 8 times as large as a value and have a number more
    found = largest_of_tensorflow(lambda x: TENSORFLOW.lib.linear_attention(x, x, x, causal=causal).output, shape)
    assert found <= 2 * 256 * 9


def test_what_is_refused(backend, rng):
    q, k, v, _ = problem(rng, "nothing")
    call, function = backend.call, backend.function("linear_attention")
    for options in ({"bias": np.zeros((T, S))}, {"scale": 1.0}, {"dropout": 0.1}):
        with pytest.raises(ValueError, match=f"takes no {next(iter(options))}"):
            call(function, q, k, v, **options)
    with pytest.raises(ValueError, match=r"from every query or from none: .*causal=True.* got \(5, 7\)"):
        call(function, q, k, v, mask=np.ones((T, S), dtype=bool))
    with pytest.raises(TypeError, match="must be boolean"):
        call(function, q, k, v, mask=np.ones((1, S)))
    with pytest.raises(ValueError, match="at least as many keys"):
        call(function, k, q, q, causal=True)
    step = backend.function("linear_attention_step")
    with pytest.raises(ValueError, match="a step takes a query for each key"):
        call(step, q, k, v)
    with pytest.raises(ValueError, match=r"has the shape \(2, 4, 6, 4\); got \(2, 1, 6, 4\)"):
        call(step, k, k, v, state=np.zeros((2, 1, 6, 4)))
    with pytest.raises(ValueError, match=r"got \(2, 4, 6, 3\)"):
        call(step, k, k, v, state=np.zeros((2, 4, 6, 3)))
