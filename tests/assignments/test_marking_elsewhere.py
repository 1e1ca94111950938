"""Grading where processes are started and not forked, and where there is no sandbox: as on macOS and Windows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import course_lib
from tests.support import course as support
from tests.support.course import ASSIGNMENT, Course, filled_in, maximum, reference_answers

SCRIPT = Path(support.__file__).with_name("elsewhere.py")
ENDS = "\nimport os\nos._exit(3)"
ENDS_IN_A_CALL = "\nimport os\ndef softmax(x, axis=-1):\n    os._exit(3)"


@pytest.fixture(scope="module")
def graded(generated, tmp_path_factory):
    """A course after its grading, and what that said."""
    course = Course(tmp_path_factory.mktemp("elsewhere") / "course", copied_from=generated.root)
    answers = reference_answers(course.source)
    softmax = next(name for name, source in answers.items() if "def softmax" in source)
    course.submit("anna", filled_in(course.release, answers))
    course.submit("ben", filled_in(course.release, answers | {softmax: "1 / 0"}))
    course.submit("ends-in-a-call", filled_in(course.release, answers | {softmax: answers[softmax] + ENDS_IN_A_CALL}))
    course.submit("ends-in-a-cell", filled_in(course.release, answers | {softmax: answers[softmax] + ENDS}))
    course.submit("pdf", filled_in(course.release, answers))
    next((course.root / "submitted" / "pdf").rglob("*.ipynb")).write_bytes(b"%PDF")
    environment = course._environment("instructor") | {"COURSE_GRADING_SANDBOX": "off"}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(course_lib.__file__).parents[1]), environment["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, SCRIPT, ASSIGNMENT], cwd=course.root, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr  # somebody needs attention
    return course, done.stdout


def test_right_works_have_their_points_and_others_what_they_earned(graded):
    course, _ = graded
    points = {name: most for name, most in maximum(course.source).items() if name.startswith("test-")}

    def lost(student):
        scores = course.scores(student)
        return {name for name, most in points.items() if scores[name] != most}

    assert lost("anna") == set()
    assert "test-softmax" in lost("ben")
    assert lost("ends-in-a-call") == {"test-softmax"} == lost("ends-in-a-cell")


def test_who_is_not_graded_is_named_and_pages_are_made(graded):
    course, said = graded
    assert "pdf (no score): It could not be graded" in said
    assert len(list((course.root / "feedback").rglob("*.html"))) == 4
