"""Wrong solutions in TensorFlow: mistakes that are made there as in PyTorch, at the same price, and some of its own."""

from tests.assignments.variants import Variant
from tests.assignments.variants.attention_for_an_rnn.changed import body
from tests.assignments.variants.attention_for_an_rnn.right import in_tensorflow

UNITS = "tf.tanh((s @ tf.transpose(W))[:, None] + h @ tf.transpose(U))"
MEAN = 'return tf.einsum("bs,bsd->bd", weights, h), weights'
REAL = "real = tf.cast(targets != pad_id, tf.float32)"
COSTS = "costs = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)"
LOOP = (
    "ids, columns = start, []",
    "for _ in range(max_len):",
    "    logits, state = step(ids, state)",
    "    ids = tf.argmax(logits, axis=-1)",
    "    columns.append(ids)",
    "rows = tf.stack(columns, axis=1).numpy().tolist()",
)
CUT = "return [row[: row.index(end_id) + 1] if end_id in row else row for row in rows]"


def reading(*lines: str, back="backward, order[::-1]") -> tuple[str, ...]:
    """The encoder with another step."""
    return (
        "def read(cell, order):",
        "    state, states = zero, {}",
        "    for t in order:",
        "        real = mask[:, t, None]",
        *(f"        {line}" for line in lines),
        "    return tf.stack([states[t] for t in sorted(states)], axis=1)",
        "order = range(x.shape[1])",
        f"return tf.concat([read(forward, order), read({back})], axis=-1)",
    )


KEPT = "states[t] = state = tf.where(real, cell(x[:, t], state), state)"

WRONG = [
    (
        "no tanh", "additive-scores", 2,
        ["return tf.linalg.matvec((s @ tf.transpose(W))[:, None] + h @ tf.transpose(U), v)"],
    ),
    ("the state forgotten", "additive-scores", 2, ["return tf.linalg.matvec(tf.tanh(h @ tf.transpose(U)), v)"]),
    ("the units added up, without v", "additive-scores", 2, [f"return tf.reduce_sum({UNITS}, axis=-1)"]),
    ("axes of length one squeezed away", "additive-scores", 1, [f"return tf.squeeze(tf.linalg.matvec({UNITS}, v))"]),
    ("through NumPy", "additive-scores", 1, [f"return tf.constant(tf.linalg.matvec({UNITS}, v).numpy())"]),
    ("scores of shape (S, B)", "additive-scores", 1, [f"return tf.transpose(tf.linalg.matvec({UNITS}, v))"]),
    ("context of shape (B, 1, d)", "attend", 0.5,
     ["weights = tf.nn.softmax(tf.where(mask, scores, tf.float32.min)) * tf.cast(mask, tf.float32)",
      "return weights[:, None] @ h, weights"]),
    ("mask not used", "attend", 1.5, ["weights = tf.nn.softmax(scores)", MEAN]),
    ("mask after the softmax", "attend", 1, ["weights = tf.nn.softmax(scores) * tf.cast(mask, tf.float32)", MEAN]),
    (
        "mask inverted", "attend", 1,
        ["weights = tf.nn.softmax(tf.where(mask, tf.float32.min, scores)) * tf.cast(~mask, tf.float32)", MEAN],
    ),
    ("an empty sentence is NaN", "attend", 0.5, ["weights = tf.nn.softmax(tf.where(mask, scores, -np.inf))", MEAN]),
    (
        "weights detached", "attend", 0.5,
        ["weights = tf.nn.softmax(tf.where(mask, scores, tf.float32.min)) * tf.cast(mask, tf.float32)",
         "weights = tf.stop_gradient(weights)", MEAN],
    ),
    ("fillers are read", "annotations", 1, reading("states[t] = state = cell(x[:, t], state)")),
    ("the tokens first, then the batch", "annotations", 1,
     [*reading(KEPT)[:-1], "found = tf.concat([read(forward, order), read(backward, order[::-1])], axis=-1)",
      "return tf.transpose(found, [1, 0, 2])"]),
    ("a pair of directions", "annotations", 1,
     [*reading(KEPT)[:-1], "return read(forward, order), read(backward, order[::-1])"]),
    ("the two directions added", "annotations", 1,
     [*reading(KEPT)[:-1], "return read(forward, order) + read(backward, order[::-1])"]),
    ("both read forwards", "annotations", 1.5, reading(KEPT, back="backward, order")),
    ("the state before each token", "annotations", 1, reading("states[t] = state", KEPT.removeprefix("states[t] = "))),
    ("the state detached at each step", "annotations", 0.5, reading(KEPT, "state = tf.stop_gradient(state)")),
    (
        "context before the token", "decoder-step", 1,
        ["context, weights = attend(score(s, h), h, mask)",
         "return cell(tf.concat([context, y], axis=1), s), context, weights"],
    ),
    (
        "the score detached", "decoder-step", 0.5,
        ["context, weights = attend(tf.stop_gradient(score(s, h)), h, mask)",
         "return cell(tf.concat([y, context], axis=1), s), context, weights"],
    ),
    ("fillers count", "masked-loss", 2, [COSTS, "return tf.reduce_mean(costs)"]),
    (
        "fillers left out of the sum alone", "masked-loss", 1.5,
        [REAL, COSTS, "return tf.reduce_mean(costs * real)"],
    ),
    ("0 / 0 where there are only fillers", "masked-loss", 0.5,
     [REAL, COSTS, "return tf.reduce_sum(costs * real) / tf.reduce_sum(real)"]),
    (
        "the logarithm of the softmax plus a little", "masked-loss", 0.5,
        [REAL, "costs = -tf.math.log(tf.gather(tf.nn.softmax(logits), targets, batch_dims=2) + 1e-9)",
         "return tf.math.divide_no_nan(tf.reduce_sum(costs * real), tf.reduce_sum(real))"],
    ),
    ("0 / 0 repaired afterwards, by where", "masked-loss", 0.5,
     [REAL, COSTS, "n = tf.reduce_sum(real)", "return tf.where(n > 0, tf.reduce_sum(costs * real) / n, 0.0)"]),
    ("the first token of each sentence left out", "masked-loss", 1.5,
     ["logits, targets = logits[:, 1:], targets[:, 1:]", REAL, COSTS,
      "return tf.math.divide_no_nan(tf.reduce_sum(costs * real), tf.reduce_sum(real))"]),
    ("context of one sentence squeezed", "attend", 0.5,
     ["weights = tf.nn.softmax(tf.where(mask, scores, tf.float32.min)) * tf.cast(mask, tf.float32)",
      "return tf.squeeze(weights[:, None] @ h), weights"]),
    ("the way back begins with the last state", "annotations", 1,
     ["state, halves = zero, []", "order = range(x.shape[1])",
      "for cell, places in [(forward, order), (backward, order[::-1])]:", "    states = {}", "    for t in places:",
      "        real = mask[:, t, None]", f"        {KEPT}",
      "    halves.append(tf.stack([states[t] for t in order], axis=1))", "return tf.concat(halves, axis=-1)"]),
    ("each sentence alone", "greedy", 1,
     ["rows = []", "for first in start:", "    ids, now, row = first[None], state, []",
      "    while len(row) < max_len and end_id not in row:", "        logits, now = step(ids, now)",
      "        ids = tf.argmax(logits, axis=1)", "        row.append(int(ids[0]))", "    rows.append(row)",
      "return rows"]),
    ("the largest logit along the batch", "greedy", 1.5, [*LOOP[:3], "    ids = tf.argmax(logits)", *LOOP[4:], CUT]),
    ("a step gets a list", "greedy", 1,
     [*LOOP[:2], "    logits, state = step(list(np.asarray(ids)), state)", *LOOP[3:], CUT]),
    ("the largest logit without its sign", "greedy", 1.5,
     [*LOOP[:3], "    ids = tf.argmax(tf.abs(logits), axis=1)", *LOOP[4:], CUT]),
    ("a loss for each sentence", "masked-loss", 1,
     [REAL, COSTS, "return tf.math.divide_no_nan(tf.reduce_sum(costs * real, 1), tf.reduce_sum(real, 1))"]),
    ("tokens and fillers swapped", "annotations", 1,
     reading("states[t] = state = tf.where(real, state, cell(x[:, t], state))")),
    ("the context ignores the mask", "attend", 1,
     ["m = tf.cast(mask, tf.float32)", "weights = tf.nn.softmax(tf.where(mask, scores, tf.float32.min)) * m",
      "spread = tf.nn.softmax(scores) * tf.reduce_max(m, axis=1, keepdims=True)",
      'return tf.einsum("bs,bsd->bd", spread, h), weights']),
    ("nothing stops a sentence", "greedy", 1, [*LOOP, "return rows"]),
    ("a list for each step", "greedy", 1, [*LOOP[:-1], "return columns"]),
    (
        "every step reads the start token", "greedy", 1,
        [*LOOP[:2], "    logits, state = step(start, state)", *LOOP[3:], CUT],
    ),
]  # fmt: skip

VARIANTS = [
    Variant(
        f"{name}, in TensorFlow",
        in_tensorflow(**{cell: body(cell, *lines)[cell]}),
        {f"test-{cell}": price},
        "as in PyTorch",
    )
    for name, cell, price, lines in WRONG
]
