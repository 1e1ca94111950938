"""Sphinx extension: what autodoc needs to show this library's docstrings and signatures as they were meant.

- Sections of a docstring list their entries on one line, ``name : what it is``, with indented continuation lines.
  NumPy's own convention would read the words after the colon as a type and try to link each of them.
- A class shows the signature of its own ``__init__``. Keras layers define ``__new__(cls, *args, **kwargs)``, which
  autodoc prefers, so every TensorFlow class would be documented as ``Name(*args, **kwargs)``.
"""

import inspect
import re

from sphinx.application import Sphinx
from sphinx.util.inspect import signature, stringify_signature

SECTIONS = ("Parameters", "Returns", "Yields", "Raises", "Attributes")
"""Headings of a docstring that stand over a line of hyphens and are turned into fields."""


def own_signature(app: Sphinx, what: str, name: str, obj: object, options, text, annotation):
    """The (signature, return annotation) of a class with an ``__init__`` written in Python; None leaves autodoc's."""
    if what != "class" or not inspect.isfunction(vars(obj).get("__init__")):
        return None
    if hasattr(obj, "__dataclass_fields__"):
        return None
    own = signature(obj.__init__, bound_method=True)
    return stringify_signature(own, show_return_annotation=False, unqualified_typehints=True), None


def entries(body: list[str]) -> list[str]:
    """Group the lines of a section: a line without indentation starts an entry, indented and empty lines go on."""
    grouped: list[list[str]] = []
    for line in body:
        if line and not line.startswith(" ") or not grouped:
            grouped.append([])
        grouped[-1].append(line.strip())
    return [" ".join(filter(None, group)) for group in grouped]


def as_fields(lines: list[str]) -> list[str]:
    """The lines of a docstring with its sections rewritten as reStructuredText fields."""
    heads = [i for i, line in enumerate(lines[:-1]) if line in SECTIONS and re.fullmatch("-{3,}", lines[i + 1])]
    if not heads:
        return lines
    fields = lines[: heads[0]]
    for start, end in zip(heads, [*heads[1:], len(lines)], strict=True):
        found = entries([line for line in lines[start + 2 : end] if line.strip()])
        named = [re.fullmatch(r"([\w.*, ]+?) ?: (.+)", entry) for entry in found]
        fields += [f":{lines[start]}:"]
        if all(named):
            bullet = "* " if len(found) > 1 else ""
            fields += [f"    {bullet}**{match[1]}** -- {match[2]}" for match in named]
        else:
            fields += [f"    {line}" for line in found]
    return [*fields, ""]


def rewrite_sections(app: Sphinx, what: str, name: str, obj: object, options, lines: list[str]) -> None:
    """Rewrite a docstring in place."""
    lines[:] = as_fields(lines)


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("autodoc-process-signature", own_signature)
    app.connect("autodoc-process-docstring", rewrite_sections, priority=100)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
