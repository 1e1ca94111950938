"""Names that hidden tests would take from the notebook, and that no student is asked to write.

Outside the student's process every name that a test does not set itself is asked of the notebook. Where a locked cell
imports `assert_allclose`, a student who defines it anew would say what is right; and `np`, a module, does not pass.
"""

import ast
import functools
import symtable
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from course_lib._extras import needed
from course_lib.grading.outside.tests import names_asked_for

with needed("lab"):
    import nbformat
    from IPython.core.inputtransformer2 import TransformerManager
    from nbgrader.api import Notebook
    from nbgrader.coursedir import CourseDirectory

SHORT = 100  # letters of a line that is worth repeating


class Cell(NamedTuple):
    """A cell of code of the course's own notebook."""

    source: str
    is_answer: bool  # a student writes it


class Names(NamedTuple):
    """What a cell of code binds at its top: each name with the line that does, "" where it is more than a line."""

    imported: dict[str, str]
    made: dict[str, str]
    from_all: list[str]  # modules of `from module import *`


def cells_of(coursedir: CourseDirectory, assignment: str, known: Notebook) -> list[Cell]:
    """The cells of a notebook's source, or, where that is missing, of its release; and what else the gradebook has."""
    answers, found, named = {cell.name for cell in known.solution_cells}, [], set()
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
        break
    rest = (cell for cell in known.source_cells if cell.cell_type == "code" and cell.name not in named)
    return [*found, *(Cell(cell.source, cell.name in answers) for cell in rest)]


def borrowed(test: str, cells: Iterable[Cell]) -> dict[str, str]:
    """Of the names that a cell of tests asks the notebook for, those that it should set itself, each with the line.

    These are what any cell imports, and what one makes that is no answer, unless an answer makes it, too.
    """
    asked, own, theirs, all_of = names_asked_for(test), {}, set(), []
    for cell in cells:
        names = names_of(cell.source)
        own |= names.imported | ({} if cell.is_answer else names.made)
        theirs |= names.made.keys() if cell.is_answer else set()
        all_of += names.from_all
    found = {name: own[name] for name in sorted(asked & own.keys() - theirs)}
    if all_of:
        unknown = sorted(asked - own.keys() - theirs)
        found |= {name: f"from {all_of[-1]} import {name}" for name in unknown}
    return found


@functools.cache
def names_of(source: str) -> Names:
    """What a cell binds, however it is written for IPython; nothing where that is no Python."""
    code = TransformerManager().transform_cell(source)
    names = Names({}, {}, [])
    try:
        with warnings.catch_warnings(action="ignore"):
            tree, top = ast.parse(code), symtable.symtable(code, "<cell>", "exec")
    except (SyntaxError, ValueError):
        return names
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            start = "import " if isinstance(node, ast.Import) else f"from {'.' * node.level}{node.module or ''} import "
            for each in node.names:
                if each.name == "*":
                    names.from_all.append(f"{node.module}")
                else:
                    name = each.asname or (each.name.partition(".")[0] if isinstance(node, ast.Import) else each.name)
                    names.imported[name] = f"{start}{ast.unparse(each)}"
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
        line = ast.unparse(node)
        if isinstance(node, ast.Assign | ast.AnnAssign) and "\n" not in line and len(line) <= SHORT:
            for target in ast.walk(node):
                if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store) and target.id in names.made:
                    names.made[target.id] = line
    return names


def check_borrowed(coursedir: CourseDirectory, assignment: str, known: Notebook, tests: dict[str, str]) -> None:
    """Look whether the hidden tests of a notebook, as the gradebook has both, ask it for what they should have.

    tests : their sources, by name

    Raises
    ------
    ValueError : some do; says which, and what to write into each.
    """
    cells, lines = cells_of(coursedir, assignment, known), []
    for name, source in tests.items():
        if found := borrowed(source, cells):
            need = ", ".join(f"`{line}`" if line else f"the definition of `{each}`" for each, line in found.items())
            lines.append(f"  {name!r} needs {need}")
    if lines:
        raise ValueError(
            f"Nothing is graded. Hidden tests of {known.name!r} use names that other cells of the notebook set. "
            "Outside the student's process each would be asked of the student, who could say what is right:\n"
            + "\n".join(lines)
            + "\nWrite that into these cells of the source notebook and run `nbgrader generate_assignment "
            f"{assignment} --force`. If students are to write what a name stands for, make the cell that has it an "
            "answer."
        )
