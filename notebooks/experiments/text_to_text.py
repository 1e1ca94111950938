"""Does one model that is told in words what to do learn four tasks as well as four models, one for each?

Tasks: translating Spanish, putting two words back in their order, judging a review, answering a question about a story
(`_tasks.py`). Each batch is of one task. "together" is a T5 of two and two layers and 128 features that has a batch of
each task in turn, 1,000 of each. "alone: mend" and its like have the same 1,000 batches of one task and nothing else.

The optimizer is Adafactor (Shazeer and Stern 2018), T5's own, whose rate is a share of the size of a matrix. Others
train "alone: translate" with AdamW, whose rate is the same for small numbers and large ones ("AdamW"); with a rate for
each matrix in proportion to the size of its fresh numbers ("AdamW by size"); with such a rate for the token table
alone, sqrt(d_model) times that of all else, as if the table were stored smaller and multiplied ("AdamW table"). The
rate rises over a tenth of the updates and falls over the last half.

Each arm has the best of its rates, one of them also with dropout but for AdamW's, by the score on validation examples
after a fourth of "together"'s updates and half of the others', with a seed of its own. AdamW's scores are near nothing
by then, and by its loss two higher rates are level: "AdamW faster" has one of them. "AdamW patient" has the rate of
"AdamW" and four times the updates. Of "alone: answer" the lowest rate was the best; "alone slower" has half of it, and
"alone patient" the same rate and four times the updates. Then three seeds train so. A score is BLEU for translations,
and of the others the share that is right, of 100; all by greedy decoding.

Rivals without a network: for translations the English sentence whose Spanish one is nearest by TF-IDF; for
mending the order of two neighbours that five-grams find likeliest; for reviews TF-IDF with a logistic regression; for
questions a regression that ranks what the story has.

The weights of "together 1" are kept beside the record.
"""

import time
from importlib.metadata import version
from typing import NamedTuple

import numpy as np

from course_lib.decoding.search import greedy
from course_lib.evaluation.bleu import bleu_difference
from course_lib.evaluation.estimate import Estimate
from course_lib.models.t5 import T5Config
from course_lib.text.padding import stacked
from notebooks.experiments import _tasks as tasks
from notebooks.experiments import in_context
from notebooks.experiments.harness import Experiment, Record, Waiting, main, of_trials, table

TASKS = tuple(tasks.PREFIXES)
ALONE = {task: f"alone: {task}" for task in TASKS}
ADAMW, BY_SIZE, TABLE = (f"{name}: translate" for name in ("AdamW", "AdamW by size", "AdamW table"))
FASTER, SLOWER = "AdamW faster: translate", "alone slower: answer"
PATIENT, PATIENCE = {"translate": "AdamW patient: translate", "answer": "alone patient: answer"}, 4
OPTIMIZERS = {ADAMW: "AdamW", BY_SIZE: "AdamW by size", TABLE: "AdamW table", FASTER: "AdamW"}
OPTIMIZERS[PATIENT["translate"]] = "AdamW"
ARMS = ("together", *ALONE.values(), SLOWER, PATIENT["answer"], *OPTIMIZERS)  # what OPTIMIZERS lacks has Adafactor
GIVEN = {FASTER: (4e-3, 0.0), SLOWER: (1e-2, 0.0)}  # peak and dropout of arms without trials
GIVEN |= {PATIENT["translate"]: (1e-3, 0.0), PATIENT["answer"]: (2e-2, 0.0)}
SEEDS, TRIAL_SEED = (1, 2, 3), 0
TRIED = [(2e-2, 0.0), (4e-2, 0.0), (8e-2, 0.0), (4e-2, 0.1)]  # the highest rate, and dropout
OF_ADAMW = {ADAMW: (5e-4, 1e-3, 2e-3, 4e-3, 8e-3), BY_SIZE: (1e-2, 2e-2, 4e-2, 8e-2)}  # without dropout
OF_ADAMW |= {TABLE: (5e-4, 1e-3, 2e-3, 4e-3, 8e-3)}
UPDATES, MAX_TOKENS, WARM_UP = 1000, 2500, 0.1  # of a task; of a batch; of all updates
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
        return tuple(task for task in TASKS if self.arm == "together" or self.arm.endswith(f": {task}"))

    @property
    def updates(self) -> int:
        """The batches of its tasks, all together."""
        whole = UPDATES * len(self.learns) * (PATIENCE if self.arm in PATIENT.values() else 1)
        return whole // (4 if len(self.learns) > 1 else 2) if self.is_trial else whole

    @property
    def seconds(self) -> float:
        """Of one processor core, about."""
        return 120.0 if self.arm == "rivals" else 0.3 * self.updates + 60.0


def trials(arm: str) -> list[Run]:
    """By which the settings of an arm are chosen."""
    tried = [(peak, 0.0) for peak in OF_ADAMW[arm]] if arm in OF_ADAMW else TRIED
    return [Run(arm, TRIAL_SEED, *settings) for settings in tried]


TRIALS = [run for arm in ARMS if arm not in GIVEN for run in trials(arm)]
RUNS = table([*TRIALS, Run("rivals", TRIAL_SEED), *(Run(arm, seed) for arm in ARMS for seed in SEEDS)])


def config(dropout: float = 0.0) -> T5Config:
    """The sizes of all models."""
    ids = {"pad_id": tasks.tokenizer().pad_id, "start_id": tasks.tokenizer().pad_id, "end_id": tasks.tokenizer().end_id}
    return T5Config(tasks.tokenizer().vocab_size + tasks.SENTINELS, dropout=dropout, **SIZES, **ids)


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
    """Adafactor or AdamW, whose rate may be in proportion to the size of fresh numbers: of each, of the token table."""
    import torch

    weights = list(model.parameters())
    if kind == "Adafactor":
        return torch.optim.Adafactor(weights, weight_decay=0.0)
    sizes = [weight.detach().square().mean().sqrt().item() if "size" in kind else 1.0 for weight in weights]
    if "table" in kind:
        sizes = [model.config.d_model**0.5 if weight is model.token.weight else 1.0 for weight in weights]
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
    optimizer = optimizer_of(model, OPTIMIZERS.get(run.arm, "Adafactor"))
    losses = train(model, optimizer, in_turn(run), run.updates, peak)
    figures["losses"] = {task: means(of_task) for task, of_task in losses.items()}
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
    record.keep(file_of(run.name), lines)
    return {"test": scores, "right": rights}


def file_of(name: str) -> str:
    """The name of a run as that of a file."""
    return name.replace(" ", "-").replace(":", "")


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
    """Write the weights, in 16 bits, and the tokenizer into the record's folder."""
    from course_lib.checkpoints.weights import write_checkpoint
    from course_lib.torch import get_state

    half = {name: value.astype(np.float16) for name, value in get_state(model).items()}
    write_checkpoint(record.folder / "together-1", model.config.to_hugging_face(), half)
    tasks.tokenizer().save(record.folder / tasks.KEPT.name)


def kept(task: str, name: str) -> list[str]:
    """What a recorded run wrote of a task's test examples: all translations, and KEPT of the others."""
    lines = (EXPERIMENT.record.folder / f"{file_of(name)}.txt").read_text(encoding="utf-8").split("\n")
    return [line.partition("\t")[2] for line in lines if line.startswith(f"{task}\t")]


def ahead(task: str, first: str, second: str) -> Estimate:
    """How far one arm's score of a task is above another's, with a 95% interval over test examples and seeds."""
    recorded, references, values, errors = EXPERIMENT.record.read(), tasks.texts(task, "test").targets, [], []
    for seed in SEEDS:
        names = f"{first} {seed}", f"{second} {seed}"
        if task == "translate":
            value, low, high = bleu_difference(*(kept(task, name) for name in names), references)
            error = (high - low) / 3.92  # of a normal interval of 95 %
        else:
            bits = (np.frombuffer(bytes.fromhex(recorded[name]["right"][task]), np.uint8) for name in names)
            right = [100.0 * np.unpackbits(some)[: len(references)] for some in bits]
            value, error = np.mean(right[0] - right[1]), np.std(right[0] - right[1]) / len(references) ** 0.5
        values.append(value)
        errors.append(error)
    return in_context.interval(values, errors, len(references))


def chosen(arm: str, record: Record) -> tuple[float, float]:
    """Peak and dropout of the best trial of an arm by the mean score of its tasks, or what is given."""
    if arm in GIVEN:
        return GIVEN[arm]
    names = (run.name for run in trials(arm))
    best = max(of_trials(names, record).values(), key=lambda figures: sum(figures["validation"].values()))
    return best["peak"], best["dropout"]


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "mend")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
