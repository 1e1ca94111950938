"""Sphinx extension: a section "For the curious: ..." is folded away; its heading opens it.

What interests the specialist stands in the lecture and not in the reader's way. The heading stays in the contents;
JupyterLab collapses it by the metadata of its cell.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

HEADING = "For the curious"


class FoldCurious(SphinxPostTransform):
    """Put such a section into <details>, with its heading as the summary."""

    default_priority = 400  # when the contents, which take a section's first node for its title, are collected
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for section in list(self.document.findall(nodes.section)):
            title = section.next_node(nodes.title, descend=True)
            if title is None or title.parent is not section or not title.astext().startswith(HEADING):
                continue
            place = section.index(title)
            section.insert(place + 1, html("</summary>"))
            section.insert(place, html('<details class="curious"><summary>'))
            section.append(html("</details>"))


def html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def setup(app: Sphinx) -> dict[str, object]:
    app.add_post_transform(FoldCurious)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
