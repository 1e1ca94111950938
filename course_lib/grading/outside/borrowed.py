"""Names that hidden tests would take from the notebook, and that no student is asked to write.

Outside the student's process every name that a test does not set itself is asked of the notebook. Where a locked cell
imports `assert_allclose`, a student who defines it anew would say what is right; and `np`, a module, does not pass.
"""

import ast
import contextlib
import functools
import importlib
import symtable
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from course_lib._extras import needed
from course_lib.grading.marking.strays import parsed
from course_lib.grading.outside.tests import names_asked_for

with needed("lab"):
    import nbformat
    from nbgrader.api import Notebook
    from nbgrader.coursedir import CourseDirectory

SHORT = 100  # letters of a line that is worth repeating


class Cell(NamedTuple):
    """A cell of code of the course's own notebook."""

    source: str
    is_answer: bool  # a student writes it


class Own(NamedTuple):
    """The course's own cells of a notebook; `is_solved` where its answers hold the solution."""

    cells: list[Cell]
    is_solved: bool


class Names(NamedTuple):
    """What a cell of code binds at its top: each name with the line that does, "" where that would not do alone."""

    imported: dict[str, str]
    made: dict[str, str]
    from_all: list[str]  # modules of `from module import *`


def own_of(coursedir: CourseDirectory, assignment: str, known: Notebook) -> Own:
    """The cells of a notebook's source, or, where that is missing, of its release; and what else the gradebook has."""
    answers, found, named, is_solved = {cell.name for cell in known.solution_cells}, [], set(), False
    for step in (coursedir.source_directory, coursedir.release_directory):
        path = Path(coursedir.format_path(step, ".", assignment), f"{known.name}.ipynb")
        try:
            cells = nbformat.read(path, as_version=4).cells
        except (OSError, ValueError):
            continue
        for cell in cells:
            about = cell.metadata.get("nbgrader", {})
            named.add(about.get("grade_id"))
            if cell.cell_type == "code":
                found.append(Cell(cell.source, bool(about.get("solution"))))
        is_solved = step == coursedir.source_directory
        break
    rest = (cell for cell in known.source_cells if cell.cell_type == "code" and cell.name not in named)
    return Own([*found, *(Cell(cell.source, cell.name in answers) for cell in rest)], is_solved)


def borrowed(test: str, own: Own) -> dict[str, str]:
    """Of the names that a cell of tests asks the notebook for, those that it should set itself, each with the line.

    These are what another cell imports, and what one makes that is no answer, unless an answer makes it, too. And,
    where the solution is there, whatever else no answer makes: it may come from a file, or from a line of IPython's.
    """
    itself = names_of(test)  # one that is no Python has no marks, and says so where it runs
    asked = names_asked_for(test) - _all_names(itself.from_all) if itself else frozenset()
    lines, theirs, all_of, is_solved = {}, set(), [], own.is_solved
    for cell in own.cells:
        names = names_of(cell.source)
        if names is None:
            is_solved = is_solved and not cell.is_answer  # nobody knows what it makes
            continue
        lines |= names.imported | ({} if cell.is_answer else names.made)
        theirs |= names.made.keys() if cell.is_answer else set()
        all_of += names.from_all
    found = {name: lines[name] for name in sorted(asked & lines.keys() - theirs)}
    if is_solved:
        modules = {name: module for module in all_of for name in _all_names([module])}
        for name in sorted(asked - lines.keys() - theirs):
            found[name] = f"from {modules[name]} import {name}" if name in modules else ""
    return found


@functools.cache
def names_of(source: str) -> Names | None:
    """What a cell binds, however it is written for IPython; None where that is no Python."""
    tree = parsed(source)
    if tree is None:
        return None
    names = Names({}, {}, [])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                names.imported[each.asname or each.name.partition(".")[0]] = f"import {ast.unparse(each)}"
        elif isinstance(node, ast.ImportFrom):
            for each in node.names:
                if each.name == "*":
                    names.from_all.append("." * node.level + (node.module or ""))
                else:  # a module that lies beside the notebook is not there where tests run
                    line = "" if node.level else f"from {node.module} import {ast.unparse(each)}"
                    names.imported.setdefault(each.asname or each.name, line)
    with warnings.catch_warnings(action="ignore"):
        top = symtable.symtable(ast.unparse(tree), "<cell>", "exec")
    tables, made = [top], set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if symbol.is_assigned() and (table is top or symbol.is_declared_global()):
                made.add(symbol.get_name())
    top_imports = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_imported()}
    for name in names.imported.keys() - top_imports:
        del names.imported[name]  # in a function
    names.made.update(dict.fromkeys(made - top_imports, ""))
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and len(line := ast.unparse(node)) <= SHORT:
            parts = list(ast.walk(node))
            stored = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
            if "\n" not in line and not any(isinstance(part, ast.Name) and part.id not in stored for part in parts):
                names.made.update(dict.fromkeys(stored & names.made.keys(), line))
    return names


def _all_names(modules: Iterable[str]) -> set[str]:
    """What `import *` of these brings, of those that can be imported here, as they are where tests run."""
    found: set[str] = set()
    for name in modules:
        with contextlib.suppress(Exception):
            module = importlib.import_module(name)
            found |= set(getattr(module, "__all__", [each for each in vars(module) if not each.startswith("_")]))
    return found


def check_borrowed(coursedir: CourseDirectory, assignment: str, known: Notebook, tests: dict[str, str], solved: bool):
    """Look whether the hidden tests of a notebook, as the gradebook has both, ask it for what they should have.

    tests : their sources, by name
    solved : whether the assignment's sources are whole solutions

    Raises
    ------
    ValueError : some do; says which, and what to write into each.
    """
    own, lines = own_of(coursedir, assignment, known), []
    own = own._replace(is_solved=own.is_solved and solved)
    for name, source in tests.items():
        if found := borrowed(source, own):
            need = ", ".join(f"`{line}`" if line else f"what sets `{each}`" for each, line in found.items())
            lines.append(f"  {name!r} needs {need}")
    if lines:
        raise ValueError(
            f"Nothing is graded. Hidden tests of {known.name!r} use names that neither they nor students' answers set. "
            "Outside the student's process each would be asked of the student, who could say what is right:\n"
            + "\n".join(lines)
            + "\nWrite that into these cells of the source notebook and run `nbgrader generate_assignment "
            f"{assignment} --force`. If students are to write what a name stands for, make the cell that has it an "
            "answer; of what they are to import, test a function that uses it."
        )
