"""The assignment through every step of nbgrader, with a real exchange, as instructor and as student."""

import csv
import getpass
from pathlib import Path

import nbformat
import pytest

from tests.assignments.variants.attention_from_scratch import wrong_attention
from tests.support.course import ASSIGNMENT, Course, filled_in, maximum, reference_answers

STUDENT = getpass.getuser()
NO_SCALE = next(variant for variant in wrong_attention.VARIANTS if variant.name == "no scale")
ANSWER = "1. The variance is $d_k$. 2. It saturates. 3. It sees the future. 4. Change a later token."


@pytest.fixture(scope="module")
def cycle(tmp_path_factory):
    """The whole cycle, run once; the tests below look at what it left."""
    course = Course(tmp_path_factory.mktemp("cycle"))
    said = {"generate": course.nbgrader("generate_assignment", ASSIGNMENT)}
    said["release"] = course.nbgrader("release_assignment", ASSIGNMENT)

    student = course.student_folder("student")
    as_student = {"cwd": student, "home": "student"}
    said["list"] = course.nbgrader("list", **as_student)
    said["fetch"] = course.nbgrader("fetch_assignment", ASSIGNMENT, **as_student)
    path = student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    fetched = nbformat.read(path, as_version=4)
    answers = reference_answers(course.source) | NO_SCALE.cells | {"explain": ANSWER}
    nbformat.write(filled_in(fetched, answers), path)
    said["submit"] = course.nbgrader("submit", ASSIGNMENT, **as_student)

    said["collect"] = course.nbgrader("collect", ASSIGNMENT)
    said["autograde"] = course.nbgrader("autograde", ASSIGNMENT)
    with course.gradebook() as gradebook:
        submission = gradebook.find_submission(ASSIGNMENT, STUDENT)
        before = {"score": submission.score, "max": submission.max_score, "manual": submission.needs_manual_grade}
        manual = gradebook.find_grade("explain", ASSIGNMENT, ASSIGNMENT, STUDENT)
        before["explain"] = (manual.auto_score, manual.needs_manual_grade)
        manual.manual_score = 2.5
        manual.needs_manual_grade = False
        comment = gradebook.find_comment("explain", ASSIGNMENT, ASSIGNMENT, STUDENT)
        comment.manual_comment = "Say why the terms are independent."
        gradebook.db.commit()

    said["feedback"] = course.nbgrader("generate_feedback", ASSIGNMENT)
    said["release feedback"] = course.nbgrader("release_feedback", ASSIGNMENT)
    said["fetch feedback"] = course.nbgrader("fetch_feedback", ASSIGNMENT, **as_student)
    said["export"] = course.nbgrader("export")
    return course, said, before, fetched


def test_the_student_sees_and_fetches_the_release(cycle):
    course, said, _, fetched = cycle
    assert ASSIGNMENT in said["list"]
    text = "\n".join(cell.source for cell in fetched.cells)
    assert "YOUR CODE HERE" in text and "YOUR ANSWER HERE" in text
    for secret in ("SOLUTION", "HIDDEN", "hidden_softmax", "most_negative", "Marking", "rng.normal"):
        assert secret not in text


def test_the_automatic_part_is_in_the_gradebook(cycle):
    course, _, before, _ = cycle
    scores = course.scores(STUDENT)
    assert {name: scores[name] for name in maximum(course.source)} == maximum(course.source) | {"test-attention": 4}
    assert before["score"] == 25 and before["max"] == 30


def test_the_written_answer_waits_for_a_person(cycle):
    _, _, before, _ = cycle
    assert before["manual"] is True
    assert before["explain"] == (None, True)


def test_the_total_counts_the_mark_a_person_gave(cycle):
    course, *_ = cycle
    with course.gradebook() as gradebook:
        submission = gradebook.find_submission(ASSIGNMENT, STUDENT)
        assert submission.score == 27.5
        assert not submission.needs_manual_grade
        assert gradebook.find_submission(ASSIGNMENT, STUDENT).written_score == 2.5


def test_the_export_has_the_scores(cycle):
    course, *_ = cycle
    with (course.root / "grades.csv").open() as lines:
        (row,) = csv.DictReader(lines)
    assert row["assignment"] == ASSIGNMENT and row["student_id"] == STUDENT
    assert float(row["score"]) == 27.5 and float(row["max_score"]) == 30


def test_the_student_gets_feedback_that_says_what_was_lost(cycle):
    course, *_ = cycle
    (page,) = Path(course.folder / "student").rglob("*.html")
    text = page.read_text()
    assert "the scale is one over the square root of d_k" in text
    assert "Say why the terms are independent." in text
    assert "27.5" in text


def test_autograde_twice_gives_the_same_marks_and_keeps_the_persons(cycle):
    course, *_ = cycle
    first = course.scores(STUDENT)
    course.nbgrader("autograde", ASSIGNMENT, "--force")
    assert course.scores(STUDENT) == first
    with course.gradebook() as gradebook:
        assert gradebook.find_submission(ASSIGNMENT, STUDENT).score == 27.5


def test_autograde_without_submissions_says_so(generated):
    said = generated.nbgrader("autograde", ASSIGNMENT, ok=False)
    assert "No notebooks were matched" in said
    assert "Traceback" not in said
