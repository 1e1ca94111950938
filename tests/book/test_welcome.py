"""The welcome page: what it claims of this book is compared, and what it says one can play with is there."""

import re
from pathlib import Path

import pytest
from docutils.nodes import make_id

from tests.support.lecture_files import read

ROOT = Path(__file__).parents[2]
WELCOME = (ROOT / "book" / "index.md").read_text(encoding="utf-8")
ELSEWHERE = (ROOT / "book" / "elsewhere.md").read_text(encoding="utf-8")
CLAIMED = re.findall(r"^- \*\*(.+?)\.\*\*", WELCOME.partition("## What this book adds")[2], re.MULTILINE)
PLAYED = re.findall(r"\]\(\.\./(notebooks/[\w-]+\.ipynb)#([\w-]+)\)", WELCOME)


def rows():
    """The table of the comparison: what stands in each row, by its first cell."""
    lines = [line.strip("| ").split(" | ") for line in ELSEWHERE.splitlines() if line.startswith("| ")]
    return {name: marks for name, *marks in lines if not name.startswith("---")}


def test_each_claim_has_a_row_and_a_paragraph_with_evidence():
    header, *claimed = rows()
    assert len(CLAIMED) > 5 and claimed == CLAIMED and header == "of this book"
    for name in CLAIMED:
        said = re.search(rf"^\*\*{re.escape(name)}\.\*\*(.*?)(?:\n\n|\Z)", ELSEWHERE, re.MULTILINE | re.DOTALL)
        assert said and "](https://" in said[1], f"nothing to look up about {name!r}"


def test_each_course_has_its_address_and_a_mark_for_each_claim():
    short, *table = rows().values()
    courses = ELSEWHERE.partition("## What to read them for")[2].partition("\n## ")[0]
    entries = re.split(r"^- ", courses, flags=re.MULTILINE)[1:]
    assert [re.search(r"\((\w+)\)\. ", " ".join(entry.split()))[1] for entry in entries] == short
    assert all(entry.startswith("**[") and "](https://" in entry for entry in entries)
    assert {len(marks) for marks in table} == {len(short)}
    assert {mark for marks in table for mark in marks} == {"yes", "part", "–"}


def test_it_says_when_and_how_it_was_looked():
    how = " ".join(ELSEWHERE.partition("**How we looked.**")[2].partition("\n\n")[0].split())
    assert re.search(r"In [A-Z][a-z]+ 20\d\d", how) and "*Not found* means" in how


def test_the_picture_says_the_same_on_a_telephone():
    wide, narrow = [
        (ROOT / "book" / "_static" / f"{name}.svg").read_text(encoding="utf-8")
        for name in ("welcome", "welcome-narrow")
    ]
    for said in (r">([^<>]+)</text>", r'aria-label="([^"]+)"', r'stroke-width="([\d.]+)"'):
        assert re.findall(said, wide) == re.findall(said, narrow) != []


@pytest.mark.parametrize(("path", "section"), PLAYED, ids=lambda value: value)
def test_where_it_sends_those_who_play_there_is_a_live_figure(path, section):
    text = "\n".join(cell.source for cell in read(ROOT / path).cells if cell.cell_type == "markdown")
    parts = re.split(r"^#{2,3} ", text, flags=re.MULTILINE)
    named = {make_id(re.sub(r"\$.*?\$", "", part.partition("\n")[0])): part for part in parts}  # as MyST names them
    assert "](live/" in named[section.strip("-")]


def test_it_sends_them_somewhere():
    assert len(PLAYED) > 3
