"""The runs of the lecture *Attention for RNNs*, and what they measured, in the JSON file beside this one.

    python notebooks/results/02-attention-for-rnns.py              every run that the file lacks
    python notebooks/results/02-attention-for-rnns.py additive     those whose name contains a word
    python notebooks/results/02-attention-for-rnns.py --again      all of them again

Each run trains one recurrent translator for the same time and translates the test sentences greedily. Time is counted
in seconds of one processor core: those in which other work has the core do not count, though work on the other cores
may slow a run down. The peak of the learning rate and the size of the batches are chosen beforehand for each of the two
models of the main comparison, from the same eight combinations, by the loss on the validation pairs; neither is chosen
by looking at the test pairs.

The figures of a run are written as soon as it ends, so an interruption loses one run only, and several of these
commands may be at work at once. The folder beside this file gets the translations, a sentence a line, and of the runs
in `KEPT` the weights, in half precision.
"""

import argparse
import importlib
import json
import os
import time
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from filelock import FileLock

import course_lib.torch as in_torch
from course_lib.batches.pairs import PairBatches, encode_pairs
from course_lib.checkpoints.weights import write_checkpoint
from course_lib.data import sentence_pairs
from course_lib.decoding.search import greedy
from course_lib.text.bpe import BytePairEncoding
from course_lib.text.padding import padded
from course_lib.training.schedules import warmup_then_inverse_root

FILE = Path(__file__).with_suffix(".json")
FOLDER = FILE.with_suffix("")
KEPT = ("plain-torch-0", "additive-torch-0")

SECONDS, TRIAL_SECONDS = 300, 100  # of one processor core
VOCABULARY, MAX_LEN = 1000, 64
WARMUP, MAX_NORM = 300, 1.0
PEAKS, TOKENS = (2.5e-3, 5e-3, 1e-2, 2e-2), (1200, 2400)  # to choose from


class Run(NamedTuple):
    """One training. A model with fewer weights to its score has a wider state, so that all have nearly as many.

    A run with a `peak` of the learning rate and a number of `tokens` a batch is a trial of them: shorter, and it
    translates nothing.
    """

    label: str
    score: str | None
    order: str = "bahdanau"
    d_hidden: int = 192
    seed: int = 0
    framework: str = "torch"
    peak: float | None = None
    tokens: int | None = None

    @property
    def name(self) -> str:
        """What the JSON file and the folder call this run."""
        trial = "" if self.peak is None else f"trial-{self.peak}-{self.tokens}-"
        return f"{trial}{self.label}-{self.framework}-{self.seed}"

    @property
    def settings(self) -> dict:
        """The arguments of `Seq2Seq`."""
        sizes = {"source_vocab": VOCABULARY, "target_vocab": VOCABULARY, "d_model": 64, "d_hidden": self.d_hidden}
        return sizes | {"cell": "gru", "score": self.score, "order": self.order}


PLAIN, ADDITIVE = Run("plain", None, d_hidden=212), Run("additive", "additive")
TRIALS = [run._replace(peak=p, tokens=n) for run in (PLAIN, ADDITIVE) for p in PEAKS for n in TOKENS]
RUNS = [run._replace(seed=seed) for seed in (0, 1, 2) for run in (PLAIN, ADDITIVE)]
RUNS += [Run("dot", "dot", "luong", d_hidden=252), Run("general", "general", "luong", d_hidden=236)]
RUNS += [ADDITIVE._replace(framework="tensorflow")]


def read() -> dict:
    """The figures of all runs so far, by name."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def chosen(run: Run) -> tuple[float, int]:
    """Peak and tokens with the lowest validation loss in the trials: of plain for plain, of additive for all others.

    SystemExit as long as there are trials to be made.
    """
    results, label = read(), "plain" if run.score is None else "additive"
    names = [trial.name for trial in TRIALS if trial.label == label]
    if missing := [name for name in names if name not in results]:
        raise SystemExit(f"rate and batches are chosen from trials; run first: {', '.join(missing)}")
    best = min((results[name] for name in names), key=lambda trial: trial["nll"])
    return best["peak"], best["tokens"]


def rate(step: int, peak: float) -> float:
    """Up to the peak in a straight line, then down with the root of the step."""
    return peak * WARMUP**0.5 * warmup_then_inverse_root(step, 1, WARMUP)


def tokenizers(split: sentence_pairs.Split) -> tuple[BytePairEncoding, BytePairEncoding]:
    """Spanish and English, learned from the training pairs the first time and kept beside the checkpoints."""
    both = []
    for language, texts in (("es", split.train.sources), ("en", split.train.targets)):
        path = FOLDER / f"{language}.json"
        if not path.exists():
            BytePairEncoding.train(texts, VOCABULARY).save(path)
        both.append(BytePairEncoding.load(path))
    return tuple(both)


def translate(model, sources, spanish: BytePairEncoding, english: BytePairEncoding) -> list[str]:
    """Greedy translations of N texts, a hundred at a time, those of similar length together."""
    ids = spanish.encode(list(sources))
    order = np.argsort([len(row) for row in ids], kind="stable")
    texts = [""] * len(ids)
    for rows in np.array_split(order, -(-len(ids) // 100)):
        start = np.full((len(rows), 1), english.start_id)
        found = greedy(model.next_logits(padded([ids[row] for row in rows])), start, english.end_id, MAX_LEN)
        for row, text in zip(rows, english.decode(found), strict=True):
            texts[row] = text
    return texts


def figures(run: Run) -> dict:
    """Train, translate, keep what is kept, and return what was measured."""
    split = sentence_pairs.split(sentence_pairs.load("tatoeba-es-en"))
    spanish, english = tokenizers(split)
    train_set, validation = (
        encode_pairs(part.sources, part.targets, spanish, english, MAX_LEN) for part in (split.train, split.validation)
    )
    library = importlib.import_module(f"course_lib.{run.framework}")
    training = importlib.import_module(f"course_lib.{run.framework}.training.next_token")
    is_trial = run.peak is not None
    peak, tokens = (run.peak, run.tokens) if is_trial else chosen(run)
    torch.manual_seed(run.seed)
    model = library.Seq2Seq(**run.settings)
    library.set_state(model, in_torch.get_state(in_torch.Seq2Seq(**run.settings)))  # the same start in both frameworks
    batches = PairBatches(train_set.sources, train_set.targets, tokens, seed=run.seed)
    history = training.train(
        model,
        batches.epoch,
        PairBatches(validation.sources, validation.targets, 5000, seed=None),
        rate=lambda step: rate(step, peak),
        smoothing=0.0,
        max_norm=MAX_NORM,
        seconds=TRIAL_SECONDS if is_trial else SECONDS,
        validate_every=500,
        seed=run.seed,
        clock=time.process_time,
    )
    weights = library.get_state(model)
    if not is_trial:
        texts = translate(model, split.test.sources, spanish, english)
        (FOLDER / f"{run.name}.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    if run.name in KEPT:
        half = {name: value.astype(np.float16) for name, value in weights.items()}
        write_checkpoint(FOLDER / run.label, run.settings, half)
    return {
        **run._asdict(),
        "peak": peak,
        "tokens": tokens,
        "parameters": sum(value.size for value in weights.values()),
        "updates": len(history.loss),
        "target_tokens": int(history.tokens.sum()),
        "epochs": round(len(history.loss) / len(batches), 3),
        "seconds": round(float(history.seconds[-1]), 1),
        "validation": [[look.step, round(look.seconds, 1), round(look.nll, 4)] for look in history.validation],
        "best_step": history.best.step,
        "nll": round(history.best.nll, 4),
        "accuracy": round(history.best.accuracy, 4),
        "version": version(run.framework),
    }


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description="The runs of the lecture Attention for RNNs.")
    parser.add_argument("word", nargs="?", default="", help="only runs whose name contains it")
    parser.add_argument("--again", action="store_true", help="also those that the file holds")
    options = parser.parse_args()
    torch.set_num_threads(1)
    os.environ |= {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}  # read when TensorFlow is imported
    for run in [*TRIALS, *RUNS]:
        if options.word in run.name and (options.again or run.name not in read()):
            print(run.name, flush=True)
            found = figures(run)
            print(found, flush=True)
            with FileLock(FILE.with_suffix(".lock")):
                FILE.write_text(json.dumps(read() | {run.name: found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
