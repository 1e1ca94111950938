"""What a student handed in, shown to whoever marks it so that nothing of it acts in their browser.

Formgrader's page may do all that the instructor may: a script in an answer would set marks, and the address of a
picture is enough to ask Jupyter for something. nbgrader and nbconvert show answers and outputs as they are.
"""

import html
import re
import time
import uuid
from collections.abc import Callable

from course_lib._extras import needed

with needed("lab"):
    from jinja2 import pass_context
    from nbconvert.filters.ansi import strip_ansi
    from nbconvert.filters.markdown_mistune import InvalidNotebook, IPythonRenderer, MarkdownWithMath
    from nbconvert.preprocessors.sanitize import SanitizeHTML
    from nbformat import NotebookNode
    from nbgrader.converters import GenerateFeedback
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer
    from traitlets import Any, List, Set, Unicode

TAGS = [
    "abbr", "b", "blockquote", "br", "caption", "center", "cite", "code", "dd", "del", "details", "div", "dl", "dt",
    "em", "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "ins", "kbd", "li", "mark",
    "ol", "p", "pre", "q", "s", "samp", "small", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td",
    "tfoot", "th", "thead", "tr", "tt", "u", "ul", "var",
]  # fmt: skip
ATTRIBUTES = {
    "abbr": ["title"], "img": ["alt", "height", "title", "width"], "ol": ["start"], "table": ["border"],
    "td": ["align", "colspan", "rowspan"], "th": ["align", "colspan", "rowspan"],
}  # fmt: skip
STYLES = ["background-color", "color", "font-style", "font-weight", "text-align", "text-decoration"]
# Of highlighted code and of pandas: by others, and by ids, Formgrader finds its buttons and fields.
CLASSES = re.compile(r"highlight|dataframe|[a-z][a-z0-9]{0,2}")
SIGN = r"%(?!2e|2f|5c)[0-9a-f]{2}"  # in an address; these three would be ".", "/" and "\\"
NAME = rf"(?:[\w-]|{SIGN})(?:[\w. -]|{SIGN})*"
# A file below the notebook. What begins with "/", leads upwards, or has a "?" may be a command to Jupyter.
BELOW = re.compile(rf"{NAME}(?:/{NAME})*", re.IGNORECASE)
INLINE = re.compile(r"data:image/(?:png|jpeg|gif|webp|svg\+xml);base64,[A-Za-z0-9+/=]+")
PANDAS = "<style scoped>"  # how to set a table, which is no part of it
# By these a formula sets attributes. MathJax 2.7.7, with its Safe, leaves addresses of http in them: of a link, and in
# a style of a picture for the mouse, which the page asks for by itself. \require loads what writes formulas of its own.
# Whoever gives one another name, by \let, \def or \newcommand, has to write it: MathJax joins no letters to a name that
# has a backslash, and no \csname is in it. \toggle, \texttip, \unicode and \ref set no address.
SETTING = re.compile(r"\\(?:href|mmlToken|style|class|cssId|bbox|fcolorbox|require|csname)")
MOST = 5000  # signs that begin a tag or a character's name: to read more takes long
# A parser opens these anew in each paragraph for as long as they are not closed, and alike ones three times at most.
VARIED, FEW = re.compile(r"<(?:b|code|em|i|s|small|strong|tt|u)[\s/]", re.IGNORECASE), 50
# A parser compares each name of an attribute with all before it in the tag; any word may turn out to be such a name.
WORD, COMPARED = re.compile(r"[^\s/>=]+"), 50_000_000
# Characters of Markdown, and signs in it from which one without its end is looked for to the end of the text.
LONGEST, OPENERS, MANY = 100_000, re.compile(r"\[|\\begin\{|\\\\\("), 500
PYTHON = {"python", "python3", "py", "py3", "ipython", "ipython3", "ipython2"}  # as a block of code is said to be
# Letters of code that get colours, and seconds for those of a page. Those of Python take half a second at worst.
# IPython's take seven for as many blanks and line ends, and other languages may take for ever: these get none.
COLOURED, SECONDS = 5000, 2.0
ESCAPES, LONG_ESCAPE = 2000, re.compile("\x1b\\[[^@-~\n]{50}")  # of colours in a text: to follow more takes long
SHOWN = {"text/plain", "text/latex", "text/markdown", "image/svg+xml", "image/png", "image/jpeg"}
PEOPLE = "student", "first_name", "last_name", "notebook_path"  # which Formgrader's templates do not escape


def as_text(source: str) -> str:
    """A text as HTML that shows it as it is."""
    return _without_brackets(f"<pre>{html.escape(source)}</pre>")


def _sets(text: str) -> bool:
    """Whether a formula may set attributes; a browser leaves out zeros."""
    return SETTING.search(text.replace("\0", "")) is not None


def _soon(text: str) -> str:
    """A text of which the colours are read soon, without them if they would not be."""
    if text.count("\x1b") > ESCAPES or LONG_ESCAPE.search(text):
        return strip_ansi(text).replace("\x1b", "")  # what was taken out may have stood inside another
    return text


def _without_brackets(page: str) -> str:
    """HTML that looks the same. The page's templates look behind each "[" for the end of a link, to the line's end."""
    return page.replace("[", "&#91;")


def _is_kept(tag: str, name: str, value: str) -> bool:
    if name == "class":
        return CLASSES.fullmatch(value) is not None
    if name == "src":
        return BELOW.fullmatch(value) is not None
    return name == "style" or name in ATTRIBUTES.get(tag, ())


class Aside:
    """Pictures that are written in a text, while something reads it that would drop them, or take long."""

    def __init__(self):
        self._mark, self._pictures = f"m{uuid.uuid4().hex}n", []

    def put(self, text: str) -> str:
        """The text with marks for its pictures."""
        return INLINE.sub(self._put, text)

    def _put(self, found: re.Match) -> str:
        self._pictures.append(found[0])
        return f"{self._mark}{len(self._pictures) - 1}e"

    def back(self, text: str) -> str:
        """What was made of it, with the pictures."""
        return re.sub(f"{self._mark}([0-9]+)e", lambda found: self._pictures[int(found[1])], text)


class Renderer(IPythonRenderer):
    """nbconvert's, where a link is its text and its address: to follow one that leads to Jupyter may be a command.

    `coloured` is what makes HTML of Python.
    """

    def __init__(self, coloured: Callable[[str], str], **settings):
        super().__init__(**settings)
        self._coloured = coloured

    def block_code(self, code: str, info: str | None = None) -> str:
        """A block of code, with colours if it is Python."""
        language, *_ = *(info or "").lower().split(), ""
        if language in PYTHON:
            return self._coloured(code)
        return f"<pre><code>{html.escape(code, quote=False)}</code></pre>\n"

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """A link."""
        return f"{text} (<code>{html.escape(url)}</code>)"

    def _embed_image_or_attachment(self, src: str) -> str:
        try:
            return super()._embed_image_or_attachment(src)
        except (InvalidNotebook, StopIteration):  # another cell's, or an empty one: nobody loses the page for it
            return src


class Markdown(MarkdownWithMath):
    """nbconvert's, without what makes links of addresses and check boxes of brackets."""

    DEFAULT_PLUGINS = ("strikethrough", "table", "def_list")


class Harmless(SanitizeHTML):
    """nbconvert's sanitiser, for Markdown as it is rendered, and for all kinds of outputs.

    Use it in nbgrader_config.py, in `HTMLExporter.preprocessors`, whose settings Formgrader's page has. Pages of
    feedback have them, too, and stay as they are: students open those themselves. They are known by who makes them, for
    the name of the template may be any: what a course sets is Formgrader's, too.
    """

    tags = List(Unicode(), TAGS, help="HTML that is shown as such; other is shown as text.").tag(config=True)
    attributes = Any(_is_kept, help="Which attributes it may have.").tag(config=True)
    styles = List(Unicode(), STYLES, help="What a style may set.").tag(config=True)
    safe_output_keys = Set(SHOWN, help="What is shown of an output as it is.").tag(config=True)
    sanitized_output_types = Set({"text/html"}, help="What is shown of an output as HTML.").tag(config=True)

    _spent = 0.0  # seconds, on the colours of this page

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """A notebook and the names beside it."""
        if isinstance(getattr(self.parent, "parent", None), GenerateFeedback):
            return nb, resources
        if self.parent is not None:
            self.parent.register_filter("markdown2html", self.markdown2html)
            self.parent.register_filter("highlight_code", self.highlight_code)
        self._spent = 0.0
        for name in PEOPLE:
            if name in resources:  # MathJax reads them, too
                resources[name] = html.escape(str(resources[name] or "")).replace("\\", "/")
        nb.metadata.pop("widgets", None)
        return super().preprocess(nb, resources)

    def preprocess_cell(self, cell: NotebookNode, resources: dict, cell_index: int) -> tuple[NotebookNode, dict]:
        """One cell: its outputs, and of its metadata what nbgrader's fields need. Others are classes in the page."""
        about = cell.metadata.get("nbgrader")
        name = about.get("grade_id", "") if isinstance(about, dict) else None
        is_kept = isinstance(name, str) and html.escape(name) == name
        cell.metadata = NotebookNode({"nbgrader": about} if is_kept else {})
        if cell.cell_type == "raw":
            cell.source = as_text(cell.source)
        if cell.cell_type == "code":
            cell.outputs = self.sanitize_code_outputs(cell.outputs)
        return cell, resources

    def sanitize_code_outputs(self, outputs: list[NotebookNode]) -> list[NotebookNode]:
        """The outputs of a cell; of one that nothing is left of, its kind."""
        for output in outputs:
            output.pop("svg_filename", None)  # an address
            if "text" in output:
                output.text = _soon(str(output.text))
            if isinstance(output.get("traceback"), list):
                output.traceback = [_soon(str(line)) for line in output.traceback]
            if "data" in output:  # a kernel may send anything, and nobody loses the page for it
                output.data = NotebookNode({kind: str(shown) for kind, shown in output.data.items()})
        kinds = [", ".join(output.get("data", ())) for output in outputs]
        for output, kind in zip(super().sanitize_code_outputs(outputs), kinds, strict=True):
            if "data" in output:
                if _sets(output.data.get("text/latex", "")):
                    output.data["text/plain"] = output.data.pop("text/latex")
                if not output.data:
                    output.data["text/plain"] = f"({kind}: not shown here)"
                if "text/plain" in output.data:
                    output.data["text/plain"] = _soon(output.data["text/plain"])
                sizes = [(of, output.metadata.get(of)) for of in ("image/png", "image/jpeg")]
                output.metadata = NotebookNode({of: _numbers(size) for of, size in sizes if isinstance(size, dict)})
        return outputs

    def sanitize_html_tags(self, html_str: str) -> str:
        """HTML of which nothing acts. Where that cannot be said soon, or a formula sets attributes, it is text."""
        made = self._sanitized(html_str)
        return as_text(html_str) if made is None else made

    def _sanitized(self, html_str: str) -> str | None:
        before, opening, rest = html_str.partition(PANDAS)
        _, closing, after = rest.partition("</style>")
        given = before + after if closing else html_str
        if given.count("<") + given.count("&") > MOST or len(VARIED.findall(given)) > FEW:
            return None
        aside = Aside()
        given = aside.put(given)  # bleach would drop these addresses
        words = WORD.findall(given) if "<" in given else []
        if len(words) * len(set(words)) > COMPARED:
            return None
        try:
            made = super().sanitize_html_tags(given)
        except Exception:  # such as one for what is nested too deeply
            return None
        return None if _sets(html.unescape(made)) else aside.back(made)

    def highlight_code(self, source: str, language: str | None = None, metadata: dict | None = None) -> str:
        """The code of a cell as HTML; it is Python, whatever the student's notebook says."""
        return self._coloured(source)

    def _coloured(self, code: str) -> str:
        if len(code) > COLOURED or self._spent > SECONDS:
            return f'<div class="highlight"><pre>{html.escape(code, quote=False)}</pre></div>\n'
        begun = time.process_time()
        made = highlight(code, PythonLexer(), HtmlFormatter())
        self._spent += time.process_time() - begun
        return made

    @pass_context
    def markdown2html(self, context, source: str) -> str:
        """Markdown as HTML; as it was written where that would take long, or where a formula sets attributes."""
        aside = Aside()
        text = aside.put(source)
        if len(text) > LONGEST or len(OPENERS.findall(text)) > MANY:
            return as_text(source)
        attachments = context.get("cell", {}).get("attachments", {})
        try:
            settings = {"escape": False, "attachments": attachments, "exclude_anchor_links": True}
            made = Markdown(Renderer(self._coloured, **settings)).render(text)
        except Exception:  # whatever it is: students write it
            return as_text(source)
        made = self._sanitized(made)
        return as_text(source) if made is None else _without_brackets(aside.back(made))


def _numbers(size: dict) -> dict:
    return {name: value for name, value in size.items() if isinstance(value, int | float)}
