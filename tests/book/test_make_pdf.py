"""The printed book: its pages in order, an outline, links that lead inside, and one framework where it is asked."""

import sys
from pathlib import Path

import pytest
from pypdf import PdfReader

sys.path.insert(0, str(Path(__file__).parents[2] / "book"))
import make_pdf

ROOT = make_pdf.ROOT

PAGE = """<!doctype html><html lang="en"><head><title>{title}</title>
<style>@media print {{ .sd-tab-content {{ display: block !important }} }}</style></head>
<body><article><h1>{title}</h1>{body}</article></body></html>"""
TAB = """<input type="radio" name="s" id="{0}"><label for="{0}" data-sync-id="{0}">{0}</label>
<div class="sd-tab-content">{1}</div>"""
SAID = {"numpy": "nnn", "torch": "ttt", "tensorflow": "kkk"}
TABS = f'<div class="sd-tab-set">{"".join(TAB.format(*item) for item in SAID.items())}</div>'
FORMULA = """<div class="math"><mjx-container style="display: block; overflow: auto; white-space: nowrap">{}
</mjx-container></div>"""
WIDE = FORMULA.format("narrow") + FORMULA.format("<i>x y z </i>" * 70 + "ends")
FOLD = '<details class="admonition hide above-input"><summary>{}</summary>code</details>'
FOLDED = f'<div class="cell">{FOLD.format("Show code")}{FOLD.format("Show solution")}</div>'
PAGES = [("book/index", ""), ("notebooks/a", "One"), ("notebooks/b", "One")]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    links = (
        '<a href="../notebooks/b.html#x">b</a> <a href="../gone.html">gone</a> <a href="https://example.org/">web</a>'
    )
    bodies = {"book/index": links, "notebooks/a": TABS, "notebooks/b": "<p style='break-before: page'>last</p>"}
    for name, body in bodies.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / f"{name}.html").write_text(PAGE.format(title=name[-1].upper(), body=body), encoding="utf-8")
    return folder


def printed(site, tmp_path, framework=None):
    sheets = make_pdf.write(site, tmp_path / "book.pdf", PAGES, framework)
    document = PdfReader(tmp_path / "book.pdf")
    assert len(document.pages) == sheets
    return document


def test_the_pages_stand_in_order_with_an_outline_and_links_inside(site, tmp_path):
    document = printed(site, tmp_path)
    texts = [page.extract_text() for page in document.pages]
    assert len(texts) == 4 and "last" in texts[3] and all(name in texts[1] for name in ("nnn", "ttt", "kkk"))
    first, part, chapters = document.outline
    assert (first.title, part.title, [chapter.title for chapter in chapters]) == ("X", "One", ["A", "B"])
    assert [document.get_destination_page_number(item) for item in (first, part, *chapters)] == [0, 1, 1, 2]
    links = [annotation.get_object() for annotation in document.pages[0]["/Annots"]]
    addresses = [link["/A"]["/URI"] for link in links if "/A" in link and "/URI" in link["/A"]]
    assert addresses == ["https://example.org/"], "what leads nowhere on paper is no link"
    (inside,) = [link for link in links if "/Dest" in link]
    assert inside["/Dest"][0] in (2, document.pages[2].indirect_reference)


@pytest.mark.parametrize(("framework", "kept", "gone"), [("torch", "ttt", "kkk"), ("tensorflow", "kkk", "ttt")])
def test_one_framework_is_printed_with_numpy_and_without_the_other(site, tmp_path, framework, kept, gone):
    text = printed(site, tmp_path, framework).pages[1].extract_text()
    assert kept in text and "nnn" in text and gone not in text


def test_a_wide_formula_is_set_smaller_and_folded_code_leaves_no_bar(site, tmp_path):
    (site / "notebooks" / "wide.html").write_text(PAGE.format(title="W", body=WIDE + FOLDED), encoding="utf-8")
    make_pdf.write(site, tmp_path / "book.pdf", [("notebooks/wide", "")], "torch")
    document = PdfReader(tmp_path / "book.pdf")
    said = document.pages[0].extract_text()
    assert "narrow" in said and "ends" in said, "a part of the formula is cut off"
    assert "Show code" not in said and "Show solution" in said
    assert document.metadata.title == "Attention and Transformers (PyTorch)"


def test_a_page_that_is_not_built_is_named(site, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"lacks book/new\.html: build the book with `make book`"):
        make_pdf.write(site, tmp_path / "book.pdf", [("book/new", "")])


def test_the_printed_book_is_that_of_the_contents_without_the_reference():
    names = [name for name, _ in make_pdf.contents()]
    lectures = [path.stem for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]-*.ipynb"))]
    assert names[0] == "book/index"
    assert [name.removeprefix("notebooks/") for name in names if name[10:12].isdigit()] == lectures
    assert not [name for name in names if "api" in name]
