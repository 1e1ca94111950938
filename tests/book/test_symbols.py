"""The table of symbols says what the lectures say, and the search finds each symbol by what a reader types."""

import json
import sys
from pathlib import Path

import pytest

from tests.support.lecture_files import LECTURES, read
from tests.support.tiny_book import build, text

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import symbols  # noqa: E402

ROWS = symbols.symbols()
NOTATION = (ROOT / "book" / "notation.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["find"][0])
def test_a_symbol_is_one_that_its_lecture_uses(row):
    (path,) = [path for path in LECTURES if path.stem.startswith(row["first"])]
    markdown = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    assert row["symbol"].strip("$") in markdown


def test_the_table_follows_the_lectures_and_every_lecture_with_letters_of_its_own_is_in_it():
    assert len(ROWS) > 45
    assert {row["first"] for row in ROWS} >= {"11", "12", "21", "22", "23", "24", "25", "26", "27", "33", "43"}


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("{symbol: x, means: y, shape: z, first: '11', find: []}", "a row says"),
        ("{symbol: x, means: y, first: '11', find: [x]}", "a row says"),
        ("{symbol: x, means: y, shape: z, first: '11', find: [A]}", "two rows are found by a"),
    ],
)
def test_a_row_that_is_not_found_or_found_twice_is_refused(tmp_path, row, complaint):
    right = "- {symbol: x, means: y, shape: z, first: '11', find: [a]}\n"
    (tmp_path / "symbols.yml").write_text(f"{right}- {row}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=complaint):
        symbols.symbols(tmp_path / "symbols.yml")


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The notation page, without its citations, and a lecture for each that it names."""
    folder = tmp_path_factory.mktemp("symbols")
    files = {f"notebooks/{path.stem}.md": "# A lecture\n" for path in LECTURES}
    toc = "```{toctree}\n" + "\n".join(name.removesuffix(".md") for name in files) + "\nbook/notation\n```"
    built = build(
        folder,
        [text(toc)],
        extensions=("symbols",),
        files={**files, "book/notation.md": NOTATION.replace("{cite:t}", "")},
        myst_enable_extensions=["dollarmath"],
    )
    assert built.warnings == ""
    return built


def test_each_row_leads_to_its_lecture(book):
    rows = book.page("book/notation").select(".symbols tbody > tr")
    assert len(rows) == len(ROWS)
    for row, symbol in zip(rows, ROWS, strict=True):
        assert row.select_one("a")["href"].startswith(f"../notebooks/{symbol['first']}-")


@pytest.fixture(scope="module")
def entries(book):
    """What the search compares with all that is typed: {entry in small letters: [[page, anchor, is it main]]}."""
    index = (book.out / "searchindex.js").read_text(encoding="utf-8")
    return json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))["indexentries"]


@pytest.mark.parametrize("typed", ["d_model", "d_k", "QK^T", "1/√d_k", "√d", "ε", "[MASK]", "W^Q", "σ", "sqrt(d_k)"])
def test_the_search_finds_a_symbol_by_what_is_typed(book, entries, typed):
    ((_, anchor, is_main),) = entries[typed.lower()]
    assert is_main
    row = book.page("book/notation").find(id=anchor)
    (symbol,) = [row for row in ROWS if typed in row["find"]]
    assert symbol["symbol"].strip("$`") in row.text


@pytest.mark.parametrize("typed", ["nn.MultiheadAttention", "F.scaled_dot_product_attention", "key_padding_mask"])
def test_the_search_finds_what_other_libraries_call_it(book, entries, typed):
    ((_, anchor, is_main),) = entries[typed.lower()]
    page = book.page("book/notation")
    assert is_main and page.select_one("#masks").find(id=anchor) is not None
