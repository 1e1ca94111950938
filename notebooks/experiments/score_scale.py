"""Does a head of attention learn without the division by the square root of its size?

The task is a soft dictionary. A set holds 32 keys, random vectors of 64 numbers, each with one of eight labels. The
query is one of the keys, blurred by noise, and attention must return that key's label. It learns W^Q and W^K; the
values are the labels, one-hot.

The arms are heads of 4 to 256 features, with the scale and without it. Each makes 60 steps of plain gradient descent at
each of seven learning rates, with 32 fresh sets a step and three seeds; the arms share data and first weights. One more
arm parts the two effects of the scale, on the first scores and on the steps: 256 features without the scale, but with
first weights divided by the fourth root of 256, so that its first scores are those of the scaled head. Accuracy counts
on a thousand other sets. At one rate TensorFlow repeats the first seed. The lecture *Self-attention* tells what
came out.
"""

import math
import time
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

import course_lib.torch as in_torch
from notebooks.experiments.harness import Experiment, Record, main, table

RECORD = Record.of(__file__)

N_KEYS, D, N_LABELS, NOISE = 32, 64, 8, 0.3
STEPS, TEST = 60, 99  # TEST: the seed of a thousand sets
HEADS, SEEDS = (4, 16, 64, 256), (0, 1, 2)
RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


class Run(NamedTuple):
    """One training."""

    d_k: int
    scaled: bool
    rate: float
    seed: int
    framework: str = "torch"
    small_start: bool = False

    @property
    def name(self) -> str:
        """What the record calls this run."""
        kind = "scaled" if self.scaled else "small" if self.small_start else "raw"
        return f"{kind}-{self.d_k}-{self.rate}-{self.framework}-{self.seed}"

    @property
    def seconds(self) -> float:
        """Of one processor core."""
        return 0.5


ARMS = [(d_k, scaled) for d_k in HEADS for scaled in (True, False)]
RUNS = table(
    [
        *(Run(*arm, rate, seed) for arm in ARMS for rate in RATES for seed in SEEDS),
        *(Run(*arm, 1.0, 0, "tensorflow") for arm in ARMS),
        *(Run(256, False, rate, seed, small_start=True) for rate in RATES for seed in SEEDS),
    ]
)


def recall_batch(rng, n=32):
    """Queries (n, 1, D), keys (n, N_KEYS, D), values (n, N_KEYS, N_LABELS), and the right labels (n,)."""
    keys = rng.standard_normal((n, N_KEYS, D), dtype=np.float32)
    labels = rng.integers(N_LABELS, size=(n, N_KEYS))
    asked = np.arange(n), rng.integers(N_KEYS, size=n)  # which key each query is about
    query = keys[asked] + np.float32(NOISE) * rng.standard_normal((n, D), dtype=np.float32)
    return query[:, None], keys, np.eye(N_LABELS, dtype=np.float32)[labels], labels[asked]


def baselines() -> dict[str, float]:
    """The accuracy of the most frequent label of a set, and of its nearest key's label."""
    query, keys, values, labels = recall_batch(np.random.default_rng(TEST), 1000)
    nearest = ((query - keys) ** 2).sum(axis=-1).argmin(axis=-1)
    return {
        "frequent": np.mean(values.mean(axis=1).argmax(axis=-1) == labels),
        "nearest": np.mean(values[np.arange(1000), nearest].argmax(axis=-1) == labels),
    }


def start(d_k, rng, small=False):
    """W^Q and W^K before training; small ones make scores of variance one without a scale."""
    w = rng.normal(size=(2, D, d_k)).astype(np.float32) / math.sqrt(D)
    return w / np.float32(d_k**0.25) if small else w


def train_torch(d_k, scaled, rate, seed, small_start=False):
    """The accuracy after training with the scale, or without it."""
    rng = np.random.default_rng(seed)
    w_q, w_k = (torch.tensor(w, requires_grad=True) for w in start(d_k, rng, small_start))
    scale = 1 / math.sqrt(d_k) if scaled else 1.0
    optimiser = torch.optim.SGD([w_q, w_k], lr=rate)
    for _ in range(STEPS):
        query, keys, values, labels = (torch.tensor(a) for a in recall_batch(rng))
        guess = in_torch.attention(query @ w_q, keys @ w_k, values, scale=scale).output[:, 0]
        # one per cent of every prediction is uniform, so that the logarithm stays finite
        loss = F.nll_loss(torch.log(0.99 * guess + 0.01 / N_LABELS), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    query, keys, values, labels = (torch.tensor(a) for a in recall_batch(np.random.default_rng(TEST), 1000))
    with torch.no_grad():
        guess = in_torch.attention(query @ w_q, keys @ w_k, values, scale=scale).output[:, 0]
    return (guess.argmax(dim=-1) == labels).double().mean().item()


def train_tensorflow(d_k, scaled, rate, seed):
    """The accuracy after training with the scale, or without it."""
    import tensorflow as tf  # here, because it takes seconds, and PyTorch's runs do not need it

    from course_lib.tensorflow import attention

    rng = np.random.default_rng(seed)
    w_q, w_k = (tf.Variable(w) for w in start(d_k, rng))
    scale = 1 / math.sqrt(d_k) if scaled else 1.0

    @tf.function
    def descend(query, keys, values, labels):
        with tf.GradientTape() as tape:
            guess = attention(query @ w_q, keys @ w_k, values, scale=scale).output[:, 0]
            right = tf.gather(guess, labels, axis=1, batch_dims=1)
            loss = -tf.reduce_mean(tf.math.log(0.99 * right + 0.01 / N_LABELS))
        for w, gradient in zip((w_q, w_k), tape.gradient(loss, (w_q, w_k)), strict=True):
            w.assign_sub(rate * gradient)

    for _ in range(STEPS):
        descend(*(tf.constant(a) for a in recall_batch(rng)))
    query, keys, values, labels = recall_batch(np.random.default_rng(TEST), 1000)
    guess = attention(query @ w_q, keys @ w_k, values, scale=scale).output[:, 0]
    return float(np.mean(guess.numpy().argmax(axis=-1) == labels))


def measure(run: Run, record: Record) -> dict:
    """Train one head and count its right answers."""
    begin = time.process_time()
    if run.framework == "torch":
        accuracy = train_torch(run.d_k, run.scaled, run.rate, run.seed, run.small_start)
    else:
        accuracy = train_tensorflow(run.d_k, run.scaled, run.rate, run.seed)
    return {"accuracy": accuracy, "seconds": round(time.process_time() - begin, 1)}


EXPERIMENT = Experiment(__doc__, RUNS, measure, RECORD, "scaled-256")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
