"""Does cheap attention bring the rest of a long review into a classifier, as well as attention to everything does?

The small BERT that the library ships, `bert-en`, is fine-tuned on reviews of IMDb, which it has never read: its texts
were articles of WikiText-2. It knows 128 positions; its table of positions is laid end to end until it has 1,024, as
Longformer's was (Beltagy et al. 2020, section 5). Then the arms differ in what they read of a review and how:
"first 128" its first tokens, "both 128" its first 64 and its last 64, both with full attention; the others up to 1,024
tokens, with full attention, with a window of 32 tokens on each side and [CLS] global ("windowed"), with linear
attention, or with none that looks anywhere: "equal" gives each token the mean of all values. [CLS] and a pooler, which
`bert-en` has not learned, decide.

There are 2,000 reviews to learn from, 1,000 to choose by and 1,000 to report on. Each arm has the best of four rates,
or of five where the highest of four was best, by its accuracy on those to choose by, with a seed of its own; then three
seeds train with it, as long: three passes, with dropout of a tenth. A batch has texts of about one length, so that
little is padded.

"counts" is TF-IDF with a logistic regression, on the tokens that are left of a cut.
"""

import time
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from typing import NamedTuple

import numpy as np

from course_lib.data import reviews
from course_lib.evaluation.baselines import tfidf
from course_lib.evaluation.classification import accuracy
from course_lib.text.padding import head_and_tail
from course_lib.text.wordpiece import WordPiece
from notebooks.experiments._classified import scored
from notebooks.experiments.harness import Experiment, Record, main, of_trials, table

EXAMPLES, VALIDATION, TEST = 2000, 1000, 1000  # reviews
LONGEST, SHORT, WINDOW = 1024, 128, 32  # tokens of a review, and on each side of one
READ = ("full", "windowed", "linear", "equal")  # up to LONGEST tokens; of the other arms SHORT
CUTS = ("first 128", "both 128")
ARMS = (*CUTS, *READ)
COUNTED = ("first 128", "both 128", "whole")
SEEDS, TRIAL_SEED = (1, 2, 3), 0
RATES = dict.fromkeys(ARMS, (5e-4, 1e-3, 2e-3, 4e-3)) | {"linear": (5e-4, 1e-3, 2e-3, 4e-3, 8e-3)}
EPOCHS, BATCH, DROPOUT = 3, 32, 0.1


class Run(NamedTuple):
    """A training, or a count; with a rate it is a trial."""

    arm: str
    seed: int = TRIAL_SEED
    lr: float | None = None
    counts: bool = False

    @property
    def is_trial(self) -> bool:
        """Whether it serves to choose."""
        return self.lr is not None

    @property
    def name(self) -> str:
        """What the record calls this run."""
        if self.counts:
            return f"counts {self.arm}"
        return f"{self.arm} trial {self.lr:g}" if self.is_trial else f"{self.arm} {self.seed}"

    @property
    def seconds(self) -> float:
        """Of one processor core, about."""
        return 30.0 if self.counts else 90.0 if self.arm in CUTS else 350.0


RUNS = table(
    [
        *(Run(arm, counts=True) for arm in COUNTED),
        *(Run(arm, lr=lr) for arm in ARMS for lr in RATES[arm]),
        *(Run(arm, seed) for seed in SEEDS for arm in ARMS),
    ]
)


@cache
def texts() -> dict:
    """Reviews to learn from, to choose by and to report on."""
    drawn = reviews.split(reviews.load("imdb"), train=EXAMPLES + VALIDATION, held_out=TEST)
    parts = {"train": slice(EXAMPLES), "validation": slice(EXAMPLES, None)}
    found = {part: (drawn.train.texts[rows], drawn.train.labels[rows]) for part, rows in parts.items()}
    return found | {"test": tuple(drawn.held_out)}


@cache
def tokenizer() -> WordPiece:
    """That of `bert-en`."""
    return WordPiece.from_pretrained("bert-en")


@cache
def ids_of(part: str) -> list[np.ndarray]:
    """The token ids of each review of a part, whole."""
    return tokenizer().encode(list(texts()[part][0]), pad=False).ids


def read(part: str, arm: str) -> list[np.ndarray]:
    """The token ids that an arm reads of each review of a part."""
    if arm == "whole":
        return ids_of(part)
    longest = SHORT if arm in CUTS else LONGEST
    head = longest // 2 if arm == "both 128" else longest - 1
    return [head_and_tail(ids, longest, head) for ids in ids_of(part)]


def equal_attention(q, k, v, mask=None, bias=None, dropout=0.0, scale=None, causal=False):
    """An attention function that looks nowhere: each query has the mean of the values that it may see."""
    from course_lib.torch import fused_attention

    return fused_attention(q * 0.0, k, v, mask=mask, causal=causal)


def model_of(arm: str, seed: int, longest: int = LONGEST):
    """The classifier, with the weights of `bert-en` and a table of positions that repeats its own."""
    import torch

    from course_lib.torch import (
        BertForSequenceClassification,
        fused_attention,
        get_state,
        linear_attention,
        set_state,
        windowed,
    )

    cheap = {"windowed": windowed(WINDOW, global_positions=(0,)), "linear": linear_attention, "equal": equal_attention}
    torch.manual_seed(seed)
    known = BertForSequenceClassification.from_pretrained("bert-en", new=["pooler", "classifier"])
    state = get_state(known)
    (name,) = (name for name in state if "position" in name)
    state[name] = np.tile(state[name], (-(-longest // len(state[name])), 1))[:longest]
    config = replace(known.config, max_len=longest, dropout=DROPOUT)
    model = BertForSequenceClassification(config, cheap.get(arm, fused_attention))
    set_state(model, state)
    return model


def measure(run: Run, record: Record) -> dict:
    """Train and predict, or count."""
    begin = time.process_time()
    if run.counts:
        return counted(run.arm) | {"core seconds": round(time.process_time() - begin)}
    import torch

    from course_lib.torch.training.classifier import predict, train

    torch.set_flush_denormal(True)  # numbers under 1e-38 take a processor ten times as long
    lr, model = run.lr if run.is_trial else chosen(run.arm, record), model_of(run.arm, run.seed)
    sides = read("train", run.arm), texts()["train"][1]
    losses = train(model, *sides, EPOCHS, BATCH, lr, seed=run.seed, progress=False)
    figures = {"lr": lr, "losses": np.reshape(losses[: len(losses) // 25 * 25], (-1, 25)).mean(1).round(3).tolist()}
    figures["core seconds"] = round(time.process_time() - begin)
    part = "validation" if run.is_trial else "test"
    logits = predict(model, read(part, run.arm))
    figures |= scored(logits, texts()[part][1])
    return figures | {"version": version("torch")}


def counted(arm: str) -> dict:
    """TF-IDF's accuracy on what a cut leaves of each review, which were right; how many are cut, and what is left."""
    sides = [[tokenizer().decode(ids) for ids in read(part, arm)] for part in ("train", "test")]
    answers = tfidf().fit(sides[0], texts()["train"][1]).predict(sides[1])
    whole, left = (np.array([len(ids) for ids in found]) for found in (ids_of("train"), read("train", arm)))
    right = answers == texts()["test"][1]
    return {
        "accuracy": [round(x, 4) for x in accuracy(answers, texts()["test"][1])],
        "right": np.packbits(right).tobytes().hex(),
        "are_cut": round(float((whole > left).mean()), 3),
        "beyond_longest": round(float((whole > LONGEST).mean()), 3),
        "left": round(float(left.sum() / whole.sum()), 3),
        "median": float(np.median(whole)),
    }


def chosen(arm: str, record: Record) -> float:
    """The rate of the arm's best trial, by accuracy; of two that are level the lower one."""
    trials = of_trials((Run(arm, lr=lr).name for lr in RATES[arm]), record).values()
    return max(trials, key=lambda figures: (figures["accuracy"][0], -figures["lr"]))["lr"]


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "equal")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
