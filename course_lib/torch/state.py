"""A model's weights as a dict under dotted names, out and in."""

import numpy as np
import torch
from torch import nn

from course_lib.checkpoints.weights import match
from course_lib.errors import CheckpointError


def get_state(module) -> dict[str, np.ndarray]:
    """The weights as {dotted name: copy of the array}; matrices are (d_out, d_in), bfloat16 comes as float32.

    The names are those of the model itself, also when it or a part of it is compiled, or when it is wrapped for several
    devices; to be trained by our loops, it must not be wrapped. A matrix with a LoRA comes as the sum of both.
    """
    sums = {name: layer.weight for name, layer in _with_lora(module).items()}
    return {name: _array(sums.get(name, value)) for name, value in _parameters(module).items()}


def set_state(module, state, partial: bool = False) -> None:
    """Set the weights from a dict, in the dtype and on the device of the model.

    Parameters
    ----------
    state : {dotted name: array}, matrices (d_out, d_in); every weight of the module and no other. A LoRA is zero after
    partial : True leaves a parameter that `state` does not hold as it is

    Raises
    ------
    CheckpointError : a name missing (unless partial) or unknown, or a wrong shape; nothing is changed then.
    """
    filled = _fill(_parameters(module), state, new=("",) if partial else ())
    with torch.no_grad():
        for name, layer in _with_lora(module).items():
            if name in filled:
                layer.lora_b.zero_()


def _fill(places, state, new=()) -> dict:
    """Set parameters by their names, as `set_state`; what was set."""
    expected = {name: tuple(value.shape) for name, value in places.items()}
    if any(place.is_meta for place in places.values()):
        raise CheckpointError(
            "the model is on the meta device, which keeps no numbers; give it room first, by model.to_empty(device=...)"
        )
    with torch.no_grad():
        values = match(expected, state, new)
        for name, value in values.items():
            places[name].copy_(_tensor(value))
    torch.clear_autocast_cache()  # copies of the weights as they were, with which an autocast around us would go on
    return values


def _parameters(module, lora: bool = False) -> dict:
    """The parameters themselves under the names that `get_state` gives them, in PyTorch's order; a LoRA's if asked."""
    names = {_plain(name): value for name, value in _unwrapped(module).named_parameters()}
    return {name: value for name, value in names.items() if lora or name.rpartition(".")[2] not in ("lora_a", "lora_b")}


def _with_lora(module) -> dict:
    """The layers that `course_lib.torch.lora` put into a model, under the names of their matrices."""
    layers = _unwrapped(module).named_modules()
    return {_plain(f"{name}.weight").lstrip("."): layer for name, layer in layers if hasattr(layer, "lora_b")}


def _unwrapped(module):
    return module.module if isinstance(module, (nn.DataParallel, nn.parallel.DistributedDataParallel)) else module


def _get_buffers(module) -> dict[str, np.ndarray]:
    """Copies of what a model keeps besides its weights, such as the averages of a BatchNorm; ours keep nothing."""
    return {name: _array(value) for name, value in _buffers(module).items()}


def _set_buffers(module, state) -> None:
    """Set the buffers from a dict of `_get_buffers`; those that it does not hold stay as they are."""
    with torch.no_grad():
        for name, value in _buffers(module).items():
            if name in state:
                value.copy_(_tensor(state[name]))


def _plain(name: str) -> str:
    """The name of a weight without what `torch.compile` puts into it."""
    return name.replace("_orig_mod.", "")


def _buffers(module):
    kept = module.state_dict(keep_vars=True)  # without those that can be computed anew
    return {_plain(name): value for name, value in module.named_buffers() if name in kept}


def _tensor(value):
    if isinstance(value, torch.Tensor):
        return value
    value = np.array(value, order="C")  # a copy: some are read-only
    return torch.from_numpy(value.astype(np.float32) if value.dtype.name == "bfloat16" else value)


def _array(value):
    value = value.detach().cpu()
    # NumPy has no bfloat16; float32 holds each of its numbers exactly
    return (value.float() if value.dtype == torch.bfloat16 else value).numpy().copy()
