"""What does a pretrained BERT bring to a task of your own, and how much depends on the data, the length and the luck?

Each run fine-tunes MiniLM in PyTorch on film reviews, or trains the same architecture from random weights, and predicts
1,000 held-out ones; TF-IDF with a logistic regression gets the same reviews. Sentences of Rotten Tomatoes come in
250 to 4,000 examples and with three seeds, the longer reviews of IMDb cut to 128 or 256 tokens in two ways, all in one
pass. The smallest set is also passed through eight times: few examples need not mean few updates. The run with 2,000
sentences and the seed 0 is made by the lecture itself, *Fine-tuning BERT*, which tells what came out.

A run takes from seconds to minutes on all cores.
"""

import json
import time
from typing import NamedTuple

import torch

from course_lib.data import resolve, reviews
from course_lib.evaluation.baselines import tfidf
from course_lib.evaluation.classification import accuracy
from course_lib.models.bert import BertConfig
from course_lib.text.padding import head_and_tail
from course_lib.text.wordpiece import WordPiece
from course_lib.torch import BertForSequenceClassification, fused_attention
from course_lib.torch.training.classifier import predict, train
from notebooks.experiments.harness import Experiment, Record, main, table

HELD_OUT = 1000  # reviews to predict


class Run(NamedTuple):
    """One training: `cut` says which tokens of a long review stay, "first" or "both" ends."""

    corpus: str
    examples: int
    max_len: int
    cut: str = "first"
    start: str = "checkpoint"  # or "scratch"
    epochs: int = 1
    lr: float = 2e-4
    seed: int = 0

    @property
    def name(self) -> str:
        """What the record calls this run."""
        data = f"{self.corpus} {self.examples} {self.cut} {self.max_len}"
        return f"{data} {self.start} epochs={self.epochs} lr={self.lr:g} seed={self.seed}"

    @property
    def seconds(self) -> float:
        """About, on two cores: a review of IMDb fills its length, a sentence has some 25 tokens."""
        return 8e-4 * self.examples * self.epochs * (self.max_len if self.corpus == "imdb" else 25)


RUNS = table(
    [
        Run("imdb", 2000, 128, "first"),
        Run("imdb", 2000, 128, "both"),
        Run("imdb", 2000, 256, "both"),
        *(Run("rotten-tomatoes", n, 64) for n in (250, 500, 1000, 4000)),
        *(Run("rotten-tomatoes", 2000, 64, seed=seed) for seed in (1, 2)),
        *(Run("rotten-tomatoes", 2000, 64, start="scratch", epochs=epochs) for epochs in (1, 8)),
        Run("rotten-tomatoes", 250, 64, epochs=8),
    ]
)


def measure(run: Run, record: Record) -> dict:
    """Train, predict, and return the accuracies with their 95% intervals."""
    train_set, held_out = reviews.split(reviews.load(run.corpus), train=run.examples, held_out=HELD_OUT)
    tokenizer = WordPiece.from_pretrained("minilm-l6")
    torch.manual_seed(run.seed)
    model = classifier(run.start)
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


def classifier(start: str) -> BertForSequenceClassification:
    """MiniLM with a new classifier, or its architecture from random numbers everywhere."""
    if start == "scratch":
        settings = json.loads((resolve("minilm-l6") / "config.json").read_text())
        return BertForSequenceClassification(BertConfig.from_hugging_face(settings), attention=fused_attention)
    return BertForSequenceClassification.from_pretrained("minilm-l6", new=["classifier"], attention=fused_attention)


def sequences(tokenizer: WordPiece, texts, run: Run) -> list:
    """The token ids of each text, no longer than the run allows."""
    if run.cut == "first":
        return tokenizer.encode(list(texts), max_len=run.max_len, pad=False).ids
    return [head_and_tail(ids, run.max_len, run.max_len // 2) for ids in tokenizer.encode(list(texts), pad=False).ids]


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "scratch", one_core=False)

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
