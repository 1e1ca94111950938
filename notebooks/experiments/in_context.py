"""Can a small GPT learn in its context, and how near does it come to the best possible predictor?

Each sequence of 64 states comes from a Markov chain of its own, five states, whose rows are drawn from a Dirichlet
distribution with alpha 0.5. So nothing can be learned by heart, and the best possible prediction is known: counts of
what has followed the present state in the same sequence (Edelman et al. 2024). No sequence is seen twice.

GPTs of one and of two layers with four heads each, 64 features, are trained on them. Each depth has the rate that was
best in four shorter trainings, on sequences of their own; then three seeds train with it. They are measured on 2,000
further sequences, by their loss at each position, which is averaged over the next state with the true chain. Heads are
scored by where they look, and each is silenced once: what it says is replaced by what it says on average at that
position. The lecture *GPT: the decoder alone* tells what came out.
"""

import contextlib
import time
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import t

from course_lib.batches.texts import Batch
from course_lib.checkpoints.weights import write_checkpoint
from course_lib.data import markov_chains
from course_lib.evaluation import head_scores
from course_lib.evaluation.estimate import Estimate
from course_lib.models.gpt import GPTConfig
from course_lib.torch import GPT, attention, fused_attention, get_state
from course_lib.torch.training import loop, objectives, optimizers
from course_lib.training.schedules import warmup_then_linear_decay
from notebooks.experiments.harness import Experiment, Record, main, of_trials, table

STATES, ALPHA, LENGTH = 5, 0.5, 64
SIZES = {"d_model": 64, "n_heads": 4, "d_ff": 128, "max_len": LENGTH, "init_std": 0.1}
QUIET = {"dropout": 0.0, "attention_dropout": 0.0, "embedding_dropout": 0.0}
BATCH, UPDATES, TRIAL_UPDATES, WARMUP = 64, 1200, 600, 100
RATES, SEEDS, TRIAL_SEED, TESTED = (1e-3, 3e-3, 1e-2, 3e-2), (1, 2, 3), 0, 2000
END = 16  # the last positions, over which "the end of the sequence" is averaged
KEPT = "2 layers 1"


class Run(NamedTuple):
    """A training; one with a `peak` of its rate is a trial of it."""

    layers: int
    seed: int
    peak: float | None = None

    @property
    def is_trial(self) -> bool:
        """Whether it serves to choose."""
        return self.peak is not None

    @property
    def name(self) -> str:
        """What the record calls this run."""
        depth = f"{self.layers} layer{'s' if self.layers > 1 else ''}"
        return f"{depth} trial {self.peak}" if self.is_trial else f"{depth} {self.seed}"

    @property
    def seconds(self) -> float:
        """Of one processor core, about."""
        return (18 if self.is_trial else 36) * self.layers


DEPTHS = (2, 1)
TRIALS = [Run(layers, TRIAL_SEED, peak) for layers in DEPTHS for peak in RATES]
RUNS = table([*TRIALS, *(Run(layers, seed) for layers in DEPTHS for seed in SEEDS)])


class Rivals(NamedTuple):
    """The losses (N, T) of those who need no training, on the test sequences."""

    best: np.ndarray
    unigram: np.ndarray
    stationary: np.ndarray  # of one who knows how often the chain visits each state, and nothing else
    chain: np.ndarray  # of one who knows the chain


@cache
def sequences(kind: str) -> markov_chains.Chains:
    """The chains on which we choose ("validation") and on which we report ("test")."""
    rng = np.random.default_rng([1000 if kind == "validation" else 2000])
    return markov_chains.draw(TESTED, LENGTH, STATES, ALPHA, rng)


@cache
def rivals(kind: str = "test") -> Rivals:
    """What has to be reached, and what has to be beaten."""
    chains = sequences(kind)
    forever = np.broadcast_to(markov_chains.stationary(chains.matrices)[:, None], (TESTED, LENGTH, STATES))
    known = np.take_along_axis(chains.matrices, chains.ids[..., None], axis=1)
    predictions = (
        markov_chains.bayes(chains.ids, STATES, ALPHA),
        markov_chains.unigram(chains.ids, STATES, ALPHA),
        np.maximum(forever, 1e-12),
        np.maximum(known, 1e-300),
    )
    return Rivals(*(markov_chains.expected_losses(chains, p) for p in predictions))


def batches(seed: int, epoch: int, n: int = 50) -> list[Batch]:
    """The n batches of an epoch, drawn for it."""
    drawn = markov_chains.draw(n * BATCH, LENGTH + 1, STATES, ALPHA, np.random.default_rng([seed, epoch]))
    return [Batch(ids, np.arange(BATCH)) for ids in drawn.ids.reshape(n, BATCH, -1)]


def config_of(layers: int) -> GPTConfig:
    """The sizes of a model."""
    return GPTConfig(STATES, n_layers=layers, **SIZES | QUIET)


def losses_of(model, chains: markov_chains.Chains) -> np.ndarray:
    """The expected loss of a model at each position of each sequence: (N, T)."""
    with torch.no_grad():
        found = [model(torch.from_numpy(ids)).logits.double().softmax(-1).numpy() for ids in np.split(chains.ids, 10)]
    return markov_chains.expected_losses(chains, np.concatenate(found))


@contextlib.contextmanager
def silenced(model, heads, ids):
    """A model in which heads, pairs of layer and number, say at each position what they say on average over `ids`."""
    width, kept, hooks = model.config.d_model // model.config.n_heads, {}, []
    outs = [layer.self_attention.out_proj for layer in model.decoder.layers]
    for number, out in enumerate(outs):
        hooks.append(out.register_forward_pre_hook(lambda _, args, n=number: kept.update({n: args[0].mean(0)})))
    with torch.no_grad():
        model(torch.from_numpy(ids))
    for hook in hooks:
        hook.remove()

    def replaced(number):
        def change(_, args):
            x = args[0].clone()  # (B, T, d_model), a part of `width` from each head
            for layer, head in heads:
                if layer == number:
                    part = slice(head * width, (head + 1) * width)
                    x[..., part] = kept[number][: x.shape[1], part]
            return (x,)

        return change

    hooks = [out.register_forward_pre_hook(replaced(number)) for number, out in enumerate(outs)]
    try:
        yield model
    finally:
        for hook in hooks:
            hook.remove()


def heads_of(model, ids) -> dict:
    """Where each head looks, layer by layer: at the token before, and behind earlier ones of its own."""
    looking = GPT(model.config, attention=attention)
    looking.load_state_dict(model.state_dict())
    looking.eval()
    with torch.no_grad():
        weights = [w.numpy() for w in looking(torch.from_numpy(ids), return_layers=True).weights]
    return {
        "previous": [head_scores.previous_token(w).round(4).tolist() for w in weights],
        "induction": [head_scores.induction(w, ids).round(4).tolist() for w in weights],
        "by_chance": round(head_scores.induction_by_chance(ids), 4),
    }


def measure(run: Run, record: Record) -> dict:
    """Train, and measure at each position; for the runs that are reported, look at the heads and silence each."""
    peak = run.peak if run.is_trial else chosen(run, record)
    updates = TRIAL_UPDATES if run.is_trial else UPDATES
    torch.manual_seed(run.seed)
    model = GPT(config_of(run.layers), attention=fused_attention)
    history = loop.train(
        model,
        lambda epoch: batches(run.seed, epoch),
        objectives.next_token(),
        rate=lambda step: warmup_then_linear_decay(step, updates, min(WARMUP, updates - 1), peak),
        optimizer=optimizers.adamw(model),
        max_norm=1.0,
        steps=updates,
        seed=run.seed,
        progress=False,
        clock=time.process_time,
    )
    kind = "validation" if run.is_trial else "test"
    found = losses_of(model, sequences(kind))
    figures = {
        "peak": peak,
        "parameters": sum(value.numel() for value in model.parameters()),
        "seconds": round(float(history.seconds[-1]), 1),
        "loss_of_50_updates": history.loss[: updates // 50 * 50].reshape(-1, 50).mean(axis=1).round(4).tolist(),
        "end": round(float(found[:, -END:].mean()), 5),
        **excess(found, kind),
        "positions": found.mean(0).round(5).tolist(),
    }
    if run.is_trial:
        return figures
    if run.name == KEPT:
        half = {name: value.astype(np.float16) for name, value in get_state(model).items()}
        write_checkpoint(record.folder / "two-layers", SIZES | {"n_layers": run.layers, "vocab_size": STATES}, half)
    chains = markov_chains.Chains(*(part[:500] for part in sequences("test")))
    figures |= heads_of(model, chains.ids[:100])
    figures["whole"] = round(float(losses_of(model, chains)[:, -END:].mean()), 5)
    figures["without"] = []
    for layer in range(run.layers):
        figures["without"].append([])
        for head in range(model.config.n_heads):
            with silenced(model, [(layer, head)], chains.ids):
                left = losses_of(model, chains)[:, -END:].mean()
            figures["without"][-1].append(round(float(left), 5))
    return figures


def excess(found, kind: str) -> dict:
    """By how much the losses (N, T) at the end exceed the best possible ones, and the standard error over sequences."""
    over = (found - rivals(kind).best)[:, -END:].mean(axis=1)
    error = over.std(ddof=1) / np.sqrt(len(over))
    return {"excess": round(float(over.mean()), 5), "excess_error": round(float(error), 6)}


def interval(values, errors, tested: int = TESTED) -> Estimate:
    """The mean of S seeds, (S,), and its 95% interval, from these and from their standard errors, (S,).

    The errors are over as many sequences as were `tested`. All seeds are measured on the same sequences, so that the
    errors do not average out. Student's t has Satterthwaite's degrees of freedom, as for `bits_per_byte`.
    """
    values, errors = np.asarray(values), np.asarray(errors)
    parts, freedom = [np.mean(errors**2), values.var(ddof=1) / len(values)], [tested - 1, len(values) - 1]
    variance = sum(parts)
    spread = sum(part**2 / n for part, n in zip(parts, freedom, strict=True))
    half = t.ppf(0.975, variance**2 / spread) * np.sqrt(variance)
    return Estimate(float(values.mean()), float(values.mean() - half), float(values.mean() + half))


def chosen(run: Run, record: Record) -> float:
    """The peak of the depth's best trial; Waiting as long as there are trials to be made."""
    trials = of_trials((trial.name for trial in TRIALS if trial.layers == run.layers), record).values()
    return min(trials, key=lambda figures: figures["end"])["peak"]


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "2 layers")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
