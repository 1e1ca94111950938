"""Helpers for graded notebooks: checks that explain themselves, and a score nbgrader reads correctly.

A public check (`check`) stops at the first fault and says what it is. A `Score` gathers hidden checks
and ends in a plain Python float, the only value that nbgrader 0.9 turns into partial credit reliably.
Neither lets the code under test print, warn, exit or loop its way to another mark.
"""

from course_lib.grading.closed import close_modules, expect_closed
from course_lib.grading.compare import (
    CheckFailed,
    as_array,
    expect,
    expect_array,
    expect_dtype,
    expect_pair,
    expect_shape,
    expect_unchanged,
)
from course_lib.grading.contain import contained
from course_lib.grading.imports import check, graded_with
from course_lib.grading.kept import expect_differentiable, expect_kept
from course_lib.grading.packed import pack, unpack
from course_lib.grading.score import Score, Slip
from course_lib.grading.tensors import Tensors
from course_lib.grading.untouched import expect_untouched

__all__ = [
    "CheckFailed",
    "Score",
    "Slip",
    "Tensors",
    "as_array",
    "check",
    "close_modules",
    "contained",
    "expect",
    "expect_array",
    "expect_closed",
    "expect_differentiable",
    "expect_dtype",
    "expect_kept",
    "expect_pair",
    "expect_shape",
    "expect_unchanged",
    "expect_untouched",
    "graded_with",
    "pack",
    "unpack",
]
