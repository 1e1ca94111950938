"""What is each part of the Transformer for? Leave one out, tune the learning rate anew, and see what is lost.

The task is a small translation that can be made without end. A sentence is eight letters of an alphabet of 12. Its
translation is the sentence read backwards, each letter replaced by what a fixed random table of 12 times 12 entries
says for the letter and the one after it in the sentence; the last letter is looked up with the first. The model is
the paper's, small, and pre-norm, since so the whole of it learns fast from every seed: two layers on each side, 64
features, four heads, 128 features in the feed-forward layer.

Each arm lacks one part or has another in its place. It is trained, on 32 new sentences an update and without dropout,
until it gets 90% of the letters right in the mean of ten updates, or for 3,000 updates. No sentence is likely to come
twice, so a model is always asked what it has not learned. The rate rises over 100 updates and stays. Its height is
chosen among three for each arm, in trials of a fourth seed: the one that gets there first, or, if none does, the one
with the least loss. Then three seeds are trained with it. The figures are the number of updates it took (null: not
within the 3,000), the loss along the way, and loss and letters right on 1,000 other sentences at the end. The lecture
*The Transformer, part by part* tells what came out.
"""

import math
import time
from importlib.metadata import version
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from notebooks.experiments.harness import Experiment, Record, main, of_trials, table

LETTERS, LENGTH, D_MODEL, HEADS, D_FF, LAYERS = 12, 8, 64, 4, 128, 2
UPDATES, BATCH, WARMUP, ENOUGH = 3000, 32, 100, 0.9
PEAKS = (5e-4, 1.5e-3, 4.5e-3)
SEEDS, TRIAL_SEED = (0, 1, 2), 3
LACKING = (
    *("nothing", "feed-forward", "feed-forward, attention instead", "residuals", "norms"),
    *("norms before, after instead", "positions", "scale of the scores", "scale of the embeddings"),
    "decoder's self-attention",
)


class Run(NamedTuple):
    """One training of an arm; with a `peak` it is a trial of that peak, without one it takes the best of the trials."""

    lacking: str
    seed: int
    peak: float | None = None

    @property
    def is_trial(self) -> bool:
        """Whether it serves to choose."""
        return self.peak is not None

    @property
    def name(self) -> str:
        """What the record calls this run."""
        return f"trial, {self.lacking}, {self.peak}" if self.is_trial else f"{self.lacking}, {self.seed}"

    @property
    def seconds(self) -> float:
        """About, of one processor core."""
        return 12.0


TRIALS = [Run(lacking, TRIAL_SEED, peak) for lacking in LACKING for peak in PEAKS]
RUNS = table([*TRIALS, *(Run(lacking, seed) for seed in SEEDS for lacking in LACKING)])


class Attention(nn.Module):
    """Multi-head attention; without the scale the dot products go into the softmax as they are."""

    def __init__(self, scaled: bool):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(D_MODEL, D_MODEL) for _ in range(4))
        self.scale = None if scaled else 1.0

    def forward(self, x, y, causal=False):
        """x (B, T, d_model) asks, y (B, S, d_model) answers."""
        projected = self.q(x), self.k(y), self.v(y)
        q, k, v = (a.unflatten(-1, (HEADS, -1)).transpose(1, 2) for a in projected)
        context = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=self.scale)
        return self.out(context.transpose(1, 2).flatten(2))


class Sublayer(nn.Module):
    """A part with its residual and its norm: x + part(norm(x)), or norm(x + part(x)), or less."""

    def __init__(self, part: nn.Module, lacking: str):
        super().__init__()
        self.part, self.residual = part, lacking != "residuals"
        self.after = lacking == "norms before, after instead"
        self.norm = nn.Identity() if lacking == "norms" else nn.LayerNorm(D_MODEL)

    def forward(self, x, function):
        """`function` applies the part to what it reads."""
        if self.after:
            return self.norm(x + function(x))
        return x + function(self.norm(x)) if self.residual else function(self.norm(x))


class Model(nn.Module):
    """The Transformer without one of its parts."""

    def __init__(self, lacking: str):
        super().__init__()
        self.lacking = lacking
        self.embedding = nn.Embedding(LETTERS + 1, D_MODEL)  # the letters and a start token, on both sides
        self.encoder = nn.ModuleList(self._layer(("self", "feed")) for _ in range(LAYERS))
        self.decoder = nn.ModuleList(self._layer(("self", "cross", "feed")) for _ in range(LAYERS))
        last = nn.Identity if lacking.startswith("norms") else nn.LayerNorm  # post-norm has one there already
        self.encoder_norm, self.decoder_norm = last(D_MODEL), last(D_MODEL)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        nn.init.normal_(self.embedding.weight, std=D_MODEL**-0.5)
        angles = torch.arange(LENGTH)[:, None] * 10000.0 ** (-torch.arange(0, D_MODEL, 2) / D_MODEL)
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], -1).flatten(1))

    def _layer(self, parts):
        lacking, made = self.lacking, nn.ModuleDict()
        scaled = lacking != "scale of the scores"
        for name in parts:
            if name == "feed" and lacking == "feed-forward, attention instead":
                made["again"] = Sublayer(Attention(scaled), lacking)  # as many parameters
            elif name == "feed" and lacking != "feed-forward":
                feed = nn.Sequential(nn.Linear(D_MODEL, D_FF), nn.ReLU(), nn.Linear(D_FF, D_MODEL))
                made["feed"] = Sublayer(feed, lacking)
            elif name != "feed" and not (name == "self" and "cross" in parts and lacking == "decoder's self-attention"):
                made[name] = Sublayer(Attention(scaled), lacking)
        return made

    def embed(self, ids):
        """(B, T) -> (B, T, d_model)."""
        x = self.embedding(ids) * (1.0 if self.lacking == "scale of the embeddings" else math.sqrt(D_MODEL))
        return x if self.lacking == "positions" else x + self.positions

    def forward(self, source, target):
        """Letters (B, T), and the start token with all letters of the translation but the last -> logits (B, T, V)."""
        memory = self.encoder_norm(self._through(self.encoder, self.embed(source)))
        y = self.decoder_norm(self._through(self.decoder, self.embed(target), memory))
        return y @ self.embedding.weight.T

    def _through(self, layers, x, memory=None):
        causal = memory is not None
        for layer in layers:
            for name, sublayer in layer.items():
                if name in ("self", "again"):
                    x = sublayer(x, lambda h, part=sublayer.part: part(h, h, causal))
                elif name == "cross":
                    x = sublayer(x, lambda h, part=sublayer.part: part(h, memory))
                else:
                    x = sublayer(x, sublayer.part)
        return x


def sentences(generator: torch.Generator, number: int):
    """Sources, what the decoder reads, and what it should say: letters (B, T) each."""
    entries = torch.randint(LETTERS, (LETTERS, LETTERS), generator=torch.Generator().manual_seed(0))
    source = torch.randint(LETTERS, (number, LENGTH), generator=generator)
    answers = entries[source, source.roll(-1, 1)].flip(1)
    return source, torch.cat([torch.full((number, 1), LETTERS), answers[:, :-1]], 1), answers


def measure(run: Run, record: Record) -> dict:
    """Train an arm, and return what it lost and how many letters it got right."""
    peak = run.peak if run.is_trial else chosen(run.lacking, record)
    torch.manual_seed(run.seed)
    model, drawn = Model(run.lacking), torch.Generator().manual_seed(run.seed)
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    losses, shares, begin, there = [], [], time.process_time(), None
    while there is None and len(losses) < UPDATES:
        source, target, answers = sentences(drawn, BATCH)
        logits = model(source, target)
        loss = F.cross_entropy(logits.flatten(0, 1), answers.flatten())
        optimiser.param_groups[0]["lr"] = peak * min(1.0, (len(losses) + 1) / WARMUP)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        shares.append((logits.argmax(-1) == answers).float().mean().item())
        if sum(shares[-10:]) >= 10 * ENOUGH:
            there = len(losses)
    seconds = time.process_time() - begin
    source, target, answers = sentences(torch.Generator().manual_seed(100 if run.is_trial else 101), 1000)
    with torch.no_grad():
        logits = model(source, target)
    parts = [losses[i : i + 25] for i in range(0, len(losses), 25)]
    return {
        "peak": peak,
        "parameters": sum(p.numel() for p in model.parameters()),
        "updates": there,
        "loss": round(F.cross_entropy(logits.flatten(0, 1), answers.flatten()).item(), 4),
        "right": round((logits.argmax(-1) == answers).float().mean().item(), 4),
        "loss_of_25_updates": [round(sum(part) / len(part), 3) for part in parts],
        "seconds": round(seconds, 1),
        "version": version("torch"),
    }


def chosen(lacking: str, record: Record) -> float:
    """The peak of the arm's best trial."""
    trials = [trial for trial in TRIALS if trial.lacking == lacking]
    found = {figures["peak"]: figures for figures in of_trials((trial.name for trial in trials), record).values()}
    return min(found, key=lambda peak: (found[peak]["updates"] or math.inf, found[peak]["loss"]))


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "feed-forward")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
