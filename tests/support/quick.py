"""Score notebooks without a kernel each, with nbgrader's own reading of the outputs."""

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

from nbformat.notebooknode import from_dict
from nbgrader.utils import determine_grade, is_grade

from tests.support.course import ROOT, filled_in, grade_id


class QuickScorer:
    """Executes notebooks in forks of one warm process (scorer_process.py).

    graded: the notebook as nbgrader executes it, hidden tests in place.
    reference: the right answers, for the cells that a submission does not replace.
    """

    def __init__(self, graded, reference: dict[str, str]):
        self.graded = graded
        self.reference = reference
        self.outcomes = {}
        script = Path(__file__).with_name("scorer_process.py")
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def close(self) -> None:
        """End the process."""
        self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:  # a machine at its limits; every answer has been read
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def run(self, answers: dict[str, str], base: dict[str, str] | None = None):
        """The notebook with its outputs, after the answers were put in over `base` (the reference)."""
        return self.executed(filled_in(self.graded, (self.reference if base is None else base) | answers))

    def executed(self, notebook):
        """The notebook, its outputs put in."""
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        self.process.stdin.write(json.dumps([cell.source for cell in code]) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer is not None, "the notebook killed its process or did not end"
        for cell, outputs in zip(code, answer, strict=True):
            cell.outputs = from_dict(outputs)
        return notebook

    def outcome(self, variant):
        """The notebook of a variant with its outputs, run once per session."""
        if variant.name not in self.outcomes:
            self.outcomes[variant.name] = self.run(variant.cells)
        return self.outcomes[variant.name]

    def score(self, answers: dict[str, str], base: dict[str, str] | None = None) -> dict[str, float]:
        """Points per graded code cell."""
        return scores(self.run(answers, base))


def scores(notebook) -> dict[str, float]:
    """Points per graded code cell of an executed notebook, as nbgrader determines them."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and is_grade(cell)]
    return {grade_id(cell): determine_grade(cell)[0] for cell in cells}


def with_hidden_tests(release, gradebook, assignment: str):
    """The released notebook, its read-only cells as the gradebook keeps them for grading."""
    notebook = copy.deepcopy(release)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("locked"):
            cell.source = gradebook.find_source_cell(grade_id(cell), assignment, assignment).source
    return notebook
