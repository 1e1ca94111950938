"""What the theme leaves to be mended: icons nobody sees, names for screen readers, a title said twice."""

import sys

import pytest

from tests.support.tiny_book import EXTENSIONS, build, code

sys.path.insert(0, str(EXTENSIONS))
import theme_mends

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


@pytest.mark.parametrize(
    ("page", "better"),
    [
        ('<summary aria-label="Toggle hidden content">', "<summary>"),
        (
            '<summary><span class="toctree-toggle">',
            '<summary aria-label="The pages of this part"><span class="toctree-toggle">',
        ),
        ('<div class="citation" role="doc-biblioentry">', '<div class="citation">'),
        ("<title>The book &#8212; The book</title>", "<title>The book</title>"),
        ("<title>A page &#8212; The book</title>", "<title>A page &#8212; The book</title>"),
    ],
)
def test_pages_are_mended_once(page, better):
    assert theme_mends.mended(page) == theme_mends.mended(better) == better


def test_heatmaps_keep_their_colours_on_a_dark_page(tmp_path):
    cells = [code("plotting.heatmap(weights)", figure=True), code("ax.plot(losses)", figure=True)]
    images = build(tmp_path, cells, extensions=("heatmaps",)).page().select("img")
    assert ["colour-scale" in image.get("class", []) for image in images] == [True, False]
