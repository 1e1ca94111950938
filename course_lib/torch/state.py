"""A model's weights as a dict under dotted names, out and in."""

import numpy as np
import torch

from course_lib.weights import match


def get_state(module) -> dict[str, np.ndarray]:
    """The weights as {dotted name: copy of the array}; matrices are (d_out, d_in)."""
    return {name: value.detach().cpu().numpy().copy() for name, value in module.named_parameters()}


def set_state(module, state, partial: bool = False) -> None:
    """Set the weights from a dict, in the dtype and on the device of the model.

    Parameters
    ----------
    state : {dotted name: array}, matrices (d_out, d_in); every weight of the module and no other
    partial : True leaves a parameter that `state` does not hold as it is

    Raises
    ------
    CheckpointError : a name missing (unless partial) or unknown, or a wrong shape; nothing is changed then.
    """
    parameters = dict(module.named_parameters())
    expected = {name: tuple(value.shape) for name, value in parameters.items()}
    with torch.no_grad():
        for name, value in match(expected, state, new=("",) if partial else ()).items():
            parameters[name].copy_(torch.from_numpy(np.array(value, order="C")))  # a copy: some are read-only
