"""What does a small pretrained encoder bring to a task of your own, and what of the way it is tuned matters?

Each run learns from labelled film reviews and predicts others. The arms of the table: MiniLM fine-tuned on the mean
of its vectors ("mean"), by the course's loop or by the `Trainer` of `transformers` ("trainer", which needs the package
accelerate), with a low-rank update of its queries and values alone ("lora"), or with rates that fall by a fifth from
layer to layer ("layers"), or on [CLS] with its pooler ("first"); by Keras's `fit` ("keras"), in float32, with a run of
ours in float32 beside it; the same architecture from random weights ("scratch"); a logistic regression on the mean
vectors of the frozen encoder ("frozen"), or on counts ("tfidf").

Of Rotten Tomatoes 4,000 sentences are to learn from, 1,000 to choose by, and 3,000 to report on. A seed draws which of
the 4,000 are learned from, the classifier, the dropout, and the order. Trials have the seed 0, and give each arm its
passes and its rate by their accuracy on the validation sentences; the runs that are told have the seeds 1, 2 and 3.

Of IMDb there are as many reviews, 1,000 of them to report on. An encoder reads both ends of a long one, 128 tokens in
all, for one pass; counts read all of it.
"""

import json
import time
from contextlib import nullcontext
from functools import cache
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import torch

from course_lib.batches.texts import TextBatches
from course_lib.data import resolve, reviews
from course_lib.evaluation.baselines import frozen_features, tfidf
from course_lib.evaluation.classification import accuracy
from course_lib.models.bert import BertConfig
from course_lib.text.padding import head_and_tail
from course_lib.text.wordpiece import WordPiece
from course_lib.torch import BertForSequenceClassification, BertModel, fused_attention, get_state
from course_lib.torch.lora import add_lora
from course_lib.torch.training import loop, objectives
from course_lib.torch.training.classifier import embed, predict
from course_lib.torch.training.optimizers import adamw
from course_lib.training.schedules import warmup_then_linear_decay
from notebooks.experiments._classified import across, calibration, nll, scored, temperature, unpacked  # noqa: F401 (the lecture's)
from notebooks.experiments.harness import Experiment, Record, main, of_trials, table

POOL, VALIDATION = 4000, 1000  # reviews to learn from and to choose by
TEST = {"rotten-tomatoes": 3000, "imdb": 1000}  # to report on
SEEDS = (1, 2, 3)
COUNTED = ("tfidf", "frozen")  # arms that choose their one setting by cross-validation
FACTOR = {"mean": 1, "scratch": 1, "first": 1, "layers": 1, "lora": 0.8, "trainer": 1.2, "keras": 1.5}


class Run(NamedTuple):
    """One training; with a rate it is a trial, which chooses. `cut` says which tokens of a long review stay."""

    arm: str
    examples: int = 2000
    epochs: int | None = None
    lr: float | None = None
    seed: int = 0
    corpus: str = "rotten-tomatoes"
    max_len: int = 64
    cut: str = "first"
    precision: str = "bfloat16"

    @property
    def is_trial(self) -> bool:
        """Whether it serves to choose."""
        return self.lr is not None

    @property
    def point(self) -> tuple:
        """What a choice holds for: everything but epochs, rate and seed."""
        return self._replace(epochs=None, lr=None, seed=0)

    @property
    def name(self) -> str:
        """What the record calls this run."""
        corpus = "" if self.corpus == "rotten-tomatoes" else f"{self.corpus} {self.cut} {self.max_len} "
        precision = "" if self.precision == "bfloat16" else f" {self.precision}"
        trial = f" epochs={self.epochs} lr={self.lr:g}" if self.is_trial else ""
        return f"{corpus}{self.arm} {self.examples}{precision}{trial} seed={self.seed}"

    @property
    def seconds(self) -> float:
        """About, of one processor core."""
        if self.arm in COUNTED:
            return 20
        each = 0.012 * FACTOR[self.arm] * (self.max_len / 25 if self.corpus == "imdb" else 1)
        each *= 1 if self.precision == "bfloat16" else 2.5
        return each * (self.examples * (self.epochs or 2) + 1000 * (1 if self.is_trial else 1.5))


def trials(arm: str, examples: int, *tried: tuple[int, float], **more) -> list[Run]:
    """One run for each number of passes and rate."""
    return [Run(arm, examples, epochs, lr, **more) for epochs, lr in tried]


def told(arm: str, examples: int = 2000, **more) -> list[Run]:
    """One run for each seed."""
    return [Run(arm, examples, seed=seed, **more) for seed in SEEDS]


GRID = [(epochs, lr) for epochs in (1, 2, 3) for lr in (1e-4, 2e-4, 4e-4)]
BEYOND = [(3, 5e-5), (4, 5e-5), (4, 1e-4), (4, 2e-4)]  # around what is best of these, where it lies at their edge
THREE = [(3, lr) for lr in (5e-5, 1e-4, 2e-4, 4e-4)]  # with the passes that are best of ours
ONE = [(1, lr) for lr in (1e-4, 2e-4, 4e-4)]
LONG = {"corpus": "imdb", "max_len": 128, "cut": "both"}
RUNS = table(
    [
        *trials("mean", 2000, *GRID, *BEYOND),
        *told("mean"),
        *(run for n in (250, 500, 1000, 2000, 4000) for arm in COUNTED for run in told(arm, n)),
        *trials("mean", 250, (8, 2e-4), (16, 1e-4), (16, 2e-4)),
        *trials("mean", 250, (3, 2e-4), (3, 4e-4), (5, 2e-4), (5, 4e-4), (8, 1e-4)),
        *told("mean", 250),
        *trials("trainer", 2000, *THREE),
        *told("trainer"),
        *told("mean", 4000),
        *trials("lora", 2000, (3, 5e-4), (3, 1e-3), (3, 2e-3), (3, 4e-3)),
        *told("lora"),
        *trials("layers", 2000, *THREE, (3, 8e-4)),
        *told("layers"),
        *trials("mean", 1000, (3, 1e-4), (3, 2e-4), (3, 4e-4), (5, 1e-4), (5, 2e-4)),
        *told("mean", 1000),
        *trials("first", 2000, *THREE[1:]),
        *told("first"),
        *told("keras", precision="float32"),
        *told("mean", precision="float32"),
        *trials("scratch", 2000, *THREE, (3, 8e-4), (3, 1.6e-3), (10, 2e-4), (10, 4e-4), (10, 1e-4)),
        *trials("scratch", 2000, (20, 1e-4), (20, 2e-4)),
        *told("scratch"),
        *(run for arm in ("mean", "trainer") for run in (*trials(arm, 2000, *ONE, **LONG), *told(arm, **LONG))),
        *(run for arm in COUNTED for run in told(arm, **LONG)),
    ]
)


def chosen(run: Run, record: Record) -> Run:
    """A run with its epochs and its rate: those of a trial, or of the best of the trials of its point."""
    if run.is_trial or run.arm in COUNTED:
        return run
    tried = [trial for trial in RUNS.values() if trial.is_trial and trial.point == source(run).point]
    found = of_trials((trial.name for trial in tried), record)
    best = max(found.values(), key=lambda figures: (figures["validation"], -figures["nll"]))
    return run._replace(epochs=best["epochs"], lr=best["lr"])


def source(run: Run) -> Run:
    """Whose trials choose for a run: PyTorch's for Keras, those in bfloat16 for float32, those with 2,000 for 4,000."""
    arm = "mean" if run.arm == "keras" else run.arm
    return run._replace(arm=arm, examples=min(run.examples, 2000), precision="bfloat16")


def measure(run: Run, record: Record) -> dict:
    """Train, predict, and return how well: a trial on the validation set, the others on the test set too."""
    trial, run, begin = run.is_trial, chosen(run, record), time.process_time()
    data = prepared(run.corpus)
    rows = np.random.default_rng(run.seed).permutation(POOL)[: run.examples]
    parts = [data.validation] if trial else [data.validation, data.test]
    with precision(run):
        logits = FIT.get(run.arm, tuned)(run, data.train, rows, parts)
    figures = {"epochs": run.epochs, "lr": run.lr}
    figures |= {"validation": round(accuracy(logits[0].argmax(-1), parts[0].labels).value, 4)}
    figures |= {"nll": round(nll(logits[0], parts[0].labels), 4)}
    if not trial:
        labels = data.test.labels
        figures |= scored(logits[1], labels) | {
            "calibration": calibration(logits[1], labels),
            "temperature": (heat := round(temperature(logits[0], parts[0].labels), 3)),
            "cooled_nll": round(nll(logits[1] / heat, labels), 4),
            "cooled": calibration(logits[1] / heat, labels),
        }
    return figures | {"seconds": round(time.process_time() - begin, 1), "version": version("torch")}


def precision(run: Run):
    """The context in which a run computes.

    None for the Trainer, which opens its own for each batch: autocast keeps its copies of the weights until the
    outermost context ends, and in one around the whole training every update but the first would go unseen. (The
    course's loop drops the copies after each update.)
    """
    if run.arm == "trainer":
        return nullcontext()
    return torch.autocast("cpu", torch.bfloat16, enabled=run.precision == "bfloat16")


def tuned(run: Run, train, rows, parts) -> list:
    """The logits of each part by PyTorch's loop of the course."""
    sequences = [cut(train.ids[row], run) for row in rows]
    torch.manual_seed(run.seed)
    model = classifier(run.arm)
    batches = TextBatches(sequences, train.labels[rows], batch_size=32, seed=run.seed)
    n = len(batches) * run.epochs
    loop.train(
        model,
        batches,
        objectives.classification(),
        rate=lambda step: run.lr * warmup_then_linear_decay(step, n, n // 10),
        optimizer=adamw(model, layer_decay=0.8 if run.arm == "layers" else 1.0),
        max_norm=1.0,
        epochs=run.epochs,
        seed=run.seed,
        progress=False,
    )
    return [predict(model, [cut(ids, run) for ids in part.ids]) for part in parts]


def classifier(arm: str) -> BertForSequenceClassification:
    """MiniLM with a new classifier, or its architecture from random numbers everywhere."""
    if arm == "scratch":
        settings = json.loads((resolve("minilm-l6") / "config.json").read_text()) | {"classifier_pooling": "mean"}
        return BertForSequenceClassification(BertConfig.from_hugging_face(settings), attention=fused_attention)
    pooling = "first" if arm == "first" else "mean"
    model = BertForSequenceClassification.from_pretrained(
        "minilm-l6", new=["classifier"], attention=fused_attention, pooling=pooling
    )
    if arm == "lora":
        add_lora(model, rank=8, also=["classifier"])
    return model


def by_trainer(run: Run, train, rows, parts) -> list:
    """The same by the Trainer."""
    from notebooks.experiments import _trainer  # needs accelerate

    sequences = [cut(train.ids[row], run) for row in rows]
    return _trainer.fitted(run, sequences, train.labels[rows], [[cut(ids, run) for ids in p.ids] for p in parts])


def by_keras(run: Run, train, rows, parts) -> list:
    """The same by compile and fit, from the same first weights."""
    from course_lib import tensorflow as in_tensorflow
    from course_lib.tensorflow.training import classifier as keras_training

    torch.manual_seed(run.seed)
    model = in_tensorflow.BertForSequenceClassification.from_pretrained(
        "minilm-l6", new=["classifier"], attention=in_tensorflow.fused_attention, pooling="mean"
    )
    in_tensorflow.set_state(model, get_state(classifier("mean")))
    sequences = [cut(train.ids[row], run) for row in rows]
    keras_training.train(model, sequences, train.labels[rows], run.epochs, lr=run.lr, seed=run.seed, progress=False)
    return [keras_training.predict(model, [cut(ids, run) for ids in part.ids]) for part in parts]


def frozen(run: Run, train, rows, parts) -> list:
    """A logistic regression on mean vectors that stay as they are."""
    model = frozen_features().fit(vectors(run.corpus, run.max_len, run.cut, "train")[rows], train.labels[rows])
    names = Data._fields[1 : 1 + len(parts)]
    return [log_odds(model, vectors(run.corpus, run.max_len, run.cut, name)) for name in names]


def counted(run: Run, train, rows, parts) -> list:
    """A logistic regression on counts of words and pairs of words."""
    model = tfidf().fit(train.texts[rows], train.labels[rows])
    return [log_odds(model, part.texts) for part in parts]


FIT = {"trainer": by_trainer, "keras": by_keras, "frozen": frozen, "tfidf": counted}


def log_odds(model, x):
    """The logarithms of a model's probabilities, (N, 2), which serve as logits."""
    return np.log(np.clip(model.predict_proba(x), 1e-12, 1))


@cache
def vectors(corpus: str, max_len: int, which: str, part: str):
    """The frozen encoder's mean vectors of a part of a corpus, of texts that are cut."""
    encoder, run = BertModel.from_pretrained("minilm-l6", attention=fused_attention), Run("frozen", cut=which)
    return embed(encoder, [cut(ids, run._replace(max_len=max_len)) for ids in getattr(prepared(corpus), part).ids])


class Part(NamedTuple):
    """Reviews as texts and as ids."""

    texts: np.ndarray
    ids: list
    labels: np.ndarray


class Data(NamedTuple):
    """What is learned from, chosen by, and reported on."""

    train: Part
    validation: Part
    test: Part


@cache
def prepared(corpus: str) -> Data:
    """The split of a corpus; no text stands in two parts."""
    split = reviews.split(reviews.load(corpus), train=POOL, held_out=VALIDATION + TEST[corpus])
    tokenizer = WordPiece.from_pretrained("minilm-l6")
    parts = []
    for texts, labels in (
        split.train,
        [x[:VALIDATION] for x in split.held_out],
        [x[VALIDATION:] for x in split.held_out],
    ):
        parts.append(Part(texts, tokenizer.encode(list(texts), pad=False).ids, labels))
    return Data(*parts)


def cut(ids, run: Run):
    """The ids of a text, no more than the run allows: its beginning, or both ends."""
    return head_and_tail(ids, run.max_len, run.max_len - 1 if run.cut == "first" else run.max_len // 2)


def rights(figures: dict) -> np.ndarray:
    """Which test sentences a recorded run was right on, boolean (N,)."""
    return unpacked(figures["right"], TEST[figures["corpus"]])


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "frozen")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
