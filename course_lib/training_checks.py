"""Checks of what a training is given, once for every framework: one clear error before the first update."""

import math


def settings_of(model) -> dict:
    """What decides over a model's training besides its weights: the numbers and names of its config, or its dropout."""
    config = getattr(model, "config", None)
    if config is None:
        dropout = getattr(model, "dropout", None)
        found = {"dropout": getattr(dropout, "p", getattr(dropout, "rate", dropout))}  # PyTorch's and Keras's names
    else:
        found = vars(config)
    return {name: value for name, value in found.items() if isinstance(value, bool | int | float | str)}


def check_positive_or_zero(name: str, value) -> None:
    """Raise ValueError unless `value`, such as a learning rate, is finite and not negative."""
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be a number of 0 or more, got {value}")


def check_max_norm(max_norm) -> None:
    """Raise ValueError unless `max_norm` is positive, or None: a negative one would turn the gradient round."""
    if max_norm is not None and not max_norm > 0:
        raise ValueError(f"max_norm must be positive, got {max_norm}")


def check_padding(batches, pad_id: int) -> None:
    """Raise ValueError when batches are padded with another id than a model takes for padding."""
    theirs = getattr(batches, "pad_id", pad_id)
    if theirs != pad_id:
        raise ValueError(
            f"the batches are padded with {theirs}, but the model takes {pad_id} for padding; give both the same pad_id"
        )


def check_validation(batches, pad_id: int) -> None:
    """Check held-out batches before the training begins; None is none.

    Raises
    ------
    TypeError : no sequence of batches, or one that is used up after the first validation.
    ValueError : no batch, or another padding id than the model's.
    """
    if batches is None:
        return
    if not hasattr(batches, "__iter__") or iter(batches) is batches:
        raise TypeError(
            "validation must be a sequence of batches, which is read again at every validation, such as "
            f"`PairBatches(..., seed=None)`; got {type(batches).__name__}"
        )
    if hasattr(batches, "__len__") and len(batches) == 0:
        raise ValueError("validation has no batches; give None to have none")
    check_padding(batches, pad_id)
