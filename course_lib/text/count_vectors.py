"""Vectors of tokens by counting alone: which token stands how often near which other. No network, no training.

Sources: Church and Hanks 1990 for mutual information, Levy, Goldberg and Dagan 2015 (sections 2 and 3) for the positive
one, factorised, as vectors of words, and for the exponent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from course_lib._extras import needed
from course_lib.checks import check_count
from course_lib.text.padding import lengths_of, positional

SMOOTHING = 0.75  # the exponent of the contexts' counts, which keeps rare tokens from having large numbers


def count_vectors(
    documents: Sequence[np.ndarray],
    vocab_size: int,
    n_features: int,
    reach: int = 8,
    ignored: Sequence[int] = (),
    seed: int = 0,
) -> np.ndarray:
    """Factors of the positive pointwise mutual information of tokens that stand near each other in a document.

    Of two tokens at most `reach` apart a count of 1, over half of `reach` apart of a half. From the counts n(w, c),
    max(0, log(n(w, c) sum_c n(c)^0.75 / (n(w) n(c)^0.75))), and of its singular value decomposition U S V' the
    `n_features` largest: U S.

    Parameters
    ----------
    documents : N integer arrays (length,), without special tokens, as `document_tokens` returns them
    vocab_size : V
    n_features : of a vector, below V
    reach : how far two tokens may be apart
    ignored : ids that are not counted, such as that of [UNK]
    seed : of the approximation by which the decomposition is found (Halko, Martinsson and Tropp 2011)

    Returns
    -------
    float32 (V, n_features); zeros for a token that was not counted, or near nothing that it should not be near.

    Raises
    ------
    ValueError : an id outside the vocabulary, a number that is none, or no two tokens near each other.
    TypeError : documents of something other than integers, such as texts.
    """
    with needed("lectures"):
        from scipy.sparse import coo_array, csr_array
        from sklearn.utils.extmath import randomized_svd
    for name, value, least in (("vocab_size", vocab_size, 2), ("reach", reach, 1), ("seed", seed, 0)):
        check_count(name, value, least)
    check_count("n_features", n_features)
    if n_features >= vocab_size:
        raise ValueError(f"n_features must lie below vocab_size={vocab_size}, got {n_features}")
    documents = positional("documents", documents)
    lengths = lengths_of("documents", documents)
    stream = np.concatenate([np.empty(0, dtype=np.int64), *documents])
    if len(stream) and not 0 <= stream.min() <= stream.max() < vocab_size:
        raise ValueError(f"ids must lie in 0 ... {vocab_size - 1}, got {stream.min()} to {stream.max()}")
    owner = np.repeat(np.arange(len(documents)), lengths)
    counted = ~np.isin(stream, np.asarray(ignored, dtype=np.int64))
    counts = csr_array((vocab_size, vocab_size))
    for distance in range(1, reach + 1):
        one, other = stream[:-distance], stream[distance:]
        near = (owner[:-distance] == owner[distance:]) & counted[:-distance] & counted[distance:]
        weight = np.full(near.sum(), 1.0 if 2 * distance <= reach else 0.5)
        found = coo_array((weight, (one[near], other[near])), shape=counts.shape).tocsr()
        counts = counts + found + found.T
    counts = counts.tocoo()
    if counts.nnz == 0:
        raise ValueError("there must be a document with two tokens near each other that are counted")
    total = np.asarray(counts.sum(axis=1)).ravel()
    context = total**SMOOTHING
    information = np.log(counts.data * context.sum() / (total[counts.row] * context[counts.col]))
    above = information > 0
    information = csr_array((information[above], (counts.row[above], counts.col[above])), shape=counts.shape)
    u, s, _ = randomized_svd(information, n_features, n_iter=4, random_state=seed)
    return (u * s).astype(np.float32)
