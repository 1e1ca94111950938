"""nbgrader's own command line, with hidden tests outside the student's process and a kernel in the sandbox."""

import shutil
import sys

import nbformat
import pytest

from tests.support.course import ASSIGNMENT, filled_in, generated_course, grade_id, maximum, reference_answers

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is one of Linux")
LAST = "multi-head-attention"
ENDS_IN_A_CALL = "import os\ndef padding_mask(ids, pad_id=0):\n    os._exit(1)"
ENDS_IN_A_CELL = "import os\nos._exit(1)"
CURIOUS = "\nprint('tests', [each[:40] for each in In if 'hidden' in each], [n for n in dir() if 'hidden' in n])"
WHERE = "\nimport os\nprint('folder', os.getcwd(), os.environ.get('COURSE_GRADING_SEED'))"
SHOWS_INPUT = "\ndef split_heads(x, n_heads):\n    raise ValueError(x[0, 0])"


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A course in which some have been graded, and what nbgrader said."""
    course = generated_course(tmp_path_factory.mktemp("outside"))
    answers = reference_answers(course.source)
    solved = filled_in(course.release, answers)
    works = {
        "curious": {LAST: answers[LAST] + CURIOUS + WHERE},
        "ends-in-a-call": {"padding-mask": ENDS_IN_A_CALL},
        "ends-in-a-cell": {"padding-mask": ENDS_IN_A_CELL},
        "shows-1": {"split-heads": answers["split-heads"] + SHOWS_INPUT},
        "shows-2": {"split-heads": answers["split-heads"] + SHOWS_INPUT},
        "shows-3": {"split-heads": answers["split-heads"] + SHOWS_INPUT + " "},
    }
    for student, cells in works.items():
        course.submit(student, filled_in(solved, cells))
    said = course.nbgrader("autograde", ASSIGNMENT)
    return course, said


def executed(course, student, name) -> str:
    """What a cell showed."""
    path = course.root / "autograded" / student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    cell = next(cell for cell in nbformat.read(path, as_version=4).cells if grade_id(cell) == name)
    return "\n".join(output.get("text", "") or "\n".join(output.get("traceback", [])) for output in cell.outputs)


def test_no_test_ever_enters_the_students_process(graded):
    course, _ = graded
    assert "tests [] []" in executed(course, "curious", LAST)
    assert sum(course.scores("curious")[name] for name in maximum(course.source)) == 26


def test_the_kernel_is_in_the_sandbox_and_knows_no_seed(graded):
    course, _ = graded
    assert "folder /tmp/work None" in executed(course, "curious", LAST)


@pytest.mark.parametrize("student", ["ends-in-a-call", "ends-in-a-cell"])
def test_who_ends_a_kernel_loses_that_part_alone(graded, student):
    course, _ = graded
    assert {name: course.scores(student)[name] for name in maximum(course.source)} == maximum(course.source) | {
        "test-padding-mask": 0
    }
    if student == "ends-in-a-cell":
        assert "the code ended its own kernel" in executed(course, student, "padding-mask")


def test_the_report_says_what_happened(graded):
    course, _ = graded
    said = executed(course, "ends-in-a-call", "test-padding-mask")
    assert said.count("Your code ended the process that it runs in.") == 3
    assert "26" not in said and "0 of 2 points" in said


def test_inputs_are_other_ones_for_other_students_and_the_same_when_graded_again(graded):
    course, _ = graded
    shown = [executed(course, f"shows-{n}", "test-split-heads") for n in (1, 2, 3)]
    assert all("ValueError" in each for each in shown) and len(set(shown)) == 3
    course.nbgrader("autograde", ASSIGNMENT, "--student", "shows-1", "--force")
    assert executed(course, "shows-1", "test-split-heads") == shown[0]


def test_feedback_has_the_report(graded):
    course, _ = graded
    course.nbgrader("generate_feedback", ASSIGNMENT, "--student", "ends-in-a-call")
    page = course.root / "feedback" / "ends-in-a-call" / ASSIGNMENT / f"{ASSIGNMENT}.html"
    assert "each query sees itself and the past" in page.read_text()


def test_without_a_sandbox_nothing_is_graded_unless_that_is_wanted(graded, tmp_path, monkeypatch):
    course, _ = graded
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))  # of everything but this environment's own programs
    for name in ("sh", "env"):
        (programs / name).symlink_to(shutil.which(name, path="/usr/bin:/bin"))
    arguments = ["autograde", ASSIGNMENT, "--student", "curious", "--force"]
    said = course.nbgrader(*arguments, ok=False)
    assert "There is no sandbox on this machine. Install bubblewrap" in said and "'off'" in said
    monkeypatch.setenv("COURSE_GRADING_SANDBOX", "off")
    course.nbgrader(*arguments)
    assert sum(course.scores("curious")[name] for name in maximum(course.source)) == 26
    assert f"folder {course.root}" in executed(course, "curious", LAST)
