"""The most probable answer in the logits of a question-answering model: a search over spans and windows.

A span scores the sum of the logit of its start and that of its end; it starts no later than it ends, and lies in the
context. The score of "no answer" is that of [CLS] as start and end (Devlin et al. 2019, section 4.3).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from course_lib.batches.spans import QuestionWindows, characters, windows_of
from course_lib.checks import check_count
from course_lib.strings import as_texts


class Span(NamedTuple):
    """Characters start to end - 1 of the context, and the sum of the two logits."""

    start: int
    end: int
    score: float


class Found(NamedTuple):
    """What was found for a question: the best spans, best first, and the score of "no answer"."""

    spans: list[Span]
    null: float

    @property
    def margin(self) -> float:
        """How much more "no answer" scores than the best span; inf without a span."""
        return self.null - self.spans[0].score if self.spans else math.inf


def best_spans(
    start_logits: Sequence, end_logits: Sequence, windows: QuestionWindows, max_answer: int = 30, n_best: int = 5
) -> list[Found]:
    """The best spans of each question over all its windows.

    Every span of `max_answer` tokens at most is tried. Of one that stands in several windows the best score counts, of
    "no answer" the lowest: each window may say that the answer is in it.

    Parameters
    ----------
    start_logits, end_logits : M arrays (length or more,), or two arrays (M, T); what stands behind the end of a window
        is not read
    windows : of `encode_questions`, M of N questions
    max_answer : tokens of an answer at most
    n_best : spans to return at most, different ones

    Returns
    -------
    N `Found`; without a token of the context, its `spans` are empty.

    Raises
    ------
    ValueError : not M arrays, one shorter than its window, logits that are NaN, or a number below one.
    """
    check_count("max_answer", max_answer)
    check_count("n_best", n_best)
    for name, logits in (("start_logits", start_logits), ("end_logits", end_logits)):
        if len(logits) != len(windows.ids):
            raise ValueError(f"{name} must be of the {len(windows.ids)} windows, got {len(logits)}")
    found = []
    for own in windows_of(windows.rows, int(windows.rows[-1]) + 1):
        best: dict[tuple[int, int], float] = {}
        null = math.inf
        for window in own:
            size, offsets = len(windows.ids[window]), windows.offsets[window]
            start, end = (_logits(logits[window], size, window) for logits in (start_logits, end_logits))
            null = min(null, float(start[0] + end[0]))
            for first, last, score in _spans(start, end, offsets[:, 0] >= 0, max_answer, n_best):
                place = characters(offsets, first, last)
                best[place] = max(score, best.get(place, -math.inf))
        ranked = sorted(best.items(), key=lambda entry: (-entry[1], entry[0]))[:n_best]
        found.append(Found([Span(*place, score) for place, score in ranked], null))
    return found


def answer_texts(found: Sequence[Found], contexts: Sequence[str], threshold: float = math.inf) -> list[str]:
    """The best answer to each question as a text, "" where "no answer" scores more by over the threshold.

    Parameters
    ----------
    found : N, of `best_spans`
    contexts : N texts
    threshold : of `best_threshold`; inf always answers, as SQuAD 1.1 asks

    Raises
    ------
    ValueError : unequal numbers.
    TypeError : a context that is not a str.
    """
    contexts = as_texts(contexts, "contexts")
    if len(found) != len(contexts):
        raise ValueError(f"there are {len(found)} results but {len(contexts)} contexts")
    return [
        context[one.spans[0].start : one.spans[0].end] if one.spans and one.margin <= threshold else ""
        for one, context in zip(found, contexts, strict=True)
    ]


def _logits(row, size: int, window: int) -> np.ndarray:
    row = np.asarray(row, dtype=np.float64)
    if row.ndim != 1 or len(row) < size:
        raise ValueError(f"window {window} has {size} tokens, but its logits have the shape {row.shape}")
    if np.isnan(row[:size]).any():
        raise ValueError(f"the logits of window {window} are not numbers (NaN)")
    return row[:size]


def _spans(start, end, inside, max_answer: int, n_best: int) -> list[tuple[int, int, float]]:
    """The best spans of one window: first token, last token, score."""
    tokens = np.flatnonzero(inside)  # a run: the context
    if len(tokens) == 0:
        return []
    start, end = start[tokens], end[tokens]
    longest = min(max_answer, len(tokens))
    behind = np.append(end, np.full(longest - 1, -np.inf))
    scores = start[:, None] + np.lib.stride_tricks.sliding_window_view(behind, longest)  # (T, longest)
    best = np.argsort(-scores, axis=None, kind="stable")[:n_best]
    firsts, lengths = np.unravel_index(best, scores.shape)
    return [
        (int(tokens[first]), int(tokens[first + length]), float(scores[first, length]))
        for first, length in zip(firsts, lengths, strict=True)
        if first + length < len(tokens)
    ]
