"""Exact match, F1 and the threshold, against a second writing of SQuAD's official definitions."""

import math
import random
import re
import string

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.evaluation.answers import answer_f1, answer_scores, best_threshold, exact_match, normalized

# prediction, right answers, exact match and F1 of version 2.0; None for the same under 1.1
TRICKY = [
    ("the Eiffel Tower", ["Eiffel Tower"], 1.0, 1.0),
    ("Eiffel-Tower!", ["Eiffel Tower"], 0.0, 0.0),
    ("U.S.A.", ["usa"], 1.0, 1.0),
    ("a cat\n and  THE dog", ["cat and dog"], 1.0, 1.0),
    ("theatre", ["atre"], 0.0, 0.0),
    ("an", ["a"], 1.0, 1.0),
    ("the the of", ["of"], 1.0, 1.0),
    ("four four four", ["four four"], 0.0, 0.8),
    ("in 1066 at Hastings", ["1066", "Hastings", "at Hastings in Sussex"], 0.0, 6 / 8),
    ("", [], 1.0, 1.0),
    ("Hastings", [], 0.0, 0.0),
    ("", ["Hastings"], 0.0, 0.0),
    ("the", [], 1.0, 1.0),
    ("Hull", ["The", "Hull"], 1.0, 1.0),
    ("the", ["The", "Hull"], 0.0, 0.0),
    ("the", ["The"], 1.0, 1.0),
    ("“Hull”", ["Hull"], 0.0, 0.0),
    ("naïve a", ["NAÏVE"], 1.0, 1.0),
    ("$100", ["100"], 1.0, 1.0),
]


def official(prediction, answers, version):
    """The published definition: normalise, then the best over the answers of equality and of the words' F1."""

    def clean(text):
        text = re.sub(f"[{re.escape(string.punctuation)}]", "", text.lower())
        return re.sub(r"\b(a|an|the)\b", " ", text).split()

    if version == "2.0":
        answers = [text for text in answers if clean(text)] or [""]
    ours, best = clean(prediction), [0.0, 0.0]
    for right in map(clean, answers):
        shared, rest = 0, list(right)
        for word in ours:
            if word in rest:
                rest.remove(word)
                shared += 1
        precision, recall = (shared / len(side) if side else 0.0 for side in (ours, right))
        f1 = 2 * precision * recall / (precision + recall) if shared else 0.0
        if version == "2.0" and not (ours and right):
            f1 = float(ours == right)
        best = [max(best[0], float(ours == right)), max(best[1], f1)]
    return best


@pytest.mark.parametrize(("prediction", "answers", "exact", "f1"), TRICKY)
def test_tricky_answers(prediction, answers, exact, f1):
    assert_allclose([exact_match(prediction, answers), answer_f1(prediction, answers)], [exact, f1])
    for version in ("1.1", "2.0") if answers else ("2.0",):
        found = exact_match(prediction, answers, version), answer_f1(prediction, answers, version)
        assert_allclose(found, official(prediction, answers, version), err_msg=version)


def test_the_versions_differ_where_nothing_is_left_of_an_answer():
    assert (exact_match("a", ["The"], "1.1"), answer_f1("a", ["The"], "1.1")) == (1.0, 0.0)
    assert (exact_match("a", ["The"]), answer_f1("a", ["The"])) == (1.0, 1.0)
    assert exact_match("the", ["The", "Hull"], "1.1") == 1.0


def questions(n, seed):
    """n predictions with their answers of few words, so that much is shared."""
    rng = random.Random(seed)
    words = ["the", "a", "Hull", "hull", "York,", "in", "1066", "...", "an", "été"]
    text = lambda: " ".join(rng.choices(words, k=rng.randrange(5)))  # noqa: E731
    return [text() for _ in range(n)], [[text() for _ in range(rng.randrange(4))] for _ in range(n)]


def test_random_answers_score_as_by_the_definition():
    predictions, answers = questions(300, 1)
    expected = np.array([official(*pair, "2.0") for pair in zip(predictions, answers, strict=True)])
    known = np.array([len(right) > 0 for right in answers])
    found = answer_scores(predictions, answers)
    for part, rows in ((found.all, known | True), (found.has_answer, known), (found.no_answer, ~known)):
        assert_allclose([part.exact.value, part.f1.value], expected[rows].mean(0), rtol=1e-12)
        assert part.n == rows.sum() and part.f1.low < part.f1.value < part.f1.high
    kept = [i for i in range(300) if known[i]]
    old = answer_scores([predictions[i] for i in kept], [answers[i] for i in kept], "1.1")
    expected = np.mean([official(predictions[i], answers[i], "1.1") for i in kept], axis=0)
    assert_allclose([old.all.exact.value, old.all.f1.value], expected, rtol=1e-12)
    assert old.no_answer is None and old.has_answer == old.all
    assert 0.1 < old.all.f1.value < 0.9 and old.all.f1.value != found.has_answer.f1.value


def test_scores_are_printed_with_their_intervals():
    found = answer_scores(["Hull", "York"], [["Hull"], ["Hull"]])
    assert str(found.all) == "exact match 0.500 [0.000, 1.000], F1 0.500 [0.000, 1.000] (2 questions)"


def test_normalisation():
    assert normalized("  The U.S.-born  artist, an ‘A’ ") == "usborn artist ‘ ’"
    assert normalized("A\u00a0theatre\tthere") == "theatre there"


@pytest.mark.parametrize("measure", ["f1", "exact"])
@pytest.mark.parametrize("seed", range(4))
def test_the_threshold_is_the_best_of_all(seed, measure):
    predictions, answers = questions(60, seed)
    margins = np.random.default_rng(seed).integers(-8, 8, 60) / 2.0  # with equal ones

    def score(threshold):
        given = ["" if m > threshold else p for p, m in zip(predictions, margins, strict=True)]
        return getattr(answer_scores(given, answers, n_resamples=1).all, measure).value

    found = best_threshold(predictions, margins, answers, measure)
    tried = [-math.inf, *np.unique(margins)]
    scores = [score(threshold) for threshold in tried]
    assert_allclose(score(found), max(scores), rtol=1e-12)
    assert found == tried[int(np.argmax(np.round(scores, 9)))], "the first of the best"


def test_thresholds_at_the_ends():
    assert best_threshold(["x", "y"], [1.0, 2.0], [[], []]) == -math.inf, "nothing is better answered"
    assert best_threshold(["x", "y"], [1.0, math.inf], [["x"], []]) == 1.0
    assert best_threshold(["x", "y"], [1.0, 2.0], [["x"], ["y"]]) == 2.0


@pytest.mark.parametrize(
    ("function", "arguments", "error", "message"),
    [
        (answer_scores, ([], []), ValueError, "each question, at least one, needs"),
        (answer_scores, (["a"], [["a"], []]), ValueError, "1 predictions and answers of 2"),
        (answer_scores, ("a", [["a"]]), TypeError, "predictions must be many answers, not one str"),
        (answer_scores, ([None], [["a"]]), TypeError, r"predictions\[0\] is a NoneType"),
        (answer_scores, (["a"], ["a"]), TypeError, "must be a sequence of str, not the str 'a'"),
        (answer_f1, ("a", [3]), TypeError, r"answers\[0\] is a int"),
        (answer_f1, ("a", ["a"], "3"), ValueError, "version must be one of '1.1', '2.0'"),
        (exact_match, ("a", [], "1.1"), ValueError, "1.1 has an answer to every question"),
        (best_threshold, (["a"], [1.0, 2.0], [["a"]]), ValueError, "each of the 1 predictions needs a margin"),
        (best_threshold, (["a"], [math.nan], [["a"]]), ValueError, "a margin that is a number"),
        (best_threshold, (["a"], [1.0], [["a"]], "bleu"), ValueError, "measure must be one of 'f1', 'exact'"),
    ],
)
def test_what_is_refused(function, arguments, error, message):
    with pytest.raises(error, match=message):
        function(*arguments)
