"""Markdown as HTML in which formulas are MathML, and which a narrow screen and a screen reader can show."""

import functools
import html
import itertools
import re
from xml.etree import ElementTree

from course_lib._extras import needed

with needed("lab"):
    from latex2mathml.converter import convert_to_element
    from nbconvert.filters.markdown_mistune import InvalidNotebook, IPythonRenderer, MarkdownWithMath

LONG_TEX = 2000  # characters: what is longer than any formula stays as it is
# So does what can say a thing many times in few letters, as often as there are atoms: to convert it might never end.
REPEATS = re.compile(r"\\(?:def|let|newcommand|renewcommand|newenvironment|DeclareMathOperator|sideset)(?![a-zA-Z])")
LONG_LINE, LONGER_LINE = 30, 120  # characters of TeX: what may be wider than a phone, and than a page
LIMITS = "max", "min"  # below which, in a line of its own, stands over what
OPENING = "(", "[", "{"
UNSAFE = "class", "href", "id", "style"  # attributes that TeX can set
ARG = re.compile(r"\\arg(?![a-zA-Z])")
NUMBERED = re.compile(r"(?<=\\begin)\{align\}|(?<=\\end)\{align\}")  # which would count from 1 in each formula
ANCHOR = re.compile(r'<a class="anchor-link".*?</a>')
# What a cell gives as text/latex, where it is one formula
LATEX = re.compile(r"(?s)(?P<mark>\$\$?)(?P<tex>[^$]+)(?P=mark)|\\\[(?P<own>.+)\\\]|(?P<environment>\\begin\{.+\})")


@functools.lru_cache(4096)
def mathml(tex: str, display: bool) -> str:
    """A formula as MathML, which browsers show without a network and screen readers read; "" if it cannot be made."""
    if len(tex) > LONG_TEX or REPEATS.search(tex):
        return ""
    try:
        known = ARG.sub(r"\\operatorname{arg}", NUMBERED.sub("{align*}", tex))
        root = convert_to_element(known, display="block" if display else "inline")
        for element in root.iter():
            if element.text:
                # The converter writes characters as references, and escapes nothing of \text{...}.
                element.text = html.unescape(element.text)
                if element.tag == "mtext":
                    element.text = re.sub(r"\\([_%&#$])", r"\1", element.text)
                elif element.text.startswith("\\"):
                    return ""  # a command that it does not know
            for name in UNSAFE:
                element.attrib.pop(name, None)
            if display and element.tag == "msub" and element[0].text in LIMITS:
                element.tag = "munder"
        for element in root.iter():
            _set_apart(element)
        root.attrib.pop("xmlns", None)  # HTML needs none, and ElementTree would make a prefix of it
        return ElementTree.tostring(root, encoding="unicode")
    except Exception:  # whatever it is: students write formulas, too
        return ""


def _set_apart(row: ElementTree.Element) -> None:
    """Let names of functions stand as TeX sets them: a thin space from a letter or a number, none from a bracket."""
    for each, following in itertools.zip_longest(row, row[1:]):
        if each.tag in ("mi", "mo") and each.text and len(each.text) > 1 and each.text.isalpha():
            each.tag = "mo"
            closed = following is None or following.tag == "mspace" or following.text in OPENING
            each.attrib.update(lspace=".167em", rspace="0" if closed else ".167em")


def formula(tex: str, display: bool) -> str:
    """A formula in a page: as MathML, or as the TeX it is."""
    made = mathml(tex.strip(), display)
    if not made:
        mark = "$$" if display else "$"
        return f"<code>{html.escape(mark + tex + mark, quote=False)}</code>"
    if display:
        return f'<span class="formula" tabindex="0" role="group" aria-label="Formula">{made}</span>'
    if len(tex) <= LONG_LINE:
        return made
    return f'<span class="{"long" if len(tex) <= LONGER_LINE else "longer"}" tabindex="0">{made}</span>'


def shown_latex(text: str) -> str:
    """The output of a cell that is LaTeX."""
    found = LATEX.fullmatch(text.strip())
    if not found:
        return html.escape(text)
    return formula(found["tex"] or found["own"] or found["environment"], found["mark"] != "$")


class Renderer(IPythonRenderer):
    """nbconvert's, with formulas as MathML, tables that scroll, and headings below the page's own."""

    def block_math(self, body: str) -> str:
        """A formula in a line of its own."""
        return formula(body, True)

    def inline_math(self, body: str) -> str:
        """A formula in a line."""
        return formula(body, False)

    def latex_environment(self, name: str, body: str) -> str:
        """A formula that is an environment."""
        return formula(f"\\begin{{{name}}}{body}\\end{{{name}}}", True)

    def block_code(self, code: str, info: str | None = None) -> str:
        """Code between fences, which scrolls."""
        return super().block_code(code, info).replace("<pre", '<pre tabindex="0"', 1)

    def block_mermaidjs(self, code: str) -> str:
        """A diagram: as its source, since no script may draw it."""
        return self.block_code(code)

    def _embed_image_or_attachment(self, src: str) -> str:
        try:
            return super()._embed_image_or_attachment(src)
        except InvalidNotebook:  # copied from another cell, whose it is: nobody loses the page for it
            return src

    def heading(self, text: str, level: int, **attrs) -> str:
        """A heading, which can be linked to, without a link to itself: a screen reader would name it each time."""
        return ANCHOR.sub("", super().heading(text, min(level + 1, 6), **attrs))

    def table(self, text: str) -> str:
        """A table."""
        return f'<div class="wide" tabindex="0" role="group" aria-label="Table"><table>{text}</table></div>'


@functools.lru_cache(1024)
def headings(source: str) -> tuple[str, ...]:
    """The headings of a Markdown cell, as text."""
    tokens = MarkdownWithMath(renderer=None)(source)
    return tuple(_text(token).strip() for token in tokens if token["type"] == "heading")


def _text(token: dict) -> str:
    if "children" in token:
        return "".join(map(_text, token["children"]))
    if token["type"] in ("softbreak", "linebreak"):
        return " "
    if token["type"] == "inline_html":
        return ""
    return html.unescape(token.get("raw", "")) if token["type"] == "text" else token.get("raw", "")
