"""Paraphrases: English sentences of a corpus of translations that share a Spanish one.

`groups` finds them, `split` deals them into training, validation and test so that nothing leaks. Two sentences that
share a translation need not mean the same: Spanish leaves out pronouns, so "Es alta" is "She is tall" and "It is tall".
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from course_lib.checks import check_count
from course_lib.data.families import LARGEST_FAMILY, families, same_text
from course_lib.data.sentence_pairs import Pairs
from course_lib.strings import as_texts

_SHORT = {"can't": "can not", "cannot": "can not", "won't": "will not", "n't": " not", "'re": " are", "'m": " am"}
_SHORT |= {"'ll": " will", "'ve": " have", "'s": " is", "'d": " would"}  # "Tom's car" becomes no worse by it
_PERSONS = {"he": "he", "him": "he", "his": "he", "she": "she", "her": "she", "hers": "she", "they": "they"}
_PERSONS |= {"them": "they", "their": "they", "theirs": "they", "you": "you", "your": "you", "yours": "you"}


class Group(NamedTuple):
    """Two sentences or more that share a translation, and the family of it: groups of a family share sentences."""

    sentences: list[str]
    translation: str
    family: int


class Paraphrases(NamedTuple):
    """N pairs that mean the same: `first` and `second`, object arrays (N,) of str, and `families`, int64 (N,)."""

    first: np.ndarray
    second: np.ndarray
    families: np.ndarray


class Split(NamedTuple):
    """Three sets of paraphrases; no sentence of one, and no translation of it, stands in another."""

    train: Paraphrases
    validation: Paraphrases
    test: Paraphrases


def groups(pairs: Pairs, overlap: float = 0.6) -> list[Group]:
    """The groups of targets that share a source, without near-identical ones, in the order of the corpus.

    Of a group, a sentence is kept if it is neither near-identical to one kept before nor about other persons:

    - Near-identical: of all words of the two, a share of `overlap` or more stands in both, where "isn't" is "is not"
      and so on, and neither case nor order nor punctuation count. "I swear I'm not drunk." and "I swear that I am not
      drunk." are; whoever tells paraphrases by common words alone would find them too easily.
    - Other persons: one has a form of "he", "she", "they" or "you" and the other has not.

    Parameters
    ----------
    pairs : as `course_lib.data.sentence_pairs.load("tatoeba-es-en")` returns them; sources are the translations
    overlap : above 0; over 1 drops sentences of the same words only if they are the same

    Raises
    ------
    TypeError, ValueError : as by `course_lib.data.families.families`, or an overlap that is none.
    """
    return _groups(pairs, _families(pairs), overlap)


def _groups(pairs: Pairs, family: np.ndarray, overlap: float) -> list[Group]:
    if not overlap > 0:
        raise ValueError(f"overlap must be positive, got {overlap!r}")
    found: dict[str, list[int]] = {}
    for row, source in enumerate(pairs.sources):
        found.setdefault(same_text(source), []).append(row)
    result = []
    for rows in found.values():
        kept: list[str] = []
        if len(rows) > 1:
            for row in rows:
                if all(_differ(pairs.targets[row], other, overlap) for other in kept):
                    kept.append(str(pairs.targets[row]))
        if len(kept) > 1:
            result.append(Group(kept, str(pairs.sources[rows[0]]), int(family[rows[0]])))
    return result


def split(pairs: Pairs, validation: int = 500, test: int = 500, seed: int = 0, overlap: float = 0.6) -> Split:
    """Deal the paraphrases of a corpus into training, validation and test.

    A family of pairs, linked by common sentences of either language, stands on one side as a whole; "isn't" counts as
    "is not". Validation and test have one pair of a family, so that for each first sentence there is one right second
    among all of them. Training has the first two sentences of every group; two pairs of one family, which may mean the
    same, are known by `families`. Families of more than 10 pairs are always trained on. The draw is deterministic,
    every set is shuffled.

    Parameters
    ----------
    pairs : as `course_lib.data.sentence_pairs.load("tatoeba-es-en")` returns them
    validation, test : numbers of pairs
    seed : of the draw
    overlap : as for `groups`

    Raises
    ------
    TypeError, ValueError : as by `groups`, a number that is none, or more held-out pairs than there are families for.
    """
    for name, value in (("validation", validation), ("test", test), ("seed", seed)):
        check_count(name, value, 0)
    family = _families(pairs)
    found, sizes = _groups(pairs, family, overlap), np.bincount(family)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(found))
    of_family: dict[int, int] = {}  # the group that stands for each family that may be held out
    for row in order:
        if sizes[found[row].family] <= LARGEST_FAMILY:
            of_family.setdefault(found[row].family, int(row))
    if validation + test > len(of_family):
        raise ValueError(
            f"{validation} + {test} held-out pairs are wanted, but there are families for {len(of_family)} only; ask "
            "for fewer"
        )
    chosen = list(of_family.values())[: validation + test]
    held_out = {found[row].family for row in chosen}
    train = [row for row in order if found[row].family not in held_out]
    parts = (train, chosen[test:], chosen[:test])
    return Split(*(_pairs([found[row] for row in rows]) for rows in parts))


def _differ(one: str, other: str, overlap: float) -> bool:
    """Whether two sentences are neither near-identical nor about other persons."""
    a, b = _words(one), _words(other)
    return a != b and len(a & b) < overlap * len(a | b) and _persons(a) == _persons(b)


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", _written_out(text)))


def _written_out(text: str) -> str:
    text = text.casefold().replace("’", "'")
    for short, long in _SHORT.items():
        text = text.replace(short, long)
    return text


def _families(pairs: Pairs) -> np.ndarray:
    return families(pairs._replace(targets=[_written_out(text) for text in as_texts(pairs.targets, "targets")]))


def _persons(words: frozenset[str]) -> set[str]:
    return {_PERSONS[word] for word in words if word in _PERSONS}


def _pairs(found: list[Group]) -> Paraphrases:
    first, second = (np.array([group.sentences[side] for group in found], dtype=object) for side in (0, 1))
    return Paraphrases(first, second, np.array([group.family for group in found], dtype=np.int64))
