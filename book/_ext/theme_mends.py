"""Sphinx extension: what the theme and MyST-NB leave to be mended in the pages that they have written.

- The theme loads two thousand icons, 1.4 MB, on every page; those that no page shows are left out. A style sheet draws
  them all once more, from a font that is loaded until the script has come; so much is left to the script alone.
- Folded cells are announced as "Toggle hidden content" instead of by their own words; the arrow that opens a part of
  the contents has no name, nor does the choice between tabs; the entries of the bibliography have a role that no longer
  exists, in a list that must have items.
- The welcome page, whose title is the book's, would say it twice.
- MathJax, 0.8 MB, is loaded by pages without a formula, too; they go without.
- Every page loads the index of the search, 0.5 MB, that only the page of its results reads.
- Pictures are loaded before anybody has come to them, and have no size until then, so that what stands below moves.
"""

import re
import struct
from pathlib import Path

from sphinx.application import Sphinx

# name:[width,height,[other names],"code",path or [paths]]
ICON = re.compile(r'"?([a-z0-9-]+)"?:\[\d+,\d+,(\[[^\]]*\]),"[0-9a-f]+",(?:"[^"]*"|\["[^"]*","[^"]*"\])\],?')
# .fa-name:before,.fa-other-name:before{content:"code"}
GLYPH = re.compile(r'(?:\.fa-[a-z0-9-]+:before,?)+\{content:"[^"]*"\}')
MENDS = (
    (re.compile(r'<summary aria-label="Toggle hidden content">'), "<summary>"),
    (re.compile(r'<summary>(?=<span class="toctree-toggle")'), '<summary aria-label="The pages of this part">'),
    (re.compile(r'<div (?=class="sd-tab-set framework-tabs)'), '<div role="group" aria-label="Framework" '),
    (re.compile(r' role="doc-biblioentry"'), ' role="listitem"'),
    (re.compile(r"<title>(.+?) &#8212; \1</title>"), r"<title>\1</title>"),
)
MATHJAX = re.compile(r"\s*<script>window\.MathJax = .*?</script>|\s*<script[^>]*/mathjax/[^>]*></script>")
SEARCH = re.compile(r'\s*<script src="[^"]*(?:searchtools|language_data|searchindex)\.js[^"]*"></script>')
PICTURE = re.compile(r'<img (?![^>]*\bloading=)([^>]*\bsrc="([^"]+\.png)"[^>]*?) ?/>')
# An element in which MathJax looks for formulas.
FORMULA = re.compile(r'\sclass="(?:[^"]*\s)?(?:math|output_area|(?:tex2jax|mathjax)_process)[\s"]')


def mended(page: str, folder: Path, searches: bool = False) -> str:
    """The HTML of a page with all mends; a page mended before stays as it is.

    `folder` is where the page stands, from which its pictures are found; `searches` says that it is the search's own.
    """
    if not FORMULA.search(page):
        page = MATHJAX.sub("", page)
    if not searches:
        page = SEARCH.sub("", page)
    page = PICTURE.sub(lambda match: later(match, folder), page)
    for pattern, better in MENDS:
        page = pattern.sub(better, page)
    return page


def later(match: re.Match, folder: Path) -> str:
    """The picture in a match of `PICTURE`, loaded when a reader comes near, in room of its size; as is, if missing."""
    if not (picture := folder / match[2]).is_file():
        return match[0]
    with picture.open("rb") as file:
        width, height = struct.unpack(">II", file.read(24)[16:])
    return f'<img {match[1]} width="{width}" height="{height}" loading="lazy" />'


def fewer_icons(script: str, used: set[str]) -> str:
    """FontAwesome's script with the icons in `used` alone, by their names or other names."""

    def kept(match: re.Match) -> str:
        names = {match[1], *re.findall(r'"([a-z0-9-]+)"', match[2])}
        return match[0] if names & used else ""

    return ICON.sub(kept, script).replace(",}", "}")


def finish(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    out = Path(app.outdir)
    used: set[str] = set()
    scripts = out / "_static" / "scripts"
    for path in sorted(out.rglob("*.html")):
        page = path.read_text(encoding="utf-8")
        if (better := mended(page, path.parent, path.name == "search.html")) != page:
            path.write_text(better, encoding="utf-8")
        used |= set(re.findall(r"\bfa-([a-z0-9-]+)", page))
    for path in scripts.glob("*.js"):
        if path.name != "fontawesome.js":
            used |= set(re.findall(r"\bfa-([a-z0-9-]+)", path.read_text(encoding="utf-8")))
    icons = scripts / "fontawesome.js"
    if icons.is_file():
        icons.write_text(fewer_icons(icons.read_text(encoding="utf-8"), used), encoding="utf-8")
        for styles in (out / "_static" / "styles").glob("*.css"):
            styles.write_text(GLYPH.sub("", styles.read_text(encoding="utf-8")), encoding="utf-8")
        for source_map in scripts.glob("*.js.map"):
            source_map.unlink()


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("build-finished", finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
