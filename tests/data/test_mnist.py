"""MNIST: its format, files that are something else or would run code, and its numbers as published."""

import gzip
import io
import os
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.data import DataError, mnist
from course_lib.data.mnist import load, read_pickle

RNG = np.random.default_rng(0)
BYTES = RNG.integers(0, 256, size=(5, 784)).astype(np.uint8)
LABELS = np.array([9, 0, 3, 4, 4])
PAIRS = tuple((BYTES[rows].astype(np.float32) / 256, LABELS[rows]) for rows in (slice(0, 3), slice(3, 4), slice(4, 5)))


def written(folder, parts):
    """The file, its arrays as those of Python 2 and NumPy 1 have them."""

    class Old(pickle._Pickler):
        dispatch = dict(pickle._Pickler.dispatch)

        def save_global(self, obj, name=None):
            if getattr(obj, "__name__", "") == "_reconstruct":
                return self.write(b"cnumpy.core.multiarray\n_reconstruct\n")
            return super().save_global(obj, name)

        def save_bytes(self, obj):
            self.write(pickle.BINSTRING + len(obj).to_bytes(4, "little") + obj)

        dispatch[bytes] = save_bytes
        dispatch[type(np.zeros(0).__reduce__()[0])] = save_global

    file = io.BytesIO()
    Old(file, protocol=2).dump(parts)
    path = folder / "mnist.pkl.gz"
    path.write_bytes(gzip.compress(file.getvalue()))
    return path


def test_the_format(tmp_path):
    parts = read_pickle(written(tmp_path, PAIRS))
    assert [part.images.shape for part in parts] == [(n, 1, 28, 28) for n in (3, 1, 1)]
    assert_array_equal(np.concatenate([part.images for part in parts]).reshape(5, 784), BYTES)
    assert_array_equal(np.concatenate([part.labels for part in parts]), LABELS)
    assert {(part.images.dtype, part.labels.dtype) for part in parts} == {(np.dtype(np.uint8), np.dtype(np.int64))}


class Evil:
    def __reduce__(self):
        return os.mkdir, ("was-run",)


@pytest.mark.parametrize("parts, message", [
    (PAIRS[:2], "it does not hold 3 parts"),
    (list(PAIRS), "it does not hold 3 parts"),
    (((PAIRS[0][0].astype(np.float64), PAIRS[0][1]), *PAIRS[1:]), "images .* of float64"),
    (((PAIRS[0][0][:2], PAIRS[0][1]), *PAIRS[1:]), r"images \(2, 784\)"),
    (((PAIRS[0][0], PAIRS[0][1] / 2), *PAIRS[1:]), "labels"),
    (((PAIRS[0][0] + np.float32(0.001), PAIRS[0][1]), *PAIRS[1:]), "no bytes divided by 256"),
    (((PAIRS[0][0] + 1, PAIRS[0][1]), *PAIRS[1:]), "no bytes divided by 256"),
    (((PAIRS[0][0] - 1, PAIRS[0][1]), *PAIRS[1:]), "no bytes divided by 256"),
    (((PAIRS[0][0], PAIRS[0][1] + 1), *PAIRS[1:]), "its labels no digits"),
    (((PAIRS[0][0], PAIRS[0][1] - 1), *PAIRS[1:]), "its labels no digits"),
    (Evil(), "it asks for posix.mkdir, which is no part of an array"),
])  # fmt: skip
def test_other_files(parts, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=f"mnist.pkl.gz is not MNIST as this course fetches it: .*{message}"):
        read_pickle(written(tmp_path, parts))
    assert not (tmp_path / "was-run").exists()


def test_a_file_that_is_cut_or_missing(tmp_path):
    path = written(tmp_path, PAIRS)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"no gzip", gzip.compress(b""), gzip.compress(b"no pickle")):
        path.write_bytes(content)
        with pytest.raises(DataError, match="is not MNIST"):
            read_pickle(path)
    with pytest.raises(FileNotFoundError):
        read_pickle(tmp_path / "other.gz")


def test_the_numbers_as_published(monkeypatch):
    with pytest.raises(ValueError, match="part must be one of 'train', 'validation', 'test'; got 'dev'"):
        load("dev")
    read = []

    def once(path):
        read.append(read_pickle(path))
        return read[-1]

    monkeypatch.setattr(mnist, "read_pickle", lambda path: read[0] if read else once(path))
    parts = [load(part, progress=False) for part in mnist.PARTS]
    assert [len(part.labels) for part in parts] == [50_000, 10_000, 10_000]
    counts = np.bincount(np.concatenate([part.labels for part in parts[:2]]))
    assert_array_equal(counts, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949])
    assert_array_equal(parts[0].labels[:10], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4])
    pixels = np.concatenate([part.images for part in parts[:2]])
    assert_allclose([pixels.mean() / 255, pixels.std() / 255], [0.1307, 0.3081], atol=5e-5)
