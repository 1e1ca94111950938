"""Does a deep Transformer need its warm-up, or only a lower learning rate, and does the answer depend on the norm?

Four arms: the norm after each sub-layer as in the paper (post-norm) or before it (pre-norm), each with a warm-up of 100
updates and with the full rate from the first update on. Four layers on each side, 64 features, real sentences, no
dropout, no label smoothing, 200 updates. After the hundredth update all rates fall with the root of the number of
updates.

Each arm is tried at four peaks with the seed 0, and takes the one with the lowest loss on the validation pairs. It is
then trained at this peak with three other seeds, and what it reaches is told on the test pairs. A run also keeps the
course of the loss, the part of their length that the weights move in the first update, the largest gradient with its
update, and the median of the gradients after the hundredth. Data and vocabularies are those of `rnn_attention.py`. The
lecture *Training a translator* tells what came out.
"""

import math
import time
from functools import cache
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import torch

from course_lib.batches.pairs import PairBatches, encode_pairs
from course_lib.models.transformer import TransformerConfig
from course_lib.torch import Transformer, cross_entropy, fused_attention
from course_lib.torch.training.optimizers import adam
from course_lib.torch.training.translation import evaluate
from course_lib.training.teacher_forcing import teacher_forcing
from notebooks.experiments import rnn_attention as rnns
from notebooks.experiments.harness import Experiment, Record, main, of_trials, table

SIZES = {"d_model": 64, "n_layers": 4, "n_heads": 4, "d_ff": 256, "max_len": 128, "dropout": 0.0}
PEAKS = (3e-4, 1e-3, 3e-3, 1e-2)
SEEDS = (1, 2, 3)
WARMUP, UPDATES, MAX_TOKENS = 100, 200, 1200
SECONDS = 12  # about, of one processor core


class Run(NamedTuple):
    """One training of an arm; with a `peak` it is a trial of it."""

    pre_norm: bool
    warm_up: bool
    peak: float | None = None
    seed: int = 0

    @property
    def is_trial(self) -> bool:
        """Whether it serves to choose."""
        return self.peak is not None

    @property
    def arm(self) -> str:
        """What the four are called."""
        return f"{'pre' if self.pre_norm else 'post'}-norm-{'warm' if self.warm_up else 'cold'}"

    @property
    def name(self) -> str:
        """What the record calls this run."""
        return f"{self.arm}-{self.peak}-{self.seed}" if self.is_trial else f"{self.arm}-{self.seed}"

    @property
    def seconds(self) -> float:
        """About, of one processor core."""
        return SECONDS


ARMS = [Run(pre_norm, warm_up) for pre_norm in (False, True) for warm_up in (True, False)]
TRIALS = [arm._replace(peak=peak) for peak in PEAKS for arm in ARMS]
RUNS = table([*TRIALS, *(arm._replace(seed=seed) for seed in SEEDS for arm in ARMS)])


def peak_of(run: Run, record: Record) -> float:
    """That of a trial, or the best of the arm's trials; Waiting as long as there are trials to be made."""
    if run.is_trial:
        return run.peak
    found = of_trials((trial.name for trial in TRIALS if trial.arm == run.arm), record)
    return min(found.values(), key=lambda figures: figures["nll"])["peak"]


def rate(step: int, peak: float, warm_up: bool) -> float:
    """Up to the peak in a straight line, or there from the first update; then down with the root of the step."""
    n = step + 1
    rising = n / WARMUP if warm_up else 1.0
    return peak * min(rising, math.sqrt(WARMUP / max(n, WARMUP)))


def length(tensors) -> float:
    """Of all of them as one vector."""
    return torch.nn.utils.get_total_norm(list(tensors)).item()


def measure(run: Run, record: Record) -> dict:
    """Train, watch every update, and return what was measured."""
    peak, data, test = peak_of(run, record), rnns.prepared(), test_pairs()
    torch.manual_seed(run.seed)
    sizes = {**SIZES, "pre_norm": run.pre_norm}
    model = Transformer(TransformerConfig(rnns.VOCABULARY, rnns.VOCABULARY, **sizes), fused_attention)
    weights, optimizer = list(model.parameters()), adam(model)
    batches = PairBatches(data.train.sources, data.train.targets, MAX_TOKENS, seed=run.seed)
    watched, begin = [], time.process_time()
    for step, batch in enumerate(batches.steps(0, UPDATES)):
        optimizer.param_groups[0]["lr"] = rate(step, peak, run.warm_up)
        source, inputs, labels = map(torch.as_tensor, teacher_forcing(batch))
        loss = cross_entropy(model(source, inputs).logits, labels).loss
        optimizer.zero_grad()
        loss.backward()
        before = [w.detach().clone() for w in weights]
        optimizer.step()
        moved = length(w.detach() - old for w, old in zip(weights, before, strict=True)) / length(before)
        watched.append((loss.item(), length(w.grad for w in weights), moved))
    seconds = time.process_time() - begin
    held_out = {"validation": data.validation, "test": test}
    nll = {
        name: evaluate(model, PairBatches(pairs.sources, pairs.targets, 5000, seed=None)).nll
        for name, pairs in held_out.items()
    }
    losses, gradients, moves = np.array(watched).T
    return {
        "peak": peak,
        "updates": UPDATES,
        "parameters": sum(w.numel() for w in weights),
        "seconds": round(seconds, 1),
        "nll": round(nll["validation"], 4),
        "test_nll": round(nll["test"], 4),
        "loss_of_20_updates": [round(float(loss), 4) for loss in losses.reshape(-1, 20).mean(axis=1)],
        "first_move": float(f"{moves[0]:.4g}"),
        "largest_gradient": [int(gradients.argmax()) + 1, round(float(gradients.max()), 2)],
        "gradient": round(float(np.median(gradients[WARMUP:])), 3),
        "version": version("torch"),
    }


@cache
def test_pairs():
    """The test pairs in tokens."""
    data = rnns.prepared()
    return encode_pairs(data.split.test.sources, data.split.test.targets, data.spanish, data.english, rnns.MAX_LEN)


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "post-norm-cold")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
