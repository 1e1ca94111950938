"""What a model that answers has to beat: each does what it says, on texts where that can be seen."""

import numpy as np
import pytest

from course_lib.data.squad import questions_of
from course_lib.evaluation.answer_baselines import MajorityAnswer, NoAnswer, OverlapAnswer, RegressionAnswer, Text


def asked(*rows):
    """Questions of (question, context, answer or None)."""
    return questions_of(
        (str(i), "t", question, context, (answer,) if answer else (), (context.index(answer),) if answer else ())
        for i, (question, context, answer) in enumerate(rows)
    )


PLACES = "Hull York Leeds Bath Truro Derby Wells Ely".split()
NAMES = "Ann Bob Cid Dan Eve Flo Gus Hal".split()


def easy(shift, answerable=True):
    """The sentence that shares the question's words holds one place, the answer; other sentences hold other places."""
    rows = []
    for i, name in enumerate(NAMES):
        here, there = PLACES[(i + shift) % 8], PLACES[(i + shift + 3) % 8]
        other = NAMES[(i + 1) % 8]
        context = f"On Monday {other} slept in {there}. Then {name} sang a song in {here}; nobody heard it."
        rows.append((f"Where did {name} sing his song?", context, here))
        if answerable is False:
            rows.append(("Where did Zoe sleep?", context, None))
    return asked(*rows)


TRAIN, VALIDATION, TEST = easy(0), easy(1), easy(2)


def test_no_answer():
    assert NoAnswer().fit(TRAIN, VALIDATION).predict(TEST) == [""] * 8


def test_the_most_frequent_answer_of_those_with_one():
    rows = [("Who?", "Ann and Bob", answer) for answer in (None, None, None, None, None, "Ann", "Bob", "Bob")]
    train = asked(*rows)
    assert MajorityAnswer().fit(train, VALIDATION).predict(TEST.take(slice(2))) == ["Bob", "Bob"]
    assert MajorityAnswer().fit(train.take(slice(5)), VALIDATION).predict(TEST.take([0])) == [""]


@pytest.mark.parametrize("method", [OverlapAnswer, RegressionAnswer])
def test_shared_words_and_shapes_are_enough_where_they_are(method):
    found = method().fit(TRAIN, VALIDATION).predict(TEST)
    assert found == [answers[0] for answers in TEST.answers]


@pytest.mark.parametrize("method", [OverlapAnswer, RegressionAnswer])
def test_validation_says_when_to_answer(method):
    train, validation, test = (easy(shift, answerable=False) for shift in range(3))
    fitted = method().fit(train, validation)
    assert fitted.predict(test) == [answers[0] if answers else "" for answers in test.answers]
    nothing = validation._replace(answers=np.array([()] * 16 + [None], dtype=object)[:16])
    assert method().fit(train, nothing).predict(test) == [""] * 16
    fitted.threshold = np.inf
    assert all(fitted.predict(test))


def test_contexts_without_a_word():
    fitted = OverlapAnswer().fit(TRAIN, VALIDATION)
    np.testing.assert_allclose([fitted.rarity[word] for word in ("then", "ann")], np.log([9 / 8, 9 / 2]))
    assert fitted.predict(asked(("Where?", "", None), ("", "...", None))) == ["", ""]


def test_candidates_are_short_pieces_of_one_sentence():
    text = Text("The cat sat. A dog ran!", "who?", {"x": 1.0})
    pieces = [text_of(text, c) for c in text.candidates]
    assert pieces == ["The cat", "The cat sat", "cat", "cat sat", "sat", "A dog", "A dog ran", "dog", "dog ran", "ran"]
    assert {c.sentence for c in text.candidates} == {0, 1}
    longer = Text("one two three four five", "", {"x": 1.0})
    assert max(c.length for c in longer.candidates) == 3 and len(longer.candidates) == 12


def text_of(text, candidate):
    words = [word.group() for word in text.words]
    return " ".join(words[candidate.word : candidate.word + candidate.length])


def test_shared_words_count_once_and_rare_ones_more():
    text = Text("a fox, a fox. The owl slept.", "a fox or an owl", {"a": 0.1, "fox": 2.0, "owl": 3.0})
    assert text.overlap == [2.1, 3.0] and text.kind == "a fox"
