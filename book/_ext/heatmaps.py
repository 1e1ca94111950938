"""Sphinx extension: figures whose colours are a scale keep them on a dark page.

custom.css turns the light of Matplotlib's figures round in dark mode, so that lines stand on the page's own ground. A
heatmap would say the opposite then: what the text calls bright would be dark. Its figure gets a class.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

DRAWN = re.compile(r"\b(?:heatmap|head_grid|imshow|matshow|pcolormesh|pcolor|contourf)\(")


class KeepScales(SphinxPostTransform):
    """Mark the figures of cells that draw heatmaps."""

    default_priority = 390
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for cell in self.document.findall(nodes.container):
            if cell.get("nb_element") != "cell_code":
                continue
            source = cell.next_node(nodes.literal_block)
            if source is not None and DRAWN.search(source.astext()):
                for image in cell.findall(nodes.image):
                    image["classes"].append("colour-scale")


def setup(app: Sphinx) -> dict[str, object]:
    app.add_post_transform(KeepScales)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
