"""Right solutions: in TensorFlow, and in other styles of both frameworks. None may lose a point."""

from tests.assignments.variants import Variant

TENSORFLOW = {
    "framework": "import tensorflow as tf",
    "positions": """
    def positions(length, d_model):
        powers = 10000 ** (tf.range(0, d_model, 2, dtype=tf.float32) / d_model)
        angles = tf.range(length, dtype=tf.float32)[:, None] / powers
        return tf.reshape(tf.stack([tf.sin(angles), tf.cos(angles)], axis=-1), (length, d_model))
    """,
    "masks": """
    def source_mask(ids, pad_id):
        return tf.not_equal(ids, pad_id)[:, None, :]

    def target_mask(ids, pad_id):
        places = tf.range(ids.shape[1])
        return source_mask(ids, pad_id) & (places <= places[:, None])
    """,
    "add-and-norm": """
    def add_and_norm(x, sublayer, gain, bias):
        total = x + sublayer
        mean, variance = tf.nn.moments(total, axes=[-1], keepdims=True)
        return (total - mean) * tf.math.rsqrt(variance + 1e-5) * gain + bias
    """,
    "feed-forward": """
    def feed_forward(x, W1, b1, W2, b2):
        return tf.nn.relu(x @ tf.transpose(W1) + b1) @ tf.transpose(W2) + b2
    """,
    "greedy": """
    def greedy(decode, source, start_id, end_id, max_len):
        target = tf.cast(tf.fill([source.shape[0], 1], start_id), tf.int64)
        for _ in range(max_len):
            ids = tf.argmax(decode(source, target)[:, -1], axis=-1)
            target = tf.concat([target, ids[:, None]], axis=1)
        rows = target[:, 1:].numpy().tolist()
        return [row[: row.index(end_id) + 1] if end_id in row else row for row in rows]
    """,
}


def in_tensorflow(**cells: str) -> dict[str, str]:
    """The solution in TensorFlow with other cells, by their names with `_` for `-`."""
    return TENSORFLOW | {name.replace("_", "-"): code for name, code in cells.items()}


VARIANTS = [
    Variant("the reference, in PyTorch", {}),
    Variant("in TensorFlow", TENSORFLOW, why="the layers of the reference name neither framework"),
    Variant("PyTorch, with TensorFlow imported as well", {"framework": "import torch\nimport tensorflow as tf"}),
    Variant(
        "einsum, and functions of torch.nn.functional",
        {
            "framework": "from torch.nn import functional as F\nimport torch",
            "add-and-norm": """
            def add_and_norm(x, sublayer, gain, bias):
                return F.layer_norm(x + sublayer, gain.shape, gain, bias, eps=1e-5)
            """,
            "feed-forward": """
            def feed_forward(x, W1, b1, W2, b2):
                units = F.relu(torch.einsum("...d,fd->...f", x, W1) + b1)
                return torch.einsum("...f,df->...d", units, W2) + b2
            """,
            "encoder-layer": """
            def encoder_layer(x, mask, attention, w):
                x = F.layer_norm(x + attention(x, x, mask), x.shape[-1:], w["gain1"], w["bias1"])
                fed = F.linear(F.relu(F.linear(x, w["W1"], w["b1"])), w["W2"], w["b2"])
                return F.layer_norm(x + fed, x.shape[-1:], w["gain2"], w["bias2"])
            """,
        },
        why="a layer need not call the earlier functions",
    ),
    Variant(
        "loops over positions, sentences and tokens",
        {
            "positions": """
            import math
            def positions(length, d_model):
                table = torch.zeros(length, d_model)
                for pos in range(length):
                    for i in range(d_model // 2):
                        angle = pos / 10000 ** (2 * i / d_model)
                        table[pos, 2 * i], table[pos, 2 * i + 1] = math.sin(angle), math.cos(angle)
                return table
            """,
            "masks": """
            def source_mask(ids, pad_id):
                return torch.tensor([[[int(token) != pad_id for token in row]] for row in ids])
            def target_mask(ids, pad_id):
                def seen(row, q):
                    return [k <= q and int(row[k]) != pad_id for k in range(len(row))]
                return torch.tensor([[seen(row, q) for q in range(len(row))] for row in ids])
            """,
            "add-and-norm": """
            def add_and_norm(x, sublayer, gain, bias):
                def one(z):
                    z = z - z.sum() / len(z)
                    return gain * z / ((z * z).sum() / len(z) + 1e-5) ** 0.5 + bias
                return torch.stack([torch.stack([one(z) for z in row]) for row in x + sublayer])
            """,
            "feed-forward": """
            def feed_forward(x, W1, b1, W2, b2):
                rows = []
                for row in x:
                    rows.append(torch.stack([W2 @ torch.clamp(W1 @ token + b1, min=0) + b2 for token in row]))
                return torch.stack(rows)
            """,
            "learning-rate": """
            def learning_rate(step, d_model, warmup):
                if step < warmup:
                    return step / (warmup * (d_model * warmup) ** 0.5)
                return 1 / (d_model * step) ** 0.5
            """,
            "greedy": """
            def greedy(decode, source, start_id, end_id, max_len):
                written = []
                for b in range(len(source)):
                    row = []
                    while len(row) < max_len and (not row or row[-1] != end_id):
                        target = torch.tensor([[start_id, *row]] * len(source))
                        row.append(int(decode(source, target)[b, -1].argmax()))
                    written.append(row)
                return written
            """,
        },
        why="slow, and right",
    ),
    Variant(
        "interleaved assignment, masks by tril and unsqueeze",
        {
            "positions": """
            def positions(length, d_model):
                table = torch.empty(length, d_model)
                rates = torch.exp(torch.arange(0, d_model, 2) * (-torch.log(torch.tensor(10000.0)) / d_model))
                table[:, 0::2] = torch.sin(torch.arange(length).unsqueeze(1) * rates)
                table[:, 1::2] = torch.cos(torch.arange(length).unsqueeze(1) * rates)
                return table
            """,
            "masks": """
            def source_mask(ids, pad_id):
                return ids.ne(pad_id).unsqueeze(-2)
            def target_mask(ids, pad_id):
                T = ids.size(-1)
                return torch.tril(ids.new_ones(T, T)).bool().logical_and(source_mask(ids, pad_id))
            """,
        },
        why="the annotated Transformer's way",
    ),
    Variant(
        "double precision inside",
        {
            "positions": """
            def positions(length, d_model):
                angles = np.arange(length)[:, None] / 10000.0 ** (np.arange(d_model) // 2 * 2 / d_model)
                waves = np.where(np.arange(d_model) % 2, np.cos(angles), np.sin(angles))
                return torch.tensor(waves, dtype=torch.float32)
            """,
            "add-and-norm": """
            def add_and_norm(x, sublayer, gain, bias):
                total = x.double() + sublayer.double()
                variance, mean = torch.var_mean(total, dim=-1, correction=0, keepdim=True)
                return ((total - mean) / (variance + 1e-5).sqrt() * gain + bias).float()
            """,
            "feed-forward": """
            def feed_forward(x, W1, b1, W2, b2):
                x, W1, b1, W2, b2 = (a.to(torch.float64) for a in (x, W1, b1, W2, b2))
                return (torch.relu(x @ W1.mT + b1) @ W2.mT + b2).to(torch.float32)
            """,
            "learning-rate": """
            def learning_rate(step, d_model, warmup):
                return np.minimum(step ** np.float64(-0.5), step * warmup ** np.float64(-1.5)) / np.sqrt(d_model)
            """,
        },
    ),
    Variant(
        "helpers called score, heads, mask, tensors, check, right",
        {
            "masks": """
            def score(ids): return torch.arange(ids.shape[1])
            def check(*given): return expect(*given)
            def expect(*given): return test
            test = Tensors = Slip = Score = expect_array = expect_shape = expect_unchanged = np = check
            def heads(a): return a[:, None]
            def source_mask(ids, pad_id): return heads(ids != pad_id)
            def target_mask(ids, pad_id): return heads(ids != pad_id) & (heads(score(ids)) >= score(ids))
            """,
            "add-and-norm": """
            def tensors(z): return z - z.mean(-1, keepdim=True)
            def mask(z): return torch.sqrt((z * z).mean(-1, keepdim=True) + 1e-5)
            def add_and_norm(x, sublayer, gain, bias):
                right = tensors(x + sublayer)
                return right / mask(right) * gain + bias
            """,
            "decoder-layer": """
            def hidden_norm(x, sublayer, w, which):
                return add_and_norm(x, sublayer, gain=w["gain" + which], bias=w["bias" + which])
            def decoder_layer(y, memory, target_mask, source_mask, self_attention, cross_attention, w):
                y = hidden_norm(y, self_attention(queries=y, memory=y, mask=target_mask), w, "1")
                y = hidden_norm(y, cross_attention(y, memory, mask=source_mask), w, "2")
                fed = feed_forward(y, **{name: w[name] for name in ("W1", "b1", "W2", "b2")})
                return hidden_norm(y, fed, w, "3")
            """,
            "greedy": """
            def greedy(decode, source, start_id, end_id, max_len):
                right, going = [[] for _ in source], set(range(len(source)))
                target = source.new_full((len(source), 1), start_id)
                while going and target.shape[1] <= max_len:
                    ids = decode(source, target).argmax(-1)[:, -1:]
                    target = torch.cat((target, ids), 1)
                    for b in sorted(going):
                        right[b].append(ids[b].item())
                        if right[b][-1] == end_id:
                            going.remove(b)
                return right
            """,
        },
        why="no cell of the tests may hide a student's own names",
    ),
    Variant(
        "builtins that have another meaning in the notebook",
        {
            "framework": """
            import torch
            abs = all = any = bool = dict = enumerate = float = int = isinstance = len = list = map = max = None
            set = sorted = str = sum = tuple = type = zip = None
            """
        },
        why="the tests have builtins of their own",
    ),
    Variant(
        "all of NumPy's names, in TensorFlow",
        in_tensorflow(
            framework="from numpy import *\nimport tensorflow as tf",
            learning_rate="""
            def learning_rate(step, d_model, warmup):
                return min([step**-0.5, step * warmup**-1.5]) / sqrt(d_model)
            """,
        ),
        why="the tests have builtins of their own",
    ),
    Variant(
        "one sentence at a time is decoded, with names for the arguments",
        {
            "greedy": """
            def greedy(decode, source, start_id, end_id, max_len):
                written = []
                for b in range(len(source)):
                    target = torch.full((1, 1), start_id)
                    while target.shape[1] <= max_len and (target.shape[1] == 1 or target[0, -1] != end_id):
                        best = decode(source=source[b : b + 1], target=target)[:, -1:].argmax(-1)
                        target = torch.cat([target, best], 1)
                    written.append(target[0, 1:].tolist())
                return written
            """
        },
        why="decode takes a part of the batch, too",
    ),
    Variant(
        "sentences that have ended are filled with 0, and cut",
        {
            "greedy": """
            def greedy(decode, source, start_id, end_id, max_len):
                target = torch.full((len(source), 1), start_id)
                going, lengths = torch.ones(len(source), dtype=bool), torch.zeros(len(source), dtype=torch.int64)
                while going.any() and target.shape[1] <= max_len:
                    ids = torch.where(going, decode(source, target)[:, -1].argmax(-1), 0)
                    target = torch.cat([target, ids[:, None]], 1)
                    lengths += going
                    going &= ids != end_id
                return [row[1 : 1 + n] for row, n in zip(target.tolist(), lengths.tolist())]
            """
        },
        why="what follows an end is not returned",
    ),
    Variant(
        "sentences that have ended leave the batch",
        {
            "greedy": """
            def greedy(decode, source, start_id, end_id, max_len):
                out, rows = [[] for _ in source], list(range(len(source)))
                for _ in range(max_len):
                    if not rows:
                        break
                    target = torch.tensor([[start_id] + out[r] for r in rows])
                    for r, token in zip(rows, decode(source[rows], target)[:, -1].argmax(-1).tolist()):
                        out[r].append(token)
                    rows = [r for r in rows if out[r][-1] != end_id]
                return out
            """
        },
        why="decode takes a part of the batch, too",
    ),
    Variant(
        "ended sentences leave the batch, in TensorFlow, until none is left",
        in_tensorflow(
            greedy="""
            def greedy(decode, source, start_id, end_id, max_len):
                rows = np.arange(len(source))
                out = [[] for _ in rows]
                target = tf.fill((len(rows), 1), tf.constant(start_id, tf.int64))
                for _ in range(max_len):
                    ids = tf.argmax(decode(source=tf.gather(source, rows), target=target)[:, -1], axis=-1)
                    for row, token in zip(rows, ids.numpy()):
                        out[row].append(int(token))
                    target = tf.concat([target, ids[:, None]], axis=1)
                    going = np.flatnonzero(ids.numpy() != end_id)
                    rows, target = rows[going], tf.gather(target, going)
                return out
            """,
        ),
        why="decode takes any part of the batch, even none",
    ),
    Variant(
        "attention's answer changed in place, a view as the mask",
        {
            "encoder-layer": """
            def encoder_layer(x, mask, attention, w):
                a = attention(x, memory=x, mask=mask.expand(-1, x.shape[1], -1))
                a += x
                h = add_and_norm(a, torch.zeros_like(a), w["gain1"], w["bias1"])
                return add_and_norm(h, feed_forward(h, w["W1"], w["b1"], w["W2"], w["b2"]), w["gain2"], w["bias2"])
            """
        },
    ),
    Variant(
        "prints, warns and writes from a thread",
        {
            "encoder-layer": """
            import sys, threading, time, warnings
            def _chatter():
                while True:
                    print("still here", file=sys.stderr)
                    time.sleep(0.005)
            threading.Thread(target=_chatter, daemon=True).start()
            def encoder_layer(x, mask, attention, w):
                print("shapes", x.shape, mask.shape)
                warnings.warn("careful")
                x = add_and_norm(x, attention(x, x, mask), w["gain1"], w["bias1"])
                fed = feed_forward(x, *(w[n] for n in ("W1", "b1", "W2", "b2")))
                return add_and_norm(x, fed, w["gain2"], w["bias2"])
            """
        },
        why="debugging output is no fault",
    ),
    Variant(
        "modules and classes",
        {
            "add-and-norm": """
            class AddAndNorm(torch.nn.Module):
                def forward(self, x, sublayer, gain, bias):
                    return torch.nn.functional.layer_norm(x + sublayer, x.shape[-1:]) * gain + bias
            add_and_norm = AddAndNorm()
            """,
            "feed-forward": """
            class FeedForward:
                def __call__(self, x, W1, b1, W2, b2):
                    net = lambda x: torch.nn.functional.linear(torch.nn.functional.linear(x, W1, b1).relu(), W2, b2)
                    return net(x)
            feed_forward = FeedForward()
            """,
            "encoder-layer": """
            class Encoder(torch.nn.Module):
                def __init__(self, attention, w):
                    super().__init__()
                    self.attention, self.w = attention, w
                def sub(self, x, y, i):
                    return add_and_norm(x, y, self.w[f"gain{i}"], self.w[f"bias{i}"])
                def forward(self, x, mask):
                    x = self.sub(x, self.attention(x, x, mask), 1)
                    return self.sub(x, feed_forward(x, self.w["W1"], self.w["b1"], self.w["W2"], self.w["b2"]), 2)
            def encoder_layer(x, mask, attention, w):
                return Encoder(attention, w)(x, mask)
            """,
        },
    ),
    Variant(
        "masks made as large as they are used",
        {
            "decoder-layer": """
            def decoder_layer(y, memory, target_mask, source_mask, self_attention, cross_attention, w):
                def norm(x, sublayer, i):
                    return add_and_norm(x, sublayer, w[f"gain{i}"], w[f"bias{i}"])
                wide = source_mask.expand(-1, y.shape[1], -1)
                one = norm(y, self_attention(y, y, target_mask), 1)
                two = norm(one, cross_attention(one, memory, wide), 2)
                return norm(two, feed_forward(two, w["W1"], w["b1"], w["W2"], w["b2"]), 3)
            """
        },
        why="a mask that is the same for every query may be repeated",
    ),
    Variant(
        "Keras's operations",
        in_tensorflow(
            framework="import keras\nimport tensorflow as tf",
            add_and_norm="""
            def add_and_norm(x, sublayer, gain, bias):
                total = keras.ops.add(x, sublayer)
                mean, variance = keras.ops.moments(total, axes=-1, keepdims=True)
                return (total - mean) / keras.ops.sqrt(variance + 1e-5) * gain + bias
            """,
            feed_forward="""
            def feed_forward(x, W1, b1, W2, b2):
                units = keras.activations.relu(keras.ops.einsum("bsd,fd->bsf", x, W1) + b1)
                return keras.ops.einsum("bsf,df->bsd", units, W2) + b2
            """,
        ),
    ),
    Variant(
        "TensorFlow's functions, some of them compiled",
        in_tensorflow(
            masks="""
            def source_mask(ids, pad_id):
                return tf.expand_dims(tf.math.not_equal(ids, tf.constant(pad_id, tf.int64)), 1)
            def target_mask(ids, pad_id):
                T = tf.shape(ids)[1]
                causal = tf.cast(tf.linalg.band_part(tf.ones((T, T)), -1, 0), tf.bool)
                return tf.logical_and(source_mask(ids, pad_id), causal)
            """,
            add_and_norm="""
            @tf.function
            def add_and_norm(x, sublayer, gain, bias):
                z = x + sublayer
                z -= tf.reduce_mean(z, axis=-1, keepdims=True)
                return z / tf.sqrt(tf.reduce_mean(tf.square(z), axis=-1, keepdims=True) + 1e-5) * gain + bias
            """,
            feed_forward="""
            def feed_forward(x, W1, b1, W2, b2):
                units = tf.maximum(tf.matmul(x, W1, transpose_b=True) + b1, 0.0)
                return tf.matmul(units, W2, transpose_b=True) + b2
            """,
            greedy="""
            def greedy(decode, source, start_id, end_id, max_len):
                rows = [[start_id] for _ in range(len(source))]
                for _ in range(max_len):
                    logits = decode(source, tf.constant(rows, dtype=tf.int64))
                    rows = [row + [int(i)] for row, i in zip(rows, tf.argmax(logits[:, -1], axis=1))]
                rows = [row[1:] for row in rows]
                return [row[: row.index(end_id) + 1] if end_id in row else row for row in rows]
            """,
        ),
    ),
]
