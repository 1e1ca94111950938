"""The checker finds what it is there to find: pages with one fault each, and a page without any."""

import base64
import itertools

import pytest

from tests.support import site_checker
from tests.support.site_checker import (
    Finding,
    find_chromium,
    inspect_links,
    inspect_page,
    open_window,
    pages_of_new_kinds,
    serve,
    telling_pages,
)

SQUARE_SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>'
SQUARE = base64.b64encode(SQUARE_SVG.encode()).decode()
GOOD_IMAGE = f'<img alt="A black square" style="background: #fff" src="data:image/svg+xml;base64,{SQUARE}">'
STYLE = """<style>
body { background: #fff; color: #111 }
@media (prefers-color-scheme: dark) { body { background: #111; color: #eee } }
</style>"""
PAGE = "<!doctype html><html lang='en'><head><title>t</title>{head}</head><body><main>{body}</main></body></html>"
# Stands for MathJax: the checker waits for this promise, then looks for what MathJax would have made.
MATHJAX = "<script>MathJax = {startup: {promise: new Promise(done => setTimeout(() => {%s; done()}, 100))}}</script>"

# name: (head, body, kind of the only finding, part of its message)
FAULTS = {
    "console": ("", "<script>console.error('boo')</script>", "console", "boo"),
    "exception": ("", "<script>throw new Error('boo')</script>", "script", "boo"),
    "no-alt": ("", GOOD_IMAGE.replace('alt="A black square"', ""), "alt", "no alt text"),
    "empty-alt": ("", GOOD_IMAGE.replace("A black square", ""), "alt", "is empty"),
    "file-name-alt": ("", GOOD_IMAGE.replace("A black square", "../_images/0a1b2c.png"), "alt", "file name"),
    "hash-alt": ("", GOOD_IMAGE.replace("A black square", "0a1b2c3d4e5f60718293"), "alt", "file name"),
    "nameless-drawing": ("", "<svg width='9' height='9'><rect width='9' height='9'/></svg>", "alt", "without a name"),
    "no-plate": ("", GOOD_IMAGE.replace("background: #fff", ""), "picture", "dark mode: no light plate"),
    "hardly-turned-round": (
        "",
        GOOD_IMAGE.replace("background: #fff", "filter: invert(0.2)"),
        "picture",
        "dark mode: no light plate",
    ),
    "math-not-set": ("", "<span class='math'>\\(x\\)</span>", "math", "not set"),
    "math-set-after-the-check": (
        MATHJAX % "void 0",
        "<span class='math'>\\(x\\)</span>",
        "math",
        "not set",
    ),
    "math-wrong": (
        "",
        "<div class='math'><mjx-container><mjx-merror data-mjx-error='Undefined nope'>x</mjx-merror></mjx-container>",
        "math",
        "Undefined nope",
    ),
    "dollars": ("", "<p>The size $d_k$ grows.</p>", "math", "TeX in the text"),
    "parenthesis": ("", "<p>The size \\(d_k\\) grows.</p>", "math", "TeX in the text"),
    "environment": ("", "<p>\\begin{align} x \\end{align}</p>", "math", "TeX in the text"),
    "faint-text": ("", "<p style='color: #999; background: #fff'>words</p>", "contrast", "2.8 to 1"),
    "dark-on-dark": (
        "<style>@media (prefers-color-scheme: dark) { p { color: #333 } }</style>",
        "<p>words</p>",
        "contrast",
        "dark mode",
    ),
    "wide": ("", "<div class='broad' style='width: 600px'>words</div>", "narrow", "broad"),
    "fold": ("", "<details><summary></summary><p>words</p></details>", "fold", "without a label"),
    "two-tabs": (
        "",
        "<div class='sd-tab-set'><div class='sd-tab-content'>a</div><div class='sd-tab-content'>b</div></div>",
        "tabs",
        "2 tabs open",
    ),
    "two-titles": ("", "<article><h1>a</h1><h1>b</h1></article>", "heading", "2 titles"),
}
GOOD = {
    "turned-round": ("", GOOD_IMAGE.replace("background: #fff", "filter: invert(0.92) hue-rotate(180deg)")),
    "plain": ("", f"<article><h1>Title</h1><p>It costs 5 $ and 6 $.</p>{GOOD_IMAGE}</article>"),
    "math": (
        MATHJAX % "document.querySelector('.math').innerHTML = '<mjx-container>x</mjx-container>'",
        "<span class='math'>\\(x\\)</span> <code>$HOME$</code>",
    ),
    "scrolling-table": ("", "<div style='overflow-x: auto'><div style='width: 600px'>words</div></div>"),
    "folded": ("", "<details><summary>Show solution</summary><p>words</p></details>"),
}


@pytest.fixture(scope="module")
def inspect(tmp_path_factory, browser):
    """A function of (head, body): the findings of a page made of them."""
    folder = tmp_path_factory.mktemp("pages")
    with serve(folder) as base, open_window(browser, base) as window:
        numbers, tab = itertools.count(), window.new_page()

        def run(head: str, body: str) -> list[Finding]:
            name = f"{next(numbers)}.html"  # a new name each time: the window has a cache
            (folder / name).write_text(PAGE.format(head=STYLE + head, body=body), encoding="utf-8")
            found = inspect_page(tab, base, name)
            return [f for f in found if "favicon" not in f.message and "404 (" not in f.message]

        yield run


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_nothing_else(inspect, name):
    head, body, kind, part = FAULTS[name]
    found = inspect(head, body)
    assert {finding.kind for finding in found} == {kind}
    assert part in str(found)


@pytest.mark.parametrize("name", GOOD)
def test_a_good_page_has_no_findings(inspect, name):
    assert inspect(*GOOD[name]) == []


@pytest.mark.parametrize(
    "body",
    [
        "<img alt='A square' style='background: #fff' src='http://example.org/a.png'>",
        "<script>fetch('https://example.org/data.json').catch(() => 0)</script>",
        "<link rel='stylesheet' href='https://example.org/a.css'>",
    ],
)
def test_a_request_to_another_host_is_found(inspect, body):
    assert [f.message for f in inspect("", body) if f.kind == "external"][0].startswith("requests http")


def test_a_missing_file_and_a_broken_picture_are_found(inspect):
    kinds = {finding.kind for finding in inspect("", "<img alt='A square' style='background: #fff' src='no.png'>")}
    assert {"missing", "picture"} <= kinds


def test_a_page_that_is_the_same_in_both_modes_is_found(inspect):
    found = inspect("<style>body { background: #fff !important; color: #000 !important }</style>", "<p>words</p>")
    assert [finding.kind for finding in found] == ["theme"]


def test_links(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.html").write_text("<p id='here'>x</p>", encoding="utf-8")
    links = ["b/two.html", "b/two.html#here", "#own", "https://example.org/", "mailto:a@example.org", "b/"]
    broken = ["b/three.html", "b/two.html#there", "/elsewhere.html", "#nothing"]
    body = "<p id='own'></p>" + "".join(f"<a href='{link}'>x</a>" for link in links + broken)
    (tmp_path / "b" / "index.html").write_text("", encoding="utf-8")
    (tmp_path / "one.html").write_text(body + "<script src='https://example.org/a.js'></script>", encoding="utf-8")
    found = inspect_links(tmp_path)
    assert [finding.message.split()[0] for finding in found if finding.kind == "link"] == broken
    assert [finding.message for finding in found if finding.kind == "external"] == [
        "<script> refers to https://example.org/a.js"
    ]


@pytest.mark.parametrize(("loading", "found"), [("eager", 1), ("lazy", 0)])
def test_a_page_is_weighed_with_what_it_asks_before_a_touch(tmp_path, browser, loading, found):
    heavy = SQUARE_SVG.replace("/></svg>", "/><!--" + "x" * site_checker.HEAVIEST + "--></svg>")
    (tmp_path / "a.svg").write_text(heavy, encoding="utf-8")
    body = f"<p style='height: 20000px'>words</p><img alt='A square' src='a.svg' loading={loading}>"
    (tmp_path / "one.html").write_text(PAGE.format(head=STYLE, body=body), encoding="utf-8")
    with serve(tmp_path) as base, open_window(browser, base) as window:
        tab = window.new_page()
        for _ in range(2 if found else 1):  # new, then from the cache, out of which Chromium takes lazy pictures too
            assert [finding.kind for finding in inspect_page(tab, base, "one.html")].count("weight") == found


def test_a_resource_that_is_not_there_is_found_without_a_browser(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "a.css").write_text("")
    body = "<link rel='stylesheet' href='../a.css?digest=1'><img src='data:,x'><script src='../b.js'></script>"
    (tmp_path / "b" / "one.html").write_text(body, encoding="utf-8")
    assert list(map(str, inspect_links(tmp_path))) == ["b/one.html: missing: <script> refers to ../b.js"]


def test_every_page_is_opened_but_for_listings_with_nothing_new(tmp_path):
    pages = {
        "one.html": "<p>x</p>",
        "two.html": "<p>x</p>",
        "_modules/index.html": "<p>x</p>",
        "_modules/lib/the_longest_name.html": '<pre class="a">x</pre>',
        "_modules/lib/new.html": '<pre class="a">xxx</pre><pre><span id="i" class="b c">x</span></pre>',
        "_modules/lib/old.html": '<pre class="a">xx</pre><span class="b c">y</span>',
        "_modules/lib/drawn.html": '<pre class="a">x</pre><pre style="width: 9px">x</pre>',
    }
    for name, body in pages.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(body, encoding="utf-8")
    assert telling_pages(tmp_path) == sorted(pages.keys() - {"_modules/lib/old.html"})


def test_pages_of_new_kinds_have_among_them_all_kinds_of_elements(tmp_path):
    pages = {
        "long.html": "<p>one</p><b class='x'>two</b>" + "words " * 9,
        "same.html": "<b class='x'>one</b><p>two</p>",
        "class.html": "<b class=\"y\">one</b>",
        "style.html": "<p style=\"color: red\">",
    }
    for name, body in pages.items():
        (tmp_path / name).write_text(body, encoding="utf-8")
    assert pages_of_new_kinds(tmp_path, pages) == {"long.html", "class.html", "style.html"}
    assert pages_of_new_kinds(tmp_path, pages, ["same.html"]) == {"same.html", "class.html", "style.html"}


def test_without_a_chromium_the_error_says_how_to_install_one(monkeypatch):
    monkeypatch.setattr(site_checker.shutil, "which", lambda name: None)
    with pytest.raises(FileNotFoundError, match="apt-get install chromium"):
        find_chromium()
