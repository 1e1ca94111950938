"""Sphinx extension: figures that answer, in the reader's page; in some of them the course's own models run.

``{live-figure} NAME`` in a page, or ``![...](live/NAME.svg)`` in a lecture, shows a drawing of ``book/draw_live.py``.
With JavaScript it comes to life (``book/_static/live``): the reader types or drags, and the formula or a model answers.
The build writes the models' weights (``book/pack_weights.py``) beside the scripts, unless they stand there; a page
loads them when a reader first touches a figure that asks one. A page has the scripts of its own figures and no others.
"""

import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).parents[1]))
import pack_weights

CHECKPOINT = {"translator": "translator-es-en", "beam": "translator-es-en", "heads": "bert-en", "blank": "bert-en"}
"""The checkpoint that a figure asks, by the figure's name."""

PLAIN = ("scale", "steps", "dictionary", "masks", "clocks")
"""The figures that load no model: what they compute is a formula, and of one a head of attention that it trains."""

LEARNED_FROM = {
    "translator-es-en": "sentences of Tatoeba, CC BY 2.0 FR",
    "bert-en": "articles of Wikipedia, CC BY-SA 3.0",
}
"""What a checkpoint learned from, and its licence; that of the weights is in `pack_weights.LICENCES`."""
LICENCES_PAGE = "book/data-and-licences"

NAMES = (*CHECKPOINT, *PLAIN)
STILLS = "notebooks/live"


class LiveFigure(SphinxDirective):
    """``{live-figure} NAME``, with one of `NAMES`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name not in NAMES:
            raise self.error(f"There is no live figure {name!r}; choose {', '.join(NAMES)}.")
        return [nodes.image(uri=f"/{STILLS}/{name}.svg", alt=f"The live figure {name}, as it begins.")]


class BringToLife(SphinxPostTransform):
    """Put the drawings of live figures into the page, in an element that the scripts find."""

    default_priority = 400
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for image in list(self.document.findall(nodes.image)):
            file = Path(self.env.srcdir, image["uri"])
            name = file.stem
            if file.parent.name == "live" and name in NAMES and file.is_file():
                size = 0 if name in PLAIN else (weights_of(self.app) / f"{CHECKPOINT[name]}.js").stat().st_size
                page = self.app.builder.get_relative_uri(self.env.docname, LICENCES_PAGE)
                html = element(name, file.read_text(encoding="utf-8"), size, page)
                image.replace_self(nodes.raw("", html, format="html"))


def element(name: str, drawing: str, size: int, licences: str) -> str:
    """A live figure as HTML, before it lives: the drawing, and of its model the licence and what the scripts must know.

    Parameters
    ----------
    name : one of `NAMES`
    drawing : the SVG
    size : of the file of weights, in bytes; of no account where there is no model
    licences : the address of the page on licences
    """
    if name in PLAIN:
        return f'<div class="live-figure" data-live="{name}">{drawing}</div>'
    checkpoint = CHECKPOINT[name]
    licence = (
        f'<p class="live-licence">Weights: {pack_weights.LICENCES[checkpoint]}; they learned from '
        f'{LEARNED_FROM[checkpoint]}. See <a href="{licences}">data sets and checkpoints</a>.</p>'
    )
    facts = {"live": name, "checkpoint": checkpoint, "megabytes": f"{size / 1e6:.1f}"}
    attributes = " ".join(f'data-{key}="{value}"' for key, value in facts.items())
    return f'<div class="live-figure" {attributes}>{drawing}{licence}</div>'


def scripts(names: list[str]) -> list[str]:
    """The scripts of a page with these figures, in the order in which they are loaded."""
    shared = ["live", "figures/controls"]
    shared += ["figures/parts"] if set(names) & set(CHECKPOINT) else []
    shared += ["figures/numbers"] if set(names) & set(PLAIN) else []
    return [*shared, *(f"figures/{name}" for name in dict.fromkeys(names)), "figures/start"]


def weights_of(app: Sphinx) -> Path:
    return Path(app.outdir, "_static", "live", "weights")


def write_weights(app: Sphinx) -> None:
    """Write the weights for the pages; it takes a second or two, and none when they stand there."""
    if app.builder.format == "html":
        pack_weights.write(weights_of(app))


def add_scripts(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """The scripts and the style of live figures, on pages that have one."""
    names = re.findall(r'<div class="live-figure" data-live="([\w-]+)"', context.get("body", ""))
    if names:
        app.add_css_file("live/live.css")
        app.add_css_file("live/controls.css")
        for name in scripts(names):
            app.add_js_file(f"live/{name}.js", defer="defer")


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("live-figure", LiveFigure)
    app.add_post_transform(BringToLife)
    app.connect("builder-inited", write_weights)
    app.connect("html-page-context", add_scripts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
