"""Batches of sounds with what is said in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from course_lib.batches.epochs import Epoch, cut
from course_lib.checks import check_count
from course_lib.text.padding import lengths_of, positional, stacked


class SoundBatch(NamedTuple):
    """B sounds: `features`, float32 (B, n_mels, F), log-mel spectrograms; `target` ids, int64 (B, T), padded."""

    features: np.ndarray
    target: np.ndarray


class SoundBatches(Epoch):
    """One epoch of sounds in batches, to learn to write them down; `epoch(e)` gives the others.

    All sounds have as many frames: `log_mel(wave, n_samples)` fills up with silence, as Whisper's are.

    Parameters
    ----------
    features : log-mel spectrograms, floating point, shape (N, n_mels, F)
    targets : N integer arrays of shape (length,), from the start token to the end token
    batch_size : sounds a batch; the last one may have fewer
    seed : of the order, or None: as they stand, for validation
    epoch : which one, counted from 0; each has an order of its own
    pad_id : what to pad targets with, that of the model
    multiple : round T up to a multiple of this: fewer different shapes, each of which XLA compiles anew

    Raises
    ------
    ValueError : other axes, no sound, not one target for each, an empty target, a size below one.
    TypeError : features that are not floating point, targets that are not integers.
    """

    def __init__(
        self,
        features,
        targets: Sequence[np.ndarray],
        batch_size: int = 32,
        seed: int | None = 0,
        epoch: int = 0,
        pad_id: int = 0,
        multiple: int = 1,
    ):
        for name, value, least in (("batch_size", batch_size, 1), ("epoch", epoch, 0), ("multiple", multiple, 1)):
            check_count(name, value, least)
        self.features, self.targets = np.asarray(features), positional("targets", targets)
        if self.features.ndim != 3 or len(self.features) == 0:
            raise ValueError(f"features must have shape (N, n_mels, F), N of 1 or more; got {self.features.shape}")
        if self.features.dtype.kind != "f":
            raise TypeError(f"features must be numbers of floating point, got {self.features.dtype}")
        lengths = lengths_of("targets", self.targets)
        if len(lengths) != len(self.features):
            raise ValueError(f"there must be one target for each of {len(self.features)} sounds, got {len(lengths)}")
        if lengths.min() == 0:
            raise ValueError("every target needs at least one token")
        self.batch_size, self.seed, self.pad_id, self.multiple = batch_size, seed, pad_id, multiple
        self._enter(epoch)

    def _shuffle(self, epoch: int) -> None:
        n = len(self.features)
        rows = np.arange(n) if self.seed is None else np.random.default_rng([self.seed, epoch]).permutation(n)
        self.groups = cut(rows, self.batch_size)

    def __getitem__(self, i: int) -> SoundBatch:
        rows = self.groups[i]
        target = stacked([self.targets[row] for row in rows], self.pad_id, self.multiple)
        return SoundBatch(self.features[rows].astype(np.float32, copy=False), target)
