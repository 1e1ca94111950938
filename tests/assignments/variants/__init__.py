"""Solutions as data: what each replaces in the reference solution, and which points it must lose.

A folder for each assignment, named as it, with `_` for `-`; its `BANK` is what the tests of every grader take.
"""

from dataclasses import dataclass, field
from textwrap import dedent


@dataclass(frozen=True)
class Variant:
    """One submission.

    name: what it does, for the test's id.
    cells: maps a solution cell's grade_id to the code handed in there; other cells hold the reference.
    loses: maps a graded cell's grade_id to the points it must lose; nothing else may be lost.
    why: why these points and no others.
    """

    name: str
    cells: dict[str, str]
    loses: dict[str, float] = field(default_factory=dict)
    why: str = ""

    def __str__(self) -> str:
        return self.name

    def __post_init__(self):
        object.__setattr__(self, "cells", {name: dedent(code).strip("\n") for name, code in self.cells.items()})


@dataclass(frozen=True)
class Bank:
    """What proves the grader of one assignment.

    assignment: the folder in assignments/source, and the notebook in it.
    right, wrong: solutions that lose nothing; solutions, each with what it loses.
    tricks: submissions that try for points they did not earn, or end the notebook; they lose points as wrong ones do.
    says: for some of the wrong, the public cell that fails and a part of what it says.
    unseen: names of wrong solutions that pass every public check, each with the reason why it may.
    equivalent: generated changes of the reference that are right all the same (see tests/support/mutants.py), by cell
        and change, each with a reason.
    modules: imported once, before any submission is scored.
    """

    assignment: str
    right: list[Variant]
    wrong: list[Variant]
    tricks: list[Variant] = field(default_factory=list)
    says: dict[str, tuple[str, str]] = field(default_factory=dict)
    unseen: dict[str, str] = field(default_factory=dict)
    equivalent: dict[tuple[str, str], str] = field(default_factory=dict)
    modules: tuple[str, ...] = ("numpy.random",)

    def __str__(self) -> str:
        return self.assignment
