"""A course of somebody else's, marked from outside: tests that would ask the student what is right are refused."""

import contextlib
from types import SimpleNamespace

import nbformat
import pytest

from course_lib.grading.marking import solved
from course_lib.grading.marking.__main__ import main
from course_lib.grading.marking.alone import Marks
from course_lib.grading.outside.borrowed import Cell, Own, borrowed, names_of
from tests.support.own_course import MEAN, NAME, OwnCourse, source_notebook
from tests.support.sandbox import NEEDS_SANDBOX

CLOSE = "from numpy.testing import assert_allclose"
ASKS = "assert_allclose(mean([1, 2]), 1.5)"
OWN = f"{CLOSE}\n{ASKS}"
FORGES = "assert_allclose = lambda *_: None\ndef mean(values):\n    return 0"


def cells(*others, answer=MEAN):
    return Own([*(Cell(other, False) for other in others), Cell(answer, True)], is_solved=True)


@pytest.mark.parametrize(
    ("test", "others", "found"),
    [
        (ASKS, [CLOSE], {"assert_allclose": CLOSE}),
        (OWN, [CLOSE], {}),
        ("assert np.all(mean([1]) == 1)", ["import numpy as np, os.path"], {"np": "import numpy as np"}),
        ("os.getcwd()", ["import numpy as np, os.path"], {"os": "import os.path"}),
        ("assert mean(DATA) == 3", ["DATA = [3, 3]"], {"DATA": "DATA = [3, 3]"}),
        ("assert mean(DATA) == 3", [f"DATA = {list(range(99))}"], {"DATA": ""}),
        ("check(mean)", ["def check(function):\n    assert function([1]) == 1"], {"check": ""}),
        ("globals()['check'](mean)", ["def check(function):\n    pass"], {"check": ""}),
        ("Point(mean([1]))", ["if True:\n    class Point:\n        pass"], {"Point": ""}),
        ("assert mean([x]) == x", ["for x in range(3): pass"], {"x": ""}),
        ("assert mean([x]) == x", ["def set_x():\n    global x\n    x = 3\nset_x()"], {"x": ""}),
        ("assert allclose(mean([1]), 1)", ["from numpy import *"], {"allclose": "from numpy import allclose"}),
        ("assert mean([1]) == 1", ["from numpy import *", "def mean(values): ..."], {}),
        ("assert mean([x]) == x", ["%matplotlib inline\n!ls\nx = 1"], {"x": "x = 1"}),
        ("assert mean([x]) == x", ["x = 1\nthis is no Python"], {"x": ""}),
        ("assert mean([x]) == x", [], {"x": ""}),
        ("assert mean([x]) == x", ["\tx = 1\n  y"], {"x": ""}),
        (ASKS, [f"%%capture\n{CLOSE}"], {"assert_allclose": CLOSE}),
        (ASKS, ["%run helpers.py"], {"assert_allclose": ""}),
        (ASKS, ["from .helpers import assert_allclose"], {"assert_allclose": ""}),
        (ASKS, ["from helpers_of_ours import *"], {"assert_allclose": ""}),
        (ASKS, [f"try: {CLOSE}\nexcept ImportError: from mine import assert_allclose"], {"assert_allclose": CLOSE}),
        (f"from numpy.testing import *\n{ASKS}", [], {}),
        ("def again():\n    global calls\n    calls = mean([0])\nagain()\nassert calls == 0", [], {}),
        ("def again():\n    global calls\n    calls = mean([0])\nagain()\nassert calls == 0", ["calls = 1"], {}),
        ("assert mean(DATA) == 3", ["import numpy as np\nDATA = np.array([3])"], {"DATA": ""}),
        ("assert round(mean([1])) == 1", ["def round(x): ..."], {}),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_test_should_set_itself_is_found(test, others, found):
    assert borrowed(test, cells(*others)) == found


def test_what_an_answer_imports_is_not_the_students_to_say():
    answer = "import numpy as np\n" + MEAN
    assert borrowed("assert np.isclose(mean([1]), 1)", cells(answer=answer)) == {"np": "import numpy as np"}


def test_where_the_solution_is_not_there_what_nobody_sets_may_be_an_answers():
    stub = [Cell("from math import *\nx = None", False), Cell("raise NotImplementedError", True)]
    for test in ("assert mean([1]) == 1", "assert y == 1"):
        assert borrowed(test, Own(stub, is_solved=False)) == {}
    assert borrowed("assert x == 1", Own([*stub, Cell("x = 1", True)], is_solved=False)) == {}
    sets = Cell("def set_x():\n    global x\n    x = 3\nset_x()", False)
    assert borrowed("assert x == 1", Own([sets], is_solved=False)) == {"x": ""}
    assert borrowed("assert mean([1]) == 1", Own([Cell("mean = make(", True)], is_solved=True)) == {}  # no Python


def test_the_cell_of_a_test_itself_is_no_other():
    test = "from math import *\nassert mean([1]) == floor(1.5)"
    assert borrowed(test, Own([Cell(test, False), Cell(MEAN, True)], is_solved=True)) == {}


def test_a_test_that_is_no_python_is_left_to_whoever_runs_it():
    assert borrowed("assert mean([", cells("x = 1")) == {}


def test_a_function_in_which_something_is_imported_binds_nothing_at_the_top():
    assert names_of("def f():\n    import os\n    x = 1").imported == {}
    assert set(names_of("def f():\n    import os\n    x = 1").made) == {"f"}


@pytest.fixture
def marked(monkeypatch, capsys):
    """Marks a course in this process, so that a bug that was planted is in it; its status, and what it says."""

    def mark(course, *options):
        for name, value in course._environment("instructor").items():
            monkeypatch.setenv(name, value)
        capsys.readouterr()
        status = main([NAME, "--course", str(course.root), "--jobs", "1", *options])
        return status, "".join(capsys.readouterr())

    return mark


@NEEDS_SANDBOX
@pytest.mark.parametrize("where", ["locked", "plain", "answer"])
def test_nobody_is_graded_where_a_test_asks_the_student_what_is_right(tmp_path, where, marked):
    given = {"answer": f"{CLOSE}\n{MEAN}"} if where == "answer" else {where: CLOSE}
    own = f"{CLOSE} as close\n{ASKS.replace('assert_all', '')}"  # under a name that no other cell has
    course = OwnCourse(tmp_path, source_notebook({"test-own": own, "test-mean": ASKS}, **given))
    course.hand_in(anna=MEAN, mallory=FORGES)
    for options in ([], ["--dry-run"]):
        status, said = marked(course, *options)
        assert status == 2 and "'test-mean' needs `from numpy.testing import assert_allclose`" in said
        assert "'test-own'" not in said and f"generate_assignment {NAME} --force" in said and "Traceback" not in said
    said = course.nbgrader("autograde", NAME, ok=False)
    assert said.count("'test-mean' needs `from numpy.testing import assert_allclose`") == 1 and "Traceback" not in said
    assert course.marks() in ({}, {"anna": {"test-own": None, "test-mean": None}})


@NEEDS_SANDBOX
def test_nobody_is_graded_where_the_courses_own_solution_has_not_all_points(tmp_path, marked):
    tests = {"test-mean": "assert mean([1, 2]) == 1.5", "test-whole": "assert mean([1, 2]) == 1, 'as a whole number'"}
    course = OwnCourse(tmp_path, source_notebook(tests))
    course.hand_in(anna=MEAN)
    status, said = marked(course)
    assert status == 2 and "test-whole: 0 of 2 points. as a whole number" in said and "test-mean" not in said
    assert course.marks() == {} and not (course.root / "autograded").exists()
    assert not any((course.root / "normalised").glob("*"))
    status, said = marked(course, "--dry-run")
    assert status == 2 and "test-whole: 0 of 2 points. as a whole number" in said and "test-mean" not in said

    config = course.root / "nbgrader_config.py"
    meant = config.read_text()
    config.write_text(f"{meant}c.ExecuteOutside.unsolved = [{NAME!r}]\n")
    assert marked(course)[0] == 0
    assert course.marks() == {"anna": {"test-mean": 2, "test-whole": 0}}

    config.write_text(meant)
    assert marked(course)[0] == 2
    tests["test-whole"] = "assert mean([1, 3]) == 2"
    nbformat.write(source_notebook(tests), course.root / "source" / NAME / f"{NAME}.ipynb")
    course.nbgrader("generate_assignment", NAME, "--force")
    status, said = marked(course)
    assert status == 0 and "1 graded" in said and course.marks() == {"anna": dict.fromkeys(tests, 2)}


@NEEDS_SANDBOX
def test_the_solution_is_graded_once_and_again_when_it_changed(tmp_path, marked):
    course = OwnCourse(tmp_path, source_notebook({"test-mean": "assert mean([1, 2]) == 1.5"}))
    course.hand_in(anna=MEAN)
    assert marked(course)[0] == 0
    noted = course.root / "marks" / f".{NAME}-solved"
    before = noted.stat().st_mtime_ns
    course.hand_in(ben=MEAN)
    assert marked(course)[0] == 0 and noted.stat().st_mtime_ns == before
    with (course.root / "source" / NAME / f"{NAME}.ipynb").open("a") as file:
        file.write("\n")
    course.hand_in(cleo=MEAN)
    assert marked(course)[0] == 0 and noted.stat().st_mtime_ns > before
    assert course.marks() == {student: {"test-mean": 2} for student in ("anna", "ben", "cleo")}


@NEEDS_SANDBOX
def test_folders_of_other_names_and_a_dry_run_find_the_work(tmp_path, marked):
    """Where a configuration changes a list in its place, nbgrader reads all of it again when a setting is added."""
    named = "c.CourseDirectory.submitted_directory = 'handed_in'\nc.CourseDirectory.autograded_directory = 'marked'\n"
    course = OwnCourse(tmp_path, source_notebook({"test-mean": "assert mean([1, 2]) == 1.5"}), named)
    course.hand_in(anna=MEAN, ben="def mean(values):\n    return 0")
    (course.root / "submitted").rename(course.root / "handed_in")
    status, said = marked(course, "--dry-run")
    assert status == 1 and "anna: +2 points" in said and "ben: +0 points" in said
    assert marked(course)[0] == 0 and course.marks() == {"anna": {"test-mean": 2}, "ben": {"test-mean": 0}}
    assert (course.root / "marked" / "anna" / NAME / f"{NAME}.ipynb").is_file()


@pytest.mark.parametrize(("earned", "why", "lost"), [
    (1 - 1e-12, "", False), (1, "Stopped: a cell below the tests ended its own kernel", False), (0.9, "", True),
    (0.5, "Stopped: a cell ended its own kernel", True), (None, "nbgrader: broken", True),
])  # fmt: skip
def test_a_solution_lacks_points_where_a_test_gave_fewer(earned, why, lost, monkeypatch, tmp_path):
    monkeypatch.setattr(solved, "gradebook_of", lambda course: contextlib.nullcontext())
    monkeypatch.setattr(solved, "asked_of", lambda gradebook, assignment: {("ps1", "test"): 1.0})
    batch = SimpleNamespace(course=None, assignment="ps1", root=tmp_path)
    stands = {} if earned is None else {"notebooks": {"ps1": {"grades": {"test": {"auto_score": earned}}}}}
    with pytest.raises(ValueError, match=f"(?s){why}.*test: ") if lost else contextlib.nullcontext():
        solved.check_marks(batch, tmp_path, Marks(stands, why))


def test_a_solution_of_which_a_notebook_is_missing_is_not_graded(tmp_path, monkeypatch):
    monkeypatch.setattr(solved, "ExecuteOutside", lambda parent: SimpleNamespace(assignments={"ps1": []}, unsolved=[]))
    batch = SimpleNamespace(course=None, assignment="ps1", releases={"a": 1, "b": 2}, folder=lambda step: tmp_path)
    (tmp_path / "ps1").mkdir()
    (tmp_path / "ps1" / "a.ipynb").touch()
    assert solved.source_of(batch) is None
    (tmp_path / "ps1" / "b.ipynb").touch()
    assert solved.source_of(batch) == tmp_path / "ps1"
