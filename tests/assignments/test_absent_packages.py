"""Who imports a package that the sandbox does not show loses points, and hears why; a person is told to look."""

import csv
import zipfile

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from course_lib.grading.marking.execute import STOPPED
from course_lib.grading.outside.absent import Absent
from tests.support.course import ASSIGNMENT, filled_in, generated_course, grade_id, maximum, reference_answers
from tests.support.sandbox import NEEDS_SANDBOX

TESTS = "def hidden_tests():\n    return f(1) == 1\nhidden_tests()"


def ended(source, module="far"):
    """A cell that ended where it imports this."""
    error = new_output("error", ename="ModuleNotFoundError", evalue=f"No module named {module!r}", traceback=["..."])
    return new_code_cell(source, outputs=[error])


def graded(report="NameError: name 'f' is not defined.", score=0.0):
    """A cell of hidden tests that has run."""
    shown, result = new_output("stream", name="stdout", text=report), new_output("execute_result")
    result.data = {"text/plain": f"{score}"}
    return new_code_cell(TESTS, outputs=[shown, result], metadata={"nbgrader": {"grade": True, "points": 2}})


def explained(*cells, tests=TESTS):
    """What is said in the last one, which is of hidden tests, and by which cells a person is told to look."""
    absent = Absent(["numpy"], cells := list(cells))
    for place, cell in enumerate(cells[:-1]):
        if cell.cell_type == "code":
            absent.look(place)
    for _ in range(2):  # as for two cells of tests
        absent.explain(len(cells) - 1, tests)
    told = [
        place for place, cell in enumerate(cells) for output in cell.get("outputs", [])
        if output.get("ename") == STOPPED and output.evalue.startswith("Stopped: cell ")
    ]  # fmt: skip
    return cells[-1].outputs[0].get("text", ""), told


BEFORE = new_markdown_cell("far"), new_code_cell("x = 1")


@pytest.mark.parametrize("cell", [ended("import far\ndef f(x):\n    return x"), ended("import far.away\nf = 2")])
def test_the_report_says_which_import_ended_the_cell_that_was_to_define_what_is_missing(cell):
    said, told = explained(*BEFORE, cell, graded())
    assert said.startswith("Points may be missing here because cell 3 imports 'far', which is not among the packages")
    assert "(numpy)" in said and told == [2]


@pytest.mark.parametrize("report", ["NameError: name 'h' is not defined.\nin g, line 2", "own words of a test"])
def test_a_helper_that_is_missing_counts_where_it_is_named(report):
    said, told = explained(ended("import far\nh = 1"), graded(report))
    assert (bool(said.startswith("Points may")), told) == ("'h'" in report, [0] if "'h'" in report else [])


def test_a_framework_that_was_to_be_imported_counts_where_tests_make_tensors():
    cell = ended("import far\nimport torch as t")
    assert explained(cell, graded("none imported"), tests=f"Tensors\n{TESTS}")[1] == [0]
    assert explained(ended("import far, torch"), graded("none imported"), tests="g(1)")[1] == []


def test_what_a_function_imports_is_missing_when_it_is_called():
    uses = new_code_cell("def f(x):\n    from course_lib.lecture import show\n    return x")
    report = "ModuleNotFoundError: No module named 'course_lib.lecture'"
    said, told = explained(*BEFORE, uses, new_code_cell("1"), graded(report))
    assert "cell 3 imports 'course_lib.lecture'" in said and told == [2]
    hides = new_code_cell("def f(x):\n    return __import__('far')")
    assert explained(*BEFORE, hides, graded("ModuleNotFoundError: No module named 'far.away'"))[1] == [2]


@pytest.mark.parametrize("cells", [
    (ended("import far\ndef f(x):\n    return x"), graded(score=2.0)),  # nothing is missing
    (ended("import far\nfar.plot(1)"), graded("wrong")),
    (ended("import far\ndef f(x):\n    return x"), new_code_cell("def f(x):\n    return 0"), graded("wrong")),
    (ended("import numpy.far\ndef f(x):\n    return x", "numpy.far"), graded()),  # a slip, and no package
    (new_code_cell("def f(x)", outputs=[new_output("error", ename="SyntaxError", evalue="", traceback=[])]), graded()),
    (new_code_cell("1"), graded("No module named 'numpy.far'")),
    (graded(),),
])  # fmt: skip
def test_otherwise_nothing_is_said_and_nobody_need_look(cells):
    said, told = explained(*cells)
    assert "because" not in said and told == []


def test_tests_that_failed_altogether_are_explained_too():
    cell = graded()
    cell.outputs = [new_output("error", ename="NameError", evalue="name 'f' is not defined", traceback=["..."])]
    assert explained(ended("import far\nf = 1"), cell, tests="g(1)")[1] == [0]


@NEEDS_SANDBOX
def test_a_work_that_needs_another_package_needs_a_person_and_a_picture_does_not(tmp_path):
    course = generated_course(tmp_path)
    answers, most = reference_answers(course.source), maximum(course.source)
    mask = "def causal_mask(t):\n    from tqdm import tqdm\n    return tqdm"
    works = {
        "anna": {"softmax": f"import matplotlib.pyplot as plt\n{answers['softmax']}"},
        "ben": {"softmax": f"{answers['softmax']}\nimport matplotlib.pyplot as plt\nplt.plot(softmax([1.0]))"},
        "cleo": {"causal-mask": mask},
        "dan": {"softmax": "import sys\nsys.path.insert(0, 'measurements.txt')\nfrom library.attention import softmax"},
    }
    for student, own in works.items():
        course.submit(student, filled_in(course.release, answers | own))
    with zipfile.ZipFile(course.root / "submitted" / "dan" / ASSIGNMENT / "measurements.txt", "w") as archive:
        archive.writestr("library/attention.py", f"import numpy as np\n{answers['softmax']}")
    _, said = course.marking(ASSIGNMENT)
    with (course.root / "grades.csv").open(encoding="utf-8", newline="") as lines:
        rows = {row["student_id"]: row for row in csv.DictReader(lines)}
    statuses = {student: row["status"] for student, row in rows.items()}
    look, waits = "needs attention", "waiting for a hand mark"
    assert statuses == {"anna": look, "ben": waits, "cleo": look, "dan": look}, said
    assert "imports 'matplotlib', which is not among the packages of this assignment (numpy)" in rows["anna"]["why"]
    assert "imports 'tqdm', which" in rows["cleo"]["why"]
    assert "imports 'measurements.txt', which was left behind" in rows["dan"]["why"]
    lost = {"anna": {"test-softmax": 0}, "ben": {}, "cleo": {"test-causal-mask": 0}, "dan": {"test-softmax": 0}}
    for student, gone in lost.items():
        assert {name: course.scores(student)[name] for name in most} == most | gone
    page = (course.root / "feedback" / "anna" / ASSIGNMENT / f"{ASSIGNMENT}.html").read_text(encoding="utf-8")
    assert "Points may be missing here because cell" in page
    path = course.root / "autograded" / "ben" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    cells = {grade_id(cell): cell for cell in nbformat.read(path, as_version=4).cells}
    assert [output.ename for output in cells["softmax"].outputs] == ["ModuleNotFoundError"]
    assert course.marking(ASSIGNMENT, "--settle", "anna", "cleo", "dan")[0] == 0
