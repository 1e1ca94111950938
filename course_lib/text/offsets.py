"""Token ids and the characters they stand for: what tasks need whose answers are pieces of the text.

`WordPiece.encode` forgets where a token came from. Here each token keeps the characters of the original text that it
covers, before lower-casing and the loss of accents, so that a model's choice of tokens can be shown in the text.
A character is one of Python's: an emoji of several parts is several.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from course_lib.checks import check_count
from course_lib.strings import as_texts
from course_lib.text.base import tokenized


class Located(NamedTuple):
    """M windows of N texts or pairs, without padding; each of the lists has M arrays, int64.

    A text that fits is one window. `text[offsets[w][t, 0] : offsets[w][t, 1]]` is what token t of window w stands for.
    """

    ids: list[np.ndarray]  # (length,)
    segments: list[np.ndarray]  # (length,)
    offsets: list[np.ndarray]  # (length, 2): first character and the one after the last; 0, 0 of special tokens
    parts: list[np.ndarray]  # (length,): 0 in the text, 1 in its pair, -1 at a special token
    rows: np.ndarray  # (M,) int64: of which text each window is; in order


def locate(
    tokenizer,
    texts: str | Sequence[str],
    pairs: str | Sequence[str] | None = None,
    max_len: int | None = None,
    stride: int = 0,
) -> Located:
    """Turn N texts, or N pairs, into ids with the characters of each token; what is too long, into several windows.

    What is cut into windows is the text, or of a pair the second part: the first stands whole in every window, as a
    question does over a long context (Devlin et al. 2019, section 4.2; windows as in their code for SQuAD).

    Parameters
    ----------
    tokenizer : a `WordPiece`
    texts : one text, or N
    pairs : the second text of each, or None
    max_len : tokens of a window at most, special ones included; None makes one window of each
    stride : tokens that a window has in common with the next one (the `stride` of `transformers`), so that what one
        cuts through stands whole in the other

    Raises
    ------
    TypeError : a text that is not a str.
    ValueError : no text at all, unequal numbers of texts and pairs, a text with half of a character (a lone surrogate),
        or a max_len that leaves no room for `stride` tokens and a new one.
    """
    first, second = as_texts(texts), None if pairs is None else as_texts(pairs, "pairs")
    if not first:
        raise ValueError("texts is empty; give at least one text")
    if second is not None and len(first) != len(second):
        raise ValueError(f"there are {len(first)} texts but {len(second)} pairs; each text needs one")
    check_count("stride", stride, 0)
    if max_len is not None:
        check_count("max_len", max_len)
    batch = first if second is None else list(zip(first, second, strict=True))
    encodings = tokenized(tokenizer._fast.encode_batch, batch, texts=first, pairs=second or [])
    found, rows = [], []
    for row, encoding in enumerate(encodings):
        parts = np.array([-1 if part is None else part for part in encoding.sequence_ids], dtype=np.int64)
        columns = (
            np.array(encoding.ids, dtype=np.int64),
            np.array(encoding.type_ids, dtype=np.int64),
            np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2),
            parts,
        )
        for tokens in _windows(parts, int(second is not None), max_len, stride, row):
            found.append([column[tokens] for column in columns])
            rows.append(row)
    return Located(*map(list, zip(*found, strict=True)), np.array(rows, dtype=np.int64))


def _windows(parts, last: int, max_len: int | None, stride: int, row: int) -> list[np.ndarray]:
    """The tokens of each window: all before the last part, a run of it, all after it."""
    if max_len is None or len(parts) <= max_len:
        return [np.arange(len(parts))]
    body = np.flatnonzero(parts == last)
    room = max_len - (len(parts) - len(body))
    if room <= stride:
        what = f"the first text of pair {row} and the special tokens" if last else "the special tokens"
        raise ValueError(
            f"{what} take {len(parts) - len(body)} tokens, so {max(room, 0)} of max_len = {max_len} are left for a "
            f"window, which needs more than stride = {stride}; shorten the text, or choose other lengths"
        )
    head, tail = np.arange(body[0]), np.arange(body[-1] + 1, len(parts))
    starts = range(0, len(body) - stride, room - stride)
    return [np.concatenate([head, body[start : start + room], tail]) for start in starts]
