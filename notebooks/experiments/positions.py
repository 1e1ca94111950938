"""How do models with different positions fare on sequences longer than those they were trained on, and on uneven times?

A small causal Transformer reads 16 random letters and learns one of two things: to name the letter three positions back
(`distance`), or the last vowel so far (`recent`). It is tested on up to 64 letters, and only on positions beyond the
sixteenth. Eight kinds of position: none, learned (drawn with standard deviation 0.02, and with 1), sinusoidal, such as
begin anywhere below 48 in training, rotary, ALiBi, and a learned bias, one for each distance below eight and one for
all others. `rotary-slow` is the rotary model of the same seed, trained alike and turned with a larger base in the test.

In a third task, `time`, a model without a causal mask reads 16 noisy values of a series at irregular times and predicts
one more, between them or later. Five kinds: sinusoids of the index; these and the time as a number; a shift that is a
Fourier series of the time; a scale that is one; both. The record `time-baselines` has what needs no training.

Each kind has 400 updates, and chooses the peak of its learning rate, which falls to zero by a cosine, in four trials
with a seed of their own, by the loss on validation data of the trained length. Then it trains with three seeds. Nothing
but one is chosen by looking at longer sequences: the larger base, for each task, by validation data of 64 letters and a
model with the seed of the trials. The two that fail at `distance` try it once with eight times the updates, and so do
four kinds at `time`.
The lecture *Positions* tells what came out.
"""

import math
import time
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from course_lib.models.blocks import BlockConfig
from course_lib.torch import (
    Encoder,
    LearnedPositions,
    SinusoidalPositions,
    TimeModulation,
    attention,
    rotary,
)
from notebooks.experiments.harness import Experiment, Record, Waiting, main, of_trials, table

D_MODEL, N_HEADS, BATCH = 32, 4, 32
LETTERS, BACK, TRAINED, LONGEST, FAR = 8, 3, 16, 64, 8
LENGTHS = (16, 20, 24, 32, 48, 64)  # of the tests
N_SEEN, NOISE, WINDOW = 16, 0.1, 0.8  # observations of a series, their noise, and the time in which they are made
UPDATES = 400
PEAKS, TRIAL_SEED, SEEDS = (1e-3, 3e-3, 1e-2, 3e-2), 100, (0, 1, 2)
VALIDATION_SEED, TEST_SEED = 98, 99  # of the data
BASE, BASES = 10_000, (20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_500_000)  # trained; to choose from

INDEX_KINDS = ("none", "learned", "learned-wide", "sinusoidal", "shifted", "rotary", "alibi", "bias")
TIME_KINDS = ("index", "index-and-time", "time-shift", "time-scale", "time-modulation")
KINDS = {"distance": INDEX_KINDS, "recent": INDEX_KINDS, "time": TIME_KINDS}


class Run(NamedTuple):
    """One training; with a `peak` of the learning rate a trial of it."""

    task: str
    kind: str
    seed: int = 0
    peak: float | None = None
    patience: int = 1  # times UPDATES

    @property
    def is_trial(self) -> bool:
        """Whether it serves to choose."""
        return self.peak is not None

    @property
    def name(self) -> str:
        """What the record calls this run."""
        if self.kind == "baselines":
            return f"{self.task}-{self.kind}"
        name = f"{self.task}-{self.kind}-{self.seed}" + ("-patient" if self.patience > 1 else "")
        return f"trial-{self.peak}-{name}" if self.is_trial else name

    @property
    def seconds(self) -> float:
        """Of one processor core, about."""
        return 0.1 if self.kind == "baselines" else 0.007 * UPDATES * self.patience


TRIALS = [Run(task, kind, TRIAL_SEED, peak) for task, kinds in KINDS.items() for kind in kinds for peak in PEAKS]
RUNS = table(
    [
        *TRIALS,
        *(Run(task, kind, seed) for task, kinds in KINDS.items() for kind in kinds for seed in SEEDS),
        *(Run(task, "rotary-slow", seed) for task in ("distance", "recent") for seed in (TRIAL_SEED, *SEEDS)),
        *(Run("distance", kind, patience=8) for kind in ("none", "alibi")),
        *(Run("time", kind, patience=8) for kind in ("index", "index-and-time", "time-shift", "time-scale")),
        Run("time", "baselines"),
    ]
)


def measure(run: Run, record: Record) -> dict:
    """Train, and return the validation loss and how right the model is."""
    begin = time.process_time()
    if run.kind == "baselines":
        return baselines() | {"seconds": 0.0}
    peak = run.peak if run.is_trial else chosen(run, record)
    torch.manual_seed(run.seed)
    model = Forecast(run.kind) if run.task == "time" else Recall(run.kind)
    data = {"distance": three_back, "recent": last_vowel, "time": questions}[run.task]
    train(model, data, run, peak)
    found = {"peak": peak, "nll": round(loss_of(model, *data(np.random.default_rng(VALIDATION_SEED), 1000)).item(), 5)}
    if run.kind == "rotary-slow":
        found |= slowed(model, data, run, record)
    elif run.task == "time":
        found |= errors(model)
    else:
        found["accuracy"] = accuracies(model, data)
    parameters = sum(p.numel() for p in model.parameters())
    return found | {
        "parameters": parameters,
        "seconds": round(time.process_time() - begin, 1),
        "version": version("torch"),
    }


def chosen(run: Run, record: Record) -> float:
    """The peak of the trial with the lowest validation loss; Waiting as long as there are trials to be made."""
    kind = "rotary" if run.kind == "rotary-slow" else run.kind
    trials = [trial for trial in TRIALS if (trial.task, trial.kind) == (run.task, kind)]
    return min(of_trials((trial.name for trial in trials), record).values(), key=lambda figures: figures["nll"])["peak"]


def slowed(model: nn.Module, data, run: Run, record: Record) -> dict:
    """Of the seed of the trials, what each base is worth; of another, the accuracies with the base and as trained."""
    if run.seed == TRIAL_SEED:
        shares = {base: beyond(turned(model, base), data, LONGEST, VALIDATION_SEED) for base in BASES}
        return {"bases": {str(base): round(share, 4) for base, share in shares.items()}}
    base, as_trained = chosen_base(run, record), accuracies(model, data)
    return {"base": base, "accuracy": accuracies(turned(model, base), data), "as_trained": as_trained}


def chosen_base(run: Run, record: Record) -> int:
    """The base with the most right answers on 64 letters of the validation data; Waiting if none was tried."""
    name, recorded = run._replace(seed=TRIAL_SEED).name, record.read()
    if name not in recorded:
        raise Waiting(f"its base is chosen by another run; run first {name}")
    return max(BASES, key=lambda base: recorded[name]["bases"][str(base)])


def turned(model: nn.Module, base: float) -> nn.Module:
    """The model, from now on with another base of its rotary positions."""
    for layer in model.encoder.layers:
        layer.attention.attention = rotary(attention, base)
    return model


def train(model: nn.Module, data, run: Run, peak: float) -> None:
    """Update the model on new data each time."""
    rng, updates = np.random.default_rng(run.seed), UPDATES * run.patience
    optimiser = torch.optim.Adam(model.parameters(), lr=peak)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, updates)
    for _ in range(updates):
        loss = loss_of(model, *data(rng, BATCH))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    model.eval()


def loss_of(model: nn.Module, *data) -> torch.Tensor:
    """Of letters the cross-entropy, without the first three positions; of values the mean squared error."""
    *inputs, answers = (torch.as_tensor(a) for a in data)
    found = model(*inputs)
    if answers.dtype.is_floating_point:
        return F.mse_loss(found, answers)
    return F.cross_entropy(found[:, BACK:].flatten(0, 1), answers[:, BACK:].flatten())


# letters


def three_back(rng: np.random.Generator, n: int, length: int = TRAINED) -> tuple[np.ndarray, np.ndarray]:
    """Letters (n, length), and for each the one that stood three positions back (the first three mean nothing)."""
    ids = rng.integers(LETTERS, size=(n, length))
    return ids, np.roll(ids, BACK, axis=1)


def last_vowel(rng: np.random.Generator, n: int, length: int = TRAINED) -> tuple[np.ndarray, np.ndarray]:
    """Letters (n, length), a fifth of them vowels, 0 to 3, and the first always; and for each the last vowel so far."""
    vowel = rng.random((n, length)) < 0.2
    vowel[:, 0] = True
    ids = rng.integers(4, size=(n, length)) + np.where(vowel, 0, 4)
    last = np.maximum.accumulate(np.where(vowel, np.arange(length), 0), axis=1)
    return ids, np.take_along_axis(ids, last, axis=1)


class ShiftedPositions(SinusoidalPositions):
    """Sinusoids that begin anywhere in training, so that every position of the tests occurs (Kiyono et al. 2021)."""

    def forward(self, x, first=0):
        """(B, T, d_model) -> (B, T, d_model)."""
        if self.training:
            first = torch.randint(self.max_len - x.shape[1] + 1, ()).item()
        return super().forward(x, first)


class Recall(nn.Module):
    """Letters (B, T) -> logits (B, T, LETTERS), with a causal mask and one kind of position."""

    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind
        self.embed = nn.Embedding(LETTERS, D_MODEL)
        self.positions = {
            "learned": lambda: LearnedPositions(D_MODEL, LONGEST),
            "learned-wide": lambda: LearnedPositions(D_MODEL, LONGEST, std=1.0),
            "sinusoidal": lambda: SinusoidalPositions(D_MODEL, LONGEST),
            "shifted": lambda: ShiftedPositions(D_MODEL, LONGEST),
        }.get(kind, nn.Identity)()
        config = BlockConfig(D_MODEL, N_HEADS, 2 * D_MODEL, pre_norm=True)
        self.encoder = Encoder(2, config, rotary(attention, BASE) if kind[:6] == "rotary" else attention)
        self.far = nn.Parameter(torch.zeros(N_HEADS, FAR + 1)) if kind == "bias" else None
        self.read = nn.Linear(D_MODEL, LETTERS)

    def forward(self, ids):
        """The logits."""
        distance = (torch.arange(ids.shape[1])[:, None] - torch.arange(ids.shape[1])).clamp(min=0)  # (T, T)
        bias = None
        if self.kind == "alibi":  # the slopes of Press et al. 2022
            bias = -(2.0 ** (-8 * torch.arange(1, N_HEADS + 1) / N_HEADS))[:, None, None] * distance
        if self.kind == "bias":
            bias = self.far[:, distance.clamp(max=FAR)]  # (H, T, T)
        x = self.positions(self.embed(ids))
        return self.read(self.encoder(x, bias=bias, causal=True).last_hidden)


@torch.no_grad()
def beyond(model: nn.Module, data, length: int, seed: int = TEST_SEED) -> float:
    """The share of right answers beyond the trained length; at that length, after the first three."""
    ids, answers = (torch.as_tensor(a) for a in data(np.random.default_rng(seed), 500, length))
    new = slice(BACK if length == TRAINED else TRAINED, None)
    return (model(ids).argmax(-1) == answers)[:, new].double().mean().item()


def accuracies(model: nn.Module, data) -> list[float]:
    """`beyond` for each length of the tests."""
    return [round(beyond(model, data, n), 4) for n in LENGTHS]


# series


class Series(NamedTuple):
    """N series: times and noisy values (N, N_SEEN + 1), the one asked for last; its true value; whether it is later."""

    times: np.ndarray
    shown: np.ndarray
    answers: np.ndarray
    ahead: np.ndarray


def likeness(gap: np.ndarray) -> np.ndarray:
    """The covariance of two values by the time between them: of period one half, fading."""
    return np.exp(-2 * np.sin(2 * np.pi * gap) ** 2 - gap**2 / (2 * 0.6**2))


def series(rng: np.random.Generator, n: int) -> Series:
    """Draws from a Gaussian process, seen in bursts with long gaps; half of the questions lie beyond the window."""
    gaps = rng.exponential(size=(n, N_SEEN)) ** 2
    seen = WINDOW * np.cumsum(gaps, axis=1) / gaps.sum(axis=1, keepdims=True)
    ahead = rng.random((n, 1)) < 0.5
    asked = np.where(ahead, WINDOW + (1 - WINDOW) * rng.random((n, 1)), WINDOW * rng.random((n, 1)))
    times = np.concatenate([seen, asked], axis=1)
    covariance = likeness(times[:, :, None] - times[:, None]) + 1e-6 * np.eye(N_SEEN + 1)
    values = (np.linalg.cholesky(covariance) @ rng.normal(size=(n, N_SEEN + 1, 1)))[..., 0]
    return Series(times, values + NOISE * rng.normal(size=values.shape), values[:, -1], ahead[:, 0])


def tokens(drawn: Series) -> list[np.ndarray]:
    """In the order of time: values with a mark of the question (N, T, 2), times and marks (N, T), answers (N,)."""
    order = drawn.times.argsort(axis=1)
    question = order == N_SEEN
    x = np.stack([np.where(question, 0, np.take_along_axis(drawn.shown, order, 1)), question], axis=-1)
    times = np.take_along_axis(drawn.times, order, 1)
    return [a.astype(np.float32) for a in (x, times, question, drawn.answers)]


def questions(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    """New series as tokens."""
    return tokens(series(rng, n))


class TimePart(nn.Module):
    """x + shift(t) or scale(t) * x: what `TimeModulation` does, without the scale or without the shift."""

    def __init__(self, part: str, d_model: int, n_harmonics: int, longest: float):
        super().__init__()
        self.part = part
        self.rates = 2 * math.pi * torch.arange(1, n_harmonics + 1) / longest
        self.linear = nn.Linear(2 * n_harmonics, d_model)

    def forward(self, x, times):
        """x (B, T, d_model) and times (B, T) -> (B, T, d_model)."""
        angles = times[..., None] * self.rates
        change = self.linear(torch.cat([angles.sin(), angles.cos()], dim=-1))
        return x + change if self.part == "shift" else x * (1 + change)


class Forecast(nn.Module):
    """Tokens, times and the mark of the question -> the value asked for (B,)."""

    def __init__(self, kind: str):
        super().__init__()
        self.kind, self.timed = kind, kind.startswith("time-")
        self.embed = nn.Linear(3 if kind == "index-and-time" else 2, D_MODEL)
        self.positions = {
            "time-shift": lambda: TimePart("shift", D_MODEL, 8, 2.0),
            "time-scale": lambda: TimePart("scale", D_MODEL, 8, 2.0),
            "time-modulation": lambda: TimeModulation(D_MODEL, 8, 2.0),
        }.get(kind, lambda: SinusoidalPositions(D_MODEL))()
        self.encoder = Encoder(2, BlockConfig(D_MODEL, N_HEADS, 2 * D_MODEL, pre_norm=True))
        self.read = nn.Linear(D_MODEL, 1)

    def forward(self, x, times, question):
        """The values."""
        if self.kind == "index-and-time":
            x = torch.cat([x, times[..., None]], dim=-1)
        x = self.embed(x)
        x = self.positions(x, times) if self.timed else self.positions(x)
        return (self.read(self.encoder(x).last_hidden)[..., 0] * question).sum(dim=1)


@torch.no_grad()
def errors(model: nn.Module) -> dict[str, float]:
    """Root mean squared errors on the test series, between the observations and ahead of them."""
    test = series(np.random.default_rng(TEST_SEED), 2000)
    return split_errors(model(*(torch.tensor(a) for a in tokens(test)[:3])).numpy(), test)


def split_errors(guess: np.ndarray, test: Series) -> dict[str, float]:
    """The errors of guesses (N,)."""
    squares = (guess - test.answers) ** 2
    return {
        name: round(float(np.sqrt(squares[part].mean())), 4)
        for name, part in (("gap", ~test.ahead), ("ahead", test.ahead))
    }


def baselines() -> dict:
    """The mean of all series, the last value, a straight line, and the conditional mean, which nothing can beat."""
    test = series(np.random.default_rng(TEST_SEED), 2000)
    seen, asked, values = test.times[:, :N_SEEN], test.times[:, N_SEEN], test.shown[:, :N_SEEN]
    last = np.maximum((seen < asked[:, None]).sum(axis=1) - 1, 0)
    among = likeness(seen[:, :, None] - seen[:, None]) + NOISE**2 * np.eye(N_SEEN)
    solved = np.linalg.solve(among, values[..., None])[..., 0]
    guesses = {
        "mean": np.zeros(len(asked)),
        "last": values[np.arange(len(asked)), last],
        "line": np.array([np.interp(*one) for one in zip(asked, seen, values, strict=True)]),
        "best": (likeness(seen - asked[:, None]) * solved).sum(axis=1),
    }
    return {name: split_errors(guess, test) for name, guess in guesses.items()}


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "rotary")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
