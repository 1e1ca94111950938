"""Score notebooks without a kernel each, with nbgrader's own reading of the outputs."""

import copy
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbformat.notebooknode import from_dict
from nbgrader.preprocessors import ClearSolutions
from nbgrader.utils import determine_grade, is_grade

from tests.support.course import ROOT, filled_in, grade_id, reference_answers


class QuickScorer:
    """Executes notebooks in forks of one warm process (scorer_process.py).

    source: the assignment's source notebook. Its solutions stand in the cells that a submission does not replace.
    modules: imported once, before the forks.
    """

    def __init__(self, source, modules: tuple[str, ...]):
        self.graded = ClearSolutions().preprocess(copy.deepcopy(source), {})[0]  # as nbgrader executes it
        self.reference = reference_answers(source)
        self.outcomes = {}
        script = Path(__file__).with_name("scorer_process.py")
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, str(script), *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def close(self) -> None:
        """End the process."""
        self.process.stdin.close()
        try:
            self.process.wait(timeout=300)
        except subprocess.TimeoutExpired:  # a machine at its limits; every answer has been read
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def run(self, answers: dict[str, str], base: dict[str, str] | None = None, seed: int = 0):
        """The notebook with its outputs, after the answers were put in over `base` (the reference).

        With another seed than 0 the public checks are left out, since they draw nothing from it.
        """
        notebook = filled_in(self.graded, (self.reference if base is None else base) | answers)
        if seed:
            notebook.cells = [cell for cell in notebook.cells if not (grade_id(cell) or "").startswith("check-")]
        return self.executed(notebook, seed)

    def by_seed(self, answers: dict[str, str], seeds: Sequence[int]) -> list[dict[str, float]]:
        """Points per graded code cell with each seed: the notebook runs once, its hidden tests once for each seed."""
        notebook = filled_in(self.graded, self.reference | answers)
        cells, tests = [], []
        for cell in notebook.cells:
            if cell.cell_type == "code" and is_grade(cell) and cell.metadata.nbgrader.points:
                again = [copy.deepcopy(cell) for _ in seeds]
                for test, seed in zip(again, seeds, strict=True):
                    test.source = f'__import__("os").environ["COURSE_GRADING_SEED"] = "{seed}"\n{cell.source}'
                cells += again
                tests += again
            elif not (grade_id(cell) or "").startswith("check-"):
                cells.append(cell)
        notebook.cells = cells
        self.executed(notebook)
        graded = [(grade_id(test), determine_grade(test)[0]) for test in tests]
        return [dict(graded[i :: len(seeds)]) for i in range(len(seeds))]

    def executed(self, notebook, seed: int = 0):
        """The notebook, its outputs put in; the hidden tests draw their inputs from this seed."""
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        job = {"cells": [cell.source for cell in code], "environment": {"COURSE_GRADING_SEED": str(seed)}}
        self.process.stdin.write(json.dumps(job) + "\n")
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


def source_of(assignment: str):
    """The source notebook of an assignment, with solutions and hidden tests."""
    return nbformat.read(ROOT / "assignments" / "source" / assignment / f"{assignment}.ipynb", as_version=4)
