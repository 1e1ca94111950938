"""Whether a function left tensors as they were; `untouched` is for arrays, and for what holds them."""

import numpy as np

from course_lib.grading.compare import expect
from course_lib.grading.frameworks import owner_of
from course_lib.grading.untouched import expect_untouched


def expect_kept(given, before, name: str) -> None:
    """Check that a function left its argument as it was.

    Args:
        given: the argument after the call: a tensor of PyTorch or of TensorFlow, or a dictionary of them.
        before: the array that the tensor was made of, whose numbers may be of another precision; or a dictionary of
            these.
        name: the argument's name.

    Raises:
        CheckFailed: where a number, a shape or a key differs.
    """
    expect_untouched(*_arrays(given, before), name)


def expect_differentiable(tensor, name: str) -> None:
    """Check that a function left a tensor by which derivatives are taken in its graph.

    Args:
        tensor: the argument after the call, of PyTorch or of TensorFlow.
        name: the argument's name.

    Raises:
        CheckFailed: where PyTorch takes no derivatives by it any more.
    """
    expect(
        getattr(tensor, "requires_grad", True),
        f"the gradient was taken from the argument `{name}`; `detach()` returns a new tensor.",
    )


def _arrays(given, before) -> tuple:
    """Both as arrays of the same dtype."""
    if owner := owner_of(given):
        array = owner.numbers(given)
        return array, before if array is None else np.asarray(before).astype(array.dtype)
    if isinstance(given, dict) and isinstance(before, dict) and given.keys() == before.keys():
        pairs = {key: _arrays(given[key], before[key]) for key in before}
        return tuple({key: pair[place] for key, pair in pairs.items()} for place in (0, 1))
    return given, before
