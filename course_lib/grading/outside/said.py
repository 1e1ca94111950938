"""What a kernel says of a call, beside what it returns: errors, and arguments that were changed."""

import math

import numpy as np

from course_lib.grading.answering import ERRORS
from course_lib.grading.compare import CheckFailed
from course_lib.grading.frameworks import ALIKE, Pair, owner_of
from course_lib.grading.values import NAME, Budget, Malformed, read

# The largest whole number that a function of ours gets, and the most entries that an array without any would have
VALUE_SIZE = 2**12


def changes_of(arguments: dict, changed: dict, frameworks: Pair = ALIKE) -> list[tuple]:
    """What the student's function changed of its arguments: as it was given, and as it was left, part by part.

    frameworks : of tensors, as a `Budget` has them
    """
    found: list[tuple] = []
    for key, form in changed.items():
        if key not in arguments:
            raise Malformed("it changes what it was not given")
        left = [(arguments[key], read(form, Budget(frameworks=frameworks)))]
        while left:
            before, after = left.pop()
            found.append((before, after))
            if isinstance(before, (list, tuple)) and isinstance(after, (list, tuple)) and len(before) == len(after):
                left += zip(before, after, strict=True)
            elif isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
                left += ((before[name], after[name]) for name in before)
    return found


def too_large(value) -> bool:
    """Whether a right version could be made to compute with this for ever, small as it is to send."""
    if isinstance(value, np.ndarray):
        return value.size == 0 and math.prod(max(size, 1) for size in value.shape) > VALUE_SIZE
    if owner := owner_of(value):
        return too_large(owner.numbers(value))
    return isinstance(value, (int, np.integer)) and abs(int(value)) > VALUE_SIZE


def error_of(types, text) -> CheckFailed:
    """An error as it was raised there, of the nearest of Python's own types as well, with its text."""
    types = [name for name in types if isinstance(name, str)] if isinstance(types, list) else []
    name = types[0] if types and NAME.fullmatch(types[0]) else "Exception"
    own = [ERRORS[each] for each in types if each in ERRORS and not issubclass(CheckFailed, ERRORS[each])][:1]
    return type(name, (CheckFailed, *own), {})(text[:2_000] if isinstance(text, str) else name)


def end_of(content: dict) -> str:
    """How a request that should have gone on ended."""
    return f"Your code ended the test: {str(content.get('ename'))[:80]}: {str(content.get('evalue'))[:300]}."
