"""How much of a long film review does a fine-tuned encoder need to see, against a count of all its words?

The arm "first" fine-tunes MiniLM in PyTorch on 2,000 reviews of IMDb, cut to 128 or 256 tokens in two ways, and
predicts 1,000 held-out ones; TF-IDF with a logistic regression gets the same reviews, whole. One seed, one pass, [CLS]
and its pooler, and one rate that was not chosen on validation data: the runs compare cuts, and none of them is the best
possible. The arm "counts" is TF-IDF on the tokens that are left of a cut: what a cut takes from a reader of words.

A training takes minutes on all cores, a count seconds.
"""

import time
from typing import NamedTuple

import numpy as np
import torch

from course_lib.data import reviews
from course_lib.evaluation.baselines import tfidf
from course_lib.evaluation.classification import accuracy
from course_lib.text.padding import head_and_tail
from course_lib.text.wordpiece import WordPiece
from course_lib.torch import BertForSequenceClassification, fused_attention
from course_lib.torch.training.classifier import predict, train
from notebooks.experiments.harness import Experiment, Record, main, table

HELD_OUT = 1000  # reviews to predict


class Run(NamedTuple):
    """One training: `cut` says which tokens of a long review stay, "first" or "both" ends."""

    max_len: int
    cut: str = "first"
    corpus: str = "imdb"
    examples: int = 2000
    epochs: int = 1
    lr: float = 2e-4
    seed: int = 0
    arm: str = "first"

    @property
    def name(self) -> str:
        """What the record calls this run."""
        arm = "" if self.arm == "first" else f"{self.arm} "
        return f"{self.corpus} {self.examples} {arm}{self.cut} {self.max_len} seed={self.seed}"

    @property
    def seconds(self) -> float:
        """About, on two cores."""
        return 20 if self.arm == "counts" else 8e-4 * self.examples * self.epochs * self.max_len


CUTS = [Run(128, "first"), Run(128, "both"), Run(256, "both")]
RUNS = table([*CUTS, *(run._replace(arm="counts") for run in (*CUTS, Run(10_000)))])  # the last one cuts nothing


def measure(run: Run, record: Record) -> dict:
    """Train, predict, and return the accuracies with their 95% intervals."""
    train_set, held_out = reviews.split(reviews.load(run.corpus), train=run.examples, held_out=HELD_OUT)
    tokenizer = WordPiece.from_pretrained("minilm-l6")
    if run.arm == "counts":
        return count(tokenizer, train_set, held_out, run)
    torch.manual_seed(run.seed)
    model = BertForSequenceClassification.from_pretrained("minilm-l6", new=["classifier"], attention=fused_attention)
    begin = time.perf_counter()
    losses = train(
        model, sequences(tokenizer, train_set.texts, run), train_set.labels, run.epochs, lr=run.lr, seed=run.seed
    )
    seconds = time.perf_counter() - begin
    predictions = predict(model, sequences(tokenizer, held_out.texts, run), progress=True).argmax(-1)
    baseline = tfidf().fit(train_set.texts, train_set.labels).predict(held_out.texts)
    return {
        "accuracy": [round(x, 4) for x in accuracy(predictions, held_out.labels)],
        "tfidf": [round(x, 4) for x in accuracy(baseline, held_out.labels)],
        "last_loss": round(float(losses[-10:].mean()), 3),
        "seconds": round(seconds),
        "torch": torch.__version__,
    }


def count(tokenizer: WordPiece, train_set, held_out, run: Run) -> dict:
    """TF-IDF's accuracy on what a cut leaves of each text; how many texts are cut, and how much is left of all."""
    begin = time.perf_counter()
    ids = [sequences(tokenizer, part.texts, run) for part in (train_set, held_out)]
    left = [[tokenizer.decode(each) for each in part] for part in ids]
    predictions = tfidf().fit(left[0], train_set.labels).predict(left[1])
    whole = np.array([len(each) for each in tokenizer.encode(list(train_set.texts), pad=False).ids])
    return {
        "accuracy": [round(x, 4) for x in accuracy(predictions, held_out.labels)],
        "are_cut": round(float((whole > run.max_len).mean()), 3),
        "left": round(sum(map(len, ids[0])) / float(whole.sum()), 3),
        "median": float(np.median(whole)),
        "seconds": round(time.perf_counter() - begin),
    }


def sequences(tokenizer: WordPiece, texts, run: Run) -> list:
    """The token ids of each text, no longer than the run allows."""
    if run.cut == "first":
        return tokenizer.encode(list(texts), max_len=run.max_len, pad=False).ids
    return [head_and_tail(ids, run.max_len, run.max_len // 2) for ids in tokenizer.encode(list(texts), pad=False).ids]


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "both", one_core=False)

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
