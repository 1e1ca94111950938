"""Whether a function left a list or a dictionary as it was; `compare.expect_unchanged` is for an array."""

import numpy as np

from course_lib.grading.compare import expect


def expect_untouched(given, before, name: str) -> None:
    """Check that a function left its argument as it was.

    Args:
        given: the argument after the call: a list, a tuple or a dictionary of arrays and other values.
        before: a copy of it, made before the call, or the values that it was made of.
        name: the argument's name.

    Raises:
        CheckFailed: where a value, a length or a key differs.
    """
    expect(_same(given, before), f"Your function changed its argument `{name}`. Work on a copy.")


def _same(value, before) -> bool:
    if isinstance(before, np.ndarray):
        return isinstance(value, np.ndarray) and np.array_equal(value, before)
    if isinstance(before, dict):
        alike = isinstance(value, dict) and value.keys() == before.keys()
        return alike and all(_same(value[key], before[key]) for key in before)
    if isinstance(before, (list, tuple)):
        alike = isinstance(value, (list, tuple)) and len(value) == len(before)
        return alike and all(map(_same, value, before))
    return value == before
