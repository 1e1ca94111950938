"""Print the built book into one PDF, with Chromium, page by page in the order of the contents.

    python book/make_pdf.py            all frameworks, each tab under its label
    python book/make_pdf.py torch      of the tabs NumPy's and PyTorch's alone; likewise tensorflow

In front stand contents with the numbers of the sheets. They have Roman ones themselves, so that they can be printed
last, when all others are known. Live figures are printed as they begin, exercises with their solutions folded away. The
reference of the library, the listings of its code and folded code are left out.
"""

import argparse
import io
import json
import re
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

import yaml
from pypdf import PdfReader, PdfWriter
from pypdf.annotations import Link
from pypdf.generic import ArrayObject, Fit, NameObject

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from tests.support.site_checker import open_browser, open_page, serve  # noqa: E402

NAMES = {"torch": "PyTorch", "tensorflow": "TensorFlow"}
EDITION = (
    "The {0} edition: of the code in tabs, NumPy’s and {0}’s. Code outside the tabs is that of all editions; it may be "
    "{1}, or call what a tab of {1} defines."
)
WHOLE = "Code in tabs is printed tab by tab, each under its label."
LEFT_OUT = ("book/api/",)
# Tabs of other frameworks go, wherever the one that was chosen has a tab, too; NumPy's stays, to be read.
CHOOSE = """(others) => document.querySelectorAll(".sd-tab-set").forEach((set) =>
  others.forEach((id) => {
    const label = set.querySelector(`:scope > label[data-sync-id=${id}]`);
    label?.nextElementSibling.remove();
    label?.remove();
  }))"""
# Chromium's own footer counts the sheets of each page from 1 on; CSS can go on from the page before.
SHEET = """@page {{ size: A4; margin: 16mm 15mm 18mm;
  @bottom-center {{ content: {footer} " · " counter(page{style}); font: 7pt sans-serif; color: #555 }} }}
html {{ counter-reset: page {before} }}"""
OLDEST = 131  # the first Chromium that does
TOP = 16 * 72 / 25.4  # the margin in points
SCALE = 0.8  # letters of ten points in the text
WIDTH = 850  # pixels between the margins of a sheet: 180 mm at 96 to the inch, divided by SCALE
# What belongs together stays on one sheet.
STYLE = """
.sd-tab-set > label { break-after: avoid }
.figure-number { break-before: avoid }
.live-figure { break-inside: avoid }
"""
# Paper does not unfold, so folded code goes; it does not scroll, so a formula or a table that is too wide gets smaller
# letters.
FIT = """() => {
  document.querySelectorAll(".cell details.hide").forEach((fold) => {
    if (fold.querySelector("summary").textContent.includes("Show code")) fold.remove();
  });
  document.querySelectorAll("div.math").forEach((box) => {
    const formula = box.querySelector("mjx-container");
    const fits = formula ? box.clientWidth / formula.scrollWidth : 1;
    if (fits < 1) formula.style.fontSize = `${0.99 * fits * parseFloat(getComputedStyle(formula).fontSize)}px`;
  });
  document.querySelectorAll(".pst-scrollable-table-container").forEach((box) => {
    const fits = box.clientWidth / box.scrollWidth;
    if (fits < 1) box.querySelector("table").style.zoom = 0.99 * fits;
  });
}"""


# A formula of a heading is set by MathJax, for whose letters the contents have no style; what it keeps for those who
# hear the page is MathML, which Chromium sets, too.
SECTIONS = """() => [...document.querySelectorAll("article h2")].flatMap((heading) => {
  const section = heading.closest("section[id]");
  if (!section || !heading.checkVisibility()) return [];
  const words = heading.cloneNode(true);
  words.querySelectorAll("a.headerlink").forEach((link) => link.remove());
  words.querySelectorAll("mjx-container").forEach((formula) => formula.replaceWith(formula.querySelector("math")));
  return [[section.id, words.textContent.trim(), words.innerHTML.trim()]];
})"""
CONTENTS = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 12.5px/1.4 system-ui, sans-serif; margin: 0 }}
h1 {{ font-size: 38px; font-weight: normal; margin: 0 }}
p {{ font-size: 14px }}
h2 {{ font-size: 26px; font-weight: normal; margin: 24px 0 10px }}
main {{ columns: 2; column-gap: 40px }}
h3 {{ font-size: 15px; margin: 16px 0 2px; break-after: avoid }}
a {{ display: flex; gap: 5px; color: inherit; text-decoration: none; break-inside: avoid }}
a.page {{ font-weight: bold; margin-top: 5px; break-after: avoid }}
a.section {{ padding-left: 14px; color: #333 }}
a::after {{ content: attr(data-sheet); margin-left: auto }}
</style></head><body><h1>{book}</h1><p>{edition}</p><h2>Contents</h2><main>{lines}</main></body></html>"""
BOOK = "Attention and Transformers"


@dataclass(frozen=True)
class Printed:
    """A page of the book on paper; of each section it has the anchor, the words, and these as HTML."""

    name: str
    part: str
    title: str
    sections: list[tuple[str, str, str]]
    pdf: PdfReader


def contents(root: Path = ROOT) -> list[tuple[str, str]]:
    """The pages of the book in their order, each with the title of its part; without the library's reference."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    pages = [(toc["root"], "")]
    for part in toc["parts"]:
        pages += [(page["file"], part["caption"]) for page in part["chapters"]]
    return [(name, part) for name, part in pages if not name.startswith(LEFT_OUT)]


def places(printed: list[Printed], base: str) -> dict[str, tuple[int, float]]:
    """Where each address leads that something in the book links to: the sheet, counted from 0, and the height on it."""
    found, before = {}, 0
    for page in printed:
        address = f"{base}{page.name}.html"
        found[address] = before, float(page.pdf.pages[0].mediabox.height)
        for anchor, there in page.pdf.named_destinations.items():
            sheet = page.pdf.get_destination_page_number(there)
            height = float(page.pdf.pages[sheet].mediabox.height)
            # Chromium measures from the sheet's edge, in pixels that it has not scaled
            top = height - TOP - SCALE * (height - float(there.top))
            found[f"{address}#{anchor.removeprefix('/')}"] = before + sheet, min(max(top, 0), height)
        before += len(page.pdf.pages)
    return found


def list_contents(printed: list[Printed], place: dict[str, tuple[int, float]], base: str, edition: str) -> str:
    """The HTML of the contents: parts, pages and their sections, each with the number of its sheet."""

    def line(kind: str, address: str, words: str) -> str:
        return f'<a class="{kind}" href="{address}" data-sheet="{place[address][0] + 1}"><span>{words}</span></a>'

    lines, part = [], ""
    for page in printed:
        address = f"{base}{page.name}.html"
        lines += [f"<h3>{escape(page.part)}</h3>"] if page.part != part else []
        lines += [line("page", address, escape(page.title))]
        lines += [line("section", f"{address}#{anchor}", html) for anchor, _, html in page.sections]
        part = page.part
    return CONTENTS.format(title=BOOK, book=BOOK, edition=escape(edition), lines="\n".join(lines))


def join(front: PdfReader, printed: list[Printed], place: dict[str, tuple[int, float]], base: str) -> PdfWriter:
    """Join the contents and the printed pages into one document with an outline and links within it.

    Links to addresses below `base`, from which the pages were printed, that are none of `place` are dropped.
    """
    book, parts = PdfWriter(), {}
    ahead = len(front.pages)

    def mark(title: str, address: str, **how) -> object:
        sheet, top = place[address]
        return book.add_outline_item(title=title, page_number=ahead + sheet, fit=Fit.fit_horizontally(top), **how)

    for pdf in [front, *(page.pdf for page in printed)]:
        for sheet in pdf.pages:
            book.add_page(sheet)
    book.add_outline_item(title="Contents", page_number=0)
    for page in printed:
        address = f"{base}{page.name}.html"
        if page.part and page.part not in parts:
            parts[page.part] = mark(page.part, address)
        entry = mark(page.title, address, parent=parts.get(page.part), is_open=False)
        for anchor, words, _ in page.sections:
            mark(words, f"{address}#{anchor}", parent=entry)
    inside = {address: (ahead + sheet, top) for address, (sheet, top) in place.items()}
    own = [""] * ahead + [f"{base}{page.name}.html" for page in printed for _ in page.pdf.pages]
    for sheet, address in zip(book.pages, own, strict=True):
        lead_inside(book, sheet, address, inside, base)
    book.set_page_label(0, ahead - 1, style="/r")
    book.set_page_label(ahead, len(book.pages) - 1, style="/D", start=1)
    book.page_mode = "/UseOutlines"
    return book


def lead_inside(book: PdfWriter, sheet, own: str, place: dict[str, tuple[int, float]], base: str) -> None:
    """Turn the links of a sheet, which is of the page `own`, to printed pages into links within the document."""
    kept, inside = [], []
    for reference in sheet.get("/Annots") or []:
        annotation = reference.get_object()
        address = str((annotation.get("/A") or {}).get("/URI", ""))
        if "/Dest" in annotation:  # a place of the same page, by its name
            address = f"{own}#{annotation['/Dest'][1:]}"
        if not address.startswith(base):
            kept.append(reference)
        elif target := place.get(address) or place.get(address.partition("#")[0]):
            inside.append((annotation["/Rect"], target))
    if "/Annots" in sheet:
        sheet[NameObject("/Annots")] = ArrayObject(kept)
    for rectangle, (target, top) in inside:
        book.add_annotation(sheet, Link(rect=rectangle, target_page_index=target, fit=Fit.fit_horizontally(top)))


def print_sheets(tab, footer: str, before: int, style: str = "") -> PdfReader:
    """Print what a tab shows; the numbers below its sheets, in a style of CSS, go on after those `before`."""
    style = f", {style}" if style else ""
    tab.add_style_tag(content=SHEET.format(footer=json.dumps(footer, ensure_ascii=False), style=style, before=before))
    return PdfReader(io.BytesIO(tab.pdf(scale=SCALE, prefer_css_page_size=True, print_background=True)))


def write(site: Path, target: Path, pages: list[tuple[str, str]], framework: str | None = None) -> int:
    """Print pages of a built site into one PDF; return how many sheets it has.

    Raises
    ------
    FileNotFoundError : the book is not built, or there is no Chromium.
    RuntimeError : the Chromium is too old.
    """
    if missing := [name for name, _ in pages if not (site / f"{name}.html").is_file()]:
        raise FileNotFoundError(f"{site} lacks {missing[0]}.html: build the book with `make book`")
    others = [other for other in NAMES if framework and other != framework]
    edition = EDITION.format(NAMES[framework], *(NAMES[other] for other in others)) if framework else WHOLE
    printed: list[Printed] = []
    with serve(site) as base, open_browser() as browser:
        if int(browser.version.partition(".")[0]) < OLDEST:
            raise RuntimeError(
                f"Chromium is version {browser.version}, and numbers no sheets: install {OLDEST} or later"
            )
        tab = browser.new_page(color_scheme="light", viewport={"width": WIDTH, "height": 1200})
        tab.set_default_timeout(600_000)
        for name, part in pages:
            open_page(tab, f"{base}{name}.html")
            tab.wait_for_load_state("networkidle")
            tab.evaluate(CHOOSE, others)
            tab.add_style_tag(content=STYLE)
            tab.emulate_media(media="print")
            tab.evaluate(FIT)
            title = tab.locator("h1").first.inner_text().rstrip("#")
            if lecture := re.match(r"notebooks/(\d\d)-", name):
                title = f"{lecture[1]} {title}"
            sections = [tuple(section) for section in tab.evaluate(SECTIONS)]
            before = sum(len(page.pdf.pages) for page in printed)
            printed.append(Printed(name, part, title, sections, print_sheets(tab, f"{title} — {BOOK}", before)))
            tab.emulate_media(media="screen")
            print(f"  {name}", flush=True)
        place = places(printed, base)
        tab.goto("about:blank")
        tab.set_content(list_contents(printed, place, base, edition))
        book = join(print_sheets(tab, BOOK, 0, "lower-roman"), printed, place, base)
    book.add_metadata({"/Title": f"{BOOK} ({NAMES[framework]})" if framework else BOOK})
    target.parent.mkdir(parents=True, exist_ok=True)
    book.write(target)
    return len(book.pages)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Print the built book into one PDF.")
    parser.add_argument("framework", nargs="?", choices=NAMES, help="leave out the other's tabs")
    chosen = parser.parse_args(arguments).framework
    target = ROOT / "dist" / f"attention-and-transformers{f'-{chosen}' if chosen else ''}.pdf"
    try:
        sheets = write(ROOT / "_build" / "html", target, contents(), chosen)
    except (FileNotFoundError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{target.relative_to(ROOT)}: {sheets} pages, {target.stat().st_size / 1e6:.0f} MB.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
