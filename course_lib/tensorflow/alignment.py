"""Alignment: how well a decoder's state fits each annotation, by three scores, and the mean that follows."""

import keras
import tensorflow as tf

from course_lib.checks import check_same_features, check_score
from course_lib.models.blocks import AttentionOutput
from course_lib.tensorflow.attention import softmax
from course_lib.tensorflow.layers import ExplicitMask, product


class Score(ExplicitMask, keras.layers.Layer):
    """How well a decoder's state fits an annotation: query (B, T, d_query), keys (B, S, d_key) -> (B, T, S).

    The part that no query changes is a method of its own, so that a decoder computes it once.

    Parameters
    ----------
    d_query, d_key : features of the decoder's states and of the annotations
    """

    def __init__(self, d_query: int, d_key: int):
        super().__init__()
        self.d_query, self.d_key = d_query, d_key

    def call(self, query, keys):
        """query (B, T, d_query) and keys (B, S, d_key) -> scores (B, T, S); ValueError for other shapes."""
        check_score(query.shape, keys.shape, self.d_query, self.d_key)
        return self.compare(query, self.prepare(keys))

    def prepare(self, keys):
        """What does not depend on the query: keys (B, S, d_key) -> (B, S, d_query)."""
        raise NotImplementedError

    def compare(self, query, prepared):
        """query (B, T, d_query) and prepared keys (B, S, d_query) -> scores (B, T, S)."""
        raise NotImplementedError


class DotScore(Score):
    """score(s, h) = s^T h (Luong et al. 2015, section 3.1, "dot"): no weights, and d_query = d_key.

    Parameters and call as for `Score`: (B, T, d_query) and (B, S, d_key) -> (B, T, S).

    Raises
    ------
    ValueError : d_query and d_key differ.
    """

    def __init__(self, d_query: int, d_key: int):
        super().__init__(d_query, d_key)
        check_same_features(d_query, d_key)

    def prepare(self, keys):
        return keys

    def compare(self, query, prepared):
        return tf.matmul(query, prepared, transpose_b=True)


class GeneralScore(Score):
    """score(s, h) = s^T W h (Luong et al. 2015, section 3.1, "general"), with W of shape (d_query, d_key).

    Parameters and call as for `Score`: (B, T, d_query) and (B, S, d_key) -> (B, T, S).
    """

    def __init__(self, d_query: int, d_key: int):
        super().__init__(d_query, d_key)
        start = keras.initializers.RandomUniform(-(d_key**-0.5), d_key**-0.5)
        self.weight = self.add_weight(shape=(d_query, d_key), initializer=start, name="weight")

    def prepare(self, keys):
        return product(keys, self.weight)

    def compare(self, query, prepared):
        return tf.matmul(query, prepared, transpose_b=True)


class AdditiveScore(Score):
    """score(s, h) = v^T tanh(W s + U h), a layer of d_query units (Bahdanau et al. 2015, appendix A.1.2).

    Parameters and call as for `Score`: (B, T, d_query) and (B, S, d_key) -> (B, T, S).
    """

    def __init__(self, d_query: int, d_key: int):
        super().__init__(d_query, d_key)
        by_query = keras.initializers.RandomUniform(-(d_query**-0.5), d_query**-0.5)
        by_key = keras.initializers.RandomUniform(-(d_key**-0.5), d_key**-0.5)
        self.weight_query = self.add_weight(shape=(d_query, d_query), initializer=by_query, name="weight_query")
        self.weight_key = self.add_weight(shape=(d_query, d_key), initializer=by_key, name="weight_key")
        self.vector = self.add_weight(shape=(d_query,), initializer=by_query, name="vector")

    def prepare(self, keys):
        return product(keys, self.weight_key)

    def compare(self, query, prepared):
        query = product(query, self.weight_query)
        units = tf.tanh(query[:, :, None] + prepared[:, None])  # (B, T, S, d_query)
        return product(units, self.vector[None])[..., 0]


SCORES = {"dot": DotScore, "general": GeneralScore, "additive": AdditiveScore}


def weighted_mean(scores, values, mask=None):
    """sum_s a_s values_s with a = softmax(scores): the context of Bahdanau et al. 2015, eqs. 5 and 6.

    Parameters
    ----------
    scores : shape (B, T, S)
    values : shape (B, S, d)
    mask : boolean, broadcastable to (B, T, S), True = may attend; a row without any gives zeros

    Returns
    -------
    AttentionOutput : output (B, T, d) and weights (B, T, S).
    """
    if mask is None:
        weights = softmax(scores)
    else:
        weights = softmax(tf.where(mask, scores, scores.dtype.min)) * tf.cast(mask, scores.dtype)
    return AttentionOutput(tf.matmul(weights, values), weights)
