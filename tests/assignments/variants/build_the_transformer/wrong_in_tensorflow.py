"""Wrong solutions in TensorFlow: mistakes that are made there as in PyTorch, at the same price."""

from tests.assignments.variants import Variant
from tests.assignments.variants.build_the_transformer.changed import body
from tests.assignments.variants.build_the_transformer.right import in_tensorflow

START = "places = tf.range(length, dtype=tf.float32)[:, None]"
ANGLES = "angles = places / 10000 ** (tf.range(0, d_model, 2, dtype=tf.float32) / d_model)"
WAVES = "return tf.reshape(tf.stack([tf.sin(angles), tf.cos(angles)], axis=-1), (length, d_model))"
MOMENTS = "mean, variance = tf.nn.moments(total, axes=[-1], keepdims=True)"
NORMED = "return (total - mean) / tf.sqrt(variance + 1e-5) * gain + bias"
UNITS = "units = x @ tf.transpose(W1) + b1"
LOOP = (
    "target = tf.cast(tf.fill([source.shape[0], 1], start_id), tf.int64)",
    "for _ in range(max_len):",
    "    ids = tf.argmax(decode(source, target)[:, -1], axis=-1)",
    "    target = tf.concat([target, ids[:, None]], axis=1)",
    "rows = target[:, 1:].numpy().tolist()",
)
CUT = "return [row[: row.index(end_id) + 1] if end_id in row else row for row in rows]"


def masks(source: str = "(ids != pad_id)[:, None]", causal: str = "places <= places[:, None]") -> list[str]:
    """The lines of part 2 with these two masks."""
    return [
        f"def source_mask(ids, pad_id):\n    return {source}",
        "def target_mask(ids, pad_id):\n    places = tf.range(ids.shape[1])",
        f"    return (ids != pad_id)[:, None] & ({causal})",
    ]


WRONG = [
    (
        "sines, then cosines", "positions", 1,
        [START, ANGLES, "return tf.concat([tf.sin(angles), tf.cos(angles)], axis=1)"],
    ),
    ("sine and cosine swapped", "positions", 1,
     [START, ANGLES, WAVES.replace("tf.sin(angles), tf.cos(angles)", "tf.cos(angles), tf.sin(angles)")]),
    ("1000 in the place of 10000", "positions", 1.5, [START, ANGLES.replace("10000", "1000"), WAVES]),
    ("the middle axis missing", "masks", 0.5, masks(source="ids != pad_id")),
    ("a token sees those after it", "masks", 1, masks(causal="places >= places[:, None]")),
    ("nothing added to the variance", "add-and-norm", 0.5,
     ["total = x + sublayer", MOMENTS, NORMED.replace(" + 1e-5", "")]),
    ("mean and variance detached", "add-and-norm", 0.5,
     ["total = x + sublayer", MOMENTS, "mean, variance = tf.stop_gradient(mean), tf.stop_gradient(variance)", NORMED]),
    ("no relu", "feed-forward", 1, [UNITS, "return units @ tf.transpose(W2) + b2"]),
    ("through NumPy", "feed-forward", 0.5,
     [UNITS, "return tf.constant(tf.nn.relu(units).numpy()) @ tf.transpose(W2) + b2"]),
    ("the least probable token", "greedy", 1, [*LOOP[:2], LOOP[2].replace("argmax", "argmin"), *LOOP[3:], CUT]),
    ("nothing stops a sentence", "greedy", 1, [*LOOP, "return rows"]),
    ("0 is never written", "greedy", 0.5,
     [*LOOP[:2], LOOP[2].replace("-1]", "-1, 1:]") + " + 1", *LOOP[3:], CUT]),
    ("positions as an array of NumPy", "positions", 0.5, [START, ANGLES, f"{WAVES}.numpy()"]),
    ("the source's mask as an array of NumPy", "masks", 0.5, masks(source="(ids != pad_id)[:, None].numpy()")),
    ("the norm of float64", "add-and-norm", 0.5,
     ["total = x + sublayer", MOMENTS, NORMED.replace("return ", "result = "), "return tf.cast(result, tf.float64)"]),
]  # fmt: skip

VARIANTS = [
    Variant(
        f"{name}, in TensorFlow",
        in_tensorflow(**{cell.replace("-", "_"): "\n".join(lines) if cell == "masks" else body(cell, *lines)[cell]}),
        {f"test-{cell}": price},
        "as in PyTorch",
    )
    for name, cell, price, lines in WRONG
]
