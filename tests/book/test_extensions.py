"""The extensions for the API pages and for the address of a published book."""

import re
import sys
from pathlib import Path

import pytest
from sphinx.errors import SphinxError

from tests.support.tiny_book import EXTENSIONS, build, text

sys.path.insert(0, str(EXTENSIONS))
import api_pages

ROOT = Path(__file__).parents[2]

MODULE = '''
"""A module with `Thing`s and 2 * 3 things_."""

from typing import Any, NamedTuple


class Base:
    def __new__(cls, *args, **kwargs):
        return super().__new__(cls)


def function(q, k, v, mask=None):
    """softmax(q k^T / sqrt(d_k)) v of `q`.

    - a list
      that goes on

    Used as:
        function(*args)  # `q`

    And so on.

    Parameters
    ----------
    q, k : queries and keys, shape (..., T, d_k),
        and more about them
    v : values, *args and |v|

    Returns
    -------
    Boolean array, shape (T,), True = may attend.

    Raises
    ------
    ValueError : axes that do not fit.
    """


class Part:
    """A part that has no entry of its own."""


Part.__module__ = "elsewhere"


class Layer(Base):
    """A layer."""

    Part = Part

    def __init__(self, d_model: int, attention=function):
        pass


class Output(NamedTuple):
    """What it returns."""

    output: Any  # (B, T, d_model)
    weights: Any  # (B, H, T, S), or None
'''


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("api")
    (folder / "sample_module.py").write_text(MODULE, encoding="utf-8")
    sys.path.insert(0, str(folder))
    cell = "```{eval-rst}\n.. automodule:: sample_module\n   :members:\n```"
    config = {"autodoc_preserve_defaults": True, "nitpick_ignore": [("py:class", "int")]}
    book = build(folder / "book", [text(cell)], extensions=("api_pages",), nitpicky=True, **config)
    sys.path.remove(str(folder))
    assert book.warnings == ""
    return book.page()


def shown(page, name: str) -> str:
    return re.sub(r"\s+", " ", page.find(id=f"sample_module.{name}").parent.text)


def test_sections_become_fields_with_one_entry_each(page):
    fields = page.find(id="sample_module.function").parent.select("dl.field-list > dt")
    assert [field.text.strip().rstrip(":") for field in fields] == ["Parameters", "Returns", "Raises"]
    entries = [item.text for item in page.find(id="sample_module.function").parent.select("li")]
    assert entries[1:] == [
        "q, k – queries and keys, shape (…, T, d_k), and more about them",
        "v – values, *args and |v|",
    ]
    assert "Boolean array, shape (T,), True = may attend." in shown(page, "function")
    assert "ValueError – axes that do not fit." in shown(page, "function")


def test_indented_lines_are_code_and_lists_are_lists(page):
    function = page.find(id="sample_module.function").parent
    assert function.find("pre").text.strip() == "function(*args)  # `q`"
    assert function.find("ul").text.split() == ["a", "list", "that", "goes", "on"]


def test_text_of_a_docstring_is_no_markup_except_code(page):
    assert "A module with Things and 2 * 3 things_." in page.text
    assert page.find("code", string=lambda s: s == "Thing") or page.find("code").text == "Thing"


def test_a_class_shows_its_own_signature_and_names_its_defaults(page):
    assert "Layer(d_model: int, attention=function)" in shown(page, "Layer").replace(" = ", "=")


def test_a_part_that_a_class_names_is_no_member_of_it(page):
    assert "alias" not in shown(page, "Layer") and "has no entry" not in page.text


def test_a_named_tuple_lists_its_fields_with_their_comments(page):
    assert "output – (B, T, d_model)" in shown(page, "Output")
    assert "weights – (B, H, T, S), or None" in shown(page, "Output")
    assert "Alias for field" not in page.text


@pytest.mark.parametrize("line", ["Plain ``literal`` text.", ".. note:: x", "See :math:`x`."])
def test_what_is_written_in_restructuredtext_on_purpose_stays(line):
    assert api_pages.escape(line) == line


def test_every_module_of_the_library_is_in_the_reference():
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "book" / "api").glob("*.md"))
    documented = set(re.findall(r"automodule:: ([\w.]+)", pages))
    library = ROOT / "course_lib"
    found = [path.relative_to(library).with_suffix("").parts for path in library.rglob("*.py")]
    shown = ("torch", "tensorflow", "numpy", "grading", "data")  # by their own tops, with what those import
    modules = {parts for parts in found if parts[0] not in shown or parts[1] in ("training", "kernels")}
    modules |= {parts for parts in found if parts[-1] == "__init__" and len(parts) == 2}
    expected = {".".join(("course_lib", *parts)).removesuffix(".__init__") for parts in modules}
    expected = {name for name in expected if not re.search(r"\._|^course_lib$|\.(torch|tensorflow)\.training$", name)}
    assert expected - documented == set(), "add `.. automodule:: NAME` to a page in book/api"


def page_head(folder, monkeypatch, **environment) -> str:
    for name in ("BOOK_URL", "BOOK_REPOSITORY", "BOOK_BRANCH", "BOOK_HUB"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    book = build(
        folder, [text("Words.")], extensions=("sphinx_book_theme", "site_address"), html_theme="sphinx_book_theme"
    )
    assert book.warnings == ""
    return (book.out / "index.html").read_text(encoding="utf-8")


def test_a_local_build_knows_no_address(tmp_path, monkeypatch):
    html = page_head(tmp_path, monkeypatch)
    assert 'rel="canonical"' not in html and "og:url" not in html and "Repository" not in html
    assert not (tmp_path / "out" / "sitemap.xml").exists()


def test_a_published_build_has_links_to_itself_and_to_its_repository(tmp_path, monkeypatch):
    html = page_head(
        tmp_path, monkeypatch, BOOK_URL="https://example.org/book", BOOK_REPOSITORY="https://github.com/someone/book"
    )
    assert '<link rel="canonical" href="https://example.org/book/index.html"' in html
    assert 'property="og:url" content="https://example.org/book/index.html"' in html
    assert "https://github.com/someone/book" in html
    assert "colab" not in html, "a button that opens a lecture where course_lib cannot be imported"
    assert "https://example.org/book/index.html" in (tmp_path / "out" / "sitemap.xml").read_text(encoding="utf-8")


@pytest.mark.parametrize("variable", ["BOOK_URL", "BOOK_REPOSITORY", "BOOK_HUB"])
def test_a_wrong_address_is_refused(tmp_path, monkeypatch, variable):
    with pytest.raises(SphinxError, match=f"{variable}='somewhere' is no web address"):
        page_head(tmp_path, monkeypatch, **{variable: "somewhere"})


def test_a_hub_opens_each_notebook_at_the_address_that_is_set(tmp_path, monkeypatch):
    repository = "https://github.com/someone/book"
    html = page_head(tmp_path, monkeypatch, BOOK_REPOSITORY=repository, BOOK_HUB="https://hub.example.org/")
    (link,) = re.findall(r'href="(https://hub\.example\.org/[^"]*)"', html)
    assert link.startswith("https://hub.example.org/hub/user-redirect/git-pull?repo=https%3A//github.com/someone/book")
    assert "index.ipynb" in link and "branch=main" in link
    with pytest.raises(SphinxError, match="BOOK_HUB needs BOOK_REPOSITORY"):
        page_head(tmp_path, monkeypatch, BOOK_HUB="https://hub.example.org")
