"""A course of somebody else's, marked from outside: tests that would ask the student what is right are refused."""

import nbformat
import pytest

from course_lib.grading.marking.__main__ import main
from course_lib.grading.outside.borrowed import Cell, borrowed, names_of
from tests.support.own_course import MEAN, NAME, OwnCourse, source_notebook
from tests.support.sandbox import NEEDS_SANDBOX

CLOSE = "from numpy.testing import assert_allclose"
ASKS = "assert_allclose(mean([1, 2]), 1.5)"
OWN = f"{CLOSE}\n{ASKS}"
FORGES = "assert_allclose = lambda *_: None\ndef mean(values):\n    return 0"


def cells(*others, answer=MEAN):
    return [*(Cell(other, False) for other in others), Cell(answer, True)]


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
        ("assert mean([x]) == x", ["def f():\n    x = 3\n    import os\n    from a import *"], None),
        ("assert allclose(mean([1]), 1)", ["from numpy import *"], {"allclose": "from numpy import allclose"}),
        ("assert mean([1]) == 1", ["from numpy import *", "def mean(values): ..."], {}),
        ("assert mean([x]) == x", ["%matplotlib inline\n!ls\nx = 1"], {"x": "x = 1"}),
        ("assert mean([x]) == x", ["x = 1\nthis is no Python"], {}),
        ("assert mean([x]) == x", [], {}),  # the notebook lacks it: its own solution will tell
        ("assert round(mean([1])) == 1", ["def round(x): ..."], {}),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_test_should_set_itself_is_found(test, others, found):
    if found is not None:
        assert borrowed(test, cells(*others)) == found


def test_what_an_answer_imports_is_not_the_students_to_say():
    answer = "import numpy as np\n" + MEAN
    assert borrowed("assert np.isclose(mean([1]), 1)", cells(answer=answer)) == {"np": "import numpy as np"}


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
    assert status == 2 and "test-whole: 0 of 2 points" in said

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
    with (course.root / "source" / NAME / "data.txt").open("w") as file:
        file.write("new")
    course.hand_in(cleo=MEAN)
    assert marked(course)[0] == 0 and noted.stat().st_mtime_ns > before
    assert course.marks() == {student: {"test-mean": 2} for student in ("anna", "ben", "cleo")}
