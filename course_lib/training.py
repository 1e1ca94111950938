"""What training has in common in every framework: its place in the data, its limits, what it measured, its bar."""

import contextlib
import json
import math
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from course_lib.checkpoints import alone_in, part, prepare_folder, read_training, write_training
from course_lib.config import BertConfig
from course_lib.divergence import FLUSH, REMEDIES, check_weights, fetched
from course_lib.interruption import Interruption
from course_lib.training_checks import (
    check_limit,
    check_padding,
    check_positive_or_zero,
    check_trainable,
    fingerprint,
    number,
    pair_of,
)
from course_lib.weights import CheckpointError

VALIDATION = "the checksum of validation"  # the name of a setting


class Validation(NamedTuple):
    """What the held-out pairs said after `step` updates and `seconds` of training."""

    step: int
    seconds: float
    nll: float  # as in Evaluation
    accuracy: float


class Evaluation(NamedTuple):
    """How well a model predicts held-out target tokens, given the true ones before."""

    n_tokens: int
    nll: float  # mean negative log-likelihood of a token, in nats; exp of it is the perplexity
    accuracy: float  # fraction of tokens whose most probable prediction is right

    @classmethod
    def from_counts(cls, counts) -> "Evaluation":
        """From one row (tokens, summed nll, right predictions) a batch; ValueError when there is no token."""
        n_tokens, nll, right = np.asarray(counts, dtype=np.float64).reshape(-1, 3).sum(axis=0)
        if n_tokens == 0:
            raise ValueError("there is no target token to evaluate on")
        return cls(int(n_tokens), nll / n_tokens, right / n_tokens)


@dataclass(frozen=True)
class History:
    """What a training measured.

    `loss`, `tokens` and `seconds` have one entry per update: the loss that was minimised, target tokens of the batch,
    and time since the start without validation and saving (float64, int64, float64; shape (n_steps,)).
    `validation` lists the looks at the held-out pairs; `best` is the one whose weights the model now has, None without.
    `stopped_by` is the limit that ended it: "epochs", "steps", "seconds" or "patience".
    """

    loss: np.ndarray
    tokens: np.ndarray
    seconds: np.ndarray
    validation: list[Validation]
    best: Validation | None
    stopped_by: str


class Example(NamedTuple):
    """A batch for teacher forcing: the model reads `source` and `inputs` and shall predict `labels`."""

    source: np.ndarray  # (B, S)
    inputs: np.ndarray  # (B, T - 1): the target without its last token
    labels: np.ndarray  # (B, T - 1): the target without its first token


def teacher_forcing(batch) -> Example:
    """A batch of pairs -> the arrays of one update; `batch` starts with source ids (B, S) and target ids (B, T)."""
    source, target = batch[:2]
    return Example(source, target[:, :-1], target[:, 1:])


def pad_id_of(model) -> int:
    """The padding id of a translation model: its own, or its config's; TypeError for a model that does not translate.

    A model says so by having one; a BERT, which has one too, reads a single text.
    """
    config = getattr(model, "config", None)
    owner = model if hasattr(model, "pad_id") else config
    if not hasattr(owner, "pad_id") or isinstance(config, BertConfig):
        raise TypeError(
            f"a {type(model).__name__} does not read source and target: give a model that translates, such as a "
            "Transformer or a Seq2Seq; a BERT is fine-tuned by the module `training`"
        )
    return owner.pad_id


class Run:
    """A training under way; the framework's loop iterates over it, inside `with run:`, and reports to it.

    Ctrl-C inside ends it after the update under way, which is saved; then the KeyboardInterrupt goes on.

    Parameters
    ----------
    batches : epoch (counted from 0) -> its batches, a sequence; the same epoch must give the same batches again. Or
        something whose method `epoch` does that
    pad_id : of the target tokens that do not count
    epochs, steps, seconds : limits, None for none; whichever comes first ends the run
    validate_every : updates between two validations; None for the end of each epoch
    patience : validations without a better one until the run ends; None goes on
    folder, save_every : where the run is saved, and seconds between two times; None saves nothing
    settings : what must be the same when the run is resumed; numbers, texts and lists of them
    progress : show a bar
    clock : what counts the seconds; `time.process_time` counts those of the processor instead
    rate : a number, or a function of the step (0 for the first)
    trainable : the names of the parameters that are trained, which must be the same too; None for unknown

    Raises
    ------
    TypeError : batches that are not a function of the epoch; a limit or a rate that is no number.
    ValueError : no limit at all, one that is not positive, a fraction of an update, a validation or an epoch; a rate
        that is negative or not finite.
    """

    def __init__(
        self,
        batches: Callable[[int], Sequence],
        pad_id: int,
        epochs: int | None = None,
        steps: int | None = None,
        seconds: float | None = None,
        validate_every: int | None = None,
        patience: int | None = None,
        folder=None,
        save_every: float = 60.0,
        settings: dict | None = None,
        progress: bool = True,
        clock: Callable[[], float] = time.perf_counter,
        rate: float | Callable[[int], float] = 1e-3,
        trainable: Sequence[str] | None = None,
    ):
        self.limits = {"epochs": epochs, "steps": steps, "seconds": seconds}
        if all(limit is None for limit in self.limits.values()):
            raise ValueError("training needs an end: give epochs, steps or seconds")
        for name, value in {**self.limits, "validate_every": validate_every, "patience": patience}.items():
            check_limit(name, value, whole=name != "seconds")
        if not number("save_every", save_every) >= 0:
            raise ValueError(f"save_every must be a number of 0 or more, got {save_every}")
        self._rate, self._rates = rate, {}
        if not callable(rate):
            self.rate()
        self.batches, self.pad_id = _by_epoch(batches), pad_id
        settings = {**(settings or {}), "clock": getattr(clock, "__name__", type(clock).__name__), "pad_id": pad_id}
        # as they will be read again: a number of NumPy's, which JSON lacks, must not lose the run at its first save
        self.settings = json.loads(json.dumps(settings, default=lambda value: np.asarray(value).tolist()))
        self.trainable = None if trainable is None else list(trainable)
        self.validate_every, self.patience = validate_every, patience
        self.folder, self.save_every = folder, save_every
        self.step = self.epoch = self.position = 0  # position: batches of this epoch that are done
        self.losses, self.tokens, self.seconds, self.validation = [], [], [], []
        self.best, self.best_weights = None, {}
        self.stopped_by, self.epoch_ended = None, False
        self._pending, self._elapsed, self._since, self._saved_at = [], 0.0, None, time.monotonic()
        self._clock, self._saved_step, self._interruption = clock, None, Interruption()
        self._inside, self._batch = contextlib.ExitStack(), None
        self.bar = tqdm(disable=not progress, unit="batch")

    def __enter__(self) -> "Run":
        with contextlib.ExitStack() as inside:
            if self.folder is not None:
                inside.enter_context(alone_in(self.folder))
            inside.enter_context(self._interruption)
            inside.callback(self.bar.close)
            self._inside = inside.pop_all()
        return self

    def __exit__(self, *error) -> None:
        self._inside.__exit__(*error)

    def __iter__(self) -> Iterator[Example]:
        """The batches from where the run stands until a limit is reached."""
        self.stopped_by = self._limit_reached()
        while self.stopped_by is None:
            current = self._of_epoch(self.epoch)
            self._n_batches = len(current)
            self.bar.total, self.bar.n = self._total(), self.step
            self.epoch_ended = False
            self._since = self._clock() if self._since is None else self._since
            while not self.epoch_ended and self.stopped_by is None:
                try:
                    given, name = current[self.position], f"batch {self.position} of epoch {self.epoch}"
                except KeyboardInterrupt:  # the weights are those of a complete update, so this one may be saved
                    self._interruption.asked, self.stopped_by = True, self._limit_reached() or "interrupt"
                    return
                batch = teacher_forcing(pair_of(name, given))
                self._batch, self._size = given, int((batch.labels != self.pad_id).sum())
                if self._size == 0:
                    raise ValueError(f"{name} has no target token besides padding, so there is nothing to learn")
                yield batch

    def rate(self) -> float:
        """The learning rate of the update that comes next; ValueError when it is negative or not finite."""
        if callable(self._rate):
            return check_positive_or_zero(f"the rate at step {self.step}", self._rate(self.step))
        return check_positive_or_zero("the rate", self._rate, ", or a function of the step")

    def record(self, loss) -> None:
        """Report the loss of the update made with the last batch: a number, or a tensor on any device."""
        self._pending.append(loss)
        self.tokens.append(self._size)
        self.seconds.append(self._time())
        self.step += 1
        self.position += 1
        self.epoch_ended = self.position == self._n_batches
        if self.epoch_ended:
            self.epoch, self.position = self.epoch + 1, 0
        self.stopped_by = self._limit_reached()
        self.bar.update()
        if len(self._pending) >= FLUSH or self.stopped_by:
            self._flush()

    @contextlib.contextmanager
    def paused(self):
        """Validation and saving stand inside, where the clock stands still; what was computed before them counts."""
        self._flush()
        self._elapsed, self._since = self._time(), None
        yield
        self._since = self._clock()

    def validation_is_due(self) -> bool:
        """Whether to validate now: the period is over, or the run."""
        over = self.epoch_ended if self.validate_every is None else self.step % self.validate_every == 0
        return over or self.stopped_by not in (None, "interrupt")

    def validated(self, nll: float, accuracy: float, weights: Callable[[], dict[str, np.ndarray]]) -> None:
        """Report a validation; `weights()` gives the model's, which are kept when they are the best so far."""
        self.validation.append(Validation(self.step, self.seconds[-1], float(nll), float(accuracy)))
        if not math.isfinite(nll):
            text = f"the validation after update {self.step} is {nll}, which is never the best; {REMEDIES}"
            warnings.warn(text, RuntimeWarning, stacklevel=3)
        elif self.best is None or nll < self.best.nll:
            self.best, self.best_weights = self.validation[-1], weights()
        self.stopped_by = self._limit_reached()
        self._show()

    def saving_is_due(self) -> bool:
        """Whether to save now: the time has come, or the end, and there is an update that is not saved yet."""
        if self.folder is None or self.step == 0 or self._saved_step == self.step:
            return False
        return self.stopped_by is not None or time.monotonic() - self._saved_at >= self.save_every

    def save(self, arrays: dict[str, np.ndarray]) -> None:
        """Write the run and the framework's own `arrays` (weights, optimizer, random state) into the folder.

        A disk that is full now may have room at the next time, so as long as the run goes on this is a warning.

        Raises
        ------
        OSError : it cannot be written, and the run is over.
        FloatingPointError : weights that are not finite; what was saved before stays.
        """
        self._flush()
        self.check_weights(part(arrays, "model."))
        names = ("step", "epoch", "position", "settings", "trainable")
        facts = {name: getattr(self, name) for name in names} | {"batch": fingerprint([self._batch])}
        facts |= {"elapsed": self._time(), "best": self.best, "validation": self.validation}  # JSON makes lists of them
        facts |= {"rates": [[step, self._rate_at(step)] for step in (0, self.step - 1)]}
        own = {"loss": np.array(self.losses), "tokens": np.array(self.tokens), "seconds": np.array(self.seconds)}
        own |= {f"best.{name}": value for name, value in self.best_weights.items()}
        try:
            write_training(self.folder, arrays | {f"run.{name}": value for name, value in own.items()}, facts)
            self._saved_step = self.step
        except OSError as error:
            if self.stopped_by is not None:
                raise
            text = f"{error}; the training goes on, and tries again in {self.save_every:g} s"
            warnings.warn(text, RuntimeWarning, stacklevel=3)
        self._saved_at = time.monotonic()

    def check_weights(self, weights: dict[str, np.ndarray]) -> None:
        """Raise FloatingPointError when a weight is not finite, as that of the last update, which no loss tells of."""
        check_weights(weights, self._kept())

    def resume(self) -> dict[str, np.ndarray] | None:
        """Take up the run that the folder holds.

        Returns
        -------
        The framework's own arrays, or None when there is no folder or it holds no training yet.

        Raises
        ------
        CheckpointError : a damaged file, a training with other settings or of other parameters, or one on other data.
        OSError : a folder that nothing can be written into.
        """
        saved = None if self.folder is None else read_training(self.folder)
        if saved is None or saved[1]["step"] == 0:  # earlier versions saved one without an update
            if self.folder is not None:
                prepare_folder(self.folder)
            return None
        arrays, facts = saved
        self._check_settings(facts["settings"], facts["validation"])
        check_trainable(self.folder, facts.get("trainable"), self.trainable)
        for step, rate in facts.get("rates", []):
            if not math.isclose(rate, now := self._rate_at(step), rel_tol=1e-6):
                self._check_same(f"the rate of step {step}", rate, now)
        self.step, self.epoch, self.position = (facts[name] for name in ("step", "epoch", "position"))
        self._check_data(facts)
        self._elapsed, self._saved_step = facts["elapsed"], self.step
        self.losses, self.tokens, self.seconds = (arrays[f"run.{n}"].tolist() for n in ("loss", "tokens", "seconds"))
        self.validation = [Validation(*look) for look in facts["validation"]]
        if facts["best"] and math.isfinite(Validation(*facts["best"]).nll):
            self.best, self.best_weights = Validation(*facts["best"]), part(arrays, "run.best.")
        if self._limit_reached() is None:  # one that is over is read from a folder that nobody may write into, too
            prepare_folder(self.folder)
        return {name: value for name, value in arrays.items() if not name.startswith("run.")}

    def history(self) -> History:
        """What was measured."""
        numbers = (np.array(self.losses, float), np.array(self.tokens, np.int64), np.array(self.seconds, float))
        return History(*numbers, list(self.validation), self.best, self.stopped_by)

    def _of_epoch(self, epoch: int) -> Sequence:
        batches = self.batches(epoch)
        if not hasattr(batches, "__len__") or not hasattr(batches, "__getitem__"):
            raise TypeError(f"epoch {epoch} must be a sequence of batches, got {type(batches).__name__}")
        if len(batches) == 0:
            raise ValueError(f"epoch {epoch} has no batches; are there any examples?")
        check_padding(batches, self.pad_id)
        return batches

    def _check_data(self, facts: dict) -> None:
        epoch, last = (self.epoch, self.position - 1) if self.position else (self.epoch - 1, -1)
        done = self._of_epoch(epoch)
        if self.position <= len(done):
            self._batch = done[last]
            now = fingerprint([self._batch]) if "batch" in facts else _earlier_checksum(self._batch)
            if now == facts.get("batch", facts.get("last_batch")):
                return
        raise CheckpointError(
            f"{self.folder} holds a training on other data: its last batch, of epoch {epoch}, differs; give it "
            "the same pairs, seed and sizes, or use another folder"
        )

    def _check_settings(self, saved: dict, looks: list) -> None:
        """`looks`: the validations of the saved training, in case an earlier version left them out of its settings."""
        has, missing = self.settings.get(VALIDATION), object()
        had = saved.get(VALIDATION, missing if looks else has)
        if VALIDATION in self.settings and (had is None) != (has is None):
            with_, one = ("without", "one") if had is None else ("with", "none")
            raise CheckpointError(
                f"{self.folder} holds a training {with_} validation, this one has {one}; give it what the first one "
                "had, or use another folder"
            )
        for name, value in self.settings.items():
            self._check_same(name, saved.get(name, value), value)  # earlier versions kept fewer of them
        self.settings = saved | self.settings

    def _check_same(self, name: str, saved, value) -> None:
        if isinstance(saved, float) and isinstance(value, float) and math.isclose(saved, value, rel_tol=1e-6):
            return  # one may have been NumPy's, of 32 bits
        if saved != value:
            raise CheckpointError(
                f"{self.folder} holds a training with {name}={saved!r}, this one has {name}={value!r}; use the same, "
                "or another folder"
            )

    def _rate_at(self, step: int) -> float:
        return float(self._rate(step) if callable(self._rate) else self._rate)

    def _limit_reached(self) -> str | None:
        waited = sum(look.step > (self.best.step if self.best else 0) for look in self.validation)
        now = {"epochs": self.epoch, "steps": self.step, "seconds": self._time(), "patience": waited}
        limits = {**self.limits, "patience": self.patience}
        reached = (name for name, limit in limits.items() if limit is not None and now[name] >= limit)
        return next(reached, "interrupt" if self._interruption.asked else None)

    def _total(self) -> int | None:
        """The updates until the end; with a limit of time as many as it allows at the speed so far."""
        epochs, steps, seconds = (self.limits[name] for name in ("epochs", "steps", "seconds"))
        of_epochs = epochs and math.ceil(epochs * self._n_batches)
        of_time = seconds and self.step and max(self.step, round(self.step * seconds / max(self._time(), 1e-9)))
        return min((n for n in (steps, of_epochs, of_time) if n), default=None)

    def _time(self) -> float:
        return float(self._elapsed + (0.0 if self._since is None else self._clock() - self._since))

    def _flush(self) -> None:
        if self._pending:
            fresh, self._pending = self._pending, []
            self.losses += fetched(fresh, len(self.losses), self._kept())
            self.seconds[-1] = self._time()
            self._show()

    def _show(self) -> None:
        if not self.bar.disable:
            self.bar.total = self._total()
            first = max(0, self.step - 5 * FLUSH)
            seconds = self.seconds[-1] - (self.seconds[first - 1] if first else 0.0)
            speed = f"{sum(self.tokens[first:]) / max(seconds, 1e-9):,.0f} tokens/s"
            valid = f", valid {self.validation[-1].nll:.3f}" if self.validation else ""
            self.bar.set_postfix_str(f"loss {np.mean(self.losses[first:]):.3f}{valid}, {speed}")

    def _kept(self) -> str:
        """What is left of a training that diverged."""
        kept = f". The model has its best weights, those after update {self.best.step}" if self.best else ""
        if self._saved_step is not None:
            kept += f". {self.folder} holds what was after update {self._saved_step}; begin anew in another folder"
        return kept


def _by_epoch(batches):
    """A function of the epoch; TypeError when there is none."""
    if callable(batches):
        return batches
    if callable(getattr(batches, "epoch", None)):
        return batches.epoch
    raise TypeError(
        f"batches must be a function of the epoch, such as `PairBatches(...).epoch`, got {type(batches).__name__}; "
        "`lambda epoch: batches` gives the same ones in every epoch"
    )


def _earlier_checksum(batch) -> int:
    """Of a batch as it came, as files of earlier versions have it: neither shapes nor first target tokens count."""
    source, target = batch[:2]
    return zlib.crc32(np.ascontiguousarray(target[:, 1:]), zlib.crc32(np.ascontiguousarray(source)))
