"""Associative recall: pairs of a key and a value, then queries for the values of some keys. The answers are known.

The recipe of a sequence of T tokens:

1. n_pairs keys are drawn of n_keys, and as many values of n_values, none of them twice;
2. the sequence begins with the pairs, `key value key value ...`, and goes on with blanks;
3. n_queries of the blanks, drawn at random, become queries, each one of the keys, drawn at random;
4. the answer at a query is the value that stood behind its key; nothing is asked anywhere else.

It is the task of Arora et al. (2023, "Zoology", multi-query associative recall), where each key is asked for once, by a
power law soon after the pairs. Ba et al. (2016, section 4.1) ask for one key at the end.

A table solves it without learning anything (`looked_up` is always right), so it says what a model can do and not what
is worth a model. Whoever ignores the keys is right once in n_pairs: no pair is asked for more often than another.
"""

from typing import NamedTuple

import numpy as np

from course_lib.checks import check_count

BLANK = 0  # the id of a blank, and the label where nothing is asked


class Recall(NamedTuple):
    """N sequences with their answers: 0 is a blank, 1 ... n_keys are keys, n_keys + 1 ... n_keys + n_values values."""

    ids: np.ndarray  # (N, T) int64
    labels: np.ndarray  # (N, T) int64: at a query the value of its key, 0 elsewhere


def draw(
    n: int, length: int, n_pairs: int, n_queries: int, n_keys: int, n_values: int, rng: np.random.Generator
) -> Recall:
    """Draw N sequences.

    Parameters
    ----------
    n, length : N sequences of T tokens
    n_pairs, n_queries : pairs and queries of each sequence
    n_keys, n_values : how many keys and values there are; the vocabulary has 1 + n_keys + n_values ids
    rng : where the luck comes from

    Raises
    ------
    ValueError : a number below 1, more pairs than keys or than values, no room for the pairs and the queries.
    """
    numbers = {"n": n, "length": length, "n_pairs": n_pairs, "n_queries": n_queries, "n_keys": n_keys}
    for name, value in {**numbers, "n_values": n_values}.items():
        check_count(name, value)
    if n_pairs > min(n_keys, n_values):
        raise ValueError(f"{n_pairs} pairs need as many keys and values, got {n_keys} keys and {n_values} values")
    if length < 2 * n_pairs + n_queries:
        raise ValueError(f"{n_pairs} pairs and {n_queries} queries need {2 * n_pairs + n_queries} tokens, got {length}")
    keys = 1 + _some(n, n_pairs, n_keys, rng)  # (N, n_pairs)
    values = 1 + n_keys + _some(n, n_pairs, n_values, rng)
    ids, labels = np.full((2, n, length), BLANK)
    ids[:, 0 : 2 * n_pairs : 2], ids[:, 1 : 2 * n_pairs : 2] = keys, values
    places = 2 * n_pairs + _some(n, n_queries, length - 2 * n_pairs, rng)  # (N, n_queries)
    asked = rng.integers(n_pairs, size=(n, n_queries))
    np.put_along_axis(ids, places, np.take_along_axis(keys, asked, axis=1), axis=1)
    np.put_along_axis(labels, places, np.take_along_axis(values, asked, axis=1), axis=1)
    return Recall(ids, labels)


def looked_up(ids, n_keys: int, reach: int | None = None) -> np.ndarray:
    """What stood last behind each key: ids (N, T) -> (N, T), a value at every key that has had one, 0 elsewhere.

    It is always right, the strongest baseline there is. With a reach of r it sees only the r tokens before each one,
    as all the layers of windowed attention do together: no such model can be surely right where this one is not.
    """
    ids = np.asarray(ids)
    is_key, is_value = (ids > BLANK) & (ids <= n_keys), ids > n_keys
    found = np.full_like(ids, BLANK)
    for t in range(ids.shape[1]):
        first = 0 if reach is None else max(t - reach, 0)
        # from the past to the present, so that the last one stays
        for s in range(first, t - 1):
            same = is_key[:, t] & (ids[:, s] == ids[:, t]) & is_value[:, s + 1]
            found[same, t] = ids[same, s + 1]
    return found


def last_value(ids, n_keys: int) -> np.ndarray:
    """A guess that ignores the keys: ids (N, T) -> (N, T), at each token the last value so far, 0 before any."""
    ids = np.asarray(ids)
    place = np.maximum.accumulate(np.where(ids > n_keys, np.arange(ids.shape[1]), -1), axis=1)
    return np.where(place >= 0, np.take_along_axis(ids, place.clip(min=0), axis=1), BLANK)


def recalled(predictions, labels) -> np.ndarray:
    """Whether each query got its value, sequence by sequence: predictions and labels (N, T) -> boolean (n queries,)."""
    predictions, labels = np.asarray(predictions), np.asarray(labels)
    return (predictions == labels)[labels != BLANK]


def _some(n: int, size: int, total: int, rng: np.random.Generator) -> np.ndarray:
    """N times `size` different numbers of 0 ... total - 1, in random order."""
    return rng.random((n, total)).argsort(axis=1)[:, :size]
