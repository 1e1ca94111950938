"""The small runs of the lecture *Training a translator*, and what they measured, in the JSON file beside this one.

    python notebooks/results/07-ablations.py                       every run that the file lacks
    python notebooks/results/07-ablations.py recipe no-smoothing   those whose name contains one of the words
    python notebooks/results/07-ablations.py --again               all of them again

Two experiments with the data, the vocabularies, the batches and the clock of `02-attention-for-rnns.py`. The first
trains the paper's recipe and takes one part of it away at a time. The second trains a Transformer as the runs of the
other script train a recurrent translator with as many weights: as many seconds of one processor core, the peak of the
learning rate and the size of the batches chosen beforehand from six combinations by the loss on the validation pairs,
no dropout, no label smoothing.

The figures of a run are written as soon as it ends, so an interruption loses one run only, and several of these
commands, each with its words, may be at work at once. The folder beside this file gets the translations.
"""

import argparse
import importlib.util
import json
import time
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import torch
from filelock import FileLock

from course_lib.batches.pairs import PairBatches, encode_pairs
from course_lib.data import sentence_pairs
from course_lib.models.transformer import TransformerConfig
from course_lib.torch import Transformer, fused_attention
from course_lib.torch.training.next_token import train
from course_lib.training.schedules import warmup_then_inverse_root
from course_lib.training.teacher_forcing import teacher_forcing

FILE = Path(__file__).with_suffix(".json")
FOLDER = FILE.with_suffix("")

_spec = importlib.util.spec_from_file_location("rnns", Path(__file__).with_name("02-attention-for-rnns.py"))
rnns = importlib.util.module_from_spec(_spec)  # a script whose name no import statement can say
_spec.loader.exec_module(rnns)

SIZES = {"d_model": 96, "n_layers": 2, "n_heads": 4, "d_ff": 352, "max_len": 128}
PEAKS = (1.5e-3, 3e-3, 6e-3)
SECONDS, MAX_TOKENS = 150, 1200  # of the recipe and its changes
WARMUP = 800  # of the recipe: with d_model 96 the paper's schedule then peaks at 0.0036, after a quarter of the updates


class Run(NamedTuple):
    """One training: of the recipe or a change of it, or without a schedule of its own, as the RNNs are trained.

    A run with a `peak` and a number of `tokens` a batch is a trial of them: shorter, and it translates nothing.
    """

    label: str
    seed: int = 0
    schedule: str = "paper"  # or "no warm-up", or "as the RNNs"
    smoothing: float = 0.1
    dropout: float = 0.1
    pre_norm: bool = False
    peak: float | None = None
    tokens: int | None = None

    @property
    def name(self) -> str:
        """What the JSON file and the folder call this run."""
        trial = "" if self.peak is None else f"trial-{self.peak}-{self.tokens}-"
        return f"{trial}{self.label}-{self.seed}"

    @property
    def seconds(self) -> float:
        """Of one processor core."""
        if self.label != "transformer":
            return SECONDS
        return rnns.SECONDS if self.peak is None else rnns.TRIAL_SECONDS


RECIPE = Run("recipe")
CHANGES = [
    RECIPE,
    RECIPE._replace(label="no-warm-up", schedule="no warm-up"),
    RECIPE._replace(label="no-smoothing", smoothing=0.0),
    RECIPE._replace(label="no-dropout", dropout=0.0),
    RECIPE._replace(label="pre-norm", pre_norm=True),
]
TRANSFORMER = Run("transformer", schedule="as the RNNs", smoothing=0.0, dropout=0.0)
TRIALS = [TRANSFORMER._replace(peak=peak, tokens=tokens) for peak in PEAKS for tokens in rnns.TOKENS]
RUNS = [*TRIALS, *(TRANSFORMER._replace(seed=seed) for seed in (0, 1, 2))]
RUNS += [run._replace(seed=seed) for seed in (0, 1) for run in CHANGES]


def read() -> dict:
    """The figures of all runs so far, by name."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def chosen() -> tuple[float, int]:
    """Peak and tokens with the lowest validation loss; SystemExit as long as there are trials to be made."""
    results = read()
    if missing := [trial.name for trial in TRIALS if trial.name not in results]:
        raise SystemExit(f"peak and batches are chosen from trials; run first: {', '.join(missing)}")
    best = min((results[trial.name] for trial in TRIALS), key=lambda trial: trial["nll"])
    return best["peak"], best["tokens"]


def plan(run: Run):
    """The rate as a function of the step, its peak, and the tokens of a batch."""
    if run.schedule == "as the RNNs":
        peak, tokens = chosen() if run.peak is None else (run.peak, run.tokens)
        return lambda step: rnns.rate(step, peak), peak, tokens
    skipped = WARMUP - 1 if run.schedule == "no warm-up" else 0
    # without a warm-up the peak's rate from the first update to the one where the warm-up would have reached it
    return (
        lambda step: warmup_then_inverse_root(max(step, skipped), SIZES["d_model"], WARMUP),
        warmup_then_inverse_root(WARMUP - 1, SIZES["d_model"], WARMUP),
        MAX_TOKENS,
    )


@torch.inference_mode()
def confidence(model, batches) -> float:
    """The mean probability of the token that the model holds for the most probable; the accuracy, if it is honest."""
    total = n_tokens = 0
    for batch in batches:
        source, inputs, labels = map(torch.as_tensor, teacher_forcing(batch))
        largest = model(source, inputs).logits.softmax(-1).amax(-1)
        total += float(largest[labels != 0].double().sum())
        n_tokens += int((labels != 0).sum())
    return total / n_tokens


def figures(run: Run) -> dict:
    """Train, translate, and return what was measured."""
    split = sentence_pairs.split(sentence_pairs.load("tatoeba-es-en"))
    spanish, english = rnns.tokenizers(split)
    train_set, validation = (
        encode_pairs(part.sources, part.targets, spanish, english, rnns.MAX_LEN)
        for part in (split.train, split.validation)
    )
    sizes = {**SIZES, "dropout": run.dropout, "pre_norm": run.pre_norm}
    torch.manual_seed(run.seed)
    model = Transformer(TransformerConfig(rnns.VOCABULARY, rnns.VOCABULARY, **sizes), fused_attention)
    rate, peak, tokens = plan(run)
    batches = PairBatches(train_set.sources, train_set.targets, tokens, seed=run.seed)
    held_out = PairBatches(validation.sources, validation.targets, 5000, seed=None)
    history = train(
        model,
        batches.epoch,
        held_out,
        rate=rate,
        smoothing=run.smoothing,
        max_norm=rnns.MAX_NORM,
        seconds=run.seconds,
        validate_every=250,
        seed=run.seed,
        clock=time.process_time,
    )
    if run.peak is None:
        texts = rnns.translate(model, split.test.sources, spanish, english)
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{run.name}.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    whole = history.loss[: len(history.loss) // 50 * 50].reshape(-1, 50)
    return {
        **run._asdict(),
        "peak": peak,
        "tokens": tokens,
        "parameters": sum(p.numel() for p in model.parameters()),
        "updates": len(history.loss),
        "target_tokens": int(history.tokens.sum()),
        "epochs": round(len(history.loss) / len(batches), 3),
        "seconds": round(float(history.seconds[-1]), 1),
        "loss_of_50_updates": [round(float(loss), 4) for loss in whole.mean(axis=1)],
        "validation": [[look.step, round(look.seconds, 1), round(look.nll, 4)] for look in history.validation],
        "best_step": history.best.step,
        "nll": round(history.best.nll, 4),
        "accuracy": round(history.best.accuracy, 4),
        "confidence": round(confidence(model, held_out), 4),
        "version": version("torch"),
    }


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description="The small runs of the lecture Training a translator.")
    parser.add_argument("words", nargs="*", help="only runs whose name contains one of them")
    parser.add_argument("--again", action="store_true", help="also those that the file holds")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for run in RUNS:
        wanted = not options.words or any(word in run.name for word in options.words)
        if wanted and (options.again or run.name not in read()):
            print(run.name, flush=True)
            found = figures(run)
            print({name: value for name, value in found.items() if not isinstance(value, list)}, flush=True)
            with FileLock(FILE.with_suffix(".lock")):
                FILE.write_text(json.dumps(read() | {run.name: found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
