"""Sphinx extension: a number that the prose quotes from a cell says what computed it, when pointed at.

Lectures write `0.83<!--name-->`, and a cell keeps the number by `course_lib.lecture.show.claims(name=...)`. Here the
number gets a title: its value, its interval, and what computed it. A title asks for a mouse; `cards.js` makes a card of
it, for a touch and a keyboard as well. The cells' lines that keep claims are machinery and are not shown.
"""

import re
from html import escape

import nbformat
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

CLAIM = "application/vnd.attention-course.claim+json"  # as in course_lib.lecture.show
NAME = re.compile(r"<!--\s*(\w+)\s*-->")
HEADING = re.compile(r"^###? (.+)$", re.MULTILINE)
NUMBER = re.compile(r"[-\u2212]?\d[\d,]*(?:\.\d+)?\s?%?$")
MACHINERY = re.compile(r"^claims\((?:[^()]|\([^()]*\))*\)\n?", re.MULTILINE)


def kept(path: str) -> dict[str, dict]:
    """The claims that the cells of a notebook keep, by their names, each with the `section` that its cell stands in."""
    found, section = {}, ""
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown" and (headings := HEADING.findall(cell.source)):
            section = re.sub(r"[*`$]", "", headings[-1])  # a card shows plain text
        for output in cell.get("outputs", []):
            if claim := output.get("data", {}).get(CLAIM):
                found[claim["name"]] = {**claim, "section": section}
    return found


def title(claim: dict, place: str = "this page") -> str:
    """What is said on hover of a number whose cell stands in `place`."""
    interval = " ({} to {})".format(*map(_short, claim["interval"])) if claim.get("interval") else ""
    # a cell may only read what a recorded run computed: without a word of its own, no more is said than where it is
    where = f"a cell of {place}, section “{claim['section']}”" if claim.get("section") else f"a cell of {place}"
    how = f"computed by {claim['how']}" if claim.get("how") else f"from {where}"
    if claim.get("how") and claim.get("section") and not claim["how"].startswith("python "):
        how += f", in {where}"  # a command can be run anywhere
    return f"{_short(claim['value'])}{interval}, {how}"


def _short(number: str) -> str:
    """A number as a cell keeps it, to four digits: one or two more than the prose quotes."""
    if re.fullmatch(r"-?\d+", number):  # it was counted
        return number.replace("-", "\u2212")
    return f"{float(number):.4g}".replace("-", "\u2212")


class QuotedNumbers(SphinxTransform):
    """Put each quoted number into a span with its title; drop lines that keep claims, and outputs of nothing else."""

    default_priority = 385  # before cells are folded and put into tabs

    def apply(self, **kwargs: object) -> None:
        path = str(self.env.doc2path(self.env.docname))
        if not path.endswith(".ipynb"):
            return
        for output in list(self.document.findall(_is_output)):
            if not output.children:  # it kept nothing but claims
                output.parent.remove(output)
        for cell in list(self.document.findall(_is_cell)):
            for source in list(cell.children[0].findall(nodes.literal_block)):
                if "claims(" in source.astext():
                    _without_machinery(source)
            if not cell.astext().strip():
                cell.parent.remove(cell)
        claims = kept(path)
        for comment in list(self.document.findall(nodes.raw)):
            name = NAME.fullmatch(comment.astext().strip())
            if name and name[1] in claims:
                _explain(comment, title(claims[name[1]]))


def _is_output(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code_output"


def _is_cell(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code" and bool(node.children)


def _without_machinery(source: nodes.literal_block) -> None:
    text = MACHINERY.sub("", source.astext()).rstrip("\n")
    source.rawsource = text
    source.children = [nodes.Text(text)]
    source.children[0].parent = source


def _explain(comment: nodes.raw, words: str) -> None:
    """The number before a comment, a text or a part of one, or a whole emphasised one, gets the words as its title."""
    parent = comment.parent
    place = parent.index(comment)
    while place and isinstance(parent[place - 1], nodes.Text) and not parent[place - 1].astext():
        del parent[place - 1]  # MyST leaves one behind emphasised words
        place -= 1
    before = parent[place - 1] if place else None
    start = nodes.raw("", f'<span class="claim" title="{escape(words)}">', format="html")
    end = nodes.raw("", "</span>", format="html")
    if isinstance(before, nodes.Text):
        number = NUMBER.search(before.astext())
        if number is None:
            return
        rest = before.astext()[: number.start()]
        parent[place - 1 : place + 1] = [nodes.Text(rest), start, nodes.Text(number[0]), end]
    elif isinstance(before, nodes.strong | nodes.emphasis):
        parent[place - 1 : place + 1] = [start, before, end]


def setup(app: Sphinx) -> dict[str, object]:
    app.add_transform(QuotedNumbers)
    app.add_js_file("cards.js", defer="defer")  # once, though the glossary's terms ask for it, too
    app.config.suppress_warnings.append("mystnb.unknown_mime_type")  # tests/lectures hold what kinds there are
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
