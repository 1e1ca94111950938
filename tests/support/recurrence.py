"""What the recurrent models must compute, in plain loops: cells, both directions, scores, the decoder.

As in specification.py: NumPy arrays carry the numbers in and out, every sum is Python's, and the weights come as
{dotted name: array}. Sources: Elman 1990, Cho et al. 2014 (eqs. 5 to 8), Hochreiter and Schmidhuber 1997, Bahdanau et
al. 2015 (section 3 and appendix A.1.2), Luong et al. 2015 (section 3.1).
"""

import math

import numpy as np

from tests.support.specification import linear, softmax


def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x))


def cell(kind, state, name, x, old):
    """One step of one sequence: x [d_in], old states [[d_hidden], ...] -> new states; gates by their own rows."""
    weights = {key: state[f"{name}{key}"].tolist() for key in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
    h, n = old[0], len(old[0])

    def from_x(gate, unit):
        row = gate * n + unit
        return weights["bias_ih"][row] + sum(w * value for w, value in zip(weights["weight_ih"][row], x, strict=True))

    def from_h(gate, unit):
        row = gate * n + unit
        return weights["bias_hh"][row] + sum(w * value for w, value in zip(weights["weight_hh"][row], h, strict=True))

    new = [[0.0] * n for _ in old]
    for j in range(n):
        if kind == "rnn":
            new[0][j] = math.tanh(from_x(0, j) + from_h(0, j))
        elif kind == "gru":
            reset, update = sigmoid(from_x(0, j) + from_h(0, j)), sigmoid(from_x(1, j) + from_h(1, j))
            candidate = math.tanh(from_x(2, j) + reset * from_h(2, j))
            new[0][j] = (1.0 - update) * candidate + update * h[j]
        else:
            enter, forget, output = (sigmoid(from_x(gate, j) + from_h(gate, j)) for gate in (0, 1, 3))
            new[1][j] = forget * old[1][j] + enter * math.tanh(from_x(2, j) + from_h(2, j))
            new[0][j] = output * math.tanh(new[1][j])
    return new


def n_states(kind):
    return 2 if kind == "lstm" else 1


def one_way(kind, state, name, x, mask, start, backward=False):
    """x (B, T, d_in) -> outputs (B, T, d_hidden) and the last states; a place that is not real repeats the state."""
    n_batch, n_steps = x.shape[:2]
    d_hidden = state[f"{name}weight_hh"].shape[1]
    outputs = np.zeros((n_batch, n_steps, d_hidden))
    last = [np.zeros((n_batch, d_hidden)) for _ in range(n_states(kind))]
    for b in range(n_batch):
        now = [part[b].tolist() for part in start] if start is not None else [[0.0] * d_hidden for _ in last]
        for t in reversed(range(n_steps)) if backward else range(n_steps):
            if mask is None or mask[b, t]:
                now = cell(kind, state, name, x[b, t].tolist(), now)
            outputs[b, t] = now[0]
        for part, value in zip(last, now, strict=True):
            part[b] = value
    return outputs, tuple(last)


def network(kind, state, name, x, mask=None, start=None, bidirectional=False):
    """-> outputs (B, T, d) and states (B, d); with both directions, forward first, side by side."""
    if not bidirectional:
        return one_way(kind, state, f"{name}forward_cell.", x, mask, start)
    ahead = back = None
    if start is not None:
        half = start[0].shape[1] // 2
        ahead, back = [part[:, :half] for part in start], [part[:, half:] for part in start]
    there, last = one_way(kind, state, f"{name}forward_cell.", x, mask, ahead)
    here, first = one_way(kind, state, f"{name}backward_cell.", x, mask, back, backward=True)
    states = tuple(np.concatenate(pair, axis=-1) for pair in zip(last, first, strict=True))
    return np.concatenate([there, here], axis=-1), states


def score(kind, state, name, s, h):
    """One state [d_query] and one annotation [d_key] -> a number."""
    if kind == "dot":
        return sum(a * b for a, b in zip(s, h, strict=True))
    if kind == "general":
        weight = state[f"{name}weight"].tolist()
        return sum(s[i] * weight[i][j] * h[j] for i in range(len(s)) for j in range(len(h)))
    by_s, by_h, vector = (state[f"{name}{key}"].tolist() for key in ("weight_query", "weight_key", "vector"))
    total = 0.0
    for unit, v in enumerate(vector):
        inside = sum(w * value for w, value in zip(by_s[unit], s, strict=True))
        inside += sum(w * value for w, value in zip(by_h[unit], h, strict=True))
        total += v * math.tanh(inside)
    return total


def scores(kind, state, name, query, keys):
    """query (B, T, d_query), keys (B, S, d_key) -> (B, T, S)."""
    out = np.zeros((query.shape[0], query.shape[1], keys.shape[1]))
    for b, t, s in np.ndindex(*out.shape):
        out[b, t, s] = score(kind, state, name, query[b, t].tolist(), keys[b, s].tolist())
    return out


def translation(state, source, target, kind, how, order, pad_id=0):
    """Teacher forcing, one sentence pair and one step at a time -> logits (B, T, V), weights (B, T, S) or None."""
    real = source != pad_id
    annotations, last = network(kind, state, "encoder.", state["source_embedding.weight"][source], real, None, True)
    summary, d_hidden = last[0], last[0].shape[1]
    n_batch, n_steps = target.shape
    logits = np.zeros((n_batch, n_steps, len(state["out_proj.bias"])))
    weights = np.zeros((n_batch, n_steps, source.shape[1]))
    for b in range(n_batch):
        first = [math.tanh(value) for value in linear(state, "bridge", summary[b]).tolist()]
        now = [first[k * d_hidden : (k + 1) * d_hidden] for k in range(n_states(kind))]

        def context(s, b=b):
            if how is None:
                return summary[b].tolist(), [0.0] * source.shape[1]
            row = [score(how, state, "score.", s, annotation.tolist()) for annotation in annotations[b]]
            a = softmax(row, real[b].tolist())
            return [sum(a[s] * annotations[b, s, j] for s in range(len(a))) for j in range(d_hidden)], a

        for t in range(n_steps):
            y = state["target_embedding.weight"][target[b, t]].tolist()
            if order == "bahdanau":
                c, a = context(now[0])
                now = cell(kind, state, "cell.", y + c, now)
            else:
                now = cell(kind, state, "cell.", y, now)
                c, a = context(now[0])
            inner = [math.tanh(value) for value in linear(state, "readout", np.array(now[0] + y + c)).tolist()]
            logits[b, t] = linear(state, "out_proj", np.array(inner))
            weights[b, t] = a
    return logits, None if how is None else weights
