"""Labels of words as labels of tokens, and back: for named entities, parts of speech, and their like.

A word may be several tokens, and its label stands at the first of them (Devlin et al. 2019, section 5.3); what a
model says of the others is neither trained nor read. A word may also have no token: an empty one, one of invisible
characters, or one that was cut off. Then it still has its place in the result.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from course_lib.batches.texts import IGNORED
from course_lib.checks import check_count
from course_lib.strings import as_texts
from course_lib.text.base import tokenized

OUTSIDE = "O"
"""The tag of a word that belongs to no entity, and of one that no token stands for."""


class EncodedWords(NamedTuple):
    """N sentences as token ids, and where each of their words begins; both are lists of N int64 arrays."""

    ids: list[np.ndarray]  # (length,)
    firsts: list[np.ndarray]  # (n_words,): the first token of each word, -1 where it has none
    n_cut: int  # words that max_len cut off

    def __str__(self) -> str:
        n = sum(map(len, self.firsts))
        return f"{n:,} words in {len(self.ids):,} sentences; {self.n_cut} cut off by the length"


def encode_words(sentences: Sequence[Sequence[str]], tokenizer, max_len: int | None = None) -> EncodedWords:
    """Turn N sentences, each a sequence of words, into ids that know their words.

    A word that the vocabulary lacks is [UNK], one token. Print the result to report how many words were cut off.

    Parameters
    ----------
    sentences : N sequences of words, as the corpus has them
    tokenizer : a `WordPiece`
    max_len : tokens of a sentence at most, special ones included; words whose first token would stand beyond it are
        cut off

    Raises
    ------
    TypeError : a sentence that is one str, or a word that is not a str.
    ValueError : no sentence, a word with half of a character (a lone surrogate), or a max_len below 3.
    """
    if max_len is not None:
        check_count("max_len", max_len, 3)
    if isinstance(sentences, str):
        raise TypeError("sentences must be many lists of words, not one str")
    words = [_words(sentence, f"sentences[{i}]") for i, sentence in enumerate(sentences)]
    if not words:
        raise ValueError("sentences is empty; give at least one")
    names = {f"sentences[{i}]": row for i, row in enumerate(words)}
    encodings = tokenized(lambda batch: tokenizer._fast.encode_batch(batch, is_pretokenized=True), words, **names)
    ids, firsts, n_cut = [], [], 0
    for row, encoding in zip(words, encodings, strict=True):
        tokens = np.array(encoding.ids, dtype=np.int64)
        first = np.full(len(row), -1, dtype=np.int64)
        for token, word in reversed(list(enumerate(encoding.word_ids))):
            if word is not None:
                first[word] = token
        if max_len is not None and len(tokens) > max_len:
            tokens = np.append(tokens[: max_len - 1], tokens[-1])
            n_cut += int((first >= max_len - 1).sum())
            first[first >= max_len - 1] = -1
        ids.append(tokens)
        firsts.append(first)
    return EncodedWords(ids, firsts, n_cut)


def token_labels(encoded: EncodedWords, tags: Sequence[Sequence[str]], names: Sequence[str]) -> list[np.ndarray]:
    """The label of each token: that of its word at the word's first token, and IGNORED (-100) at all others.

    Parameters
    ----------
    encoded : of `encode_words`, N sentences
    tags : N sequences with the tag of each word
    names : the tags that there are; a label is the place of its tag here

    Returns
    -------
    N int64 arrays (length,), one for each of `encoded.ids`.

    Raises
    ------
    ValueError : not as many tags as words, or a tag that `names` lacks.
    """
    if len(tags) != len(encoded.ids):
        raise ValueError(f"there are {len(encoded.ids)} sentences but tags of {len(tags)}")
    number = {name: label for label, name in enumerate(names)}
    found = []
    for i, (ids, firsts, row) in enumerate(zip(encoded.ids, encoded.firsts, tags, strict=True)):
        if len(row) != len(firsts):
            raise ValueError(f"sentence {i} has {len(firsts)} words but {len(row)} tags")
        if unknown := [tag for tag in row if tag not in number]:
            raise ValueError(f"sentence {i} has the tag {unknown[0]!r}; the known ones are {', '.join(names)}")
        labels = np.full(len(ids), IGNORED, dtype=np.int64)
        labels[firsts[firsts >= 0]] = np.array([number[tag] for tag in row], dtype=np.int64)[firsts >= 0]
        found.append(labels)
    return found


def word_tags(encoded: EncodedWords, labels: Sequence, names: Sequence[str]) -> list[list[str]]:
    """The tag of each word from a label for each token, as a model chose it: the inverse of `token_labels`.

    Parameters
    ----------
    encoded : of `encode_words`, N sentences
    labels : N integer arrays (length or more,), such as the rows of `logits.argmax(-1)`; what stands behind the end
        of a sentence is not read
    names : the tags that there are

    Returns
    -------
    N lists with a tag for each word: no word is lost, and one without a token is "O".

    Raises
    ------
    ValueError : not N arrays, one shorter than its sentence, or a label without a name.
    """
    if len(labels) != len(encoded.ids):
        raise ValueError(f"there are {len(encoded.ids)} sentences but labels of {len(labels)}")
    found = []
    for i, (ids, firsts, row) in enumerate(zip(encoded.ids, encoded.firsts, labels, strict=True)):
        row = np.asarray(row)
        if row.ndim != 1 or len(row) < len(ids):
            raise ValueError(f"sentence {i} has {len(ids)} tokens, but its labels have the shape {row.shape}")
        chosen = row[firsts[firsts >= 0]]
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < len(names):
            raise ValueError(f"labels must lie in 0 ... {len(names) - 1}, got {chosen.min()} to {chosen.max()}")
        tags = iter([names[label] for label in chosen])
        found.append([OUTSIDE if first < 0 else next(tags) for first in firsts])
    return found


def _words(sentence, name: str) -> list[str]:
    if isinstance(sentence, str):
        raise TypeError(f"{name} is one str; give its words, such as {name}.split()")
    return as_texts(sentence, name)
