"""Sphinx extension: cells that hold the solution of an exercise are folded away behind "Show solution".

A code cell with the tag ``solution`` or ``hide-cell`` is folded, input and output together, and its toggle
says "Show solution". A cell with the tag ``hide-input`` keeps MyST-NB's behaviour (its source is folded,
its output is shown) and its toggle says "Show code", as nb_code_prompt_show in the configuration says. A
label set in the cell's own metadata, ``{"mystnb": {"code_prompt_show": "..."}}``, wins.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

TAGS = ("solution", "hide-cell")


class FoldSolutions(SphinxTransform):
    """Set MyST-NB's own folding attributes on solution cells; its post-transform does the rest."""

    default_priority = 390

    def apply(self, **kwargs: object) -> None:
        for cell in self.document.findall(nodes.container):
            if cell.get("nb_element") != "cell_code":
                continue
            metadata = cell["cell_metadata"]
            if not any(tag in TAGS for tag in metadata.get("tags", [])):
                continue
            own = metadata.get("mystnb", {})
            cell["hide_mode"] = "all"
            cell["classes"].append("solution")
            cell["prompt_show"] = own.get("code_prompt_show", "Show solution")
            cell["prompt_hide"] = own.get("code_prompt_hide", "Hide solution")


def setup(app: Sphinx) -> dict[str, object]:
    app.add_transform(FoldSolutions)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
