"""Checks of a configuration's fields, so that each says the same of the same mistake."""

import math
from dataclasses import fields
from numbers import Integral, Real

import numpy as np


def make_plain(config) -> None:
    """NumPy's numbers as Python's: equal, and a file of settings can hold them."""
    for field in fields(config):
        value = getattr(config, field.name)
        if isinstance(value, np.generic):
            object.__setattr__(config, field.name, value.item())


def check_sizes(config, *names: str) -> None:
    """Raise ValueError unless each of these fields is an integer of 1 or more."""
    for name in names:
        value = getattr(config, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be an integer of 1 or more, got {value!r}")


def check_switches(config, *names: str) -> None:
    """Raise ValueError unless each of these fields is True or False; a text would count as True."""
    for name in names:
        value = getattr(config, name)
        if value is not True and value is not False:
            raise ValueError(f"{name} must be one of True, False; got {value!r}")


def check_dropouts(config, *names: str) -> None:
    """Raise ValueError unless each of these fields is a probability in [0, 1)."""
    for name in names:
        value = getattr(config, name)
        if not is_number(value) or not 0 <= value < 1:
            raise ValueError(f"{name} is a probability in [0, 1), got {value!r}")


def check_norm_eps(value) -> None:
    """Raise ValueError unless `value` is a positive number."""
    if not is_number(value) or value <= 0:
        raise ValueError(f"norm_eps is added to a variance and must be a small positive number, got {value!r}")


def check_pad_id(pad_id, name: str, size: int, what: str = "pad_id") -> None:
    """Raise ValueError unless the field `what` is an id of the vocabulary of `size` tokens in the field `name`."""
    if isinstance(pad_id, bool) or not isinstance(pad_id, Integral) or not 0 <= pad_id < size:
        raise ValueError(f"{what} must be an id of the vocabulary, 0 ... {size - 1} for {name}={size}; got {pad_id!r}")


def check_class_names(config) -> None:
    """Raise ValueError unless the field `labels` is None or a text for each class; a list becomes a tuple."""
    labels = config.labels
    if labels is None:
        return
    if not isinstance(labels, (tuple, list)) or not all(isinstance(label, str) for label in labels):
        raise ValueError(f"labels must be the names of the classes, texts; got {labels!r}")
    object.__setattr__(config, "labels", tuple(labels))  # a list would make the configuration unhashable
    if len(labels) != config.n_classes:
        raise ValueError(f"there are {len(labels)} labels for n_classes={config.n_classes}; give each class its name")


def is_number(value) -> bool:
    """Whether `value` is a finite number and no boolean."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
