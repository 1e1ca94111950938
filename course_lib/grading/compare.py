"""Comparisons whose failure tells a student what is wrong.

The comparison is written out here and bound to NumPy's functions at import. A notebook that replaces
`numpy.testing.assert_allclose` afterwards changes nothing.
"""

import textwrap

import numpy as np

RTOL = 1e-4
ATOL = 1e-6

_abs, _all, _array, _isfinite, _isnan = np.abs, np.all, np.array, np.isfinite, np.isnan
_broadcast_to, _unravel_index, _argmax = np.broadcast_to, np.unravel_index, np.argmax


class CheckFailed(AssertionError):
    """A check did not hold; the message is written for the student.

    IPython prints the message alone: a traceback through the checker would only hide it.
    """

    def __init__(self, message: str):
        # nbgrader validate cuts every line after 87 columns, so the lines are wrapped before that.
        lines = [wrapped for line in str(message).splitlines() for wrapped in textwrap.wrap(line, 80) or [""]]
        super().__init__("\n".join(lines))

    def _render_traceback_(self) -> list[str]:
        return [f"CheckFailed: {self}"]


def expect(condition: bool, message: str) -> None:
    """Raise `CheckFailed(message)` unless `condition` holds."""
    if not condition:
        raise CheckFailed(message)


def as_array(actual, what: str = "the result", kind: str = "f"):
    """Return `actual` as a plain `numpy.ndarray` copy, after checking that it holds what it should.

    A copy of the numbers is compared, never the student's object: a class that answers True to every
    comparison gains nothing.

    Args:
        actual: what the student's function returned.
        what: how to call it in a message.
        kind: the NumPy dtype kinds accepted: "f" floats, "b" booleans, "i" and "u" integers.

    Raises:
        CheckFailed: for None, for a ragged list, and for any other kind of value.
    """
    expect(actual is not None, f"{what} is None. Did you forget to `return` it?")
    if callable(getattr(actual, "detach", None)):  # a PyTorch tensor that is part of a graph, or on another device
        actual = actual.detach().cpu()
    try:
        array = _array(actual, copy=True, subok=False)
    except Exception as error:
        raise CheckFailed(f"{what} is no array: NumPy says {type(error).__name__}: {error}") from None
    names = {"f": "floats", "b": "True and False (dtype bool)", "i": "integers", "u": "integers"}
    wanted = " or ".join(dict.fromkeys(names[letter] for letter in kind))
    expect(
        array.dtype.kind in kind,
        f"{what} should be an array of {wanted}; yours is a {type(actual).__name__} of dtype {array.dtype}.",
    )
    return array


def expect_array(actual, expected, what: str = "the result", mistakes=None, rtol=RTOL, atol=ATOL) -> None:
    """Check shape and values, and name the mistake when the values are those of a known one.

    Args:
        actual: what the student's function returned, array-like.
        expected: the right answer, array-like; its dtype kind (float or bool) is required of `actual`.
        what: how to call the value in a message.
        mistakes: maps an explanation to the array that this mistake gives. The first that fits is shown.
        rtol, atol: as in `numpy.testing.assert_allclose`.

    Raises:
        CheckFailed: on a wrong kind, shape or value, or where a number is NaN or infinite.
    """
    expected = _array(expected)
    actual = as_array(actual, what, kind=expected.dtype.kind)
    for explanation, value in (mistakes or {}).items():
        value = _array(value)
        if actual.shape == value.shape and _close(actual, value, rtol, atol):
            raise CheckFailed(f"{what}: {explanation}")
    expect(
        actual.shape == expected.shape,
        f"{what} has shape {actual.shape}; it should have shape {expected.shape}.",
    )
    if expected.dtype.kind == "f":
        bad = int((~_isfinite(actual)).sum())
        expect(bad == 0, f"{what}: {bad} of its {actual.size} numbers are NaN or infinite.")
    if not _close(actual, expected, rtol, atol):
        error = _abs(actual.astype(float) - expected.astype(float))
        place = tuple(int(i) for i in _unravel_index(_argmax(error), error.shape))
        where = f"at index {list(place)} " if place else ""
        yours, right = _shown(actual[place], expected[place])
        raise CheckFailed(f"{what}: {where}you have {yours}; it should be {right}.")


def expect_shape(actual, shape: tuple, what: str = "the result", kind: str = "f"):
    """Check the shape alone, and return the value as a plain array.

    Raises:
        CheckFailed: where the shape is another one, or the value no array of this kind (see `as_array`).
    """
    array = as_array(actual, what, kind)
    expect(array.shape == shape, f"{what} has shape {array.shape}; it should have shape {shape}.")
    return array


def expect_dtype(actual, dtype, what: str = "the result") -> None:
    """Check the dtype exactly, float64 against float32 say.

    Raises:
        CheckFailed: where it is another one.
    """
    found = _array(actual, copy=True, subok=False).dtype
    expect(found == dtype, f"{what} has dtype {found}; it should be {_array([], dtype).dtype}.")


def expect_pair(result, first: str = "context", second: str = "weights") -> tuple:
    """Return the two values of a function that returns a pair.

    Raises:
        CheckFailed: unless `result` is a tuple or list of exactly two.
    """
    count = f"{len(result)} values" if isinstance(result, (tuple, list)) else f"a {type(result).__name__}"
    expect(
        isinstance(result, (tuple, list)) and len(result) == 2,
        f"The function should return two values, `{first}, {second}`; yours returned {count}.",
    )
    return tuple(result)


def expect_unchanged(array, before, name: str) -> None:
    """Check that a function left its argument as it was.

    Args:
        array: the argument after the call.
        before: a copy of it made before the call.
        name: the argument's name.

    Raises:
        CheckFailed: where a number differs.
    """
    expect(
        array.shape == before.shape and bool(_all((array == before) | (_isnan(array) & _isnan(before)))),
        f"Your function changed its argument `{name}` in place. Work on a copy: `x = x - m` makes one, "
        "`x -= m` does not.",
    )


def _close(actual, expected, rtol, atol) -> bool:
    if actual.dtype.kind != "f" or expected.dtype.kind != "f":
        return bool(_all(actual == expected))
    actual, expected = actual.astype(float), _broadcast_to(expected.astype(float), actual.shape)
    both_nan = _isnan(actual) & _isnan(expected)
    with np.errstate(invalid="ignore"):
        near = _abs(actual - expected) <= atol + rtol * _abs(expected)
    return bool(_all(near | both_nan | (actual == expected)))


def _shown(*values) -> list[str]:
    """Two values that differ, with five digits, or as many as show that they do."""
    if values[0].dtype.kind == "b":
        return [str(bool(value)) for value in values]
    for digits in range(5, 18):
        shown = [f"{float(value):.{digits}g}" for value in values]
        if len(set(shown)) == len(shown):
            break
    return shown
