"""Sequences of ids of different lengths as one array, and long ones cut in their middle."""

from collections.abc import Mapping, Sequence

import numpy as np


def padded(sequences: Sequence[np.ndarray], pad_id: int = 0, multiple: int = 1) -> np.ndarray:
    """Stack B sequences of ids as one int64 array (B, T), filled with `pad_id` on the right.

    Parameters
    ----------
    sequences : B integer arrays of shape (length,)
    pad_id : what to fill with
    multiple : round T up to a multiple of this, so that fewer different shapes occur

    Raises
    ------
    ValueError : no sequence, or an empty one.
    TypeError : something other than integers, such as texts.
    """
    lengths = lengths_of("sequences", sequences)
    if lengths.size == 0 or lengths.min() == 0:
        raise ValueError("a batch needs at least one sequence, and every sequence at least one token")
    return stacked(sequences, pad_id, multiple)


def stacked(sequences, pad_id: int, multiple: int) -> np.ndarray:
    longest = -(-max(map(len, sequences)) // multiple) * multiple
    ids = np.full((len(sequences), longest), pad_id, dtype=np.int64)  # (B, T)
    for row, sequence in zip(ids, sequences, strict=True):
        row[: len(sequence)] = sequence
    return ids


def positional(name: str, sequences) -> Sequence:
    """Sequences that are counted from 0, as a pandas Series, asked for its labels, is not; TypeError for no order."""
    if isinstance(sequences, str | Mapping) or not hasattr(sequences, "__len__"):
        raise TypeError(f"{name} must be many arrays of token ids, got {type(sequences).__name__}")
    return list(sequences) if hasattr(sequences, "iloc") else sequences


def lengths_of(name: str, sequences) -> np.ndarray:
    """The length of each sequence, int64 (N,); TypeError for what is not integers, ValueError for several axes."""
    positional(name, sequences)
    lengths = np.empty(len(sequences), dtype=np.int64)
    for i, ids in enumerate(sequences):
        if type(ids) is np.ndarray and ids.ndim == 1 and ids.dtype.kind in "iu":  # the usual case, 100,000 times
            lengths[i] = len(ids)
            continue
        if ids is None or isinstance(ids, str):
            raise TypeError(f"{name}[{i}] is {ids!r:.40}, not token ids; encode the texts by a tokenizer first")
        array = ids if hasattr(ids, "dtype") else np.asarray(ids)
        if len(array.shape) != 1:
            raise ValueError(f"{name}[{i}] must have shape (length,), got {tuple(array.shape)}")
        lengths[i] = len(array)
        if "int" not in str(array.dtype) and len(array):
            raise TypeError(f"{name}[{i}] must be integers, got {array.dtype}")
    return lengths


def head_and_tail(ids: np.ndarray, max_len: int, head: int) -> np.ndarray:
    """Cut a long sequence [CLS] ... [SEP] in its middle: `head` tokens from its start, the rest from its end.

    Source: Sun et al. 2019, section 5.3.1 (there 128 from the start and 382 from the end, of 510).

    Parameters
    ----------
    ids : shape (length,), with its special tokens
    max_len : tokens to keep, the special ones included; a shorter sequence stays as it is
    head : how many of them come from the start, [CLS] included

    Raises
    ------
    ValueError : not 1 <= head < max_len.
    """
    if not 1 <= head < max_len:
        raise ValueError(f"head must lie in 1 ... {max_len - 1}, so that both ends keep a token; got {head}")
    if len(ids) <= max_len:
        return ids
    return np.concatenate([ids[:head], ids[len(ids) - (max_len - head) :]])
