"""How much text does a small GPT need until it knows more of English than counts do?

Three layers of 128 features predict the next token of 600 articles, in windows of 128 tokens of byte-level BPE, 2,000
tokens in all. They are measured on the 60 articles of the test part, in bits per byte: each token once, with 64 tokens
or more before it. The rivals read the same articles once: Kneser-Ney models of up to two to five tokens, with discounts
chosen on the validation part, which also chooses among the four; the one of most tokens on a part of the articles, too.
Two compressors read the bytes of the training part first.

The peak of the learning rate is chosen by trainings of 300 updates with a seed of their own, on the validation part.
Then three seeds train for 1,200 updates, three for five times and three for twenty times as many, each to the end of a
schedule of its own. Of the first seed the weights of both longer trainings are kept, in half precision. Fresh matrices
have a deviation of 0.05, for GPT-2's 0.02 belongs to six times the width. Dropout was not tried: in the longest
training, which reads all articles seven times, the loss on the validation part falls to the end. The lecture *GPT: the
decoder alone* tells what came out.
"""

import time
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from course_lib.batches.streams import StreamBatches, joined, strides
from course_lib.checkpoints.weights import write_checkpoint
from course_lib.data import wikitext
from course_lib.evaluation.bits_per_byte import COMPRESSORS, bits_per_byte, compressed_bits
from course_lib.evaluation.ngrams import KneserNey
from course_lib.models.gpt import GPTConfig
from course_lib.text.byte_bpe import ByteLevelBPE
from course_lib.torch import GPT, fused_attention, get_state
from course_lib.torch.training import loop, objectives, optimizers
from course_lib.training.schedules import warmup_then_linear_decay
from notebooks.experiments.harness import Experiment, Record, main, of_trials, table

VOCABULARY, LENGTH, BATCH, STRIDE = 2000, 128, 8, 64
SIZES = {"d_model": 128, "n_layers": 3, "n_heads": 4, "d_ff": 512, "max_len": LENGTH, "init_std": 0.05}
QUIET = {"dropout": 0.0, "attention_dropout": 0.0, "embedding_dropout": 0.0}
BUDGETS = {1200: (1, 2, 3), 6000: (1, 2, 3), 24_000: (1, 2, 3)}  # updates: seeds
PEAKS, TRIAL_UPDATES, TRIAL_SEED = (1.5e-3, 3e-3, 6e-3), 300, 0
WARMUP = 0.05  # as a share of the updates
ORDERS, ARTICLES = (2, 3, 4, 5), (40, 80, 160, 320)  # of all articles; of these, the first ones, with the last order
DECAY, MAX_NORM = 0.1, 1.0
PARTS = ("validation", "test")
KEPT = ("gpt 6000 1", "gpt 24000 1")  # the runs whose weights are recorded


class Run(NamedTuple):
    """A training with a seed (with a `peak` of its rate, a trial), an n-gram model of an `order`, or a compressor.

    An n-gram model of so many `articles` has read the first ones alone.
    """

    kind: str
    seed: int | None = None
    peak: float | None = None
    order: int | None = None
    updates: int | None = None
    articles: int | None = None

    @property
    def is_trial(self) -> bool:
        """Whether it serves to choose a rate."""
        return self.seed == TRIAL_SEED

    @property
    def name(self) -> str:
        """What the record calls this run."""
        if self.kind == "gpt":
            return f"trial {self.peak}" if self.is_trial else f"gpt {self.updates} {self.seed}"
        if self.articles:
            return f"{self.kind} {self.order} of {self.articles} articles"
        return f"{self.kind} {self.order}" if self.order else self.kind

    @property
    def seconds(self) -> float:
        """Of one processor core, about."""
        if self.kind == "gpt":
            return 0.1 * self.updates
        return 30 if self.order else 20


TRIALS = [Run("gpt", TRIAL_SEED, peak, updates=TRIAL_UPDATES) for peak in PEAKS]
RUNS = table(
    [
        *TRIALS,
        *(Run("gpt", seed, updates=updates) for updates, seeds in BUDGETS.items() for seed in seeds),
        *(Run("kneser-ney", order=order) for order in ORDERS),
        *(Run("kneser-ney", order=ORDERS[-1], articles=articles) for articles in ARTICLES),
        *(Run(name) for name in COMPRESSORS),
    ]
)


class Texts(NamedTuple):
    """The articles of a part: their texts, ids without special tokens, and lengths in bytes."""

    texts: list[str]
    ids: list[np.ndarray]
    n_bytes: np.ndarray


def texts_of(part: str) -> list[str]:
    """Each article of a part as one text: its title, its headings and paragraphs, a line each."""
    found = []
    for article in wikitext.load(part):
        lines, heading = [article.title], ""
        for paragraph, above in zip(article.paragraphs, article.headings, strict=True):
            lines += [above] if above != heading else []
            heading = above
            lines.append(paragraph)
        found.append("\n".join(lines))
    return found


@cache
def tokenizer() -> ByteLevelBPE:
    """Learned from the training part."""
    return ByteLevelBPE.train(texts_of("train"), VOCABULARY)


@cache
def prepared(part: str) -> Texts:
    """A part in tokens."""
    texts = texts_of(part)
    return Texts(texts, tokenizer().encode(texts), np.array([len(text.encode()) for text in texts]))


def config_of(**changes) -> GPTConfig:
    """The sizes of the model."""
    return GPTConfig(VOCABULARY, **SIZES | QUIET | {"end_id": tokenizer().end_id} | changes)


def rate_of(step: int, peak: float, updates: int) -> float:
    """Up to the peak in a straight line, then down to nothing."""
    return warmup_then_linear_decay(step, updates, max(1, int(WARMUP * updates)), peak)


def measure(run: Run, record: Record) -> dict:
    """Train or count, and return what was measured."""
    if run.kind == "gpt":
        return trained(run, record)
    test = prepared("test")
    if run.kind == "kneser-ney":
        read = prepared("train").ids[: run.articles]
        begin = time.process_time()
        model = KneserNey(read, VOCABULARY, tokenizer().end_id, run.order)
        model.tune(prepared("validation").ids)
        return {
            "tokens": int(sum(map(len, read))),
            "n_grams": int(sum(len(table.counts) for table in model._tables)),
            "discounts": model.discounts.round(4).tolist(),
            **scores({part: [loss.sum() for loss in model.losses(prepared(part).ids)] for part in PARTS}),
            "seconds": round(time.process_time() - begin, 1),
        }
    begin = time.process_time()
    before, text = ("\n".join(texts_of(part)).encode() for part in ("train", "test"))
    bits = {"bits": compressed_bits(run.kind, text, before), "bits_alone": compressed_bits(run.kind, text)}
    return {
        **bits,
        "bytes": len(text),
        "bits_per_byte": round(bits["bits"] / len(text), 4),
        "alone": round(bits["bits_alone"] / len(text), 4),
        "texts": len(test.texts),
        "seconds": round(time.process_time() - begin, 1),
    }


def trained(run: Run, record: Record) -> dict:
    """A GPT, trained and measured."""
    peak = run.peak if run.is_trial else chosen(record)
    batches = StreamBatches(joined(prepared("train").ids, tokenizer().end_id), LENGTH, BATCH, run.seed)
    held_out = StreamBatches(joined(prepared("validation").ids, tokenizer().end_id), LENGTH, 64)
    torch.manual_seed(run.seed)
    torch.set_flush_denormal(True)  # a tenth of the time
    model = GPT(config_of(), attention=fused_attention)
    history = loop.train(
        model,
        batches.epoch,
        objectives.next_token(),
        list(held_out)[:4],
        rate=lambda step: rate_of(step, peak, run.updates),
        optimizer=optimizers.adamw(model, DECAY),
        max_norm=MAX_NORM,
        steps=run.updates,
        validate_every=max(1, run.updates // 12),
        seed=run.seed,
        progress=False,
        clock=time.process_time,
    )
    if run.name in KEPT:
        half = {name: value.astype(np.float16) for name, value in get_state(model).items()}
        write_checkpoint(record.folder / run.name.replace(" ", "-"), SIZES | {"vocab_size": VOCABULARY}, half)
    figures = {
        "peak": peak,
        "parameters": sum(value.numel() for value in model.parameters()),
        "tokens": int(history.tokens.sum()),
        "epochs": round(float(history.tokens.sum()) / len(batches.stream), 3),
        "seconds": round(float(history.seconds[-1]), 1),
        "curve": [[look.step, round(look.nll, 4)] for look in history.validation],
        "validation": round(history.best.nll, 4),  # nats of a token, in windows that do not overlap
    }
    if run.is_trial:
        return figures
    return figures | scores({"test": nats_of(model, prepared("test").ids, tokenizer().end_id, LENGTH, STRIDE)})


def chosen(record: Record) -> float:
    """The peak of the trial that was best on the validation part; Waiting as long as there are trials to be made."""
    trials = of_trials((trial.name for trial in TRIALS), record).values()
    return min(trials, key=lambda figures: figures["validation"])["peak"]


def nats_of(model, documents, end_id: int, length: int = LENGTH, stride: int = STRIDE) -> list[float]:
    """The nats of each document, every token once, in windows that overlap; `end_id` stands before the first."""
    return [float(sum(losses.sum() for losses in losses_of(model, ids, end_id, length, stride))) for ids in documents]


def losses_of(model, ids, end_id: int, length: int = LENGTH, stride: int = STRIDE):
    """The losses of a document's tokens in nats, in pieces that follow each other, from windows that overlap."""
    text = torch.from_numpy(np.concatenate([[end_id], ids]))
    model.eval()
    same = {}
    for window in strides(len(text), length, stride):  # those of one size go through the model together
        first, last, new = window
        same.setdefault((last - first, new), []).append(window)
    with torch.no_grad():
        for (_, new), windows in same.items():
            for some in (windows[i : i + 64] for i in range(0, len(windows), 64)):
                rows = torch.stack([text[first : last + 1] for first, last, _ in some])
                logits = model(rows[:, :-1]).logits[:, -new:]
                yield F.cross_entropy(logits.flatten(0, 1), rows[:, -new:].flatten(), reduction="none").numpy()


def scores(nats: dict) -> dict:
    """Bits per byte of each part, and the nats of each of its articles."""
    found = {part: round(bits_per_byte(of, prepared(part).n_bytes).value, 4) for part, of in nats.items()}
    return found | {f"{part}_nats": [round(float(value), 1) for value in of] for part, of in nats.items()}


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "kneser-ney")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
