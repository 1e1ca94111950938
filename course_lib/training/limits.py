"""What ends a training: epochs, updates, seconds, or patience (early stopping)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from course_lib.training.arguments import check_limit

if TYPE_CHECKING:
    from course_lib.training.run import Run


@dataclass(frozen=True)
class Limits:
    """What ends a training: whichever comes first; None is no limit.

    `patience` is the number of validations without a better one.

    Raises
    ------
    TypeError : a limit that is no number.
    ValueError : no end at all, a limit that is not positive, or a fraction of what is counted.
    """

    epochs: int | None = None
    steps: int | None = None
    seconds: float | None = None
    patience: int | None = None

    def __post_init__(self):
        if self.epochs is None and self.steps is None and self.seconds is None:
            raise ValueError("training needs an end: give epochs, steps or seconds")
        for name, limit in vars(self).items():
            check_limit(name, limit, whole=name != "seconds")

    def reached(self, run: Run) -> str | None:
        """The name of the first limit that a run has reached."""
        waited = sum(look.step > (run.best.step if run.best else 0) for look in run.validation)
        now = {"epochs": run.epoch, "steps": run.step, "seconds": run.stopwatch.seconds(), "patience": waited}
        return next((name for name, limit in vars(self).items() if limit is not None and now[name] >= limit), None)

    def updates(self, run: Run) -> int | None:
        """The updates until the end; with a limit of time as many as it allows at the speed so far."""
        of_epochs = self.epochs and run.n_updates and math.ceil(self.epochs * run.n_updates)
        speed = run.step / max(run.stopwatch.seconds(), 1e-9)
        of_time = self.seconds and run.step and max(run.step, round(self.seconds * speed))
        return min((n for n in (self.steps, of_epochs, of_time) if n), default=None)
