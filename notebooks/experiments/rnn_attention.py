"""Does a recurrent translator translate better with attention, or has it only more weights and more work?

Two models are compared over three seeds. `plain` sees the encoder's last states at every step of the decoder,
`additive` a new context (Bahdanau et al. 2015). `plain` has a wider state, so that it has as many weights. `dot`,
`general` and `additive-luong` take the order of Luong et al. 2015, without input feeding, once each and with as many
weights; the last has the score of `additive`, so that the two differ in the order, and in the width that makes up for
it. One run repeats `additive` in TensorFlow.

All train for the same time, 300 seconds of one processor core. They neither read as much nor make as many updates: the
record has both. Seconds in which other work has the core do not count, though work on the other cores may slow a run
down. Each of the two models chooses the peak of its learning rate and the size of its batches in eight trials of 100
seconds, by the loss on the validation pairs; the others take what `additive` chose. Three more trials ask whether
another peak would serve `general` better. Nothing is chosen by looking at the test pairs.

Beside the figures a run leaves its greedy translations of the test sentences, and three of them their weights in half
precision. The lecture *Attention for RNNs* tells what came out.
"""

import importlib
import time
from functools import cache
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import torch

import course_lib.torch as in_torch
from course_lib.batches.pairs import EncodedPairs, PairBatches, encode_pairs
from course_lib.checkpoints.weights import write_checkpoint
from course_lib.data import sentence_pairs
from course_lib.decoding.search import greedy
from course_lib.models.seq2seq import Seq2SeqConfig
from course_lib.text.bpe import BytePairEncoding
from course_lib.text.padding import padded
from course_lib.training.history import History
from course_lib.training.schedules import warmup_then_inverse_root
from notebooks.experiments.harness import Experiment, Record, main, of_trials, table

RECORD = Record.of(__file__)

SECONDS, TRIAL_SECONDS = 300, 100  # of one processor core
VOCABULARY, MAX_LEN = 1000, 64
WARMUP, MAX_NORM = 300, 1.0
PEAKS, TOKENS = (2.5e-3, 5e-3, 1e-2, 2e-2), (1200, 2400)  # to choose from
KEPT = ("plain-torch-0", "additive-torch-0", "additive-luong-torch-0")  # whose weights are recorded too


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
    def is_trial(self) -> bool:
        """Whether it serves to choose."""
        return self.peak is not None

    @property
    def name(self) -> str:
        """What the record calls this run."""
        trial = f"trial-{self.peak}-{self.tokens}-" if self.is_trial else ""
        return f"{trial}{self.label}-{self.framework}-{self.seed}"

    @property
    def seconds(self) -> float:
        """Of one processor core."""
        return TRIAL_SECONDS if self.is_trial else SECONDS

    @property
    def settings(self) -> dict:
        """The arguments of a `Seq2SeqConfig`."""
        sizes = {"source_vocab": VOCABULARY, "target_vocab": VOCABULARY, "d_model": 64, "d_hidden": self.d_hidden}
        return sizes | {"cell": "gru", "score": self.score, "order": self.order}


PLAIN, ADDITIVE = Run("plain", None, d_hidden=212), Run("additive", "additive")
GENERAL = Run("general", "general", "luong", d_hidden=236)
TRIALS = [run._replace(peak=p, tokens=n) for run in (PLAIN, ADDITIVE) for p in PEAKS for n in TOKENS]
OTHER_PEAKS = [GENERAL._replace(peak=p, tokens=1200) for p in PEAKS if p != 1e-2]  # its own run has that one
RUNS = table(
    [
        *TRIALS,
        *(run._replace(seed=seed) for seed in (0, 1, 2) for run in (PLAIN, ADDITIVE)),
        Run("dot", "dot", "luong", d_hidden=252),
        *OTHER_PEAKS,
        GENERAL,
        Run("additive-luong", "additive", "luong", d_hidden=222),
        ADDITIVE._replace(framework="tensorflow"),
    ]
)


def trials_of(run: Run) -> list[Run]:
    """The trials that choose for a run: its model's own, or for a model without any those of `additive`."""
    own = [trial for trial in TRIALS if trial.label == run.label]
    return own or [trial for trial in TRIALS if trial.label == ADDITIVE.label]


def measure(run: Run, record: Record) -> dict:
    """Train, translate, keep what is kept, and return what was measured."""
    data = prepared()
    library = importlib.import_module(f"course_lib.{run.framework}")
    training = importlib.import_module(f"course_lib.{run.framework}.training.translation")
    peak, tokens = (run.peak, run.tokens) if run.is_trial else chosen(trials_of(run), record)
    torch.manual_seed(run.seed)
    config = Seq2SeqConfig(**run.settings)
    model = library.Seq2Seq(config)
    library.set_state(model, in_torch.get_state(in_torch.Seq2Seq(config)))  # the same start in both frameworks
    batches = PairBatches(data.train.sources, data.train.targets, tokens, seed=run.seed)
    history = training.train(
        model,
        batches.epoch,
        PairBatches(data.validation.sources, data.validation.targets, 5000, seed=None),
        rate=lambda step: rate(step, peak),
        smoothing=0.0,
        max_norm=MAX_NORM,
        seconds=run.seconds,
        validate_every=500,
        seed=run.seed,
        clock=time.process_time,
    )
    weights = library.get_state(model)
    if not run.is_trial:
        record.keep(run.name, translations(model, data))
    if run.name in KEPT:
        half = {name: value.astype(np.float16) for name, value in weights.items()}
        write_checkpoint(record.folder / run.label, run.settings, half)
    return {
        "peak": peak,
        "tokens": tokens,
        "parameters": sum(value.size for value in weights.values()),
        **course_of(history, len(batches)),
        "version": version(run.framework),
    }


# What follows serves the ablations as well.


class Data(NamedTuple):
    """Sentences, the tokenizers of both languages, and the pairs in tokens."""

    split: sentence_pairs.Split
    spanish: BytePairEncoding
    english: BytePairEncoding
    train: EncodedPairs
    validation: EncodedPairs


@cache
def prepared() -> Data:
    """The course's sentence pairs. The vocabularies were learned from those for training, and are recorded."""
    split = sentence_pairs.split(sentence_pairs.load("tatoeba-es-en"))
    spanish, english = (
        vocabulary(language, texts) for language, texts in (("es", split.train.sources), ("en", split.train.targets))
    )
    train, validation = (
        encode_pairs(part.sources, part.targets, spanish, english, MAX_LEN) for part in (split.train, split.validation)
    )
    return Data(split, spanish, english, train, validation)


def vocabulary(language: str, texts) -> BytePairEncoding:
    """The recorded one, or where there is none a new one, which is then recorded."""
    path = RECORD.folder / f"{language}.json"
    if not path.exists():
        BytePairEncoding.train(texts, VOCABULARY).save(path)
    return BytePairEncoding.load(path)


def chosen(trials: list, record: Record) -> tuple[float, int]:
    """Peak and tokens of the trial with the lowest validation loss; Waiting as long as there are trials to be made."""
    best = min(of_trials((trial.name for trial in trials), record).values(), key=lambda figures: figures["nll"])
    return best["peak"], best["tokens"]


def rate(step: int, peak: float) -> float:
    """Up to the peak in a straight line, then down with the root of the step."""
    return peak * WARMUP**0.5 * warmup_then_inverse_root(step, 1, WARMUP)


def translations(model, data: Data) -> list[str]:
    """The N test sentences in English, greedily, a hundred at a time, those of similar length together."""
    ids = data.spanish.encode(list(data.split.test.sources))
    order = np.argsort([len(row) for row in ids], kind="stable")
    texts = [""] * len(ids)
    for rows in np.array_split(order, -(-len(ids) // 100)):
        start = np.full((len(rows), 1), data.english.start_id)
        found = greedy(model.next_logits(padded([ids[row] for row in rows])), start, data.english.end_id, MAX_LEN)
        for row, text in zip(rows, data.english.decode(found), strict=True):
            texts[row] = text
    return texts


def course_of(history: History, n_batches: int) -> dict:
    """How far a training came, with `n_batches` to an epoch, and how good it was."""
    return {
        "updates": len(history.loss),
        "target_tokens": int(history.tokens.sum()),
        "epochs": round(len(history.loss) / n_batches, 3),
        "seconds": round(float(history.seconds[-1]), 1),
        "validation": [[look.step, round(look.seconds, 1), round(look.nll, 4)] for look in history.validation],
        "best_step": history.best.step,
        "nll": round(history.best.nll, 4),
        "accuracy": round(history.best.accuracy, 4),
    }


EXPERIMENT = Experiment(__doc__, RUNS, measure, RECORD, "additive-torch")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
