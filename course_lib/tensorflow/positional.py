"""Positions added to the embeddings, since attention alone does not see order (Vaswani et al. 2017, section 3.5)."""

import keras
import tensorflow as tf

from course_lib.checks import check_features, check_length
from course_lib.positions import sinusoidal_table


class SinusoidalPositions(keras.layers.Layer):
    """x + sinusoids of the position; nothing is learned.

    Raises
    ------
    ValueError : an odd d_model.
    """

    def __init__(self, d_model: int, max_len: int = 512):
        super().__init__()
        self.d_model, self.max_len = d_model, max_len
        self.table = tf.constant(sinusoidal_table(max_len, d_model))

    def call(self, x):
        """(B, T, d_model) -> (B, T, d_model); ValueError when T is over max_len."""
        check_features("x", x.shape, self.d_model)
        check_length(x.shape[1], self.max_len)
        return x + tf.cast(self.table[: tf.shape(x)[1]], x.dtype)


class LearnedPositions(keras.layers.Layer):
    """x + one learned vector per position, as in BERT (Devlin et al. 2018, section 3).

    Fresh vectors are normal with the standard deviation `std`.
    """

    def __init__(self, d_model: int, max_len: int = 512, std: float = 0.02):
        super().__init__()
        self.d_model, self.max_len = d_model, max_len
        start = keras.initializers.RandomNormal(stddev=std)
        self.weight = self.add_weight(shape=(max_len, d_model), initializer=start, name="weight")

    def call(self, x):
        """(B, T, d_model) -> (B, T, d_model); ValueError when T is over max_len."""
        check_features("x", x.shape, self.d_model)
        check_length(x.shape[1], self.max_len)
        return x + tf.cast(self.weight[: tf.shape(x)[1]], x.dtype)
