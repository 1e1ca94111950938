"""What came first? Self-attention against recurrence, with the same updates and each at a learning rate of its own.

A sequence holds 20 or 40 random symbols out of eight, and the question is which was the first; the answer is read off
the output at the last position. The recurrent arms are the six of `recurrence.py`. The others are one layer of
self-attention, without positions and with sinusoidal ones.

All have 32 features, at most 300 updates with 32 fresh sequences each, Adam, and gradients clipped to length one. A run
whose loss stays below a hundredth of a nat for ten updates stops. Each arm chooses its learning rate at each length by
the mean accuracy of two trials on 1,000 sequences for validation, to two decimals, and among equals by the fewest
updates. The three runs that count have other seeds and 1,000
other sequences. The lecture *Self-attention* tells what came out.
"""

import math
import time
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import course_lib.torch as in_torch
from notebooks.experiments.harness import Experiment, Record, main, of_trials, table
from notebooks.experiments.recurrence import BATCH, CELLS, LEARNED, N_SYMBOLS, TEST, VALIDATION, Reader

RECORD = Record.of(__file__)

D = 32
UPDATES = 300
LENGTHS, SEEDS = (20, 40), (0, 1, 2)
RATES, TRIAL_SEEDS = (0.003, 0.01, 0.03, 0.1, 0.3), (10, 11)  # to choose from, and by which seeds
ATTENTIVE = {"attention-bare": False, "attention": True}  # whether it knows positions


class Run(NamedTuple):
    """One training. One with a rate is a trial of it."""

    label: str
    length: int
    seed: int
    rate: float | None = None

    @property
    def name(self) -> str:
        """What the record calls this run."""
        trial = "" if self.rate is None else f"trial-{self.rate}-"
        return f"{trial}{self.label}-{self.length}-{self.seed}"

    @property
    def seconds(self) -> float:
        """Of one processor core."""
        return self.length / 20 if self.label in CELLS else 1.0


ARMS = [(label, length) for label in (*ATTENTIVE, *CELLS) for length in LENGTHS]
TRIALS = [Run(*arm, seed, rate) for arm in ARMS for rate in RATES for seed in TRIAL_SEEDS]
RUNS = table([*TRIALS, *(Run(*arm, seed) for arm in ARMS for seed in SEEDS)])


def first(rng, rows, length):
    """Sequences (B, T) and the first symbol of each (B,)."""
    x = rng.integers(N_SYMBOLS, size=(rows, length))
    return x, x[:, 0]


def counting(rows=100_000, length=20):
    """The accuracy of the best guess of one who knows how often each symbol came, and which came last."""
    x = np.random.default_rng(TEST).integers(N_SYMBOLS, size=(rows, length))
    counts = (x[:, :-1, None] == np.arange(N_SYMBOLS)).sum(axis=1)  # (rows, symbols): the last is not the first
    return counts.max(axis=1).mean() / (length - 1)


class SelfAttention(nn.Module):
    """Each token of X (B, T, d_model) asks all of them."""

    def __init__(self, d_model, d_k):
        super().__init__()
        self.w_q = nn.Linear(d_model, d_k, bias=False)
        self.w_k = nn.Linear(d_model, d_k, bias=False)
        self.w_v = nn.Linear(d_model, d_k, bias=False)

    def forward(self, x):
        """(B, T, d_model) -> contexts (B, T, d_k) and weights (B, T, T)."""
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return weights @ v, weights


class Asker(nn.Module):
    """One layer of self-attention, which the last position asks."""

    def __init__(self, positions):
        super().__init__()
        self.embedding = nn.Embedding(N_SYMBOLS, D)
        self.positions = in_torch.SinusoidalPositions(D) if positions else nn.Identity()
        self.layer = SelfAttention(D, D)
        self.answer = nn.Linear(D, N_SYMBOLS)

    def forward(self, x):
        """(B, T) -> logits (B, symbols)."""
        contexts, _ = self.layer(self.positions(self.embedding(x)))
        return self.answer(contexts[:, -1])


def train(model, length, seed, rate):
    """Train on fresh sequences; return the number of updates."""
    rng, optimiser = np.random.default_rng(seed), torch.optim.Adam(model.parameters(), lr=rate)
    updates = learned = 0
    while updates < UPDATES and learned < 10:
        x, y = (torch.tensor(a) for a in first(rng, BATCH, length))
        loss = F.cross_entropy(model(x).flatten(0, -2), y)  # a recurrent model has an axis of questions, here one
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        updates, learned = updates + 1, learned + 1 if loss.item() < LEARNED else 0
    return updates


def accuracy(model, length, seed=TEST):
    """The share of a thousand new sequences whose first symbol the model names."""
    x, y = first(np.random.default_rng(seed), 1000, length)
    with torch.no_grad():
        return float(np.mean(model(torch.tensor(x)).flatten(0, -2).argmax(-1).cpu().numpy() == y))


def measure(run: Run, record: Record) -> dict:
    """Train one network and count its right answers."""
    rate = chosen(run, record) if run.rate is None else run.rate
    torch.manual_seed(run.seed)
    model = Reader(1, D, run.label) if run.label in CELLS else Asker(ATTENTIVE[run.label])
    start = time.process_time()
    updates = train(model, run.length, run.seed, rate)
    return {
        "rate": rate,
        "accuracy": accuracy(model, run.length, TEST if run.rate is None else VALIDATION),
        "updates": updates,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "seconds": round(time.process_time() - start, 1),
        "version": torch.__version__.split("+")[0],
    }


def chosen(run: Run, record: Record) -> float:
    """The rate whose trials were best on the validation sequences; Waiting as long as there are trials to be made."""
    trials = {rate: [run._replace(rate=rate, seed=seed).name for seed in TRIAL_SEEDS] for rate in RATES}
    recorded = of_trials((name for names in trials.values() for name in names), record)

    def merit(rate):
        accuracies, updates = ([recorded[name][kind] for name in trials[rate]] for kind in ("accuracy", "updates"))
        return round(float(np.mean(accuracies)), 2), -np.mean(updates)

    return max(RATES, key=merit)


EXPERIMENT = Experiment(__doc__, RUNS, measure, RECORD, "attention")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
