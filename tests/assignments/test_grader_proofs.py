"""Changes of the reference made by machine are noticed, and charged in their own part; the record holds all of them."""

import json

import pytest

from tests.assignments.variants.banks import BANKS
from tests.support.course import reference_answers
from tests.support.mutants import mutants, own_part
from tests.support.proof import RECORD, SEEDS, fate, fingerprint, one_of_each, tried_anew
from tests.support.quick import source_of

each_bank = pytest.mark.parametrize("bank", BANKS, ids=str)


@pytest.fixture(scope="module")
def record():
    return json.loads(RECORD.read_text(encoding="utf-8"))


def made(bank):
    """All changes. One of each cell is tried anew each time; `python -m tests.support.proof` tries all."""
    return mutants(reference_answers(source_of(bank.assignment)))


@each_bank
def test_a_change_of_the_reference_is_noticed_and_charged_in_its_own_part(scorers, bank):
    for mutant in one_of_each(made(bank), lambda mutant: mutant.cell):
        found = fate(scorers(bank), mutant)
        assert found.caught == (mutant[:2] not in bank.equivalent), mutant
        assert found.outside == {}, mutant


@each_bank
def test_what_is_called_equivalent_is_a_change_that_loses_nothing(scorers, bank):
    changes = {mutant[:2]: mutant for mutant in made(bank)}
    assert all(bank.equivalent.values()) and bank.equivalent.keys() <= changes.keys()
    for key in one_of_each(bank.equivalent, lambda key: key[0]):
        assert not fate(scorers(bank), changes[key]).caught, key


@each_bank
def test_the_record_is_of_this_assignment_and_says_that_all_is_well(bank, record):
    found = record[bank.assignment]
    assert found["fingerprint"] == fingerprint(bank), "python -m tests.support.proof renews the record"
    for solution in found["solutions"]:
        assert set(solution["lost"]) == {solution["price"]}, solution["name"]
        assert len(solution["lost"]) == (1 if solution["kind"] == "tricks" else len(SEEDS))
    changes = found["mutants"]
    assert changes["made"] >= 100
    assert changes["caught"] >= 0.99 * (changes["made"] - len(changes["equivalent"]))
    assert changes["charged outside"] == []
    assert found["misnamed"] == [] and found["unused"] == []


@each_bank
def test_what_is_tried_anew_is_of_every_kind_and_of_every_cell(bank):
    some, changes = tried_anew(bank), made(bank)
    for kind, variants in some.items():
        assert variants and all(variant in getattr(bank, kind) for variant in variants), kind
    assert list(some) == ["right", "wrong", "tricks"]
    cells = {cell for variant in bank.wrong for cell in variant.cells}
    assert {cell for variant in some["wrong"] for cell in variant.cells} == cells
    tried = [mutant.cell for mutant in one_of_each(changes, lambda mutant: mutant.cell)]
    assert sorted(tried) == sorted({mutant.cell for mutant in changes})


def test_the_record_has_the_assignments_in_order(record):
    assert list(record) == [bank.assignment for bank in BANKS]


def test_changes_are_of_every_kind_and_always_the_same():
    body = ['"""No change of this."""', "z = np.sum(x[0] - y, axis=1)", 'return -z / 2, f"{x}"']
    answers = {"f": "def f(x, y):\n    " + "\n    ".join(body)}
    found = mutants(answers)
    assert found == mutants(answers)
    after = {mutant.change.split("  ->  ")[1] for mutant in found}
    for changed in [
        "z = np.sum(x[0] + y, axis=1)", "z = np.sum(x[0] - y, axis=2)", "z = -np.sum(x[0] - y, axis=1)",
        "z = np.sum(y - x[0], axis=1)", "z = np.sum(x[0] - y)", "z = np.sum(x - y, axis=1)", "z = x[0] - y", "pass",
        "z = np.mean(x[0] - y, axis=1)", "z = np.sum(y[0] - y, axis=1)", "return (-z * 2, f'{x}')",
        "return (z / 2, f'{x}')", "return (f'{x}', -z / 2)",
    ]:  # fmt: skip
        assert changed in after, changed
    assert len({mutant.source for mutant in found}) == len(found)


def test_a_part_has_the_graded_cells_after_its_own():
    parts = own_part(source_of("attention-from-scratch"))
    assert parts["attention"] == {"test-attention", "test-masked-attention"}
    assert parts["softmax"] == {"test-softmax"}
