"""One generated course for all tests of this folder, and the quick scorers of its assignments."""

import pytest

from tests.assignments.variants.banks import BANKS
from tests.support.course import ASSIGNMENT, generated_course
from tests.support.quick import QuickScorer, source_of


@pytest.fixture(scope="session")
def generated(tmp_path_factory):
    """A course after `nbgrader generate_assignment`. Tests that grade make their own."""
    return generated_course(tmp_path_factory.mktemp("generated"))


@pytest.fixture(scope="session")
def scorers():
    """Gives the scorer of a bank, which scores notebooks in-process; test_nbgrader_agreement.py compares nbgrader."""
    made = {}

    def scorer_of(bank) -> QuickScorer:
        if bank.assignment not in made:
            made[bank.assignment] = QuickScorer(source_of(bank.assignment), bank.modules)
        return made[bank.assignment]

    yield scorer_of
    for scorer in made.values():
        scorer.close()


@pytest.fixture(scope="session")
def scorer(scorers):
    """The scorer of the assignment that `generated` has."""
    return scorers(next(bank for bank in BANKS if bank.assignment == ASSIGNMENT))
