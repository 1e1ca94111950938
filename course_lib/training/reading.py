"""How the objectives read their batches: arrays for a model and labels, checked, and how many of these count.

Each function takes a model, the name of a batch for messages, and the batch: a named tuple of arrays, or a plain tuple
in the same order. Arrays are NumPy's; tensors are taken, by way of the CPU's memory. Each raises

- TypeError for what is no such batch, for ids or labels that are not integers, and for a model of texts that padding
  cannot be hidden from;
- ValueError for other axes, no sequence, ids outside of the vocabulary, a sequence over the model's maximum, and labels
  that do not fit. IGNORED (-100) is the label of what does not count.

Segments go to models that tell them apart: not to those of a single segment, such as RoBERTa, nor where the call has
none.
"""

from typing import NamedTuple, Self

import numpy as np

from course_lib.batches.contrastive import ContrastiveBatch
from course_lib.batches.images import ImageBatch
from course_lib.batches.masked import MaskedBatch, PretrainingBatch
from course_lib.batches.sounds import SoundBatch
from course_lib.batches.spans import SpanBatch
from course_lib.batches.texts import IGNORED, TextBatch, TokenBatch
from course_lib.batches.trajectories import TrajectoryBatch
from course_lib.checks import check_ids, check_tokens
from course_lib.models.decision import check_steps
from course_lib.models.images import check_images
from course_lib.models.whisper import check_sounds
from course_lib.training.arguments import (
    check_problem,
    check_reads_texts,
    max_len_of,
    pair_of,
    reads_segments,
    settings_of,
    vocabularies_of,
)
from course_lib.training.objective import Update
from course_lib.training.teacher_forcing import pad_id_of, teacher_forcing


class Fields(NamedTuple):
    """What a kind of batch must have: names with their axes."""

    kind: str
    axes: dict[str, str]

    @classmethod
    def of(cls, kind, *axes: str) -> Self:
        """Those of a named tuple, in its order."""
        return cls(kind.__name__, dict(zip(kind._fields, axes, strict=True)))


SEQUENCES = Fields("named tuple with `ids`", {"ids": "(B, T)"})
TEXTS = Fields.of(TextBatch, "(B, T)", "(B, T)", "(B,)")
TOKENS = Fields.of(TokenBatch, "(B, T)", "(B, T)")
MASKED = Fields.of(MaskedBatch, "(B, T)", "(B, T)")
SPANS = Fields.of(SpanBatch, "(B, T)", "(B, T)", "(B,)", "(B,)")
PRETRAINING = Fields.of(PretrainingBatch, "(B, T)", "(B, T)", "(B, T)", "(B,)")
CONTRASTIVE = Fields.of(ContrastiveBatch, "(B, T)", "(B, S)")
SOUNDS = Fields.of(SoundBatch, "(B, n_mels, F)", "(B, T)")
IMAGES = Fields.of(ImageBatch, "(B, C, height, width)", "(B,)")
TRAJECTORIES = Fields.of(TrajectoryBatch, "(B, T, d_state)", "(B, T, d_action)", "(B, T, 1)", "(B, T)", "(B, T)")
CHOICES = TRAJECTORIES._replace(axes=TRAJECTORIES.axes | {"actions": "(B, T)"})
NO_INTEGERS = ("images", "features", "states", "actions", "returns", "real")  # what is checked by its own rules
OPTIONAL = ("segments", "real")


def padding_of(model) -> int | None:
    """The padding id of a model that reads texts, its config's or its own; None for a model without one."""
    config = getattr(model, "config", None)
    return getattr(config, "pad_id", getattr(model, "pad_id", None))


def pairs(model, name: str, batch) -> Update:
    """Source and target ids (B, S), (B, T) -> source, inputs, labels (B, T - 1), padding included in these."""
    example = teacher_forcing(pair_of(name, batch))
    return Update(example._asdict(), (int((example.labels != pad_id_of(model)).sum()),))


def check_held_out_pairs(model, name: str, batch) -> None:
    """Raise ValueError for ids that a model cannot read: too many of them, or some outside of its vocabularies."""
    source, target = pair_of(name, batch)
    _check_length(name, max(source.shape[1], target.shape[1] - 1), max_len_of(model))
    for side, ids, size in zip(("source", "target"), (source, target), vocabularies_of(model), strict=True):
        _check_range(f"the {side} of {name}", _array(ids), size)


def sequences(model, name: str, batch) -> Update:
    """Ids (B, T) -> inputs and labels (B, T - 1), which are the next token; padding, if a model has it, is IGNORED."""
    ids = _fields(name, batch, SEQUENCES)["ids"]
    _check_texts(model, name, {"ids": ids[:, :-1]})
    _check_range(f"the ids of {name}", ids, _vocabulary(model))
    pad_id = padding_of(model)
    labels = ids[:, 1:] if pad_id is None else np.where(ids[:, 1:] == pad_id, IGNORED, ids[:, 1:])
    return Update({"ids": ids[:, :-1], "labels": labels}, (_count(labels),))


def texts(model, name: str, batch) -> Update:
    """TextBatch -> ids, segments and labels (B,) for a classifier."""
    check_problem(model)
    arrays = _texts(model, name, batch, TEXTS)
    _check_labels(f"the labels of {name}", arrays["labels"], settings_of(model).get("n_classes"))
    return Update(arrays, (_count(arrays["labels"]),))


def tokens(model, name: str, batch) -> Update:
    """TokenBatch -> ids and labels (B, T) for a classifier of tokens."""
    arrays = _texts(model, name, batch, TOKENS)
    _check_labels(f"the labels of {name}", arrays["labels"], settings_of(model).get("n_classes"))
    return Update(arrays, (_count(arrays["labels"]),))


def spans(model, name: str, batch) -> Update:
    """SpanBatch -> ids, segments, starts and ends (B,): of each answer the first token and the last one."""
    arrays = _texts(model, name, batch, SPANS)
    starts, ends = arrays["starts"], arrays["ends"]
    for side in ("starts", "ends"):
        _check_labels(f"the {side} of {name}", arrays[side], arrays["ids"].shape[1])
    bad = np.flatnonzero((ends < starts) | ((starts == IGNORED) != (ends == IGNORED)))
    if bad.size:
        where = f"row {bad[0]} of {name} has an answer from token {starts[bad[0]]} to token {ends[bad[0]]}"
        raise ValueError(
            f"{where}; it must not end before it starts, and where there is none to learn both are {IGNORED}"
        )
    pad_id, rows = padding_of(model), np.flatnonzero(ends != IGNORED)
    if pad_id is not None and (at := rows[arrays["ids"][rows, ends[rows]] == pad_id]).size:
        raise ValueError(f"row {at[0]} of {name} has an answer that ends at padding, token {ends[at[0]]}")
    return Update(arrays, (_count(starts) + _count(ends),))


def masked(model, name: str, batch) -> Update:
    """MaskedBatch -> ids, and labels (B, T), the tokens that stood at the blanks and IGNORED elsewhere."""
    arrays = _texts(model, name, batch, MASKED)
    _check_labels(f"the labels of {name}", arrays["labels"], _vocabulary(model))
    return Update(arrays, (_count(arrays["labels"]),))


def pretraining(model, name: str, batch) -> Update:
    """PretrainingBatch -> ids, segments, labels (B, T) of the blanks, and follows (B,), 1 for a true continuation."""
    arrays = _texts(model, name, batch, PRETRAINING)
    _check_labels(f"the labels of {name}", arrays["labels"], _vocabulary(model))
    _check_labels(f"the follows of {name}", arrays["follows"], 2)
    return Update(arrays, (_count(arrays["labels"]), _count(arrays["follows"])))


def contrastive(model, name: str, batch, directions: int = 1) -> Update:
    """ContrastiveBatch -> first (B, T) and second (B, S), two pairs or more, each told from the others 1 or 2 ways."""
    check_reads_texts(model)
    arrays = _fields(name, batch, CONTRASTIVE)
    _check_texts(model, name, arrays)
    if len(arrays["first"]) < 2:
        raise ValueError(f"{name} is one pair, with no other to tell it from; leave it out, or add it to another batch")
    return Update(arrays, (directions * len(arrays["first"]),))


def images(model, name: str, batch) -> Update:
    """ImageBatch -> images, float32 (B, C, height, width), and labels (B,) for a classifier whose config knows them."""
    check_problem(model)
    arrays, config = _fields(name, batch, IMAGES), getattr(getattr(model, "_orig_mod", model), "config", None)
    if not hasattr(config, "n_channels"):
        raise TypeError(f"a {type(model).__name__} reads no images: its config has no n_channels and no size")
    pixels = arrays["images"]
    check_images(pixels.shape, pixels.dtype, config.n_channels, config.size, f"the images of {name}")
    _check_labels(f"the labels of {name}", arrays["labels"], config.n_classes)
    return Update(arrays | {"images": pixels.astype(np.float32, copy=False)}, (_count(arrays["labels"]),))


def sounds(model, name: str, batch) -> Update:
    """SoundBatch -> features, float32 (B, n_mels, F), inputs and labels (B, T - 1), IGNORED at padding."""
    config = getattr(getattr(model, "_orig_mod", model), "config", None)
    if not hasattr(config, "n_mels"):
        raise TypeError(f"a {type(model).__name__} reads no sounds: its config has no n_mels")
    if config.pad_id == config.end_id:
        raise ValueError(
            f"the model takes the token {config.pad_id} for padding and for the end, which it would not learn to say; "
            "build it with another pad_id"
        )
    arrays = _fields(name, batch, SOUNDS)
    features, target = arrays["features"], arrays["target"]
    check_sounds(config, features.shape, features.dtype, f"the features of {name}")
    _check_length(name, target.shape[1] - 1, config.max_len)
    _check_range(f"the target of {name}", target, config.vocab_size)
    labels = np.where(target[:, 1:] == config.pad_id, IGNORED, target[:, 1:])
    numbers = features.astype(np.float32, copy=False)
    return Update({"features": numbers, "inputs": target[:, :-1], "labels": labels}, (_count(labels),))


def trajectories(model, name: str, batch) -> Update:
    """TrajectoryBatch -> states, actions, returns (B, T, ...), times, real (B, T), and labels (B, T) of actions as ids.

    Ids go into the model as vectors with a 1 at their place; the label of padding is IGNORED.
    """
    config = getattr(getattr(model, "_orig_mod", model), "config", None)
    if not hasattr(config, "d_action"):
        raise TypeError(f"a {type(model).__name__} reads no trajectories: its config has no d_state and no d_action")
    if type(batch) in (tuple, list) and len(batch) == len(TrajectoryBatch._fields):
        batch = TrajectoryBatch(*batch)
    are_ids = np.ndim(getattr(batch, "actions", None)) == 2
    arrays = _fields(name, batch, CHOICES if are_ids else TRAJECTORIES)
    real = np.ones(arrays["times"].shape, bool) if arrays["real"] is None else arrays["real"]
    check_tokens(f"the real of {name}", real.shape, real.dtype, arrays["times"].shape)
    arrays |= {"real": real}
    _check_range(f"the times of {name}", arrays["times"], config.max_len)
    if are_ids:
        arrays |= _choices(config, name, arrays["actions"], real)
    check_steps(config, *(arrays[key] for key in ("states", "actions", "returns", "times")), of=f" of {name}")
    numbers = {key: arrays[key].astype(np.float32, copy=False) for key in ("states", "actions", "returns")}
    return Update(arrays | numbers, (int(real.sum()),))


def _choices(config, name, ids, real) -> dict:
    """Actions that are ids (B, T) as vectors for the model, and as labels."""
    if ids.dtype.kind not in "iu":
        raise TypeError(
            f"the actions of {name} are numbers (B, T): as ids, one of d_action={config.d_action} each, they must be "
            "integers, and other actions have the shape (B, T, d_action)"
        )
    if config.action_tanh:
        raise ValueError(
            f"the actions of {name} are ids, whose logits a tanh would bound: build the model with action_tanh=False"
        )
    labels = np.where(real, ids, IGNORED)
    _check_labels(f"the actions of {name}", labels, config.d_action)
    return {"labels": labels, "actions": np.eye(config.d_action, dtype=np.float32)[np.where(real, ids, 0)]}


def _texts(model, name, batch, fields) -> dict:
    """The arrays of a batch whose ids go into a model, and the segments into one that tells them apart."""
    check_reads_texts(model)
    arrays = _fields(name, batch, fields)
    _check_texts(model, name, {"ids": arrays["ids"]})
    segments = arrays.pop("segments", None)
    if segments is not None and reads_segments(model):
        _check_range(f"the segments of {name}", segments, settings_of(model).get("n_segments"))
        arrays["segments"] = segments
    return arrays


def _fields(name, batch, fields: Fields) -> dict:
    """The arrays of a batch by their names, int64, of one shape where axes are the same; None where OPTIONAL."""
    if all(hasattr(batch, key) for key in fields.axes):
        found = {key: getattr(batch, key) for key in fields.axes}
    elif isinstance(batch, tuple | list) and not hasattr(batch, "_fields") and len(batch) == len(fields.axes):
        found = dict(zip(fields.axes, batch, strict=True))
    else:
        raise TypeError(f"{name} must be a {fields.kind}({', '.join(fields.axes)}); got {type(batch).__name__}")
    shapes = {}
    for key, value in found.items():
        if value is None and key in OPTIONAL:
            continue
        which, axes = f"the {key} of {name}", fields.axes[key]
        if not hasattr(value, "shape") or not hasattr(value, "dtype"):
            raise TypeError(f"{which} must be an array {axes}, got {type(value).__name__}")
        found[key] = value = _array(value)
        check_ids(which, value.shape, value.dtype.kind in "iu" or key in NO_INTEGERS, 0, 0, 1, axes)
        if value.shape[0] == 0 or value.shape[-1] == 0:
            raise ValueError(f"{which} has no sequence, or none with a token: its shape is {value.shape}")
        for axis, length in zip(axes.strip("(,)").split(", "), value.shape, strict=True):
            first, expected = shapes.setdefault(axis, (key, length))
            if length != expected:
                raise ValueError(
                    f"{which} has the shape {value.shape}, which does not fit its {first}: {axis} is {expected} there"
                )
    return found


def _array(value) -> np.ndarray:
    value = value.detach().cpu() if hasattr(value, "detach") else value  # PyTorch's, on any device
    value = np.asarray(value)
    return value.astype(np.int64, copy=False) if value.dtype.kind in "iu" else value


def _check_texts(model, name, arrays) -> None:
    for key, ids in arrays.items():
        _check_length(name, ids.shape[1], max_len_of(model))
        _check_range(f"the {key} of {name}", ids, _vocabulary(model))


def _check_length(name, length, max_len) -> None:
    if max_len is not None and length > max_len:
        raise ValueError(
            f"{name} has a sequence of {length} tokens, over the maximum of {max_len}; truncate or split it; "
            "where it was padded up to that, take another `multiple`"
        )


def _check_range(name, ids, size) -> None:
    if size is not None and ids.size:
        check_ids(name, ids.shape, True, int(ids.min()), int(ids.max()), size)


def _check_labels(name, labels, n) -> None:
    """Raise ValueError for labels that are neither IGNORED nor 0 ... n - 1."""
    real = labels[labels != IGNORED]
    if real.size and (real.min() < 0 or n is not None and real.max() >= n):
        least = f"in 0 ... {n - 1}" if n is not None else "at 0 or above"
        raise ValueError(f"{name} must lie {least}, or be {IGNORED} for none; got {real.min()} to {real.max()}")


def _vocabulary(model) -> int | None:
    return settings_of(model).get("vocab_size")


def _count(labels) -> int:
    return int((labels != IGNORED).sum())
