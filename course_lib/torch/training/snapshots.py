"""All that a training in PyTorch needs to go on exactly, as arrays by name, out and in."""

import numpy as np
import torch

from course_lib.torch.state import _array, _fill, _get_buffers, _parameters, _plain, _set_buffers, get_state, set_state
from course_lib.torch.training.common import device_of
from course_lib.training.training_file import under


def snapshot(model, optimizer) -> dict[str, np.ndarray]:
    """Weights, buffers, optimizer and random state as arrays by name; `restore` takes them back."""
    arrays = {f"model.{name}": value for name, value in get_state(model).items()}
    arrays |= {f"buffer.{name}": value for name, value in _get_buffers(model).items()}
    names = _names(model, optimizer)
    for i, entries in optimizer.state_dict()["state"].items():
        for entry, value in entries.items():
            if value is not None:  # as some optimizers have for what they do not use
                value = torch.as_tensor(value)
                value = value.float() if value.dtype == torch.bfloat16 else value  # NumPy lacks it; cast back later
                arrays[f"optimizer.{names[i]}:{entry}"] = value.cpu().numpy().copy()
    arrays["random.cpu"] = torch.get_rng_state().numpy().copy()
    if device_of(model).type == "cuda":
        arrays["random.cuda"] = torch.cuda.get_rng_state(device_of(model)).numpy().copy()
    return arrays


def restore(model, optimizer, arrays) -> None:
    """Set what `snapshot` kept; CheckpointError when the weights do not fit the model."""
    set_state(model, under(arrays, "model."))
    _set_buffers(model, under(arrays, "buffer."))
    places = {name: i for i, name in enumerate(_names(model, optimizer))}
    state = {i: {} for i in places.values()}
    for key, value in under(arrays, "optimizer.").items():
        name, entry = key.split(":")
        state[places[_plain(name)]][entry] = torch.from_numpy(value.copy())
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    torch.set_rng_state(torch.from_numpy(arrays["random.cpu"].copy()))
    if "random.cuda" in arrays and device_of(model).type == "cuda":
        torch.cuda.set_rng_state(torch.from_numpy(arrays["random.cuda"].copy()), device_of(model))


def weights_of(model) -> dict[str, np.ndarray]:
    """Weights and buffers, a LoRA beside its matrices, as `set_weights` takes them back."""
    return {name: _array(weight) for name, weight in _parameters(model, lora=True).items()} | _get_buffers(model)


def set_weights(model, weights) -> None:
    """Set what `weights_of` gave."""
    buffers = _get_buffers(model)
    own = {name: value for name, value in weights.items() if name not in buffers}
    _fill(_parameters(model, lora=True), own)
    _set_buffers(model, weights)


def _names(model, optimizer) -> list[str]:
    """The name of each weight of an optimizer, in the order of its groups, by which PyTorch counts them."""
    names = {id(weight): name for name, weight in _parameters(model).items()}
    return [names[id(weight)] for group in optimizer.param_groups for weight in group["params"]]
