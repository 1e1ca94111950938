"""Some combinations of many choices, in place of all: any two values of any two choices meet in one of them.

A fault that needs three particular values at once is rare, and the number of combinations grows with the two largest
choices alone. What must be tried in every framework stays a fixture or a `parametrize` of its own.
"""

from itertools import combinations, product

import pytest


def combined(**choices: list) -> list[tuple]:
    """Combinations of one value of each choice; any two values of two choices are in one of them."""
    every = list(product(*(range(len(values)) for values in choices.values())))
    missing = {pair for row in every for pair in _pairs(row)}
    found = []
    while missing:
        best = max(every, key=lambda row: len(missing.intersection(_pairs(row))))
        missing.difference_update(_pairs(best))
        found.append(tuple(values[i] for values, i in zip(choices.values(), best, strict=True)))
    return found


def _pairs(row: tuple[int, ...]) -> set[tuple]:
    return set(combinations(enumerate(row), 2))


def pairwise(**choices: list):
    """`pytest.mark.parametrize` with these combinations; a value may be a `pytest.param` with an id."""
    rows = []
    for row in combined(**choices):
        values = [value.values[0] if hasattr(value, "values") else value for value in row]
        rows.append(pytest.param(*values, id="-".join(str(getattr(value, "id", None) or value) for value in row)))
    return pytest.mark.parametrize(tuple(choices), rows)
