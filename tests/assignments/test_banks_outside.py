"""From outside a solution has the marks that it has where its tests run beside it.

A part of each bank; `python -m tests.support.outside_bank` tries all.
"""

import pytest

from tests.support.outside_bank import lost_outside, outside, solutions

EVERY = 9  # solution is tried, and all that change what they are given: from outside, that is seen another way
TRIED = [
    (bank, each)
    for bank in outside()
    for number, each in enumerate(solutions(bank))
    if number % EVERY == 0 or any(word in each.name for word in ("argument", "in place", "taken off"))
]


@pytest.mark.parametrize(("bank", "variant"), TRIED, ids=lambda each: str(each).replace(" ", "-"))
def test_a_solution_has_the_same_marks_from_outside(bank, variant):
    assert lost_outside(bank, variant) == variant.loses


def test_all_banks_that_are_marked_from_outside_are_tried():
    assert {bank.assignment for bank, _ in TRIED} == {bank.assignment for bank in outside()} and outside()
