"""The public checks say what is wrong: each mistake is named in words, in the cell that shows it."""

from dataclasses import replace

import pytest

from tests.assignments.variants.banks import BANKS
from tests.support.proof import failures, misnamed, tried_anew, unused_slips, unused_tests

each_bank = pytest.mark.parametrize("bank", BANKS, ids=str)


@each_bank
def test_the_public_checks_say_of_a_solution_what_the_bank_says(scorers, bank):
    """Of those that are tried anew; the proof did it for all."""
    some = sum(tried_anew(bank).values(), [])
    assert any(variant.name in bank.says for variant in some)
    assert misnamed(bank, scorers(bank), some) == []


@each_bank
def test_what_the_bank_names_is_in_it(bank):
    names = {variant.name for variant in bank.wrong + bank.tricks}
    assert bank.says.keys() <= names and bank.unseen.keys() <= names
    assert not bank.says.keys() & bank.unseen.keys() and all(bank.unseen.values())


def test_what_is_said_otherwise_is_found(scorers):
    """The sentences of `misnamed`: of a right solution called wrong, a wrong one called right, and other words."""
    bank = BANKS[0]
    scorer, right = scorers(bank), bank.right[0]
    wrong = next(variant for variant in bank.wrong if variant.name in bank.says)
    cell, words = bank.says[wrong.name]
    assert words in failures(scorer.outcome(wrong))[cell]

    def found(variant, **changes):
        return misnamed(replace(bank, **changes), scorer, [variant])

    assert "do not see" in found(right, right=[], wrong=[right])[0]
    assert "right, and the public checks say" in found(wrong, right=[wrong], wrong=[])[0]
    assert "should say 'other words'" in found(wrong, says={wrong.name: (cell, "other words")})[0]
    assert "see it" in found(wrong, says={}, unseen={wrong.name: "never"})[0]


def test_a_hidden_test_that_no_solution_fails_is_found(scorers):
    bank = next(bank for bank in BANKS if bank.assignment == "fine-tune-bert")
    scorer, few = scorers(bank), replace(bank, wrong=bank.wrong[:1])
    assert len(unused_tests(few, scorer)) > 20
    assert unused_slips(few, scorer)
