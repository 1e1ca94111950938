"""Sphinx extension: figures in which the course's own models run, in the reader's page.

``{live-figure} NAME`` in a page, or ``![...](live/NAME.svg)`` in a lecture, shows a drawing of ``book/draw_live.py``.
With JavaScript it comes to life (``book/_static/live``): the reader types, and a model answers. The build writes
the models' weights (``book/pack_weights.py``) beside the scripts, unless they stand there; a page loads them when a
reader first touches a figure.
"""

import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).parents[1]))
import pack_weights

CHECKPOINT = {"translator": "translator-es-en", "heads": "bert-en", "blank": "bert-en"}
"""The checkpoint that each figure asks, by the figure's name."""

LEARNED_FROM = {
    "translator-es-en": "sentences of Tatoeba, CC BY 2.0 FR",
    "bert-en": "articles of Wikipedia, CC BY-SA 3.0",
}
"""What a checkpoint learned from, and its licence; that of the weights is in `pack_weights.LICENCES`."""
LICENCES_PAGE = "book/data-and-licences"

SCRIPTS = ("live", "figures/parts", "figures/translator", "figures/heads", "figures/blank", "figures/start")
STILLS = "notebooks/live"


class LiveFigure(SphinxDirective):
    """``{live-figure} NAME``, with one of the names of `CHECKPOINT`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name not in CHECKPOINT:
            raise self.error(f"There is no live figure {name!r}; choose {', '.join(CHECKPOINT)}.")
        return [nodes.image(uri=f"/{STILLS}/{name}.svg", alt=f"The live figure {name}, as it begins.")]


class BringToLife(SphinxPostTransform):
    """Put the drawings of live figures into the page, in an element that the scripts find."""

    default_priority = 400
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for image in list(self.document.findall(nodes.image)):
            file = Path(self.env.srcdir, image["uri"])
            if file.parent.name == "live" and file.stem in CHECKPOINT and file.is_file():
                size = (weights_of(self.app) / f"{CHECKPOINT[file.stem]}.js").stat().st_size
                page = self.app.builder.get_relative_uri(self.env.docname, LICENCES_PAGE)
                html = element(file.stem, file.read_text(encoding="utf-8"), size, page)
                image.replace_self(nodes.raw("", html, format="html"))


def element(name: str, drawing: str, size: int, licences: str) -> str:
    """A live figure as HTML, before it lives: the drawing, the licence, and what the scripts need to know.

    Parameters
    ----------
    name : one of `CHECKPOINT`
    drawing : the SVG
    size : of the file of weights, in bytes
    licences : the address of the page on licences
    """
    checkpoint = CHECKPOINT[name]
    licence = (
        f'<p class="live-licence">Weights: {pack_weights.LICENCES[checkpoint]}; they learned from '
        f'{LEARNED_FROM[checkpoint]}. See <a href="{licences}">data sets and checkpoints</a>.</p>'
    )
    facts = {"live": name, "checkpoint": checkpoint, "megabytes": f"{size / 1e6:.1f}"}
    attributes = " ".join(f'data-{key}="{value}"' for key, value in facts.items())
    return f'<div class="live-figure" {attributes}>{drawing}{licence}</div>'


def weights_of(app: Sphinx) -> Path:
    return Path(app.outdir, "_static", "live", "weights")


def write_weights(app: Sphinx) -> None:
    """Write the weights for the pages; it takes a second or two, and none when they stand there."""
    if app.builder.format == "html":
        pack_weights.write(weights_of(app))


def add_scripts(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """The scripts and the style of live figures, on pages that have one."""
    if 'class="live-figure"' in context.get("body", ""):
        app.add_css_file("live/live.css")
        for name in SCRIPTS:
            app.add_js_file(f"live/{name}.js", defer="defer")


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("live-figure", LiveFigure)
    app.add_post_transform(BringToLife)
    app.connect("builder-inited", write_weights)
    app.connect("html-page-context", add_scripts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
