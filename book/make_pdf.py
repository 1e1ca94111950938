"""Print the built book into one PDF, with Chromium, page by page in the order of the contents.

    python book/make_pdf.py            all frameworks, each tab under its label
    python book/make_pdf.py torch      NumPy and PyTorch alone; likewise tensorflow

Links from page to page lead to the page's first sheet. Live figures are printed as they begin, exercises with their
solutions folded away. The reference of the library, the listings of its code and folded code are left out.
"""

import argparse
import io
import sys
from pathlib import Path

import yaml
from pypdf import PdfReader, PdfWriter
from pypdf.annotations import Link
from pypdf.generic import ArrayObject, Fit, NameObject

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from tests.support.site_checker import open_browser, open_page, serve  # noqa: E402

NAMES = {"torch": "PyTorch", "tensorflow": "TensorFlow"}
LEFT_OUT = ("book/api/",)
# Tabs of other frameworks go, wherever the one that was chosen has a tab, too; NumPy's stays, to be read.
CHOOSE = """(others) => document.querySelectorAll(".sd-tab-set").forEach((set) =>
  others.forEach((id) => {
    const label = set.querySelector(`:scope > label[data-sync-id=${id}]`);
    label?.nextElementSibling.remove();
    label?.remove();
  }))"""
FOOTER = """<div style="width: 100%; font-size: 7pt; text-align: center; color: #555">
<span class="title"></span> · <span class="pageNumber"></span></div>"""
MARGIN = {"top": "16mm", "bottom": "18mm", "left": "15mm", "right": "15mm"}
SCALE = 0.8  # letters of ten points in the text
WIDTH = 850  # pixels between the margins of a sheet: 180 mm at 96 to the inch, divided by SCALE
# What belongs together stays on one sheet.
STYLE = """
.sd-tab-set > label { break-after: avoid }
.figure-number { break-before: avoid }
.live-figure { break-inside: avoid }
"""
# Paper does not unfold, so folded code goes, and does not scroll, so a formula that is too wide gets smaller letters.
FIT = """() => {
  document.querySelectorAll(".cell details.hide").forEach((fold) => {
    if (fold.querySelector("summary").textContent.includes("Show code")) fold.remove();
  });
  document.querySelectorAll("div.math").forEach((box) => {
    const formula = box.querySelector("mjx-container");
    const fits = formula ? box.clientWidth / formula.scrollWidth : 1;
    if (fits < 1) formula.style.fontSize = `${0.99 * fits * parseFloat(getComputedStyle(formula).fontSize)}px`;
  });
}"""


def contents(root: Path = ROOT) -> list[tuple[str, str]]:
    """The pages of the book in their order, each with the title of its part; without the library's reference."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    pages = [(toc["root"], "")]
    for part in toc["parts"]:
        pages += [(page["file"], part["caption"]) for page in part["chapters"]]
    return [(name, part) for name, part in pages if not name.startswith(LEFT_OUT)]


def join(printed: list[tuple[str, str, str, bytes]], base: str) -> PdfWriter:
    """Join printed pages into one document with an outline.

    Parameters
    ----------
    printed : of each page its name, its part, its title and the PDF
    base : the address that the pages were printed from; links to it become links within the document, and those to
        pages that are not there are dropped
    """
    book, first, parts = PdfWriter(), {}, {}
    for name, part, title, pdf in printed:
        reader = PdfReader(io.BytesIO(pdf))
        start = first[f"{base}{name}.html"] = len(book.pages)
        for page in reader.pages:
            book.add_page(page)
        if part and part not in parts:
            parts[part] = book.add_outline_item(title=part, page_number=start)
        book.add_outline_item(title=title, page_number=start, parent=parts.get(part))
    for sheet in book.pages:
        lead_inside(book, sheet, first, base)
    return book


def lead_inside(book: PdfWriter, sheet, first: dict[str, int], base: str) -> None:
    """Turn the links of a sheet that lead to printed pages into links within the document."""
    kept, inside = [], []
    for reference in sheet.get("/Annots") or []:
        annotation = reference.get_object()
        address = (annotation.get("/A") or {}).get("/URI", "")
        if not str(address).startswith(base):
            kept.append(reference)
        elif (target := first.get(str(address).partition("#")[0])) is not None:
            inside.append((annotation["/Rect"], target))
    if "/Annots" in sheet:
        sheet[NameObject("/Annots")] = ArrayObject(kept)
    for rectangle, target in inside:
        book.add_annotation(sheet, Link(rect=rectangle, target_page_index=target, fit=Fit.fit_horizontally()))


def write(site: Path, target: Path, pages: list[tuple[str, str]], framework: str | None = None) -> int:
    """Print pages of a built site into one PDF; return how many sheets it has.

    Raises
    ------
    FileNotFoundError : the book is not built, or there is no Chromium.
    """
    if missing := [name for name, _ in pages if not (site / f"{name}.html").is_file()]:
        raise FileNotFoundError(f"{site} lacks {missing[0]}.html: build the book with `make book`")
    printed = []
    with serve(site) as base, open_browser() as browser:
        tab = browser.new_page(color_scheme="light", viewport={"width": WIDTH, "height": 1200})
        tab.set_default_timeout(600_000)
        for name, part in pages:
            open_page(tab, f"{base}{name}.html")
            tab.wait_for_load_state("networkidle")
            if framework is not None:
                tab.evaluate(CHOOSE, [other for other in NAMES if other != framework])
            tab.add_style_tag(content=STYLE)
            tab.emulate_media(media="print")
            tab.evaluate(FIT)
            options = {"format": "A4", "margin": MARGIN, "scale": SCALE, "display_header_footer": True, "tagged": True}
            pdf = tab.pdf(**options, header_template="<span></span>", footer_template=FOOTER, print_background=True)
            tab.emulate_media(media="screen")
            printed.append((name, part, tab.locator("h1").first.inner_text().rstrip("#"), pdf))
            print(f"  {name}", flush=True)
        book = join(printed, base)
    edition = f" ({NAMES[framework]})" if framework else ""
    book.add_metadata({"/Title": f"Attention and Transformers{edition}"})
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
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{target.relative_to(ROOT)}: {sheets} pages, {target.stat().st_size / 1e6:.0f} MB.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
