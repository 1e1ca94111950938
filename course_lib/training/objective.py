"""What a training minimises: an objective reads a batch, asks the model, and gives the loss and what it counts."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from course_lib.training.arguments import check_padding, number
from course_lib.training.history import Evaluation, JointEvaluation


class Update(NamedTuple):
    """What an objective read of a batch, all in NumPy's arrays or the tensors that came."""

    arrays: dict[str, Any]  # what `losses` takes by these names
    counts: tuple[int, ...]  # for each part of the loss, how many predictions it is a mean over


class Part(NamedTuple):
    """A part of a loss, a mean over `n` predictions; all are tensors of one framework."""

    loss: Any  # what is minimised
    nll: Any  # the mean negative log-likelihood of the labels, in nats: the loss without smoothing; of numbers the loss
    n: Any
    logits: Any  # (..., C); None where numbers are predicted
    labels: Any  # (...), IGNORED where none counts; None where numbers are predicted, of which none is right or wrong


def no_padding(model) -> None:
    """The padding of models that have none."""


def no_check(model, name: str, batch) -> None:
    """The look at held-out batches of an objective that finds all mistakes when it reads them."""


@dataclass(frozen=True)
class Objective:
    """What is minimised. One of your own says how to read a batch and what the losses of a model are.

    Parameters
    ----------
    name : what a saved training calls it; another one does not go on from there
    read : (model, name of the batch, batch) -> Update; raises an error for what cannot be trained on
    losses : (model, **arrays) -> Parts, whose losses are added up; in TensorFlow `training` besides
    parts : the names of the parts, when there are several
    settings : what must be the same for a saved training to go on: numbers and texts
    pad_id : model -> the id of padding, which batches that have a `pad_id` must share; None for none
    counted : what the predictions are of, for messages
    check_held_out : (model, name of the batch, batch) -> None; what to look at besides before hours of training
    """

    name: str
    read: Callable[[Any, str, Any], Update]
    losses: Callable[..., Sequence[Part]]
    parts: tuple[str, ...] = ()
    settings: dict = field(default_factory=dict)
    pad_id: Callable[[Any], int | None] = no_padding
    counted: str = "label"
    check_held_out: Callable[[Any, str, Any], None] = no_check

    def update(self, model, name: str, batch) -> Update:
        """What a batch to train on asks of a model; ValueError when there is nothing to learn from it."""
        return self.updates(model, [(name, batch)])[0]

    def updates(self, model, batches: Sequence[tuple[str, Any]]) -> list[Update]:
        """The same of the batches of one update, each with its name: one of them has something to learn from."""
        found = [self.read(model, name, batch) for name, batch in batches]
        if not any(sum(update.counts) for update in found):
            first, last = batches[0][0], batches[-1][0]
            names = f"{first} has" if first == last else f"{first} to {last} have"
            raise ValueError(f"{names} no {self.counted}, so there is nothing to learn")
        return found

    def padded_alike(self, model, batches):
        """The batches; ValueError when they are padded with another id than the model takes for padding."""
        if (pad_id := self.pad_id(model)) is not None:
            check_padding(batches, pad_id)
        return batches

    def distilled(
        self, losses, teacher, weights: dict[str, np.ndarray], temperature: float, alpha: float
    ) -> "Objective":
        """The same with other losses, those of a student of a teacher with these weights.

        A batch is read for each of the two, as a teacher may tell segments apart that its student does not: `losses`
        takes the student's arrays, and the teacher's as "teacher_" and their names. With an alpha of 1 each text of a
        batch of classes counts, also without a label.

        Raises
        ------
        ValueError : a temperature that is not positive, an alpha outside [0, 1]; a batch, for two models of different
            padding.
        TypeError : an objective of several parts.
        """
        if self.parts:
            raise TypeError(f"{self.name} has several parts; distil an objective of one, such as masked_lm()")
        if not number("temperature", temperature) > 0:
            raise ValueError(f"temperature must be positive, got {temperature}")
        if not 0 <= number("alpha", alpha) <= 1:
            raise ValueError(f"alpha is the teacher's share and must lie in [0, 1], got {alpha}")

        settings = {"temperature": temperature, "alpha": alpha, "the checksum of the teacher": checksum(weights)}
        return replace(
            self,
            name=f"distillation of {self.name}",
            read=partial(read_for_both, self, teacher, alpha),
            losses=losses,
            settings=self.settings | settings,
            check_held_out=partial(check_labelled, self, alpha),
        )

    def label_of(self, part: int) -> str:
        """What the predictions of a part of the loss are of, for messages."""
        return f"label of its part {self.parts[part]!r}" if self.parts else self.counted


def checksum(weights: dict[str, np.ndarray]) -> int:
    """A number that other weights do not have."""
    found = 0
    for name in sorted(weights):
        found = zlib.crc32(np.ascontiguousarray(weights[name]), zlib.crc32(name.encode(), found))
    return found


def read_for_both(objective: Objective, teacher, alpha: float, model, name: str, batch) -> Update:
    """What `distilled` reads of a batch for a student and its teacher."""
    own, theirs = objective.read(model, name, batch), objective.read(teacher, f"{name}, for the teacher,", batch)
    padding = {objective.pad_id(model), objective.pad_id(teacher)}
    if len(padding) > 1:
        raise ValueError(f"the teacher and its student must have the same pad_id, got {padding}")
    arrays = own.arrays | {f"teacher_{key}": value for key, value in theirs.arrays.items()}
    return Update(arrays, (len(own.arrays["labels"]),) if needs_no_labels(alpha, own.arrays) else own.counts)


def check_labelled(objective: Objective, alpha: float, model, name: str, batch) -> None:
    """The look at held-out batches of `distilled`: ValueError for one of texts without a class, which train alone."""
    objective.check_held_out(model, name, batch)
    own = objective.read(model, name, batch)
    if needs_no_labels(alpha, own.arrays) and sum(own.counts) == 0:
        raise ValueError(f"{name} has no {objective.counted}; a teacher is enough to train by, but not to validate")


def needs_no_labels(alpha: float, arrays: dict) -> bool:
    """Whether a student learns from a text without a class: labels (B,) say nothing when the teacher says all."""
    return alpha == 1 and len(getattr(arrays.get("labels"), "shape", ())) == 1


def of_both(arrays: dict) -> tuple[dict, dict]:
    """What `distilled` joined: the student's arrays, and the teacher's, both by their own names."""
    teachers = {name.removeprefix("teacher_"): value for name, value in arrays.items() if name.startswith("teacher_")}
    return {name: arrays[name] for name in arrays if not name.startswith("teacher_")}, teachers


def shares(updates: Sequence[Update]) -> list[np.ndarray]:
    """The weights by which means of several batches add up to the means over all of them: for each its parts', (P,)."""
    counts = np.array([update.counts for update in updates], dtype=np.float64)  # (batches, P)
    return list(counts / np.maximum(counts.sum(axis=0), 1.0))


def evaluation_of(objective: Objective, counts) -> Evaluation | JointEvaluation:
    """What counts (P, 3) of each batch say together; ValueError when there is nothing to count."""
    if objective.parts:
        return JointEvaluation.from_counts(counts, objective.parts)
    return Evaluation.from_counts(counts, objective.counted)


def check_objective(objective) -> None:
    """Raise TypeError for what is no objective, such as one that was not called."""
    if not isinstance(objective, Objective):
        called = getattr(objective, "__name__", type(objective).__name__)
        hint = f"; write {called}()" if callable(objective) else ""
        raise TypeError(f"objective must be an Objective, such as `objectives.classification()`; got {called}{hint}")


def field_of(output, name: str, model):
    """A field of what a model returned; TypeError that names the model when there is none."""
    if not hasattr(output, name):
        kind = type(getattr(model, "_orig_mod", model)).__name__
        raise TypeError(f"a {kind} gives no `{name}`, which this objective needs; is it the right model?")
    return getattr(output, name)


def check_fits(shape, other, name: str, others: str) -> None:
    """Raise ValueError unless two shapes, without what is not known yet, are the same."""
    shape, other = tuple(shape), tuple(other)
    if len(shape) != len(other) or any(None not in (a, b) and a != b for a, b in zip(shape, other, strict=True)):
        raise ValueError(
            f"the {name} {shape} do not fit the {others} {other}; is it the right model for this objective?"
        )
