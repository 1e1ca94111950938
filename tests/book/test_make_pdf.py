"""The printed book: its contents, its pages in order, links that lead inside, and one framework where it is asked."""

import re
import sys
from pathlib import Path

import pytest
from pypdf import PdfReader

sys.path.insert(0, str(Path(__file__).parents[2] / "book"))
import make_pdf

ROOT = make_pdf.ROOT

PAGE = """<!doctype html><html lang="en"><head><title>{title}</title>
<style>@media print {{ .sd-tab-content {{ display: block !important }} .headerlink {{ display: none }} }}</style></head>
<body><article><h1>{title}</h1>{body}</article></body></html>"""
TAB = """<input type="radio" name="s" id="{0}"><label for="{0}" data-sync-id="{0}">{0}</label>
<div class="sd-tab-content">{1}</div>"""
SAID = {"numpy": "nnn", "torch": "ttt", "tensorflow": "kkk"}
TABS = f'<div class="sd-tab-set">{"".join(TAB.format(*item) for item in SAID.items())}</div>'
FORMULA = """<div class="math"><mjx-container style="display: block; overflow: auto; white-space: nowrap">{}
</mjx-container></div>"""
WIDE = FORMULA.format("narrow") + FORMULA.format("<i>x y z </i>" * 70 + "ends")
TABLE = """<div class="pst-scrollable-table-container" style="overflow: auto"><table style="white-space: nowrap"><tr>
<td>beginning</td><td>{}</td><td>rightmost</td></tr></table></div>""".format("0123456789 " * 15)
FOLD = '<details class="admonition hide above-input"><summary>{}</summary>code</details>'
FOLDED = f'<div class="cell">{FOLD.format("Show code")}{FOLD.format("Show solution")}</div>'
PAGES = [("book/index", ""), ("notebooks/a", "One"), ("notebooks/21-b", "One")]
TITLES = {"notebooks/a": "A &lt;b&gt; C"}
SECTION = """<section id="{0}" {1}><h2>{2}<a class="headerlink" href="#{0}">#</a></h2>{3}</section>"""
ROOT_OF_D = "<mjx-container><i>drawn</i><mjx-assistive-mml><math><msqrt><mi>d</mi></msqrt></math></mjx-assistive-mml>"
LAST = (
    SECTION.format("near", "", "Near & soon", '<a href="#far">further</a>')
    + '<p style="break-before: page; height: 400px">much</p>'
    + SECTION.format("far", "", f"The root of {ROOT_OF_D}</mjx-container>", "last")
    + SECTION.format("gone", 'style="display: none"', "Not printed", "")
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    links = (
        '<a href="../notebooks/21-b.html#x">b</a> <a href="../notebooks/21-b.html#far">far</a> '
        '<a href="../gone.html">gone</a> <a href="https://example.org/">web</a>'
    )
    bodies = {"book/index": links, "notebooks/a": TABS, "notebooks/21-b": LAST}
    for name, body in bodies.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / f"{name}.html").write_text(
            PAGE.format(title=TITLES.get(name, name[-1].upper()), body=body), encoding="utf-8"
        )
    return folder


def printed(site, tmp_path, framework=None):
    sheets = make_pdf.write(site, tmp_path / "book.pdf", PAGES, framework)
    document = PdfReader(tmp_path / "book.pdf")
    assert len(document.pages) == sheets
    return document


def height_of(sheet, words: str) -> float:
    """How high above the lower edge of a sheet a text begins, in points."""
    found = []

    def visit(text, cm, tm, font, size):
        if words in text:
            found.append(tm[5] * cm[3] + cm[5])

    sheet.extract_text(visitor_text=visit)
    (height,) = found
    return height


@pytest.fixture(scope="module")
def document(site, tmp_path_factory):
    return printed(site, tmp_path_factory.mktemp("printed"))


def test_the_pages_stand_in_order_behind_the_contents(document):
    texts = [page.extract_text() for page in document.pages]
    assert len(texts) == 5 and "last" in texts[4] and all(name in texts[2] for name in ("nnn", "ttt", "kkk"))


def test_the_contents_say_on_which_sheet_each_page_and_section_begins(document):
    lines = [line.strip() for line in document.pages[0].extract_text().splitlines()]
    shown = "\n".join(lines[lines.index("Contents") + 1 :])
    numbered = re.findall(r"^(X|A <b> C|21 B|Near & soon|The root of √𝑑)\s*(\d+)$", shown, re.MULTILINE)
    assert [number for _, number in numbered] == ["1", "2", "3", "3", "4"]
    assert "drawn" not in shown and "Not printed" not in shown and "#" not in shown
    assert lines[0] == "Attention and Transformers · i" and make_pdf.WHOLE in lines and lines.count("One") == 1


def test_the_sheets_are_numbered_through_as_a_viewer_numbers_them(document):
    footers = [page.extract_text().splitlines()[0] for page in document.pages]
    assert footers[1:4] == [
        f"{title} — Attention and Transformers · {n}" for title, n in (("X", 1), ("A <b> C", 2), ("21 B", 3))
    ]
    assert footers[4].endswith("· 4")
    assert list(document.page_labels) == ["i", "1", "2", "3", "4"]


def test_the_outline_has_parts_pages_and_sections(document):
    assert document.page_mode == "/UseOutlines"
    contents, first, part, chapters = document.outline
    a, b, sections = chapters
    assert [item.title for item in (contents, first, part, a, b)] == ["Contents", "X", "One", "A <b> C", "21 B"]
    assert [item.title for item in sections] == ["Near & soon", "The root of d"]
    items = (contents, first, part, a, b, *sections)
    assert [document.get_destination_page_number(item) for item in items] == [0, 1, 2, 2, 3, 3, 4]
    assert (part["/%is_open%"].value, b["/%is_open%"].value) == (True, False), (
        "of a part its pages, of a page no section"
    )
    assert 0 <= sections[1].top - height_of(document.pages[4], "The root of") < 40, "at its heading"


def test_links_lead_inside_to_the_place_or_to_the_page(document):
    links = [annotation.get_object() for annotation in document.pages[1]["/Annots"]]
    addresses = [link["/A"]["/URI"] for link in links if "/A" in link and "/URI" in link["/A"]]
    assert addresses == ["https://example.org/"], "what leads nowhere on paper is no link"
    assert [leads_to(document, link) for link in links if "/Dest" in link] == [3, 4]
    (within,) = [annotation.get_object() for annotation in document.pages[3]["/Annots"]]
    assert leads_to(document, within) == 4
    listed = [annotation.get_object() for annotation in document.pages[0]["/Annots"]]
    assert [leads_to(document, link) for link in listed] == [1, 2, 3, 3, 4]


def leads_to(document, link) -> int:
    """The number of the sheet that a link leads to."""
    sheet = link["/Dest"][0]
    return sheet if isinstance(sheet, int) else document.get_page_number(sheet.get_object())


@pytest.mark.parametrize(("framework", "kept", "gone"), [("torch", "ttt", "kkk"), ("tensorflow", "kkk", "ttt")])
def test_one_framework_is_printed_with_numpy_and_without_the_other(site, tmp_path, framework, kept, gone):
    text = printed(site, tmp_path, framework).pages[2].extract_text()
    assert kept in text and "nnn" in text and gone not in text


def test_a_wide_formula_or_table_is_set_smaller_and_folded_code_leaves_no_bar(site, tmp_path):
    (site / "notebooks" / "wide.html").write_text(PAGE.format(title="W", body=WIDE + TABLE + FOLDED), encoding="utf-8")
    make_pdf.write(site, tmp_path / "book.pdf", [("notebooks/wide", "")], "torch")
    document = PdfReader(tmp_path / "book.pdf")
    said = document.pages[1].extract_text()
    assert "The PyTorch edition" in document.pages[0].extract_text()
    assert "narrow" in said and "ends" in said, "a part of the formula is cut off"
    assert "beginning" in said and "rightmost" in said, "a part of the table is cut off"
    assert "Show code" not in said and "Show solution" in said
    assert document.metadata.title == "Attention and Transformers (PyTorch)"


def test_a_page_that_is_not_built_is_named(site, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"lacks book/new\.html: build the book with `make book`"):
        make_pdf.write(site, tmp_path / "book.pdf", [("book/new", "")])


def test_a_chromium_that_would_number_no_sheets_is_named(site, tmp_path, monkeypatch):
    monkeypatch.setattr(make_pdf, "OLDEST", 9999)
    with pytest.raises(RuntimeError, match="numbers no sheets: install 9999 or later"):
        make_pdf.write(site, tmp_path / "book.pdf", PAGES)


def test_the_printed_book_is_that_of_the_contents_without_the_reference():
    names = [name for name, _ in make_pdf.contents()]
    lectures = [path.stem for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]-*.ipynb"))]
    assert names[0] == "book/index"
    assert [name.removeprefix("notebooks/") for name in names if name[10:12].isdigit()] == lectures
    assert not [name for name in names if "api" in name]
