"""Sphinx extension: what makes a page heavy and changes nothing that a reader sees is left out of the built book.

- Pygments puts a span around each word of code. The words that it gives the colour of all code go without one: two
  thirds of the spans, and a third of a lecture's HTML. Sphinx does the same in a signature, two for each word, where
  few have a style.
- The theme's style sheets, 0.4 MB on every page, style what a book might have; rules that nothing in ours can match
  are left out. A rule stays if each class that it asks for is one of an element of a page, or a word of a script,
  which might give it to one, or begins as a script begins a word, `bs-${side}`. What stands in brackets, as in
  `:not(.one)`, is not looked at.
"""

import re
from pathlib import Path

import tinycss2
from sphinx.application import Sphinx

CODE = re.compile(r'(<div class="highlight"><pre>)(.*?)(</pre>)', re.DOTALL)
SIGNATURE = re.compile(r'(<dt class="sig )(.*?)(</dt>)', re.DOTALL)
IN_SIGNATURE = re.compile(r'<span class="(?:pre|n|p|w)">([^<]*)</span>')
COLOUR = re.compile(r'html\[data-theme="(\w+)"\] \.highlight(?: \.(\w+))? \{([^}]*)\}')
CLASSES = re.compile(r"""\bclass=(["'])(.*?)\1""", re.DOTALL)
WORD = re.compile(r"[\w-]*\w")
BEGINNING = re.compile(r"""["'`]([a-z]+(?:-[a-z]+)*-)["'`$]""")
GROUPS = ("media", "supports", "layer", "container")
"""The rules of a style sheet that hold other rules; all others, such as @font-face, are kept as they are."""
STYLED_AS_A_WHOLE = ("_static/mathjax", "_static/live/weights")
"""Folders whose scripts give no element a class of the theme's."""


def plain_words(styles: str) -> set[str]:
    """The classes of words that Pygments' style sheet gives the colour of all code, and nothing else, in each mode."""
    rules = COLOUR.findall(styles)
    colour = {mode: re.search(r"(?<![-\w])color: (#\w+)", rule) for mode, word, rule in rules if not word}
    modes: dict[str, set[str]] = {}
    for mode, word, rule in rules:
        if word and colour.get(mode) and rule.strip() == f"color: {colour[mode][1]}":
            modes.setdefault(word, set()).add(mode)
    return {word for word, found in modes.items() if found == set(colour)}


def fewer_spans(page: str, plain: set[str]) -> str:
    """The HTML of a page whose code has no span around the words in `plain`, nor its signatures around plain ones."""
    page = SIGNATURE.sub(lambda found: found[1] + unwrapped(IN_SIGNATURE, found[2]) + found[3], page)
    if not plain:
        return page
    span = re.compile(rf'<span class="(?:{"|".join(sorted(plain))})">([^<]*)</span>')
    return CODE.sub(lambda code: code[1] + unwrapped(span, code[2]) + code[3], page)


def unwrapped(span: re.Pattern, page: str) -> str:
    """HTML with what stands in the spans of a pattern in their place, also where one stands in another."""
    while (shorter := span.sub(r"\1", page)) != page:
        page = shorter
    return page


def may_match(selectors: list, known: set[str]) -> bool:
    """Whether elements may match what stands before a rule's braces, one or more selectors with commas between them.

    `known` holds all classes there are, and the beginnings of those that a script puts together; these end in a hyphen.
    """
    asked: list[list[str]] = [[]]  # of each selector the classes; what stands in brackets is a node of its own
    for before, node in zip([None, *selectors], selectors, strict=False):
        if node == ",":
            asked.append([])
        elif node.type == "ident" and before == ".":
            asked[-1].append(node.value)
    return any(all(is_known(name, known) for name in one) for one in asked)


def is_known(name: str, known: set[str]) -> bool:
    """Whether `known` holds a class, or a beginning of it that ends in a hyphen."""
    return name in known or any(name[: sign.end()] in known for sign in re.finditer("-", name))


def fewer_rules(styles: str, known: set[str]) -> str:
    """A style sheet without the rules that no element can match, as `may_match` says; one with an error as it is."""
    found = tinycss2.parse_stylesheet(styles)
    return styles if any(rule.type == "error" for rule in found) else matching(found, known)


def matching(rules: list, known: set[str]) -> str:
    """Those rules that elements may match, and what is no rule; a group without one of them is left out."""
    kept = []
    for rule in rules:
        if rule.type == "at-rule" and rule.lower_at_keyword in GROUPS and rule.content is not None:
            inside = tinycss2.parse_rule_list(rule.content)
            if any(part.type == "error" for part in inside):
                kept.append(rule.serialize())
            elif (text := matching(inside, known)).strip():
                kept.append(f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}{{{text}}}")
        elif rule.type != "qualified-rule" or may_match(rule.prelude, known):
            kept.append(rule.serialize())
    return "".join(kept)


def finish(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    out = Path(app.outdir)
    colours = out / "_static" / "pygments.css"
    plain = plain_words(colours.read_text(encoding="utf-8")) if colours.is_file() else set()
    known: set[str] = set()
    for path in sorted(out.rglob("*.html")):
        page = path.read_text(encoding="utf-8")
        if (better := fewer_spans(page, plain)) != page:
            path.write_text(better, encoding="utf-8")
        known.update(*(names.split() for _, names in set(CLASSES.findall(page))))
    for path in (out / "_static").rglob("*.js"):
        if not path.relative_to(out).as_posix().startswith(STYLED_AS_A_WHOLE):
            script = path.read_text(encoding="utf-8")
            known |= {*WORD.findall(script), *BEGINNING.findall(script)}
    for path in (out / "_static").rglob("*.css"):
        styles = path.read_text(encoding="utf-8")
        if (better := fewer_rules(styles, known)) != styles:
            path.write_text(better, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("build-finished", finish, priority=600)  # when all else has been written
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
