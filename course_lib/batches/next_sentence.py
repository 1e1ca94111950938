"""Pairs of pieces of documents, of which a half follow each other: next-sentence prediction beside the blanks.

Source: Devlin et al. 2019, section 3.1 (task 2) and appendix A.2. A piece is a few sentences of a document, one
behind the other (a segment, in BERT's paper; here segments are the 0 and 1 that tell a pair's two pieces apart).
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from course_lib.batches.epochs import Epoch, similar_lengths
from course_lib.batches.masked import Masking, PretrainingBatch, numbers_of
from course_lib.batches.windows import document_tokens
from course_lib.checks import check_count
from course_lib.text.padding import lengths_of, stacked
from course_lib.text.wordpiece import WordPiece


class Pieces(NamedTuple):
    """S pieces of documents that have two or more, and how many documents have not; print it to report that."""

    pieces: list[np.ndarray]  # S int64 arrays (length,), those of a document behind each other
    documents: np.ndarray  # (S,) int64: the document of each; equal documents have the number of the first of them
    starts: np.ndarray  # (D,) int64: where each document begins
    n_short: int  # documents left out: of one piece alone, or empty

    def __str__(self) -> str:
        return (
            f"{len(self.pieces):,} pieces of {len(self.starts):,} documents; {self.n_short:,} documents of fewer "
            "than two pieces left out"
        )


class PiecePairs(NamedTuple):
    """P pairs: the places of the `first` and the `second` piece, and `follows`, 1 or 0; each int64 (P,)."""

    first: np.ndarray
    second: np.ndarray
    follows: np.ndarray


def encode_documents(documents: Sequence[Sequence[str]], tokenizer: WordPiece) -> list[list[np.ndarray]]:
    """The ids of each sentence of each document, int64 (length,), without [CLS] and [SEP].

    Parameters
    ----------
    documents : for each its sentences, as `sentences` of `course_lib.text.sentences` cuts a text
    tokenizer : a `WordPiece`

    Raises
    ------
    TypeError : a document that is one str, or a sentence that is not a str.
    ValueError : a sentence with half of a character (a lone surrogate).
    """
    for number, document in enumerate(documents):
        if isinstance(document, str):
            raise TypeError(f"documents[{number}] is one str; cut it into its sentences first")
    ids = iter(document_tokens([sentence for document in documents for sentence in document], tokenizer))
    return [list(itertools.islice(ids, len(document))) for document in documents]


def pieces_of(documents: Sequence[Sequence[np.ndarray]], longest: int) -> Pieces:
    """Join the consecutive sentences of each document to pieces of at most `longest` tokens, as long as they fit.

    A longer sentence is cut into several. A document of one piece is left out and counted: it has no continuation,
    and if it took part in the other half alone it would give the answer away.

    A document with more than half of all pieces gets a warning: too few others can follow them in the other half, so
    that a second piece of it says by itself that it follows. Cut into several, it does not.

    Parameters
    ----------
    documents : for each its sentences, integer arrays (length,) without special tokens
    longest : tokens of a piece at most

    Raises
    ------
    ValueError : a `longest` of none, or fewer than two different documents of two pieces or more.
    TypeError : something other than integers, such as texts.
    """
    check_count("longest", longest)
    found, owner, starts, n_short, known = [], [], [], 0, {}
    for number, sentences in enumerate(documents):
        lengths_of(f"documents[{number}]", sentences)
        pieces = _joined(sentences, longest)
        if len(pieces) < 2:
            n_short += 1
            continue
        key = known.setdefault(np.concatenate(pieces).tobytes(), number)
        starts.append(len(found))
        found += pieces
        owner += [key] * len(pieces)
    if len(set(owner)) < 2:
        raise ValueError(
            f"there must be two different documents of two pieces or more, of {longest} tokens at most each; there "
            f"are {len(set(owner))}"
        )
    numbers, counts = np.unique(owner, return_counts=True)
    if 2 * counts.max() > len(owner):
        warnings.warn(
            f"documents[{numbers[counts.argmax()]}] has {counts.max():,} of {len(owner):,} pieces, more than half, so "
            "the second piece of a pair alone says often whether it follows the first; cut it into several documents",
            UserWarning,
            stacklevel=2,
        )
    return Pieces(found, np.array(owner, dtype=np.int64), np.array(starts, dtype=np.int64), n_short)


def pairs_of(pieces: Pieces, seed: int = 0, epoch: int = 0) -> PiecePairs:
    """Deal pieces into pairs: half of them true continuations, half with the second from another document.

    Each document is cut into pairs of neighbours, from its first piece on, or by chance from its second if their
    number is odd; so every piece but one of these takes part. Half of the pairs, drawn by chance, then get the second
    piece of a pair of another document in place of their own. Both halves have seconds of the same lengths and
    kinds, so only the two together tell them apart.

    Parameters
    ----------
    pieces : as `pieces_of` returns them
    seed, epoch : of the draw
    """
    return _pairs(pieces, np.random.default_rng([seed, epoch]))


class PretrainingBatches(Epoch):
    """One epoch of pairs of pieces with blanks, [CLS] first [SEP] second [SEP], those of similar length together.

    Each epoch has other pairs in another order with other blanks, as many as every other. `batches.pieces` says what
    was left out; `batches.pairs` are the pairs of this epoch.

    Parameters
    ----------
    documents : for each its sentences, integer arrays (length,) without special tokens
    masking : how blanks are made
    cls_id, sep_id : of the tokenizer
    max_len : tokens of a pair at most, special ones included; each piece has half of them
    batch_size : pairs of a batch; the last one may have fewer
    seed : of pairs, order and blanks
    epoch : which one, counted from 0
    multiple : round T up to a multiple of this; with `max_len` all batches have one shape

    Raises
    ------
    ValueError : as by `pieces_of`, a max_len below 5, or a number that is none.
    TypeError : something other than integers, such as texts.
    """

    def __init__(
        self,
        documents: Sequence[Sequence[np.ndarray]],
        masking: Masking,
        cls_id: int,
        sep_id: int,
        max_len: int = 128,
        batch_size: int = 32,
        seed: int = 0,
        epoch: int = 0,
        multiple: int = 1,
    ):
        numbers = {"max_len": (max_len, 5), "batch_size": (batch_size, 1), "multiple": (multiple, 1), "seed": (seed, 0)}
        for name, (value, least) in {**numbers, "epoch": (epoch, 0)}.items():
            check_count(name, value, least)
        self.pieces = pieces_of(documents, (max_len - 3) // 2)
        self.masking, self.cls_id, self.sep_id = masking, cls_id, sep_id
        self.batch_size, self.seed, self.multiple, self.pad_id = batch_size, seed, multiple, masking.pad_id
        self._lengths = np.array([len(piece) for piece in self.pieces.pieces])
        self._enter(epoch)

    def _shuffle(self, epoch: int) -> None:
        rng = np.random.default_rng([self.seed, epoch])
        self.pairs = _pairs(self.pieces, rng)
        lengths = self._lengths[self.pairs.first] + self._lengths[self.pairs.second]
        self.groups = similar_lengths(lengths, self.batch_size, rng)

    def __getitem__(self, i: int) -> PretrainingBatch:
        rows, ids, segments = self.groups[i], [], []
        for row in rows:
            first, second = (self.pieces.pieces[side[row]] for side in self.pairs[:2])
            ids.append(np.concatenate([[self.cls_id], first, [self.sep_id], second, [self.sep_id]]))
            segments.append(np.repeat([0, 1], [2 + len(first), 1 + len(second)]))
        ids = stacked(ids, self.masking.pad_id, self.multiple)
        blanks = self.masking.drawn(ids, numbers_of(rows, ids.shape[1], self.seed, self.number))
        segments = stacked(segments, 0, self.multiple)
        return PretrainingBatch(blanks.ids, segments, blanks.labels, self.pairs.follows[rows])


def _joined(sentences: Sequence[np.ndarray], longest: int) -> list[np.ndarray]:
    """The pieces of one document."""
    pieces, now, n = [], [], 0
    for sentence in sentences:
        for start in range(0, len(sentence), longest):
            piece = np.asarray(sentence[start : start + longest], dtype=np.int64)
            if n + len(piece) > longest:
                pieces.append(np.concatenate(now))
                now, n = [], 0
            now.append(piece)
            n += len(piece)
    return pieces + ([np.concatenate(now)] if now else [])


def _pairs(pieces: Pieces, rng: np.random.Generator) -> PiecePairs:
    n_pieces = np.diff(pieces.starts, append=len(pieces.pieces))  # (D,)
    n_pairs, odd = n_pieces // 2, n_pieces % 2
    begins = pieces.starts + odd * rng.integers(0, 2, len(odd))
    n = n_pairs.sum()
    within = np.arange(n) - np.repeat(np.cumsum(n_pairs) - n_pairs, n_pairs)  # which pair of its document
    first = np.repeat(begins, n_pairs) + 2 * within  # (P,)
    second, follows = first + 1, np.ones(n, dtype=np.int64)
    changed = rng.permutation(n)[: n // 2]
    # In the order of the documents, those of one are a block: a number is drawn from the others and steps over it.
    document = pieces.documents[first]
    order = np.argsort(document, kind="stable")
    _, block, size = np.unique(document[order], return_index=True, return_counts=True)
    place = np.searchsorted(np.unique(document), document[changed])
    drawn = (rng.random(len(changed)) * (n - size[place])).astype(np.int64)
    drawn += size[place] * (drawn >= block[place])
    second[changed], follows[changed] = first[order[drawn]] + 1, 0
    return PiecePairs(first, second, follows)
