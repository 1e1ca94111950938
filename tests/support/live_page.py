"""A page with live figures and nothing around them, which a browser opens from the file system as from a server."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np

from tests.support.tiny_book import EXTENSIONS

sys.path.insert(0, str(EXTENSIONS))
sys.path.insert(0, str(EXTENSIONS.parent))
import draw_live
import live_figures
import pack_weights

STATIC = EXTENSIONS.parent / "_static"
FIGURES = tuple(live_figures.CHECKPOINT)
PLAIN = live_figures.PLAIN


def write_page(folder: Path, figures=FIGURES) -> Path:
    """Write index.html and what it loads into a folder, with the weights if a figure asks them; return its path."""
    static = folder / "_static"
    shutil.copytree(STATIC / "live", static / "live")
    shutil.copy(STATIC / "custom.css", static)
    asked = set(figures) - set(PLAIN)
    packed = pack_weights.write(static / "live" / "weights") if asked else []
    sizes = {path.stem: path.stat().st_size for path in packed}
    drawings = {name: (draw_live.FOLDER / f"{name}.svg").read_text(encoding="utf-8") for name in figures}
    shown = [
        live_figures.element(name, drawing, sizes.get(live_figures.CHECKPOINT.get(name), 0), "data-and-licences.html")
        for name, drawing in drawings.items()
    ]
    head = [f'<script src="_static/live/{name}.js" defer></script>' for name in live_figures.scripts(figures)]
    head += [f'<link rel="stylesheet" href="_static/{name}.css">' for name in ("custom", "live/live", "live/controls")]
    html = ["<!doctype html>", '<html lang="en" data-theme="light">', '<head><meta charset="utf-8">']
    html += ["<title>Live figures</title>", '<link rel="icon" href="data:,">', *head, "</head>"]
    html += ['<body class="bd-article">', *shown, "</body>", "</html>"]
    page = folder / "index.html"
    page.write_text("\n".join(html), encoding="utf-8")
    return page


# Loads every module of the models into the page itself, where a test can call them.
LOAD_MODULES = "() => Promise.all(live.modules.map(name => live.load(`${name}.js`)))"

CALL = """async (given) => {
  const use = live.use;
  const tensors = use("tensors");
  const matrix = (rows) => tensors.matrix(rows.length, rows[0].length, Float32Array.from(rows.flat()));
  const asRows = (value) => (Array.isArray(value[0]) ? value : [value]);
  const weights = (lists) => new Map(Object.entries(lists).map(([name, value]) => [name, matrix(asRows(value))]));
  const lists = (x) => Array.from({ length: x.rows }, (_, i) => Array.from(tensors.row(x, i)));
  return (async () => { BODY })();
}"""


def call(page, body: str, **arguments):
    """What a function body of JavaScript returns, with NumPy arrays among its arguments; matrices come back as lists.

    In it stand `use` of the page's modules, `given` (the arguments), `matrix(rows)` and `weights(lists)` from nested
    lists, and `lists(x)` the other way round.
    """
    given = json.loads(json.dumps(arguments, default=lambda value: np.asarray(value).tolist()))
    return page.evaluate(CALL.replace("BODY", body), given)
