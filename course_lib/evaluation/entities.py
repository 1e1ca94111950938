"""How well named entities are found: precision, recall and F1 of whole entities, as CoNLL-2003 counts them.

Tags are IOB2: B-PER begins a person, I-PER continues one, O belongs to none. An entity counts as found when its type,
its first and its last word are all right (Tjong Kim Sang and De Meulder 2003, section 2.3). A model may write tags that
fit no entity: an I-PER after O, or after another type, begins a new entity, as in CoNLL's own script and in seqeval.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from course_lib.evaluation.estimate import Estimate, bootstrap


class Entity(NamedTuple):
    """Words start to end - 1 of a sentence, and their type."""

    kind: str
    start: int
    end: int


class Score(NamedTuple):
    """Precision, recall and F1, fractions, 0 where there is nothing to divide by; `n`, true entities."""

    precision: float
    recall: float
    f1: float
    n: int

    def __str__(self) -> str:
        return f"precision {self.precision:.3f}, recall {self.recall:.3f}, F1 {self.f1:.3f} ({self.n:,} entities)"


class EntityScores(NamedTuple):
    """All entities together (`micro`), and those of each type, by its name."""

    micro: Score
    types: dict[str, Score]


def entities(tags: Sequence[str]) -> list[Entity]:
    """The entities of one sentence, in their order.

    Raises
    ------
    ValueError : a tag that is neither "O" nor "B-" or "I-" and a type.
    TypeError : one str instead of a sequence of tags, or a tag that is not a str.
    """
    if isinstance(tags, str):
        raise TypeError(f"tags must be a sequence, one for each word, not the str {tags!r:.40}")
    found: list[Entity] = []
    kind, start = None, 0
    for i, tag in enumerate([*tags, "O"]):
        if not isinstance(tag, str):
            raise TypeError(f"tag {i} is a {type(tag).__name__}, not a str; take its name first")
        prefix, _, now = tag.partition("-")
        if tag != "O" and (prefix not in ("B", "I") or not now):
            raise ValueError(f"tag {i} is {tag!r}; IOB2 knows O, and B- and I- with a type behind it, such as B-PER")
        if kind is not None and (prefix != "I" or now != kind):
            found.append(Entity(kind, start, i))
            kind = None
        if tag != "O" and kind is None:
            kind, start = now, i
    return found


def entity_scores(predictions: Sequence[Sequence[str]], truth: Sequence[Sequence[str]]) -> EntityScores:
    """Precision, recall and F1 of the entities in N sentences.

    Parameters
    ----------
    predictions, truth : N sequences of IOB2 tags, one for each word

    Returns
    -------
    `EntityScores`; types that stand on either side, in alphabetical order.

    Raises
    ------
    ValueError : no sentence, unequal numbers of sentences or of tags in one, or a tag that is not IOB2.
    """
    right, guessed, true = Counter(), Counter(), Counter()
    for ours, theirs in _sentences(predictions, truth):
        right.update(entity.kind for entity in ours & theirs)
        guessed.update(entity.kind for entity in ours)
        true.update(entity.kind for entity in theirs)
    types = {kind: _score(right[kind], guessed[kind], true[kind]) for kind in sorted(guessed | true)}
    return EntityScores(_score(right.total(), guessed.total(), true.total()), types)


def entity_f1(
    predictions: Sequence[Sequence[str]],
    truth: Sequence[Sequence[str]],
    confidence: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Estimate:
    """The micro F1 with its bootstrap interval over the N sentences, whose entities depend on one another.

    Draws of sentences without any entity are left out of the interval; without one in all N, all is 0.

    Parameters
    ----------
    predictions, truth : as for `entity_scores`
    confidence, n_resamples, seed : as for `bootstrap` of `course_lib.evaluation.estimate`

    Raises
    ------
    ValueError : as for `entity_scores` and `bootstrap`.
    """
    counts = [(len(a & b), len(a) + len(b)) for a, b in _sentences(predictions, truth)]
    empty = np.nan if any(n for _, n in counts) else 0.0

    def f1(sums):
        return np.where(sums[..., 1] > 0, 2 * sums[..., 0] / np.maximum(sums[..., 1], 1), empty)

    return bootstrap(counts, f1, confidence, n_resamples, seed)


def _sentences(predictions, truth):
    """The entities of each sentence, predicted and true ones, as sets."""
    if len(predictions) != len(truth) or len(truth) == 0:
        raise ValueError(
            f"each sentence, at least one, needs predicted and true tags; there are {len(predictions)} and {len(truth)}"
        )
    found = []
    for i, (ours, theirs) in enumerate(zip(predictions, truth, strict=True)):
        if len(ours) != len(theirs):
            raise ValueError(f"sentence {i} has {len(theirs)} words but {len(ours)} predicted tags")
        found.append((set(entities(ours)), set(entities(theirs))))
    return found


def _score(right: int, guessed: int, true: int) -> Score:
    return Score(right / max(guessed, 1), right / max(true, 1), 2 * right / max(guessed + true, 1), true)
