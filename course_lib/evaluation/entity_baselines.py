"""What a model that finds named entities has to beat: the entities that training has seen, by heart."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from course_lib.evaluation.entities import entities


class KnownEntities:
    """Tags what was an entity in training, as its most frequent type, and nothing else; of several the longest.

    Source: the baseline of CoNLL-2003 (Tjong Kim Sang and De Meulder 2003, section 4), F1 0.596 on the test part. Of
    two types that are equally frequent the first by the alphabet counts, which gives the published figures.
    """

    def fit(self, sentences: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> KnownEntities:
        """Learn the entities of N sentences by heart.

        Parameters
        ----------
        sentences : N sequences of words
        tags : N sequences of as many IOB2 tags

        Raises
        ------
        ValueError : unequal numbers of sentences, or of words and tags in one; a tag that is not IOB2.
        """
        if len(sentences) != len(tags):
            raise ValueError(f"there are {len(sentences)} sentences but tags of {len(tags)}")
        kinds = defaultdict(Counter)
        for i, (words, row) in enumerate(zip(sentences, tags, strict=True)):
            if len(words) != len(row):
                raise ValueError(f"sentence {i} has {len(words)} words but {len(row)} tags")
            for entity in entities(row):
                kinds[tuple(words[entity.start : entity.end])][entity.kind] += 1
        self.known = {words: min(found, key=lambda kind: (-found[kind], kind)) for words, found in kinds.items()}
        self.longest = max(map(len, self.known), default=0)
        return self

    def predict(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """The tags of the words of N sentences, from left to right."""
        return [self._tags(list(words)) for words in sentences]

    def _tags(self, words: list[str]) -> list[str]:
        tags, i = ["O"] * len(words), 0
        while i < len(words):
            lengths = range(min(self.longest, len(words) - i), 0, -1)
            length = next((n for n in lengths if tuple(words[i : i + n]) in self.known), 0)
            if length:
                kind = self.known[tuple(words[i : i + length])]
                tags[i : i + length] = [f"B-{kind}", *[f"I-{kind}"] * (length - 1)]
            i += max(length, 1)
        return tags
