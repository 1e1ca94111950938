"""Build a Sphinx project of a few notebook cells and read back its HTML."""

import io
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

EXTENSIONS = Path(__file__).parents[2] / "book" / "_ext"
# One pixel, so that a figure can be told from its neighbours by nothing but its metadata.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def code(source: str, *tags: str, printed: str = "", figure: bool = False, **metadata):
    """A code cell with tags; `printed` is its output on stdout, `figure` adds a picture."""
    outputs = [new_output("stream", name="stdout", text=printed)] if printed else []
    if figure:
        outputs.append(new_output("display_data", {"image/png": PIXEL, "text/plain": "<Figure>"}))
    return new_code_cell(source, outputs=outputs, execution_count=1, metadata={"tags": list(tags), **metadata})


def text(source: str, *tags: str):
    """A Markdown cell with tags."""
    return new_markdown_cell(source, metadata={"tags": list(tags)})


@dataclass
class TinyBook:
    """The result of a build: its pages by name and everything Sphinx warned about."""

    out: Path
    warnings: str

    def page(self, name: str = "index") -> BeautifulSoup:
        return BeautifulSoup((self.out / f"{name}.html").read_text(encoding="utf-8"), "html.parser")

    def sets(self, name: str = "index") -> list[dict[str, str]]:
        """The tab sets of a page in order, each as {label: text of the tab}."""
        found = []
        for tab_set in self.page(name).select(".sd-tab-set"):
            labels = tab_set.find_all("label", recursive=False)
            contents = tab_set.find_all("div", class_="sd-tab-content", recursive=False)
            found.append({a.text.strip(): b.text for a, b in zip(labels, contents, strict=True)})
        return found


def build(
    folder: Path, cells: list, *, builder: str = "html", extensions: tuple[str, ...] = (), files=(), **config
) -> TinyBook:
    """Build a book of one notebook with the given cells, after a first cell with the title.

    `files` is a dictionary of the texts that lie beside the notebook, by their paths.
    """
    source, out = folder / "source", folder / "out"
    shutil.rmtree(folder, ignore_errors=True)
    source.mkdir(parents=True)
    notebook = new_notebook(
        cells=[text("# Title"), *cells],
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3"},
            "language_info": {"name": "python", "pygments_lexer": "ipython3"},
        },
    )
    nbformat.write(notebook, source / "index.ipynb")
    for name in files:
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text(files[name], encoding="utf-8")
    settings = {
        "extensions": ["myst_nb", "framework_tabs", "solutions", *extensions],
        "nb_execution_mode": "off",
        "html_theme": "basic",
        "suppress_warnings": ["config.cache"],
        **config,
    }
    if str(EXTENSIONS) not in sys.path:
        sys.path.insert(0, str(EXTENSIONS))
    warnings = io.StringIO()
    with patch_docutils(), docutils_namespace():
        app = Sphinx(
            source,
            None,
            out,
            folder / "doctrees",
            builder,
            settings,
            status=None,
            warning=warnings,
            freshenv=True,
        )
        app.build()
    return TinyBook(out, warnings.getvalue())
