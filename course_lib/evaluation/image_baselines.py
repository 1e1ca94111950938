"""What a model of images has to beat: logistic regression on its pixels, or on how often each colour comes."""

from __future__ import annotations

import numpy as np

from course_lib._extras import needed
from course_lib.checks import check_count

with needed("lectures"):
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import Pipeline, make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # the inverse regularisations C that cross-validation chooses among


def pixel_regression() -> Pipeline:
    """Logistic regression on the pixels, a weight for each of every class; `fit(images, labels)`, `predict(images)`.

    Images (N, C, height, width). Three-fold cross-validation on those of the training chooses the regularisation.
    """
    return make_pipeline(FunctionTransformer(flat), StandardScaler(), _tuned())


def colour_regression(n_bins: int = 6) -> Pipeline:
    """Logistic regression on a histogram of colours, which knows nothing of places; use and tuning as above.

    Parameters
    ----------
    n_bins : as for `colour_histogram`
    """
    histogram = FunctionTransformer(colour_histogram, kw_args={"n_bins": n_bins})
    return make_pipeline(histogram, StandardScaler(), _tuned())


def flat(images) -> np.ndarray:
    """Images (N, C, height, width) -> their numbers in a row, (N, C height width)."""
    return np.asarray(images).reshape(len(images), -1)


def colour_histogram(images, n_bins: int = 6) -> np.ndarray:
    """The share of an image's pixels in each bin of its colours: (N, C, height, width) -> (N, n_bins^C).

    Parameters
    ----------
    images : numbers in 0 ... 1
    n_bins : of each channel, of equal widths

    Raises
    ------
    ValueError : other axes, numbers outside 0 ... 1, or no bin.
    """
    images = np.asarray(images)
    check_count("n_bins", n_bins)
    if images.ndim != 4 or images.min() < 0 or images.max() > 1:
        raise ValueError(f"images must have shape (N, C, height, width) and lie in 0 ... 1, got {images.shape}")
    n, c = images.shape[:2]
    places = np.minimum((images * n_bins).astype(np.int64), n_bins - 1)  # 1 itself belongs to the last bin
    codes = np.tensordot(n_bins ** np.arange(c), places, axes=(0, 1)).reshape(n, -1)  # (N, pixels)
    return np.stack([np.bincount(row, minlength=n_bins**c) for row in codes]) / codes.shape[1]


def _tuned() -> GridSearchCV:
    return GridSearchCV(LogisticRegression(max_iter=300), {"C": list(STRENGTHS)}, cv=3)
