"""A small BERT from nothing: what does a quarter of an hour of one processor core teach it?

Four layers of 128 features read film reviews, and fill in blanks: windows of 32 tokens, a fifth of them blanks, for
4,000 updates from the start that `bert_start` makes. A second run goes on from there with pairs of pieces of about 60
tokens, and learns besides whether the second piece follows the first. All is measured on reviews that were held out:
the loss and the share of blanks right, beside the unigram entropy and a model that counts what stood between the same
two neighbours; next sentences beside the words that the two pieces share. No review, and no sentence, that a
fine-tuned model is tested on is among the texts. Blanks have three seeds, and so has all on the articles; pairs of the
reviews have one.

What would more of it, less of it, or BERT's own way bring? `brief` gives the blanks 1,000 updates, `long` 12,000, each
with a schedule of its own; `mixed` gives 4,000 with BERT's mixture, where of ten tokens asked for eight read [MASK],
one another token and one itself. All are measured on the same blanks, each of which reads [MASK].
*pretraining_pays.py* fine-tunes what they leave.

The reviews may not be passed on, so what learned from them stays on this machine. The same is done with the articles of
WikiText-2, whose licence is CC BY-SA, and the run `free shipped` rounds what the blanks left to half precision, writes
it to where `BertForMaskedLM.from_pretrained("bert-en")` finds it, and measures what is read there.

Counts do best inside words that were split into several tokens, whose rest stands beside the blank. So the run `words`
measures blanks in words of one token and in others apart, and blanks that hide whole words.

A run of blanks takes about a quarter of an hour of one core, one of pairs five minutes for each thousand updates.
"""

import shutil
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch.nn import functional as F

from course_lib.batches.masked import MaskedBatches
from course_lib.batches.next_sentence import PretrainingBatches, encode_documents
from course_lib.batches.texts import IGNORED
from course_lib.evaluation.baselines import SharedWords
from course_lib.evaluation.blank_baselines import NeighbourModel
from course_lib.masks import padding_mask
from course_lib.pretrained import SHIPPED
from course_lib.text.sentences import sentences
from course_lib.text.wordpiece import WordPiece
from course_lib.torch import BertForMaskedLM, BertForPreTraining, fused_attention, get_state, set_state
from course_lib.torch.training import loop, objectives
from notebooks.experiments import _pretraining as recipe
from notebooks.experiments.harness import Experiment, Record, Waiting, main, table, write_text

NAME, KEPT = "bert-en", "free blanks 0"  # what the library calls what ships, and the run that it comes from
PEAK, PAIR_PEAK = 2e-3, 1e-3
N_RIVAL = 8000  # pairs that the rivals of the next sentence learn from
EXAMPLES = (
    "this is one of the [MASK] films i have ever seen.",
    "the film was directed [MASK] steven spielberg.",
    "i went to the [MASK] to see this movie with my wife.",
    "the acting was terrible and the plot was [MASK].",
    "the acting was wonderful and the plot was [MASK].",
    "he gave her the [MASK] and left the house.",
)
README = """# A small English BERT, trained on WikiText-2

`BertForMaskedLM.from_pretrained("{name}")` of course_lib.torch, .tensorflow or .numpy reads this folder, and
`WordPiece.from_pretrained("{name}")` its vocabulary. The command

    python notebooks/experiments/pretrain_bert.py 'free blanks 0' 'free shipped' --again

makes it again from nothing: {parameters:,} weights, {trained:,} updates of AdamW, {minutes:.0f} minutes of one
processor core, with PyTorch {torch}. The weights are kept in half precision, and so they were measured, on the test
part:

| at {blanks:,} blanks | this model | counts of neighbours | unigram |
| --- | --- | --- | --- |
| loss, nats | {loss:.2f} | {neighbours:.2f} | {unigram:.2f} |
| right | {right:.2f} | {neighbours_right:.2f} | |

It knows lower-case English of encyclopaedic articles, read in windows of 32 tokens; later positions and the second
segment were never trained.

The articles are by the authors of the English Wikipedia, chosen by Merity et al. (2017) and licensed under
[CC BY-SA 3.0](https://creativecommons.org/licenses/by-sa/3.0/). Weights and vocabulary come under the same licence.
"""


class Run(NamedTuple):
    """A training of `blanks` from the start, or of `pairs` from what the blanks of the same seed left.

    `brief`, `long` and `mixed` are blanks of another length, or in BERT's mixture. `words` and `shipped` train nothing:
    the first measures what the blanks left, once more, by words; the second keeps it in the library.
    """

    corpus: str
    task: str
    seed: int
    updates: int

    @property
    def name(self) -> str:
        """What the record calls this run."""
        return f"{self.corpus} {self.task} {self.seed}"

    @property
    def seconds(self) -> float:
        """About, of one processor core."""
        return ({"pairs": 0.3} | dict.fromkeys(BLANKS, 0.18)).get(self.task, 0) * self.updates + 30


UPDATES = {"blanks": 4000, "pairs": 1000, "words": 0}
BLANKS = {"blanks": 4000, "brief": 1000, "long": 12000, "mixed": 4000}  # updates of each kind of training on blanks
RUNS = table(
    [
        *(Run("reviews", task, 0, n) for task, n in UPDATES.items()),
        *(Run("reviews", "blanks", seed, UPDATES["blanks"]) for seed in (1, 2)),
        *(Run("reviews", task, seed, BLANKS[task]) for task in ("brief", "long", "mixed") for seed in (0, 1, 2)),
        *(Run("free", "blanks", seed, UPDATES["blanks"]) for seed in (0, 1, 2)),
        *(Run("free", "pairs", seed, 2000) for seed in (0, 1, 2)),  # after 1,000 they were still being learned, at .79
        Run("free", "shipped", 0, 0),
    ]
)


def measure(run: Run, record: Record) -> dict:
    """Train, keep the weights, and return the figures."""
    torch.set_flush_denormal(True)  # numbers under 1e-38 take ten times as long, and softmax makes many of them
    try:
        made = {"pairs": pairs, "words": words, "shipped": shipped} | dict.fromkeys(BLANKS, blanks)
        return made[run.task](run, record)
    finally:
        torch.set_flush_denormal(False)


def place(run: Run, record: Record) -> Path:
    """Where the weights of a run stand; git and the packages leave folders of this name out."""
    return record.folder / "training" / run.name.replace(" ", "-")


def blanks(run: Run, record: Record) -> dict:
    """The figures of a training on blanks."""
    texts, counts = recipe.prepared(run.corpus), recipe.counted(run.corpus)
    model = BertForMaskedLM(recipe.config_of(texts), attention=fused_attention)
    set_state(model, recipe.part_of(recipe.start(run.corpus, run.seed), model))
    masking = texts.mixed() if run.task == "mixed" else texts.masking()
    batches = MaskedBatches(texts.windows(texts.train), masking, recipe.BATCH, run.seed)
    tuning, held_out = (recipe.measured_on(texts, part) for part in (texts.tuning, texts.held_out))
    before = loop.evaluate(model, tuning, objectives.masked_lm())
    going_on = place(run, record) / "training"
    history = recipe.trained(model, batches, objectives.masked_lm(), tuning, run, PEAK, going_on)
    kept(model, texts, place(run, record))
    found = loop.evaluate(model, held_out, objectives.masked_lm())
    return {
        "curve": [[0, 0.0, *recipe.rounded(before.nll, before.accuracy)], *recipe.curve(history)],
        "loss": round(found.nll, 4),
        "right": round(found.accuracy, 4),
        "unigram": round(float(counts.unigram_losses(held_out).mean()), 4),
        "neighbours": round(float(counts.losses(held_out).mean()), 4),
        "neighbours_right": round(float((counts.predictions(held_out) == answers(held_out)).mean()), 4),
        "blanks": found.n_tokens,
        "windows": sum(map(len, batches.groups)),
        "tokens_read": sum(len(ids) for ids in batches.sequences),
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "examples": {text: said(model, texts.tokenizer, text) for text in EXAMPLES},
        "seconds": round(float(history.seconds[-1]), 1),
        "torch": version("torch"),
    }


def pairs(run: Run, record: Record) -> dict:
    """The figures of a training on pairs, from the weights that the blanks of the same seed left."""
    texts = recipe.prepared(run.corpus)
    model = BertForPreTraining(recipe.config_of(texts), attention=fused_attention)
    set_state(model, recipe.start(run.corpus, run.seed))
    set_state(model, get_state(after_blanks(run, record)), partial=True)
    batches = texts.pairs(texts.train, run.seed)
    tuning, held_out = texts.pairs(texts.tuning), texts.pairs(texts.held_out)
    going_on = place(run, record) / "training"
    history = recipe.trained(model, batches, objectives.pretraining(), list(tuning), run, PAIR_PEAK, going_on)
    kept(model, texts, place(run, record))
    found = loop.evaluate(model, held_out, objectives.pretraining()).parts
    alone = loop.evaluate(left_by(run, record), recipe.measured_on(texts, texts.held_out), objectives.masked_lm())
    points = zip(recipe.curve(history), history.validation, strict=True)
    return {
        "curve": [[*point, *recipe.rounded(look.parts["next"].accuracy)] for point, look in points],
        "next": round(found["next"].accuracy, 4),
        "pairs": found["next"].n_tokens,
        **rivals(texts, batches, held_out, run.corpus),
        "loss": round(alone.nll, 4),  # in windows, as before the pairs
        "right": round(alone.accuracy, 4),
        "loss_in_pairs": round(found["masked"].nll, 4),
        "trained_pairs": sum(map(len, batches.groups)),
        "seconds": round(float(history.seconds[-1]), 1),
        "torch": version("torch"),
    }


def left_by(run: Run, record: Record) -> BertForMaskedLM:
    """The model that a run left; Waiting if there is none."""
    if not (place(run, record) / "config.json").exists():
        raise Waiting(f"run first {run.name}, on this machine")
    return BertForMaskedLM.from_pretrained(place(run, record), attention=fused_attention)


def after_blanks(run: Run, record: Record) -> BertForMaskedLM:
    """What the blanks of a run's corpus and seed left. Those that ship need no training here; they were rounded."""
    before = RUNS[f"{run.corpus} blanks {run.seed}"]
    if before.name == KEPT and not place(before, record).exists():
        return BertForMaskedLM.from_pretrained(NAME, attention=fused_attention)
    return left_by(before, record)


def shipped(run: Run, record: Record) -> dict:
    """Write what the blanks left into the library, in half precision, and return the figures of what is read there."""
    before, folder = RUNS[KEPT], SHIPPED / NAME
    model, tokenizer = left_by(before, record), WordPiece.from_pretrained(place(before, record))
    documents = [sentences(text) for text in recipe.texts_of(run.corpus)[-1]]
    texts = recipe.Texts(tokenizer, [], [], encode_documents(documents, tokenizer))
    kept(model.half(), texts, folder)
    model = BertForMaskedLM.from_pretrained(folder, attention=fused_attention)
    found = loop.evaluate(model, recipe.measured_on(texts, texts.held_out), objectives.masked_lm())
    trained = record.read()[before.name]
    same = ("unigram", "neighbours", "neighbours_right", "blanks", "parameters", "torch")
    figures = {key: trained[key] for key in same} | {
        "loss": round(found.nll, 4),
        "right": round(found.accuracy, 4),
        "examples": {text: said(model, tokenizer, text) for text in EXAMPLES},
        "trained": trained["updates"],
        "minutes": round(trained["seconds"] / 60, 1),
    }
    write_text(folder / "README.md", README.format(name=NAME, **figures))
    return figures


def words(run: Run, record: Record) -> dict:
    """The figures of words that are one token and of the tokens of others; and of blanks that hide whole words.

    Counts find the rest of a word that was split between its neighbours, and a small model knows few such words.
    """
    texts, found = recipe.prepared(run.corpus), {}
    model = left_by(RUNS[f"{run.corpus} blanks {run.seed}"], record)
    counts = NeighbourModel(recipe.joined(texts.train), texts.masking(0.15))
    for name, whole in (("tokens", False), ("words", True)):
        tuning, held_out = (recipe.measured_on(texts, part, whole) for part in (texts.tuning, texts.held_out))
        counts.tune(tuning)
        split = of_split_words(held_out, texts.tokenizer)
        for who, losses in (
            ("loss", losses_of(model, held_out)),
            ("neighbours", counts.losses(held_out)),
            ("unigram", counts.unigram_losses(held_out)),
        ):
            parts = {"all": losses, "one token": losses[~split], "split": losses[split]}
            found[f"{who}, {name}"] = {kind: round(float(part.mean()), 4) for kind, part in parts.items()}
        found[f"split, {name}"] = round(float(split.mean()), 4)
    return found


def losses_of(model: BertForMaskedLM, batches: list) -> np.ndarray:
    """The loss of each blank, in the order of `NeighbourModel.losses`."""
    found = []
    with torch.no_grad():
        for batch in batches:
            ids, labels = torch.from_numpy(batch.ids), torch.from_numpy(batch.labels)
            at = labels != IGNORED
            logits = model(ids, mask=padding_mask(ids, model.config.pad_id), at=at).logits
            found.append(F.cross_entropy(logits, labels[at], reduction="none").numpy())
    return np.concatenate(found)


def of_split_words(batches: list, tokenizer: WordPiece) -> np.ndarray:
    """Whether the word of each blank is more than one token, boolean (N,)."""
    found = []
    for batch in batches:
        blank = batch.labels != IGNORED
        goes_on = tokenizer.continues[np.where(blank, batch.labels, batch.ids)]  # (B, T)
        next_goes_on = np.pad(goes_on, ((0, 0), (0, 1)))[:, 1:]
        found.append((goes_on | next_goes_on)[blank])
    return np.concatenate(found)


def rivals(texts: recipe.Texts, train: PretrainingBatches, held_out: PretrainingBatches, corpus: str) -> dict:
    """The share of next sentences that words tell: those that both have, and the cosine of their count vectors too."""
    table, tokenizer = recipe.vectors(corpus), texts.tokenizer

    def sides(batches, rows):
        return [[batches.pieces.pieces[row] for row in side[rows]] for side in batches.pairs[:2]]

    def words(found):
        return list(zip(*(tokenizer.decode(side) for side in found), strict=True))

    def cosine(found):
        first, second = (np.stack([table[ids].mean(axis=0) for ids in side]) for side in found)
        return (first * second).sum(axis=1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)

    # a stream of its own: that of the seed has drawn the pairs, and would choose most of those that do not follow
    some = np.random.default_rng([train.seed, N_RIVAL]).permutation(len(train.pairs.first))[:N_RIVAL]
    drawn, labels, asked = sides(train, some), train.pairs.follows[some], sides(held_out, slice(None))
    shared = SharedWords().fit(words(drawn))
    seen, unseen = (np.column_stack([shared.transform(words(found)), cosine(found)]) for found in (drawn, asked))
    found = {}
    for name, columns in (("overlap", slice(0, 4)), ("overlap_and_vectors", slice(0, 5))):
        rival = make_pipeline(StandardScaler(), LogisticRegression()).fit(seen[:, columns], labels)
        found[name] = round(float(rival.score(unseen[:, columns], held_out.pairs.follows)), 4)
    return found


def kept(model, texts: recipe.Texts, folder: Path) -> None:
    """Write model and tokenizer; what was needed to go on is not any more."""
    model.save_pretrained(folder)
    texts.tokenizer.save_pretrained(folder)
    shutil.rmtree(folder / "training", ignore_errors=True)


def answers(batches: list) -> np.ndarray:
    """The tokens that stood in the blanks."""
    return np.concatenate([batch.labels[batch.labels >= 0] for batch in batches])


def said(model, tokenizer: WordPiece, text: str, n: int = 5) -> list:
    """The n most probable tokens of a blank, with their probabilities."""
    ids = tokenizer.encode(text).ids
    with torch.no_grad():
        logits = model(torch.from_numpy(ids)).logits[0, int(np.argmax(ids[0] == tokenizer.mask_id))]
    p, best = logits.softmax(-1).topk(n)
    return [[token, round(q, 3)] for token, q in zip(tokenizer.tokens(best.numpy()), p.tolist(), strict=True)]


EXPERIMENT = Experiment(__doc__, RUNS, measure, Record.of(__file__), "reviews")

if __name__ == "__main__":
    raise SystemExit(main(EXPERIMENT, __file__))
