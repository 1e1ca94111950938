"""What a student handed in, shown to whoever marks it so that nothing of it acts in their browser.

Formgrader's page may do all that the instructor may: a script in an answer would set marks, and the address of a
picture is enough to ask Jupyter for something. nbgrader and nbconvert show answers and outputs as they are.
"""

import html
import re
import uuid

from course_lib._extras import needed

with needed("lab"):
    from jinja2 import pass_context
    from nbconvert.filters.markdown_mistune import InvalidNotebook, IPythonRenderer, MarkdownWithMath
    from nbconvert.preprocessors.sanitize import SanitizeHTML
    from nbformat import NotebookNode
    from nbgrader.converters import GenerateFeedback
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
LINK = "\\href"  # what MathJax makes a link of
MOST = 5000  # signs that begin a tag or a character's name: to read more takes long
# A parser opens these anew in each paragraph for as long as they are not closed, and alike ones three times at most.
VARIED, FEW = re.compile(r"<(?:b|code|em|i|s|small|strong|tt|u)[\s/]", re.IGNORECASE), 50
# A parser compares each name of an attribute with all before it in the tag; any word may turn out to be such a name.
WORD, COMPARED = re.compile(r"[^\s/>=]+"), 50_000_000
# Characters of Markdown, and signs in it from which one without its end is looked for to the end of the text.
LONGEST, OPENERS, MANY = 100_000, re.compile(r"\[|\\begin\{|\\\\\("), 500
SHOWN = {"text/plain", "text/latex", "text/markdown", "image/svg+xml", "image/png", "image/jpeg"}
PEOPLE = "student", "first_name", "last_name", "notebook_path"  # which Formgrader's templates do not escape


def as_text(source: str) -> str:
    """A text as HTML that shows it as it is."""
    return _without_brackets(f"<pre>{html.escape(source)}</pre>")


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
    """nbconvert's, where a link is its text and its address: to follow one that leads to Jupyter may be a command."""

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

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """A notebook and the names beside it."""
        if isinstance(getattr(self.parent, "parent", None), GenerateFeedback):
            return nb, resources
        if self.parent is not None:
            self.parent.register_filter("markdown2html", self.markdown2html)
        for name in PEOPLE:
            if name in resources:
                resources[name] = html.escape(str(resources[name] or ""))
        nb.metadata.pop("widgets", None)
        return super().preprocess(nb, resources)

    def preprocess_cell(self, cell: NotebookNode, resources: dict, cell_index: int) -> tuple[NotebookNode, dict]:
        """One cell: its outputs, and what the page takes of its metadata."""
        cell.metadata.pop("tags", None)  # classes in the page
        about = cell.metadata.get("nbgrader")
        if about is not None and html.escape(str(about.get("grade_id", ""))) != about.get("grade_id", ""):
            del cell.metadata["nbgrader"]
        if cell.cell_type == "raw":
            cell.source = as_text(cell.source)
        if cell.cell_type == "code":
            cell.outputs = self.sanitize_code_outputs(cell.outputs)
        return cell, resources

    def sanitize_code_outputs(self, outputs: list[NotebookNode]) -> list[NotebookNode]:
        """The outputs of a cell; of one that nothing is left of, its kind."""
        for output in outputs:
            if "data" in output:  # a kernel may send anything, and nobody loses the page for it
                output.data = NotebookNode({kind: str(shown) for kind, shown in output.data.items()})
        kinds = [", ".join(output.get("data", ())) for output in outputs]
        for output, kind in zip(super().sanitize_code_outputs(outputs), kinds, strict=True):
            if "data" in output:
                if LINK in output.data.get("text/latex", ""):
                    output.data["text/plain"] = output.data.pop("text/latex")
                if not output.data:
                    output.data["text/plain"] = f"({kind}: not shown here)"
                sizes = [(of, output.metadata.get(of)) for of in ("image/png", "image/jpeg")]
                output.metadata = NotebookNode({of: _numbers(size) for of, size in sizes if isinstance(size, dict)})
        return outputs

    def sanitize_html_tags(self, html_str: str) -> str:
        """HTML of which nothing acts. Where that cannot be said soon, or a formula has a link, it is shown as text."""
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
        return None if LINK in html.unescape(made) else aside.back(made)

    @pass_context
    def markdown2html(self, context, source: str) -> str:
        """Markdown as HTML; as it was written where that would take long, or where a formula has a link."""
        aside = Aside()
        text = aside.put(source)
        if len(text) > LONGEST or len(OPENERS.findall(text)) > MANY:
            return as_text(source)
        attachments = context.get("cell", {}).get("attachments", {})
        try:
            made = Markdown(Renderer(escape=False, attachments=attachments, exclude_anchor_links=True)).render(text)
        except Exception:  # whatever it is: students write it
            return as_text(source)
        made = self._sanitized(made)
        return as_text(source) if made is None else _without_brackets(aside.back(made))


def _numbers(size: dict) -> dict:
    return {name: value for name, value in size.items() if isinstance(value, int | float)}
