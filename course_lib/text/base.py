"""What the tokenizers take: one text or several, every one a str that can be written as UTF-8, and ids likewise."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_lib.strings import as_texts as as_texts


def tokenized(function: Callable[[Sequence], Any], batch: Sequence, **texts: Sequence[str]) -> Any:
    """`function(batch)` of the `tokenizers` library, which cannot say what is wrong with a str.

    Parameters
    ----------
    texts : the texts of the batch by the name of the argument that they came in

    Raises
    ------
    ValueError : a text with half of a character, a lone surrogate; names the first one.
    """
    try:
        return function(batch)
    except (TypeError, UnicodeError):  # looked for only now: it is rare, and looking costs time
        for name, column in texts.items():
            for index, text in enumerate(column):
                try:
                    text.encode("utf-8")
                except UnicodeEncodeError as error:
                    raise ValueError(
                        f"{name}[{index}] holds half of a character, the lone surrogate {text[error.start]!r} at "
                        f"{error.start}; read the file as UTF-8, or leave it out by "
                        "text.encode('utf-8', 'ignore').decode('utf-8')"
                    ) from None
        raise


def encoded(fast, texts: str | Sequence[str]) -> list[np.ndarray]:
    """The ids that a tokenizer of the `tokenizers` library gives B texts: a list of B int64 arrays (length,).

    Raises
    ------
    TypeError : something that is not a str.
    ValueError : a text with half of a character (a lone surrogate).
    """
    texts = as_texts(texts)
    encodings = tokenized(fast.encode_batch_fast, texts, texts=texts)
    return [np.array(encoding.ids, dtype=np.int64) for encoding in encodings]


def per_sequence(ids, vocab_size: int, function: Callable[[list[int]], Any]) -> Any:
    """`function` of one sequence of ids, or a list of what it makes of each of several.

    Parameters
    ----------
    ids : integers of shape (T,) or (B, T), or B sequences of unequal lengths

    Raises
    ------
    ValueError : ids that are no integers, of another shape, or outside the vocabulary.
    """
    if isinstance(ids, (list, tuple)) and ids and all(getattr(row, "ndim", hasattr(row, "__len__")) for row in ids):
        return [per_sequence(row, vocab_size, function) for row in ids]  # the rows may be of unequal lengths
    ids = np.asarray(ids)
    if ids.ndim == 2:
        return [per_sequence(row, vocab_size, function) for row in ids]
    if ids.size == 0:
        ids = ids.astype(np.int64)  # NumPy makes an empty list float
    if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(f"ids must be integers of shape (T,) or (B, T), not {ids.dtype} of shape {ids.shape}")
    if ids.size and not 0 <= ids.min() <= ids.max() < vocab_size:
        raise ValueError(f"ids must lie in 0 ... {vocab_size - 1}; they go from {ids.min()} to {ids.max()}")
    return function(ids.tolist())
