"""The hidden tests of an assignment as files, for a course that shows them: students run them where they work.

    python -m course_lib.grading.practice NAME --course assignments

writes NOTEBOOK-tests.py for each notebook with tests, which an instructor hands out, after the deadline say: the tests
compare with right versions of what they test. A student lays it beside the notebook, runs all cells of that, and then

    from course_lib.grading.practice import run_tests
    run_tests("NOTEBOOK-tests.py")

These are the tests that were graded with, and their messages; their inputs are drawn from a public seed. The marks are
those of the grading: there each test runs where it stands, and here all run when the notebook has.
"""

import argparse
import ast
import os
import re
import symtable
import sys
from pathlib import Path
from unittest import mock

from course_lib._extras import needed
from course_lib.files import replacing
from course_lib.grading.imports import not_there
from course_lib.grading.score import SEED

HEAD = "# %% {name}, {points:g} points\n"  # as editors know the cells of a script
CELL = re.compile(r"^# %% (.+), (\S+) points\n", re.MULTILINE)
MISSING = object()


def run_tests(file: str | Path, namespace: dict | None = None, seed: int = 0) -> float:
    """Run the tests of a file with the functions of a notebook, whose names stay what they are.

    Args:
        file: what an instructor made of the hidden tests; see above.
        namespace: the notebook's `globals()`; without it, those of the notebook that this is called in.
        seed: of the inputs, from 0: another one draws others.

    Returns:
        The points of all tests together.

    Raises:
        ValueError: the file has no tests, the seed is no whole number from 0, or there is no notebook to be seen.
        FileNotFoundError: there is no such file.
    """
    if not (isinstance(seed, int) and seed >= 0):
        raise ValueError(f"seed is {seed!r}; it has to be a whole number from 0, such as 7.")
    namespace = _notebook() if namespace is None else namespace
    _, *cells = CELL.split(Path(file).read_text(encoding="utf-8"))
    if not cells:
        raise ValueError(f"{file} has no tests: a line such as '# %% test-softmax, 4 points' stands before each.")
    earned = available = 0.0
    with mock.patch.dict(os.environ, {SEED: str(seed)}):
        for name, points, source in zip(cells[::3], cells[1::3], cells[2::3], strict=True):
            print(f"{name}:", end=" ")
            available += float(points)
            try:
                earned += _score(source, namespace, name)
            except Exception as error:  # one cell stops no other, as where it is graded
                print(f"{type(error).__name__}: {error}")
    if why := not_there():
        print(why)
    print(f"{earned:g} of {available:g} points, with inputs of seed {seed}")
    return earned


def tests_of(notebook: Path) -> list[str]:
    """The cells of hidden tests of a source notebook, each with its head, as students get them.

    Raises:
        ValueError: one cannot run from outside of the notebook; says which, and why.
    """
    from course_lib.grading.outside.tests import compiled

    with needed("lab"):
        import nbformat

    parts = []
    for cell in nbformat.read(notebook, as_version=4).cells:
        about = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and about.get("grade") and about.get("points") and not about.get("solution"):
            try:
                compiled(cell.source)
            except (SyntaxError, ValueError) as error:
                raise ValueError(f"{about['grade_id']!r} in {notebook.name} cannot be shown: {error}") from None
            parts.append(HEAD.format(name=about["grade_id"], points=float(about["points"])) + cell.source.strip())
    return parts


def main(arguments: list[str] | None = None) -> int:
    """Write the files of an assignment; 2 where that cannot be done."""
    parser = argparse.ArgumentParser(prog="python -m course_lib.grading.practice", description=__doc__.split("\n")[0])
    parser.add_argument("assignment")
    parser.add_argument("--course", type=Path, default=Path(), help="the folder with nbgrader_config.py; here")
    parser.add_argument("--to", type=Path, default=Path(), help="the folder for the files; here")
    chosen = parser.parse_args(arguments)
    folder = chosen.course / "source" / chosen.assignment
    try:
        notebooks = sorted(folder.glob("*.ipynb"))
        if not notebooks:
            raise ValueError(f"{folder} has no notebook; --course says where the course is")
        tests = {f"{path.stem}-tests.py": found for path in notebooks if (found := tests_of(path))}
        if not tests:
            raise ValueError(f"{folder} has no hidden tests")
        if there := [name for name in tests if (chosen.to / name).exists()]:
            raise ValueError(f"{', '.join(there)}: there already. Remove it, or name another folder with --to.")
        with replacing(chosen.to) as scratch:
            for name, found in tests.items():
                (scratch / name).write_text("\n\n\n".join(found) + "\n", encoding="utf-8")
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    for name, found in tests.items():
        print(f"{name}: {len(found)} cells of tests. Whoever has it sees what they compare with.")
    return 0


def _score(source: str, namespace: dict, name: str) -> float:
    """What a cell of tests returns as its last value; what it binds is taken out again."""
    *body, last = ast.parse(source).body
    if not isinstance(last, ast.Expr):
        raise ValueError("the last line of a cell of tests has to be the score, an expression")
    top = symtable.symtable(source, name, "exec").get_symbols()
    own = [symbol.get_name() for symbol in top if symbol.is_assigned() or symbol.is_imported()]
    before = {each: namespace.get(each, MISSING) for each in own}
    try:
        exec(compile(ast.Module(body, []), name, "exec"), namespace)
        return float(eval(compile(ast.Expression(last.value), name, "eval"), namespace))
    finally:
        for each, value in before.items():
            if value is MISSING:
                namespace.pop(each, None)
            else:
                namespace[each] = value


def _notebook() -> dict:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        raise ValueError("run_tests has to be called in a notebook, or given its globals().")
    return shell.user_ns


if __name__ == "__main__":
    sys.exit(main())
