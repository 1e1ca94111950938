"""Pairs of texts that mean the same, for sentence embeddings."""

from typing import NamedTuple

import numpy as np


class PairedTexts(NamedTuple):
    """B pairs of texts: `first` ids, int64 (B, T), and `second` ids, int64 (B, S), padded."""

    first: np.ndarray
    second: np.ndarray
