"""Blanks to be filled in, for a masked language model (Devlin et al. 2019, section 3.1 and appendix A.1).

`Masking` makes the blanks of one batch, `MaskedBatches` gives batches of sequences, every epoch with other blanks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from course_lib.batches.epochs import Epoch, similar_lengths
from course_lib.batches.texts import IGNORED
from course_lib.checks import check_count
from course_lib.text.padding import lengths_of, positional, stacked
from course_lib.text.wordpiece import WordPiece


class MaskedBatch(NamedTuple):
    """B sequences with blanks: `ids` as the model reads them, and `labels`, the token that stood in each blank.

    Both int64 (B, T); labels are IGNORED, -100, where there is no blank.
    """

    ids: np.ndarray
    labels: np.ndarray


class PretrainingBatch(NamedTuple):
    """B pairs of segments with blanks: `ids`, `segments` (0 or 1) and `labels`, int64 (B, T), and `follows` (B,).

    `follows`, int64, is 1 where the second segment is what follows the first in its document, else 0.
    """

    ids: np.ndarray
    segments: np.ndarray
    labels: np.ndarray
    follows: np.ndarray


class Masking:
    """How blanks are made: which tokens are chosen, and what the model reads in their place.

    Of the words of a sequence, `share` are chosen, as exactly as whole numbers allow and one at least. A word is a
    single token, or with whole words all tokens that it was split into. Special tokens and padding are never chosen. Of
    the chosen tokens a share `masked` becomes [MASK], a share `random` another token of the vocabulary (no special
    one), and the rest stays as it is; each is to be predicted. Without the last two the model would learn nothing about
    the tokens it sees, and would never see a text without [MASK] before it is fine-tuned.

    Attributes are the parameters, and `is_special`, boolean (V,).

    Parameters
    ----------
    vocab_size, mask_id, pad_id : of the tokenizer
    special_ids : other tokens that are never chosen, and never put in place of another
    share : of the words, above 0, at most 1
    masked, random : of the chosen tokens, 1 in all at most
    continues : which tokens go on with a word that another one began, boolean (V,), such as `WordPiece.continues`;
        None makes every token a word of its own

    Raises
    ------
    ValueError : a share that is none, ids outside the vocabulary, a vocabulary of special tokens alone, or not one
        place of `continues` for each token.
    """

    def __init__(
        self,
        vocab_size: int,
        mask_id: int,
        pad_id: int = 0,
        special_ids: Sequence[int] = (),
        share: float = 0.15,
        masked: float = 0.8,
        random: float = 0.1,
        continues: np.ndarray | None = None,
    ):
        if not 0 < share <= 1:
            raise ValueError(f"share must lie above 0 and be 1 at most, such as 0.15; got {share!r}")
        if not (masked >= 0 and random >= 0 and masked + random <= 1 + 1e-9):
            raise ValueError(
                f"masked and random are shares, 1 in all at most, such as 0.8 and 0.1; got {masked!r} and {random!r}"
            )
        special = np.unique([mask_id, pad_id, *special_ids])
        if not 0 <= special.min() <= special.max() < vocab_size:
            raise ValueError(f"special tokens must lie in 0 ... {vocab_size - 1}, got {special.tolist()}")
        if len(special) == vocab_size:
            raise ValueError("there must be tokens in the vocabulary that are not special")
        continues = np.zeros(vocab_size, dtype=bool) if continues is None else np.asarray(continues)
        if continues.shape != (vocab_size,) or continues.dtype != bool:
            found = f"{continues.dtype} {continues.shape}"
            raise ValueError(f"continues must be boolean, one for each of {vocab_size} tokens; got {found}")
        self.vocab_size, self.mask_id, self.pad_id = vocab_size, mask_id, pad_id
        self.share, self.masked, self.random = share, masked, random
        self._continues = continues
        self._ordinary = np.setdiff1d(np.arange(vocab_size), special)
        self.is_special = np.isin(np.arange(vocab_size), special)

    @classmethod
    def of(
        cls,
        tokenizer: WordPiece,
        share: float = 0.15,
        masked: float = 0.8,
        random: float = 0.1,
        whole_words: bool = False,
    ) -> Masking:
        """For the texts of a tokenizer; `whole_words` chooses all tokens of a word together."""
        continues = tokenizer.continues if whole_words else None
        ids = tokenizer.mask_id, tokenizer.pad_id, tokenizer.special_ids
        return cls(tokenizer.vocab_size, *ids, share, masked, random, continues)

    def __call__(self, ids, seed: int = 0) -> MaskedBatch:
        """Make blanks in a batch of ids (B, T); the same seed makes the same ones.

        Raises
        ------
        TypeError : ids that are not integers.
        ValueError : another shape, or ids outside the vocabulary.
        """
        ids = np.asarray(ids)
        if not np.issubdtype(ids.dtype, np.integer):
            raise TypeError(f"ids must be integers, got {ids.dtype}")
        if ids.ndim != 2:
            raise ValueError(f"ids must have shape (B, T), got {ids.shape}")
        return self.drawn(ids, np.random.default_rng(seed).random((len(ids), 1 + ids.shape[1], 3)))

    def drawn(self, ids: np.ndarray, numbers: np.ndarray) -> MaskedBatch:
        """Make the blanks that these random numbers say: float (B, 1 + T, 3), between 0 and 1.

        The first number of a row rounds the number of its blanks. Then each token has three: which are chosen, what
        becomes of it, and what other token it may become.
        """
        if ids.size and not 0 <= ids.min() <= ids.max() < self.vocab_size:
            raise ValueError(f"ids must lie in 0 ... {self.vocab_size - 1}, got ids from {ids.min()} to {ids.max()}")
        rounding, (choice, fate, other) = numbers[:, 0, 0], np.moveaxis(numbers[:, 1:], -1, 0)
        chosen = self._chosen(ids, rounding, choice)  # (B, T)
        others = self._ordinary[(other * len(self._ordinary)).astype(np.int64)]
        read = np.where(fate < self.masked, self.mask_id, np.where(fate < self.masked + self.random, others, ids))
        return MaskedBatch(np.where(chosen, read, ids), np.where(chosen, ids, IGNORED))

    def _chosen(self, ids: np.ndarray, rounding: np.ndarray, choice: np.ndarray) -> np.ndarray:
        """Which tokens are to be blanks, boolean (B, T)."""
        real = ~self.is_special[ids]
        inside = self._continues[ids]
        inside[:, :1] = False
        inside[:, 1:] &= real[:, :-1]  # what follows a special token begins a word, or the rest of one
        first = real & ~inside  # (B, T), a word each
        n_words = first.sum(axis=1)
        n_blank = np.maximum(np.floor(self.share * n_words + rounding), n_words > 0)
        rank = np.where(first, choice, 2.0).argsort(axis=1).argsort(axis=1)
        # each token takes the choice of the word that it belongs to, the last that began
        word = np.maximum.accumulate(np.where(first, np.arange(ids.shape[1]), 0), axis=1)
        return np.take_along_axis(first & (rank < n_blank[:, None]), word, axis=1) & real


class MaskedBatches(Epoch):
    """One epoch of sequences with blanks, those of similar length together; every sequence comes once.

    Each epoch has another order and, if `fresh`, other blanks in every sequence (Liu et al. 2019, section 4.1, dynamic
    masking). The blanks of a sequence depend on the seed, the epoch and its place among the sequences, so a training
    that was stopped goes on with the very batches it would have seen, and the size of a batch changes no blank.

    Parameters
    ----------
    sequences : N integer arrays (length,) with their special tokens, or (N, T), as `windows` cuts them
    masking : how blanks are made
    batch_size : sequences of a batch; the last one may have fewer
    seed : of the order and of the blanks
    epoch : which one, counted from 0
    fresh : other blanks in each epoch; False leaves each sequence the same ones
    multiple : round T up to a multiple of this; with the length of the windows all batches have one shape

    Raises
    ------
    ValueError : no sequences, an empty one, or a number that is none.
    TypeError : something other than integers, such as texts.
    """

    def __init__(
        self,
        sequences: Sequence[np.ndarray],
        masking: Masking,
        batch_size: int = 64,
        seed: int = 0,
        epoch: int = 0,
        fresh: bool = True,
        multiple: int = 1,
    ):
        numbers = (("batch_size", batch_size, 1), ("multiple", multiple, 1), ("seed", seed, 0), ("epoch", epoch, 0))
        for name, value, least in numbers:
            check_count(name, value, least)
        sequences = positional("sequences", sequences)
        lengths = lengths_of("sequences", sequences)
        if lengths.size == 0 or lengths.min() == 0:
            raise ValueError("there must be at least one sequence, and every sequence needs at least one token")
        self.sequences, self.masking, self.batch_size = sequences, masking, batch_size
        self.seed, self.fresh, self.multiple, self.pad_id = seed, fresh, multiple, masking.pad_id
        self._lengths = lengths
        self._enter(epoch)

    def _shuffle(self, epoch: int) -> None:
        self.groups = similar_lengths(self._lengths, self.batch_size, np.random.default_rng([self.seed, epoch]))

    def __getitem__(self, i: int) -> MaskedBatch:
        rows = self.groups[i]
        ids = stacked([self.sequences[row] for row in rows], self.masking.pad_id, self.multiple)
        epoch = self.number if self.fresh else 0
        return self.masking.drawn(ids, numbers_of(rows, ids.shape[1], self.seed, epoch))


def numbers_of(rows: np.ndarray, length: int, seed: int, epoch: int) -> np.ndarray:
    """The random numbers of some sequences in an epoch, (B, 1 + length, 3); a longer row begins as a shorter one."""
    # the 1 at the end keeps them apart from the generator of the epoch's order, [seed, epoch]
    generators = (np.random.default_rng([seed, epoch, row, 1]) for row in rows.tolist())
    return np.stack([generator.random((1 + length, 3)) for generator in generators])
