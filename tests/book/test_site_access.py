"""Every page of the book for readers who cannot see it, or see no colours, or have no mouse, as axe-core counts."""

import pytest

from tests.support.site_access import OF_COLOURS, inspect_access
from tests.support.site_checker import open_window, pages_of_new_kinds, serve, telling_pages

# The reference has one template and many thousands of signatures; it is looked at where it is shortest.
LONG = ("book/api/neutral.html", "book/api/tensorflow.html", "book/api/torch.html")
PARTS = 4  # of all pages, which processes share
PAGE = """<!doctype html><html lang="en"><head><title>t</title><style>
body { background: #fff; color: #111 } a { color: #2a6ad0 }
@media (prefers-color-scheme: dark) { body { background: #111; color: #eee } %s }
</style></head><body><main><article><h1>t</h1>%s</article></main></body></html>"""
WIDE_TABLE = "<table style='display: block; overflow: auto'><tr>" + "<td>" + "word&nbsp;" * 12 + "</td></tr></table>"
SMALL = """<style>nav a { display: inline-block; height: 30px; width: 30px; overflow: hidden }
@media (max-width: 500px) { nav a { height: 12px; width: 12px } }</style>
<nav><a href='#a'>a</a><a href='#a'>a</a></nav>"""
# rule: (styles of dark mode, body, where it is found)
FAULTS = {
    "button-name": ("", "<button style='width: 30px; height: 30px'></button>", "wide, light"),
    "color-contrast": ("p { color: #333 }", "<p>words</p>", "wide, dark"),
    "link-in-text-block": (
        "a { color: #cdf }",
        "<p>In a text<a href='#' style='text-decoration: none'>a link</a></p>",
        "wide, dark",
    ),
    "image-alt": ("", "<details><summary>More</summary><img src='data:,'></details>", "wide, light"),
    "scrollable-region-focusable": ("", WIDE_TABLE, "narrow, dark"),
    "target-size": ("", SMALL, "narrow, dark"),
}


@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault_is_found_where_a_reader_meets_it(tmp_path, browser, rule):
    dark, body, where = FAULTS[rule]
    (tmp_path / "one.html").write_text(PAGE % (dark, body), encoding="utf-8")
    with serve(tmp_path) as base, open_window(browser, base) as window:
        page = window.new_page()
        found = inspect_access(page, base, "one.html")
        but_for_colours = inspect_access(page, base, "one.html", colours=False)
    assert {tuple(finding.message.split(": ")[:2]) for finding in found} == {(where, rule)}
    assert but_for_colours == ([] if rule in OF_COLOURS else found)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_page_has_a_fault(site, browser, address, part):
    """Colours where a page has a kind of element that no longer one has: the site's checker measures all of them."""
    every = [name for name in telling_pages(site) if name not in LONG]
    kinds = pages_of_new_kinds(site, every, code=False)  # axe-core leaves out the words of code
    pages = every[part::PARTS]
    with open_window(browser, address) as window:
        tab = window.new_page()
        found = [str(fault) for name in pages for fault in inspect_access(tab, address, name, name in kinds)]
    assert len(pages) > 5 and kinds.intersection(pages)
    assert not found, "\n".join(found[:40])
