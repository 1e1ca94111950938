"""Batches of labelled images."""

from typing import NamedTuple

import numpy as np

from course_lib.batches.epochs import Epoch, cut
from course_lib.checks import check_count


class ImageBatch(NamedTuple):
    """B labelled images: `images`, float32 (B, C, height, width); `labels`, int64 (B,), IGNORED for none."""

    images: np.ndarray
    labels: np.ndarray


class ImageBatches(Epoch):
    """One epoch of labelled images in batches, for classification; `epoch(e)` gives the others.

    Parameters
    ----------
    images : shape (N, C, height, width): floating point, or bytes, which a batch has as numbers in 0 ... 1
    labels : integers, shape (N,), IGNORED for none
    batch_size : images a batch; the last one may have fewer
    seed : of the order, or None: as they stand, for validation
    epoch : which one, counted from 0; each has an order of its own

    Raises
    ------
    ValueError : other axes, no image, not one label for each, a size below one.
    TypeError : images that are neither floating point nor bytes, labels that are not integers.
    """

    def __init__(self, images, labels, batch_size: int = 32, seed: int | None = 0, epoch: int = 0):
        check_count("batch_size", batch_size)
        check_count("epoch", epoch, 0)
        self.images, self.labels = np.asarray(images), np.asarray(labels)
        if self.images.ndim != 4 or len(self.images) == 0:
            raise ValueError(f"images must have shape (N, C, height, width), N of 1 or more; got {self.images.shape}")
        if self.images.dtype.kind != "f" and self.images.dtype != np.uint8:
            raise TypeError(f"images must be numbers of floating point, or bytes, got {self.images.dtype}")
        if self.labels.dtype.kind not in "iu":
            raise TypeError(f"labels must be integers, got {self.labels.dtype}")
        if self.labels.shape != self.images.shape[:1]:
            raise ValueError(f"there must be one label for each of {len(self.images)} images, got {self.labels.shape}")
        self.labels = self.labels.astype(np.int64)
        self.batch_size, self.seed = batch_size, seed
        self._enter(epoch)

    def _shuffle(self, epoch: int) -> None:
        n = len(self.images)
        rows = np.arange(n) if self.seed is None else np.random.default_rng([self.seed, epoch]).permutation(n)
        self.groups = cut(rows, self.batch_size)

    def __getitem__(self, i: int) -> ImageBatch:
        rows = self.groups[i]
        images = self.images[rows].astype(np.float32)
        return ImageBatch(images / np.float32(255) if self.images.dtype == np.uint8 else images, self.labels[rows])
