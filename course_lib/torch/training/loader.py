"""Batches of pairs as PyTorch's own tools take them: a `DataLoader`."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class _Tensors(Dataset):
    def __init__(self, batches, first):
        self.batches, self.first = batches, first

    def __len__(self):
        return len(self.batches) - self.first

    def __getitem__(self, i):
        batch = self.batches[self.first + i]
        # always on the CPU, whatever the default device is; PyTorch takes no array that is read backwards
        return type(batch)(*(torch.from_numpy(np.ascontiguousarray(part)) for part in batch))


def data_loader(batches, first: int = 0):
    """One epoch of batches as a `DataLoader` of int64 tensors, the same batches as TensorFlow's `data_loader`.

    The batches come ready-made, in the order and with the contents that `batches` has. They lie in the CPU's memory,
    page-locked if there is a GPU, so that `.to(device, non_blocking=True)` copies while the GPU computes. Reading them
    leaves PyTorch's random state alone, so a resumed training sees the dropout of an undisturbed one.

    Parameters
    ----------
    batches : one epoch, a `PairBatches` or another sequence of named tuples of arrays
    first : the batch to begin with, where a stopped training goes on

    Raises
    ------
    ValueError : not 0 <= first <= number of batches.
    """
    if not 0 <= first <= len(batches):
        raise ValueError(f"first must lie in 0 ... {len(batches)}, the number of batches; got {first}")
    return DataLoader(
        _Tensors(batches, first),
        batch_size=None,  # they are batches already
        pin_memory=torch.cuda.is_available(),
        generator=torch.Generator(device=torch.get_default_device()),  # a loader draws a number it has no use for
    )
