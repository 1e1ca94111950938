"""Can one small pretrained encoder serve several tasks, each with a narrow adapter, and what does the adapter cost?

Three tasks besides the classification of texts. *Names*: the entities of CoNLL-2003, 3,000 training sentences.
*Answers*: questions about generated stories. *Paraphrases*: English sentences that share a Spanish translation, each
to be found among 500. For each, the strongest cheap methods, and MiniLM frozen with a LoRA of rank 8 in each layer's
attention and a head; for names and answers also frozen under a linear head that reads one of its layers, for
paraphrases the mean of its last layer, as published. For names and answers the arm "trainer" is their BERT with the
same LoRA, head and data, trained by the `Trainer` of `transformers`, which needs the package accelerate, and scored as
the others are.

Each trained arm is tried at three rates or more with the seed 0, a frozen one at two layers besides, and takes what is
best on validation data; then three other seeds train, and what they reach is told on the test data. All trainings of a
task are one pass in bfloat16 by autocast, names and answers without dropout, and are scored in float32. The adapters
of the seed 1 are kept, in float16. The lecture *Four tasks, one encoder* tells what came out.
"""

import tempfile
import time
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import torch

from course_lib.batches.contrastive import ContrastiveBatches
from course_lib.batches.spans import SpanBatches, encode_questions
from course_lib.batches.texts import TokenBatches
from course_lib.batches.tokens import encode_words, token_labels
from course_lib.checkpoints.weights import read_checkpoint, write_checkpoint
from course_lib.data import conll, paraphrases, sentence_pairs, stories
from course_lib.evaluation.answer_baselines import NoAnswer, OverlapAnswer, RegressionAnswer
from course_lib.evaluation.answers import answer_scores, best_threshold
from course_lib.evaluation.best_spans import answer_texts
from course_lib.evaluation.entities import entity_f1, entity_scores
from course_lib.evaluation.entity_baselines import KnownEntities
from course_lib.evaluation.retrieval import cosines, ranks, retrieval_scores
from course_lib.evaluation.retrieval_baselines import tfidf_cosine, word_overlap
from course_lib.text.wordpiece import WordPiece
from course_lib.torch import BertForQuestionAnswering, BertForTokenClassification, BertModel, fused_attention
from course_lib.torch.lora import add_lora, save_lora
from course_lib.torch.predictions import find_answers, tag
from course_lib.torch.training import loop, objectives
from course_lib.torch.training.classifier import embed
from course_lib.torch.training.freezing import freeze
from course_lib.torch.training.optimizers import adamw
from course_lib.training.schedules import warmup_then_linear_decay
from notebooks.experiments.harness import Experiment, Record, main, name_of, of_trials, table

RATES = {
    "names": {"frozen": (1e-3, 3e-3, 1e-2, 3e-2, 1e-1), "lora": (1e-3, 2e-3, 4e-3), "trainer": (1e-3, 2e-3, 4e-3)},
    "answers": {"frozen": (1e-3, 3e-3, 1e-2, 3e-2), "lora": (1e-3, 2e-3, 4e-3), "trainer": (1e-3, 2e-3, 4e-3)},
    "paraphrases": {"lora": (1e-4, 3e-4, 1e-3, 3e-3)},
}
LAYERS = (3, 6)  # that a frozen encoder's head reads
SEEDS, TRIAL_SEED = (1, 2, 3), 0
RANK, ALPHA, PARTS = 8, 16.0, ("q_proj", "k_proj", "v_proj", "out_proj")
SENTENCES, QUESTIONS = 3000, 6000  # to train on
HELD_OUT = {"names": 1000, "answers": 420, "paraphrases": 500}  # to choose by, and at most to report on
NO_DROPOUT = {"dropout": 0.0, "attention_dropout": 0.0}  # in one pass no example is seen twice; a fifth faster
KINDS = ("O", *(f"{prefix}-{kind}" for kind in ("LOC", "MISC", "ORG", "PER") for prefix in "BI"))


class Run(NamedTuple):
    """One baseline, or one training; with a rate it is a trial of it."""

    task: str
    arm: str
    rate: float | None = None
    layer: int | None = None
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
        if self.arm in BASELINES[self.task]:
            return 20 if self.task == "answers" else 3
        return {"names": 35, "answers": 225, "paraphrases": 20}[self.task] * (0.3 if self.arm == "frozen" else 1)


class Task(NamedTuple):
    """What a training needs to know of a task; functions take its data, `load()`."""

    load: Callable[[], Any]
    model: Callable[[], Any]
    heads: tuple[str, ...]  # new parts of the model
    objective: Any
    batch: Callable[[Any, int], Any]  # data, seed -> an epoch
    epochs: int
    score: Callable[[Any, Any, str, dict], dict]  # model, data, part, what validation chose -> figures
    best: str  # the figure to choose by


BASELINES = {"names": ("by heart",), "answers": ("none", "overlap", "regression")}
BASELINES["paraphrases"] = ("words", "TF-IDF", "static", "frozen")


def _runs():
    for task in ("names", "answers", "paraphrases"):
        yield from (Run(task, arm) for arm in BASELINES[task])
        for arm, rates in RATES[task].items():
            layers = LAYERS if arm == "frozen" else (None,)
            yield from (Run(task, arm, rate, layer, TRIAL_SEED) for layer in layers for rate in rates)
            yield from (Run(task, arm, seed=seed) for seed in SEEDS)


RUNS = table(_runs())


def chosen(run: Run, record: Record) -> tuple[float, int | None]:
    """Rate and layer of a trial, or those of the arm's best trial; Waiting as long as there are trials to be made."""
    if run.is_trial:
        return run.rate, run.layer
    trials = [trial for trial in RUNS.values() if trial.is_trial and (trial.task, trial.arm) == (run.task, run.arm)]
    found = of_trials((trial.name for trial in trials), record)
    best = max(found.values(), key=lambda figures: figures["validation"])
    return best["rate"], best["layer"]


def measure(run: Run, record: Record) -> dict:
    """Train and score, on validation data alone if it is a trial."""
    task, begin = TASKS[run.task], time.process_time()
    data = task.load()
    if run.arm in BASELINES[run.task]:
        return _baseline(run, data) | {"seconds": round(time.process_time() - begin, 1)}
    rate, layer = chosen(run, record)
    torch.set_flush_denormal(True)  # numbers under 1e-38 take ten times as long, and softmax makes some
    model, trained, losses = (_by_trainer if run.arm == "trainer" else _trained)(run, task, data, rate, layer)
    torch.set_flush_denormal(False)
    seconds = time.process_time() - begin
    if run.arm == "lora" and run.seed == SEEDS[0]:
        config, adapter = read_checkpoint(save_lora(model, record.folder / run.task))
        write_checkpoint(record.folder / run.task, config, {k: v.astype(np.float16) for k, v in adapter.items()})
    known: dict = {}
    scores = task.score(model, data, "validation", known)
    figures = {"rate": rate, "layer": layer, "trained": trained, "updates": len(losses), "seconds": round(seconds, 1)}
    figures |= {"loss": round(float(np.mean(losses[-20:])), 4), "validation": scores[task.best][0]}
    figures["version"] = version("torch")
    if run.is_trial:
        return figures
    figures |= task.score(model, data, "test", known)
    return figures | {name: value if np.isfinite(value) else None for name, value in known.items()}


def _trained(run: Run, task: Task, data, rate: float, layer: int | None) -> tuple:
    """A model after its training by the course's loop, how many weights learned, and the losses."""
    torch.manual_seed(run.seed)
    model = task.model()
    if run.arm == "frozen":
        freeze(model, "bert")
        model.bert.encoder.layers = model.bert.encoder.layers[:layer]
    else:
        add_lora(model, RANK, ALPHA, PARTS, also=task.heads)
    batches = task.batch(data, run.seed)
    n = task.epochs * len(batches)
    with torch.autocast("cpu", torch.bfloat16):
        history = loop.train(
            model, batches, task.objective,
            rate=lambda step: rate * warmup_then_linear_decay(min(step, n - 1), n, n // 10),
            optimizer=adamw(model),
            max_norm=1.0,
            epochs=task.epochs,
            seed=run.seed,
            progress=False,
        )  # fmt: skip
    return model, sum(weight.numel() for weight in model.parameters() if weight.requires_grad), history.loss


def _by_trainer(run: Run, task: Task, data, rate: float, layer: None) -> tuple:
    """The same by the Trainer; what it trained is read by the course's model, to be scored as the others are."""
    from notebooks.experiments import _trainer  # needs accelerate

    batches = task.batch(data, run.seed)
    if run.task == "names":
        columns = {"input_ids": batches.sequences, "labels": batches.labels}
    else:
        windows = batches.windows
        columns = {"input_ids": windows.ids, "token_type_ids": windows.segments}
        columns |= {"start_positions": windows.starts, "end_positions": windows.ends}
    examples = _trainer.Examples(**columns)
    kind = {"names": BertForTokenClassification, "answers": BertForQuestionAnswering}[run.task]
    with tempfile.TemporaryDirectory() as folder:
        learned = _trainer.with_lora(run.task, folder, RANK, ALPHA, examples, rate, run.seed, len(KINDS))
        return kind.from_pretrained(folder), *learned


def _baseline(run: Run, data) -> dict:
    train, validation, test = data.train, data.validation, data.test
    if run.task == "names":
        return _tag_figures(KnownEntities().fit(train.words, train.tags).predict(test.words), test.tags)
    if run.task == "answers":
        method = {"none": NoAnswer, "overlap": OverlapAnswer, "regression": RegressionAnswer}[run.arm]()
        method.fit(train.take(np.arange(min(2400, len(train.ids)))), validation)
        figures = _answer_figures(method.predict(test), test)
        return figures | {"reworded": _answer_figures(method.predict(data.reworded), data.reworded)}
    if run.arm == "words":
        return _search_figures(word_overlap(test.first, test.second))
    if run.arm == "TF-IDF":
        return _search_figures(tfidf_cosine(test.first, test.second, [*train.first, *train.second]))
    encoder = BertModel.from_pretrained("minilm-l6", attention=fused_attention)
    if run.arm == "static":
        vectors = encoder.embeddings.token.weight.detach().numpy()
        rows = ([vectors[ids[1:-1]].mean(0) for ids in _ids(texts)] for texts in (test.first, test.second))
        return _search_figures(cosines(*(np.stack(side) for side in rows)))
    found = _score_search(encoder, data, "validation", {})["reciprocal"][0]
    return _score_search(encoder, data, "test", {}) | {"validation": found}


class Names(NamedTuple):
    """Sentences to train on, to choose by, and to report on."""

    train: conll.Tagged
    validation: conll.Tagged
    test: conll.Tagged


@cache
def names() -> Names:
    """Of all documents a part: sentences at equal distances."""
    parts = [conll.load(part, progress=False) for part in conll.PARTS]
    wanted = (SENTENCES, HELD_OUT["names"], len(parts[2].words))
    found = []
    for part, n in zip(parts, wanted, strict=True):
        rows = np.linspace(0, len(part.words) - 1, n).astype(int)
        found.append(conll.Tagged([part.words[i] for i in rows], [part.tags[i] for i in rows], part.documents[rows]))
    return Names(*found)


def _name_batches(data: Names, seed: int):
    encoded = encode_words(data.train.words, tokenizer(), max_len=128)
    return TokenBatches(encoded.ids, token_labels(encoded, data.train.tags, KINDS), batch_size=8, seed=seed)


def _score_names(model, data: Names, part: str, known: dict) -> dict:
    held_out = getattr(data, part)
    return _tag_figures(tag(model, held_out.words, tokenizer(), KINDS), held_out.tags)


def _tag_figures(found, tags) -> dict:
    scores = entity_scores(found, tags)
    pairs = [(a, b) for ours, theirs in zip(found, tags, strict=True) for a, b in zip(ours, theirs, strict=True)]
    types = {kind: round(score.f1, 4) for kind, score in scores.types.items()}
    return {"f1": rounded(entity_f1(found, tags)), "words": round(float(np.mean([a == b for a, b in pairs])), 4)} | {
        "precision": round(scores.micro.precision, 4), "recall": round(scores.micro.recall, 4), "types": types
    }  # fmt: skip


@cache
def questions() -> stories.Split:
    """The generated stories."""
    return stories.make(QUESTIONS, HELD_OUT["answers"], HELD_OUT["answers"])


def _question_batches(data: stories.Split, seed: int):
    train = data.train
    return SpanBatches(encode_questions(train.questions, train.contexts, tokenizer(), train.spans()), 8, seed=seed)


def _score_answers(model, data: stories.Split, part: str, known: dict) -> dict:
    """Validation chooses the threshold of "no answer"; the test set is told with the reworded one."""
    held_out = getattr(data, part)
    found = find_answers(model, held_out.questions, held_out.contexts, tokenizer())
    if part == "validation":
        best = answer_texts(found, held_out.contexts)
        known["threshold"] = best_threshold(best, [one.margin for one in found], held_out.answers)
    figures = _answer_figures(answer_texts(found, held_out.contexts, known["threshold"]), held_out)
    return figures | {"reworded": _score_answers(model, data, "reworded", known)} if part == "test" else figures


def _answer_figures(found, held_out) -> dict:
    scores = answer_scores(found, held_out.answers)
    figures = {"f1": rounded(scores.all.f1), "exact": rounded(scores.all.exact)}
    figures |= {"has": round(scores.has_answer.f1.value, 4), "has_not": round(scores.no_answer.f1.value, 4)}
    kinds = {}
    for kind in stories.KINDS:
        rows = np.flatnonzero(held_out.kinds == kind)
        if len(rows):
            own = answer_scores([found[i] for i in rows], held_out.answers[rows], n_resamples=1)
            kinds[kind] = round(own.all.f1.value, 3)
    return figures | {"kinds": kinds}


@cache
def pairs() -> paraphrases.Split:
    """Of Tatoeba's sentences."""
    n = HELD_OUT["paraphrases"]
    return paraphrases.split(sentence_pairs.load("tatoeba-es-en", progress=False), n, n)


def _pair_batches(data: paraphrases.Split, seed: int):
    return ContrastiveBatches(_ids(data.train.first), _ids(data.train.second), batch_size=32, seed=seed)


def _score_search(model, data: paraphrases.Split, part: str, known: dict) -> dict:
    held_out = getattr(data, part)
    return _search_figures(cosines(*(embed(model, _ids(texts)) for texts in (held_out.first, held_out.second))))


def _search_figures(scores) -> dict:
    found = retrieval_scores(scores)
    missed = np.flatnonzero(ranks(scores) > 1).tolist()  # to compare two arms search by search
    return {"first": rounded(found.first), "reciprocal": rounded(found.reciprocal), "missed": missed}


def _ids(texts) -> list:
    return tokenizer().encode(list(texts), max_len=64, pad=False).ids


@cache
def tokenizer() -> WordPiece:
    """Of MiniLM."""
    return WordPiece.from_pretrained("minilm-l6")


def rounded(estimate) -> list[float]:
    """Value, low, high, to four digits."""
    return [round(float(x), 4) for x in estimate]


def _named() -> BertForTokenClassification:  # not the fused attention, whose gradient in bfloat16 takes twice as long
    return BertForTokenClassification.from_pretrained(
        "minilm-l6", new=["classifier"], n_classes=len(KINDS), labels=KINDS, **NO_DROPOUT
    )


def _answering() -> BertForQuestionAnswering:
    return BertForQuestionAnswering.from_pretrained("minilm-l6", new=["qa_outputs"], **NO_DROPOUT)


def _embedding() -> BertModel:
    return BertModel.from_pretrained("minilm-l6", attention=fused_attention)


TASKS = {
    "names": Task(names, _named, ("classifier",), objectives.token_labels(), _name_batches, 1, _score_names, "f1"),
    "answers": Task(
        questions, _answering, ("qa_outputs",), objectives.spans(), _question_batches, 1, _score_answers, "f1"
    ),
    "paraphrases": Task(pairs, _embedding, (), objectives.contrastive(), _pair_batches, 1, _score_search, "reciprocal"),
}
EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "names lora")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
