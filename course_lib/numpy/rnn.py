"""Recurrent cells, written out, and the network that runs one along a sequence, in one direction or in both."""

import numpy as np

from course_lib.checks import check_choice, check_recurrence, check_state, check_step
from course_lib.models.blocks import RNNOutput
from course_lib.numpy.layers import Module, sigmoid


class Cell(Module):
    """What the cells share: four weights in PyTorch's layout, and a step made of two products and their combination.

    The product with the input does not wait for the state, so a caller may compute it for all steps at once.
    Fresh weights are uniform within 1 / sqrt(d_hidden), as PyTorch's.

    Parameters
    ----------
    d_in : features of the input
    d_hidden : features of the output, and of each array of the state
    """

    n_gates, n_states = 1, 1

    def __init__(self, d_in: int, d_hidden: int):
        self.d_in, self.d_hidden = d_in, d_hidden
        bound = d_hidden**-0.5
        self.weight_ih = np.random.uniform(-bound, bound, (self.n_gates * d_hidden, d_in))
        self.weight_hh = np.random.uniform(-bound, bound, (self.n_gates * d_hidden, d_hidden))
        self.bias_ih = np.random.uniform(-bound, bound, self.n_gates * d_hidden)
        self.bias_hh = np.random.uniform(-bound, bound, self.n_gates * d_hidden)

    def __call__(self, x, state):
        """One step: x (B, d_in) and a tuple of states (B, d_hidden) -> the next states, the first is the output h."""
        check_step(x.shape, self.d_in)
        check_state(state, self.n_states, x.shape[0], self.d_hidden)
        return self.combine(self.project(x), self.recur(state[0]), state)

    def project(self, x):
        """W_ih x + b_ih: (..., d_in) -> (..., n_gates d_hidden)."""
        return x @ self.weight_ih.T + self.bias_ih

    def recur(self, h):
        """W_hh h + b_hh: (B, d_hidden) -> (B, n_gates d_hidden)."""
        return h @ self.weight_hh.T + self.bias_hh

    def combine(self, projected, recurred, state):
        """The two products (B, n_gates d_hidden) and the states (B, d_hidden) -> the next states."""
        raise NotImplementedError

    def initial_state(self, x):
        """Zeros (B, d_hidden), one for each state, for the B rows of x."""
        return tuple(np.zeros((x.shape[0], self.d_hidden)) for _ in range(self.n_states))


class RNNCell(Cell):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh): the simple recurrent network (Elman 1990, figure 2).

    Parameters, weights and call as for `Cell`: x (B, d_in) and (h,) -> (h',).
    """

    def combine(self, projected, recurred, state):
        return (np.tanh(projected + recurred),)


class GRUCell(Cell):
    """The gated recurrent unit (Cho et al. 2014, eqs. 5 to 8): two gates, for what of h is used and what is kept:

        r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)
        z = sigmoid(W_iz x + b_iz + W_hz h + b_hz)
        n = tanh(W_in x + b_in + r * (W_hn h + b_hn))
        h' = (1 - z) * n + z * h

    The reset gate acts after the product with W_hn, as in PyTorch and in Keras's `reset_after=True`; the paper
    multiplies h by it before. The rows of the weights stand in the order r, z, n.

    Parameters, weights and call as for `Cell`: x (B, d_in) and (h,) -> (h',).
    """

    n_gates = 3

    def combine(self, projected, recurred, state):
        (h,) = state
        r_x, z_x, n_x = np.split(projected, 3, axis=-1)
        r_h, z_h, n_h = np.split(recurred, 3, axis=-1)
        r = sigmoid(r_x + r_h)
        z = sigmoid(z_x + z_h)
        n = np.tanh(n_x + r * n_h)
        return ((1.0 - z) * n + z * h,)


class LSTMCell(Cell):
    """Long short-term memory (Hochreiter and Schmidhuber 1997, section 4): a memory c that changes by addition:

        i = sigmoid(W_ii x + b_ii + W_hi h + b_hi)
        f = sigmoid(W_if x + b_if + W_hf h + b_hf)
        g = tanh(W_ig x + b_ig + W_hg h + b_hg)
        o = sigmoid(W_io x + b_io + W_ho h + b_ho)
        c' = f * c + i * g
        h' = o * tanh(c')

    The forget gate f is that of Gers et al. 2000; the paper has f = 1. The rows of the weights stand in the order
    i, f, g, o.

    Parameters, weights and call as for `Cell`: x (B, d_in) and (h, c) -> (h', c').
    """

    n_gates, n_states = 4, 2

    def combine(self, projected, recurred, state):
        _, c = state
        i, f, g, o = np.split(projected + recurred, 4, axis=-1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c


CELLS = {"rnn": RNNCell, "gru": GRUCell, "lstm": LSTMCell}


def run_unrolled(cell, x, mask=None, state=None):
    """Run a cell along a sequence, step by step: the definition.

    Parameters
    ----------
    cell : an `RNNCell`, a `GRUCell` or an `LSTMCell`
    x : inputs, shape (B, T, d_in)
    mask : boolean (B, T), True = a real token; a step at padding keeps the state. None: all are real
    state : tuple of (B, d_hidden) before the first step; zeros when None

    Returns
    -------
    RNNOutput : outputs (B, T, d_hidden), the h after each step, and the state after the last one.

    Raises
    ------
    ValueError : wrong shapes, or no step at all.
    TypeError : a mask that is not boolean, a state that is no tuple.
    """
    x, mask, state = _checked(cell, x, mask, state)
    outputs = []
    for t in range(x.shape[1]):
        new = cell(x[:, t], state)
        state = new if mask is None else _where(mask[:, t], new, state)
        outputs.append(state[0])
    return RNNOutput(np.stack(outputs, axis=1), state)


def run_fused(cell, x, mask=None, state=None):
    """The same numbers as `run_unrolled`, with the product of the inputs computed once for all the steps.

    Parameters, errors and output as for `run_unrolled`: x (B, T, d_in) -> outputs (B, T, d_hidden), state.
    """
    x, mask, state = _checked(cell, x, mask, state)
    projected = cell.project(x)  # (B, T, n_gates d_hidden)
    outputs = np.empty((*x.shape[:2], cell.d_hidden))
    for t in range(x.shape[1]):
        new = cell.combine(projected[:, t], cell.recur(state[0]), state)
        state = new if mask is None else _where(mask[:, t], new, state)
        outputs[:, t] = state[0]
    return RNNOutput(outputs, state)


def _checked(cell, x, mask, state):
    x = np.asarray(x)
    if mask is None:
        check_recurrence(x.shape, cell.d_in)
    else:
        mask = np.asarray(mask)
        check_recurrence(x.shape, cell.d_in, mask.shape, mask.dtype)
    if state is None:
        return x, mask, cell.initial_state(x)
    check_state(state, cell.n_states, x.shape[0], cell.d_hidden)
    return x, mask, tuple(state)


def _where(real, new, old):
    return tuple(np.where(real[:, None], a, b) for a, b in zip(new, old, strict=True))


class RNN(Module):
    """A cell along a sequence; bidirectional, a second cell from its end to its beginning.

    Bidirectional outputs are [forward, backward] (Bahdanau et al. 2015, section 3.2): each holds its token with
    all that stands before it and all that comes after it.

    Parameters
    ----------
    d_in : features of the inputs
    d_hidden : features of each direction's output
    cell : "rnn", "gru" or "lstm"
    bidirectional : whether a second cell reads backwards
    run : what runs a cell along a sequence, `run_unrolled` or `run_fused`

    Raises
    ------
    ValueError : an unknown cell.
    """

    def __init__(self, d_in: int, d_hidden: int, cell: str = "gru", bidirectional: bool = False, run=run_unrolled):
        check_choice("cell", cell, CELLS)
        self.d_in, self.d_hidden, self.run = d_in, d_hidden, run
        self.forward_cell = CELLS[cell](d_in, d_hidden)
        self.backward_cell = CELLS[cell](d_in, d_hidden) if bidirectional else None

    def __call__(self, x, mask=None, state=None):
        """Read a batch of sequences.

        Parameters
        ----------
        x : shape (B, T, d_in)
        mask : boolean (B, T), True = a real token; padding changes nothing, wherever it stands
        state : tuple of (B, d_hidden), bidirectional (B, 2 d_hidden), to start from; zeros when None

        Returns
        -------
        RNNOutput : outputs (B, T, d_hidden) and state, tuple of (B, d_hidden); bidirectional, 2 d_hidden of each.

        Raises
        ------
        ValueError, TypeError : as for `run_unrolled`.
        """
        if self.backward_cell is None:
            return self.run(self.forward_cell, x, mask, state)
        ahead, back = None, None
        if state is not None:
            check_state(state, self.forward_cell.n_states, x.shape[0], 2 * self.d_hidden)
            ahead, back = zip(*(np.split(part, 2, axis=-1) for part in state), strict=True)
        outputs, last = self.run(self.forward_cell, x, mask, ahead)
        # padding keeps the state, so a sequence turned round may begin with it
        turned = None if mask is None else np.asarray(mask)[:, ::-1]
        backward, first = self.run(self.backward_cell, x[:, ::-1], turned, back)
        both = tuple(np.concatenate(pair, axis=-1) for pair in zip(last, first, strict=True))
        return RNNOutput(np.concatenate([outputs, backward[:, ::-1]], axis=-1), both)
