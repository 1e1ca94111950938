"""nbgrader itself, with a kernel per submission: it agrees with the quick scorer, and survives damage."""

import copy
import shutil

import pytest

from tests.assignments.variants.attention_from_scratch import BANK
from tests.support.course import ASSIGNMENT, Course, filled_in, grade_id, maximum, reference_answers

VARIANTS = {variant.name: variant for variant in BANK.right + BANK.wrong + BANK.tricks}
# Parts are independent, so one submission holds several variants: a kernel each would take too long.
COMPARED = {
    "right, with text on standard error": [
        "prints, logs and writes to standard error",
        "minus infinity, then NaN to zero, with warnings",
    ],
    "right, with a thread on standard error": [
        "a thread that writes to standard error",
        "helpers called score, heads, mask, x, expected",
    ],
    "right, with display settings": ["notebook-wide display settings", "a list of heads, then stack"],
    "partial credit": ["softmax in float32", "mask after the softmax", "heads merged without transposing"],
    "partial credit, with text on standard error": ["wrong, and writes to standard error", "mask not passed on"],
    "a displayed mark, a closed import": ["displays a mark through the hook", "imports the library's attention"],
    "an exit, prose for code": ["calls sys.exit", "prose in a code cell"],
    "a syntax error, a wrong mask": ["a syntax error", "causal mask off by one"],
}


def answers(name):
    """The cells of all variants of this submission; the first that has a cell hands it in."""
    return {cell: code for variant in reversed(COMPARED[name]) for cell, code in VARIANTS[variant].cells.items()}


def without(notebook, *names):
    notebook = copy.deepcopy(notebook)
    notebook.cells = [cell for cell in notebook.cells if grade_id(cell) not in names]
    return notebook


def edited(notebook, name, source):
    return filled_in(notebook, {name: source})


@pytest.fixture(scope="module")
def graded(generated, tmp_path_factory):
    """All submissions of this module, graded by one `nbgrader autograde`."""
    course = Course(tmp_path_factory.mktemp("agreement"), copied_from=generated.root)
    release, reference = course.release, reference_answers(course.source)
    solved = filled_in(release, reference)
    for number, name in enumerate(COMPARED):
        course.submit(f"compared-{number}", filled_in(solved, answers(name)))
    course.submit("untouched", release)
    endless = "def causal_mask(T):\n    while True:\n        pass"
    course.submit("endless", edited(solved, "causal-mask", endless))
    course.submit("tests-deleted", without(solved, "setup", "test-softmax", "check-softmax", "test-causal-mask"))
    course.submit("answer-deleted", without(solved, "attention", "check-attention", "test-attention"))
    course.submit("all-deleted", without(solved, *filter(None, map(grade_id, solved.cells))))
    course.submit("cells-emptied", filled_in(solved, {"attention": "", "explain": ""}))
    cheating = edited(solved, "softmax", "def softmax(x):\n    return x")
    for cell in cheating.cells:
        if grade_id(cell) == "test-softmax":
            cell.source, cell.metadata.nbgrader.points = "400.0", 400
    course.submit("points-edited", cheating)
    said = course.nbgrader_script("autograde", ASSIGNMENT)
    return course, said


def expected(course, **lost):
    points = maximum(course.source)
    return points | {name.replace("_", "-"): points[name.replace("_", "-")] - loss for name, loss in lost.items()}


def found(course, student):
    scores = course.scores(student)
    return {name: scores[name] for name in maximum(course.source)}


@pytest.mark.parametrize("name", COMPARED)
def test_nbgrader_and_the_quick_scorer_agree(graded, scorer, name):
    course, _ = graded
    student = f"compared-{list(COMPARED).index(name)}"
    quick = scorer.score(answers(name))
    assert found(course, student) == {cell: quick[cell] for cell in maximum(course.source)}


@pytest.mark.parametrize("name", COMPARED)
def test_nbgrader_takes_the_points_the_variants_should_lose(graded, name):
    course, _ = graded
    lost = {}
    for variant in COMPARED[name]:
        lost |= VARIANTS[variant].loses
    student = f"compared-{list(COMPARED).index(name)}"
    assert found(course, student) == {c: of - lost.get(c, 0) for c, of in maximum(course.source).items()}


def test_nbgrader_gives_the_untouched_release_nothing(graded):
    course, _ = graded
    assert set(found(course, "untouched").values()) == {0}
    with course.gradebook() as gradebook:
        submission = gradebook.find_submission(ASSIGNMENT, "untouched")
        assert submission.score == 0 and not submission.needs_manual_grade


def test_an_endless_loop_costs_its_own_part_alone(graded):
    course, _ = graded
    assert found(course, "endless") == expected(course, test_causal_mask=2)


def test_tests_that_a_student_deletes_come_back(graded):
    course, said = graded
    assert found(course, "tests-deleted") == expected(course)
    assert "Cell 'test-softmax' is missing from the submission and was put back" in said


def test_a_deleted_answer_costs_its_own_part_alone(graded):
    course, said = graded
    lost = expected(course, test_attention=5, test_masked_attention=5)
    assert found(course, "answer-deleted") == lost
    assert found(course, "cells-emptied") == lost
    assert "Cell 'attention' is missing from the submission and was put back" in said


def test_a_notebook_without_any_of_our_cells_scores_zero(graded):
    course, _ = graded
    assert set(found(course, "all-deleted").values()) == {0}


def test_neither_points_nor_tests_can_be_edited(graded):
    course, _ = graded
    assert found(course, "points-edited") == expected(course, test_softmax=3)


def test_an_emptied_written_answer_still_waits_for_a_person(graded):
    course, _ = graded
    with course.gradebook() as gradebook:
        assert gradebook.find_grade("explain", ASSIGNMENT, ASSIGNMENT, "cells-emptied").needs_manual_grade


def test_validate_passes_the_reference(generated, tmp_path):
    source = generated.root / "source" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    shutil.copy(source, tmp_path)
    assert "Success!" in generated.nbgrader("validate", tmp_path / source.name)


def test_validate_tells_the_untouched_release_what_to_do(generated, tmp_path):
    shutil.copy(generated.root / "release" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb", tmp_path)
    said = generated.nbgrader("validate", tmp_path / f"{ASSIGNMENT}.ipynb")
    assert "VALIDATION FAILED ON 9 CELL(S)" in said
    assert said.count("Not written yet: the function raises NotImplementedError.") == 8
    assert said.count("You did not provide a response.") == 1
    assert "Traceback" not in said
