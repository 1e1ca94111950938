"""Cells and recurrent networks: against loops, torch.nn and keras.layers; masks, directions, both ways to run."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import torch
from numpy.testing import assert_allclose
from test_gradients import compare

from tests.support import recurrence, states
from tests.support.backends import NUMPY, TENSORFLOW, TORCH, cotangent
from tests.support.pairwise import pairwise

B, T, D_IN, D = 3, 5, 4, 6
EVERY_KIND, EVERY_RUN = ["rnn", "gru", "lstm"], ["run_unrolled", "run_fused"]
EVERY_DIRECTION = [pytest.param(False, id="one way"), pytest.param(True, id="both ways")]
WITH_A_MASK_AND_WITHOUT = [pytest.param(False, id="no mask"), pytest.param(True, id="mask")]
KINDS = pytest.mark.parametrize("kind", EVERY_KIND)
DIRECTIONS = pytest.mark.parametrize("bidirectional", EVERY_DIRECTION)
RUNS = pytest.mark.parametrize("run", EVERY_RUN)
PAIRS = pairwise(kind=EVERY_KIND, bidirectional=EVERY_DIRECTION, run=EVERY_RUN)
CELLS = {"rnn": "RNNCell", "gru": "GRUCell", "lstm": "LSTMCell"}
N_STATES = {"rnn": 1, "gru": 1, "lstm": 2}


def some_state(rng, kind, d=D):
    return tuple(rng.normal(size=(B, d)) for _ in range(N_STATES[kind]))


def tensors(backend, state):
    return tuple(map(backend.tensor, state))


def scattered_mask():
    """Padding at the end, at the beginning, in the middle; no row is all real."""
    return np.array([[1, 1, 0, 0, 0], [0, 0, 1, 1, 1], [1, 0, 1, 0, 1]], dtype=bool)


def build(backend, kind, bidirectional=False, run="run_unrolled", seed=0):
    state = states.random_state(states.rnn(kind, D_IN, D, bidirectional), seed)
    return backend.make("RNN", D_IN, D, kind, bidirectional, run=backend.function(run), state=state), state


def close(output, expected, tolerance):
    """An RNNOutput against (outputs, states)."""
    assert_allclose(output.outputs, expected[0], **tolerance)
    assert len(output.state) == len(expected[1])
    for ours, theirs in zip(output.state, expected[1], strict=True):
        assert_allclose(ours, theirs, **tolerance)


@KINDS
def test_one_step(backend, rng, kind):
    x, old = rng.normal(size=(B, D_IN)), some_state(rng, kind)
    state = states.random_state(states.cell(kind, D_IN, D), scale=0.8)
    cell = backend.make(CELLS[kind], D_IN, D, state=state)
    new = backend.array(cell(backend.tensor(x), tensors(backend, old)))
    assert isinstance(new, tuple) and len(new) == N_STATES[kind]
    for b in range(B):
        expected = recurrence.cell(kind, state, "", x[b].tolist(), [part[b].tolist() for part in old])
        for ours, theirs in zip(new, expected, strict=True):
            assert_allclose(ours[b], theirs, **backend.tolerance)


@KINDS
def test_one_step_is_that_of_torch(backend, rng, kind):
    x, old = rng.normal(size=(B, D_IN)), some_state(rng, kind)
    state = states.random_state(states.cell(kind, D_IN, D), scale=0.8)
    theirs = getattr(torch.nn, CELLS[kind])(D_IN, D, dtype=torch.float64)
    theirs.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})
    before = tuple(map(torch.from_numpy, old))
    expected = theirs(torch.from_numpy(x), before if kind == "lstm" else before[0])
    expected = expected if kind == "lstm" else (expected,)
    cell = backend.make(CELLS[kind], D_IN, D, state=state)
    for ours, value in zip(cell(backend.tensor(x), tensors(backend, old)), expected, strict=True):
        assert_allclose(backend.array(ours), value.detach(), **backend.tolerance)


@pairwise(
    kind=EVERY_KIND,
    started=[pytest.param(False, id="from zeros"), pytest.param(True, id="from a state")],
    masked=WITH_A_MASK_AND_WITHOUT,
    bidirectional=EVERY_DIRECTION,
    run=EVERY_RUN,
)
def test_network(backend, rng, kind, started, masked, bidirectional, run):
    x, mask = rng.normal(size=(B, T, D_IN)), scattered_mask() if masked else None
    start = some_state(rng, kind, 2 * D if bidirectional else D) if started else None
    network, state = build(backend, kind, bidirectional, run)
    given = None if start is None else tensors(backend, start)
    output = backend.call(network, x, mask=mask, state=given)
    assert output._fields == ("outputs", "state")
    close(output, recurrence.network(kind, state, "", x, mask, start, bidirectional), backend.tolerance)


TORCH_NAMES = {
    "weight_ih": "weight_ih_l0",
    "weight_hh": "weight_hh_l0",
    "bias_ih": "bias_ih_l0",
    "bias_hh": "bias_hh_l0",
}


def torch_network(kind, state, bidirectional):
    """nn.RNN, nn.GRU or nn.LSTM with our weights, after renaming."""
    theirs = {"rnn": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}[kind](
        D_IN, D, batch_first=True, bidirectional=bidirectional, dtype=torch.float64
    )
    renamed = {}
    for name, value in state.items():
        side, key = name.split(".")
        renamed[TORCH_NAMES[key] + ("_reverse" if side == "backward_cell" else "")] = torch.from_numpy(value)
    theirs.load_state_dict(renamed)
    return theirs


@PAIRS
def test_network_and_gradients_are_those_of_torch(backend, rng, kind, bidirectional, run):
    x = rng.normal(size=(B, T, D_IN))
    network, state = build(backend, kind, bidirectional, run)
    theirs = torch_network(kind, state, bidirectional)
    inputs = torch.from_numpy(x).requires_grad_()
    expected, last = theirs(inputs)
    last = last if kind == "lstm" else (last,)
    expected_states = tuple(torch.cat(tuple(part), dim=-1).detach() for part in last)  # (directions, B, D) -> (B, ...)
    close(backend.call(network, x), (expected.detach(), expected_states), backend.tolerance)
    if not backend.has_training:
        return
    (expected * torch.from_numpy(cotangent(tuple(expected.shape)))).sum().backward()
    by_input, by_weight = backend.gradients(network, x)
    assert_allclose(by_input[0], inputs.grad, rtol=1e-4, atol=1e-5)
    for name, gradient in by_weight.items():
        side, key = name.split(".")
        value = getattr(theirs, TORCH_NAMES[key] + ("_reverse" if side == "backward_cell" else "")).grad
        assert_allclose(gradient, value, rtol=1e-4, atol=2e-5, err_msg=name)


def keras_weights(kind, state, name):
    """Our weights of one cell in Keras's layout: (d_in, G d_hidden), gates of the GRU as z, r, n.

    Keras's GRU with reset_after=True holds both biases, one row each; its LSTM (i, f, g, o as ours) and its simple
    network hold one, which is the sum of ours.
    """
    order = [1, 0, 2] if kind == "gru" else list(range(states.GATES[kind]))

    def arranged(value):
        parts = np.split(value, states.GATES[kind])
        return np.concatenate([parts[gate] for gate in order])

    by_input, by_state = (arranged(state[f"{name}{key}"]).T for key in ("weight_ih", "weight_hh"))
    biases = [arranged(state[f"{name}{key}"]) for key in ("bias_ih", "bias_hh")]
    return [by_input, by_state, np.stack(biases) if kind == "gru" else biases[0] + biases[1]]


@PAIRS
def test_network_is_that_of_keras(backend, rng, kind, bidirectional, run):
    """With padding at the end, which Keras's layers skip as ours do."""
    x = rng.normal(size=(B, T, D_IN)).astype(np.float32)
    mask = np.arange(T) < np.array([T, 3, 1])[:, None]
    network, state = build(backend, kind, bidirectional, run)
    make = {"rnn": keras.layers.SimpleRNN, "gru": keras.layers.GRU, "lstm": keras.layers.LSTM}[kind]
    expected, last = [], []
    for side in ("forward_cell.", "backward_cell.")[: 2 if bidirectional else 1]:
        layer = make(D, return_sequences=True, return_state=True, go_backwards=side == "backward_cell.")
        layer.build(x.shape)
        layer.set_weights(keras_weights(kind, state, side))
        outputs, *final = layer(x, mask=mask)
        expected.append(outputs.numpy()[:, ::-1] if side == "backward_cell." else outputs.numpy())
        last.append([part.numpy() for part in final])
    output = backend.call(network, x, mask=mask)
    tolerance = {"rtol": 1e-4, "atol": 1e-5}
    for b in range(B):  # at padding Keras gives zeros when it reads backwards
        real = mask[b]
        theirs = np.concatenate([outputs[b] for outputs in expected], axis=-1)
        assert_allclose(output.outputs[b][real], theirs[real], **tolerance)
    for ours, theirs in zip(output.state, zip(*last, strict=True), strict=True):
        assert_allclose(ours, np.concatenate(theirs, axis=-1), **tolerance)


@PAIRS
def test_a_padded_batch_equals_its_sequences_one_by_one(backend, rng, kind, bidirectional, run):
    network, _ = build(backend, kind, bidirectional, run)
    lengths = (T, 2, 4)
    x = rng.normal(size=(B, T, D_IN))
    mask = np.arange(T) < np.array(lengths)[:, None]
    x[~mask] = 1e3  # whatever stands at padding
    batch = backend.call(network, x, mask=mask)
    for b, length in enumerate(lengths):
        alone = backend.call(network, x[b : b + 1, :length])
        assert_allclose(batch.outputs[b, :length], alone.outputs[0], **backend.tolerance)
        for ours, theirs in zip(batch.state, alone.state, strict=True):
            assert_allclose(ours[b], theirs[0], **backend.tolerance)


@RUNS
@KINDS
def test_padding_anywhere_is_skipped(backend, rng, kind, run):
    """A sequence with holes is the sequence without them; at a hole the output is the one before it."""
    network, _ = build(backend, kind, run=run)
    x, mask = rng.normal(size=(B, T, D_IN)), scattered_mask()
    holes = backend.call(network, x, mask=mask)
    for b in range(B):
        alone = backend.call(network, x[b : b + 1, mask[b]])
        assert_allclose(holes.outputs[b, mask[b]], alone.outputs[0], **backend.tolerance)
        before = np.zeros(D)
        for t in range(T):
            if not mask[b, t]:
                assert_allclose(holes.outputs[b, t], before, **backend.tolerance)
            before = holes.outputs[b, t]


@PAIRS
def test_a_sequence_of_padding_alone_keeps_the_state_it_started_from(backend, rng, kind, bidirectional, run):
    network, _ = build(backend, kind, bidirectional, run)
    start = some_state(rng, kind, 2 * D if bidirectional else D)
    mask = np.array([[True] * T, [False] * T, [True] * T])
    output = backend.call(network, rng.normal(size=(B, T, D_IN)), mask=mask, state=tensors(backend, start))
    assert_allclose(output.outputs[1], np.broadcast_to(start[0][1], output.outputs[1].shape), **backend.tolerance)
    for ours, before in zip(output.state, start, strict=True):
        assert_allclose(ours[1], before[1], **backend.tolerance)
        assert np.abs(ours[0] - before[0]).max() > 0.01


@RUNS
@KINDS
def test_a_state_carries_on(backend, rng, kind, run):
    """Two halves, the second from the state of the first, are the whole."""
    network, _ = build(backend, kind, run=run)
    x = rng.normal(size=(B, T, D_IN))
    whole = backend.call(network, x)
    first = backend.call(network, x[:, :2])
    second = backend.call(network, x[:, 2:], state=tensors(backend, first.state))
    close(second, (whole.outputs[:, 2:], whole.state), backend.tolerance)
    assert_allclose(first.outputs, whole.outputs[:, :2], **backend.tolerance)


@RUNS
@KINDS
def test_time_runs_one_way_or_both(backend, rng, kind, run):
    x = rng.normal(size=(B, T, D_IN))
    changed = x.copy()
    changed[:, 3] += 1.0
    one, both = (build(backend, kind, bidirectional, run)[0] for bidirectional in (False, True))
    moved = [np.abs(backend.call(n, changed).outputs - backend.call(n, x).outputs) for n in (one, both)]
    assert moved[0][:, :3].max() < 1e-6 and moved[0][:, 3:].max(axis=-1).min() > 1e-4
    assert moved[1][:, :3, :D].max() < 1e-6 and moved[1][:, 3:, :D].max(axis=-1).min() > 1e-4
    assert moved[1][:, 4:, D:].max() < 1e-6 and moved[1][:, :4, D:].max(axis=-1).min() > 1e-4


@KINDS
def test_gradients_of_a_step(rng, kind):
    state = states.random_state(states.cell(kind, D_IN, D))
    x, old = rng.normal(size=(B, D_IN)), some_state(rng, kind)
    results = {}
    for backend in (NUMPY, TORCH, TENSORFLOW):
        cell = backend.make(CELLS[kind], D_IN, D, state=state)
        results[backend] = backend.gradients(lambda x, *old, cell=cell: cell(x, old), x, *old)
    compare(results)
    assert all(np.abs(gradient).max() > 0.01 for gradient in results[TORCH][0])


@pairwise(kind=EVERY_KIND, masked=WITH_A_MASK_AND_WITHOUT, bidirectional=EVERY_DIRECTION, run=EVERY_RUN)
def test_gradients(rng, kind, masked, bidirectional, run):
    state = states.random_state(states.rnn(kind, D_IN, D, bidirectional))
    x, mask = rng.normal(size=(B, T, D_IN)), scattered_mask() if masked else None
    results = {}
    for backend in (NUMPY, TORCH, TENSORFLOW):
        network = backend.make("RNN", D_IN, D, kind, bidirectional, run=backend.function(run), state=state)
        results[backend] = backend.gradients(network, x, mask=backend.tensor(mask))
    compare(results)
    if masked:
        assert_allclose(results[TORCH][0][0][~mask], 0.0, atol=1e-7)  # padding gets no gradient
    assert min(np.abs(gradient).max() for gradient in results[TORCH][1].values()) > 0.01


@pairwise(kind=EVERY_KIND, masked=WITH_A_MASK_AND_WITHOUT, run=EVERY_RUN)
def test_gradients_by_and_through_the_states(rng, kind, masked, run):
    """What a decoder needs: the start of one network is the end of another, of which every state counts."""
    state = states.random_state(states.rnn(kind, D_IN, D))
    x, start, mask = rng.normal(size=(B, T, D_IN)), some_state(rng, kind), scattered_mask() if masked else None
    results = {}
    for backend in (NUMPY, TORCH, TENSORFLOW):
        network = backend.make("RNN", D_IN, D, kind, run=backend.function(run), state=state)

        def last_state(x, *start, network=network, backend=backend):
            return network(x, mask=backend.tensor(mask), state=start).state[-1]

        results[backend] = backend.gradients(last_state, x, *start)
    compare(results)
    assert all(np.abs(gradient).max() > 0.001 for gradient in results[TORCH][0])


@DIRECTIONS
@KINDS
def test_state_round_trip(backend, kind, bidirectional):
    network, state = build(backend, kind, bidirectional)
    found = backend.lib.get_state(network)
    assert found.keys() == state.keys() == states.rnn(kind, D_IN, D, bidirectional).keys()
    for name, value in state.items():
        assert_allclose(found[name], value, rtol=1e-6)


@KINDS
def test_fresh_weights_are_uniform_within_the_bound_of_torch(backend, kind):
    fresh = backend.lib.get_state(backend.make(CELLS[kind], 30, 40))
    assert {name: value.shape for name, value in fresh.items()} == states.cell(kind, 30, 40)
    for name, value in fresh.items():
        assert 0.8 * 40**-0.5 < np.abs(value).max() <= 40**-0.5, name
    assert_allclose(fresh["weight_hh"].std(), (3 * 40) ** -0.5, rtol=0.1)  # that of a uniform distribution


@pairwise(
    kind=EVERY_KIND,
    bidirectional=EVERY_DIRECTION,
    jit=[pytest.param(False, id="graph"), pytest.param(True, id="XLA")],
    run=EVERY_RUN,
)
def test_tensorflow_compiled_for_any_length(rng, kind, bidirectional, jit, run):
    network, state = build(TENSORFLOW, kind, bidirectional, run)
    traces = []

    @tf.function(
        input_signature=[tf.TensorSpec((None, None, D_IN)), tf.TensorSpec((None, None), tf.bool)],
        autograph=False,
        jit_compile=jit,
    )
    def compiled(x, mask):
        traces.append(x.shape)
        with tf.GradientTape() as tape:
            tape.watch(x)
            output = network(x, mask=mask)
            loss = tf.reduce_sum(output.outputs**2) + tf.reduce_sum(output.state[-1])
        return output, tape.gradient(loss, [x, network.forward_cell.weight_hh.value])

    for length in (T, 3):
        x, mask = rng.normal(size=(B, length, D_IN)), scattered_mask()[:, :length]
        output, slopes = compiled(tf.constant(x, tf.float32), tf.constant(mask))
        close(TENSORFLOW.array(output), recurrence.network(kind, state, "", x, mask, None, bidirectional),
              {"rtol": 1e-4, "atol": 1e-5})  # fmt: skip
        inputs = torch.tensor(x, dtype=torch.float32, requires_grad=True)
        same, _ = build(TORCH, kind, bidirectional)
        expected = same(inputs, torch.from_numpy(mask))
        ((expected.outputs**2).sum() + expected.state[-1].sum()).backward()
        assert_allclose(slopes[0], inputs.grad, rtol=1e-3, atol=1e-4)
        assert_allclose(slopes[1], same.forward_cell.weight_hh.grad, rtol=1e-3, atol=1e-4)
    assert len(traces) == 1  # one graph serves every length
