"""The longer runs of the lecture *Fine-tuning BERT*, and the figures they gave, in the JSON file beside this one.

    python notebooks/results/09-fine-tuning-bert.py              every run that the file lacks
    python notebooks/results/09-fine-tuning-bert.py imdb         those whose name contains a word
    python notebooks/results/09-fine-tuning-bert.py --again      all of them again

Each run fine-tunes MiniLM in PyTorch, or trains the same architecture from random weights, and predicts 1,000
held-out reviews. Its figures are written as soon as it ends, so an interruption loses one run only.
"""

import argparse
import json
import time
from pathlib import Path
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

FILE = Path(__file__).with_suffix(".json")


class Run(NamedTuple):
    """One training: `cut` says which tokens of a long review stay, "first" or "both" ends."""

    corpus: str
    examples: int
    max_len: int
    cut: str = "first"
    start: str = "checkpoint"
    epochs: int = 1
    lr: float = 2e-4
    seed: int = 0

    @property
    def name(self) -> str:
        """What the JSON file calls this run."""
        data = f"{self.corpus} {self.examples} {self.cut} {self.max_len}"
        return f"{data} {self.start} epochs={self.epochs} lr={self.lr:g} seed={self.seed}"


RUNS = (
    [Run("imdb", 2000, 128, "first"), Run("imdb", 2000, 128, "both")]
    + [Run("rotten-tomatoes", 2000, 64, seed=seed) for seed in (0, 1, 2)]
    + [Run("imdb", 2000, 256, "both")]
    + [Run("rotten-tomatoes", n, 64) for n in (1000, 4000, 500, 250)]
    + [Run("rotten-tomatoes", 2000, 64, start="scratch", epochs=epochs) for epochs in (1, 8)]
)


def sequences(tokenizer: WordPiece, texts, run: Run) -> list:
    """The token ids of each text, no longer than the run allows."""
    if run.cut == "first":
        return tokenizer.encode(list(texts), max_len=run.max_len, pad=False).ids
    return [head_and_tail(ids, run.max_len, run.max_len // 2) for ids in tokenizer.encode(list(texts), pad=False).ids]


def figures(run: Run) -> dict:
    """Train, predict, and return the accuracies with their 95% intervals."""
    train_set, held_out = reviews.split(reviews.load(run.corpus), train=run.examples, held_out=1000)
    tokenizer = WordPiece.from_pretrained("minilm-l6")
    torch.manual_seed(run.seed)
    if run.start == "scratch":
        settings = json.loads((resolve("minilm-l6") / "config.json").read_text())
        model = BertForSequenceClassification(BertConfig.from_hugging_face(settings), attention=fused_attention)
    else:
        model = BertForSequenceClassification.from_pretrained(
            "minilm-l6", new=["classifier"], attention=fused_attention
        )
    begin = time.perf_counter()
    losses = train(
        model, sequences(tokenizer, train_set.texts, run), train_set.labels, run.epochs, lr=run.lr, seed=run.seed
    )
    seconds = time.perf_counter() - begin
    predictions = predict(model, sequences(tokenizer, held_out.texts, run), progress=True).argmax(-1)
    baseline = tfidf().fit(train_set.texts, train_set.labels).predict(held_out.texts)
    return {
        **run._asdict(),
        "accuracy": [round(x, 4) for x in accuracy(predictions, held_out.labels)],
        "tfidf": [round(x, 4) for x in accuracy(baseline, held_out.labels)],
        "last_loss": round(float(losses[-10:].mean()), 3),
        "seconds": round(seconds),
        "torch": torch.__version__,
    }


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description="The longer runs of the lecture Fine-tuning BERT.")
    parser.add_argument("word", nargs="?", default="", help="only runs whose name contains it")
    parser.add_argument("--again", action="store_true", help="also those that the file holds")
    options = parser.parse_args()
    results = json.loads(FILE.read_text()) if FILE.exists() else {}
    for run in RUNS:
        if options.word in run.name and (options.again or run.name not in results):
            print(run.name, flush=True)
            results[run.name] = figures(run)
            print(results[run.name], flush=True)
            FILE.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
