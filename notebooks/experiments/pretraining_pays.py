"""Does the pretraining of a small BERT on one core pay, and against what?

A classifier of Rotten Tomatoes' sentences is fine-tuned on 2,000 labels, or on 250, from

- `scratch`: the start of *pretrain_bert.py* without count vectors, for which no text was read;
- `slower`: the same with the rates of the next ones, which fall by a fifth from layer to layer, and `patient`: that
  with twice the epochs; for 2,000 labels;
- `vectors`: the same with count vectors, for which text was counted and nothing was trained;
- `blanks`: what the training on blanks made of these; `brief`, `long` and `mixed`: what its other lengths and BERT's
  own mixture made, for 2,000 labels.

The classifier reads the mean of the real tokens. The rate is the one of three with the best accuracy on 1,000
validation sentences, tried with the seed 0; of two with 250 labels. It decays to 0 at the end. (For `blanks` the
highest was tried later than the others, on weights that the same command made anew: their loss at the blanks was 4.442,
that of the first 4.445.) There are three seeds, each with a pretraining of its own. The accuracy is that on all
sentences that are left, which no training read; TF-IDF with logistic regression gets the same labels and the same
sentences. In the record's folder there is for each run a line with a 1 for each test sentence that it has right.

A run takes half a minute of one core. Those from blanks of any kind need the weights that *pretrain_bert.py* leaves.
"""

import time
from importlib.metadata import version
from typing import NamedTuple

from course_lib.batches.texts import TextBatches
from course_lib.data import reviews
from course_lib.evaluation.baselines import tfidf
from course_lib.models.bert_start import bert_start
from course_lib.training.schedules import warmup_then_linear_decay
from notebooks.experiments import _pretraining as recipe
from notebooks.experiments import pretrain_bert
from notebooks.experiments.harness import Experiment, Record, Waiting, main, of_trials, table

CORPUS, BATCH, LONGEST, N_VALIDATION = "reviews", 32, 64, 1000
EPOCHS = {2000: 6, 250: 12}
RATES = {2000: (1e-3, 2e-3, 4e-3), 250: (1e-3, 2e-3)}
STARTS = ("scratch", "vectors", "blanks")  # for both numbers of labels
IN_TENSORFLOW = ("scratch", "blanks", "mixed")
OTHERS = ("slower", "patient", "brief", "long", "mixed")  # for 2,000
READ_NOTHING = ("scratch", "slower", "patient")
LAYER_DECAY = 0.8  # the rate of a layer as a share of that of the layer above, where there is something to keep
PRETRAINED = Record.of(pretrain_bert.__file__)


class Run(NamedTuple):
    """One fine-tuning: with a rate that is tried, or with the best one (None)."""

    start: str
    labels: int
    seed: int
    peak: float | None = None
    framework: str = "torch"

    @property
    def is_trial(self) -> bool:
        """Whether it is there to find the rate; that of the seed 0 with the best rate counts as a result as well."""
        return self.peak is not None

    @property
    def name(self) -> str:
        """What the record calls this run."""
        what = f"{self.start} {self.labels}, {f'{self.peak:g}' if self.is_trial else self.seed}"
        return what if self.framework == "torch" else f"{what}, {self.framework}"

    @property
    def seconds(self) -> float:
        """About, of one processor core."""
        return 10 + 0.005 * self.labels * self.epochs

    @property
    def epochs(self) -> int:
        """How often it reads its labels; TF-IDF counts them once."""
        return EPOCHS[self.labels] * (2 if self.start == "patient" else 1)


TRIALS = [Run(start, labels, 0, peak) for labels in EPOCHS for start in STARTS for peak in RATES[labels]]
TRIALS += [Run(start, 2000, 0, peak) for start in OTHERS for peak in RATES[2000]]
RUNS = table(
    [
        *TRIALS,
        *(Run(start, labels, seed) for labels in EPOCHS for start in STARTS for seed in (1, 2)),
        *(Run(start, 2000, seed) for start in OTHERS for seed in (1, 2)),
        *(Run(start, 2000, seed, framework="tensorflow") for start in IN_TENSORFLOW for seed in (0, 1, 2)),
        *(Run("tfidf", labels, 0) for labels in EPOCHS),
    ]
)


def chosen(run: Run, record: Record) -> float:
    """The rate whose trial has the best validation accuracy; Waiting if one was not made."""
    found = of_trials((trial.name for trial in TRIALS if trial[:2] == run[:2]), record)
    return max(found.values(), key=lambda figures: figures["validation"])["peak"]


def parts(labels: int) -> tuple[reviews.Reviews, reviews.Reviews, reviews.Reviews]:
    """The sentences to learn from, to choose by, and to test on."""
    found = reviews.split(reviews.load("rotten-tomatoes"), train=labels, held_out=recipe.N_TESTED)
    texts, classes = found.held_out
    cut = slice(None, N_VALIDATION), slice(N_VALIDATION, None)
    return found.train, *(reviews.Reviews(texts[part], classes[part]) for part in cut)


def weights(run: Run) -> dict:
    """Of the encoder, by the names of a classifier."""
    texts = recipe.prepared(CORPUS)
    if run.start in READ_NOTHING:
        state = bert_start(recipe.config_of(texts), seed=run.seed)
    elif run.start == "vectors":
        state = recipe.start(CORPUS, run.seed)
    else:
        from course_lib.torch import BertForMaskedLM, get_state

        name = f"{CORPUS} {run.start} {run.seed}"
        folder = pretrain_bert.place(pretrain_bert.RUNS[name], PRETRAINED)
        if not (folder / "config.json").exists():
            raise Waiting(f"run first {name} of pretrain_bert.py, on this machine")
        state = get_state(BertForMaskedLM.from_pretrained(folder))
    return {name: value for name, value in state.items() if name.startswith(("bert.embeddings", "bert.encoder"))}


def measure(run: Run, record: Record) -> dict:
    """Fine-tune and return the accuracies."""
    train_set, validation, test = parts(run.labels)
    if run.start == "tfidf":
        right = tfidf().fit(train_set.texts, train_set.labels).predict(test.texts) == test.labels
        record.keep(run.name, ["".join("01"[int(one)] for one in right)])
        return {"accuracy": round(float(right.mean()), 4), "sentences": len(right)}
    peak = run.peak if run.is_trial else chosen(run, record)
    if run.framework == "torch":
        import torch as library

        from course_lib.torch import BertForSequenceClassification, fused_attention, set_state
        from course_lib.torch.training import classifier, loop, objectives, optimizers

        library.manual_seed(run.seed)
    else:
        import tensorflow as library

        from course_lib.tensorflow import BertForSequenceClassification, fused_attention, set_state
        from course_lib.tensorflow.training import classifier, loop, objectives, optimizers

        library.random.set_seed(run.seed)
    texts = recipe.prepared(CORPUS)
    config = recipe.config_of(texts, dropout=0.1, attention_dropout=0.1, pooling="mean")
    model = BertForSequenceClassification(config, attention=fused_attention)
    set_state(model, weights(run), partial=True)

    def sequences(part):
        return texts.tokenizer.encode(list(part.texts), max_len=LONGEST, pad=False).ids

    batches = TextBatches(sequences(train_set), train_set.labels, BATCH, run.seed)
    choosing = TextBatches(sequences(validation), validation.labels, 64, None)
    steps = run.epochs * len(batches)
    history = loop.train(
        model,
        batches,
        objectives.classification(),
        rate=lambda step: peak * warmup_then_linear_decay(step, steps, steps // 10),
        optimizer=optimizers.adamw(model, layer_decay=1.0 if run.start == "scratch" else LAYER_DECAY),
        max_norm=1.0,
        steps=steps,
        seed=run.seed,
        progress=False,
        clock=time.process_time,
    )
    found = loop.evaluate(model, choosing, objectives.classification())
    right = classifier.predict(model, sequences(test)).argmax(-1) == test.labels
    record.keep(run.name, ["".join("01"[int(one)] for one in right)])
    return {
        "peak": peak,
        "accuracy": round(float(right.mean()), 4),
        "sentences": len(right),
        "validation": round(found.accuracy, 4),
        "seconds": round(float(history.seconds[-1]), 1),
        "version": version(run.framework),
    }


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "scratch")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
