"""Attention for long inputs as a model's attention function: cached, padded, copied, compiled, in half precision."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.models.blocks import BlockConfig
from tests.support.attention_problems import problem
from tests.support.backends import NUMPY, TENSORFLOW, TORCH

BLOCK = BlockConfig(8, 4, 9, n_kv_heads=2)
MAKE = {
    "blockwise": lambda lib: lib.blockwise(3),
    "windowed": lambda lib: lib.windowed(2, (0, 4)),
    "linear": lambda lib: lib.linear_attention,
}
every_function = pytest.mark.parametrize("name", list(MAKE))


@every_function
def test_the_cache_gives_what_the_whole_gives(backend, rng, name):
    """A decoder alone, in steps of one token and of several."""
    model = backend.make("Decoder", 2, BLOCK, MAKE[name](backend.lib), False)
    x = rng.normal(size=(2, 9, 8))
    whole, *_, weights, _ = backend.call(model, x, causal=True, return_layers=True)
    assert all(table is None for table in weights)
    caches = model.start(n_rows=2)
    for first, last in ((0, 5), (5, 6), (6, 9)):
        part, caches = model.step(backend.tensor(x[:, first:last]), caches, causal=True)
        assert_allclose(backend.array(part), whole[:, first:last], rtol=2e-4, atol=2e-5)


@every_function
def test_the_future_changes_nothing_before_it(backend, rng, name):
    model = backend.make("Decoder", 1, BLOCK, MAKE[name](backend.lib), False)
    x = rng.normal(size=(2, 9, 8))
    before = backend.call(model, x, causal=True).last_hidden
    x[:, 6:] += 1.0
    after = backend.call(model, x, causal=True).last_hidden
    assert_allclose(after[:, :6], before[:, :6], **backend.tolerance)
    assert (np.abs(after[:, 6:] - before[:, 6:]).max(axis=-1) > 1e-3).all()


@every_function
def test_a_padded_batch_is_its_sequences_one_by_one(backend, rng, name):
    model = backend.make("Encoder", 2, BLOCK, MAKE[name](backend.lib))
    x, real = rng.normal(size=(3, 9, 8)), np.arange(9) < np.array([9, 5, 2])[:, None]
    whole = backend.call(model, x, mask=real[:, None, None]).last_hidden
    for row, n in enumerate(real.sum(axis=1)):
        assert_allclose(whole[row, :n], backend.call(model, x[row : row + 1, :n]).last_hidden[0], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("n_kv_heads, share", [(4, 1), (2, 2), (1, 4)])
def test_a_cache_is_as_many_times_smaller_as_queries_share_its_heads(backend, rng, n_kv_heads, share):
    """Grouped and multi-query attention keep what their few heads need: numbers counted in the cache itself."""
    x, config = rng.normal(size=(2, 7, 8)), BlockConfig(8, 4, 9, n_kv_heads=n_kv_heads)
    layer = backend.make("MultiHeadAttention", 8, 4, n_kv_heads=n_kv_heads)
    kept = backend.array(layer.project(backend.tensor(x), backend.tensor(x)))
    assert sum(part.size for part in kept) == 2 * (2 * 7 * 8) // share
    model = backend.make("Decoder", 1, config, cross_attention=False)
    _, (cache,) = model.step(backend.tensor(x), model.start(n_rows=2), causal=True)
    assert sum(backend.array(part).size for part in (cache.keys, cache.values)) == 2 * (2 * 7 * 8) // share


@every_function
def test_half_precision_in_pytorch(rng, name):
    """Inputs are rounded, sums are not: the result is that of the rounded inputs, but for its own rounding."""
    import torch

    function = MAKE[name](TORCH.lib)
    arrays = problem(rng, "causal")[:3]
    for dtype, error in ((torch.bfloat16, 2**-8), (torch.float16, 2**-11)):
        half = [torch.tensor(x).to(dtype) for x in arrays]
        found = function(*half, causal=True).output
        assert found.dtype == dtype
        expected = function(*(x.double() for x in half), causal=True).output
        times = 8 if name == "windowed" else 1  # it is the formula, which rounds its scores and weights
        assert float((found.double() - expected).abs().max() / expected.abs().max()) < 1.01 * times * error
        with torch.autocast("cpu", dtype=dtype):
            assert torch.isfinite(function(*half, causal=True).output).all()


@every_function
def test_half_precision_in_tensorflow(rng, name):
    import tensorflow as tf

    function = MAKE[name](TENSORFLOW.lib)
    half = [tf.constant(x, tf.float16) for x in problem(rng, "causal")[:3]]
    found = function(*half, causal=True).output
    assert found.dtype == tf.float16
    expected = function(*(tf.cast(x, tf.float64) for x in half), causal=True).output.numpy()
    times = 8 if name == "windowed" else 1
    assert np.abs(found.numpy() - expected).max() / np.abs(expected).max() < 1.01 * times * 2**-11


@pytest.mark.parametrize("name", ["blockwise", "linear"])
@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_many_keys_in_half_precision(framework, name):
    """A sum of 5,000 weights is more than bfloat16 can count to; the mean of equal values is one of them."""
    import tensorflow as tf
    import torch

    lib = {"torch": TORCH.lib, "tensorflow": TENSORFLOW.lib}[framework]
    function = lib.blockwise(1000) if name == "blockwise" else lib.linear_attention
    shape = (1, 5000, 4)
    x = torch.zeros(shape, dtype=torch.bfloat16) if framework == "torch" else tf.zeros(shape, tf.bfloat16)
    found = function(x[:, :2], x, x + 3.0).output
    found = found.float() if framework == "torch" else tf.cast(found, tf.float32)
    assert_allclose(found.numpy(), 3.0, rtol=2**-9)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # PyTorch's own, from its compiler
@every_function
def test_compiled_and_exported_by_pytorch(name):
    """Compiled whole, with gradients; exported for any batch of one length."""
    import torch

    function = MAKE[name](TORCH.lib)

    class Attend(torch.nn.Module):
        def forward(self, q, k, v, mask):
            return function(q, k, v, mask, causal=True).output

    torch.compiler.reset()
    model = Attend()
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    q, k, v = (torch.randn(2, 2, 5, 4, requires_grad=True) for _ in range(3))
    mask = torch.rand(2, 1, 1, 5) < 0.7
    torch.testing.assert_close(compiled(q, k, v, mask), model(q, k, v, mask))
    ours, expected = (torch.autograd.grad(f(q, k, v, mask).sum(), (q, k, v)) for f in (compiled, model))
    torch.testing.assert_close(ours, expected)
    rows = {0: torch.export.Dim.DYNAMIC}
    with torch.no_grad():
        exported = torch.export.export(model, (q, k, v, mask), dynamic_shapes=(rows,) * 4).module()
        three = [torch.cat([x, x[:1]]) for x in (q, k, v, mask)]
        torch.testing.assert_close(exported(*three), model(*three))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # of what follows a break in the graph
def test_dropout_by_blocks_in_a_compiled_function_of_pytorch():
    """What falls is drawn outside of the graphs: one before it and one behind it, and not one for each block."""
    import torch

    def attend(q, k, v):
        return TORCH.lib.blockwise(3)(q, k, v, dropout=0.5).output

    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module.forward

    torch.compiler.reset()
    q, k, v = (torch.randn(2, 7, 4, requires_grad=True) for _ in range(3))
    found = []
    for function in (attend, torch.compile(attend, backend=backend)):
        torch.manual_seed(7)
        output = function(q, k, v)
        found.append((output, *torch.autograd.grad(output.sum(), (q, k, v))))
    torch.testing.assert_close(*found)
    assert len(graphs) <= 2


@every_function
def test_a_graph_of_tensorflow_for_any_batch_and_length(rng, name):
    """Traced once, with gradients, for lengths that are not known; by blocks, where loops are inside, also by XLA."""
    import tensorflow as tf

    function, traces = MAKE[name](TENSORFLOW.lib), []

    def both(mask, *floats):
        traces.append(1)
        with tf.GradientTape() as tape:
            tape.watch(floats)
            q, k, v, *bias = floats
            output = function(q, k, v, mask, *bias, causal=True).output
        return output, *tape.gradient(output, floats)

    shapes = [(None, 1, 1, None), (None, 2, None, 6), (None, 1, None, 6), (None, 1, None, 3), (1, 2, None, None)]
    shapes = shapes[:4] if name == "linear" else shapes
    specs = [tf.TensorSpec(shape, tf.float32 if i else tf.bool) for i, shape in enumerate(shapes)]
    graph = tf.function(both, input_signature=specs, autograph=False)
    for n_rows, n in ((2, 5), (1, 4)):
        sizes = [(n_rows, 2, n, 6), (n_rows, 1, n, 6), (n_rows, 1, n, 3), (1, 2, n, n)][: len(shapes) - 1]
        inputs = [rng.random((n_rows, 1, 1, n)) < 0.7, *(rng.normal(size=size) for size in sizes)]
        inputs = [TENSORFLOW.tensor(x) for x in inputs]
        expected = both(*inputs)
        for ours, theirs in zip(graph(*inputs), expected, strict=True):
            assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    assert len(traces) == 3  # one graph, and two calls without one
    if name == "blockwise":
        for ours, theirs in zip(tf.function(both, jit_compile=True, autograph=False)(*inputs), expected, strict=True):
            assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("library", [NUMPY.lib, TORCH.lib], ids=["numpy", "torch"])
def test_functions_are_copied_with_their_settings(library, rng):
    q = rng.normal(size=(2, 9, 4))
    q = q if library is NUMPY.lib else TORCH.tensor(q)
    for function in (library.blockwise(2), library.windowed(1, (3,)), library.linear_attention):
        for other in (pickle.loads(pickle.dumps(function)), copy.deepcopy(function)):
            assert_allclose(other(q, q, q).output, function(q, q, q).output)


def test_functions_are_saved_by_keras_with_their_settings(rng):
    import json

    x = TENSORFLOW.tensor(rng.normal(size=(2, 9, 8)))
    for function in (TENSORFLOW.lib.blockwise(2), TENSORFLOW.lib.windowed(1, (3,)), TENSORFLOW.lib.linear_attention,
                     TENSORFLOW.lib.blockwise_attention):  # fmt: skip
        layer = TENSORFLOW.lib.MultiHeadAttention(8, 2, attention=function)
        other = type(layer).from_config(json.loads(json.dumps(layer.get_config())))
        other.set_weights(layer.get_weights())
        assert_allclose(other(x, x, x).output, layer(x, x, x).output)
