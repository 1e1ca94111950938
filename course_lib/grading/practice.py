"""The hidden tests of an assignment as a file, for a course that shows them: students run them where they work.

    python -m course_lib.grading.practice NAME --course assignments

writes NAME-tests.py, which an instructor hands out, after the deadline say: the tests compare with right versions of
what they test. A student lays it beside the notebook, runs all cells of that, and then

    from course_lib.grading.practice import run_tests
    run_tests("NAME-tests.py")

These are the tests that were graded with, and the same reports and points. Their inputs are drawn from a public seed,
and those of a grading from one that nobody knows. It works wherever the notebook does, and has no sandbox and no need
of one: whoever runs it runs code of their own.
"""

import argparse
import ast
import os
import re
import sys
from pathlib import Path
from unittest import mock

from course_lib._extras import needed
from course_lib.files import replacing
from course_lib.grading.score import SEED

HEAD = "# %% {name}, {points:g} points\n"  # as editors know the cells of a script
CELL = re.compile(r"^# %% ([\w-]+), (\S+) points\n", re.MULTILINE)
BORDERS = re.compile(r"^[ \t]*### (?:BEGIN|END) HIDDEN TESTS[ \t]*\n?", re.MULTILINE)


def run_tests(file: str | Path, namespace: dict | None = None, seed: int = 0) -> float:
    """Run the tests of a file with the functions of a notebook.

    Args:
        file: what an instructor made of the hidden tests; see above.
        namespace: the notebook's `globals()`; without it, those of the notebook that this is called in.
        seed: of the inputs: another one draws others.

    Returns:
        The points of all tests together.

    Raises:
        ValueError: the file has no tests, or there is no notebook to be seen.
        FileNotFoundError: there is no such file.
    """
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
    print(f"{earned:g} of {available:g} points, with inputs of seed {seed}")
    return earned


def tests_of(notebook: Path) -> str:
    """The hidden tests of a source notebook, as the file that students get.

    Raises:
        ValueError: it has none.
    """
    with needed("lab"):
        import nbformat

    parts = []
    for cell in nbformat.read(notebook, as_version=4).cells:
        about = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and about.get("grade") and about.get("points") and not about.get("solution"):
            head = HEAD.format(name=about["grade_id"], points=float(about["points"]))
            parts.append(f"{head}{BORDERS.sub('', cell.source).strip()}\n")
    if not parts:
        raise ValueError(f"{notebook} has no hidden tests")
    return "\n\n".join(parts)


def main(arguments: list[str] | None = None) -> int:
    """Write the file of an assignment; 2 where that cannot be done."""
    parser = argparse.ArgumentParser(prog="python -m course_lib.grading.practice", description=__doc__.split("\n")[0])
    parser.add_argument("assignment")
    parser.add_argument("--course", type=Path, default=Path(), help="the folder with nbgrader_config.py; here")
    parser.add_argument("--to", type=Path, help="the file; NAME-tests.py, here")
    chosen = parser.parse_args(arguments)
    folder = chosen.course / "source" / chosen.assignment
    file = chosen.to or Path(f"{chosen.assignment}-tests.py")
    try:
        notebooks = sorted(folder.glob("*.ipynb"))
        if not notebooks:
            raise ValueError(f"{folder} has no notebook; --course says where the course is")
        text = "\n\n".join(map(tests_of, notebooks))
        if file.exists():
            raise ValueError(f"{file} is there already. Remove it, or name another one with --to.")
        with replacing(file.parent) as scratch:
            (scratch / file.name).write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{file}: {len(CELL.findall(text))} cells of tests. Whoever has it sees what they compare with.")
    return 0


def _score(source: str, namespace: dict, name: str) -> float:
    """What a cell of tests returns as its last value."""
    *body, last = ast.parse(source).body
    exec(compile(ast.Module(body, []), name, "exec"), namespace)
    return float(eval(compile(ast.Expression(last.value), name, "eval"), namespace))


def _notebook() -> dict:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        raise ValueError("run_tests has to be called in a notebook, or given its globals().")
    return shell.user_ns


if __name__ == "__main__":
    sys.exit(main())
