"""Film reviews to pretrain on, without those that a fine-tuned model is later tested on, nor anything near them.

A pretrained model that has read the test texts, even without their labels, is measured too well. So whoever pretrains
names the held-out texts of every later split, and gets the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from course_lib.checks import check_positive
from course_lib.data import reviews
from course_lib.data.families import same_text
from course_lib.strings import as_texts

RUN = 5  # words of a run: long enough to be rare by chance, short enough to find half a sentence again
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, so that multiplying loses nothing


class PretrainingTexts(NamedTuple):
    """M texts of N, an object array (M,) of str, and how many of the others were left out, and why."""

    texts: np.ndarray
    n_held_out: int  # the same as a held-out text
    n_near: int  # near to one
    n_repeated: int  # the same as one before
    n_empty: int  # without a word

    def __str__(self) -> str:
        return (
            f"{len(self.texts):,} texts; left out {self.n_held_out:,} held-out ones, {self.n_near:,} near to one, "
            f"{self.n_repeated:,} that were there before and {self.n_empty:,} empty ones"
        )


def load(
    held_out: Iterable[str],
    corpora: Sequence[str] = ("imdb", "rotten-tomatoes"),
    source: str | None = None,
    progress: bool = True,
) -> PretrainingTexts:
    """The texts of the reviews, corpus behind corpus, without the held-out ones, what is near to them, and repetitions.

    Parameters
    ----------
    held_out : all texts on which a model that is made from the pretrained one will be tested, or chosen: those of
        `split(load(corpus), ...).held_out` of `course_lib.data.reviews` for each corpus and seed. A held-out set does
        not depend on the size of its training set
    corpora, source, progress : as for `course_lib.data.reviews.load`

    Raises
    ------
    TypeError : one str instead of many, or something that is not a str.
    ValueError : unknown corpus or source.
    DataError : the data could not be fetched, or a file is not what it should be.
    """
    held_out = _many("held_out", held_out)  # before anything is read
    return without([text for name in corpora for text in reviews.load(name, source, progress).texts], held_out)


def without(texts: Iterable[str], held_out: Iterable[str], share: float = 0.5) -> PretrainingTexts:
    """Texts without those that are held out, what is near to these, and repetitions.

    Texts that differ only in case, punctuation or white space are the same. Two are near if of all runs of five words
    in the shorter one, a `share` or more stands in the other too: a quotation, or another version. Texts of fewer than
    five words are near to none.

    Parameters
    ----------
    texts : N texts
    held_out : texts that must not be read
    share : above 0; over 1 nothing is near

    Raises
    ------
    TypeError : one str instead of many, or something that is not a str.
    ValueError : a share that is none.
    """
    check_positive("share", share)
    texts, keys = _many("texts", texts), {same_text(text) for text in _many("held_out", held_out)}
    near, known = _Near(sorted(keys), share), set()
    kept, counts = [], dict.fromkeys(("n_held_out", "n_near", "n_repeated", "n_empty"), 0)
    for text in texts:
        key = same_text(text)
        if not key:
            counts["n_empty"] += 1
        elif key in keys:
            counts["n_held_out"] += 1
        elif key in known:
            counts["n_repeated"] += 1
        elif near(key):
            counts["n_near"] += 1
        else:
            known.add(key)
            kept.append(text)
    return PretrainingTexts(np.array(kept, dtype=object), **counts)


def _many(name: str, texts: Iterable[str]) -> list[str]:
    if isinstance(texts, str):
        raise TypeError(f"{name} must be many texts, not one str")
    return as_texts(texts, name)


class _Near:
    """Whether a text is near to one of some others: their runs of words as numbers, and in which text each stands."""

    def __init__(self, keys: Sequence[str], share: float):
        self.share, self._numbers = share, {}
        runs = [self._runs(key) for key in keys]
        self._sizes = np.array([len(row) for row in runs], dtype=np.int64)
        found = np.concatenate([*runs, np.empty(0, dtype=np.uint64)])
        order = np.argsort(found, kind="stable")
        self._found, self._owner = found[order], np.repeat(np.arange(len(runs)), self._sizes)[order]

    def __call__(self, key: str) -> bool:
        runs = self._runs(key)
        first, last = (np.searchsorted(self._found, runs, side) for side in ("left", "right"))
        hits = [owner for a, b in self._spans(first, last) for owner in self._owner[a:b]]
        if not hits:
            return False
        owner, count = np.unique(hits, return_counts=True)
        return bool((count >= self.share * np.minimum(self._sizes[owner], len(runs))).any())

    @staticmethod
    def _spans(first: np.ndarray, last: np.ndarray) -> Iterator[tuple[int, int]]:
        rows = np.flatnonzero(last > first)
        return zip(first[rows].tolist(), last[rows].tolist(), strict=True)

    def _runs(self, key: str) -> np.ndarray:
        """The different runs of words of a text as numbers, uint64; a number for each, as good as surely."""
        words = [self._numbers.setdefault(word, len(self._numbers) + 1) for word in key.split()]
        words = np.array(words, dtype=np.uint64)
        runs = np.zeros(max(0, len(words) - RUN + 1), dtype=np.uint64)
        for place in range(RUN):
            runs = (runs ^ words[place : place + len(runs)]) * _FACTOR  # modulo 2 ** 64
            runs ^= runs >> np.uint64(32)
        return np.unique(runs)
