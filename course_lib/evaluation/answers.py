"""How good answers are that are pieces of a text: exact match and F1 as SQuAD counts them, and the threshold of "none".

Both compare texts, not places, after bringing them to lower case without punctuation, articles and superfluous spaces
(Rajpurkar et al. 2016, section 6.1). With SQuAD 2.0 a question may have no answer; then only the empty answer is right
(Rajpurkar et al. 2018, section 4). The values are fractions; the official script writes them times 100.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from course_lib.checks import check_choice
from course_lib.evaluation.estimate import Estimate, bootstrap
from course_lib.strings import as_texts

VERSIONS = ("1.1", "2.0")


class Quality(NamedTuple):
    """The share of n questions answered exactly, and their mean F1, each with its interval."""

    exact: Estimate
    f1: Estimate
    n: int

    def __str__(self) -> str:
        return f"exact match {self.exact}, F1 {self.f1} ({self.n:,} questions)"


class AnswerScores(NamedTuple):
    """All questions; those that have an answer, and those that have none, or None where there are no such questions."""

    all: Quality
    has_answer: Quality | None
    no_answer: Quality | None


def normalized(text: str) -> str:
    """The text as answers are compared: lower case, no ASCII punctuation, no a, an, the, single spaces."""
    kept = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())


def exact_match(prediction: str, answers: Sequence[str], version: str = "2.0") -> float:
    """1 if the prediction is one of the right answers, else 0. Arguments and errors as for `answer_f1`."""
    return _best(lambda ours, right: float(normalized(ours) == normalized(right)), prediction, answers, version)


def answer_f1(prediction: str, answers: Sequence[str], version: str = "2.0") -> float:
    """F1 of the words that the prediction and a right answer have in common, the best over the right answers.

    Words count as often as they occur. An empty answer has no words: under "2.0" it equals an empty one alone, under
    "1.1" nothing (which matters for an answer such as "The").

    Parameters
    ----------
    prediction : an answer; "" says that there is none
    answers : the right ones; none at all where the question has no answer
    version : of the official script, "1.1" or "2.0"

    Raises
    ------
    ValueError : another version, or a question without an answer under "1.1".
    TypeError : one str instead of several answers, or an answer that is not a str.
    """
    return _best(lambda ours, right: _overlap(ours, right, version), prediction, answers, version)


def answer_scores(
    predictions: Sequence[str],
    answers: Sequence[Sequence[str]],
    version: str = "2.0",
    confidence: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> AnswerScores:
    """Exact match and F1 over N questions, also of those with and without an answer alone.

    Parameters
    ----------
    predictions : N answers, "" for none
    answers : for each question its right answers
    version : as for `answer_f1`
    confidence, n_resamples, seed : as for `bootstrap` of `course_lib.evaluation.estimate`

    Raises
    ------
    ValueError, TypeError : as for `answer_f1`; no question, or unequal numbers.
    """
    scores = _scores(predictions, answers, version)
    known = np.array([len(right) > 0 for right in answers])

    def quality(rows) -> Quality | None:
        if not rows.any():
            return None
        both = [np.stack([scores[rows, k], np.ones(rows.sum())], axis=1) for k in (0, 1)]
        mean = lambda sums: sums[..., 0] / sums[..., 1]  # noqa: E731
        return Quality(*(bootstrap(part, mean, confidence, n_resamples, seed) for part in both), int(rows.sum()))

    return AnswerScores(quality(np.ones(len(known), dtype=bool)), quality(known), quality(~known))


def best_threshold(
    predictions: Sequence[str], margins: Sequence[float], answers: Sequence[Sequence[str]], measure: str = "f1"
) -> float:
    """The margin above which "no answer" is the better answer; chosen on validation data, never on the test set.

    The margins are tried in ascending order, and the first of the best thresholds counts, as in the official script of
    version 2.0; questions of equal margins are answered together.

    Parameters
    ----------
    predictions : N best answers, none of them given up for "no answer"
    margins : N numbers, how much more the model believes in "no answer": `Found.margin` of the best spans
    answers : for each question its right answers, as for `answer_f1`
    measure : "f1" or "exact", what is to be best

    Returns
    -------
    The threshold: answer "" where the margin is greater. -inf answers nothing at all.

    Raises
    ------
    ValueError : another measure, no question, unequal numbers, or a margin that is not a number.
    """
    check_choice("measure", measure, ("f1", "exact"))
    margins = np.asarray(margins, dtype=np.float64)
    if margins.shape != (len(predictions),) or np.isnan(margins).any():
        raise ValueError(f"each of the {len(predictions)} predictions needs a margin that is a number")
    k = ("exact", "f1").index(measure)
    gains = _scores(predictions, answers, "2.0")[:, k] - _scores([""] * len(predictions), answers, "2.0")[:, k]
    order = np.argsort(margins, kind="stable")
    steps = np.cumsum(gains[order])  # what answering the questions up to here gains over answering none
    ends = margins[order]
    last = np.append(ends[1:] > ends[:-1], True)  # equal margins are answered together
    steps, ends = steps[last], ends[last]
    best = int(np.argmax(steps))
    return float(ends[best]) if steps[best] > 0 else float("-inf")


def _scores(predictions, answers, version: str) -> np.ndarray:
    """Exact match and F1 of each question: (N, 2)."""
    if isinstance(predictions, str):
        raise TypeError("predictions must be many answers, not one str")
    predictions = as_texts(predictions, "predictions")
    if len(predictions) != len(answers) or not predictions:
        raise ValueError(
            f"each question, at least one, needs its prediction and its right answers; there are {len(predictions)} "
            f"predictions and answers of {len(answers)}"
        )
    pairs = list(zip(predictions, answers, strict=True))
    return np.array([(exact_match(*pair, version), answer_f1(*pair, version)) for pair in pairs])


def _best(measure, prediction: str, answers, version: str) -> float:
    check_choice("version", version, VERSIONS)
    if isinstance(answers, str):
        raise TypeError(f"the answers of a question must be a sequence of str, not the str {answers!r:.40}")
    right = as_texts(answers, "answers")
    if version == "2.0":
        right = [text for text in right if normalized(text)] or [""]
    elif not right:
        raise ValueError("SQuAD 1.1 has an answer to every question; score questions without one as version '2.0'")
    return max(measure(prediction, text) for text in right)


def _overlap(prediction: str, answer: str, version: str) -> float:
    ours, right = normalized(prediction).split(), normalized(answer).split()
    if version == "2.0" and not (ours and right):
        return float(ours == right)
    common = (Counter(ours) & Counter(right)).total()
    return 2 * common / (len(ours) + len(right)) if common else 0.0
