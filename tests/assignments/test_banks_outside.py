"""From outside a solution has the marks that it has where its tests run beside it.

A part of each bank; `python -m tests.support.outside_bank` tries all.
"""

import subprocess
import sys

import pytest

from tests.support.course import ROOT
from tests.support.outside_bank import outside


@pytest.mark.parametrize("name", [bank.assignment for bank in outside()])
def test_solutions_have_the_same_marks_from_outside(name):
    """In a process of its own: in this one other tests may have loaded what an assignment closes."""
    command = [sys.executable, "-m", "tests.support.outside_bank", "--part", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{name}: " in done.stdout
