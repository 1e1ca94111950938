"""Right solutions: in TensorFlow, and in other styles. None may lose a point."""

from tests.assignments.variants import Variant
from tests.assignments.variants.the_family_compared.changed import body, changed

TENSORFLOW = {
    "framework": "import tensorflow as tf",
    "position-ids": """
    def position_ids(ids, pad_id):
        real = tf.cast(ids != pad_id, ids.dtype)
        return tf.cumsum(real, axis=1) * real + pad_id
    """,
    "embed": """
    def embed(ids, positions, segments, weights):
        x = tf.gather(weights["token"], ids) + tf.gather(weights["position"], positions)
        if segments is not None:
            x += tf.gather(weights["segment"], segments)
        mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
        y = (x - mean) * tf.math.rsqrt(variance + 1e-12) * weights["gain"] + weights["shift"]
        if "up" in weights:
            y = y @ tf.transpose(weights["up"]) + weights["up_bias"]
        return y
    """,
    "distillation-loss": """
    def distillation_loss(student, teacher, labels, temperature, alpha):
        log_p = tf.nn.log_softmax(tf.stop_gradient(teacher) / temperature)
        log_q = tf.nn.log_softmax(student / temperature)
        said = temperature**2 * tf.reduce_mean(tf.reduce_sum(tf.exp(log_p) * (log_p - log_q), axis=-1))
        known = tf.cast(labels != -100, tf.float32)
        costs = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(labels, 0), student)
        hard = tf.math.divide_no_nan(tf.reduce_sum(known * costs), tf.reduce_sum(known))
        return alpha * said + (1 - alpha) * hard
    """,
}


def in_tensorflow(**cells: str) -> dict[str, str]:
    """The solution in TensorFlow with other cells, by their names with `_` for `-`."""
    return TENSORFLOW | {name.replace("_", "-"): code for name, code in cells.items()}


VARIANTS = [
    Variant("the reference, in PyTorch", {}),
    Variant("the lines that wrong solutions of parts 1 and 3 change", changed("parameters") | changed("embed")),
    Variant("the lines that wrong solutions of part 5 change", changed("distillation-loss")),
    Variant(
        "the lines that wrong solutions of the other parts change",
        changed("position-ids") | changed("student-state") | changed("difference") | changed("front"),
    ),
    Variant("in TensorFlow", TENSORFLOW),
    Variant("PyTorch, with TensorFlow imported as well", {"framework": "import torch\nimport tensorflow as tf"}),
    Variant(
        "functions of torch.nn.functional",
        {
            "framework": "import torch\nfrom torch.nn import functional as F",
            "embed": """
            def embed(ids, positions, segments, weights):
                x = F.embedding(ids, weights["token"]) + F.embedding(positions, weights["position"])
                if segments is not None:
                    x = x + F.embedding(segments, weights["segment"])
                x = F.layer_norm(x, x.shape[-1:], weights["gain"], weights["shift"], eps=1e-12)
                return F.linear(x, weights["up"], weights["up_bias"]) if "up" in weights else x
            """,
            "distillation-loss": """
            def distillation_loss(student, teacher, labels, temperature, alpha):
                log_p = F.log_softmax(teacher.detach() / temperature, -1)
                log_q = F.log_softmax(student / temperature, -1)
                soft = F.kl_div(log_q, log_p, reduction="batchmean", log_target=True) * temperature**2
                known = labels != -100
                hard = F.cross_entropy(student[known], labels[known]) if known.any() else 0 * student.sum()
                return alpha * soft + (1 - alpha) * hard
            """,
        },
    ),
    Variant(
        "cross-entropy with ignore_index, and a sum divided by the labels",
        {
            "distillation-loss": """
            def distillation_loss(student, teacher, labels, temperature, alpha):
                with torch.no_grad():
                    p = torch.softmax(teacher / temperature, dim=-1)
                    own = torch.special.entr(p).sum(-1)
                cross = -(p * (student / temperature).log_softmax(-1)).sum(-1)
                total = torch.nn.functional.cross_entropy(student, labels, reduction="sum")
                hard = total / max(1, int((labels != -100).sum()))
                return alpha * temperature**2 * (cross - own).mean() + (1 - alpha) * hard
            """,
        },
    ),
    Variant(
        "logsumexp, and a loop over the sentences",
        {
            "distillation-loss": """
            def distillation_loss(student, teacher, labels, temperature, alpha):
                def score(z):  # logarithms of a softmax
                    return z - torch.logsumexp(z, dim=0)

                said, hard, mask = 0.0, 0.0, 0
                for s, t, y in zip(student, teacher.detach(), labels.tolist()):
                    p, q = score(t / temperature), score(s / temperature)
                    said = said + temperature**2 * torch.sum(torch.exp(p) * (p - q))
                    if y != -100:
                        hard, mask = hard - score(s)[y], mask + 1
                return alpha * said / len(labels) + (1 - alpha) * (hard / mask if mask else 0.0)
            """,
            "position-ids": """
            def position_ids(ids, pad_id):
                rows = []
                for row in ids.tolist():
                    count, found = pad_id, []
                    for token in row:
                        count += token != pad_id
                        found.append(pad_id if token == pad_id else count)
                    rows.append(found)
                return torch.tensor(rows)
            """,
        },
    ),
    Variant(
        "one-hot rows, and a class for the norm",
        {
            "embed": """
            class LayerNorm:
                def __init__(self, weights):
                    self.heads = weights["gain"], weights["shift"]

                def __call__(self, x):
                    deviation, mean = torch.std_mean(x, dim=-1, keepdim=True, correction=0)
                    return self.heads[0] * (x - mean) / (deviation**2 + 1e-12) ** 0.5 + self.heads[1]

            def embed(ids, positions, segments, weights):
                x = 0
                for name, places in {"token": ids, "position": positions, "segment": segments}.items():
                    if name in weights:
                        rows = len(weights[name])
                        x = x + torch.nn.functional.one_hot(places, rows).float() @ weights[name]
                y = LayerNorm(weights)(x)
                if weights.get("up") is None:
                    return y
                return torch.einsum("bte,de->btd", y, weights["up"]) + weights["up_bias"]
            """,
        },
    ),
    Variant(
        "helpers with names of the checks",
        {
            "parameters": """
            def check(width):
                return width * (width + 1)

            def expect(width):
                return 2 * width

            def parameters(vocab, positions, segments, layers, d, f, e=None, shared=False, pooler=True):
                wide = d if e is None else e
                total = (vocab + positions + segments) * wide + expect(wide) + (0 if e is None else e * d + d)
                layer = 4 * check(d) + 2 * d * f + f + d + 2 * expect(d)
                return total + (1 if shared else layers) * layer + (check(d) if pooler else 0)
            """,
            "position-ids": """
            def as_array(ids):
                return ids

            def Tensors(ids, pad_id):
                return (as_array(ids) != pad_id).long()

            def position_ids(ids, pad_id):
                mask = Tensors(ids, pad_id)
                return torch.cumsum(mask, 1) * mask + pad_id
            """,
            "front": """
            def expect_array(one, other):
                return one != other and one[0] <= other[0] and one[1] >= other[1]

            def test(models, name):
                return any(expect_array(other, models[name]) for other in models.values())

            def front(models):
                heads = [name for name in models if not test(models, name)]
                return sorted(heads, key=lambda name: models[name][0])
            """,
        },
    ),
    Variant(
        "masked positions by where",
        {
            "position-ids": """
            def position_ids(ids, pad_id):
                mask = ids.ne(pad_id)
                return torch.where(mask, mask.cumsum(dim=-1) + pad_id, torch.full_like(ids, pad_id))
            """,
        },
    ),
    Variant(
        "sums of products, NumPy's numbers",
        {
            "parameters": """
            def parameters(vocab, positions, segments, layers, d, f, e=None, shared=False, pooler=True):
                def linear(inputs, outputs):
                    return np.prod([inputs + 1, outputs])

                wide = e or d
                score = np.sum([vocab, positions, segments, 2]) * wide
                score += linear(e, d) if e else 0
                block = 4 * linear(d, d) + linear(d, f) + linear(f, d) + 2 * 2 * d
                return score + (1 if shared else layers) * block + pooler * linear(d, d)
            """,
        },
    ),
    Variant(
        "a number of floats",
        {
            "parameters": """
            def parameters(vocab, positions, segments, layers, d, f, e=None, shared=False, pooler=True):
                width = e if e is not None else d
                total = (vocab + positions + segments + 2.0) * width + (0 if e is None else (e + 1.0) * d)
                each = 4 * d**2 + 4 * d + 2 * d * f + f + d + 4 * d
                return total + each * (1 if shared else layers) + (d**2 + d) * float(pooler)
            """,
        },
    ),
    Variant(
        "renamed by a regular expression",
        {
            "student-state": """
            import re

            def student_state(state, keep):
                numbers = {old: new for new, old in enumerate(keep)}
                student = {}
                for name, value in state.items():
                    match = re.fullmatch(r"encoder\\.layers\\.(\\d+)\\.(.*)", name)
                    if match:
                        if int(match[1]) in numbers:
                            student[f"encoder.layers.{numbers[int(match[1])]}.{match[2]}"] = value.copy()
                    elif not re.match(r"pooler\\.|embeddings\\.segment\\.", name):
                        student[name] = value.copy()
                return student
            """,
        },
    ),
    Variant(
        "layer by layer, by the dots of a name",
        {
            "student-state": """
            def student_state(state, keep):
                def plain(name):
                    return not (name.startswith("pooler.") or name.startswith("embeddings.segment."))

                first = {n: v for n, v in state.items() if plain(n) and n.split(".")[:2] != ["encoder", "layers"]}
                for new, old in enumerate(keep):
                    for name, value in state.items():
                        parts = name.split(".")
                        if parts[:3] == ["encoder", "layers", str(old)]:
                            first[".".join([*parts[:2], str(new), *parts[3:]])] = value
                return first
            """,
        },
    ),
    Variant(
        "shares and sums of squares by hand",
        {
            "difference": """
            def difference(a, b):
                a, b = np.asarray(a, float), np.asarray(b, float)
                d = a.sum(0) / a.shape[0] - b.sum(0) / b.shape[0]
                value = d.sum() / d.size
                error = (((d - value) ** 2).sum() / (d.size - 1)) ** 0.5 / d.size**0.5
                return [value, value - 1.96 * error, value + 1.96 * error]
            """,
        },
    ),
    Variant(
        "the normal quantile, the standard error of SciPy, an array",
        {
            "difference": """
            from scipy import stats

            def difference(a, b):
                d = np.mean(a, axis=0, dtype=float) - np.mean(b, axis=0, dtype=float)
                half = stats.norm.ppf(0.975) * stats.sem(d)
                return np.array([d.mean(), d.mean() - half, d.mean() + half])
            """,
        },
    ),
    Variant(
        "a sweep from the fastest on",
        {
            "front": """
            def front(models):
                found, best, at = [], float("-inf"), None
                for name in sorted(models, key=lambda n: (models[n][0], -models[n][1])):
                    seconds, accuracy = models[name]
                    if accuracy > best or (seconds, accuracy) == at:
                        found.append(name)
                        best, at = accuracy, (seconds, accuracy)
                return found
            """,
        },
    ),
    Variant(
        "all and two ways to be better, a tuple",
        body(
            "front",
            "def beats(one, other):",
            "    as_good = one[0] <= other[0] and one[1] >= other[1]",
            "    return as_good and (one[0] < other[0] or one[1] > other[1])",
            "left = [n for n in models if all(not beats(m, models[n]) for m in models.values())]",
            "return tuple(sorted(left, key=lambda n: models[n]))",
        ),
    ),
    Variant(
        "in TensorFlow, with Keras's functions and a tf.function",
        in_tensorflow(
            position_ids="""
            @tf.function
            def position_ids(ids, pad_id):
                mask = tf.not_equal(ids, pad_id)
                count = tf.math.cumsum(tf.cast(mask, tf.int64), axis=-1)
                return tf.where(mask, count + pad_id, pad_id * tf.ones_like(ids))
            """,
            distillation_loss="""
            import keras

            def distillation_loss(student, teacher, labels, temperature, alpha):
                p = tf.nn.softmax(tf.stop_gradient(teacher) / temperature)
                score = keras.losses.KLDivergence(reduction=None)
                log_p = tf.nn.log_softmax(tf.stop_gradient(teacher) / temperature)
                log_q = tf.nn.log_softmax(student / temperature)
                said = temperature**2 * tf.reduce_mean(tf.reduce_sum(p * (log_p - log_q), -1))
                known = tf.where(labels >= 0)[:, 0]
                hard = tf.constant(0.0)
                if len(known):
                    rows = keras.ops.log_softmax(tf.gather(student, known))
                    hard = -tf.reduce_mean(tf.gather(rows, tf.gather(labels, known), batch_dims=1))
                return alpha * said + (1 - alpha) * hard
            """,
            embed="""
            def embed(ids, positions, segments, weights):
                x = tf.nn.embedding_lookup(weights["token"], ids)
                x = x + tf.nn.embedding_lookup(weights["position"], positions)
                x = x + tf.nn.embedding_lookup(weights["segment"], segments) if "segment" in weights else x
                centred = x - tf.reduce_mean(x, axis=-1, keepdims=True)
                y = centred / tf.sqrt(tf.reduce_mean(centred**2, axis=-1, keepdims=True) + 1e-12)
                y = y * weights["gain"] + weights["shift"]
                return tf.einsum("bte,de->btd", y, weights["up"]) + weights["up_bias"] if "up" in weights else y
            """,
        ),
    ),
    Variant(
        "in TensorFlow, with Keras's layer norm and the right epsilon",
        in_tensorflow(
            embed="""
            from keras import ops

            def embed(ids, positions, segments, weights):
                x = ops.take(weights["token"], ids, axis=0) + ops.take(weights["position"], positions, axis=0)
                if segments is not None:
                    x = x + ops.take(weights["segment"], segments, axis=0)
                y = ops.layer_normalization(x, weights["gain"], weights["shift"], epsilon=1e-12)
                return y @ ops.transpose(weights["up"]) + weights["up_bias"] if "up" in weights else y
            """,
        ),
    ),
    Variant(
        "an array of no axes, int32, quantiles of a bootstrap",
        {
            "parameters": """
            def parameters(vocab, positions, segments, layers, d, f, e=None, shared=False, pooler=True):
                wide = e or d
                total = (vocab + positions + segments + 2) * wide + (e + 1 if e else 0) * d
                total += (4 * (d + 1) * d + (d + 1) * f + (f + 1) * d + 4 * d) * (1 if shared else layers)
                return np.array(total + (d + 1) * d * pooler)
            """,
            "position-ids": """
            def position_ids(ids, pad_id):
                padding = (ids == pad_id).int()
                return torch.cumsum(1 - padding, dim=1, dtype=torch.int32) * (1 - padding) + pad_id
            """,
            "difference": """
            def difference(a, b):
                d, rng = a.mean(0) - b.mean(0), np.random.default_rng(1)
                means = [rng.choice(d, len(d)).mean() for _ in range(4000)]
                return d.mean(), np.quantile(means, 0.025), np.quantile(means, 0.975)
            """,
        },
    ),
    Variant(
        "a bootstrap of the sentences",
        {
            "difference": """
            def difference(a, b):
                d = a.mean(axis=0) - b.mean(axis=0)
                if not d.any():
                    return 0.0, 0.0, 0.0
                rng = np.random.default_rng(0)
                rows = np.concatenate([d[rng.integers(len(d), size=(2000, len(d)))].mean(axis=1) for _ in range(5)])
                half = 1.96 * rows.std() * np.sqrt(len(d) / (len(d) - 1))
                return d.mean(), d.mean() - half, d.mean() + half
            """,
        },
        why="its width is that of the formula within 5%",
    ),
]  # fmt: skip
