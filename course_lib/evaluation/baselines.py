"""What a new classifier has to beat: the largest class, and counts of words with logistic regression."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from course_lib._extras import needed

with needed("lectures"):
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.dummy import DummyClassifier
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import Pipeline, make_pipeline
    from sklearn.preprocessing import StandardScaler

STRENGTHS = (0.1, 1.0, 10.0, 100.0)  # the inverse regularisations C that cross-validation chooses among


def majority() -> DummyClassifier:
    """Always the most frequent class of the training examples; `fit(texts, labels)`, `predict(texts)`."""
    return DummyClassifier(strategy="most_frequent")


def tfidf() -> Pipeline:
    """Logistic regression on TF-IDF weights of words and pairs of words; `fit(texts, labels)`, `predict(texts)`.

    Five-fold cross-validation on the training examples chooses the regularisation, so the baseline gets the
    care that the model gets. Source of TF-IDF: Sparck Jones 1972; of word pairs as a strong baseline for
    sentiment: Wang and Manning 2012.
    """
    # (?u)\b\w+\b keeps words of a single letter, which the library's default drops
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")
    return make_pipeline(words, _tuned(STRENGTHS))


def frozen_features() -> Pipeline:
    """Logistic regression on the vectors of a frozen encoder; `fit(vectors, labels)`, `predict(vectors)`.

    The features are brought to mean 0 and variance 1; cross-validation chooses the regularisation.
    """
    return make_pipeline(StandardScaler(), _tuned([c / 1000 for c in STRENGTHS]))


def word_overlap() -> Pipeline:
    """Logistic regression on the words that two texts share; `fit(pairs, labels)`, `predict(pairs)`.

    A pair is a tuple of two texts, and its label says whether the second follows the first, for one: the baseline of
    next-sentence prediction. It sees `SharedWords`; cross-validation chooses the regularisation.
    """
    return make_pipeline(SharedWords(), StandardScaler(), _tuned(STRENGTHS))


class SharedWords(TransformerMixin, BaseEstimator):
    """N pairs of texts X, tuples (first, second) of str, as four numbers each: `transform(X)`, float (N, 4).

    The number of content words that both have (words in no list of English stop words, and numbers), that number as a
    share of all content words of the two, the cosine of their TF-IDF vectors, and 1 where that is not 0. How frequent a
    word is, the training texts say.
    """

    def fit(self, X: Sequence[tuple[str, str]], y=None) -> SharedWords:  # scikit-learn has plans for other names
        """Count in how many of the texts each word stands."""
        self.vectors_ = TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")
        self.vectors_.fit([text for pair in X for text in pair])
        return self

    def transform(self, X: Sequence[tuple[str, str]]) -> np.ndarray:
        """The four numbers of each pair."""
        words = [(_content(first), _content(second)) for first, second in X]
        shared = np.array([len(first & second) for first, second in words])
        either = np.array([len(first | second) for first, second in words])
        sides = (self.vectors_.transform([pair[side] for pair in X]) for side in (0, 1))
        cosine = np.asarray(next(sides).multiply(next(sides)).sum(axis=1)).ravel()  # the vectors have length 1
        return np.stack([shared, shared / np.maximum(either, 1), cosine, cosine > 0], axis=1)


def _content(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold())) - ENGLISH_STOP_WORDS


def _tuned(strengths) -> GridSearchCV:
    return GridSearchCV(LogisticRegression(solver="liblinear"), {"C": list(strengths)}, cv=5)
