"""What do heads that share their keys and values save, what do they give up, and what becomes of recall as texts grow?

Saved: `tests/benchmarks/long_inputs.py` measures fused attention with four heads of 64 and 4, 2 or 1 sets of keys and
values at 256 to 16,384 tokens, one thread, by the processor's clock, each figure in a process of its own: one more
token ("write"), and all of a text forward and backward ("train"). All calls of a figure read the same keys and values,
which up to some length a cache holds. The mebibytes are those by which a call raised the memory, beside its inputs;
what keys and values take follows from their number.

Given up: associative recall, as in `long_inputs.py`, whose model, data and updates these are. "4 x 2 in 1" are four
heads of 2 features that share one set of keys and values. Four heads of 8 have features to spare; one head of 2 is
mostly wrong (`long_inputs.py`). Rivals keep as many numbers of a token in other shapes: "2 x 4 in 2" as many as "4 x 8
in 1" and "4 x 2 in 4", "2 x 2 in 2" and "1 x 4 in 1" as many as "4 x 2 in 2", "1 x 2 in 1" as many as "4 x 2 in 1". The
rate is the best of four, for one head the one that `long_inputs.py` has chosen. All with heads of 2 get four times the
updates, too, since a failure may be a lack of patience, with the better of two rates.

By the length: four heads of 8 that share one set, and full, windowed and linear attention with one head of 16 or 64,
all trained at 128 tokens, answer for 16 pairs in 40 sequences of each of 128 to 16,384 tokens, blank but for the pairs
and the queries. All seeds are three. The lecture *Attention for long inputs* tells what came out.
"""

import time
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import torch

from course_lib.data import associative_recall
from notebooks.experiments import long_inputs
from notebooks.experiments.harness import Experiment, Record, main, of_trials, table
from notebooks.experiments.long_inputs import ATTENTION, HIGHER, LENGTH, LENGTHS, PAIRS, PEAKS, UPDATES, Recaller

TESTED_PAIRS, TESTED = 16, 40
PATIENT = 4 * UPDATES
SETS = (4, 2, 1)
CALLS = {"write": 1001, "train": 3}


class Arm(NamedTuple):
    """A kind of attention, so many heads of so many features, and their sets of keys and values."""

    attention: str
    n_heads: int
    d_head: int
    sets: int

    @property
    def name(self) -> str:
        """Such as "full 4 x 8 in 1"."""
        return f"{self.attention} {self.n_heads} x {self.d_head} in {self.sets}"


WIDE = [Arm("full", 4, 8, sets) for sets in SETS]
NARROW = [Arm("full", 4, 2, sets) for sets in SETS]
RIVALS = [Arm("full", 2, 4, 2), Arm("full", 2, 2, 2), Arm("full", 1, 4, 1), Arm("full", 1, 2, 1)]
ONE_HEAD = [Arm("full", 1, 16, 1), Arm("windowed", 1, 16, 1), Arm("linear", 1, 64, 1), Arm("linear", 1, 16, 1)]
BY_LENGTH = [WIDE[-1], *ONE_HEAD]
SLOW = [*NARROW, RIVALS[1], RIVALS[3]]
CHOSEN_HERE = [*WIDE, *NARROW, *RIVALS[:2]]  # the rates of one head are those that `long_inputs.py` has chosen


class Timed(NamedTuple):
    """The time and memory of attention whose heads share their keys and values."""

    task: str
    sets: int

    @property
    def name(self) -> str:
        """What the record calls this run."""
        return f"cost {self.task} {self.sets}"

    @property
    def seconds(self) -> float:
        """Of one processor core, about."""
        return 30.0 if self.task == "write" else 90.0


class Run(NamedTuple):
    """One training; with a `peak` of the rate it is a trial of it, without one it takes the best of the trials."""

    attention: str
    n_heads: int
    d_head: int
    sets: int
    seed: int
    peak: float | None = None
    updates: int = UPDATES

    @property
    def arm(self) -> Arm:
        """What is trained."""
        return Arm(*self[:4])

    @property
    def is_trial(self) -> bool:
        """Whether it serves to choose."""
        return self.peak is not None

    @property
    def name(self) -> str:
        """What the record calls this run."""
        patient = " patient" if self.updates == PATIENT else ""
        return f"{self.arm.name}{patient} " + (f"trial {self.peak}" if self.is_trial else f"seed {self.seed}")

    @property
    def seconds(self) -> float:
        """Of one processor core, about."""
        return 100.0 if self.arm in BY_LENGTH and not self.is_trial else 25.0 * self.updates / UPDATES


TRIALS = [
    *(Run(*arm, long_inputs.TRIAL_SEED, peak) for arm in CHOSEN_HERE for peak in (*PEAKS, HIGHER)),
    *(Run(*arm, long_inputs.TRIAL_SEED, peak, PATIENT) for arm in SLOW for peak in PEAKS[1:]),
]
RUNS = table(
    [
        *TRIALS,
        *(Run(*arm, seed) for seed in long_inputs.SEEDS for arm in (*WIDE, *NARROW, *RIVALS, *ONE_HEAD)),
        *(Run(*arm, seed, updates=PATIENT) for seed in long_inputs.SEEDS for arm in SLOW),
        *(Timed(task, sets) for task in CALLS for sets in SETS),
    ]
)


def measure(run: Run | Timed, record: Record) -> dict:
    """Time attention, or train a model and return its share of right answers, pairs by pairs and length by length."""
    if isinstance(run, Timed):
        return cost(run)
    peak = run.peak if run.is_trial else chosen(run, record)
    torch.manual_seed(run.seed)
    model = Recaller(ATTENTION[run.attention], run.d_head, 1, run.n_heads, run.sets)
    begin = time.process_time()
    model, losses = long_inputs.fitted(model, np.random.default_rng(run.seed), peak, run.updates)
    seconds = time.process_time() - begin
    kind = "validation" if run.is_trial else "test"
    lengths = () if run.is_trial or run.arm not in BY_LENGTH else (LENGTH, *LENGTHS)
    return {
        "peak": peak,
        "parameters": sum(value.numel() for value in model.parameters()),
        "right": [share_right(model, *long_inputs.tested(kind, n)) for n in PAIRS],
        "right_by_length": [share_right(model, *of_length(n)) for n in lengths],
        "loss_of_30_updates": np.reshape(losses[: len(losses) // 30 * 30], (-1, 30)).mean(1).round(3).tolist(),
        "seconds": round(seconds, 1),
        "version": version("torch"),
    }


def share_right(model: Recaller, ids, labels) -> float:
    """Of the answers; one sequence at a time, since those of 16,384 tokens need room."""
    said = np.concatenate([long_inputs.answers(model, ids[n : n + 1]) for n in range(len(ids))])
    return round(float(associative_recall.recalled(said, labels).mean()), 4)


def of_length(length: int) -> associative_recall.Recall:
    """The test sequences of one length."""
    return long_inputs.drawn(TESTED, TESTED_PAIRS, np.random.default_rng([3000, length]), length)


def cost(run: Timed) -> dict:
    """Milliseconds a call, and the mebibytes by which it raised the memory, at each length."""
    from tests.benchmarks import long_inputs as benchmark  # here, because no lecture that reads the record needs it

    begin = time.perf_counter()
    found = [benchmark.alone("torch", "fused", n, run.task, CALLS[run.task], sets=run.sets) for n in LENGTHS]
    return {
        "lengths": list(LENGTHS),
        "milliseconds": [round(1e3 * one["seconds"], 4) for one in found],
        "mebibytes": [round(one["bytes"] / 2**20, 1) for one in found],
        "seconds": round(time.perf_counter() - begin, 1),
        "version": version("torch"),
    }


def chosen(run: Run, record: Record) -> float:
    """The peak of the arm's best trial with as many updates, the lower one of two that are level."""
    if run.arm not in CHOSEN_HERE and run.updates == UPDATES:
        of_one_head = long_inputs.Run(run.attention, run.d_head, run.seed)
        return long_inputs.chosen(of_one_head, long_inputs.EXPERIMENT.record)
    tried = [trial.name for trial in TRIALS if (trial.arm, trial.updates) == (run.arm, run.updates)]
    trials = of_trials(tried, record).values()
    return max(trials, key=lambda figures: (sum(figures["right"]), -figures["peak"]))["peak"]


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "4 x 8 in 1")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
