"""Sphinx extension: each figure of a lecture has a number under it, which is a link to it.

A figure is a picture in the text, a live figure, or what a cell has drawn. The numbers are those of the lecture and of
the figure in it, 21.1, 21.2 and so on, counted when the page is written, in the order of the page with its solutions;
nothing is written into the notebooks.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

LECTURE = re.compile(r"notebooks/(\d\d)-")


class NumberFigures(SphinxPostTransform):
    """Number the pictures of a lecture in their order."""

    default_priority = 390  # after one form of each output is chosen, before drawings are put into the page
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        if lecture := LECTURE.match(self.env.docname):
            for count, image in enumerate(list(self.document.findall(nodes.image)), start=1):
                number = f"{lecture[1]}.{count}"
                anchor = f"figure-{number.replace('.', '-')}"
                link = f'<a class="figure-number" id="{anchor}" href="#{anchor}">Figure {number}</a>'
                image.replace_self([image, nodes.raw("", link, format="html")])


def setup(app: Sphinx) -> dict[str, object]:
    app.add_post_transform(NumberFigures)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
