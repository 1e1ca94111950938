"""Right solutions: in TensorFlow, and in other styles of both frameworks. None may lose a point."""

from tests.assignments.variants import Variant

TENSORFLOW = {
    "framework": "import tensorflow as tf",
    "additive-scores": """
    def additive_scores(s, h, W, U, v):
        units = tf.tanh(tf.matmul(s, W, transpose_b=True)[:, None] + tf.einsum("bsd,ad->bsa", h, U))
        return tf.linalg.matvec(units, v)
    """,
    "attend": """
    def attend(scores, h, mask):
        weights = tf.nn.softmax(tf.where(mask, scores, scores.dtype.min), axis=1) * tf.cast(mask, scores.dtype)
        return tf.einsum("bs,bsd->bd", weights, h), weights
    """,
    "annotations": """
    def annotations(x, mask, forward, backward, zero):
        ahead, back = [], []
        state = zero
        for t in range(x.shape[1]):
            state = tf.where(mask[:, t, None], forward(x[:, t], state), state)
            ahead.append(state)
        state = zero
        for t in reversed(range(x.shape[1])):
            state = tf.where(mask[:, t, None], backward(x[:, t], state), state)
            back.insert(0, state)
        return tf.concat([tf.stack(ahead, axis=1), tf.stack(back, axis=1)], axis=-1)
    """,
    "decoder-step": """
    def decoder_step(y, s, h, mask, score, cell):
        context, weights = attend(score(s, h), h, mask)
        return cell(tf.concat([y, context], axis=-1), s), context, weights
    """,
    "masked-loss": """
    def masked_loss(logits, targets, pad_id):
        real = tf.cast(targets != pad_id, logits.dtype)
        costs = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
        return tf.math.divide_no_nan(tf.reduce_sum(costs * real), tf.reduce_sum(real))
    """,
    "greedy": """
    def greedy(step, state, start, end_id, max_len):
        ids, columns = start, []
        for _ in range(max_len):
            logits, state = step(ids, state)
            ids = tf.argmax(logits, axis=-1)
            columns.append(ids)
        sentences = tf.stack(columns, axis=1).numpy().tolist()
        return [row[: row.index(end_id) + 1] if end_id in row else row for row in sentences]
    """,
}


def in_tensorflow(**cells: str) -> dict[str, str]:
    """The solution in TensorFlow with other cells, by their names with `_` for `-`."""
    return TENSORFLOW | {name.replace("_", "-"): code for name, code in cells.items()}


VARIANTS = [
    Variant("the reference, in PyTorch", {}),
    Variant("in TensorFlow", TENSORFLOW),
    Variant("PyTorch, with TensorFlow imported as well", {"framework": "import torch\nimport tensorflow as tf"}),
    Variant(
        "einsum, and functions of torch.nn.functional",
        {
            "framework": "from torch.nn import functional as F\nimport torch",
            "additive-scores": """
            def additive_scores(s, h, W, U, v):
                return torch.einsum("bsa,a->bs", torch.tanh(F.linear(s, W).unsqueeze(1) + F.linear(h, U)), v)
            """,
            "attend": """
            def attend(scores, h, mask):
                weights = F.softmax(scores.masked_fill(~mask, -1e9), dim=-1).masked_fill(~mask, 0.0)
                return torch.einsum("bs,bsd->bd", weights, h), weights
            """,
            "masked-loss": """
            def masked_loss(logits, targets, pad_id):
                total = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id, reduction="sum")
                return total / max(int((targets != pad_id).sum()), 1)
            """,
        },
    ),
    Variant(
        "loops over sentences and tokens",
        {
            "additive-scores": """
            def additive_scores(s, h, W, U, v):
                rows = []
                for b in range(len(s)):
                    rows.append(torch.stack([v @ torch.tanh(W @ s[b] + U @ note) for note in h[b]]))
                return torch.stack(rows)
            """,
            "attend": """
            def attend(scores, h, mask):
                contexts, rows = [], []
                for e, notes, real in zip(scores, h, mask):
                    weights = torch.zeros_like(e)
                    if real.any():
                        weights = weights.masked_scatter(real, torch.softmax(e[real], dim=0))
                    rows.append(weights)
                    contexts.append(weights @ notes)
                return torch.stack(contexts), torch.stack(rows)
            """,
            "masked-loss": """
            def masked_loss(logits, targets, pad_id):
                costs = []
                for row, wanted in zip(logits, targets):
                    for t in range(len(wanted)):
                        if wanted[t] != pad_id:
                            costs.append(torch.logsumexp(row[t], 0) - row[t, wanted[t]])
                return sum(costs) / len(costs) if costs else logits.sum() * 0
            """,
        },
        why="slow, and right",
    ),
    Variant(
        "a mask of 0 and 1 in the arithmetic",
        {
            "attend": """
            def attend(scores, h, mask):
                real = mask.float()
                top = (scores * real - 1e30 * (1 - real)).max(dim=1, keepdim=True).values
                e = torch.exp(torch.minimum(scores - top, torch.zeros(()))) * real
                weights = e / e.sum(dim=1, keepdim=True).clamp(min=1e-30)
                return (weights.unsqueeze(-1) * h).sum(dim=1), weights
            """,
            "annotations": """
            def annotations(x, mask, forward, backward, zero):
                halves = []
                for cell, turn in [(forward, False), (backward, True)]:
                    tokens = x.flip(1) if turn else x
                    real = (mask.flip(1) if turn else mask).float()
                    state, states = zero, []
                    for x_t, m in zip(tokens.unbind(1), real.unbind(1)):
                        state = m[:, None] * cell(x_t, state) + (1 - m[:, None]) * state
                        states.append(state)
                    half = torch.stack(states, 1)
                    halves.append(half.flip(1) if turn else half)
                return torch.cat(halves, -1)
            """,
        },
    ),
    Variant(
        "minus infinity, then zeros for NaN",
        {
            "attend": """
            def attend(scores, h, mask):
                weights = torch.where(mask, torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=1), 0.0)
                return (weights[:, None] @ h)[:, 0], weights
            """
        },
        why="`masked_fill` lets no gradient through where it fills, so no NaN arrives",
    ),
    Variant(
        "double precision inside",
        {
            "additive-scores": """
            def additive_scores(s, h, W, U, v):
                s, h, W, U, v = (a.double() for a in (s, h, W, U, v))
                return (torch.tanh((s @ W.T)[:, None] + h @ U.T) @ v).float()
            """,
            "masked-loss": """
            def masked_loss(logits, targets, pad_id):
                real = targets.ne(pad_id)
                log_p = logits.double().log_softmax(-1)
                return (-log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1)[real].sum() / max(real.sum(), 1)).float()
            """,
        },
    ),
    Variant(
        "helpers called score, heads, mask, tensors, step",
        {
            "additive-scores": """
            def score(units, v): return units @ v
            def heads(s, W): return (s @ W.T).unsqueeze(1)
            def additive_scores(s, h, W, U, v): return score(torch.tanh(heads(s, W) + h @ U.T), v)
            """,
            "attend": """
            def mask(scores, real): return torch.where(real, scores, torch.tensor(-3e38))
            def tensors(weights, h): return (weights[:, :, None] * h).sum(1)
            _mask = mask
            def attend(scores, h, mask):
                weights = torch.softmax(_mask(scores, mask), -1) * mask
                return tensors(weights, h), weights
            """,
            "decoder-step": """
            def step(*parts): return torch.cat(parts, -1)
            def decoder_step(y, s, h, mask, score, cell):
                context, weights = attend(score(s, h), h, mask)
                return [cell(step(y, context), s), context, weights]
            """,
            "greedy": """
            def greedy(step, state, start, end_id, max_len):
                sentences, going = [[] for _ in start], set(range(len(start)))
                for _ in range(max_len):
                    logits, state = step(start, state)
                    start = logits.argmax(-1)
                    for b in sorted(going):
                        sentences[b].append(int(start[b]))
                        if sentences[b][-1] == end_id:
                            going.discard(b)
                    if not going:
                        break
                return sentences
            """,
        },
        why="no cell of the tests may hide a student's own names",
    ),
    Variant(
        "helpers and modules with the names of what the checks use",
        {
            "framework": "import torch\nnp = torch.nn.functional",
            "additive-scores": """
            def check(s, W): return (s @ W.T)[:, None]
            def test(h, U): return h @ U.T
            def expect(units, v): return units @ v
            def additive_scores(s, h, W, U, v): return expect(torch.tanh(check(s, W) + test(h, U)), v)
            """,
            "attend": """
            def expect_pair(scores, mask): return np.softmax(torch.where(mask, scores, -3e38), 1) * mask
            def expect_array(weights, h): return (weights[:, :, None] * h).sum(1)
            def attend(scores, h, mask):
                weights = expect_pair(scores, mask)
                return expect_array(weights, h), weights
            """,
            "masked-loss": """
            def as_array(x): return x.sum()
            def masked_loss(logits, targets, pad_id):
                costs = np.cross_entropy(logits.mT, targets, reduction="none")
                return as_array(costs * (targets != pad_id)) / as_array(targets != pad_id).clamp(min=1)
            """,
            "greedy": """
            def Tensors(logits): return logits.argmax(1)
            def greedy(step, state, start, end_id, max_len):
                rows = []
                for _ in range(max_len):
                    logits, state = step(start, state)
                    start = Tensors(logits)
                    rows.append(start.tolist())
                rows = [list(row) for row in zip(*rows)]
                return [row[: row.index(end_id) + 1] if end_id in row else row for row in rows]
            """,
        },
        why="what the checks need they import themselves",
    ),
    Variant(
        "a constant 0 for a batch of fillers, and the whole batch anew for each sentence",
        {
            "masked-loss": """
            def masked_loss(logits, targets, pad_id):
                if (targets == pad_id).all():
                    return torch.tensor(0.0)
                return torch.nn.functional.cross_entropy(logits.mT, targets, ignore_index=pad_id)
            """,
            "greedy": """
            def greedy(step, state, start, end_id, max_len):
                def sentence(b):
                    ids, now = start, state
                    for _ in range(max_len):
                        logits, now = step(ids, now)
                        ids = logits.argmax(1)
                        yield int(ids[b])
                        if ids[b] == end_id:
                            return
                return [list(sentence(b)) for b in range(len(start))]
            """,
        },
        why="a batch of fillers teaches nothing; the steps are repeated, and each gets what it should",
    ),
    Variant(
        "a constant 0 for a batch of fillers, and a step too many, in TensorFlow",
        in_tensorflow(
            masked_loss="""
            def masked_loss(logits, targets, pad_id):
                real = targets != pad_id
                if not tf.reduce_any(real):
                    return tf.constant(0.0)
                costs = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
                return tf.reduce_mean(costs[real])
            """,
            greedy="""
            def greedy(step, state, start, end_id, max_len):
                logits, state = step(start, state)
                rows = [[] for _ in start]
                for _ in range(max_len):
                    ids = tf.argmax(logits, axis=1)
                    for row, token in zip(rows, ids.numpy().tolist()):
                        if end_id not in row:
                            row.append(token)
                    logits, state = step(ids, state)
                return rows
            """,
        ),
        why="what comes of the last step is not used",
    ),
    Variant(
        "prints, warns and writes from a thread",
        {
            "attend": """
            import sys, threading, time, warnings
            def _chatter():
                while True:
                    print("still here", file=sys.stderr)
                    time.sleep(0.005)
            threading.Thread(target=_chatter, daemon=True).start()
            def attend(scores, h, mask):
                print("shapes", scores.shape, h.shape)
                warnings.warn("careful")
                weights = torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), 1) * mask
                return torch.bmm(weights[:, None], h).squeeze(1), weights
            """
        },
        why="debugging output is no fault",
    ),
    Variant(
        "modules and classes",
        {
            "additive-scores": """
            class Additive(torch.nn.Module):
                def forward(self, s, h, W, U, v):
                    return torch.tanh(torch.matmul(s, W.mT)[:, None, :] + torch.matmul(h, U.mT)).matmul(v)
            additive_scores = Additive()
            """,
            "masked-loss": """
            class Loss:
                def __call__(self, logits, targets, pad_id):
                    costs = torch.nn.functional.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
                    real = (targets != pad_id).to(costs)
                    return (costs * real).sum() / real.sum().clamp_min(1.0)
            masked_loss = Loss()
            """,
        },
    ),
    Variant(
        "Keras's operations",
        in_tensorflow(
            framework="import keras\nimport tensorflow as tf",
            additive_scores="""
            def additive_scores(s, h, W, U, v):
                units = keras.ops.tanh(keras.ops.expand_dims(s @ tf.transpose(W), 1) + h @ tf.transpose(U))
                return keras.ops.sum(units * v, axis=-1)
            """,
            attend="""
            def attend(scores, h, mask):
                scores = keras.ops.where(mask, scores, -1e30)
                weights = keras.ops.softmax(scores, axis=-1) * keras.ops.cast(mask, "float32")
                return keras.ops.sum(weights[..., None] * h, axis=1), weights
            """,
            masked_loss="""
            def masked_loss(logits, targets, pad_id):
                real = tf.cast(tf.not_equal(targets, pad_id), tf.float32)
                costs = keras.losses.sparse_categorical_crossentropy(targets, logits, from_logits=True)
                return tf.reduce_sum(costs * real) / tf.maximum(tf.reduce_sum(real), 1.0)
            """,
        ),
    ),
    Variant(
        "TensorFlow's one-hot vectors and boolean masks",
        in_tensorflow(
            annotations="""
            def annotations(x, mask, forward, backward, zero):
                def read(cell, x, mask):
                    states = [zero]
                    for x_t, real in zip(tf.unstack(x, axis=1), tf.unstack(mask, axis=1)):
                        states.append(tf.where(real[:, None], cell(x_t, states[-1]), states[-1]))
                    return tf.stack(states[1:], axis=1)
                back = read(backward, tf.reverse(x, [1]), tf.reverse(mask, [1]))
                return tf.concat([read(forward, x, mask), tf.reverse(back, [1])], axis=2)
            """,
            masked_loss="""
            def masked_loss(logits, targets, pad_id):
                picked = tf.one_hot(targets, logits.shape[-1])
                costs = -tf.reduce_sum(tf.nn.log_softmax(logits) * picked, axis=-1)
                real = tf.boolean_mask(costs, targets != pad_id)
                return tf.reduce_sum(real) / tf.cast(tf.maximum(tf.size(real), 1), tf.float32)
            """,
        ),
    ),
]
