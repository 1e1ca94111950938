"""The public checks say what is wrong: each mistake is named in words, in the cell that shows it."""

import pytest

from tests.assignments.variants.banks import BANKS
from tests.support.course import grade_id

each_bank = pytest.mark.parametrize("bank", BANKS, ids=str)


def failures(notebook) -> dict[str, str]:
    """What each failing public cell says, white space made even."""
    said = {}
    for cell in notebook.cells:
        if cell.cell_type == "code" and (grade_id(cell) or "").startswith("check-"):
            errors = [output for output in cell.outputs if output.output_type == "error"]
            said |= {grade_id(cell): " ".join(" ".join(error.traceback).split()) for error in errors}
    return said


@pytest.mark.parametrize(("bank", "name"), [(bank, name) for bank in BANKS for name in bank.says], ids=str)
def test_a_public_check_names_the_mistake(scorers, bank, name):
    cell, words = bank.says[name]
    (variant,) = (variant for variant in bank.wrong + bank.tricks if variant.name == name)
    said = failures(scorers(bank).outcome(variant))
    assert words in said[cell]
    assert said[cell].startswith("CheckFailed") and "Traceback" not in said[cell]


@each_bank
def test_no_wrong_solution_passes_the_public_checks_unknown(scorers, bank):
    passed = {variant.name for variant in bank.wrong if not failures(scorers(bank).outcome(variant))}
    assert passed == bank.unseen.keys()


@pytest.mark.parametrize(("bank", "variant"), [(b, v) for b in BANKS for v in b.right], ids=str)
def test_public_checks_pass_right_solutions(scorers, bank, variant):
    assert failures(scorers(bank).outcome(variant)) == {}
