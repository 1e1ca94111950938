"""The settings of a LoRA (Hu et al. 2022) and the folder that holds it alone, the same in every framework."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from course_lib.checkpoints.weights import match, read_checkpoint, within, write_checkpoint
from course_lib.checks import check_count, check_positive
from course_lib.errors import CheckpointError


class LoRA(NamedTuple):
    """How a model was adapted, as `add_lora` was told."""

    rank: int
    alpha: float
    parts: tuple[str, ...]
    also: tuple[str, ...]


def chosen_layers(lora: LoRA, layers: Iterable[str], weights: Iterable[str], before: LoRA | None) -> list[str]:
    """The layers that get a LoRA, of the linear `layers` of a model with these names of `weights`.

    Raises
    ------
    ValueError : a rank below one, an alpha that is not positive, parts that there are not, or a LoRA `before`.
    """
    check_count("rank", lora.rank)
    check_positive("alpha", lora.alpha)
    if before is not None:
        raise ValueError("this model has a LoRA already; `merge_lora` makes it a part of the weights")
    layers, weights = list(layers), list(weights)
    for part in lora.parts:
        if not any(name.split(".")[-1] == part for name in layers):
            names = ", ".join(dict.fromkeys(name.split(".")[-1] for name in layers))
            raise ValueError(f"parts={part!r} names no linear layer of this model; its linear layers are {names}")
    for part in lora.also:
        if not part or not any(within(name, [part]) for name in weights):
            names = ", ".join(dict.fromkeys(name.split(".")[0] for name in weights))
            raise ValueError(f"also={part!r} names no part of this model; its parts are {names}")
    return [name for name in layers if name.split(".")[-1] in lora.parts]


def write_lora(folder, lora: LoRA | None, matrices: Mapping[str, np.ndarray], state: Mapping[str, np.ndarray]) -> Path:
    """Write the matrices of a LoRA and, of the model's `state`, what is trained besides.

    Raises
    ------
    ValueError : no LoRA, or one of zeros.
    """
    if lora is None:
        raise ValueError("this model has no LoRA to save; `add_lora` adds one")
    if not any(value.any() for name, value in matrices.items() if name.endswith("lora_b")):
        raise ValueError(
            "the LoRA of this model is zero: it was not trained, or `set_state` made it a part of the weights; then "
            "save the model itself"
        )
    others = {name: value for name, value in state.items() if within(name, lora.also)}
    return write_checkpoint(folder, {"lora": lora._asdict()}, {**matrices, **others})


def read_lora(folder) -> tuple[LoRA, dict[str, np.ndarray]]:
    """What `write_lora` wrote: the settings, and all matrices.

    Raises
    ------
    CheckpointError : a folder of something else.
    """
    settings, state = read_checkpoint(folder)
    try:
        found = LoRA(**settings["lora"])
        return found._replace(parts=tuple(found.parts), also=tuple(found.also)), state
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{folder} holds no LoRA that save_lora wrote") from error


def divided(lora: LoRA, shapes: Mapping[str, tuple], weights: Mapping[str, tuple], state) -> tuple[dict, dict]:
    """The matrices of a LoRA, and the other weights that it holds; `shapes` and `weights` are those of the model.

    Raises
    ------
    CheckpointError : a LoRA of another model.
    """
    others = {name: shape for name, shape in weights.items() if within(name, lora.also)}
    found = match({**shapes, **others}, state)
    return {name: found[name] for name in shapes}, {name: found[name] for name in others}
