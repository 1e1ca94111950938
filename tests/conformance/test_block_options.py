"""What a block may be besides the paper's: biased and scaled scores, shared heads of keys, causal, gated, RMS, rotary.

Against the loop specification, and by properties that need no reference.
"""

import functools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.masks import causal_mask, padding_mask
from course_lib.models.blocks import BlockConfig
from tests.support import specification, states
from tests.support.backends import NUMPY, TENSORFLOW, TORCH
from tests.support.pairwise import pairwise

B, H, H_KV, T, S, D_K, D_V = 2, 4, 2, 5, 7, 6, 3
D_MODEL, D_FF = 10, 9
FUNCTIONS = ["attention", "fused_attention"]
IDS = np.array([[5, 3, 9, 4, 0, 0, 0], [7, 1, 2, 8, 6, 4, 0]])
EMPTY = np.random.default_rng(1).random((B, H, T, S)) < 0.6
EMPTY[1, 2, 3] = False

# the shape of the bias, n_kv_heads, and what else attention takes
OPTIONS = {
    "nothing": (None, H, {}),
    "bias of T5": ((1, H, T, S), H, {"scale": 1.0}),
    "bias of ALiBi": ((H, 1, S), H, {"causal": True}),
    "bias of each query": ((B, 1, T, 1), H, {}),
    "one bias": ((), H, {}),
    "bias and empty rows": ((B, H, T, S), H, {"mask": EMPTY}),
    "bias, padding, future": ((T, S), H, {"mask": padding_mask(IDS), "causal": True}),
    "a large scale": (None, H, {"scale": 2.5}),
    "causal": (None, H, {"causal": True}),
    "causal, padding": (None, H, {"causal": True, "mask": padding_mask(IDS)}),
    "two share": (None, H_KV, {}),
    "all share": ((1, H, T, S), 1, {"mask": EMPTY, "scale": 0.3}),
    "two share, causal": ((S,), H_KV, {"causal": True}),
}


def problem(rng, n_kv_heads, shape, n_queries=T):
    q = rng.normal(size=(B, H, n_queries, D_K))
    k, v = rng.normal(size=(B, n_kv_heads, S, D_K)), rng.normal(size=(B, n_kv_heads, S, D_V))
    return q, k, v, None if shape is None else rng.normal(size=shape)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("case", OPTIONS)
def test_attention_equals_the_specification(backend, rng, name, case):
    shape, n_kv_heads, options = OPTIONS[case]
    q, k, v, bias = problem(rng, n_kv_heads, shape)
    found = backend.call(backend.function(name), q, k, v, bias=bias, **options)
    output, weights = specification.attention(q, k, v, bias=bias, **options)
    assert_allclose(found.output, output, **backend.tolerance)
    if name == "attention":
        assert_allclose(found.weights, weights, **backend.tolerance)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("n_queries", [1, S])
def test_causal_is_the_causal_mask(backend, rng, name, n_queries):
    """Also for a single new token, and for the whole, which the fast kernels do without a mask."""
    q, k, v, _ = problem(rng, H, None, n_queries)
    function = backend.function(name)
    expected = backend.call(function, q, k, v, mask=causal_mask(n_queries, S)).output
    assert_allclose(backend.call(function, q, k, v, causal=True).output, expected, **backend.tolerance)


@functools.cache
def slopes(backend, name, case):
    """By q, k, v and the bias."""
    shape, n_kv_heads, options = OPTIONS[case]
    q, k, v, bias = problem(np.random.default_rng(0), n_kv_heads, shape)
    inputs = [q, k, v] + ([] if bias is None else [np.asarray(bias)])
    function = backend.function(name)

    def attend(q, k, v, bias=None):
        return function(q, k, v, bias=bias, **{key: backend.tensor(value) for key, value in options.items()})

    return backend.gradients(attend, *inputs)[0]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("case", [case for case in OPTIONS if case != "nothing"])
def test_gradients_are_those_of_the_reference(name, case):
    """Which are float64 differences of NumPy's `attention`."""
    for backend in (TORCH, TENSORFLOW):
        for ours, theirs in zip(slopes(backend, name, case), slopes(NUMPY, "attention", case), strict=True):
            known = ~np.isnan(theirs)
            assert_allclose(ours[known], theirs[known], rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_bias_of_higher_precision_does_not_change_that_of_the_result(rng, name):
    q, k, v, bias = problem(rng, H, (T, S))  # the two frameworks compute in float32, and NumPy in what it is given
    found = NUMPY.function(name)(*(x.astype(np.float32) for x in (q, k, v)), bias=bias)
    assert {x.dtype for x in found if x is not None} == {np.dtype(np.float32)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_bias_of_a_row_changes_nothing_and_one_of_minus_infinity_hides(backend, rng, name):
    q, k, v, _ = problem(rng, H, None)
    function = backend.function(name)
    expected = backend.call(function, q, k, v).output
    rows = rng.normal(size=(T, 1))
    assert_allclose(backend.call(function, q, k, v, bias=rows).output, expected, **backend.tolerance)
    hidden = np.where(np.arange(S) < 4, 0.0, -np.inf)
    expected = backend.call(function, q, k[..., :4, :], v[..., :4, :]).output
    assert_allclose(backend.call(function, q, k, v, bias=hidden).output, expected, **backend.tolerance)


@pairwise(name=FUNCTIONS, hidden=[-np.inf, None, -2e38, -1e30, -1e9], masked=[None, "padding", "causal"])
def test_a_very_low_bias_never_loses_to_what_is_hidden(backend, rng, name, hidden, masked):
    """A key of a low bias gets nothing beside others and all where it is alone; what a mask hides gets nothing ever."""
    q, k, v, _ = problem(rng, H, None, S)
    hidden = float(np.finfo(backend.float_type).min) if hidden is None else hidden  # a usual additive mask
    bias = np.where(np.arange(S) < 3, hidden, 0.0)
    mask = {None: np.ones((1, S), bool), "padding": np.arange(S)[None] < 5, "causal": causal_mask(S)[0, 0]}[masked]
    mask = np.broadcast_to(mask, (S, S)).copy()
    options = {"causal": True} if masked == "causal" else {"mask": mask.copy()}
    found = backend.call(backend.function(name), q, k, v, bias=bias, **options)
    some = (mask & (bias == 0.0)).any(-1)  # a row with a key of no bias sees these alone
    mask[some] &= bias == 0.0
    if hidden == -np.inf:
        mask[~some] = False
    output, weights = specification.attention(q, k, v, mask)
    assert_allclose(found.output[..., some, :], output[..., some, :], **backend.tolerance)
    seen = mask.any(-1)
    assert_allclose(found.output[..., ~seen, :], 0.0, atol=1e-12)
    low = found.output[..., ~some & seen, :]  # the scores are lost beside so low a bias: a mean of what is seen
    assert np.isfinite(low).all() and (
        hidden > -1e20 or np.allclose(low, _mean(v, mask)[..., ~some & seen, :], atol=1e-4)
    )
    if name == "attention":
        assert_allclose(found.weights.sum(-1), np.broadcast_to(seen, (B, H, S)), atol=1e-5)
        assert (found.weights[..., ~mask] == 0.0).all()


def _mean(v, mask):
    return mask @ v / np.maximum(mask.sum(-1, keepdims=True), 1)


def test_the_causal_kernel_of_pytorch_takes_any_length(rng):
    """Exported, and compiled whole: whether there are as many queries as keys is not a plain boolean there."""
    import torch

    class Attend(torch.nn.Module):
        def forward(self, q):
            return TORCH.lib.fused_attention(q, q, q, causal=True).output

    x = torch.randn(2, 2, 5, 4)
    length = {"q": {2: torch.export.Dim("T", min=2, max=64)}}
    exported = torch.export.export(Attend(), (x,), dynamic_shapes=length).module()
    layers = TORCH.make("Encoder", 1, BlockConfig(6, 2, 8), TORCH.lib.fused_attention).eval()
    compiled = torch.compile(lambda h: layers(h, causal=True).last_hidden, fullgraph=True, backend="eager")
    for n in (5, 7, 9):
        q, h = torch.randn(2, 2, n, 4), torch.randn(2, n, 6)
        torch.testing.assert_close(exported(q), TORCH.lib.attention(q, q, q, causal=True).output)
        torch.testing.assert_close(compiled(h), layers(h, mask=torch.from_numpy(causal_mask(n))).last_hidden)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_scale_is_that_of_the_queries(backend, rng, name):
    q, k, v, _ = problem(rng, H, None)
    function = backend.function(name)
    expected = backend.call(function, 3.0 * math.sqrt(D_K) * q, k, v).output
    assert_allclose(backend.call(function, q, k, v, scale=3.0).output, expected, **backend.tolerance)


def test_the_causal_kernel_of_pytorch_gets_no_mask():
    """Nothing that is computed on the way has T x T numbers, or T x S for the single query of a step."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Sizes(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.largest = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            for part in out if isinstance(out, (tuple, list)) else [out]:
                if isinstance(part, torch.Tensor):
                    self.largest = max(self.largest, part.numel())
            return out

    x = torch.randn(1, 2, 300, 8)
    for q in (x, x[:, :, -1:]):
        with Sizes() as sizes:
            TORCH.lib.fused_attention(q, x, x, causal=True)
        assert 0 < sizes.largest <= x.numel()
    with Sizes() as sizes:
        TORCH.lib.attention(x, x, x, causal=True)
    assert sizes.largest == 2 * 300 * 300  # the formula does


KINDS = {
    "rms": {"norm": "rms", "norm_eps": 1e-2},
    "gated": {"gated": True, "activation": "gelu"},
    "no biases": {"linear_bias": False},
    "wide heads": {"d_head": 6},
    "shared keys": {"n_kv_heads": 1},
    "scaled": {"scale": 1.0},
    "rotary": {"rotary_base": 100.0, "d_head": 6},
    "T5": {"norm": "rms", "gated": True, "linear_bias": False, "d_head": 4, "scale": 1.0, "pre_norm": True},
    "Llama": {"norm": "rms", "gated": True, "linear_bias": False, "n_kv_heads": 1, "d_head": 6, "pre_norm": True,
              "rotary_base": 50.0},
}  # fmt: skip
SEVERAL = ("T5", "Llama")  # between them they have each of the others


def block(kind):
    return BlockConfig(D_MODEL, 2, D_FF, **KINDS[kind])


def shapes(config, cross_attention):
    """The weights of a decoder layer, by hand."""
    d_head, n_kv_heads = config.d_head or 5, config.n_kv_heads or 2
    found = {}

    def linear(name, d_in, d_out):
        found[f"{name}.weight"] = (d_out, d_in)
        if config.linear_bias:
            found[f"{name}.bias"] = (d_out,)

    for name in ("self_attention", "cross_attention")[: 1 + cross_attention]:
        linear(f"{name}.q_proj", D_MODEL, 2 * d_head)
        linear(f"{name}.k_proj", D_MODEL, n_kv_heads * d_head)
        linear(f"{name}.v_proj", D_MODEL, n_kv_heads * d_head)
        linear(f"{name}.out_proj", 2 * d_head, D_MODEL)
    for i in (1, 2, 3) if cross_attention else (1, 3):
        found[f"norm{i}.weight"] = (D_MODEL,)
        if config.norm == "layer":
            found[f"norm{i}.bias"] = (D_MODEL,)
    for name in ("linear1", "gate")[: 1 + config.gated]:
        linear(f"feed_forward.{name}", D_MODEL, D_FF)
    linear("feed_forward.linear2", D_FF, D_MODEL)
    return found


def expected_layer(state, config, x, memory, bias):
    """A causal decoder layer, from the specification's pieces."""

    def norm(name, x):
        if config.norm == "layer":
            return specification.layer_norm(state, name, x, config.norm_eps)
        root = np.sqrt((x**2).mean(-1, keepdims=True) + config.norm_eps)
        return state[f"{name}.weight"] * x / root

    def heads(x):
        return x.reshape(*x.shape[:2], -1, config.d_head or 5).swapaxes(1, 2)

    def turned(x, base):
        angles = np.arange(x.shape[2])[:, None] * base ** (-np.arange(0, x.shape[3], 2) / x.shape[3])
        pairs = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angles)
        return np.stack([pairs.real, pairs.imag], -1).reshape(x.shape)

    def attend(name, x, memory, bias, causal):
        q, k, v = (heads(specification.linear(state, f"{name}.{p}_proj", y)) for p, y in
                   (("q", x), ("k", memory), ("v", memory)))  # fmt: skip
        if causal and config.rotary_base is not None:
            q, k = turned(q, config.rotary_base), turned(k, config.rotary_base)
        context = specification.attention(q, k, v, bias=bias, scale=config.scale, causal=causal)[0]
        return specification.linear(state, f"{name}.out_proj", context.swapaxes(1, 2).reshape(*x.shape[:2], -1))

    steps = [("norm1", lambda h: attend("self_attention", h, h, bias, True))]
    if memory is not None:
        steps.append(("norm2", lambda h: attend("cross_attention", h, memory, None, False)))
    steps.append(("norm3", lambda h: specification.feed_forward(state, "feed_forward.", h, config.activation)))
    for name, sublayer in steps:
        x = x + sublayer(norm(name, x)) if config.pre_norm else norm(name, x + sublayer(x))
    return x


@pytest.mark.parametrize(
    ("kind", "cross_attention"), [*((kind, True) for kind in KINDS), *((kind, False) for kind in SEVERAL)],
    ids=lambda value: {True: "with an encoder", False: "alone"}.get(value, value),
)  # fmt: skip
def test_a_decoder_layer_of_every_kind(backend, rng, kind, cross_attention):
    config = block(kind)
    state = states.random_state(shapes(config, cross_attention))
    layer = backend.make("DecoderLayer", config, cross_attention=cross_attention, state=state)
    x, bias = rng.normal(size=(B, T, D_MODEL)), rng.normal(size=(1, 2, T, T))
    memory = rng.normal(size=(B, S, D_MODEL)) if cross_attention else None
    found = backend.call(layer, x, memory=memory, bias=bias, causal=True).output
    assert_allclose(found, expected_layer(state, config, x, memory, bias), **backend.tolerance)


@pytest.mark.parametrize(
    ("kind", "attention"), [*((kind, "attention") for kind in KINDS), *((kind, "fused_attention") for kind in SEVERAL)]
)
def test_a_causal_encoder_is_a_decoder_alone(backend, rng, kind, attention):
    config, x = block(kind), rng.normal(size=(B, T, D_MODEL))
    encoder = backend.make("Encoder", 2, config, backend.function(attention))
    state = {}
    for name, value in backend.lib.get_state(encoder).items():
        name = name.replace(".attention.", ".self_attention.").replace("norm2", "norm3")
        state[name] = value
    decoder = backend.make("Decoder", 2, config, backend.function(attention), False, state=state)
    bias = rng.normal(size=(1, 2, T, T))
    expected = backend.call(encoder, x, bias=bias, causal=True)
    found = backend.call(decoder, x, bias=bias, causal=True, return_layers=True)
    assert_allclose(found.last_hidden, expected.last_hidden, **backend.tolerance)
    assert len(found.self_weights) == 2 and found.cross_weights is None


@pairwise(
    kind=list(KINDS),
    cross_attention=[pytest.param(True, id="with an encoder"), pytest.param(False, id="alone")],
    attention=FUNCTIONS,
)
def test_the_cache_gives_what_the_whole_gives(backend, rng, kind, cross_attention, attention):
    """In steps of one token and of several, under a bias for all places."""
    model = backend.make("Decoder", 2, block(kind), backend.function(attention), cross_attention)
    x, bias = rng.normal(size=(B, T, D_MODEL)), rng.normal(size=(1, 2, T, T))
    memory = rng.normal(size=(B, S, D_MODEL)) if cross_attention else None
    hidden = rng.random((B, 1, 1, S)) < 0.7 if cross_attention else None
    whole = backend.call(model, x, memory=memory, memory_mask=hidden, bias=bias, causal=True).last_hidden
    caches = model.start(None if memory is None else backend.tensor(memory), B)
    for first, last in ((0, 2), (2, 3), (3, 5)):
        part, caches = model.step(
            backend.tensor(x[:, first:last]),
            caches,
            memory_mask=None if hidden is None else backend.tensor(hidden),
            bias=backend.tensor(bias[:, :, first:last, :last]),
            causal=True,
        )
        assert_allclose(backend.array(part), whole[:, first:last], rtol=2e-4, atol=2e-5)
    n_kv_heads = KINDS[kind].get("n_kv_heads", 2)
    assert tuple(caches[0].keys.shape) == (B, n_kv_heads, T, KINDS[kind].get("d_head", 5))


@pytest.mark.parametrize("kind", ["rotary", "Llama"])
def test_keys_are_turned_once(backend, rng, kind, monkeypatch):
    """A step turns the keys of its own tokens; those of the cache are turned already."""
    attention = __import__(f"course_lib.{backend.name}.attention", fromlist=["rotate"])
    seen, rotate = [], attention.rotate
    monkeypatch.setattr(attention, "rotate", lambda x, *rest: seen.append(int(x.shape[2])) or rotate(x, *rest))
    model = backend.make("Decoder", 1, block(kind), cross_attention=False)
    caches, x = model.start(n_rows=B), backend.tensor(rng.normal(size=(B, 1, D_MODEL)))
    for _ in range(3):
        _, caches = model.step(x, caches)
    assert seen == [1] * 6  # queries and keys of three steps


def test_project_appends_to_what_it_returned_before(backend, rng):
    layer = backend.make("MultiHeadAttention", D_MODEL, 2, n_kv_heads=1, d_head=6, rotary_base=10.0)
    x = rng.normal(size=(B, T, D_MODEL))
    whole = backend.array(layer.project(backend.tensor(x), backend.tensor(x)))
    past = None
    for part in (x[:, :2], x[:, 2:]):
        past = layer.project(backend.tensor(part), backend.tensor(part), past)
    for ours, expected in zip(backend.array(past), whole, strict=True):
        assert ours.shape == (B, 1, T, 6)
        assert_allclose(ours, expected, **backend.tolerance)


def test_the_same_block_in_every_framework(rng):
    """One state, one output: the names of the weights are shared, too."""
    config, x = block("Llama"), rng.normal(size=(B, T, D_MODEL))
    reference = NUMPY.make("Encoder", 2, config)
    state = NUMPY.lib.get_state(reference)
    expected = NUMPY.call(reference, x, causal=True).last_hidden
    for backend in (TORCH, TENSORFLOW):
        model = backend.make("Encoder", 2, config, state=state)
        assert list(sorted(backend.lib.get_state(model))) == sorted(state)
        assert_allclose(backend.call(model, x, causal=True).last_hidden, expected, **backend.tolerance)


def test_rotary_as_a_wrapper_and_as_a_setting(backend, rng):
    """`rotary(attention)` of a whole sequence and `rotary_base` are one thing, bit for bit."""
    x = rng.normal(size=(B, T, D_MODEL))
    attention = backend.function("attention")
    set_ = backend.make("MultiHeadAttention", D_MODEL, 1, rotary_base=30.0)
    wrapped = backend.make("MultiHeadAttention", D_MODEL, 1, attention=backend.function("rotary")(attention, 30.0),
                           state=backend.lib.get_state(set_))  # fmt: skip
    assert_array_equal(
        backend.call(set_, x, x, x, causal=True).output, backend.call(wrapped, x, x, x, causal=True).output
    )


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({}, "qkvo"),
        ({"key_bias": False}, "qvo"),
        ({"qkv_bias": False, "key_bias": True}, "ko"),
        ({"qkv_bias": False}, "o"),
        ({"linear_bias": False, "key_bias": True}, "k"),
    ],
)
def test_each_projection_has_the_bias_that_is_said(backend, settings, expected):
    state = backend.lib.get_state(backend.make("MultiHeadAttention", 6, 3, **settings))
    assert {name[0] for name in state if name.endswith("bias")} == set(expected)
