"""What a model that answers questions has to beat: no answer at all, the most frequent one, shared words, a regression.

Each has `fit(train, validation)` and `predict(questions)`, which returns a text for each question, "" for no answer.
Where a method knows how sure it is, the validation set decides from when on it answers, as it does for a model.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from course_lib._extras import needed
from course_lib.data.squad import Questions
from course_lib.evaluation.answers import best_threshold, normalized

with needed("lectures"):
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.linear_model import LogisticRegression

LONGEST = 3  # words of an answer at most
WORD = re.compile(r"\w+(?:['’-]\w+)*")


class NoAnswer:
    """Says of every question that it has no answer."""

    def fit(self, train: Questions, validation: Questions) -> "NoAnswer":
        """Learns nothing."""
        return self

    def predict(self, questions: Questions) -> list[str]:
        """N times ""."""
        return [""] * len(questions.ids)


class MajorityAnswer:
    """Always the most frequent answer of the training questions that have one."""

    def fit(self, train: Questions, validation: Questions) -> "MajorityAnswer":
        """Counts the first answers; of equally frequent ones the first counts."""
        counts = Counter(answers[0] for answers in train.answers if answers)
        self.answer = counts.most_common(1)[0][0] if counts else ""
        return self

    def predict(self, questions: Questions) -> list[str]:
        """N times the same answer."""
        return [self.answer] * len(questions.ids)


class Candidate(NamedTuple):
    """A possible answer: characters of the context, its first word among the words, its length and its sentence."""

    start: int
    end: int
    word: int
    length: int
    sentence: int


class _Ranked:
    """Gives the context's best candidate, unless what it scores is below a threshold, which validation chooses."""

    def fit(self, train: Questions, validation: Questions) -> "_Ranked":
        """Learns from the training questions, and from the validation questions when not to answer."""
        self.rarity = _rarity(train.contexts)
        self._learn(train)
        answers, margins = self._best(validation)
        self.threshold = best_threshold(answers, margins, validation.answers)
        return self

    def predict(self, questions: Questions) -> list[str]:
        """The best candidates, "" where the best one is not good enough."""
        answers, margins = self._best(questions)
        return [text if margin <= self.threshold else "" for text, margin in zip(answers, margins, strict=True)]

    def _best(self, questions: Questions) -> tuple[list[str], np.ndarray]:
        answers, margins = [], np.full(len(questions.ids), np.inf)
        for i, (question, context) in enumerate(zip(questions.questions, questions.contexts, strict=True)):
            text = Text(context, question, self.rarity)
            scores = self._scores(text) if text.candidates else np.zeros(0)
            best = text.candidates[int(np.argmax(scores))] if len(scores) else None
            answers.append(context[best.start : best.end] if best else "")
            margins[i] = -scores.max() if best else np.inf
        return answers, margins


class OverlapAnswer(_Ranked):
    """The sentence that shares the most words with the question, rare words counting more, and a fitting piece of it.

    What fits is learned by counting: which shapes of words (Xx, 9 Xx, x) and which words before them are more frequent
    with the answers to questions of the same first two words than elsewhere.
    """

    def _learn(self, train: Questions) -> None:
        self.with_answers, self.anywhere = Counter(), Counter()
        for question, context, span in zip(train.questions, train.contexts, train.spans(), strict=True):
            text = Text(context, question, self.rarity)
            for candidate in text.candidates:
                self.anywhere[text.look(candidate)] += 1
                if (candidate.start, candidate.end) == span:
                    self.with_answers[text.kind, text.look(candidate)] += 1

    def _scores(self, text: "Text") -> np.ndarray:
        fits = [
            self.with_answers[text.kind, text.look(candidate)] / (self.anywhere[text.look(candidate)] + 1)
            for candidate in text.candidates
        ]
        # the sentence decides, then what fits, which is less than 1, in units that no two sentences differ by
        return np.array([text.overlap[c.sentence] for c in text.candidates]) + 1e-6 * np.array(fits)


class RegressionAnswer(_Ranked):
    """Logistic regression over all short pieces of the context (after Rajpurkar et al. 2016, section 5).

    It sees, with the first two words of the question: the shape of a piece and the words beside it; what its sentence,
    the two before and the one behind share with the question; how far the nearest words of the question are; and
    whether the piece stands in the question itself.
    """

    def __init__(self, seed: int = 0, negatives: int = 40):
        self.seed, self.negatives = seed, negatives
        self._hasher = FeatureHasher(2**18, input_type="pair")

    def _learn(self, train: Questions) -> None:
        rng = np.random.default_rng(self.seed)
        rows, labels = [], []
        for question, context, span in zip(train.questions, train.contexts, train.spans(), strict=True):
            text = Text(context, question, self.rarity)
            right = [c for c in text.candidates if (c.start, c.end) == span]
            wrong = [c for c in text.candidates if (c.start, c.end) != span]
            chosen = rng.permutation(len(wrong))[: self.negatives]
            for label, candidates in ((1, right), (0, [wrong[k] for k in chosen])):
                rows += [list(text.features(c)) for c in candidates]
                labels += [label] * len(candidates)
        self._model = LogisticRegression(solver="liblinear", C=1.0).fit(self._hasher.transform(rows), labels)

    def _scores(self, text: "Text") -> np.ndarray:
        rows = [list(text.features(candidate)) for candidate in text.candidates]
        return self._model.decision_function(self._hasher.transform(rows))


class Text:
    """A context cut into sentences, words and candidates, and what they have in common with a question."""

    def __init__(self, context: str, question: str, rarity: dict[str, float]):
        self.words = list(WORD.finditer(context))
        self.lower = [word.group().lower() for word in self.words]
        asked = [word.lower() for word in WORD.findall(question)]
        self.kind, self.asked = " ".join(asked[:2]), set(asked)
        self.known = [rarity.get(word, max(rarity.values())) if word in self.asked else 0.0 for word in self.lower]
        ends = [0, *(match.end() for match in re.finditer(r"[.!?;](?=\s|$)", context))]
        self.sentences = [int(np.searchsorted(ends, word.start(), side="right")) - 1 for word in self.words]
        shared = [{} for _ in range(self.sentences[-1] + 1 if self.words else 0)]
        for word, value, sentence in zip(self.lower, self.known, self.sentences, strict=True):
            shared[sentence][word] = value
        self.overlap = [sum(values.values()) for values in shared]
        self.total = sum(dict(zip(self.lower, self.known, strict=True)).values()) or 1.0
        self.candidates = list(self._pieces(context))

    def look(self, candidate: Candidate) -> tuple[str, str]:
        """The shape of a candidate, and the word before it."""
        return self._shape(candidate), self._word(candidate.word - 1)

    def features(self, candidate: Candidate) -> Iterator[tuple[str, float]]:
        """Names and values for the regression."""
        shape, before = self.look(candidate)
        behind = self._word(candidate.word + candidate.length)
        names = (f"shape {shape}", f"before {before}", f"behind {behind}", f"{before} {shape}", f"{shape} {behind}")
        for name in names:
            yield f"{self.kind} {name}", 1.0
        for shift in (-2, -1, 0, 1):
            s = candidate.sentence + shift
            yield f"{self.kind} shared {shift}", self.overlap[s] / self.total if 0 <= s < len(self.overlap) else 0.0
        yield f"{self.kind} asked for", float(any(self.known[candidate.word : candidate.word + candidate.length]))
        places = [i for i, value in enumerate(self.known) if value > 1.0]
        for side, distances in (
            ("left", [candidate.word - i for i in places if i < candidate.word]),
            ("right", [i - candidate.word for i in places if i >= candidate.word + candidate.length]),
        ):
            yield f"{self.kind} {side}", 1.0 / min(distances) if distances else 0.0
        yield self.kind, 1.0

    def _pieces(self, context: str) -> Iterator[Candidate]:
        for first in range(len(self.words)):
            for length in range(1, LONGEST + 1):
                last = first + length - 1
                if last >= len(self.words) or self.sentences[last] != self.sentences[first]:
                    break
                start, end = self.words[first].start(), self.words[last].end()
                if normalized(context[start:end]):
                    yield Candidate(start, end, first, length, self.sentences[first])

    def _shape(self, candidate: Candidate) -> str:
        words = (word.group() for word in self.words[candidate.word : candidate.word + candidate.length])
        return " ".join("9" if w[0].isdigit() else "Xx" if w[0].isupper() else "x" for w in words)

    def _word(self, i: int) -> str:
        return self.lower[i] if 0 <= i < len(self.lower) else ""


def _rarity(contexts) -> dict[str, float]:
    """The inverse frequency of each word among the contexts: log of their number over that of those with the word."""
    different = set(contexts)
    counts = Counter(word for context in different for word in {w.lower() for w in WORD.findall(context)})
    return {word: float(np.log((1 + len(different)) / count)) for word, count in counts.items()}
