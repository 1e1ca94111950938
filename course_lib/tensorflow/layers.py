"""Keras layers built at once: their weights exist before the first call, so a checkpoint can fill them."""

import keras
import tensorflow as tf

from course_lib.checks import check_ids
from course_lib.tensorflow.serialization import Portable


class ExplicitMask(Portable):
    """Mix-in of our layers and models: their `mask` is attention's, given as an argument and used at once.

    Keras would also hang it on the outputs, as the padding mask (B, T) of later layers and of the loss; ours
    has another shape and another meaning. Give it by its name: Keras does not take a positional None.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.supports_masking = True  # else Keras warns that the mask ends here, which is the point

    def compute_mask(self, inputs, previous_mask):
        """Pass no mask on."""
        return None


def dense(d_in: int, d_out: int, std: float | None = None) -> keras.layers.Dense:
    """A linear layer d_in -> d_out; normal with `std` at the start, Glorot uniform when None."""
    start = "glorot_uniform" if std is None else keras.initializers.RandomNormal(stddev=std)
    layer = keras.layers.Dense(d_out, kernel_initializer=start)
    layer.build((None, d_in))
    return layer


def embedding(n: int, d_model: int, std: float) -> keras.layers.Embedding:
    """A table of n vectors of d_model features, normal with `std` at the start."""
    layer = keras.layers.Embedding(n, d_model, embeddings_initializer=keras.initializers.RandomNormal(stddev=std))
    layer.build()
    return layer


def layer_norm(d_model: int, eps: float) -> keras.layers.LayerNormalization:
    """Layer normalisation over the last axis; Keras's own default epsilon is 1e-3, so it is always said."""
    layer = keras.layers.LayerNormalization(epsilon=eps)
    layer.build((None, d_model))
    return layer


def product(x, weight):
    """x W^T as one product of two matrices, in the dtype of x: (..., d_in) and (d_out, d_in) -> (..., d_out)."""
    weight = tf.cast(weight, x.dtype)  # Keras casts a weight inside of `call` only
    if len(x.shape) == 2:
        return tf.matmul(x, weight, transpose_b=True)
    rows = tf.matmul(tf.reshape(x, (-1, x.shape[-1])), weight, transpose_b=True)
    shape = tf.concat([tf.shape(x)[:-1], tf.shape(rows)[-1:]], 0)
    return tf.ensure_shape(tf.reshape(rows, shape), (*x.shape[:-1], weight.shape[0]))


def checked_ids(name: str, ids, size: int, axes: str = "(B, T)", note: str = ""):
    """Ids as a tensor, checked.

    Parameters
    ----------
    name : of the argument, for the messages
    ids : a tensor, a NumPy array or a list
    size : how many ids there are
    axes : the axes that they must have
    note : the end of the message about ids out of range

    Raises
    ------
    TypeError : ids that are not integers.
    ValueError : other axes, or ids outside 0 ... size - 1, when run eagerly; a compiled function cannot look.
    """
    ids = tf.convert_to_tensor(ids)
    low = high = 0
    if tf.executing_eagerly() and ids.dtype.is_integer and (array := ids.numpy()).size:
        low, high = int(array.min()), int(array.max())  # to start an operation of TensorFlow's takes longer
    check_ids(name, ids.shape, ids.dtype.is_integer, low, high, size, axes, note)
    return ids


def at_least_float32(x):
    """Half precision -> float32, in which sums over many tokens keep their digits; float32 and float64 as they are."""
    return tf.cast(x, tf.float32) if x.dtype.size < 4 else x
