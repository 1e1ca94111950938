"""The loaders of both frameworks take every kind of batches."""

import numpy as np
import pytest
import tensorflow as tf
import torch

import course_lib.tensorflow.training.loader
import course_lib.torch.training.loader
from course_lib.batches.masked import MaskedBatches, Masking
from course_lib.batches.next_sentence import PretrainingBatches

LOADERS = {
    "torch": course_lib.torch.training.loader.data_loader,
    "tensorflow": course_lib.tensorflow.training.loader.data_loader,
}
MASKING = Masking(100, 4, 1, (2, 3))


def kinds():
    rng = np.random.default_rng(0)
    sequences = [rng.integers(5, 100, n) for n in rng.integers(3, 30, 150)]
    documents = [[rng.integers(5, 100, n) for n in rng.integers(1, 9, 12)] for _ in range(40)]
    return {
        "masked": MaskedBatches(sequences, MASKING, 32, seed=6, epoch=2),
        "next sentence": PretrainingBatches(documents, MASKING, 2, 3, 29, 16, seed=6, epoch=2),
    }


@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("kind", ["masked", "next sentence"])
def test_both_frameworks_get_the_same_batches(kind, first):
    batches = kinds()[kind]
    loaded = {name: list(loader(batches, first)) for name, loader in LOADERS.items()}
    for found in loaded.values():
        assert len(found) == len(batches) - first > 0
        for ours, theirs in zip(list(batches)[first:], found, strict=True):
            assert type(theirs) is type(ours)
            assert all((a.numpy() == b).all() and a.shape == b.shape for a, b in zip(theirs, ours, strict=True))
    assert loaded["torch"][0].ids.dtype == torch.int64 and loaded["tensorflow"][0].ids.dtype == tf.int64
