"""What the models must compute, a number at a time: plain loops written from the papers, with no library code.

NumPy arrays only carry the numbers in and out; every sum, product and exponential is Python's. A weight
matrix is (d_out, d_in), and a state is {dotted name: array}. Sources: Vaswani et al. 2017 (sections 3.1 to
3.5), Ba et al. 2016 (eq. 4), Hendrycks and Gimpel 2016 (section 2), Devlin et al. 2018 (section 3).
"""

import math

import numpy as np


def softmax(scores, allowed):
    """One row: scores [S] -> weights [S]; a place that is not allowed gets 0, and so does a row without any."""
    if not any(allowed):
        return [0.0] * len(scores)
    highest = max(score for score, ok in zip(scores, allowed, strict=True) if ok)
    powers = [math.exp(score - highest) if ok else 0.0 for score, ok in zip(scores, allowed, strict=True)]
    total = sum(powers)
    return [power / total for power in powers]


def attention(q, k, v, mask=None, bias=None, scale=None, causal=False):
    """q (..., T, d_k), k (..., S, d_k), v (..., S, d_v) -> context (..., T, d_v), weights (..., T, S).

    With n times as many heads (axis -3) in q, its head h reads head h // n of k and v.
    """
    *lead, n_queries, d_k = q.shape
    n_keys, d_v = v.shape[-2:]
    mask = np.broadcast_to(True if mask is None else mask, (*lead, n_queries, n_keys))
    bias = np.broadcast_to(0.0 if bias is None else bias, (*lead, n_queries, n_keys))
    scale = 1.0 / math.sqrt(d_k) if scale is None else scale
    context, weights = np.zeros((*lead, n_queries, d_v)), np.zeros((*lead, n_queries, n_keys))
    for place in np.ndindex(*lead):
        read = (*place[:-1], place[-1] // (lead[-1] // k.shape[-3])) if place else ()
        for t in range(n_queries):
            scores = []
            for s in range(n_keys):
                product = sum(float(q[place][t, i]) * float(k[read][s, i]) for i in range(d_k))
                scores.append(product * scale + float(bias[place][t, s]))
            last = t + n_keys - n_queries if causal else n_keys  # the queries are the last of the keys
            row = softmax(scores, [bool(mask[place][t, s]) and s <= last for s in range(n_keys)])
            for s in range(n_keys):
                weights[place][t, s] = row[s]
            for j in range(d_v):
                context[place][t, j] = sum(row[s] * float(v[read][s, j]) for s in range(n_keys))
    return context, weights


def linear(state, name, x):
    """x (..., d_in) -> W x + b (..., d_out)."""
    weight = state[f"{name}.weight"].tolist()
    bias = state.get(f"{name}.bias", np.zeros(len(weight))).tolist()
    out = np.zeros((*x.shape[:-1], len(weight)))
    for place in np.ndindex(*x.shape[:-1]):
        vector = x[place].tolist()
        for o, row in enumerate(weight):
            out[place][o] = bias[o] + sum(a * b for a, b in zip(row, vector, strict=True))
    return out


def layer_norm(state, name, x, eps):
    """x (..., d) -> gain * (x - mean) / sqrt(variance + eps) + bias, over the last axis."""
    gain, bias = state[f"{name}.weight"].tolist(), state[f"{name}.bias"].tolist()
    out = np.zeros(x.shape)
    for place in np.ndindex(*x.shape[:-1]):
        vector = x[place].tolist()
        mean = sum(vector) / len(vector)
        variance = sum((value - mean) ** 2 for value in vector) / len(vector)
        for i, value in enumerate(vector):
            out[place][i] = gain[i] * (value - mean) / math.sqrt(variance + eps) + bias[i]
    return out


def gelu(x):
    """x times the probability that a standard normal variable lies below x."""
    return x * 0.5 * math.erfc(-x / math.sqrt(2.0))


def relu(x):
    return x if x > 0.0 else 0.0


def gelu_new(x):
    """`gelu` with the probability approximated by a tanh of a cubic."""
    return 0.5 * x * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))


def silu(x):
    return x / (1.0 + math.exp(-x))


ACTIVATIONS = {"relu": relu, "gelu": gelu, "gelu_new": gelu_new, "silu": silu}


def each(function, x):
    """A function of one number at every place of an array."""
    out = np.zeros(x.shape)
    for place in np.ndindex(*x.shape):
        out[place] = function(float(x[place]))
    return out


def multi_head_attention(state, name, q, k, v, mask, n_heads):
    """q (B, T, d_model), k and v (B, S, d_model) -> output (B, T, d_model), weights (B, H, T, S)."""
    n_batch, n_queries, d_model = q.shape
    n_keys, d_head = k.shape[1], d_model // n_heads
    mask = np.broadcast_to(True if mask is None else mask, (n_batch, n_heads, n_queries, n_keys))
    q, k, v = (linear(state, f"{name}{p}_proj", x) for p, x in (("q", q), ("k", k), ("v", v)))
    merged = np.zeros((n_batch, n_queries, d_model))
    weights = np.zeros((n_batch, n_heads, n_queries, n_keys))
    for b in range(n_batch):
        for h in range(n_heads):
            part = slice(h * d_head, (h + 1) * d_head)  # head h owns these features
            context, rows = attention(q[b, :, part], k[b, :, part], v[b, :, part], mask[b, h])
            merged[b, :, part] = context
            weights[b, h] = rows
    return linear(state, f"{name}out_proj", merged), weights


def feed_forward(state, name, x, activation):
    hidden = each(ACTIVATIONS[activation], linear(state, f"{name}linear1", x))
    if f"{name}gate.weight" in state:
        hidden = hidden * linear(state, f"{name}gate", x)
    return linear(state, f"{name}linear2", hidden)


def encoder_layer(state, name, x, mask, n_heads, activation="relu", pre_norm=False, eps=1e-5):
    """x (B, T, d_model) -> output (B, T, d_model), weights (B, H, T, T)."""
    before = layer_norm(state, f"{name}norm1", x, eps) if pre_norm else x
    attended, weights = multi_head_attention(state, f"{name}attention.", before, before, before, mask, n_heads)
    x = x + attended
    if not pre_norm:
        x = layer_norm(state, f"{name}norm1", x, eps)
    before = layer_norm(state, f"{name}norm2", x, eps) if pre_norm else x
    x = x + feed_forward(state, f"{name}feed_forward.", before, activation)
    if not pre_norm:
        x = layer_norm(state, f"{name}norm2", x, eps)
    return x, weights


def encoder(state, name, x, mask, n_layers, n_heads, activation="relu", pre_norm=False, eps=1e-5):
    """-> last_hidden (B, T, d_model), n_layers + 1 hidden states, n_layers tables of weights."""
    hidden, tables = [x], []
    for n in range(n_layers):
        x, weights = encoder_layer(state, f"{name}layers.{n}.", x, mask, n_heads, activation, pre_norm, eps)
        hidden.append(x)
        tables.append(weights)
    last = layer_norm(state, f"{name}norm", x, eps) if pre_norm else x
    return last, hidden, tables


def sinusoids(max_len, d_model):
    """Position p, feature 2i: sin(p / 10000^(2i/d_model)); feature 2i + 1: the cosine of the same angle."""
    table = np.zeros((max_len, d_model))
    for p in range(max_len):
        for i in range(d_model // 2):
            angle = p / math.pow(10000.0, 2 * i / d_model)
            table[p, 2 * i] = math.sin(angle)
            table[p, 2 * i + 1] = math.cos(angle)
    return table


def bert(state, name, ids, mask, segments, n_layers, n_heads, activation="gelu", eps=1e-12, pre_norm=False):
    """ids (B, T) -> last_hidden (B, T, d_model), pooled (B, d_model) or None, hidden, weights."""
    token, position, segment = (state[f"{name}embeddings.{w}.weight"] for w in ("token", "position", "segment"))
    x = np.zeros((*ids.shape, token.shape[1]))
    for b in range(ids.shape[0]):
        for t in range(ids.shape[1]):
            for i in range(token.shape[1]):
                kind = 0 if segments is None else segments[b, t]
                x[b, t, i] = token[ids[b, t], i] + position[t, i] + segment[kind, i]
    x = layer_norm(state, f"{name}embeddings.norm", x, eps)
    last, hidden, tables = encoder(state, f"{name}encoder.", x, mask, n_layers, n_heads, activation, pre_norm, eps)
    pooled = None
    if f"{name}pooler.weight" in state:
        pooled = each(math.tanh, linear(state, f"{name}pooler", last[:, 0]))
    return last, pooled, hidden, tables


def masked_lm(state, ids, mask, segments, n_layers, n_heads, activation="gelu", eps=1e-12):
    """-> logits (B, T, V): the token table serves as the output matrix, with a bias of its own."""
    last, *_ = bert(state, "bert.", ids, mask, segments, n_layers, n_heads, activation, eps)
    transformed = each(ACTIVATIONS[activation], linear(state, "head.transform", last))
    x = layer_norm(state, "head.norm", transformed, eps)
    output = {"out.weight": state["bert.embeddings.token.weight"], "out.bias": state["head.bias"]}
    return linear(output, "out", x)


def mean_of_real(hidden, real):
    """hidden (B, T, d) and real (B, T) -> (B, d): a sum over the real tokens, divided by their number; else zeros."""
    out = np.zeros((hidden.shape[0], hidden.shape[2]))
    for b, i in np.ndindex(*out.shape):
        values = [float(hidden[b, t, i]) for t in range(hidden.shape[1]) if real[b, t]]
        out[b, i] = sum(values) / len(values) if values else 0.0
    return out


def classifier(state, ids, mask, segments, n_layers, n_heads, activation="gelu", eps=1e-12, real=None):
    """-> logits (B, n_classes): of the pooled first token, or where `real` (B, T) is given of the mean of these."""
    last, pooled, *_ = bert(state, "bert.", ids, mask, segments, n_layers, n_heads, activation, eps)
    return linear(state, "classifier", pooled if real is None else mean_of_real(last, real))


def turned(x, first=0, base=10000.0):
    """x [..., T, d]: the features (2i, 2i + 1) at position p turn by p base^(-2i/d) (Su et al. 2021, eq. 34)."""
    out = np.zeros(x.shape)
    for place in np.ndindex(*x.shape[:-1]):
        for i in range(x.shape[-1] // 2):
            angle = (first + place[-1]) * math.pow(base, -2 * i / x.shape[-1])
            a, b = float(x[place][2 * i]), float(x[place][2 * i + 1])
            out[place][2 * i] = a * math.cos(angle) - b * math.sin(angle)
            out[place][2 * i + 1] = a * math.sin(angle) + b * math.cos(angle)
    return out


def time_modulation(state, x, times, n_harmonics, longest):
    """scale(t) x + shift(t): the first half of a linear map of the time's sines and cosines, and its second half."""
    out, d_model = np.zeros(x.shape), x.shape[-1]
    for place in np.ndindex(*times.shape):
        angles = [2 * math.pi * (m + 1) * float(times[place]) / longest for m in range(n_harmonics)]
        features = [math.sin(angle) for angle in angles] + [math.cos(angle) for angle in angles]
        for i in range(d_model):
            scale, shift = (
                sum(w * f for w, f in zip(state["linear.weight"][row].tolist(), features, strict=True))
                + float(state["linear.bias"][row])
                for row in (i, d_model + i)
            )
            out[place][i] = scale * x[place][i] + shift
    return out


def decoder_layer(state, name, x, memory, mask, memory_mask, n_heads, activation="relu", pre_norm=False, eps=1e-5):
    """x (B, T, d_model), memory (B, S, d_model) -> output (B, T, d_model), weights (B, H, T, T) and (B, H, T, S)."""
    before = layer_norm(state, f"{name}norm1", x, eps) if pre_norm else x
    y, to_target = multi_head_attention(state, f"{name}self_attention.", before, before, before, mask, n_heads)
    x = x + y
    if not pre_norm:
        x = layer_norm(state, f"{name}norm1", x, eps)
    before = layer_norm(state, f"{name}norm2", x, eps) if pre_norm else x
    y, to_memory = multi_head_attention(state, f"{name}cross_attention.", before, memory, memory, memory_mask, n_heads)
    x = x + y
    if not pre_norm:
        x = layer_norm(state, f"{name}norm2", x, eps)
    before = layer_norm(state, f"{name}norm3", x, eps) if pre_norm else x
    x = x + feed_forward(state, f"{name}feed_forward.", before, activation)
    if not pre_norm:
        x = layer_norm(state, f"{name}norm3", x, eps)
    return x, to_target, to_memory


def decoder(state, name, x, memory, mask, memory_mask, n_layers, n_heads, activation="relu", pre_norm=False, eps=1e-5):
    """-> last_hidden (B, T, d_model), n_layers + 1 hidden states, n_layers tables of each kind of weights."""
    hidden, to_target, to_memory = [x], [], []
    for n in range(n_layers):
        layer = f"{name}layers.{n}."
        x, a, b = decoder_layer(state, layer, x, memory, mask, memory_mask, n_heads, activation, pre_norm, eps)
        hidden.append(x)
        to_target.append(a)
        to_memory.append(b)
    last = layer_norm(state, f"{name}norm", x, eps) if pre_norm else x
    return last, hidden, to_target, to_memory


def transformer(state, config, source_ids, target_ids):
    """ids (B, S) and (B, T) -> logits (B, T, V), and what encoder and decoder give besides; no rotary positions."""
    shared = state["source_embedding.weight"]
    tables = {"source": shared, "target": state.get("target_embedding.weight", shared)}

    def embedded(side, ids):
        x = np.zeros((*ids.shape, config.d_model))
        for b, t in np.ndindex(*ids.shape):
            for i in range(config.d_model):
                x[b, t, i] = math.sqrt(config.d_model) * tables[side][ids[b, t], i]
                if config.positions == "learned":
                    x[b, t, i] += state[f"{side}_position.weight"][t, i]
        return x + (sinusoids(ids.shape[1], config.d_model) if config.positions == "sinusoidal" else 0.0)

    real = source_ids != config.pad_id
    memory_mask = real[:, None, None, :]
    mask = np.zeros((len(target_ids), 1, target_ids.shape[1], target_ids.shape[1]), dtype=bool)
    for b, _, t, s in np.ndindex(*mask.shape):
        mask[b, 0, t, s] = s <= t and target_ids[b, s] != config.pad_id
    sizes = (config.n_layers, config.n_heads, config.activation, config.pre_norm, config.norm_eps)
    encoded = encoder(state, "encoder.", embedded("source", source_ids), memory_mask, *sizes)
    decoded = decoder(state, "decoder.", embedded("target", target_ids), encoded[0], mask, memory_mask, *sizes)
    if "out_proj.weight" in state:
        return linear(state, "out_proj", decoded[0]), encoded, decoded
    table = {"out.weight": tables["target"], "out.bias": np.zeros(config.target_vocab)}
    return linear(table, "out", decoded[0]), encoded, decoded
