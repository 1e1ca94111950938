"""What a new classifier has to beat: the largest class, and counts of words with logistic regression."""

from course_lib._extras import needed

with needed("lectures"):
    from sklearn.dummy import DummyClassifier
    from sklearn.feature_extraction.text import TfidfVectorizer
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


def _tuned(strengths) -> GridSearchCV:
    return GridSearchCV(LogisticRegression(solver="liblinear"), {"C": list(strengths)}, cv=5)
