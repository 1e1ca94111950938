"""A model's weights as a dict under dotted names, out and in."""

import numpy as np

from course_lib.checkpoints.weights import match
from course_lib.numpy.layers import Module


def get_state(module) -> dict[str, np.ndarray]:
    """The weights as {dotted name: copy of the array}; matrices are (d_out, d_in)."""
    return {name: getattr(owner, attribute).copy() for name, owner, attribute in _parameters(module)}


def set_state(module, state, partial: bool = False) -> None:
    """Set the weights from a dict, as float64.

    Parameters
    ----------
    state : {dotted name: array}, matrices (d_out, d_in); every weight of the module and no other
    partial : True leaves a parameter that `state` does not hold as it is

    Raises
    ------
    CheckpointError : a name missing (unless partial) or unknown, or a wrong shape; nothing is changed then.
    """
    parameters = list(_parameters(module))
    expected = {name: getattr(owner, attribute).shape for name, owner, attribute in parameters}
    values = match(expected, state, new=("",) if partial else ())
    for name, owner, attribute in parameters:
        if name in values:
            setattr(owner, attribute, np.array(values[name], dtype=np.float64))


def _parameters(module, prefix=""):
    for attribute, value in vars(module).items():
        if isinstance(value, np.ndarray):
            yield prefix + attribute, module, attribute
        elif isinstance(value, list):
            for i, part in enumerate(value):
                yield from _parameters(part, f"{prefix}{attribute}.{i}.")
        elif isinstance(value, Module):
            yield from _parameters(value, f"{prefix}{attribute}.")
