"""Hidden tests that a course shows: students get the points that their grading would come to, with inputs they know."""

import json
import os
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from course_lib.grading import practice
from course_lib.grading.score import SEED
from tests.support.course import ASSIGNMENT, ROOT, filled_in, maximum, reference_answers
from tests.support.quick import source_of

DOUBLE = """# Hidden tests
### BEGIN HIDDEN TESTS
def hidden_tests():
    from course_lib.grading import Score, expect

    score = Score(2)

    @score.check(1, "twice")
    def _():
        seen.append(int(score.rng(1).integers(10**9)))
        expect(double(21) == 42, "not twice")

    @score.check(1, "of zero")
    def _():
        expect(double(0) == 0, "not zero")

    return score.total()


hidden_tests()
### END HIDDEN TESTS"""


def graded(name, points, source, **about):
    """A cell as a source notebook has it."""
    return new_code_cell(source, metadata={"nbgrader": {"grade_id": name, "grade": True, "points": points, **about}})


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of one assignment: a check without points, two cells of tests, and an answer that a person marks."""
    cells = [
        graded("check-double", 0, "assert double(1)"),
        graded("test-double", 2, DOUBLE),
        graded("explain", 3, "# why", solution=True),
        graded(
            "test.again, ß",
            2.5,
            DOUBLE.replace("double(", "again(").replace("Score(2)", "Score(2.5)").replace("(1, ", "(1.25, "),
        ),
    ]
    (tmp_path / "source" / "one").mkdir(parents=True)
    nbformat.write(new_notebook(cells=cells), tmp_path / "source" / "one" / "one.ipynb")
    nbformat.write(new_notebook(cells=[new_code_cell("1")]), tmp_path / "source" / "one" / "about.ipynb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(SEED, raising=False)
    return tmp_path


def test_the_tests_of_an_assignment_run_where_its_student_works(course, capsys):
    assert practice.main(["one"]) == 0
    assert "one-tests.py: 2 cells of tests" in capsys.readouterr().out
    notebook = {"seen": [], "double": lambda x: 2 * x, "hidden_tests": "the student's"}
    before = dict(notebook)
    assert practice.run_tests("one-tests.py", notebook) == 2
    del notebook["__builtins__"]
    assert notebook == before
    said = capsys.readouterr().out
    assert "test-double: 2 of 2 points" in said and "test.again, ß: 0 of 2.5 points" in said
    assert "name 'again' is not defined" in said and said.endswith("2 of 4.5 points, with inputs of seed 0\n")


def test_a_seed_draws_other_inputs_and_leaves_no_trace(course):
    practice.main(["one"])
    seen = []
    for seed in (0, 0, 2027):
        practice.run_tests("one-tests.py", {"seen": seen, "double": lambda x: 2 * x, "again": abs}, seed)
    assert seen[:2] == seen[2:4] != seen[4:] and SEED not in os.environ


def test_a_cell_that_cannot_run_stops_no_other(course, capsys):
    practice.main(["one"])
    text = (course / "one-tests.py").read_text().replace("    score = Score(2)\n", "    raise OSError('no')\n", 1)
    (course / "one-tests.py").write_text(text)
    assert practice.run_tests("one-tests.py", {"seen": [], "again": lambda x: 2 * x}) == 2.5
    assert "test-double: OSError: no\n" in capsys.readouterr().out


def test_what_cannot_be_made_or_run_says_why(course, capsys):
    assert practice.main(["two"]) == 2 and "--course says where" in capsys.readouterr().err
    assert practice.main(["one"]) == 0 and practice.main(["one"]) == 2
    assert "there already" in capsys.readouterr().err
    (course / "one-tests.py").unlink()
    for cells, why in (
        ([], "has no hidden tests"),
        ([graded("a", 1, "assert f == 1")], "'a' in one.ipynb cannot be shown: the last line"),
        ([graded("a", 1, "%matplotlib inline\n1")], "'a' in one.ipynb cannot be shown: invalid syntax"),
    ):
        nbformat.write(new_notebook(cells=cells), course / "source" / "one" / "one.ipynb")
        assert practice.main(["one"]) == 2 and why in capsys.readouterr().err
    assert not (course / "one-tests.py").exists()
    for seed in (-1, "1"):
        with pytest.raises(ValueError, match="whole number from 0"):
            practice.run_tests("nowhere.py", {}, seed)
    (course / "none.py").write_text("x = 1\n")
    with pytest.raises(ValueError, match="has no tests"):
        practice.run_tests("none.py", {})
    with pytest.raises(FileNotFoundError):
        practice.run_tests("nowhere.py", {})


IN_A_NOTEBOOK = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
for cell in json.loads(sys.argv[1]):
    shell.run_cell(cell)
from course_lib.grading.practice import run_tests
print("=", run_tests(sys.argv[2]))
shell.user_ns[sys.argv[3]] = lambda *given: None
print("=", run_tests(sys.argv[2]))
"""


@pytest.mark.parametrize(("assignment", "name"), [(ASSIGNMENT, "softmax"), ("attention-for-an-rnn", "additive_scores")])
def test_the_solution_has_all_points_in_a_notebook_and_a_mistake_costs_those_of_its_part(tmp_path, assignment, name):
    assert practice.main([assignment, "--course", str(ROOT / "assignments"), "--to", str(tmp_path)]) == 0
    source = source_of(assignment)
    setup = next(each.source for each in source.cells if "close_modules(" in each.source)
    cells = json.dumps([setup, *reference_answers(source).values()])
    command = [sys.executable, "-c", IN_A_NOTEBOOK, cells, str(tmp_path / f"{assignment}-tests.py"), name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    right, wrong = (float(line[2:]) for line in done.stdout.splitlines() if line.startswith("= "))
    points = {cell: each for cell, each in maximum(source).items() if cell.startswith("test-")}
    assert right == sum(points.values()) and wrong == right - points[f"test-{name.replace('_', '-')}"]


def test_behind_checks_that_fail_a_mistake_costs_points_of_its_own_part_alone(generated, tmp_path):
    """A student runs all cells of the notebook as it was released, and some of them end with an error."""
    practice.main([ASSIGNMENT, "--course", str(generated.root), "--to", str(tmp_path)])
    answers = reference_answers(generated.source)
    softmax = next(name for name, source in answers.items() if "def softmax" in source)
    answers[softmax] += "\ndef softmax(x, axis=-1):\n    return x * 0"
    cells = [cell.source for cell in filled_in(generated.release, answers).cells if cell.cell_type == "code"]
    assert any("check" in cell for cell in cells)
    file = str(tmp_path / f"{ASSIGNMENT}-tests.py")
    command = [sys.executable, "-c", IN_A_NOTEBOOK, json.dumps(cells), file, "nothing"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "CheckFailed" in done.stdout
    points = {name: most for name, most in maximum(generated.source).items() if name.startswith("test-")}
    earned = next(float(line[2:]) for line in done.stdout.splitlines() if line.startswith("= "))
    assert sum(points.values()) - points["test-softmax"] <= earned < sum(points.values())


def test_outside_of_a_notebook_its_names_are_asked_for(course):
    practice.main(["one"])
    script = "from course_lib.grading.practice import run_tests\nrun_tests('one-tests.py')"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and "in a notebook, or given its globals()" in done.stderr
