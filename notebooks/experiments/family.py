"""Which member of BERT's family should a small task take, and what does a teacher give to a smaller one?

All learn to tell good film reviews from bad ones, on Rotten Tomatoes. The teacher is MiniLM, fine-tuned on the 2,000
labelled sentences of *Fine-tuning BERT*'s seed 1, in one pass at the rate of the lowest loss there in one. What it says
of these sentences, and of 4,000 more from film reviews of IMDb whose labels nobody reads, is computed once and kept.

Its students are of two kinds. *Cut* ones have MiniLM's embeddings and two of its six layers, the first and the fourth,
and make one pass. *Small* ones begin from random numbers, as a BERT of 2 layers of 64 features, a DistilBERT of one, or
an ALBERT of 2 layers that are one, with 16 features for a token. They learn from the labels of the 2,000 ("labels");
from what the teacher says of the 2,000 ("said", by temperature 2 and with no label), or of all 6,000 ("more said"); or
from the classes alone that it gives the 6,000 ("more classes"). TF-IDF with logistic regression learns from the latter.

Each arm has trials with the seed 0, and takes the passes and the rate that are best on 1,000 validation sentences. The
runs that are told have the seeds 1, 2 and 3, and 3,000 test sentences. A seed draws the first weights, the dropout and
the order; the sentences and the one teacher are the same for all, so the seeds do not say what another teacher would.
"""

import time
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from course_lib.batches.texts import IGNORED, TextBatches
from course_lib.data import pretraining_texts, reviews
from course_lib.evaluation.baselines import tfidf
from course_lib.evaluation.classification import accuracy
from course_lib.models.albert import AlbertConfig
from course_lib.models.bert import BertConfig
from course_lib.models.bert_heads import ClassifierOutput
from course_lib.models.distilbert import DistilBertConfig
from course_lib.text.sentences import sentences
from course_lib.text.wordpiece import WordPiece
from course_lib.torch import (
    AlbertForSequenceClassification,
    BertForSequenceClassification,
    DistilBertForSequenceClassification,
    fused_attention,
)
from course_lib.torch.training import loop, objectives
from course_lib.torch.training.classifier import predict
from course_lib.torch.training.optimizers import adamw
from course_lib.training.schedules import warmup_then_linear_decay
from notebooks.experiments import fine_tuning
from notebooks.experiments._classified import across, nll, scored, unpacked  # noqa: F401 (across: the lecture's)
from notebooks.experiments.harness import Experiment, Record, Waiting, main, name_of, of_trials, table

CORPUS, MAX_LEN = "rotten-tomatoes", 64
LABELLED, MORE = 2000, 4000  # sentences
WORDS = (8, 32)  # of a sentence of IMDb, at least and at most
TEMPERATURE, SEEDS = 2.0, (1, 2, 3)
TAUGHT = fine_tuning.Run("mean", LABELLED, 1, 2e-4, seed=SEEDS[0], max_len=MAX_LEN, precision="float32")
SMALL = {"vocab_size": 30522, "d_model": 64, "n_layers": 2, "n_heads": 4, "d_ff": 256, "max_len": MAX_LEN}
SMALL |= {"pooling": "mean"}  # so that they differ in nothing but what is asked


def small_bert() -> BertForSequenceClassification:
    """2 layers of 64 features."""
    return BertForSequenceClassification(BertConfig(**SMALL), attention=fused_attention)


def small_distilbert() -> DistilBertForSequenceClassification:
    """Half of its layers, and no segments."""
    config = DistilBertConfig(**SMALL | {"n_layers": 1}, classifier_dropout=0.1)
    return DistilBertForSequenceClassification(config, attention=fused_attention)


def small_albert() -> AlbertForSequenceClassification:
    """One layer twice, and a quarter of the features for a token."""
    config = AlbertConfig(**SMALL, d_embedding=16, activation="gelu", dropout=0.1, attention_dropout=0.1)
    return AlbertForSequenceClassification(config, attention=fused_attention)


def cut_minilm() -> BertForSequenceClassification:
    """MiniLM with its first layer and its fourth."""
    model = fine_tuning.classifier("mean")
    model.bert.encoder.layers = model.bert.encoder.layers[::3]
    return model


class Arm(NamedTuple):
    """A student and what it learns from; `tried` are the passes and the rates of its trials."""

    model: Callable[[], nn.Module] | None
    taught: str  # "labels", "said" or "classes"
    more: bool  # of 6,000 sentences, and not of 2,000
    tried: tuple[tuple[int, float], ...]
    seconds: float  # of a pass, about


FEW = ((2, 1e-3), (4, 1e-3), (4, 2e-3), (4, 4e-3))
MANY = ((2, 1e-3), (2, 2e-3), (2, 4e-3), (4, 2e-3))
CUT = ((1, 2e-4), (1, 4e-4))
ARMS = {
    "small BERT, labels": Arm(small_bert, "labels", False, FEW, 3),
    "small BERT, said": Arm(small_bert, "said", False, FEW, 3),
    "small BERT, more said": Arm(small_bert, "said", True, MANY, 9),
    "small ALBERT, more said": Arm(small_albert, "said", True, MANY, 8),
    "small DistilBERT, more said": Arm(small_distilbert, "said", True, MANY, 5),
    "small BERT, more classes": Arm(small_bert, "classes", True, MANY, 9),
    "cut MiniLM, labels": Arm(cut_minilm, "labels", False, CUT, 25),
    "cut MiniLM, said": Arm(cut_minilm, "said", False, CUT, 25),
}
TEACHER, COUNTED = "teacher", "TF-IDF, more classes"


class Run(NamedTuple):
    """The teacher, its words counted, or the training of a student; with a rate it is a trial."""

    arm: str
    epochs: int | None = None
    rate: float | None = None
    seed: int | None = None

    @property
    def is_trial(self) -> bool:
        """Whether it serves to choose."""
        return self.rate is not None

    @property
    def name(self) -> str:
        """What the record calls this run."""
        return name_of(self)

    @property
    def seconds(self) -> float:
        """About, of one processor core."""
        if self.arm in (TEACHER, COUNTED):
            return {TEACHER: 220, COUNTED: 15}[self.arm]
        arm = ARMS[self.arm]
        return 10 + arm.seconds * (self.epochs or arm.tried[-1][0])


def _runs():
    yield from (Run(TEACHER), Run(COUNTED))
    for name, arm in ARMS.items():
        yield from (Run(name, epochs, rate, 0) for epochs, rate in arm.tried)
        yield from (Run(name, seed=seed) for seed in SEEDS)


RUNS = table(_runs())


def chosen(run: Run, record: Record) -> Run:
    """A run with its passes and its rate: those of a trial, or of the arm's best trial."""
    if run.is_trial:
        return run
    trials = [trial for trial in RUNS.values() if trial.is_trial and trial.arm == run.arm]
    found = of_trials((trial.name for trial in trials), record)
    best = max(found.values(), key=lambda figures: (figures["validation"], -figures["nll"]))
    return run._replace(epochs=best["epochs"], rate=best["rate"])


def measure(run: Run, record: Record) -> dict:
    """Train and predict: a trial on the validation sentences, the others on the test sentences too."""
    begin, data, trial = time.process_time(), fine_tuning.prepared(CORPUS), run.is_trial
    if run.arm == TEACHER:
        logits = taught(record)
    elif run.arm == COUNTED:
        texts, said = [*labelled().texts, *kept(record).texts], kept(record).logits
        model = tfidf().fit(texts, said.argmax(-1))
        logits = [fine_tuning.log_odds(model, part.texts) for part in (data.validation, data.test)]
    else:
        run = chosen(run, record)
        model = student(run, kept(record))
        logits = [predict(model, cut(part.ids)) for part in ([data.validation] if trial else data[1:])]
    figures = {"epochs": run.epochs, "rate": run.rate}
    figures |= {"validation": round(accuracy(logits[0].argmax(-1), data.validation.labels).value, 4)}
    figures |= {"nll": round(nll(logits[0], data.validation.labels), 4)}
    if not trial:
        figures |= scored(logits[1], data.test.labels)
    return figures | {"seconds": round(time.process_time() - begin, 1), "version": version("torch")}


def labelled() -> fine_tuning.Part:
    """The sentences that the teacher learns from."""
    train = fine_tuning.prepared(CORPUS).train
    rows = np.random.default_rng(TAUGHT.seed).permutation(fine_tuning.POOL)[:LABELLED]
    return fine_tuning.Part(train.texts[rows], [train.ids[row] for row in rows], train.labels[rows])


def taught(record: Record) -> list:
    """Fine-tune the teacher, keep what it says of the sentences to learn from; its logits of the held-out ones."""
    data = fine_tuning.prepared(CORPUS)
    where = drawn([*data.validation.texts, *data.test.texts])
    own, more = labelled(), fine_tuning.Part(None, encoded(texts_at(where)), None)
    parts = [own, more, data.validation, data.test]
    first, others, *held_out = fine_tuning.tuned(TAUGHT, own, np.arange(LABELLED), parts)
    record.keep("said of the labelled", (f"{low:.3f} {high:.3f}" for low, high in first))
    lines = zip(where, others, strict=True)
    record.keep("said of more", (f"{row} {place} {low:.3f} {high:.3f}" for (row, place), (low, high) in lines))
    return held_out


def drawn(held_out) -> list[tuple[int, int]]:
    """Sentences of IMDb: the number of the review, and of the sentence in it. None is from near a held-out text."""
    allowed = set(pretraining_texts.load(held_out, corpora=("imdb",), progress=False).texts)
    texts = reviews.load("imdb", progress=False).texts
    least, most = WORDS
    found = []
    for row in np.random.default_rng(0).permutation(len(texts)):
        if texts[row] in allowed:
            pieces = enumerate(sentences(texts[row]))
            found += [(int(row), place) for place, piece in pieces if least <= len(piece.split()) <= most]
        if len(found) >= MORE:
            break
    return found[:MORE]


def cut(sequences) -> list:
    """Ids as the teacher reads them, no more than MAX_LEN."""
    return [fine_tuning.cut(ids, TAUGHT) for ids in sequences]


def texts_at(where) -> list[str]:
    """The sentences that stand at these numbers."""
    texts, pieces = reviews.load("imdb", progress=False).texts, cache(sentences)
    return [pieces(texts[row])[place] for row, place in where]


def encoded(texts) -> list:
    """The ids of texts for MiniLM."""
    return WordPiece.from_pretrained("minilm-l6").encode(list(texts), max_len=MAX_LEN, pad=False).ids


class Kept(NamedTuple):
    """Sentences beyond the labelled ones, and what the teacher said of both: logits (LABELLED + MORE, 2)."""

    texts: list[str]
    ids: list
    logits: np.ndarray


def kept(record: Record) -> Kept:
    """What the teacher's run left in the record; Waiting if there was none."""
    files = [record.folder / f"said of {which}.txt" for which in ("the labelled", "more")]
    if not all(file.exists() for file in files):
        raise Waiting(f"a student learns from its teacher; run first {TEACHER}")
    return _kept(*files)


@cache
def _kept(labelled_file, more_file) -> Kept:
    first, more = np.loadtxt(labelled_file), np.loadtxt(more_file)
    texts = texts_at(more[:, :2].astype(int))
    return Kept(texts, encoded(texts), np.concatenate([first, more[:, 2:]]).astype(np.float32))


class Remembered(nn.Module):
    """A teacher whose logits were computed once, and are found by the ids of a text.

    Parameters
    ----------
    sequences : N arrays of ids, shape (length,)
    logits : shape (N, n_classes)
    pad_id : what ids are padded with
    """

    def __init__(self, sequences, logits, pad_id: int = 0):
        super().__init__()
        self.pad_id = pad_id
        self.logits = nn.Parameter(torch.tensor(logits), requires_grad=False)
        self.rows = {tuple(map(int, ids)): row for row, ids in enumerate(sequences)}

    def forward(self, ids, mask=None):
        """ids (B, T) -> ClassifierOutput: logits (B, n_classes); KeyError for a text that was not there."""
        rows = [self.rows[tuple(row[row != self.pad_id].tolist())] for row in ids]
        return ClassifierOutput(self.logits[rows], None, None)


def student(run: Run, said: Kept) -> nn.Module:
    """A student of an arm, trained."""
    arm, own = ARMS[run.arm], labelled()
    sequences = cut([*own.ids, *said.ids] if arm.more else own.ids)
    logits = said.logits[: len(sequences)]
    labels = {"labels": own.labels, "classes": logits.argmax(-1), "said": np.full(len(logits), IGNORED)}[arm.taught]
    objective = objectives.classification()
    if arm.taught == "said":
        objective = objectives.distillation(Remembered(sequences, logits), TEMPERATURE, alpha=1.0)
    torch.manual_seed(run.seed)
    model = arm.model()
    fit(model, TextBatches(sequences, labels, batch_size=32, seed=run.seed), objective, run)
    return model


def fit(model, batches, objective, run: Run) -> None:
    """Train a model in place: up to the rate over a tenth of the updates, then down to nothing."""
    n = run.epochs * len(batches)
    loop.train(
        model,
        batches,
        objective,
        rate=lambda step: run.rate * warmup_then_linear_decay(step, n, n // 10),
        optimizer=adamw(model),
        max_norm=1.0,
        epochs=run.epochs,
        seed=run.seed,
        progress=False,
    )


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "ALBERT")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
