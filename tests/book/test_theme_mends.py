"""What the theme leaves to be mended: icons nobody sees, names for screen readers, a title said twice, slowness."""

import base64
import sys

import pytest

from tests.support.tiny_book import EXTENSIONS, PIXEL, build, code

sys.path.insert(0, str(EXTENSIONS))
import listings
import theme_mends


def mended(page, folder=EXTENSIONS, **options):
    return theme_mends.mended(page, folder, **options)


SCRIPT = (
    'var icons={"arrow-up":[384,512,[8593],"f062","M1 2z"],bars:[448,512,["navicon"],"f0c9",["M3","M4"]],'
    '"0":[3,5,[],"30","M5"]};go()'
)


@pytest.mark.parametrize(
    ("used", "kept"),
    [
        ({"bars"}, 'var icons={bars:[448,512,["navicon"],"f0c9",["M3","M4"]]};go()'),
        ({"navicon"}, 'var icons={bars:[448,512,["navicon"],"f0c9",["M3","M4"]]};go()'),
        ({"arrow-up", "bars"}, SCRIPT.replace(',"0":[3,5,[],"30","M5"]', "")),
        (set(), "var icons={};go()"),
    ],
)
def test_icons_that_no_page_shows_are_left_out(used, kept):
    assert theme_mends.fewer_icons(SCRIPT, used) == kept


def test_icons_have_no_second_drawing():
    kept = ".fa-spin{animation:x}.nav-link:after{content:var(--x)}a:before{content:\"x\"}"
    glyphs = '.fa-0:before{content:"0"}.fa-crop:before,.fa-cut-it:before{content:"\\f125"}'
    assert theme_mends.GLYPH.sub("", glyphs + kept + glyphs) == kept


@pytest.mark.parametrize(
    ("page", "better"),
    [
        ('<summary aria-label="Toggle hidden content">', "<summary>"),
        (
            '<summary><span class="toctree-toggle">',
            '<summary aria-label="The pages of this part"><span class="toctree-toggle">',
        ),
        (
            '<div class="sd-tab-set framework-tabs docutils"><input>',
            '<div role="group" aria-label="Framework" class="sd-tab-set framework-tabs docutils"><input>',
        ),
        ('<div class="citation" role="doc-biblioentry">', '<div class="citation" role="listitem">'),
        ("<title>The book &#8212; The book</title>", "<title>The book</title>"),
        ("<title>A page &#8212; The book</title>", "<title>A page &#8212; The book</title>"),
    ],
)
def test_pages_are_mended_once(page, better):
    assert mended(page) == mended(better) == better


MATHJAX = (
    '<script>window.MathJax = {"options": {"processHtmlClass": "tex2jax_process|mathjax_process|math|output_area"}}'
    '</script>\n    <script defer="defer" src="../_static/mathjax/startup.js?v=1"></script>'
)
IGNORED = '<section class="tex2jax_ignore mathjax_ignore" id="mathematics"><p class="aftermath">math</p></section>'


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("<p>Words about math.</p>", False),
        (IGNORED, False),
        ('<span class="math notranslate">x</span>', True),
        ('<div id="a" class="amsmath math notranslate">x</div>', True),
        ('<div class="output_area">$x$</div>', True),
        ('<p class="mathjax_process">x</p>', True),
    ],
)
def test_only_pages_with_a_formula_load_mathjax(body, kept):
    page = f'<head>\n    <script src="a.js"></script>\n    {MATHJAX}\n</head><body>{body}</body>'
    without = f'<head>\n    <script src="a.js"></script>\n</head><body>{body}</body>'
    assert mended(page) == mended(mended(page)) == (page if kept else without)


def test_the_search_index_is_read_by_the_search_alone():
    names = ("a", "_static/searchtools", "searchindex")
    scripts = [f'\n    <script src="../{name}.js?v=1"></script>' for name in names]
    assert mended("".join(scripts)) == scripts[0]
    assert mended("".join(scripts), searches=True) == "".join(scripts)


def test_a_picture_has_room_of_its_size_before_it_is_loaded(tmp_path):
    (tmp_path / "a.png").write_bytes(base64.b64decode(PIXEL))
    page = '<img alt="A pixel" src="a.png" /> <img alt="none" src="b.png" /> <img src="c.svg" />'
    better = page.replace('"a.png"', '"a.png" width="1" height="1" loading="lazy"')
    assert mended(page, tmp_path) == mended(better, tmp_path) == better


def test_heatmaps_keep_their_colours_on_a_dark_page(tmp_path):
    cells = [code("plotting.heatmap(weights)", figure=True), code("ax.plot(losses)", figure=True)]
    images = build(tmp_path, cells, extensions=("heatmaps",)).page().select("img")
    assert ["colour-scale" in image.get("class", []) for image in images] == [True, False]


def test_listings_as_deep_share_their_contents_and_other_pages_have_their_own():
    asked, made = [], {}
    pages = ["_modules/a/b", "_modules/a/c", "_modules/d", "_modules/e", "book/f", "book/g"]
    shown = []
    for page in pages:
        context = {"toctree": lambda page=page, **options: asked.append(page) or f"{page} {options}"}
        listings.share(made, None, page, "page.html", context, None)
        shown += [context["toctree"](maxdepth=depth) for depth in (1, 2)]
    assert asked == [page for page in pages if page not in ("_modules/a/c", "_modules/e") for _ in range(2)]
    assert shown[:4] == [f"_modules/a/b {{'maxdepth': {depth}}}" for depth in (1, 2)] * 2
    assert len(set(shown)) == len(set(asked)) * 2
