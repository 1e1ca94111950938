"""Whatever names a right answer takes for itself, it loses nothing and the public checks still speak of it alone.

Checks and hidden tests run beside the student's names. So each imports inside its function what it uses, builtins too:
`max = 8` or `from numpy import *` above a right answer is no mistake, and neither is a helper called `check`.
"""

import ast
import builtins

import pytest

import course_lib.grading
from tests.assignments.variants.banks import BANKS
from tests.support.course import grade_id
from tests.support.proof import failures, lost
from tests.support.quick import source_of

MACHINERY = ("what-check", "check-", "test-")  # grade ids of the cells that are not the student's


def used_by_the_student(assignment: str) -> set[str]:
    """The names that the reference and the cells around it use or make: without these the answer itself would break."""
    cells = (cell for cell in source_of(assignment).cells if cell.cell_type == "code")
    own = (cell.source for cell in cells if not (grade_id(cell) or "").startswith(MACHINERY))
    nodes = [node for source in own for node in ast.walk(ast.parse(source))]
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    return used | {node.name for node in nodes if isinstance(node, ast.FunctionDef)}


def lower_case(module) -> list[str]:
    """The names of functions and types that somebody might take for a variable."""
    return [name for name in dir(module) if name[0].islower()]


@pytest.mark.parametrize("names", [lower_case(builtins), lower_case(course_lib.grading)], ids=["builtins", "helpers"])
@pytest.mark.parametrize("bank", BANKS, ids=str)
def test_no_name_of_a_students_own_breaks_the_grader(scorers, bank, names):
    scorer = scorers(bank)
    taken = sorted(set(names) - used_by_the_student(bank.assignment))
    assert len(taken) > 10
    first, source = next((cell, source) for cell, source in scorer.reference.items() if "def " in source)
    notebook = scorer.run({first: f"{source}\n\n{' = '.join(taken)} = None"})
    assert lost(scorer, notebook) == {} and failures(notebook) == {}
