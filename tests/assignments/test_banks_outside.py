"""From outside a solution has the marks that it has where its tests run beside it.

A part of each bank; `python -m tests.support.outside_bank` tries all.
"""

import subprocess
import sys
from itertools import groupby

import pytest

from tests.assignments.variants import Variant
from tests.support import outside_bank
from tests.support.course import ROOT
from tests.support.outside_bank import one_work, outside, part, together

BANKS = {bank.assignment: bank for bank in outside()}
# Those that import the same, which may take longer than all else, do it together.
ALIKE = [
    [bank.assignment for bank in alike]
    for _, alike in groupby(sorted(outside(), key=lambda bank: bank.modules), key=lambda bank: bank.modules)
]


@pytest.mark.parametrize("names", ALIKE, ids=" ".join)
def test_solutions_have_the_same_marks_from_outside(names):
    """In a process of its own: in this one other tests may have loaded what an assignment closes."""
    command = [sys.executable, "-m", "tests.support.outside_bank", "--part", *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in names:
        assert f"{name}: {len(part(BANKS[name]))} solutions" in done.stdout


def test_a_part_has_solutions_of_each_kind_and_those_that_are_handed_in_together_are_all_of_it():
    for bank in BANKS.values():
        some = part(bank)
        assert all(any(each in kind for each in some) for kind in (bank.right, bank.wrong, bank.tricks))
        groups = together(bank, some)
        assert sorted(each.name for group in groups for each in group) == sorted(each.name for each in some)
        for group in groups:
            work = one_work(group)
            assert all(work.cells[name] == code for each in group for name, code in each.cells.items())
            assert sum(work.loses.values()) == sum(sum(each.loses.values()) for each in group)


def test_where_those_handed_in_together_lose_something_else_each_is_tried_alone(monkeypatch, capsys):
    """And that counts: one whose mark is another is named, and the others are not."""
    bank = BANKS["attention-from-scratch"]
    group = next(group for group in together(bank, part(bank)) if sum(bool(each.loses) for each in group) > 1)
    guilty = next(each for each in group if each.loses)
    tried: list[Variant] = []

    def lost(of, variant):
        tried.append(variant)
        return {} if guilty.name in variant.name else variant.loses

    monkeypatch.setattr(outside_bank, "lost_outside", lost)
    assert outside_bank.main(["--part", bank.assignment]) == 1
    assert [line for line in capsys.readouterr().out.splitlines() if "should lose" in line] == [
        f"  {guilty.name}: loses {{}}, should lose {guilty.loses}"
    ]
    assert [each.name for each in tried[1:] if each in group] == [each.name for each in group]
