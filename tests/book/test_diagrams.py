"""The lectures' diagrams: committed as they are drawn, described, legible in light and dark, and a part of the page."""

import html
import re
import sys
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup

from course_lib.lecture.drawing import SMALLEST, WIDEST, Diagram
from tests.support.tiny_book import EXTENSIONS, build, text

sys.path.insert(0, str(EXTENSIONS.parent))
import draw_diagrams

ROOT = Path(__file__).parents[2]

CHECKS = (Path(__file__).parent / "diagram_checks.js").read_text(encoding="utf-8")
CSS = (ROOT / "book" / "_static" / "custom.css").read_text(encoding="utf-8")
FILES = sorted(draw_diagrams.FOLDER.glob("*.svg"))
LECTURES = sorted((ROOT / "notebooks").glob("[0-9][0-9]-*.ipynb"))
diagrams = pytest.mark.parametrize("name", sorted(draw_diagrams.DRAWN))


def shown_in(path: Path) -> list[tuple[str, str]]:
    """The (description, name) of each diagram in the Markdown of a lecture."""
    cells = nbformat.read(path, as_version=4).cells
    markdown = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return re.findall(r"^!\[([^]]*)\]\(diagrams/([\w-]+)\.svg\)$", markdown, flags=re.MULTILINE)


@diagrams
def test_the_committed_file_is_what_is_drawn(name):
    assert (draw_diagrams.FOLDER / f"{name}.svg").read_text(encoding="utf-8") == draw_diagrams.DRAWN[name]().svg(), (
        "run python book/draw_diagrams.py"
    )


def test_every_file_is_drawn_by_a_function():
    assert [file.stem for file in FILES] == sorted(draw_diagrams.DRAWN)


@diagrams
def test_a_diagram_is_described_in_few_sentences_and_fits_a_phone(name):
    drawn = draw_diagrams.DRAWN[name]()
    assert len(re.findall(r"\.(?: |$)", drawn.alt)) >= 2, "what it shows, and what to take from it"
    assert 12 <= len(drawn.alt.split()) <= 60
    svg = BeautifulSoup(drawn.svg(), "html.parser").svg
    assert svg["role"] == "img" and svg["aria-label"] == drawn.alt
    assert not svg.find("title"), "a browser would read it besides the label, and show it over the whole picture"
    assert drawn.width <= WIDEST
    assert min(float(word["font-size"]) for word in svg.find_all("text")) >= SMALLEST


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_a_lecture_has_a_diagram_and_says_of_each_what_it_says_itself(path):
    found = shown_in(path)
    assert found, "a lecture shows its mechanism: ![...](diagrams/NAME.svg)"
    for description, name in found:
        assert description == draw_diagrams.DRAWN[name]().alt, f"{name}: in the book, only the file's label is read"


def test_every_diagram_is_in_a_lecture():
    assert {name for path in LECTURES for _, name in shown_in(path)} == set(draw_diagrams.DRAWN)


@pytest.fixture(scope="module")
def window(browser):
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    yield page
    page.close()


def findings(window, drawing: str, theme: str) -> list[str]:
    window.set_content(
        f'<html data-theme="{theme}"><style>{CSS}</style><body class="bd-article" '
        f'style="background: {"#14181e" if theme == "dark" else "#fff"}">{drawing}'
    )
    return window.evaluate(CHECKS)


@diagrams
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_diagram_can_be_read(window, name, theme):
    assert findings(window, (draw_diagrams.FOLDER / f"{name}.svg").read_text(encoding="utf-8"), theme) == []


def sketch(*parts: str) -> str:
    d = Diagram(200, 100, "A sketch.")
    d.parts.extend(parts)
    return d.svg()


def words(x, y, said="words", fill="#555555"):
    return f'<text x="{x}" y="{y}" font-size="15" fill="{fill}">{said}</text>'


@pytest.mark.parametrize(
    ("parts", "finding"),
    [
        ((words(180, 50),), "leaves the picture"),
        ((words(20, 50), words(30, 54, "more")), "stand on each other"),
        ((words(20, 50), '<rect x="40" y="20" width="90" height="60" fill="none"/>'), "crosses the edge of a box"),
        ((words(20, 50), '<path d="M 30 10 L 30 90" fill="none" stroke="red"/>'), "is crossed by a line"),
        ((words(20, 50, fill="#999999"),), "contrast"),
    ],
)
def test_the_checks_find_what_cannot_be_read(window, parts, finding):
    said = findings(window, sketch(*parts), "light")
    assert [finding in line for line in said] == [True], said


def test_colours_follow_the_theme(window):
    seen = set()
    for theme in ("light", "dark"):
        findings(window, draw_diagrams.DRAWN["attention"]().svg(), theme)
        seen.add(tuple(window.evaluate("[...document.querySelectorAll('rect')].map(r => getComputedStyle(r).stroke)")))
    light, dark = seen
    assert all(a != b for a, b in zip(light[1:], dark[1:], strict=True))


def test_in_the_book_the_file_is_a_part_of_the_page(tmp_path):
    markdown = "Look.\n\n![A sketch.](diagrams/sketch.svg)\n\n![Another.](other.svg)"
    files = dict.fromkeys(("diagrams/sketch.svg", "other.svg"), sketch(words(20, 50)))
    book = build(tmp_path / "book", [text(markdown)], extensions=("diagrams",), files=files)
    assert book.warnings == ""
    (svg,) = book.page().select("svg.diagram")
    assert svg["aria-label"] == "A sketch." and svg.text.split() == ["words"]
    assert [image["alt"] for image in book.page().select("img")] == ["Another."], "read aloud once, by its own label"


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: Diagram(WIDEST + 1, 100, "A sketch."), f"at most {WIDEST} wide.*got {WIDEST + 1}"),
        (lambda: Diagram(100, 100, " "), "needs a description.*give `alt`"),
        (lambda: Diagram(100, 100, "A sketch.").text(90, 50, "too far right"), "'too far right' at 90 leaves"),
        (lambda: Diagram(100, 100, "A sketch.").text(50, 50, "small", SMALLEST - 1), f"at least {SMALLEST} high"),
        (lambda: Diagram(300, 100, "A sketch.").box(50, 50, 40, 30, "attention"), "'attention' is wider than its box"),
        (lambda: Diagram(300, 100, "A sketch.").box(50, 50, 40, 30, shape="(B, T, S)"), "is wider than its box of 40"),
    ],
)
def test_what_cannot_be_read_is_refused(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


def test_what_a_diagram_says_is_escaped_lowered_and_raised():
    d = Diagram(200, 100, 'less < more & "so"')
    d.text(100, 50, "a < b_1_ + W^Q^")
    svg = BeautifulSoup(d.svg(), "html.parser")
    assert html.unescape(svg.svg["aria-label"]) == d.alt
    assert "a &lt; b" in d.svg(), "a browser would mend the bare sign, where it reads HTML"
    assert svg.find("text").text.replace("\u200b", "") == "a < b1 + WQ"
    assert [part.text for part in svg.find_all("tspan")[::2]] == ["1", "Q"]
    assert d._repr_svg_() == d.svg()
