"""What a student wrote into a cell that is not theirs: it is taken out of there, and not overwritten with the cell."""

import ast
import re
from collections.abc import Iterator

from course_lib._extras import needed
from course_lib.grading.marking.reading import new_cell

with needed("lab"):
    from IPython.core.inputtransformer2 import TransformerManager
    from nbformat import NotebookNode


TIMED = re.compile(r"\s*%%(?:time|timeit|capture|prun)\b.*\n?")  # a magic that runs its cell as Python
INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)  # what is bound in them stays in them


def own_cell(source: str, is_code: bool) -> NotebookNode:
    """A cell for what was taken out; words that stood in a cell of code become text."""
    return new_cell("code" if is_code and not is_prose(source) else "markdown", source)


def stray_code(written: str, released: str, graded: bool) -> str:
    """The statements of a read-only cell or a test that are the student's own.

    Parameters
    ----------
    written : the cell as it was handed in
    released : the cell as students got it
    graded : it is a test, so that of the student's statements only those stay that give a new name to something

    Returns
    -------
    Code for a cell of its own, "" where there is none. A name that the released cell sets keeps that meaning. Of a cell
    that is no Python, all lines that were not released.
    """
    tree, known = parsed(written), parsed(released)
    if tree is None or known is None:
        return stray_text(written, released)
    lines = _as_python(written).splitlines()
    old = {ast.dump(statement) for statement in known.body}
    names = set().union(*map(bound_by, known.body), "_")
    own = []
    for statement in tree.body:
        bound = bound_by(statement)
        if ast.dump(statement) not in old and (bound - names or not (bound or graded)):
            decorators = getattr(statement, "decorator_list", [])
            first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
            own.append("\n".join(lines[first - 1 : statement.end_lineno]))
    return "\n\n".join(dict.fromkeys(own))


def stray_text(written: str, released: str) -> str:
    """The lines of a text that were not released."""
    known = lines_of(released)
    return "\n".join(line for line in written.splitlines() if line.strip() not in known).strip("\n")


def is_prose(source: str) -> bool:
    """Whether a cell, of code by its type, holds words: a new cell is one of code until somebody changes it."""
    tree = parsed(source)
    return tree is None or all(
        isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant | ast.Name) for each in tree.body
    )


def parsed(source: str) -> ast.Module | None:
    """The code of a cell, with what IPython makes of its magic lines; None where it is no Python."""
    try:
        return ast.parse(_as_python(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def lines_of(source: str) -> set[str]:
    """The lines of a cell that say something, without the blanks around them."""
    return {line.strip() for line in source.splitlines() if line.strip()}


def bound_by(statement: ast.stmt) -> set[str]:
    """The names that a statement at the top of a cell binds."""
    found = set()
    for node in at_top(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
    return found


def at_top(statement: ast.stmt) -> Iterator[ast.AST]:
    """A statement and its parts, without the insides of functions and classes; a definition itself is a part."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        yield (node := waiting.pop())
        if not isinstance(node, INNER):
            # What a comprehension counts with is bound nowhere else.
            waiting += [node.iter, *node.ifs] if isinstance(node, ast.comprehension) else ast.iter_child_nodes(node)


def _as_python(source: str) -> str:
    return TransformerManager().transform_cell(TIMED.sub("", source, count=1) if TIMED.match(source) else source)
