"""Sphinx extension: where a lecture first uses a term of the glossary, the word leads there and shows its sentence.

The terms and their sentences are read from `book/glossary.md`. A term is linked once on a page, in running text: not
in headings, links, code, formulas and emphasised words. A page that sets a term in bold introduces it there, and does
not link it. What appears on hover and focus is made by `cards.js`; without JavaScript the word is a link.
"""

import re
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

GLOSSARY = "book/glossary"
LINKED_IN = "notebooks/"
# Words that the lectures use in their everyday meaning, too.
EVERYDAY = {"alignment", "context", "head", "key", "mask", "query", "token", "value"}
NOT_INSIDE = (nodes.title, nodes.rubric, nodes.reference, nodes.strong, nodes.emphasis, nodes.math, nodes.math_block)
NOT_INSIDE += (nodes.literal, nodes.literal_block)  # code in a sentence, code in a block
NOT_INSIDE += (nodes.raw,)  # HTML, such as that of a term linked before
REFERENCES = "References"


def entries(text: str) -> dict[str, str]:
    """The terms of a glossary in MyST with their definitions, as plain text and without the pointer to the lecture."""
    inside = re.search(r"^```\{glossary\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    found = {}
    for entry in re.split(r"\n\n+", inside[1].strip() if inside else ""):
        term, _, definition = entry.partition("\n")
        words = " ".join(definition.split()).partition(" See {doc}")[0]
        found[term] = words.replace("*", "").replace("`", "")
    return found


def pattern(term: str) -> re.Pattern:
    """A term as a whole word, in the plural and at the beginning of a sentence, too; capitals inside it matter."""
    first = term[0] if term[:2].isupper() else f"[{term[0].upper()}{term[0].lower()}]"
    spaced = re.escape(term[1:]).replace(r"\ ", r"\s+")
    return re.compile(rf"(?<![\w-]){first}{spaced}s?(?![\w-])")


def usable(node: nodes.Text) -> bool:
    """Whether a text is running text of a paragraph or a table."""
    parent = node.parent
    while parent is not None:
        if isinstance(parent, NOT_INSIDE):
            return False
        if isinstance(parent, nodes.container) and parent.get("nb_element") == "cell_code":
            return False
        if isinstance(parent, nodes.container) and "self-check" in parent["classes"]:
            return False  # its answers are pressed to open them
        if isinstance(parent, nodes.section) and parent.next_node(nodes.title).astext() == REFERENCES:
            return False
        parent = parent.parent
    return True


class LinkTerms(SphinxPostTransform):
    """Link the first use of each term on a page."""

    default_priority = 500  # behind what puts cells into tabs and folds
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        if not self.env.docname.startswith(LINKED_IN):
            return
        glossary = Path(self.env.doc2path(GLOSSARY))
        if not glossary.is_file():
            return
        self.env.note_dependency(str(glossary))
        known = entries(glossary.read_text(encoding="utf-8"))
        introduced = " ".join(node.astext() for node in self.document.findall(nodes.strong))
        page = self.app.builder.get_relative_uri(self.env.docname, GLOSSARY)
        places = self.env.get_domain("std").objects  # (kind, name) -> (document, anchor)
        # "multi-head attention" before "attention", so that the longer one is not cut
        for term in sorted(known.keys() - EVERYDAY, key=lambda term: (-len(term), term)):
            if not pattern(term).search(introduced):
                self.link(term, f"{page}#{places['term', term][1]}", known[term])

    def link(self, term: str, address: str, words: str) -> None:
        for text in self.document.findall(nodes.Text):
            match = pattern(term).search(text.astext())
            if match is None or not usable(text):
                continue
            before, after = text.astext()[: match.start()], text.astext()[match.end() :]
            html = f'<a class="term" href="{address}" data-says="{escape(words)}">{escape(match[0])}</a>'
            parts = [nodes.Text(before), nodes.raw("", html, format="html"), nodes.Text(after)]
            place = text.parent.index(text)
            text.parent[place : place + 1] = [part for part in parts if part.astext()]
            return


def setup(app: Sphinx) -> dict[str, object]:
    app.add_post_transform(LinkTerms)
    app.add_js_file("cards.js", defer="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
