"""One generated course for all tests of this folder, and the quick scorer made from it."""

import pytest

from tests.support.course import ASSIGNMENT, Course, reference_answers
from tests.support.quick import QuickScorer, with_hidden_tests


@pytest.fixture(scope="session")
def generated(tmp_path_factory):
    """A course after `nbgrader generate_assignment`. Tests that grade make their own."""
    course = Course(tmp_path_factory.mktemp("generated"))
    course.nbgrader("generate_assignment", ASSIGNMENT)
    return course


@pytest.fixture(scope="session")
def scorer(generated):
    """Scores notebooks in-process; test_nbgrader_agreement.py shows that it agrees with nbgrader."""
    with generated.gradebook() as gradebook:
        graded = with_hidden_tests(generated.release, gradebook, ASSIGNMENT)
    scorer = QuickScorer(graded, reference_answers(generated.source))
    yield scorer
    scorer.close()
