"""From probabilities to text: greedy search, beam search and sampling, once for every framework.

All three ask a model one question, `next_logits(ids)`: for N rows of ids (N, t), the logits of the token after each,
a NumPy array (N, V). Rows come and go: a finished sentence leaves, a beam splits. A model that keeps something per row,
such as the encoded source or a cache of keys and values, has a method `next_logits.reorder(rows)`: it is called with
integers (M,) before the next call whenever the rows change, and says that row i of the next call continues row rows[i]
of the last one. The first call has the B rows of the prompt in their order. For models with padded sources a batch
gives what its sentences would give one by one.
"""

from collections.abc import Callable
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, softmax

from course_lib.checks import check_count


class Hypotheses(NamedTuple):
    """What beam search found for B prompts, the best first.

    A hypothesis is what follows the prompt, up to and including the end token, then padding.
    """

    ids: np.ndarray  # (B, n_best, L) int64
    scores: np.ndarray  # (B, n_best): log-probability over length penalty; -inf where fewer than n_best exist


def greedy(
    next_logits: Callable, start, end_id: int | None, max_len, pad_id: int = 0, min_len: int = 0
) -> np.ndarray:
    """Take the most probable token, again and again, until the end token. Ties go to the smaller id.

    A row that has ended is dropped, so the model computes nothing more for it.

    Parameters
    ----------
    next_logits : ids (N, t) -> NumPy logits (N, V), with or without `reorder` (see the module)
    start : what each row begins with, integers (B, t): the start token (B, 1), or prompts of equal length
    end_id : the token after which a row ends; None goes on to `max_len`
    max_len : tokens to generate at most, the end token included: an integer for all rows, or integers (B,)
    pad_id : fills the rows that ended earlier
    min_len : tokens before the end token, at least; it counts as impossible until then

    Returns
    -------
    The tokens after the prompt, int64 (B, L) with L <= the largest max_len: each row up to and including its end
    token, if it came to one, then padding.

    Raises
    ------
    TypeError : `start` is not of integers.
    ValueError : `start` without the axes (B, t) or without a token, a max_len below 1 or not one for each row, a
        min_len below 0, an end_id outside the vocabulary, logits that are not (N, V), that contain NaN, or a row of
        them that allows no token.
    """
    return _one_by_one(next_logits, start, end_id, max_len, pad_id, min_len, lambda logits, live: logits.argmax(axis=1))


def sample(
    next_logits: Callable,
    start,
    end_id: int | None,
    max_len,
    rng: np.random.Generator,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    pad_id: int = 0,
    min_len: int = 0,
) -> np.ndarray:
    """Draw each token from the model's distribution, sharpened and truncated by `next_probabilities`.

    Parameters
    ----------
    next_logits, start, end_id, max_len, pad_id, min_len : as for `greedy`
    rng : where the luck comes from; the same generator state gives the same text
    temperature, top_k, top_p : as for `next_probabilities`

    Returns
    -------
    As for `greedy`.

    Raises
    ------
    TypeError, ValueError : as for `greedy` and `next_probabilities`, or an `rng` that is no generator.
    """
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a np.random.Generator, such as np.random.default_rng(0); got {rng!r}")
    _check_sampling(temperature, top_k, top_p)
    n_rows = len(_checked(start, max_len)[0])

    def choose(logits, live):
        probabilities = next_probabilities(logits, temperature, top_k, top_p)  # (N, V)
        # A number for every row, ended or not: a sentence's luck does not hang on when the others end.
        u = rng.random(n_rows)[live, None]
        cumulative = probabilities.cumsum(axis=1)
        return (cumulative > u * cumulative[:, -1:]).argmax(axis=1)

    return _one_by_one(next_logits, start, end_id, max_len, pad_id, min_len, choose)


def next_probabilities(
    logits, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> np.ndarray:
    """The distribution that `sample` draws from: softmax(logits / temperature), its tail cut off, normalised again.

    Parameters
    ----------
    logits : shape (N, V)
    temperature : below 1 sharpens, above 1 flattens; towards 0 sampling becomes greedy
    top_k : keep the k most probable tokens (Fan et al. 2018, section 5.1); None keeps all
    top_p : keep the smallest set of most probable tokens whose probability reaches p, the nucleus (Holtzman et al.
        2020, section 3.1), of what top_k has left; None keeps all

    Returns
    -------
    Probabilities, float64 (N, V). Among equally probable tokens the smaller ids are kept.

    Raises
    ------
    ValueError : not temperature > 0, top_k >= 1 and 0 < top_p <= 1.
    """
    _check_sampling(temperature, top_k, top_p)
    probabilities = softmax(np.asarray(logits, dtype=np.float64) / temperature, axis=-1)  # (N, V)
    if top_k is None and top_p is None:
        return probabilities
    order = np.argsort(-probabilities, axis=-1, kind="stable")
    ranked = np.take_along_axis(probabilities, order, axis=-1)
    if top_k is not None:
        ranked[..., top_k:] = 0
    if top_p is not None and top_p < 1:
        ranked /= ranked.sum(axis=-1, keepdims=True)
        before = ranked.cumsum(axis=-1) - ranked  # the probability of all tokens before this one
        ranked[before >= top_p] = 0
    kept = np.zeros_like(probabilities)
    np.put_along_axis(kept, order, ranked, axis=-1)
    return kept / kept.sum(axis=-1, keepdims=True)


def beam_search(
    next_logits: Callable,
    start,
    end_id: int | None,
    max_len,
    width: int = 4,
    alpha: float = 0.6,
    n_best: int = 1,
    pad_id: int = 0,
    min_len: int = 0,
) -> Hypotheses:
    """Keep the `width` most probable beginnings of each sentence and extend them together.

    A hypothesis that reaches its end token keeps its place, and the beam goes on one narrower, so width 1 is greedy
    search. A sentence is left when all places are taken, or when no open hypothesis can still come among the n_best.
    What is open after max_len tokens counts as it stands. The score is the sum of the log-probabilities divided by
    the length penalty ((5 + length) / 6) ** alpha of Wu et al. 2016, section 7, equation 14, the end token counted;
    width 4 and alpha 0.6 are the values of Vaswani et al. 2017, section 6.1.

    Parameters
    ----------
    next_logits, start, end_id, max_len, pad_id, min_len : as for `greedy`
    width : hypotheses a sentence
    alpha : 0 compares log-probabilities, which favours short sentences; larger favours long ones
    n_best : hypotheses to return, at most `width`

    Returns
    -------
    `Hypotheses`: ids (B, n_best, L) and scores (B, n_best).

    Raises
    ------
    TypeError, ValueError : as for `greedy`, or not 1 <= n_best <= width and alpha >= 0.
    """
    start, limits = _checked(start, max_len, min_len)
    check_count("width", width)
    check_count("n_best", n_best)
    if n_best > width:
        raise ValueError(f"there must be 1 <= n_best <= width, got n_best={n_best}, width={width}")
    if not isinstance(alpha, Real) or not alpha >= 0:
        raise ValueError(f"alpha must be a number of 0 or more, got {alpha!r}")
    n_sentences, n_prompt = start.shape
    done = [[] for _ in range(n_sentences)]  # of each sentence, (score, ids (length,)) of what has ended
    ids, log_p, sentence = start, np.zeros(n_sentences), np.arange(n_sentences)  # one row per open hypothesis
    for length in range(1, limits.max() + 1):
        logits = _ask(next_logits, ids, end_id, may_end=length > min_len)
        totals = log_p[:, None] + log_softmax(logits, axis=1)  # (N, V)
        bounds = np.searchsorted(sentence, np.arange(n_sentences + 1))  # the rows of a sentence stand together
        penalty, most = _penalty(length, alpha), _penalty(limits, alpha)
        rows, tokens = [], []
        for s in np.unique(sentence):
            first, last = bounds[s], bounds[s + 1]
            best = _largest(totals[first:last].ravel(), width - len(done[s]))
            row, token = first + best // totals.shape[1], best % totals.shape[1]
            ended = (token == end_id) | (length == limits[s])
            for r, t in zip(row[ended], token[ended], strict=True):
                done[s].append((totals[r, t] / penalty, np.append(ids[r, n_prompt:], t)))
            row, token = row[~ended], token[~ended]
            # A log-probability only falls: divided by the largest penalty it bounds what a hypothesis can reach.
            if len(row) and _may_improve(done[s], totals[row[0], token[0]] / most[s], n_best):
                rows.append(row)
                tokens.append(token)
        if not rows:
            break
        rows, tokens = np.concatenate(rows), np.concatenate(tokens)
        log_p, sentence = totals[rows, tokens], sentence[rows]
        ids = np.concatenate([ids[rows], tokens[:, None]], axis=1)
        _reorder(next_logits, rows, len(totals))
    return _ranked(done, n_best, pad_id)


def _one_by_one(next_logits, start, end_id, max_len, pad_id, min_len, choose) -> np.ndarray:
    """Append one token to every open row until all have ended; `choose(logits (N, V), rows (N,))` says which."""
    ids, limits = _checked(start, max_len, min_len)
    out = np.full((len(ids), limits.max()), pad_id, dtype=np.int64)
    live = np.arange(len(ids))  # the rows that have not ended
    for length in range(1, limits.max() + 1):
        tokens = choose(_ask(next_logits, ids, end_id, may_end=length > min_len), live)  # (N,)
        out[live, length - 1] = tokens
        going = np.flatnonzero((tokens != end_id) & (length < limits[live]))
        if len(going) == 0:
            break
        ids = np.concatenate([ids, tokens[:, None]], axis=1)[going]
        _reorder(next_logits, going, len(live))
        live = live[going]
    return out[:, :length]


def _ask(next_logits, ids, end_id, may_end: bool) -> np.ndarray:
    logits = np.array(next_logits(ids), dtype=np.float64)
    if logits.ndim != 2 or len(logits) != len(ids):
        raise ValueError(f"next_logits must return logits (N, V) with N = {len(ids)} rows, got {logits.shape}")
    if not (logits < np.inf).all():
        raise ValueError("next_logits returned NaN or +inf; look at the model, not at the decoding")
    if end_id is not None and not 0 <= end_id < logits.shape[1]:
        raise ValueError(f"end_id must lie in 0 ... {logits.shape[1] - 1}, or be None to have no end; got {end_id}")
    if end_id is not None and not may_end:
        logits[:, end_id] = -np.inf
    if (logits.max(axis=1) == -np.inf).any():
        raise ValueError("next_logits allows no token at all in a row: every logit is -inf, or min_len forbids the end")
    return logits


def _reorder(next_logits, rows, n_before: int) -> None:
    if hasattr(next_logits, "reorder") and not np.array_equal(rows, np.arange(n_before)):
        next_logits.reorder(rows)


def _largest(values, k: int) -> np.ndarray:
    """Where the k largest finite values (n,) stand, the largest first; equal ones in order of their place."""
    k = min(k, len(values))
    threshold = np.partition(values, -k)[-k]
    candidates = np.flatnonzero((values >= threshold) & (values > -np.inf))
    return candidates[np.argsort(-values[candidates], kind="stable")][:k]


def _penalty(length, alpha: float):
    return ((5 + length) / 6) ** alpha


def _may_improve(done, bound, n_best) -> bool:
    return len(done) < n_best or bound > sorted((score for score, _ in done), reverse=True)[n_best - 1]


def _ranked(done, n_best, pad_id) -> Hypotheses:
    best = [sorted(found, key=lambda hypothesis: -hypothesis[0])[:n_best] for found in done]
    longest = max(len(ids) for found in best for _, ids in found)
    ids = np.full((len(done), n_best, longest), pad_id, dtype=np.int64)
    scores = np.full((len(done), n_best), -np.inf)
    for b, found in enumerate(best):
        for n, (score, tokens) in enumerate(found):
            ids[b, n, : len(tokens)], scores[b, n] = tokens, score
    return Hypotheses(ids, scores)


def _checked(start, max_len, min_len=0) -> tuple[np.ndarray, np.ndarray]:
    """The prompts as int64 (B, t), and the limit of each, integers (B,)."""
    start = np.asarray(start)
    if start.ndim != 2 or 0 in start.shape:
        raise ValueError(f"start must have shape (B, t), such as one start token a row (B, 1); got {start.shape}")
    if not np.issubdtype(start.dtype, np.integer):
        raise TypeError(f"start must be integers, got {start.dtype}")
    limits = np.asarray(max_len)
    if limits.shape not in ((), (len(start),)):
        raise ValueError(f"max_len must be one number, or one for each of the {len(start)} rows; got {limits.shape}")
    if limits.min() < 1:
        raise ValueError(f"max_len must be 1 or more, got {limits.min()}")
    if min_len < 0:
        raise ValueError(f"min_len must be 0 or more, got {min_len}")
    return start.astype(np.int64), np.broadcast_to(limits, len(start))


def _check_sampling(temperature, top_k, top_p) -> None:
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}; `greedy` is its limit at 0")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be 1 or more, or None for all tokens; got {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must lie in (0, 1], or be None; got {top_p}")
