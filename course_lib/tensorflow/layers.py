"""Keras layers built at once: their weights exist before the first call, so a checkpoint can fill them."""

from functools import partial

import keras
import tensorflow as tf
from keras.src.random.seed_generator import global_seed_generator  # Keras makes it known nowhere else

from course_lib.checks import check_ids, check_tokens
from course_lib.tensorflow.masks import check_one_length
from course_lib.tensorflow.serialization import Portable


class ExplicitMask(Portable):
    """Mix-in of our layers and models: their `mask` is attention's, given as an argument and used at once.

    Keras would also hang it on the outputs, as the padding mask (B, T) of later layers and of the loss; ours
    has another shape and another meaning. Give it by its name: Keras does not take a positional None.

    Keras's own mask, (B, T), hangs on what `Embedding(mask_zero=True)` and `Masking` return. Keras would hand it over
    in the place of ours; here it is widened, combined with the mask that is given, and passed on to the next layer.
    """

    pads = {}  # a mask of the call: the inputs whose padding it hides

    def __call__(self, *args, **kwargs):
        """As Keras's own; padding that Keras knows of is hidden."""
        if self.pads:
            given = {**dict(zip(self._call_signature.parameters, args, strict=False)), **kwargs}
            found = [(name, keras_mask(given.get(x))) for name, inputs in self.pads.items() for x in inputs]
            found = {(name, id(mask)): mask for name, mask in found if mask is not None}  # keys and values share one
            for (name, _), mask in found.items():
                given[name] = _both(self.widened(mask), given.get(name))
            if found:
                args, kwargs = (), given
        return super().__call__(*args, **kwargs)

    def compute_mask(self, inputs, previous_mask):
        """Pass no mask on but Keras's own of the first input."""
        return keras_mask(inputs)

    @staticmethod
    def widened(padding):
        """Keras's mask (B, S) as attention's, (B, 1, 1, S)."""
        return padding[:, None, None, :]


def keras_mask(x):
    """The mask (B, T) that Keras hung on a tensor, or None."""
    return getattr(x, "_keras_mask", None)


def _both(padding, mask):
    if mask is None:
        return padding
    mask = mask if isinstance(mask, keras.KerasTensor) else tf.convert_to_tensor(mask)
    return padding & mask if mask.dtype == "bool" else mask  # one that is not boolean is refused where it is used


class Dense(keras.layers.Dense):
    """Keras's, which multiplies two matrices, also where lengths are unknown: its own counts all axes at every call."""

    def call(self, inputs, training=None):
        """(..., d_in) -> (..., d_out)."""
        if isinstance(inputs, keras.KerasTensor) or len(inputs.shape) == 2:
            return super().call(inputs, training=training)
        rows = super().call(tf.reshape(inputs, (-1, inputs.shape[-1])), training=training)
        return tf.reshape(rows, (*lengths(inputs)[:-1], self.units))

    def quantize(self, mode=None, type_check=True, **options):
        """As Keras's, which refuses subclasses, because they might compute something else; this one does not."""
        super().quantize(mode, type_check=False, **options)


def lengths(x) -> list:
    """The shape of x; a tensor stands for a length that is not known while a function is traced."""
    known = x.shape.as_list()
    return known if None not in known else [tf.shape(x)[i] if n is None else n for i, n in enumerate(known)]


def dense(d_in: int, d_out: int, std: float | None = None, bias: bool = True) -> keras.layers.Dense:
    """A linear layer d_in -> d_out; normal with `std` at the start, Glorot uniform when None."""
    start = "glorot_uniform" if std is None else keras.initializers.RandomNormal(stddev=std)
    layer = Dense(d_out, kernel_initializer=start, use_bias=bias)
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


def rms_norm(d_model: int, eps: float) -> keras.layers.RMSNormalization:
    """Mean square 1 over the last axis, then a learned scale (Zhang and Sennrich 2019, eq. 4)."""
    layer = keras.layers.RMSNormalization(epsilon=eps)
    layer.build((None, d_model))
    return layer


NORMS = {"layer": layer_norm, "rms": rms_norm}


def gelu(x):
    """x Phi(x) with the exact normal distribution (Hendrycks and Gimpel 2016, section 2)."""
    return tf.nn.gelu(x, approximate=False)


ACTIVATIONS = {
    "gelu": gelu,
    "relu": tf.nn.relu,
    "gelu_new": partial(tf.nn.gelu, approximate=True),
    "silu": tf.nn.silu,
}


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
    check_one_length(name, ids)
    ids = tf.convert_to_tensor(ids)
    low = high = 0
    if tf.executing_eagerly() and ids.dtype.is_integer:
        array = ids.numpy()
        if array.size:
            low, high = int(array.min()), int(array.max())  # to start an operation of TensorFlow's takes longer
    check_ids(name, ids.shape, ids.dtype.is_integer, low, high, size, axes, note)
    return ids


def chosen(hidden, at=None):
    """The vectors of some tokens: those where `at` is True, in the order of the rows.

    Parameters
    ----------
    hidden : shape (B, T, d_model)
    at : boolean, shape (B, T); None: all, as they are

    Returns
    -------
    shape (N, d_model), or `hidden`.

    Raises
    ------
    TypeError : `at` is not boolean.
    ValueError : `at` has another shape.
    """
    if at is None:
        return hidden
    at = tf.convert_to_tensor(at)
    check_tokens("at", at.shape, at.dtype.name, hidden.shape[:2])
    return tf.boolean_mask(hidden, at)


def mean_pool(hidden, real=None):
    """One vector a sequence: the mean of its real tokens' vectors (Reimers and Gurevych 2019, section 3).

    Parameters
    ----------
    hidden : shape (B, T, d_model)
    real : boolean, shape (B, T), True at real tokens; None: all are

    Returns
    -------
    shape (B, d_model), in the dtype of `hidden`; zeros for a sequence without a real token.

    Raises
    ------
    TypeError : `real` is not boolean.
    ValueError : `real` has another shape.
    """
    wide = at_least_float32(hidden)
    if real is None:
        return tf.cast(tf.reduce_mean(wide, axis=1), hidden.dtype)
    real = tf.convert_to_tensor(real)
    check_tokens("real", real.shape, real.dtype.name, hidden.shape[:2])
    total = tf.reduce_sum(tf.where(real[..., None], wide, 0.0), axis=1)  # (B, d_model)
    count = tf.reduce_sum(tf.cast(real, wide.dtype), axis=1, keepdims=True)
    return tf.cast(total / tf.maximum(count, 1.0), hidden.dtype)


def table_of(layer):
    """All vectors of an embedding, (n, d_model); those of one that was quantized as its call gives them."""
    return layer.embeddings if layer.quantization_mode is None else layer(tf.range(layer.input_dim))


def at_least_float32(x):
    """Half precision -> float32, in which sums over many tokens keep their digits; float32 and float64 as they are."""
    return tf.cast(x, tf.float32) if x.dtype.size < 4 else x


def drop(weights, dropout):
    """Zeros with probability `dropout`, the rest divided by 1 - dropout: what PyTorch calls `F.dropout`."""
    # keras.random, whose generator is a variable that a checkpoint can keep; tf.nn.dropout's is out of reach
    if dropout == 0.0:
        return weights
    make_generator()
    return keras.random.dropout(weights, dropout)


def random_seed():
    """Two whole numbers, as functions take them that draw the same again from the same seed."""
    make_generator()
    return keras.random.randint((2,), 0, 2**30, dtype="int32")


def make_generator() -> None:
    """Let Keras make the generator that its functions draw from, where it has none yet."""
    # One generator of Keras's serves all functions, and each thread has its own: no strategy's replica may make one
    with tf.init_scope():  # else a `fit` that fails while it is traced leaves all models a generator without a seed
        global_seed_generator()
