"""What every split into training and held-out sets needs: when two texts are one, and who belongs together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from course_lib.strings import as_texts

if TYPE_CHECKING:
    from course_lib.data.sentence_pairs import Pairs


def same_text(text: str) -> str:
    """A key that texts share when they differ only in case, punctuation or white space."""
    return " ".join(re.findall(r"\w+", text.casefold())) or text.strip()


LARGEST_FAMILY = 10
"""Families of more pairs than this are always trained on: holding one out would cost them all."""


def families(pairs: Pairs) -> np.ndarray:
    """The family of each pair, int64 (N,): equal for pairs that a chain of common sentences links.

    Sources are compared with sources and targets with targets, by `same_text`.

    Raises
    ------
    TypeError : a source or a target that is not a str, or columns that can be read only once.
    ValueError : not as many targets or attributions as sources.
    """
    from scipy.sparse import coo_array  # only now: scores and lengths, which others import, need no graph
    from scipy.sparse.csgraph import connected_components

    sides = [_column(texts, name) for name, texts in (("sources", pairs.sources), ("targets", pairs.targets))]
    if len(sides[0]) != len(sides[1]):
        raise ValueError(f"there are {len(sides[0])} sources but {len(sides[1])} targets; each source needs one")
    if pairs.attributions is not None and len(pairs.attributions) != len(sides[0]):
        raise ValueError(f"there are {len(sides[0])} sources but {len(pairs.attributions)} attributions")
    # One graph, whose nodes are the sentences of both languages and whose edges are the pairs.
    node: dict[tuple[int, str], int] = {}
    source, target = (
        np.array([node.setdefault((side, same_text(text)), len(node)) for text in texts], dtype=np.int64)
        for side, texts in enumerate(sides)
    )
    graph = coo_array((np.ones(len(source), dtype=bool), (source, target)), shape=(len(node), len(node)))
    _, component = connected_components(graph, directed=False)
    return component[source].astype(np.int64)


def _column(texts, name: str) -> list[str]:
    if isinstance(texts, str):
        raise TypeError(f"{name} must be a sequence of texts, not one str")
    if isinstance(texts, Iterator):
        raise TypeError(f"{name} must be a list or an array, which can be read twice, not a {type(texts).__name__}")
    return as_texts(texts, name)


def draw(order, family, free, size: int, lengths=None, band=None) -> np.ndarray:
    """The first `size` pairs of the order that come from free families, each of another; those are free no more."""
    candidates = order[free[family[order]]]
    if band is not None:
        candidates = candidates[(lengths[candidates] >= band[0]) & (lengths[candidates] <= band[1])]
    _, first = np.unique(family[candidates], return_index=True)
    if len(first) < size:
        which, advice = "", "ask for fewer"
        if band is not None:
            which = f" of {band[0]} to {band[1]} words"
            advice += ", or give other lengths of the balanced test set by `bands`, such as bands=((1, 8),)"
        raise ValueError(
            f"{size} held-out pairs{which} are wanted, but there are families for {len(first)} only; {advice}"
        )
    rows = candidates[np.sort(first)[:size]]
    free[family[rows]] = False
    return rows
