"""WikiText-2: its format, its numbers as published, and both of its sources."""

import gzip

import pyarrow
import pytest
from pyarrow import parquet

from course_lib.data import DataError, wikitext
from course_lib.data.wikitext import Article, articles, load

LINES = [
    " \n",
    " = Valkyria Chronicles III = \n",
    " \n",
    " It sold 1 @,@ 000 copies at 2 @.@ 5 a day in the long @-@ term . \n",
    " Mail to a @ b . \n",
    " \n",
    " = = Reception = = \n",
    " \n",
    " = = = In the long @-@ term = = = \n",
    " \n",
    " W = \n",
    " = Wins ; L = \n",
    " = = Losses = = \n",
    " Losses . \n",
    " \n",
    " = An empty article = \n",
    " \n",
    " = C = \n",
    " \n",
    " A single sentence . ",
]
EXPECTED = [
    Article(
        "Valkyria Chronicles III",
        [
            "It sold 1,000 copies at 2.5 a day in the long-term .",
            "Mail to a @ b .",
            "W =",
            "= Wins ; L =",
            "= = Losses = =",
            "Losses .",
        ],
        ["", "", "In the long-term", "In the long-term", "In the long-term", "In the long-term"],
    ),
    Article("An empty article", [], []),
    Article("C", ["A single sentence ."], [""]),
]


def test_the_format():
    assert list(articles(LINES)) == EXPECTED
    assert list(articles([])) == list(articles([" \n"])) == []


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """What was fetched; the sources that were asked for are in `folder.asked`."""

    class Folder(type(tmp_path)):
        asked = []

    monkeypatch.setattr(wikitext, "fetch", lambda name, *rest: Folder.asked.append((name, *rest)) or tmp_path)
    return Folder(tmp_path)


def test_the_default_source(folder):
    (folder / "valid.raw.gz").write_bytes(gzip.compress("".join(LINES).encode()))
    (folder / "train.raw.gz").write_bytes(gzip.compress("".join(LINES).replace("C", "Ünï\u2028c").encode()))
    assert load("validation", "pypi", False) == EXPECTED
    assert load(source="pypi")[2].title == "Ünï\u2028c", "only a line feed ends a line"
    assert folder.asked == [("wikitext-2", "pypi", False), ("wikitext-2", "pypi", True)]


@pytest.mark.parametrize("part", wikitext.PARTS)
def test_the_canonical_source(folder, part, monkeypatch):
    rows = ["" if line.isspace() else line for line in LINES]  # as the hub has them
    parquet.write_table(pyarrow.table({"text": rows}), folder / f"{part}.parquet")
    assert load(part, "canonical") == EXPECTED
    monkeypatch.setenv("COURSE_DATA_SOURCE", "canonical")
    assert load(part) == EXPECTED


def test_files_that_are_something_else(folder):
    (folder / "test.raw.gz").write_bytes(gzip.compress(b" A text of another kind . \n"))
    with pytest.raises(DataError, match="test.raw.gz is not WikiText: it begins with ' A text .*' and not with"):
        load("test", "pypi")
    parquet.write_table(pyarrow.table({"words": [1]}), folder / "test.parquet")
    with pytest.raises(DataError, match="should have the column text; it has words"):
        load("test", "canonical")


def test_no_such_part():
    with pytest.raises(ValueError, match="part must be one of 'train', 'validation', 'test'; got 'valid'"):
        load("valid")


def test_real_files_are_those_of_the_paper():
    """Table 1, whose numbers of tokens count each end of a line."""
    for name, n in {"train": 2_088_628, "valid": 217_646, "test": 245_569}.items():
        with gzip.open(wikitext.fetch("wikitext-2", "pypi") / f"{name}.raw.gz", "rt", encoding="utf-8") as file:
            assert sum(len(line.split()) + 1 for line in file) == n


def test_real_articles_as_many_as_published():
    parts = {part: load(part, "pypi") for part in wikitext.PARTS}
    assert {part: len(found) for part, found in parts.items()} == {"train": 600, "validation": 60, "test": 60}
    words = {part: sum(len(p.split()) for a in found for p in a.paragraphs) for part, found in parts.items()}
    assert words == {"train": 1_962_141, "validation": 204_351, "test": 229_902}
    titles = [article.title for found in parts.values() for article in found]
    assert len(set(titles)) == 720
    article = parts["validation"][0]
    assert (article.title, article.headings[:2]) == ("Homarus gammarus", ["", "Description"])
    assert "0.7 – 2.2 kg" in article.paragraphs[1] and len(article.paragraphs) == len(article.headings)
    assert not any("@-@" in p or p.startswith("= =") for found in parts.values() for a in found for p in a.paragraphs)
