"""Four tasks as text: what a text-to-text model reads and is to write, how it is scored, and rivals without a network.

A source begins with words that say what is asked. "translate" has Spanish sentences of Tatoeba and their English;
"mend" has English sentences of Tatoeba in which two neighbouring words have changed places; "judge" has sentences of
film reviews and says good or bad; "answer" has a question about a story, and its answer or "not told".

The stories, in the manner of Weston et al. (2015, tasks 1 and 2): four to six sentences in which some of three persons
go to places and take things, which they carry with them from then on. Asked is where a person is, who has a thing, or
where a thing is, which takes two steps. Four of five questions at least have an answer, if the story has any of the
kind.
"""

from functools import cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np

from course_lib.batches.pairs import PairBatches
from course_lib.data import reviews, sentence_pairs
from course_lib.data.squad import Questions, questions_of
from course_lib.evaluation import answer_baselines, baselines
from course_lib.evaluation.answers import normalized
from course_lib.evaluation.bleu import bleu
from course_lib.evaluation.ngrams import KneserNey
from course_lib.text.bpe import BytePairEncoding

PREFIXES = {"translate": "translate:", "mend": "mend:", "judge": "judge:", "answer": "answer:"}
PARTS = ("train", "validation", "test")
WORDS = (5, 14)  # of a sentence that is to be mended
VERDICTS, NOT_TOLD = ("bad", "good"), "not told"
STORIES = {"train": 40000, "validation": 500, "test": 1000}
PERSONS = "Ada Ben Cora Dan Eva Finn Gina Hugo Iris Jon Kira Leo".split()
THINGS = "ball book cup drum egg flute hat key lamp map pen rope".split()
PLACES = "attic barn cellar cinema garden garage hall kitchen library office park school".split()
GOES, TAKES = ("went to", "walked to", "moved to"), ("took", "picked up", "found")
KINDS, TOLD = ("where is she", "who has it", "where is it"), 0.8  # of the questions at least so many have an answer
VOCABULARY, SENTINELS = 4000, 32
LONGEST = {"source": 100, "target": 40}  # tokens of a training pair; longer ones are left out
KEPT = Path(__file__).parent / "recorded" / "text_to_text" / "tokenizer.json"  # learning it anew takes 20 seconds
HELD = 400  # validation and test examples of a task at most, but reviews and questions: all


class Texts(NamedTuple):
    """Sources and what is to be written of them, two lists of N str."""

    sources: list
    targets: list


@cache
def texts(task: str, part: str) -> Texts:
    """The examples of a task, with what is asked in front."""
    return Texts([f"{PREFIXES[task]} {source}" for source in MADE[task](part).sources], MADE[task](part).targets)


@cache
def translate(part: str) -> Texts:
    """Spanish sentences and their English."""
    pairs = getattr(sentence_pairs.split(sentence_pairs.load("tatoeba-es-en")), part)
    rows = range(len(pairs.sources)) if part == "train" else _few(len(pairs.sources))
    return Texts([pairs.sources[i] for i in rows], [pairs.targets[i] for i in rows])


@cache
def mend(part: str) -> Texts:
    """English sentences in which two neighbours have changed places, and the sentences."""
    pairs = getattr(sentence_pairs.split(sentence_pairs.load("tatoeba-es-en")), part)
    rng, found = np.random.default_rng([7, PARTS.index(part)]), {}
    for sentence in dict.fromkeys(pairs.targets):
        words = sentence.split()
        places = [i for i in range(len(words) - 1) if words[i] != words[i + 1]]
        if WORDS[0] <= len(words) <= WORDS[1] and places:
            i = rng.choice(places)
            found[sentence] = " ".join([*words[:i], words[i + 1], words[i], *words[i + 2 :]])
    wanted = list(found) if part == "train" else [list(found)[i] for i in _few(len(found))]
    return Texts([found[sentence] for sentence in wanted], [" ".join(sentence.split()) for sentence in wanted])


@cache
def judge(part: str) -> Texts:
    """Sentences of reviews of Rotten Tomatoes, and good or bad; 500 of the training sentences are the validation's."""
    split = reviews.split(reviews.load(), train=7500)
    some = split.held_out if part == "test" else split.train
    rows = {"train": slice(500, None), "validation": slice(500), "test": slice(None)}[part]
    return Texts(list(some.texts)[rows], [VERDICTS[label] for label in some.labels[rows]])


@cache
def answer(part: str) -> Texts:
    """Questions with their stories, and answers."""
    rng = np.random.default_rng([8, PARTS.index(part)])
    return Texts(*zip(*(told(rng)[:2] for _ in range(STORIES[part])), strict=True))


def told(rng: np.random.Generator) -> tuple[str, str, str]:
    """A question with its story, the answer, and the kind of the question."""
    persons, things = (list(rng.choice(words, 3, replace=False)) for words in (PERSONS, THINGS))
    sentences, place, holder = [], {}, {}
    for _ in range(rng.integers(4, 7)):
        person = rng.choice(persons)
        if rng.random() < 0.35 and len(holder) < len(things):
            thing = next(thing for thing in things if thing not in holder)
            holder[thing] = person
            sentences.append(f"{person} {rng.choice(TAKES)} the {thing}.")
        else:
            place[person] = rng.choice([other for other in PLACES if other != place.get(person)])
            sentences.append(f"{person} {rng.choice(GOES)} the {place[person]}.")
    kind = rng.choice(KINDS)
    asked, known = {
        "where is she": ("Where is {}?", {person: place.get(person) for person in persons}),
        "who has it": ("Who has the {}?", {thing: holder.get(thing) for thing in things}),
        "where is it": ("Where is the {}?", {thing: place.get(holder.get(thing)) for thing in things}),
    }[kind]
    some = [word for word, found in known.items() if found] if rng.random() < TOLD else []
    word = rng.choice(some or list(known))
    return f"{asked.format(word)} {' '.join(sentences)}", str(known[word] or NOT_TOLD), str(kind)


@cache
def kinds(part: str) -> list[str]:
    """The kinds of the questions of a part."""
    rng = np.random.default_rng([8, PARTS.index(part)])
    return [told(rng)[2] for _ in range(STORIES[part])]


MADE = {"translate": translate, "mend": mend, "judge": judge, "answer": answer}


def _few(n: int) -> np.ndarray:
    """Which of n held-out examples are used."""
    return np.sort(np.random.default_rng(n).permutation(n)[:HELD])


@cache
def tokenizer() -> BytePairEncoding:
    """The kept one, or else one that is learned; the sentinels of span corruption come behind its ids."""
    return BytePairEncoding.load(KEPT) if KEPT.exists() else learned()


def learned() -> BytePairEncoding:
    """A tokenizer of all training texts."""
    some = [texts(task, "train") for task in PREFIXES]
    return BytePairEncoding.train([text for pair in some for side in pair for text in side], VOCABULARY, lower=False)


def source_ids(sources) -> list[np.ndarray]:
    """Texts as a source has them: tokens and the end."""
    return [ids[1:] for ids in tokenizer().encode(list(sources))]


def text_of(ids) -> str:
    """What a model wrote, without sentinels."""
    return tokenizer().decode(ids[ids < tokenizer().vocab_size])


@cache
def pairs_of(task: str) -> tuple[list, list]:
    """The training examples as ids, without those that are too long; a target begins with padding, as T5's do."""
    some = texts(task, "train")
    start = [tokenizer().pad_id]
    sides = source_ids(some.sources), [np.append(start, ids) for ids in source_ids(some.targets)]
    fits = [len(a) <= LONGEST["source"] and len(b) <= LONGEST["target"] for a, b in zip(*sides, strict=True)]
    return tuple([ids for ids, fit in zip(side, fits, strict=True) if fit] for side in sides)


def batches_of(task: str, max_tokens: int, seed: int):
    """Batches of a task without end: source and target ids, (B, S) and (B, T)."""
    batches = PairBatches(*pairs_of(task), max_tokens, seed=seed, pad_id=tokenizer().pad_id)
    return (batch[:2] for epoch in count() for batch in batches.epoch(epoch))


def right(task: str, written, targets) -> np.ndarray:
    """Which texts are as they should be, boolean (N,); answers but for articles and points, as SQuAD has it."""
    same = (lambda a, b: normalized(a) == normalized(b)) if task == "answer" else str.__eq__
    return np.array([same(*pair) for pair in zip(written, targets, strict=True)])


def score(task: str, written, targets) -> float:
    """BLEU of translations, and of the others the share that is right, of 100."""
    if task == "translate":
        return round(bleu(list(written), list(targets)).value, 2)
    return round(100 * float(right(task, written, targets).mean()), 2)


def rivals() -> dict:
    """Scores of four ways without a network, on the test examples, and which of them were right."""
    ways, scores, rights = {"translate": nearest, "mend": likeliest, "judge": weighed, "answer": ranked}, {}, {}
    for task, way in ways.items():
        written, targets = way(), texts(task, "test").targets
        scores[task] = score(task, written, targets)
        rights[task] = np.packbits(right(task, written, targets)).tobytes().hex()
    return {"test": scores, "right": rights}


def nearest() -> list[str]:
    """The English of the training sentence whose Spanish is nearest, by TF-IDF of words and pairs of words."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    some, vectors = translate("train"), TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\w+")
    known = vectors.fit_transform(some.sources)
    return [some.targets[i] for i in (vectors.transform(translate("test").sources) @ known.T).toarray().argmax(axis=1)]


def likeliest() -> list[str]:
    """Of all sentences with two neighbours exchanged the likeliest by five-grams of the training sentences."""
    ids = tokenizer()
    model = KneserNey(source_ids(mend("train").targets), ids.vocab_size, ids.pad_id)
    model.tune(source_ids(mend("validation").targets))
    found = []
    for sentence in mend("test").sources:
        words = sentence.split()
        every = [" ".join([*words[:i], words[i + 1], words[i], *words[i + 2 :]]) for i in range(len(words) - 1)]
        found.append(every[int(np.argmin([losses.sum() for losses in model.losses(source_ids(every))]))])
    return found


def weighed() -> list[str]:
    """What a logistic regression on TF-IDF says of reviews."""
    some = judge("train")
    return baselines.tfidf().fit(some.sources, some.targets).predict(judge("test").sources).tolist()


def ranked() -> list[str]:
    """The best of what the story has by a regression, or that it is not told."""
    sets = [as_questions(part) for part in ("train", "validation", "test")]
    model = answer_baselines.RegressionAnswer().fit(sets[0], sets[1])
    return [text or NOT_TOLD for text in model.predict(sets[2])]


def as_questions(part: str, most: int = 6000) -> Questions:
    """Examples of "answer" as a set of questions, whose answers are pieces of the story."""
    rows = []
    for i, (source, target) in enumerate(zip(*(side[:most] for side in answer(part)), strict=True)):
        question, _, story = source.partition("? ")
        there = ((), ()) if target == NOT_TOLD else ((target,), (story.rindex(target),))
        rows.append((f"{part}-{i}", part, f"{question}?", story, *there, "story"))
    return questions_of(rows)
