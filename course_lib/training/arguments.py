"""Checks of what a training is given, once for every framework: one clear error before the first update."""

import inspect
import math
import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from course_lib.errors import CheckpointError

KERAS_OWN = ("name", "trainable", "dtype")  # arguments of every layer; the second of two models has another name


def settings_of(model) -> dict:
    """What decides over a model's training besides its weights: the numbers, the names and the Nones of its config.

    A model without one is asked for the arguments of its class, in so far as it keeps them under their names; a layer
    stands for the name of its class, and a dropout for its rate.
    """
    model = getattr(model, "_orig_mod", model)  # of `torch.compile`
    config = getattr(model, "config", None)
    if config is None:
        names = [*inspect.signature(type(model).__init__).parameters, "dropout"]
        names = [name for name in names if name not in ("self", *KERAS_OWN) and hasattr(model, name)]
        found = {name: _named(getattr(model, name)) for name in names}
    else:
        found = config if isinstance(config, Mapping) else getattr(config, "__dict__", {})
    kinds = bool | int | float | str | np.number | None
    return {name: value for name, value in found.items() if isinstance(value, kinds)}


def _named(value):
    """A dropout as its rate, which PyTorch and Keras call otherwise, another layer as the name of its class."""
    rate = getattr(value, "p", getattr(value, "rate", None))
    if isinstance(rate, int | float):
        return rate
    return type(value).__name__ if hasattr(value, "forward") or hasattr(value, "call") else value


def max_len_of(model) -> int | None:
    """The most tokens of a sequence that a model's config, or the model itself, allows; None without such a limit."""
    config = getattr(getattr(model, "_orig_mod", model), "config", None)
    if hasattr(config, "longest"):  # of a RoBERTa less than the positions that it has
        return config.longest
    return settings_of(model).get("max_len", getattr(model, "max_len", None))


def n_classes_of(model, no_classifiers: tuple = ()) -> int:
    """The number of classes of a classifier's config; TypeError for a model without, or one of `no_classifiers`."""
    n_classes = getattr(getattr(model, "config", None), "n_classes", None)
    if n_classes is None or isinstance(getattr(model, "_orig_mod", model), no_classifiers):
        raise TypeError(
            f"a {type(model).__name__} does not classify texts: give a BertForSequenceClassification, or another model "
            "whose config has n_classes, and whose logits are (B, n_classes)"
        )
    return n_classes


def takes(model, argument: str) -> bool:
    """Whether the call of a model has an argument of this name."""
    model = getattr(model, "_orig_mod", model)  # of `torch.compile`
    call = getattr(model, "forward", None) or getattr(model, "call", None) or model
    return argument in inspect.signature(call).parameters


def check_reads_texts(model) -> None:
    """Check that the padding of texts can be hidden from a model: its call names a `mask`, and it says what padding is.

    Raises
    ------
    TypeError : neither a `pad_id` of the model's config nor one of its own; a call without `mask`, or one that takes it
        among others, as `**more`.
    """
    kind = type(getattr(model, "_orig_mod", model)).__name__
    if not takes(model, "mask"):
        raise TypeError(f"the call of a {kind} names no `mask`, which hides padding; wrap it by one that does")
    if not hasattr(getattr(model, "config", None), "pad_id") and not hasattr(model, "pad_id"):
        raise TypeError(f"a {kind} does not say what padding is; give it a `pad_id`, None if no text is padded")


def check_problem(model) -> None:
    """Raise ValueError for a classifier of a single class, or of a problem that a cross-entropy does not solve."""
    settings = settings_of(model)
    if settings.get("n_classes") == 1:
        raise ValueError("a classifier of one class has nothing to learn; for yes and no it has n_classes=2")
    if settings.get("problem_type") not in (None, "single_label_classification"):
        raise ValueError(
            f"the model is for the problem_type {settings['problem_type']!r}, and here each text has one class; set "
            "problem_type=None, or write an `Objective` of your own"
        )


def reads_segments(model) -> bool:
    """Whether a model tells the parts of its text apart: its call says so, unless its config has a single segment."""
    return settings_of(model).get("n_segments") != 1 and takes(model, "segments")


def vocabularies_of(model) -> tuple[int | None, int | None]:
    """How many different tokens a model's source and target have, one vocabulary or two; None where it does not say."""
    settings = settings_of(model)
    both = settings.get("vocab_size")
    return settings.get("source_vocab", both), settings.get("target_vocab", both)


def fingerprint(batches, found: int = 0) -> int:
    """A number that other batches do not have; goes on from `found`.

    Of a batch the first two parts count, or of a named tuple all but `rows`, which are places and not data. Integers
    of different kinds are the same numbers: source ids (B, S) and target ids (B, T) of any type.
    """
    for batch in batches:
        names = getattr(batch, "_fields", None)
        parts = batch[:2] if names is None else [p for p, name in zip(batch, names, strict=True) if name != "rows"]
        for part in parts:
            part = np.zeros(0) if part is None else part  # as the segments of single texts
            part = np.asarray(part.cpu() if hasattr(part, "detach") else part)  # PyTorch's, on any device
            part = np.ascontiguousarray(part, dtype=np.int64 if part.dtype.kind in "iu" else None)
            found = zlib.crc32(part, zlib.crc32(str(part.shape).encode(), found))
    return found


def number(name: str, value, or_else: str = "") -> float:
    """`value`, of NumPy or a tensor too, as Python's float; TypeError when it is no number, as the text "3" is none."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"{name} must be a number{or_else}, got {value!r:.60}") from None


def check_positive_or_zero(name: str, value, or_else: str = "") -> float:
    """`value`, such as a learning rate, as a float; ValueError unless it is finite and not negative."""
    if not 0 <= number(name, value, or_else) < math.inf:
        raise ValueError(f"{name} must be a number of 0 or more, got {value}")
    return float(value)


def check_limit(name: str, value, whole: bool = True) -> None:
    """Check a limit, of which None is none: TypeError for what is no number, ValueError unless it is positive.

    `whole`: it counts something, so a fraction is a ValueError, too.
    """
    if value is None:
        return
    if not number(name, value) > 0:
        raise ValueError(f"{name} must be positive, got {value}")
    if whole and math.isfinite(value) and value % 1:
        raise ValueError(f"{name} must be a whole number, got {value}")


def check_fraction(name: str, value) -> None:
    """Raise ValueError unless `value`, such as the part of the updates that warms up, lies in [0, 1)."""
    if not 0 <= number(name, value) < 1:
        raise ValueError(f"{name} is a fraction of the updates and must lie in [0, 1), got {value}")


def check_max_norm(max_norm) -> None:
    """Raise ValueError unless `max_norm` is positive, or None: a negative one would turn the gradient round."""
    if max_norm is not None and not number("max_norm", max_norm) > 0:
        raise ValueError(f"max_norm must be positive, got {max_norm}")


def check_parameters(kinds: Sequence[str], remedy: str) -> None:
    """Check the weights that will be trained.

    Parameters
    ----------
    kinds : of each the name of its type, as "float32" or "torch.float32"
    remedy : what to do about types of 16 bits

    Raises
    ------
    ValueError : nothing to train, or weights in float16 or bfloat16.
    """
    if not kinds:
        raise ValueError("all parameters are frozen, so there is nothing to train; let some of them be trained")
    for kind in ("bfloat16", "float16"):
        if any(found.endswith(kind) for found in kinds):
            raise ValueError(f"weights in {kind} are too coarse to be trained, as small updates vanish; {remedy}")


def check_all_held(missing: Sequence[str]) -> None:
    """Raise ValueError for weights that would be trained, by their names, and that the optimizer lacks."""
    if missing:
        raise ValueError(
            f"the optimizer lacks {len(missing)} weights that are to be trained, such as {missing[0]}; make it after "
            "`add_lora` and `unfreeze`, or freeze what shall stand still"
        )


def check_padding(batches, pad_id: int) -> None:
    """Raise ValueError when batches are padded with another id than a model takes for padding."""
    theirs = getattr(batches, "pad_id", pad_id)
    if theirs != pad_id:
        raise ValueError(
            f"the batches are padded with {theirs}, but the model takes {pad_id} for padding; give both the same pad_id"
        )


def check_lengths(sequences, max_len: int | None) -> None:
    """Raise ValueError for a sequence that is longer than a model has positions, before hours of training."""
    for i, ids in enumerate(sequences if max_len is not None else ()):
        if len(ids) > max_len:
            raise ValueError(
                f"sequences[{i}] has {len(ids)} tokens, over the maximum of {max_len}; truncate or split it, such as "
                "by `head_and_tail`"
            )


def check_trainable(folder, saved: Sequence[str] | None, now: Sequence[str] | None) -> None:
    """Raise CheckpointError when a training in a folder has other parameters than this one; None is unknown."""
    if saved is None or now is None or list(saved) == list(now):
        return
    gone, new = ([name for name in a if name not in set(b)] for a, b in ((saved, now), (now, saved)))
    raise CheckpointError(
        f"{folder} holds a training of other parameters: {len(gone)} of those are not trained here {gone[:3]}, and "
        f"{len(new)} of these not there {new[:3]}; freeze the same ones, or use another folder"
    )


def pair_of(name: str, batch) -> tuple:
    """The source ids (B, S) and the target ids (B, T) that a batch begins with, as integers of 64 bits.

    Raises
    ------
    TypeError : something else than two arrays of integers.
    ValueError : other axes, or not one sequence.
    """
    pair = () if isinstance(batch, Mapping) or not hasattr(batch, "__getitem__") else batch[:2]
    if len(pair) != 2:
        raise TypeError(
            f"{name} must begin with source ids (B, S) and target ids (B, T), as two arrays; got {type(batch).__name__}"
        )
    for side, ids in (("source", pair[0]), ("target", pair[1])):
        if type(ids) is np.ndarray and ids.ndim == 2 and ids.dtype.kind in "iu" and len(ids):  # the usual case
            continue
        which, axes = f"the {side} of {name}", f"(B, {side[0].upper()})"
        if not hasattr(ids, "shape") or not hasattr(ids, "dtype"):
            raise TypeError(f"{which} must be an array of ids {axes}, as `padded` makes; got {type(ids).__name__}")
        if len(ids.shape) != 2:
            raise ValueError(f"{which} must have shape {axes}, got {tuple(ids.shape)}")
        if "int" not in str(ids.dtype) and getattr(ids.dtype, "kind", "") not in "iu":
            raise TypeError(f"{which} must be integers, got {ids.dtype}")
        if ids.shape[0] == 0:
            raise ValueError(f"{which} has no sequence: its shape is {tuple(ids.shape)}")
    return tuple(_int64(ids) for ids in pair)


def _int64(ids):
    if hasattr(ids, "long"):  # PyTorch's, on any device
        return ids.long()
    return ids.astype(np.int64, copy=False) if isinstance(ids, np.ndarray) else ids


def check_validation(batches, objective, model, patience=None) -> int | None:
    """Check held-out batches before the training begins; None is none, in which case there must be no `patience`.

    Returns
    -------
    Their fingerprint.

    Raises
    ------
    TypeError : no sequence of batches, or one that is used up after the first validation; what is no ids.
    ValueError : no batch, another padding id than the model's, nothing that the objective counts, or what else it
        refuses, such as ids outside of the vocabulary.
    """
    if batches is None:
        if patience is not None:
            raise ValueError("patience counts validations, and there is no validation; give held-out batches")
        return None
    if not hasattr(batches, "__iter__") or iter(batches) is batches:
        raise TypeError(
            "validation must be a sequence of batches, which is read again at every validation, such as "
            f"`PairBatches(..., seed=None)`; got {type(batches).__name__}"
        )
    if hasattr(batches, "__len__") and len(batches) == 0:
        raise ValueError("validation has no batches; give None to have none")
    found, counts = 0, np.zeros(1, dtype=np.int64)
    for i, batch in enumerate(objective.padded_alike(model, batches)):
        name = f"batch {i} of validation"
        counts = counts + objective.read(model, name, batch).counts
        objective.check_held_out(model, name, batch)
        found = fingerprint([batch], found)
    for part in np.flatnonzero(counts == 0):
        raise ValueError(f"validation has no {objective.label_of(part)}")
    return found
