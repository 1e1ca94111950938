"""Sphinx extension: what the theme and MyST-NB leave to be mended in the pages that they have written.

- The theme loads two thousand icons, 1.4 MB, on every page; those that no page shows are left out.
- Folded cells are announced as "Toggle hidden content" instead of by their own words; the arrow that opens a part of
  the contents has no name; the bibliography has roles that no longer exist.
- The welcome page, whose title is the book's, would say it twice.
- MathJax, 1.3 MB, is loaded by pages without a formula, too; they go without.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx

# name:[width,height,[other names],"code",path or [paths]]
ICON = re.compile(r'"?([a-z0-9-]+)"?:\[\d+,\d+,(\[[^\]]*\]),"[0-9a-f]+",(?:"[^"]*"|\["[^"]*","[^"]*"\])\],?')
MENDS = (
    (re.compile(r'<summary aria-label="Toggle hidden content">'), "<summary>"),
    (re.compile(r'<summary>(?=<span class="toctree-toggle")'), '<summary aria-label="The pages of this part">'),
    (re.compile(r' role="doc-biblioentry"'), ""),
    (re.compile(r"<title>(.+?) &#8212; \1</title>"), r"<title>\1</title>"),
)
MATHJAX = re.compile(r"\s*<script>window\.MathJax = .*?</script>|\s*<script[^>]*/mathjax/[^>]*></script>")
# An element in which MathJax looks for formulas.
FORMULA = re.compile(r'\sclass="(?:[^"]*\s)?(?:math|output_area|(?:tex2jax|mathjax)_process)[\s"]')


def mended(page: str) -> str:
    """The HTML of a page with all mends; a page mended before stays as it is."""
    if not FORMULA.search(page):
        page = MATHJAX.sub("", page)
    for pattern, better in MENDS:
        page = pattern.sub(better, page)
    return page


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
        if (better := mended(page)) != page:
            path.write_text(better, encoding="utf-8")
        used |= set(re.findall(r"\bfa-([a-z0-9-]+)", page))
    for path in scripts.glob("*.js"):
        if path.name != "fontawesome.js":
            used |= set(re.findall(r"\bfa-([a-z0-9-]+)", path.read_text(encoding="utf-8")))
    icons = scripts / "fontawesome.js"
    if icons.is_file():
        icons.write_text(fewer_icons(icons.read_text(encoding="utf-8"), used), encoding="utf-8")
        for source_map in scripts.glob("*.js.map"):
            source_map.unlink()


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("build-finished", finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
