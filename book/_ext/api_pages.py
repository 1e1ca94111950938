"""Sphinx extension: what autodoc needs to show this library's docstrings and signatures as they were meant.

- Sections of a docstring list their entries on one line, ``name : what it is``, with indented continuation
  lines. NumPy's own convention would read the words after the colon as a type and try to link each of them.
- Docstrings are plain text with code in single backticks; a lone asterisk or a final underscore is no markup.
- A NamedTuple lists its fields with the comments that stand beside them in the source.
- A class shows the signature of its own ``__init__``. Keras layers define ``__new__(cls, *args, **kwargs)``,
  which autodoc prefers, so every TensorFlow class would be documented as ``Name(*args, **kwargs)``.
- PyTorch and TensorFlow are mocked for the whole build, not only while autodoc imports a module, because
  autodoc and viewcode later look into the modules of base classes. The two would cost ten seconds a build.
"""

import contextlib
import inspect
import re

from sphinx.application import Sphinx
from sphinx.ext.autodoc.mock import mock
from sphinx.util.inspect import signature, stringify_signature

SECTIONS = ("Parameters", "Returns", "Yields", "Raises", "Attributes")
"""Headings of a docstring that stand over a line of hyphens and are turned into fields."""

MOCKED = ["torch", "tensorflow", "keras"]

mocks = contextlib.ExitStack()

origins: dict[str, str] = {}
"""Documented name to the module that defines it: viewcode links to the source of what a package re-exports."""


class Name:
    """A default value that is shown by its name: Sphinx cannot parse ``<function attention>``."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


def with_named_default(parameter: inspect.Parameter) -> inspect.Parameter:
    """The parameter, with the name of its default in place of a function."""
    if inspect.isfunction(parameter.default):
        return parameter.replace(default=Name(parameter.default.__name__))
    return parameter


def own_signature(app: Sphinx, what: str, name: str, obj: object, options, text, annotation):
    """The (signature, return annotation) of a class with a Python ``__init__``; None leaves autodoc's."""
    if what != "class" or not inspect.isfunction(vars(obj).get("__init__")):
        return None
    if hasattr(obj, "__dataclass_fields__"):
        return None
    own = signature(obj.__init__, bound_method=True)
    own = own.replace(parameters=[with_named_default(parameter) for parameter in own.parameters.values()])
    return stringify_signature(own, show_return_annotation=False, unqualified_typehints=True), None


def escape(line: str) -> str:
    """A line of a docstring as reStructuredText: code in single backticks, everything else plain text."""
    if "``" in line or re.search(r":\w+:`|^\s*(\.\.|>>>) ", line):
        return line  # written in reStructuredText on purpose
    parts = re.split(r"(`[^`]+`)", line)
    for i, part in enumerate(parts):
        if i % 2:
            parts[i] = f"`{part}`\\ "  # the escaped space lets a letter follow, as in `Module`s
        else:
            parts[i] = re.sub(r"(?<!^)([*|`])|(?<=\w)_(?!\w)", lambda found: "\\" + found[0], part)
    return "".join(parts).rstrip()


def prose(lines: list[str]) -> list[str]:
    """The text above the sections as reStructuredText; what is indented by four spaces or more is code."""
    written: list[str] = []
    in_code = in_list = False
    for line in lines:
        if line.startswith("    ") and not in_list:
            if not in_code:
                written += ["", "::", ""]
            in_code = True
            written.append(line)
        elif line.strip():
            in_list = line.lstrip().startswith(("- ", "* ")) or in_list and line.startswith(" ")
            if in_code:
                written.append("")
            in_code = False
            written.append(escape(line))
        else:
            written.append("")
    return written


def entries(body: list[str]) -> list[str]:
    """Group the lines of a section: a line without indentation starts an entry, an indented one goes on."""
    grouped: list[list[str]] = []
    for line in body:
        if line and not line.startswith(" ") or not grouped:
            grouped.append([])
        grouped[-1].append(line.strip())
    return [" ".join(group) for group in grouped]


def as_fields(lines: list[str]) -> list[str]:
    """The lines of a docstring with its sections rewritten as reStructuredText fields."""
    heads = [i for i, line in enumerate(lines[:-1]) if line in SECTIONS and re.fullmatch("-{3,}", lines[i + 1])]
    fields = prose(lines[: heads[0] if heads else len(lines)])
    for start, end in zip(heads, [*heads[1:], len(lines)][: len(heads)], strict=True):
        found = entries([line for line in lines[start + 2 : end] if line.strip()])
        named = [re.fullmatch(r"(`?[\w.*, ]+?`?) ?: (.+)", entry) for entry in found]
        fields += [f":{lines[start]}:"]
        if named and all(named):
            bullet = "* " if len(named) > 1 else ""
            fields += [f"    {bullet}**{escape(match[1].strip('`'))}** -- {escape(match[2])}" for match in named]
        else:
            fields += [f"    {escape(entry)}" for entry in found]
    return [*fields, ""]


def field_comments(cls: type) -> list[str]:
    """The fields of a NamedTuple with the comments beside them, as reStructuredText."""
    commented = dict(re.findall(r"^    (\w+): [^#\n]*# (.+)$", inspect.getsource(cls), flags=re.MULTILINE))
    fields = [f"    * **{name}** -- {escape(commented.get(name, ''))}".rstrip(" -") for name in cls._fields]
    return [":Fields:", *fields, ""]


def rewrite(app: Sphinx, what: str, name: str, obj: object, options, lines: list[str]) -> None:
    """Rewrite a docstring in place, and note where the object is defined."""
    if module := getattr(obj, "__module__", None):
        origins[name] = module
    lines[:] = as_fields(lines)
    if what == "class" and issubclass(obj, tuple) and hasattr(obj, "_fields"):
        lines += field_comments(obj)


def skip_field(app: Sphinx, what: str, name: str, obj: object, skip: bool, options) -> bool | None:
    """Leave out "Alias for field number 0": field_comments lists the fields of a NamedTuple.

    And the classes that a class names as those it is built of, which have entries of their own or none.
    """
    return True if type(obj).__name__ == "_tuplegetter" or (what == "class" and inspect.isclass(obj)) else None


def origin(app: Sphinx, module: str, name: str) -> str:
    """The module that defines a documented object, for viewcode."""
    return origins.get(f"{module}.{name}", module)


def mend_back_links(app: Sphinx, pagename: str, template: str, context: dict, doctree) -> None:
    """Point the [docs] links of a module's source at what is documented.

    viewcode assumes that everything of a module is documented under one name and on one page, but a package documents
    what it re-exports under its own.
    """
    if not pagename.startswith("_modules/"):
        return
    module = pagename.removeprefix("_modules/").replace("/", ".")
    documented = app.env.get_domain("py").objects

    def mend(found: re.Match) -> str:
        parts = found[1].split(".")
        tails = [".".join([module, *parts[i:]]) for i in range(1, len(parts))]
        name = next((name for name in [found[1], *tails] if name in documented), None)
        if name is None:
            return found[0]
        return f'"{app.builder.get_relative_uri(pagename, documented[name].docname)}#{name}">[docs]'

    context["body"] = re.sub(r'"[^"#]*#([\w.]+)">\[docs\]', mend, context["body"])


def setup(app: Sphinx) -> dict[str, object]:
    app.setup_extension("sphinx.ext.autodoc")
    app.setup_extension("sphinx.ext.viewcode")
    app.connect("builder-inited", lambda app: mocks.enter_context(mock(MOCKED)))
    app.connect("build-finished", lambda app, error: mocks.close())
    app.connect("autodoc-process-signature", own_signature)
    app.connect("autodoc-process-docstring", rewrite)
    app.connect("autodoc-skip-member", skip_field)
    app.connect("viewcode-follow-imported", origin)
    app.connect("html-page-context", mend_back_links)
    return {"version": "2", "parallel_read_safe": True, "parallel_write_safe": True}
