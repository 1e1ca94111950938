"""Questions over texts, for a model that answers with a piece of the text: windows, and the tokens of the answers.

A question and its context are one sequence, [CLS] question [SEP] context [SEP] (Devlin et al. 2019, section 4.2). A
context that is too long is read through several windows that overlap. An answer is known by its characters; a model is
trained to point at its first and last token. In a window that does not hold all of it the answer is "none", which is
[CLS] (section 4.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from course_lib.batches.epochs import Epoch
from course_lib.batches.texts import Batches
from course_lib.checks import check_count
from course_lib.strings import as_texts
from course_lib.text.offsets import locate


class SpanBatch(NamedTuple):
    """B windows: `ids` and `segments`, int64 (B, T), padded; the answers' first and last tokens, int64 (B,), or 0."""

    ids: np.ndarray
    segments: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


class QuestionWindows(NamedTuple):
    """M windows of N questions over their contexts, and where the answers stand, as tokens; no padding.

    Each of the lists has M int64 arrays; `rows` ascend, and every question has at least one window.
    """

    ids: list[np.ndarray]  # (length,)
    segments: list[np.ndarray]  # (length,): 0 to the first [SEP], 1 behind it
    offsets: list[np.ndarray]  # (length, 2): characters of the context, -1, -1 where a token is not of the context
    rows: np.ndarray  # (M,): of which question each window is
    starts: np.ndarray  # (M,): the answer's first token, 0 where the window does not hold the answer
    ends: np.ndarray  # (M,): its last token


def encode_questions(
    questions: str | Sequence[str],
    contexts: str | Sequence[str],
    tokenizer,
    answers: Sequence | None = None,
    max_len: int = 384,
    stride: int = 128,
) -> QuestionWindows:
    """Turn N questions with their contexts into windows of token ids, and answers into tokens.

    Parameters
    ----------
    questions, contexts : N texts each; an empty context is a window without a token of it
    tokenizer : a `WordPiece`
    answers : for each question the characters (first, one after the last) of its answer in the context, or None where
        there is no answer; without `answers` at all every start and end is 0
    max_len : tokens of a window at most, question and special tokens included
    stride : tokens of the context that a window shares with the next one; longer answers may stand whole in none

    Raises
    ------
    TypeError : a text that is not a str.
    ValueError : unequal numbers of questions, contexts and answers, a question that leaves no room for its context, or
        an answer that is not inside its context or that no token stands for.
    """
    questions, contexts = as_texts(questions, "questions"), as_texts(contexts, "contexts")
    if not len(questions) == len(contexts) == (len(questions) if answers is None else len(answers)):
        counts = f"{len(questions)} questions, {len(contexts)} contexts"
        counts += "" if answers is None else f" and {len(answers)} answers"
        raise ValueError(f"each question needs a context, and an answer or None; there are {counts}")
    found = locate(tokenizer, questions, contexts, max_len, stride)
    parts = zip(found.parts, found.offsets, strict=True)
    offsets = [np.where((part == 1)[:, None], place, -1) for part, place in parts]
    starts, ends = np.zeros((2, len(offsets)), dtype=np.int64)
    if answers is not None:
        for row, (answer, windows) in enumerate(zip(answers, windows_of(found.rows, len(questions)), strict=True)):
            if answer is not None:
                places = [offsets[window] for window in windows]
                starts[windows], ends[windows] = _tokens(places, *answer, row, contexts[row])
    return QuestionWindows(found.ids, found.segments, offsets, found.rows, starts, ends)


def windows_of(rows: np.ndarray, n: int) -> list[np.ndarray]:
    """For each of n questions the numbers of its windows, given the question of each window in ascending order."""
    return np.split(np.arange(len(rows)), np.searchsorted(rows, np.arange(1, n)))


def characters(offsets: np.ndarray, start: int, end: int) -> tuple[int, int] | None:
    """The characters (first, one after the last) of the context that tokens start to end stand for; None for no answer.

    Parameters
    ----------
    offsets : of one window, (length, 2), as in `QuestionWindows`
    start, end : the first and the last token; 0 and 0, [CLS], say that there is no answer

    Raises
    ------
    ValueError : tokens outside the context, or an end before its start.
    """
    if start == end == 0:
        return None
    if not 0 <= start <= end < len(offsets) or offsets[start, 0] < 0 or offsets[end, 0] < 0:
        raise ValueError(f"the tokens {start} to {end} are no span of the context in a window of {len(offsets)}")
    return int(offsets[start, 0]), int(offsets[end, 1])


def _tokens(windows: list[np.ndarray], first: int, last: int, row: int, context: str) -> np.ndarray:
    """The first and last token of an answer in each window of a question, 0 where it is cut: (2, n_windows)."""
    if not 0 <= first < last <= len(context):
        size = len(context)
        raise ValueError(f"answer {row} should lie in the {size} characters of its context, not at {first}:{last}")
    covers = [np.flatnonzero((place[:, 0] < last) & (place[:, 1] > first)) for place in windows]
    held = [place[tokens] for place, tokens in zip(windows, covers, strict=True) if len(tokens)]
    if not held:
        raise ValueError(f"answer {row}, {context[first:last]!r:.40}, has no token: it is white space, or invisible")
    whole = min(part[0, 0] for part in held), max(part[-1, 1] for part in held)
    found = np.zeros((2, len(windows)), dtype=np.int64)
    for window, (place, tokens) in enumerate(zip(windows, covers, strict=True)):
        if len(tokens) and (place[tokens[0], 0], place[tokens[-1], 1]) == whole:
            found[:, window] = tokens[0], tokens[-1]
    return found


class SpanBatches(Epoch):
    """One epoch of windows in batches of similar length, each a `SpanBatch`; `epoch(e)` gives the others.

    Parameters
    ----------
    windows : of `encode_questions`
    batch_size, pad_id, multiple : as for `Batches`
    seed : of the order, or None: sorted by length, for validation
    epoch : which one, counted from 0; each has an order of its own

    Raises
    ------
    ValueError : as for `Batches`.
    """

    def __init__(
        self,
        windows: QuestionWindows,
        batch_size: int = 32,
        seed: int | None = 0,
        epoch: int = 0,
        pad_id: int = 0,
        multiple: int = 1,
    ):
        check_count("epoch", epoch, 0)
        self.windows, self.batch_size, self.seed = windows, batch_size, seed
        self.pad_id, self.multiple = pad_id, multiple
        self._enter(epoch)

    def _shuffle(self, epoch: int) -> None:
        order = None if self.seed is None else [self.seed, epoch]
        self._ids = Batches(self.windows.ids, self.batch_size, order, self.pad_id, self.multiple)
        self.groups = self._ids.groups  # the windows of each batch

    def __getitem__(self, i: int) -> SpanBatch:
        ids, rows = self._ids[i]
        segments = np.zeros_like(ids)
        for segment, row in zip(segments, rows, strict=True):
            own = self.windows.segments[row]
            segment[: len(own)] = own
        return SpanBatch(ids, segments, self.windows.starts[rows], self.windows.ends[rows])
