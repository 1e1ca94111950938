"""What do the ways around the square of attention cost, and what do they give up?

Cost: `tests/benchmarks/long_inputs.py` measures the time and the memory of five attention functions at 256 to 16,384
tokens, forward and backward, one thread, by the processor's clock, each figure in a process of its own. A length at
which six copies of the scores would take more than 8 GiB is left out (null). TensorFlow is measured at every other
length. Its memory includes its tracing, some ten MiB; PyTorch's under some ten MiB says little, since a call finds
again what an earlier one has left.

What is given up: associative recall (`course_lib.data.associative_recall`, the task of Arora et al. 2023). A sequence
of 128 tokens begins with 2 to 32 pairs of a key and a value; at 24 later tokens it asks for the value of a key. Each
arm is one layer with one head of full, windowed or linear attention, in a model that is otherwise the same: 64
features, and every token also brings the one before it, by a table of its own, so that a value knows its key without
a layer more. Arms differ in the size of a head, d_head, which for linear attention is the size of its state,
d_head (d_head + 1) numbers; full attention with heads of 8, 4 and 2 says what is due to these alone. Two arms split
that size: linear attention with 16 features of keys and 64 of values, and with 64 and 16. Their states hold about as
many numbers as those of a head of 32. One more makes 64 features of 16 numbers of queries and keys, by a fixed random
matrix: small projections, and a state as large as that of a head of 64. Arms called "x then y" have two layers, one
of each kind; one of them has trials alone.

A batch is 32 new sequences with one number of pairs, drawn anew for each, so that no sequence is learned by heart and
one model is measured at all numbers. Each arm has the rate that was best of three, by the share of right answers on
validation sequences and a fourth seed; full attention with heads of 4 and 2 and the arm with a random matrix tried a
fourth rate, above these. Then three seeds train with it, 600 updates each. Linear attention with heads of 16 also gets
four times as many, since a failure may be a lack of patience, and so does one seed of few keys. They are measured on
200 test sequences of each number of pairs; those of windowed attention and of two layers also apart for the queries
that a table with the reach of one window can answer and for the others. The lecture *Attention for long inputs* tells
what came out.
"""

import time
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from course_lib.data import associative_recall
from course_lib.models.blocks import AttentionOutput, BlockConfig
from course_lib.torch import fused_attention, linear_attention, windowed
from course_lib.torch.decoder import Decoder
from notebooks.experiments.harness import Experiment, Record, main, of_trials, table

LENGTHS = (256, 512, 1024, 2048, 4096, 8192, 16384)
TIMED = ("formula", "fused", "by blocks", "windowed", "linear")

LENGTH, QUERIES, KEYS, VALUES, WINDOW, D_MODEL = 128, 24, 64, 64, 32, 64
PAIRS = (2, 4, 8, 16, 32)
BATCH, UPDATES, WARMUP, TESTED = 32, 600, 50, 200
PEAKS, SEEDS, TRIAL_SEED = (1e-3, 3e-3, 1e-2), (1, 2, 3), 0
ARMS = (("full", 16), ("full", 8), ("windowed", 16), ("linear", 64), ("linear", 32), ("linear", 16), ("linear", 8))
SPLIT = (("few keys", 64), ("few values", 64))
CONTROLS = (("full", 4), ("full", 2), ("spread keys", 64))
STACKS = (("windowed then linear", 16), ("linear then linear", 16), ("windowed then windowed", 16))
SWAPPED = ("linear then windowed", 16)  # tried and no more
EVERY = (*ARMS, *SPLIT, *CONTROLS, *STACKS)
HIGHER = 3e-2  # for the controls, some of which learn best with the highest of the three
FEW = 16


def linear_of(d_keys: int, d_values: int):
    """Linear attention that uses so many features of queries and keys, and of values, and leaves the others alone."""

    def attend(q, k, v, *args, **kwargs):
        q, k, kept = q[..., :d_keys], k[..., :d_keys], v[..., :d_values]
        output = linear_attention(q, k, kept, *args, **kwargs).output
        return AttentionOutput(F.pad(output, (0, v.shape[-1] - kept.shape[-1])), None)

    return attend


def mixed(d_keys: int, d_features: int) -> torch.Tensor:
    """A fixed random matrix that leaves numbers as large as they are, (d_keys, d_features)."""
    return torch.randn(d_keys, d_features, generator=torch.Generator().manual_seed(0)) / d_keys**0.5


def linear_spread(d_keys: int, d_features: int):
    """Linear attention that uses so many numbers of queries and keys, and spreads them over so many features."""
    matrix = mixed(d_keys, d_features)

    def attend(q, k, v, *args, **kwargs):
        q, k = (x[..., :d_keys] @ matrix for x in (q, k))
        return linear_attention(q, k, v, *args, **kwargs)

    return attend


ATTENTION = {
    "full": fused_attention,
    "windowed": windowed(WINDOW),
    "linear": linear_attention,
    "few keys": linear_of(FEW, D_MODEL),
    "few values": linear_of(D_MODEL, FEW),
    "spread keys": linear_spread(FEW, D_MODEL),
}


class Timed(NamedTuple):
    """The time and memory of one attention function of a framework."""

    framework: str
    function: str

    @property
    def name(self) -> str:
        """What the record calls this run."""
        return f"cost {self.framework} {self.function}"

    @property
    def lengths(self) -> tuple[int, ...]:
        """At which it is measured."""
        return LENGTHS if self.framework == "torch" else LENGTHS[::2]

    @property
    def seconds(self) -> float:
        """Of one processor core, about."""
        return 90.0


class Run(NamedTuple):
    """One training; with a `peak` of the rate it is a trial of it, without one it takes the best of the trials."""

    attention: str
    d_head: int
    seed: int
    peak: float | None = None
    updates: int = UPDATES

    @property
    def is_trial(self) -> bool:
        """Whether it serves to choose."""
        return self.peak is not None

    @property
    def name(self) -> str:
        """What the record calls this run."""
        arm = f"{self.attention} {self.d_head}{'' if self.updates == UPDATES else ' patient'}"
        return f"{arm} trial {self.peak}" if self.is_trial else f"{arm} {self.seed}"

    @property
    def seconds(self) -> float:
        """Of one processor core, about."""
        return 20.0 * self.updates / UPDATES


TRIALS = [
    *(Run(*arm, TRIAL_SEED, peak) for arm in (*EVERY, SWAPPED) for peak in PEAKS),
    *(Run(*arm, TRIAL_SEED, HIGHER) for arm in CONTROLS),
]
RUNS = table(
    [
        *TRIALS,
        *(Run(*arm, seed) for seed in SEEDS for arm in EVERY),
        *(Timed(framework, function) for framework in ("torch", "tensorflow") for function in TIMED),
        *(Run("linear", 16, seed, updates=4 * UPDATES) for seed in SEEDS),
        Run("few keys", 64, SEEDS[0], updates=4 * UPDATES),
    ]
)


class Recaller(nn.Module):
    """Tokens, each with the one before it; causal layers that normalise first; the token that is asked for."""

    def __init__(self, attention, d_head: int, n_layers: int = 1, n_heads: int = 1, n_kv_heads: int | None = None):
        super().__init__()
        n_tokens = 1 + KEYS + VALUES
        self.token, self.before = (nn.Embedding(n_tokens, D_MODEL) for _ in range(2))
        block = BlockConfig(
            D_MODEL, n_heads, 2 * D_MODEL, activation="gelu", pre_norm=True, d_head=d_head, n_kv_heads=n_kv_heads
        )
        self.decoder = Decoder(n_layers, block, attention, cross_attention=False)
        self.out = nn.Linear(D_MODEL, n_tokens)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.1)

    def forward(self, ids, asked):
        """ids (B, T), and where something is asked, boolean (B, T) with N True -> logits (N, V)."""
        x = self.token(ids) + F.pad(self.before(ids[:, :-1]), (0, 0, 1, 0))
        return self.out(self.decoder(x, None, None, None, causal=True).last_hidden[asked])


def stacked(kinds: str, d_head: int) -> Recaller:
    """A model with a layer of each kind, such as "linear" or "windowed then linear"."""
    attentions = [ATTENTION[kind] for kind in kinds.split(" then ")]
    model = Recaller(attentions[0], d_head, len(attentions))
    for layer, attention in zip(model.decoder.layers, attentions, strict=True):
        layer.self_attention.attention = attention
    return model


def drawn(n: int, n_pairs: int, rng: np.random.Generator, length: int = LENGTH) -> associative_recall.Recall:
    """n sequences with so many pairs."""
    return associative_recall.draw(n, length, n_pairs, QUERIES, KEYS, VALUES, rng)


def tested(kind: str, n_pairs: int) -> associative_recall.Recall:
    """The sequences on which we choose ("validation") and on which we report ("test")."""
    return drawn(TESTED, n_pairs, np.random.default_rng([1000 if kind == "validation" else 2000, n_pairs]))


def answers(model: Recaller, ids) -> np.ndarray:
    """What a model says at each token of ids (N, T)."""
    with torch.no_grad():
        everywhere = torch.ones(ids.shape, dtype=torch.bool)
        return model(torch.from_numpy(ids), everywhere).argmax(-1).view(ids.shape).numpy()


def reach(attention: str) -> int | None:
    """How many tokens back a key may stand that one window reaches: a value brings its key; None without a window.

    Of two layers the answers are counted apart by the same reach, whatever their kinds.
    """
    return WINDOW + 1 if attention == "windowed" or " then " in attention else None


def rate(step: int, peak: float, updates: int) -> float:
    """Up over the first updates, level for half of all, and down to 0."""
    return peak * min(1.0, (step + 1) / WARMUP, 2 * (updates - step) / updates)


def train(run: Run, peak: float) -> tuple[Recaller, list[float]]:
    """A trained model, and the loss of each update in nats."""
    torch.manual_seed(run.seed)
    return fitted(stacked(run.attention, run.d_head), np.random.default_rng(run.seed), peak, run.updates)


def fitted(model: Recaller, rng, peak: float, updates: int) -> tuple[Recaller, list[float]]:
    """The model, trained with so many new batches, and the loss of each update in nats."""
    optimiser = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    losses = []
    for step in range(updates):
        ids, labels = map(torch.from_numpy, drawn(BATCH, int(rng.choice(PAIRS)), rng))
        asked = labels != associative_recall.BLANK
        loss = F.cross_entropy(model(ids, asked), labels[asked])
        optimiser.param_groups[0]["lr"] = rate(step, peak, updates)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
    return model.eval(), losses


def measure(run: Run | Timed, record: Record) -> dict:
    """Time a function, or train a model and return its share of right answers, pairs by pairs."""
    if isinstance(run, Timed):
        return cost(run)
    peak = run.peak if run.is_trial else chosen(run, record)
    begin = time.process_time()
    model, losses = train(run, peak)
    seconds, kind = time.process_time() - begin, "validation" if run.is_trial else "test"
    right, near, far = [], [], []
    for n_pairs in PAIRS:
        ids, labels = tested(kind, n_pairs)
        found = associative_recall.recalled(answers(model, ids), labels)
        right.append(round(float(found.mean()), 4))
        if reach(run.attention) is not None:
            seen = associative_recall.recalled(associative_recall.looked_up(ids, KEYS, reach(run.attention)), labels)
            near.append(round(float(found[seen].mean()), 4))
            far.append(round(float(found[~seen].mean()), 4))
    return {
        "peak": peak,
        "parameters": sum(value.numel() for value in model.parameters()),
        "right": right,
        "right_within_reach": near,
        "right_beyond": far,
        "loss_of_30_updates": np.reshape(losses[: run.updates // 30 * 30], (-1, 30)).mean(1).round(3).tolist(),
        "seconds": round(seconds, 1),
        "version": version("torch"),
    }


def cost(run: Timed) -> dict:
    """Seconds a call, and the bytes by which it raised the memory, at each length; None where it would not fit."""
    from tests.benchmarks import long_inputs  # here, because no lecture that reads the record needs it

    begin, found = time.perf_counter(), [long_inputs.alone(run.framework, run.function, n) for n in run.lengths]
    return {
        "lengths": list(run.lengths),
        "milliseconds": [one and round(1e3 * one["seconds"], 2) for one in found],
        "mebibytes": [one and round(one["bytes"] / 2**20, 1) for one in found],
        "seconds": round(time.perf_counter() - begin, 1),
        "version": version(run.framework),
    }


def chosen(run: Run, record: Record) -> float:
    """The peak of the arm's best trial, by the mean share of right answers; the lower one of two that are level."""
    arm = (run.attention, run.d_head)
    trials = of_trials((trial.name for trial in TRIALS if trial[:2] == arm), record).values()
    return max(trials, key=lambda figures: (sum(figures["right"]), -figures["peak"]))["peak"]


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "linear 16")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
