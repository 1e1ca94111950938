"""Sphinx extension: each displayed formula of a lecture has a number, which is a link to it.

The numbers are those of the lecture and of the formula in it, 21.1, 21.2 and so on, counted when the book is built;
nothing is written into the notebooks. They stand in Sphinx's own domain of formulas, so that ``{eq}`21.1` `` is a link,
too. A formula with a label of its own keeps it, and the number that Sphinx gives it.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform

LECTURE = re.compile(r"notebooks/(\d\d)-")


def place(label: str) -> str:
    """The anchor of a formula with a label, as Sphinx's own references to it expect."""
    return nodes.make_id(f"equation-{label}")


def printed(node: nodes.Node | None) -> bool:
    """Whether a node stands in a cell of code: of what that gives out, in several forms, one is chosen later."""
    while node is not None:
        if isinstance(node, nodes.container) and node.get("nb_element") == "cell_code":
            return True
        node = node.parent
    return False


class NumberEquations(SphinxTransform):
    """Number the displayed formulas of a lecture in their order."""

    default_priority = 380  # before cells are folded and put into tabs

    def apply(self, **kwargs: object) -> None:
        lecture = LECTURE.match(self.env.docname)
        if lecture is None:
            return
        known = self.env.get_domain("math").equations  # label -> (document, number)
        unnumbered = (node for node in self.document.findall(nodes.math_block) if not node.get("label"))
        blocks = (node for node in unnumbered if not node.get("nowrap") and not printed(node))
        for count, block in enumerate(blocks, start=1):
            number = f"{lecture[1]}.{count}"
            block["number"] = block["label"] = number
            block["ids"].append(place(number))
            known[number] = (self.env.docname, number)


class LinkEquations(SphinxPostTransform):
    """Put the number beside its formula as a link; the theme hides the sign that Sphinx would put behind it."""

    default_priority = 400
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for block in list(self.document.findall(nodes.math_block)):
            number = block.get("number")
            if not number:
                continue
            anchor = block["ids"][0] if block["ids"] else place(block["label"])
            link = f'<a class="eqno" href="#{anchor}" aria-label="Formula ({number})">({number})</a>'
            frame = nodes.container(classes=["equation"], ids=[anchor])
            block.replace_self(frame)
            block["number"], block["ids"] = None, []
            frame += [block, nodes.raw("", link, format="html")]


def setup(app: Sphinx) -> dict[str, object]:
    app.config.math_numfig = False  # else Sphinx would count the figures' way, and with other numbers
    app.add_transform(NumberEquations)
    app.add_post_transform(LinkEquations)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
