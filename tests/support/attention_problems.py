"""What the tests of attention for long inputs share: problems of every kind, float64, and how much is remembered."""

import numpy as np

from course_lib.masks import padding_mask

B, H, T, S, D_K, D_V = 2, 4, 5, 7, 6, 3
IDS = np.array([[5, 3, 9, 4, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0]])  # the second sequence is padding alone
SOME = np.random.default_rng(1).random((B, H, T, S)) < 0.6
SOME[1, 2, 3] = False  # a query with nothing to attend to

# T and S, heads of keys, the shape of the bias, and what else attention takes
CASES = {
    "nothing": ((T, S), H, None, {}),
    "padding": ((T, S), H, None, {"mask": padding_mask(IDS)}),
    "some": ((T, S), H, None, {"mask": SOME, "scale": 1.3}),
    "causal": ((T, S), H, None, {"causal": True}),
    "causal, padding, bias of T5": ((T, S), H, (1, H, T, S), {"causal": True, "mask": padding_mask(IDS), "scale": 1.0}),
    "two share, bias of ALiBi": ((S, S), 2, (H, 1, S), {"causal": True}),
    "all share, bias of a query": ((T, S), 1, (B, 1, T, 1), {"mask": SOME}),
    "keys alone": ((T, S), 2, (S,), {"mask": np.arange(S) > 2}),
    "one query": ((1, S), 2, (1, H, 1, S), {"causal": True}),
}


def problem(rng, case):
    """q, k, v, the bias or None, and the options of a case."""
    (n_queries, n_keys), n_kv_heads, shape, options = CASES[case]
    q = rng.normal(size=(B, H, n_queries, D_K))
    k, v = rng.normal(size=(B, n_kv_heads, n_keys, D_K)), rng.normal(size=(B, n_kv_heads, n_keys, D_V))
    return q, k, v, None if shape is None else rng.normal(size=shape), options


def in_float64(backend):
    """The same backend with numbers of double precision."""
    return type("Double", (type(backend),), {"float_type": np.float64})()


def slopes(backend, function, q, k, v, bias, options):
    """The gradients by q, k, v and the bias if there is one."""
    options = {name: backend.tensor(value) for name, value in options.items()}

    def called(q, k, v, *bias):
        return function(q, k, v, bias=bias[0] if bias else None, **options)

    return backend.gradients(called, q, k, v, *([] if bias is None else [bias]))[0]


def largest_of_torch(call):
    """The largest number of elements of a tensor that PyTorch makes in a call and in its backward pass."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class Sizes(TorchDispatchMode):
        largest = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            sizes = [part.numel() for part in tree_leaves(out) if isinstance(part, torch.Tensor)]
            self.largest = max([self.largest, *sizes])
            return out

    with Sizes() as sizes:
        call().sum().backward()
    return sizes.largest


def kept_by_torch(call):
    """How many numbers PyTorch keeps for the backward pass of a call, each tensor once."""
    import torch

    kept = {}

    def pack(tensor):
        kept[tensor.data_ptr(), tensor.dtype] = tensor.numel()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = call()
    found = sum(kept.values())
    output.sum().backward()
    return found


def largest_of_tensorflow(function, *shapes):
    """The largest number of elements of a tensor in the graph of a function and of its gradient, loops included."""
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec(shape, tf.float32) for shape in shapes])
    def traced(*inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            output = function(*inputs)
        return output, tape.gradient(output, inputs)

    graph = traced.get_concrete_function().graph.as_graph_def(add_shapes=True)
    nodes = [*graph.node, *(node for part in graph.library.function for node in part.node_def)]
    shapes = [shape for node in nodes for shape in node.attr["_output_shapes"].list.shape if not shape.unknown_rank]
    sizes = [[axis.size for axis in shape.dim] for shape in shapes]
    return max(int(np.prod(size)) for size in sizes if -1 not in size)


def peak_of_numpy(call):
    """The most bytes that NumPy holds at once during a call."""
    import tracemalloc

    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
