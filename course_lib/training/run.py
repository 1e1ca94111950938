"""A training under way: its place in the data, what it measured, and what ends it. The loop itself is the caller's.

This one fits a line; `train` of each framework's `training.loop`, which serves every task of the course, is written
alike. For a model of your own that one will do: its documentation has an example.

>>> import numpy as np
>>> from course_lib.training.bar import Bar
>>> from course_lib.training.limits import Limits
>>> from course_lib.training.run import Run
>>> from course_lib.training.saving import Saving
>>> x, weight = np.linspace(-1, 1, 40), np.zeros(2)
>>> pairs = [(x[i::4], 3 * x[i::4] + 2) for i in range(4)]
>>> run, saving = Run(lambda epoch: pairs, Limits(epochs=50)), Saving(None)  # or Saving("a folder"), to go on from it
>>> with run, saving, Bar(show=False) as bar:
...     if (saved := saving.resume(run)) is not None:
...         weight = saved["weight"]
...     for inputs, targets in run:
...         error = weight[0] * inputs + weight[1] - targets
...         weight = weight - 0.1 * np.array([(error * inputs).mean(), error.mean()])
...         run.record((error**2).mean(), len(inputs))
...         if saving.is_due(run):
...             saving.save(run, {"weight": weight})
...         bar.show(run)
>>> weight.round(1).tolist(), run.history().loss.shape, run.stopped_by
([3.0, 2.0], (200,), 'epochs')
"""

import contextlib
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from course_lib.training.arguments import check_padding, fingerprint
from course_lib.training.divergence import REMEDIES, Losses
from course_lib.training.history import Evaluation, History, JointEvaluation, as_validation, validation_of
from course_lib.training.interruption import Interruption
from course_lib.training.limits import Limits


class Epochs:
    """The data: `epochs(3)` are the batches of the fourth epoch.

    Parameters
    ----------
    batches : epoch (counted from 0) -> its batches, a sequence; the same epoch must give the same batches again. Or
        something whose method `epoch` does that
    pad_id : what the model takes for padding; batches that say otherwise are refused. None is unknown

    Raises
    ------
    TypeError : batches that are not a function of the epoch; in a call, an epoch that can be read once only.
    ValueError : in a call, an epoch without batches, or with another padding.
    """

    def __init__(self, batches, pad_id: int | None = None):
        self.batches = batches if callable(batches) else getattr(batches, "epoch", None)
        self.pad_id = pad_id
        if not callable(self.batches):
            raise TypeError(
                "batches must be a function of the epoch, such as `PairBatches(...).epoch`, got "
                f"{type(batches).__name__}; `lambda epoch: batches` gives the same ones in every epoch"
            )

    def __call__(self, epoch: int) -> Sequence:
        batches = self.batches(epoch)
        if not hasattr(batches, "__len__") or not hasattr(batches, "__getitem__"):
            raise TypeError(f"epoch {epoch} must be a sequence of batches, got {type(batches).__name__}")
        if len(batches) == 0:
            raise ValueError(f"epoch {epoch} has no batches; are there any examples?")
        if self.pad_id is not None:
            check_padding(batches, self.pad_id)
        return batches


class Stopwatch:
    """The seconds of a clock, without those between `stop` and `start`."""

    def __init__(self, clock: Callable[[], float]):
        self.clock, self.before, self.since = clock, 0.0, None

    def seconds(self) -> float:
        """All seconds so far."""
        return float(self.before + (0.0 if self.since is None else self.clock() - self.since))

    def start(self) -> None:
        """Go on; nothing when it runs."""
        self.since = self.clock() if self.since is None else self.since

    def stop(self) -> None:
        """Stand still."""
        self.before, self.since = self.seconds(), None


class Run:
    """Iterate over it for the batches, or over `updates()` when several make an update, and report what became of them.

    The iteration begins where a saved training stopped, and ends with a limit. Ctrl-C inside `with run:` ends it after
    the update under way; at the end of the block the KeyboardInterrupt goes on. `stopped_by` says why it ended.

    Parameters
    ----------
    batches, pad_id : the data, as for `Epochs`; errors as there
    accumulate : how many batches make an update; the last update of an epoch may have fewer
    limits : what ends it
    clock : what counts the seconds; `time.process_time` counts those of the processor instead
    """

    def __init__(
        self,
        batches: Callable[[int], Sequence],
        limits: Limits,
        clock: Callable[[], float] = time.perf_counter,
        pad_id: int | None = None,
        accumulate: int = 1,
    ):
        self.epochs, self.accumulate, self.limits = Epochs(batches, pad_id), accumulate, limits
        self.step = self.epoch = self.position = 0  # position: updates of this epoch that are done
        self.update, self.n_updates, self.epoch_ended = [], None, False  # the batches under way; how many an epoch has
        self.losses, self.tokens, self.seconds, self.validation = Losses(), [], [], []
        self.best, self.best_weights = None, {}
        self.stopwatch, self.stopped_by, self.saved = Stopwatch(clock), None, None
        self._interruption = Interruption()

    def __enter__(self) -> "Run":
        self._interruption.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self._interruption.__exit__(*error)

    def __iter__(self) -> Iterator:
        """The batches from where the run stands until a limit is reached, each of which makes an update."""
        return (batch for [(_, batch)] in self.updates())

    def updates(self) -> Iterator[list[tuple[str, Any]]]:
        """The same for updates from one batch or several: for each its batches, and their names for messages."""
        self._look_at_limits()
        while self.stopped_by is None:
            batches = self.epochs(self.epoch)
            self.n_updates, self.epoch_ended = self.updates_in(batches), False
            self.stopwatch.start()
            while not self.epoch_ended and self.stopped_by is None:
                try:
                    self.update = self.named(batches, self.position)
                except KeyboardInterrupt:  # the weights are those of a complete update, so this one may be saved
                    self._interruption.asked = True
                    self._look_at_limits()
                    return
                yield self.update

    def updates_in(self, batches: Sequence) -> int:
        """How many updates the batches of an epoch make."""
        return -(-len(batches) // self.accumulate)

    def named(self, batches: Sequence, position: int) -> list[tuple[str, Any]]:
        """The batches of one update of this epoch, each with its name."""
        first = position * self.accumulate
        places = range(first, min(first + self.accumulate, len(batches)))
        return [(f"batch {i} of epoch {self.epoch}", batches[i]) for i in places]

    def coming(self) -> tuple[str, Any] | None:
        """The batch that the run will begin with, and its name, to see what batches look like; None when it is over."""
        self._look_at_limits()
        if self.stopped_by is not None:
            return None
        return self.named(self.epochs(self.epoch), self.position)[0]

    def record(self, loss, n_tokens: int) -> None:
        """Report the loss of the update made with the last batch, a mean over `n_tokens`: a number, or a tensor."""
        self.losses.append(loss, self.kept())
        self.tokens.append(n_tokens)
        self.step, self.position = self.step + 1, self.position + 1
        self.epoch_ended = self.position == self.n_updates
        if self.epoch_ended:
            self.epoch, self.position = self.epoch + 1, 0
        self.seconds.append(self.stopwatch.seconds())
        self._look_at_limits()
        if self.stopped_by:
            self._fetch()

    @contextlib.contextmanager
    def paused(self):
        """Validation and saving stand inside, where the clock stands still; what was computed before them counts."""
        self._fetch()
        self.stopwatch.stop()
        yield
        self.stopwatch.start()

    def is_due(self, every: int | None) -> bool:
        """Whether to do now what is done after `every` so many updates, after each epoch (None), and at the end."""
        over = self.epoch_ended if every is None else self.step % every == 0
        return over or self.stopped_by not in (None, "interrupt")

    def validated(self, found: Evaluation | JointEvaluation, weights: Callable[[], dict[str, np.ndarray]]) -> None:
        """Report a validation; `weights()` gives the model's, which are kept when they are the best so far."""
        look = validation_of(self.step, self.seconds[-1], found)
        self.validation.append(look)
        if not math.isfinite(look.nll):
            text = f"the validation after update {self.step} is {look.nll}, which is never the best; {REMEDIES}"
            warnings.warn(text, RuntimeWarning, stacklevel=3)
        elif self.best is None or look.nll < self.best.nll:
            self.best, self.best_weights = look, weights()
        self._look_at_limits()

    def history(self) -> History:
        """What was measured."""
        numbers = self.losses.numbers(), np.array(self.tokens, np.int64), np.array(self.seconds, float)
        return History(*numbers, list(self.validation), self.best, self.stopped_by)

    def kept(self) -> str:
        """What is left of a training that diverged."""
        text = f". The model has its best weights, those after update {self.best.step}" if self.best else ""
        if self.saved is not None:
            text += ". {} holds what was after update {}; begin anew in another folder".format(*self.saved)
        return text

    def state(self) -> tuple[dict[str, np.ndarray], dict]:
        """Everything to go on from, as arrays and as what JSON can hold."""
        self._fetch()
        arrays = {"loss": self.losses.numbers(), "tokens": np.array(self.tokens), "seconds": np.array(self.seconds)}
        facts = {name: getattr(self, name) for name in ("step", "epoch", "position", "best", "validation")}
        facts |= {"elapsed": self.stopwatch.seconds(), "batch": fingerprint(batch for _, batch in self.update)}
        return arrays | {f"best.{name}": value for name, value in self.best_weights.items()}, facts

    def set_state(self, arrays: dict[str, np.ndarray], facts: dict) -> None:
        """Go on from what `state` gave."""
        self.step, self.epoch, self.position = facts["step"], facts["epoch"], facts["position"]
        self.stopwatch.before = facts["elapsed"]
        self.losses = Losses(arrays["loss"].tolist())
        self.tokens, self.seconds = arrays["tokens"].tolist(), arrays["seconds"].tolist()
        self.validation = [as_validation(look) for look in facts["validation"]]
        if facts["best"] and math.isfinite(as_validation(facts["best"]).nll):
            self.best = as_validation(facts["best"])
            self.best_weights = {n.removeprefix("best."): v for n, v in arrays.items() if n.startswith("best.")}
        self._look_at_limits()

    def _look_at_limits(self) -> None:
        self.stopped_by = self.limits.reached(self) or ("interrupt" if self._interruption.asked else None)

    def _fetch(self) -> None:
        if self.losses.pending:
            self.losses.fetch(self.kept())
            self.seconds[-1] = self.stopwatch.seconds()
