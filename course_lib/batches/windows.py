"""Documents cut into windows that a model reads: [CLS] ... [SEP], of at most so many tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from course_lib.checks import check_count
from course_lib.text.padding import lengths_of, positional
from course_lib.text.wordpiece import WordPiece


class Windows(NamedTuple):
    """N windows, and what was left out; print it to report that."""

    sequences: list[np.ndarray]  # N int64 arrays (length,), [CLS] ... [SEP]
    documents: np.ndarray  # (N,) int64: the document that each window begins in
    n_empty: int  # documents without a token
    n_short: int  # windows left out, of fewer tokens than were asked for
    n_lost: int  # the tokens in these

    def __str__(self) -> str:
        n = sum(int((ids[1:-1] != ids[-1]).sum()) for ids in self.sequences)  # without the [SEP] between documents
        return (
            f"{len(self.sequences):,} windows of {n:,} tokens; {self.n_empty:,} empty documents and {self.n_short:,} "
            f"short windows of {self.n_lost:,} tokens left out"
        )


def document_tokens(texts: Sequence[str], tokenizer: WordPiece) -> list[np.ndarray]:
    """The ids of each text without [CLS] and [SEP]: a list of int64 arrays (length,), an empty one for no text."""
    return [ids[1:-1] for ids in tokenizer.encode(texts, pad=False).ids] if len(texts) else []


def windows(
    documents: Sequence[np.ndarray], cls_id: int, sep_id: int, length: int = 128, mixed: bool = False, least: int = 1
) -> Windows:
    """Cut documents into windows [CLS] ... [SEP] of `length` tokens, one behind the other, none overlapping.

    What is left at the end makes a shorter window. By default that is the end of every document; with `mixed`, windows
    run on from one document into the next, with a [SEP] between the two (Liu et al. 2019, section 4.2,
    "FULL-SENTENCES"), and the end of the last one alone is short. A document that begins a window has none before it.

    Parameters
    ----------
    documents : integer arrays (length,), without special tokens, as `document_tokens` returns them
    cls_id, sep_id : of the tokenizer
    length : tokens of a window, [CLS] and [SEP] included
    mixed : let a window hold the end of one document and the beginning of the next
    least : leave out windows with room for fewer tokens than this, and count them; a [SEP] between two documents takes
        the room of one

    Raises
    ------
    ValueError : a length that leaves no room for a token, `least` of none or of more tokens than a window has, or
        documents without a token.
    TypeError : something other than integers, such as texts.
    """
    check_count("length", length, 3)
    check_count("least", least, 1)
    if least > length - 2:
        raise ValueError(f"least must be {length - 2} at most, the tokens of a window of {length}; got {least}")
    documents = positional("documents", documents)
    lengths = lengths_of("documents", documents)
    rows = np.flatnonzero(lengths)
    if len(rows) == 0:
        raise ValueError("there must be a document with at least one token")
    if mixed:
        parts = [part for row in rows for part in (documents[row], [sep_id])][:-1]
        owner = np.repeat(rows, lengths[rows] + 1)[:-1]
        streams = [(np.concatenate(parts), owner)]
    else:
        streams = [(np.asarray(documents[row]), np.full(lengths[row], row)) for row in rows]
    found, begins, short = [], [], []
    for stream, owner in streams:
        start = 0
        while start < len(stream):
            start += mixed and stream[start] == sep_id
            piece, begin = stream[start : start + length - 2], owner[start]
            start += length - 2
            if len(piece) < least:
                short.append(int((piece != sep_id).sum()) if mixed else len(piece))
                continue
            found.append(np.concatenate([[cls_id], piece, [sep_id]]).astype(np.int64))
            begins.append(begin)
    return Windows(found, np.array(begins, dtype=np.int64), len(documents) - len(rows), len(short), sum(short))
