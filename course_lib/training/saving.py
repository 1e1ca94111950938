"""Saving a training into a folder, and going on exactly from there."""

import contextlib
import json
import math
import time
import warnings
import zlib
from collections.abc import Callable, Sequence

import numpy as np

from course_lib.errors import CheckpointError
from course_lib.training.arguments import check_trainable, fingerprint, number
from course_lib.training.divergence import check_weights
from course_lib.training.training_file import alone_in, prepare_folder, read_training, under, write_training

VALIDATION = "the checksum of validation"  # the name of a setting
EARLIER = {"objective": "translation", "accumulate": 1, "optimizer": None}  # what files mean that do not say it


class Saving:
    """Where and when a `Run` is saved; inside `with saving:` nobody else saves there.

    Parameters
    ----------
    folder : None saves nothing
    every : seconds between two times; infinity for the end alone
    settings : what must be the same when the training is resumed; numbers, texts, None and lists of them
    trainable : the names of the parameters that are trained, which must be the same too; None for unknown
    rate : step -> learning rate, which must be the same at the first and at the last update; None for unknown

    Raises
    ------
    TypeError, ValueError : seconds that are no number, or a negative one.
    """

    def __init__(
        self,
        folder,
        every: float = 60.0,
        settings: dict | None = None,
        trainable: Sequence[str] | None = None,
        rate: Callable[[int], float] | None = None,
    ):
        if not number("save_every", every) >= 0:
            raise ValueError(f"save_every must be a number of 0 or more, got {every}")
        # as they will be read again: a number of NumPy's, which JSON lacks, must not lose the run at its first save
        self.settings = json.loads(json.dumps(settings or {}, default=_plain))
        self.folder, self.every, self.rate = folder, every, rate
        self.trainable = None if trainable is None else list(trainable)
        self._last, self._alone = time.monotonic(), None

    def __enter__(self) -> "Saving":
        self._alone = contextlib.nullcontext() if self.folder is None else alone_in(self.folder)
        self._alone.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self._alone.__exit__(*error)

    def is_due(self, run) -> bool:
        """Whether to save now: the time has come, or the end, and there is an update that is not saved yet."""
        if self.folder is None or run.step == 0 or run.saved == (self.folder, run.step):
            return False
        return run.stopped_by is not None or time.monotonic() - self._last >= self.every

    def save(self, run, arrays: dict[str, np.ndarray]) -> None:
        """Write a run and the caller's own `arrays` (weights, optimizer, random state) into the folder.

        A disk that is full now may have room at the next time, so as long as the run goes on this is a warning.

        Raises
        ------
        OSError : it cannot be written, and the run is over.
        FloatingPointError : weights, called "model.NAME", that are not finite; what was saved before stays.
        """
        own, facts = run.state()
        check_weights(under(arrays, "model."), run.kept())
        facts |= {"settings": self.settings, "trainable": self.trainable}
        if self.rate is not None:
            facts |= {"rates": [[step, self.rate(step)] for step in (0, run.step - 1)]}
        try:
            write_training(self.folder, arrays | {f"run.{name}": value for name, value in own.items()}, facts)
            run.saved = self.folder, run.step
        except OSError as error:
            if run.stopped_by is not None:
                raise
            text = f"{error}; the training goes on, and tries again in {self.every:g} s"
            warnings.warn(text, RuntimeWarning, stacklevel=3)
        self._last = time.monotonic()

    def resume(self, run) -> dict[str, np.ndarray] | None:
        """Let a run take up the training that the folder holds.

        Returns
        -------
        The caller's own arrays, or None when there is no folder or it holds no training yet.

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
        for step, rate in facts.get("rates", []) if self.rate is not None else ():
            self._check_same(f"the rate of step {step}", rate, self.rate(step))
        run.set_state(under(arrays, "run."), facts)
        self._check_data(run, facts)
        run.saved = self.folder, run.step
        if run.stopped_by is None:  # one that is over is read from a folder that nobody may write into, too
            prepare_folder(self.folder)
        return {name: value for name, value in arrays.items() if not name.startswith("run.")}

    def _check_data(self, run, facts: dict) -> None:
        epoch = run.epoch if run.position else run.epoch - 1
        batches = run.epochs(epoch)
        n_updates = run.updates_in(batches)
        if run.position <= n_updates:
            run.update = run.named(batches, (run.position or n_updates) - 1)
            last = [batch for _, batch in run.update]
            now = fingerprint(last) if "batch" in facts else _earlier_checksum(last[0])
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
            self._check_same(name, saved.get(name, EARLIER.get(name, value)), value)  # earlier versions kept fewer
        self.settings = saved | self.settings

    def _check_same(self, name: str, saved, value) -> None:
        if isinstance(saved, float) and isinstance(value, float) and math.isclose(saved, value, rel_tol=1e-6):
            return  # one may have been NumPy's, of 32 bits
        if saved != value:
            raise CheckpointError(
                f"{self.folder} holds a training with {name}={saved!r}, this one has {name}={value!r}; use the same, "
                "or another folder"
            )


def _plain(value):
    """What JSON lacks: a function, such as a clock, as its name, and an array as a list."""
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return np.asarray(value).tolist()


def _earlier_checksum(batch) -> int:
    """Of a batch as it came, as files of earlier versions have it: neither shapes nor first target tokens count."""
    source, target = batch[:2]
    return zlib.crc32(np.ascontiguousarray(target[:, 1:]), zlib.crc32(np.ascontiguousarray(source)))
