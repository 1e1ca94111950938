"""Sphinx extension: the lectures' diagrams are part of the page, so that they follow light and dark mode.

Markdown such as ``![alt](diagrams/recurrence.svg)`` shows a file everywhere. In the book, the file's own SVG takes the
place of the image: its text can be selected, its colours are variables that custom.css sets, and its own label, which
says the same as the Markdown's, is the only one that is read aloud.
"""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform


class InlineDiagrams(SphinxPostTransform):
    """Replace the images from a folder ``diagrams`` by the SVG in their files."""

    default_priority = 400
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for image in list(self.document.findall(nodes.image)):
            file = Path(self.env.srcdir, image["uri"])
            if file.parent.name == "diagrams" and file.suffix == ".svg" and file.is_file():
                image.replace_self(nodes.raw("", file.read_text(encoding="utf-8"), format="html"))


def setup(app: Sphinx) -> dict[str, object]:
    app.add_post_transform(InlineDiagrams)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
