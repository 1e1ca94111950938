"""Solutions as data: what each replaces in the reference solution, and which points it must lose."""

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

    def __post_init__(self):
        object.__setattr__(self, "cells", {name: dedent(code).strip("\n") for name, code in self.cells.items()})
