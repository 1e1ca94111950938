"""Packages that a notebook imports, and that are not there when it is graded: said before it is handed in.

The sandbox in which notebooks are graded shows the packages that the course names for the assignment, and no others. A
cell that imports another one ends there, and what it was to define is missing. So the released notebook names them,
`graded_with("numpy")` (`course_lib.grading.named` writes that), and its public checks look at what its cells import.
"""

import ast
import functools
import importlib.util
import symtable
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from course_lib.grading import score
from course_lib.grading.compare import CheckFailed
from course_lib.grading.contain import LIMIT_S

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
INSTALLED = {"site-packages", "dist-packages"}
_named: list[str] = []  # the packages, where the notebook says them


def graded_with(*packages: str) -> None:
    """Say which packages are there when this notebook is graded: from now on, checks look whether it imports others."""
    _named[:] = packages


def check(what: str, limit_s: float = LIMIT_S) -> Callable:
    """Decorate a test function to run it at once, as `score.check` does; then look at the notebook's imports.

    Raises:
        CheckFailed: where the test does, or the notebook needs what is not there when it is graded.
    """

    def run(test: Callable) -> None:
        score.check(what, limit_s)(test)
        if why := not_there():
            raise CheckFailed(why)

    return run


def not_there() -> str:
    """A sentence on what this notebook imports and needs, and what is not there when it is graded; "" for nothing."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or not _named:
        return ""
    is_absent = functools.partial(_is_absent, packages=tuple(_named))
    try:
        found = needed_of(shell.history_manager.input_hist_parsed, is_absent)
    except Exception:  # whatever stands in a cell, no check fails for it
        return ""
    if not found:
        return ""
    found = list(dict.fromkeys(name if name.startswith("course_lib.") else name.partition(".")[0] for name in found))
    return (
        f"{', '.join(found)} will not be there when this is graded.\n"
        f"This notebook imports it, and there are {', '.join(_named)} then, and what comes with Python: the cell would "
        "end at that line, and what it defines would be missing. Remove the import, restart the kernel and run all "
        "cells. (What only draws a picture may import it after `try:`, with `except ImportError: pass` below.)"
    )


def needed_of(cells: Iterable[str], is_absent: Callable[[str], bool]) -> list[str]:
    """The modules that cells cannot do without, and that are absent.

    A cell ends where it imports one. That matters if a function stands in it from there on, or something that a
    function of any cell reads; and where a function imports one, it ends. Who catches the error can do without.
    """
    cells = list(cells)
    absent = {name for cell in cells for name in _imported(cell) if is_absent(name)}
    if not absent:
        return []
    trees = [tree for cell in cells if (tree := _parsed(cell))]
    read, found = set().union(*map(_read_in_functions, trees)), []
    for tree in trees:
        here = [[name for name in imports_of(statement) if name in absent] for statement in tree.body]
        rest = tree.body[next((place for place, names in enumerate(here) if names), len(here)) :]
        if any(isinstance(node, FUNCTIONS) for each in rest for node in ast.walk(each)) or read & _bound(rest):
            found += [name for names in here for name in names]
    return list(dict.fromkeys(found))


def imports_of(tree: ast.AST) -> Iterator[str]:
    """The modules that code imports, but for those whose error it catches."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            ours = node.module == "course_lib"  # of which not all is there
            yield from [f"course_lib.{each.name}" for each in node.names] if ours else [node.module]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("run_line_magic"):
            if {"matplotlib", "pylab"} & {getattr(each, "value", None) for each in node.args}:
                yield "matplotlib"
        elif not _can_do_without(node):
            waiting += ast.iter_child_nodes(node)


def _can_do_without(node: ast.AST) -> bool:
    """Whether an error in this block is caught, or nothing in it runs."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test).endswith("TYPE_CHECKING")
    if isinstance(node, ast.With):
        return any(ast.unparse(item.context_expr).partition("(")[0].endswith("suppress") for item in node.items)
    return isinstance(node, ast.Try) and bool(node.handlers)


@functools.lru_cache(1_000)  # a notebook has dozens of checks, and each looks at all cells
def _imported(cell: str) -> frozenset[str]:
    tree = _parsed(cell)
    return frozenset(imports_of(tree)) if tree else frozenset()


def _parsed(cell: str) -> ast.Module | None:
    try:
        return ast.parse(cell)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _bound(statements: list[ast.stmt]) -> set[str]:
    """The names that statements bind at their top."""
    symbols = symtable.symtable(ast.unparse(ast.Module(statements, [])), "<cell>", "exec").get_symbols()
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}


def _read_in_functions(tree: ast.Module) -> set[str]:
    """The global names that functions and classes of a cell read."""
    found, tables = set(), symtable.symtable(ast.unparse(tree), "<cell>", "exec").get_children()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        found |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() and symbol.is_referenced()}
    return found


@functools.cache
def _is_absent(module: str, packages: tuple[str, ...]) -> bool:
    """Whether a module is installed here, and not where these packages are shown alone."""
    from course_lib.grading.sandbox import view  # which few notebooks need: most import NumPy and Python's own

    top, _, rest = module.partition(".")
    if top == "course_lib":
        return bool(rest) and rest.partition(".")[0] not in {Path(part).stem for part in view.OF_COURSE}
    if top in sys.stdlib_module_names or top in packages or top in view.modules_of(packages):
        return False
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):  # it is closed in this notebook, say, and its own error tells
        return False
    places = [spec.origin or "", *(spec.submodule_search_locations or [])] if spec else []
    return any(INSTALLED & {*Path(place).parts} for place in places)  # and no module of the student's own
