"""What axe-core counts against WCAG 2.2 at level AA on the pages of a built site, as its readers meet them."""

from pathlib import Path

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

from tests.support.site_checker import FOLLOW, NARROW, WIDE, Finding, open_page

# Runs in the page when axe-core is there.
AXE = (Path(__file__).parent / "axe_checks.js").read_text(encoding="utf-8")
# MathJax's own; and words of code, whose contrast the site's checker measures.
THEIRS = ["mjx-container", ".highlight span"]
OF_COLOURS, OF_WIDTH = ["color-contrast", "link-in-text-block"], ["scrollable-region-focusable", "target-size"]

# For each element axe-core asks whether one of those left out holds it; of thousands of words, that takes most time.
BARE = """() => [...document.querySelectorAll(".highlight span")].reverse().forEach((word) => {
  if (!word.childElementCount) word.replaceWith(...word.childNodes);
})"""

# axe-core sees what can be seen: unfold what is folded, and let the scripts that follow the page's size run.
UNFOLD = """async () => {
  document.querySelectorAll("article details").forEach((part) => { part.open = true; });
  await new Promise((go) => requestAnimationFrame(() => setTimeout(go, 50)));
}"""


def inspect_access(page: Page, base: str, name: str, colours: bool = True) -> list[Finding]:
    """Show one page of a site wide and light, then dark, then on a narrow screen; list what axe-core finds in each.

    What is folded is unfolded. Wide and light, all rules count; dark those of colours, narrow those of widths. Without
    `colours` those of colours count nowhere: they take most of the time.
    """
    found: list[Finding] = []

    def look(how: str, rules: list[str] | None, theirs=THEIRS, without=()) -> None:
        for message in page.evaluate(AXE, [rules, theirs, list(without)]):
            found.append(Finding(name, "axe", f"{how}: {message}"))

    page.goto("about:blank")
    page.set_viewport_size(WIDE)
    page.emulate_media(color_scheme="light")
    open_page(page, base + name)
    page.evaluate(UNFOLD)
    page.evaluate(BARE)
    page.evaluate(AXE_SCRIPT)
    look("wide, light", None, without=() if colours else OF_COLOURS)
    page.emulate_media(color_scheme="dark")
    page.evaluate(FOLLOW, "dark")
    if colours:
        look("wide, dark", OF_COLOURS)
    page.set_viewport_size(NARROW)
    page.evaluate(UNFOLD)
    look("narrow, dark", OF_WIDTH, [])
    return found
