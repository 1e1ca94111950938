"""Paraphrases: which sentences are ones, and a split from which nothing leaks."""

import numpy as np
import pytest

from course_lib.data import sentence_pairs
from course_lib.data.families import families, same_text
from course_lib.data.paraphrases import Group, groups, split
from course_lib.data.sentence_pairs import Pairs


def pairs_of(*rows):
    sources, targets = zip(*rows, strict=True)
    return Pairs(np.array(sources, dtype=object), np.array(targets, dtype=object))


def sentences_of(*targets, **options):
    return [group.sentences for group in groups(pairs_of(*(("Uno.", target) for target in targets)), **options)]


@pytest.fixture(scope="module")
def corpus():
    return sentence_pairs.load("tatoeba-es-en")


@pytest.fixture(scope="module")
def real(corpus):
    return split(corpus)


def test_sentences_that_share_a_translation_are_a_group():
    found = groups(pairs_of(
        ("Llámalo.", "Call him."), ("No.", "No."), ("¡llámalo!", "Give him a ring."), ("Sí.", "Yes."),
        ("Telefonéalo.", "Give him a ring."), ("Telefonéalo.", "Phone him up now."), ("Sí.", "Yes!"),
    ))  # fmt: skip
    assert found == [
        Group(["Call him.", "Give him a ring."], "Llámalo.", found[0].family),
        Group(["Give him a ring.", "Phone him up now."], "Telefonéalo.", found[0].family),
    ]


@pytest.mark.parametrize(
    ("one", "other", "kept"),
    [
        ("I swear I'm not drunk.", "I swear that I am not drunk.", False),  # 6 of 7 words
        ("Now I remember.", "I remember now!", False),
        ("He isn't.", "he is NOT", False),
        ("I can't.", "I cannot.", False),
        ("I won’t go.", "I will not go.", False),
        ("Tom's crying.", "Tom is crying.", False),
        ("One two three four.", "One two three five.", False),  # 3 of 5 words
        ("One two three four.", "One two three five six.", True),  # 3 of 6
        ("It is tall.", "She was large.", False),  # other persons
        ("Call him.", "Phone her.", False),
        ("Call him.", "He needs ringing.", True),
        ("It is up to you.", "Your choice.", True),
        ("They left.", "He went away.", False),
    ],
)
def test_near_identical_sentences_and_other_persons_are_left_out(one, other, kept):
    assert sentences_of(one, other) == ([[one, other]] if kept else [])


def test_a_sentence_is_compared_with_all_that_were_kept():
    assert sentences_of("a b c d", "e f g h", "a b c i", "e f g h j", "k l") == [["a b c d", "e f g h", "k l"]]


def test_the_overlap_is_a_choice():
    assert sentences_of("a b c", "a b d", overlap=0.5) == [] and sentences_of("a b c", "a b d", overlap=0.51) != []
    assert sentences_of("a b", "b a", overlap=2) == [], "the same words in any case"


def test_real_groups(corpus):
    found = groups(corpus)
    assert len(found) > 2500
    member = {}
    for source, target in zip(corpus.sources, corpus.targets, strict=True):
        member.setdefault(same_text(source), set()).add(target)
    for group in found:
        assert len(group.sentences) > 1 and set(group.sentences) <= member[same_text(group.translation)]


def test_nothing_leaks(corpus, real):
    """No sentence of a part, no translation of it, and no other translation of this one stands in another part."""
    family = families(corpus)
    of_sentence = dict(zip(map(same_text, corpus.targets), family, strict=True))
    parts = [{of_sentence[same_text(text)] for side in part[:2] for text in side} for part in real]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])
    short = [{text.replace("'m", " am").replace("'s", " is") for side in part[:2] for text in side} for part in real]
    assert not (short[0] & short[1] or short[0] & short[2] or short[1] & short[2])
    assert not (set(real.train.families) & set(real.test.families))


def test_held_out_pairs_are_of_different_families(real):
    for part in real[1:]:
        assert len(part.first) == len(part.second) == 500 == len(set(part.families))
        assert part.first.dtype == object and part.families.dtype == np.int64
        assert len({same_text(text) for side in part[:2] for text in side}) == 1000
    assert len(real.train.first) > 1500


def test_a_family_linked_by_a_contraction_stays_together():
    rows = []
    for n in range(40):
        rows += [(f"a{n}", f"it's thing {n}"), (f"a{n}", f"number {n}")]
        rows += [(f"b{n}", f"it is thing {n}"), (f"b{n}", f"no. x{n}")]
    parts = split(pairs_of(*rows), validation=10, test=10)
    numbers = [{text.split()[-1].lstrip("x") for side in part[:2] for text in side} for part in parts]
    assert not (numbers[0] & numbers[1] or numbers[0] & numbers[2] or numbers[1] & numbers[2])
    assert [len(part.first) for part in parts] == [40, 10, 10]


def test_large_families_are_trained_on():
    rows = [("uno", f"word{n} sign{n}") for n in range(11)] + [("dos", "a b"), ("dos", "c d")]
    parts = split(pairs_of(*rows), validation=0, test=1)
    assert [len(part.first) for part in parts] == [1, 0, 1] and parts.test.first.tolist() == ["a b"]
    with pytest.raises(ValueError, match=r"1 \+ 1 held-out pairs are wanted, but there are families for 1 only"):
        split(pairs_of(*rows), validation=1, test=1)


def test_the_seed_decides(corpus, real):
    again, other = split(corpus), split(corpus, seed=1)
    assert all((a == b).all() for one, two in zip(real, again, strict=True) for a, b in zip(one, two, strict=True))
    assert len(set(other.test.first) & set(real.test.first)) < 250
    assert real.train.families.tolist() != sorted(real.train.families.tolist())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test": -1}, "test must be a whole number of 0 or more"),
        ({"validation": 0.5}, "validation must be a whole number of 0 or more"),
        ({"seed": -1}, "seed must be a whole number of 0 or more"),
        ({"overlap": 0}, "overlap must be positive, got 0"),
        ({"test": 3}, r"500 \+ 3 held-out pairs are wanted, but there are families for 0 only"),
    ],
)
def test_bad_splits(options, message):
    with pytest.raises(ValueError, match=message):
        split(pairs_of(("uno", "one")), **options)


def test_texts_that_are_none():
    with pytest.raises(TypeError, match=r"targets\[1\] is a NoneType, not a str"):
        groups(Pairs(["uno", "dos"], ["one", None]))
