"""Does one model that is told in words what to do learn four tasks as well as four models, one for each?

Tasks: translating Spanish, putting two words back in their order, judging a review, answering a question about a story
(`_tasks.py`). Each batch is of one task. "together" is a T5 of two and two layers and 128 features that has a batch of
each task in turn, 1,000 of each. "alone: mend" and its like have the same 1,000 batches of one task and nothing else.
"spans first" has as many updates as "together", but the first half are batches of span corruption, on the training
sentences of the tasks and on IMDb's reviews, without those that are near to a review it is tested on.

The optimizer is Adafactor (Shazeer and Stern 2018), T5's own, whose rate is a share of the size of a matrix; "AdamW:
translate" is "alone: translate" with AdamW, whose rate is the same for small numbers and large ones, and "AdamW by
size: translate" with AdamW and a rate for each matrix, in proportion to the size of its fresh numbers; "AdamW patient:
translate" has four times the updates. The rate rises over a tenth of the updates and falls over the last half.

"together" and each "alone" have the best of three rates without dropout and one with it, those with AdamW of five and
of four rates without, by the score on validation examples after a fourth of "together"'s updates and half of the
others', with a seed of its own; "spans first" has what "together" has, and the patient arm what the other one has. Then
three seeds train so. A score is BLEU for translations, and of the others the share that is right, of 100; all by greedy
decoding.

Rivals without a network: for translations the English sentence whose Spanish one is nearest by TF-IDF; for
mending the order of two neighbours that five-grams find likeliest; for reviews TF-IDF with a logistic regression; for
questions a regression that ranks what the story has.

The weights of "together 1" are kept beside the record.
"""

import time
from importlib.metadata import version
from itertools import count, islice
from typing import NamedTuple

import numpy as np

from course_lib.batches.corrupted import CorruptedBatches, SpanCorruption
from course_lib.data import pretraining_texts, reviews
from course_lib.decoding.search import greedy
from course_lib.models.t5 import T5Config
from course_lib.text.padding import stacked
from notebooks.experiments import _tasks as tasks
from notebooks.experiments.harness import Experiment, Record, Waiting, main, of_trials, table

TASKS = tuple(tasks.PREFIXES)
ALONE = {task: f"alone: {task}" for task in TASKS}
PATIENT, PATIENCE = "AdamW patient: translate", 4
OPTIMIZERS = {"AdamW: translate": "AdamW", "AdamW by size: translate": "AdamW by size", PATIENT: "AdamW"}
ARMS = ("together", *ALONE.values(), *OPTIMIZERS, "spans first")  # those that OPTIMIZERS lacks have Adafactor
LIKE = {"spans first": "together", PATIENT: "AdamW: translate"}  # arms that have the settings of others
SEEDS, TRIAL_SEED = (1, 2, 3), 0
TRIED = [(2e-2, 0.0), (4e-2, 0.0), (8e-2, 0.0), (4e-2, 0.1)]  # the highest rate, and dropout
OF_ADAMW = {"AdamW: translate": (5e-4, 1e-3, 2e-3, 4e-3, 8e-3)}  # without dropout
OF_ADAMW |= {"AdamW by size: translate": (1e-2, 2e-2, 4e-2, 8e-2)}
UPDATES, MAX_TOKENS, WARM_UP = 1000, 2500, 0.1  # of a task; of a batch; of all updates
SPANS, WINDOW, SHORTEST = 2000, 48, 8  # updates of span corruption; tokens of a text at most and at least
LONGEST, KEPT = 48, 20  # tokens of an answer; texts that are kept of a task
SIZES = {"d_model": 128, "n_layers": 2, "n_decoder_layers": 2, "n_heads": 4, "d_head": 32, "d_ff": 512}
SIZES |= {"n_buckets": 16, "max_distance": 64}
SMOOTHING = 0.1


class Run(NamedTuple):
    """A training, or the "rivals"; one with a `peak` of its rate and a dropout is a trial of them."""

    arm: str
    seed: int
    peak: float | None = None
    dropout: float | None = None

    @property
    def is_trial(self) -> bool:
        """Whether it serves to choose."""
        return self.peak is not None

    @property
    def name(self) -> str:
        """What the record calls this run."""
        return f"{self.arm} trial {self.peak:g} {self.dropout:g}" if self.is_trial else f"{self.arm} {self.seed}"

    @property
    def learns(self) -> tuple:
        """Its tasks."""
        if self.arm in OPTIMIZERS:
            return ("translate",)
        return tuple(task for task in TASKS if self.arm in (ALONE[task], "together", "spans first"))

    @property
    def updates(self) -> int:
        """The batches of its tasks, all together."""
        whole = UPDATES * len(self.learns) - SPANS * (self.arm == "spans first")
        whole *= PATIENCE if self.arm == PATIENT else 1
        return whole // (4 if len(self.learns) > 1 else 2) if self.is_trial else whole

    @property
    def seconds(self) -> float:
        """Of one processor core, about."""
        return 120.0 if self.arm == "rivals" else 0.3 * (self.updates + SPANS * (self.arm == "spans first")) + 60.0


def trials(arm: str) -> list[Run]:
    """By which the settings of an arm are chosen."""
    tried = [(peak, 0.0) for peak in OF_ADAMW[arm]] if arm in OF_ADAMW else TRIED
    return [Run(arm, TRIAL_SEED, *settings) for settings in tried]


TRIALS = [run for arm in ARMS if arm not in LIKE for run in trials(arm)]
RUNS = table([*TRIALS, Run("rivals", TRIAL_SEED), *(Run(arm, seed) for arm in ARMS for seed in SEEDS)])


def config(dropout: float = 0.0) -> T5Config:
    """The sizes of all models."""
    ids = {"pad_id": tasks.tokenizer().pad_id, "start_id": tasks.tokenizer().pad_id, "end_id": tasks.tokenizer().end_id}
    return T5Config(tasks.tokenizer().vocab_size + tasks.SENTINELS, dropout=dropout, **SIZES, **ids)


def spans(seed: int):
    """Batches of span corruption without end: source and target ids, (B, S) and (B, T)."""
    ids, sizes = tasks.tokenizer(), config()
    held_out = [text for part in ("validation", "test") for text in tasks.judge(part).sources]
    held_out += list(reviews.split(reviews.load(), train=7500).held_out.texts)
    some = list(pretraining_texts.load(held_out, ("imdb",), progress=False).texts)
    for task in TASKS:
        some += [text for side in tasks.MADE[task]("train") for text in side]
    rows = (row[1:-1] for row in ids.encode(some))
    pieces = [row[i : i + WINDOW] for row in rows for i in range(0, len(row), WINDOW) if len(row) - i >= SHORTEST]
    corruption = SpanCorruption(sizes.vocab_size, tasks.SENTINELS, ids.pad_id, ids.end_id, rolled=True)
    batches = CorruptedBatches(pieces, corruption, MAX_TOKENS // (WINDOW + 16), seed=seed, pad_id=ids.pad_id)
    return (batch[:2] for epoch in count() for batch in batches.epoch(epoch))


def in_turn(run: Run):
    """Batches of the run's tasks, one of each in turn: for each update the task, source and target ids."""
    streams = {task: tasks.batches_of(task, MAX_TOKENS, run.seed) for task in run.learns}
    for step in range(run.updates):
        task = run.learns[step % len(run.learns)]
        yield task, *next(streams[task])


def model_of(seed: int, dropout: float):
    """An untrained model."""
    import torch

    from course_lib.torch import T5, fused_attention

    torch.manual_seed(seed)
    return T5(config(dropout), fused_attention)


def optimizer_of(model, kind: str):
    """Adafactor, AdamW, or AdamW whose rate is for each weight in proportion to the size of its fresh numbers."""
    import torch

    weights = list(model.parameters())
    if kind == "Adafactor":
        return torch.optim.Adafactor(weights, weight_decay=0.0)
    sizes = [weight.detach().square().mean().sqrt().item() if "size" in kind else 1.0 for weight in weights]
    groups = [{"params": [weight], "scale": size} for weight, size in zip(weights, sizes, strict=True)]
    return torch.optim.AdamW(groups, weight_decay=0.0)


def train(model, optimizer, batches, updates: int, peak: float) -> dict:
    """Train a model on batches (task, source, target); returns the losses of each task, nats with smoothing."""
    import torch
    from torch.nn import functional as F

    from course_lib.torch.training.optimizers import set_rate

    torch.set_flush_denormal(True)  # numbers under 1e-38 take a processor ten times as long
    losses = {}
    model.train()
    for step, (task, source, target) in enumerate(batches):
        set_rate(optimizer, peak * min(1.0, (step + 1) / (WARM_UP * updates), 2 * (updates - step) / updates))
        source, target = torch.tensor(source), torch.tensor(target)
        logits = model(source, target[:, :-1]).logits.flatten(0, 1)
        ignored = {"ignore_index": model.config.pad_id, "label_smoothing": SMOOTHING}
        loss = F.cross_entropy(logits, target[:, 1:].flatten(), **ignored)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.setdefault(task, []).append(loss.item())
    model.eval()
    return losses


def written(model, sources, size: int = 100) -> list[str]:
    """What a model writes of texts, greedily."""
    import torch

    ids, sizes = tasks.source_ids(sources), model.config
    order, found = np.argsort([len(row) for row in ids], kind="stable"), [""] * len(ids)
    for i in range(0, len(ids), size):
        rows = order[i : i + size]
        source = stacked([ids[row] for row in rows], sizes.pad_id, multiple=1)
        start = np.full((len(rows), 1), sizes.start_id)
        for row, one in zip(
            rows, greedy(model.next_logits(torch.tensor(source)), start, sizes.end_id, LONGEST), strict=True
        ):
            found[row] = tasks.text_of(one)
    return found


def measure(run: Run, record: Record) -> dict:
    """Train a model and say how it does what it has learned."""
    if run.arm == "rivals":
        return tasks.rivals()
    peak, dropout = (run.peak, run.dropout) if run.is_trial else chosen(run.arm, record)
    model, figures, begin = model_of(run.seed, dropout), {"peak": peak, "dropout": dropout}, time.process_time()
    if run.arm == "spans first":
        some = (("spans", *batch) for batch in islice(spans(run.seed), SPANS))
        figures["span losses"] = train(model, optimizer_of(model, "Adafactor"), some, SPANS, peak)["spans"]
    optimizer = optimizer_of(model, OPTIMIZERS.get(run.arm, "Adafactor"))
    losses = train(model, optimizer, in_turn(run), run.updates, peak) | {"spans": figures.pop("span losses", [])}
    figures["losses"] = {task: means(of_task) for task, of_task in losses.items() if of_task}
    figures["core seconds"] = round(time.process_time() - begin)
    held = {task: tasks.texts(task, "validation") for task in run.learns}
    figures["validation"] = {task: tasks.score(task, written(model, some[0]), some[1]) for task, some in held.items()}
    if not run.is_trial:
        figures |= of_tests(model, run, record)
    if run.name == "together 1":
        keep(model, record)
    return figures | {"parameters": sum(weight.numel() for weight in model.parameters()), "version": version("torch")}


def of_tests(model, run: Run, record: Record) -> dict:
    """Scores of a trained model on the test examples, and which are right; its texts go into the folder."""
    scores, rights, lines = {}, {}, []
    for task in run.learns:
        some = tasks.texts(task, "test")
        texts = written(model, some.sources)
        scores[task] = tasks.score(task, texts, some.targets)
        rights[task] = np.packbits(tasks.right(task, texts, some.targets)).tobytes().hex()
        wanted = len(texts) if task == "translate" else KEPT
        lines += [f"{task}\t{text}" for text in texts[:wanted]]
    record.keep(run.name.replace(" ", "-").replace(":", ""), lines)
    return {"test": scores, "right": rights}


def means(losses: list, size: int = 50) -> list[float]:
    """Of fifty losses each."""
    return np.array(losses[: len(losses) // size * size]).reshape(-1, size).mean(1).round(3).tolist()


def trained():
    """The T5 of "together 1", with weights of 16 bits and an attention that returns its weights."""
    from course_lib.checkpoints.weights import read_checkpoint
    from course_lib.torch import T5, set_state

    folder = EXPERIMENT.record.folder / "together-1"
    if not (folder / "config.json").exists():
        raise Waiting("run first text_to_text.py 'together 1'")
    settings, weights = read_checkpoint(folder)
    model = T5(T5Config.from_hugging_face(settings))
    set_state(model, {name: value.astype(np.float32) for name, value in weights.items()})
    return model.eval()


def keep(model, record: Record) -> None:
    """Write the weights, in 16 bits, into the record's folder."""
    from course_lib.checkpoints.weights import write_checkpoint
    from course_lib.torch import get_state

    half = {name: value.astype(np.float16) for name, value in get_state(model).items()}
    write_checkpoint(record.folder / "together-1", model.config.to_hugging_face(), half)


def chosen(arm: str, record: Record) -> tuple[float, float]:
    """Peak and dropout of the best trial of an arm, or of the one that it is like, by the mean score of its tasks."""
    names = (run.name for run in trials(LIKE.get(arm, arm)))
    best = max(of_trials(names, record).values(), key=lambda figures: sum(figures["validation"].values()))
    return best["peak"], best["dropout"]


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "mend")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
