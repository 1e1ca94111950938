"""Every page of the book for readers who cannot see it, or see no colours, or have no mouse, as axe-core counts."""

import pytest

from tests.support.site_access import inspect_access
from tests.support.site_checker import open_window, serve, telling_pages

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
        found = inspect_access(window.new_page(), base, "one.html")
    assert {tuple(finding.message.split(": ")[:2]) for finding in found} == {(where, rule)}


@pytest.mark.parametrize("part", range(PARTS))
def test_no_page_has_a_fault(site, browser, address, part):
    with open_window(browser, address) as window:
        tab = window.new_page()
        pages = [name for name in telling_pages(site) if name not in LONG][part::PARTS]
        found = [str(finding) for name in pages for finding in inspect_access(tab, address, name)]
    assert len(pages) > 5
    assert not found, "\n".join(found[:40])
