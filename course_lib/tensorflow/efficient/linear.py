"""Linear attention: phi(q) phi(k)^T in the place of exp(q k^T), so that keys and values are summed up before a query.

Source: Katharopoulos et al. 2020, sections 3.2 (linearised), 3.3 (causal) and 3.4 (as a recurrent network).
"""

import tensorflow as tf

from course_lib.checks import check_attention, check_linear, check_linear_step
from course_lib.models.blocks import AttentionOutput
from course_lib.tensorflow.efficient.blockwise import at_least_float32, for_every_head
from course_lib.tensorflow.layers import lengths
from course_lib.tensorflow.serialization import serializable


def feature_map(x):
    """phi(x) = elu(x) + 1, which is positive (section 3.2.1): x + 1 where x > 0, else exp(x); (..., d) -> (..., d)."""
    return tf.where(x > 0, x + 1, tf.exp(tf.minimum(x, 0)))


def linear_attention(q, k, v, mask=None, bias=None, dropout=0.0, scale=None, causal=False):
    """phi(q) (phi(k)^T v) / phi(q) (phi(k)^T 1): a weighted mean of the values in time and memory linear in T and S.

    The numbers are not those of `attention`, its conventions are. Sums are made in float32 at least.

    Parameters
    ----------
    q : queries, shape (..., T, d_k)
    k : keys, shape (..., S, d_k); also of fewer heads, as for `attention`
    v : values, shape (..., S, d_v), of as many heads as k
    mask : boolean, broadcastable to (..., 1, S), True = may attend: a key is hidden from every query or from none
    bias, dropout, scale : stand here for the signature; there are no scores and no weights
    causal : hide the future; the queries are the last of the keys

    Returns
    -------
    AttentionOutput : output (..., T, d_v), zeros for a query with nothing to attend to; the weights are None.

    Raises
    ------
    ValueError : axes that do not fit, a mask that differs from query to query, a bias, a scale or a dropout, causal
        attention to fewer keys than queries.
    TypeError : a mask that is not boolean.
    """
    q, k, v = tf.convert_to_tensor(q), tf.convert_to_tensor(k), tf.convert_to_tensor(v)
    mask = None if mask is None else tf.experimental.numpy.atleast_2d(tf.convert_to_tensor(mask))
    check_attention(q.shape, k.shape, v.shape, mask, bias, dropout, scale, causal)
    check_linear(mask, bias, dropout, scale)
    queries, keys, values = _prepared(q, for_every_head(k, q), for_every_head(v, q))
    if mask is not None:
        keys = keys * tf.cast(tf.linalg.matrix_transpose(mask), keys.dtype)
    if not causal:
        context = _mean(queries @ (tf.linalg.matrix_transpose(keys) @ values))
    else:
        first = tf.shape(k)[-2] - tf.shape(q)[-2]  # the position of the first query
        past = tf.linalg.matrix_transpose(keys[..., :first, :]) @ values[..., :first, :]
        context = _mean(_along(queries, keys[..., first:, :], values[..., first:, :], past))
    return AttentionOutput(tf.cast(context, q.dtype), None)


serializable(linear_attention)


def linear_attention_step(q, k, v, state=None):
    """Causal linear attention as a recurrent network: t more tokens, at a cost that does not grow with those before.

    Parameters
    ----------
    q : queries of the new tokens, shape (..., t, d_k)
    k, v : their keys (..., t, d_k) and values (..., t, d_v), also of fewer heads
    state : what an earlier call returned, shape (..., d_k, d_v + 1); None at the beginning

    Returns
    -------
    context (..., t, d_v), and the state: the paper's s, of the shape (..., d_k, d_v), with its z as one more column.

    Raises
    ------
    ValueError : axes that do not fit, or a state of other keys and values.
    """
    q, k, v = tf.convert_to_tensor(q), tf.convert_to_tensor(k), tf.convert_to_tensor(v)
    check_attention(q.shape, k.shape, v.shape)
    check_linear_step(q.shape, k.shape, v.shape, None if state is None else state.shape)
    queries, keys, values = _prepared(q, k, v)
    new = tf.linalg.matrix_transpose(keys) @ values  # (..., d_k, d_v + 1)
    state = tf.zeros_like(new) if state is None else state
    context = _along(queries, *(for_every_head(x, q) for x in (keys, values, state)))
    return tf.cast(_mean(context), q.dtype), state + new


def _prepared(q, k, v):
    """phi(q), phi(k), and v with a feature of 1 more, whose mean is the sum of the weights; in float32 at least."""
    q, k, v = (at_least_float32(x) for x in (q, k, v))
    return feature_map(q), feature_map(k), tf.concat([v, tf.ones_like(v[..., :1])], axis=-1)


def _along(queries, keys, values, past):
    """The sums for each query over `past` and the keys up to its own: (..., T, d_v + 1).

    In chunks of d_k tokens: the d_k products of each token within its chunk need as much memory as the state of its
    chunk does for each of them. Chunks of 1 are the sums of section 3.3 as they stand there.
    """
    length, d_k = lengths(queries)[-2:]
    size = 1 if queries.shape[-2] == 1 else d_k

    def chunked(x):
        """(..., T, d) -> (..., n, size, d), with zeros after the end."""
        padded = tf.pad(x, [(0, 0)] * (len(x.shape) - 2) + [(0, -length % size), (0, 0)])
        return tf.reshape(padded, (*lengths(x)[:-2], -1, size, x.shape[-1]))

    queries, keys, values = chunked(queries), chunked(keys), chunked(values)
    within = tf.linalg.band_part(queries @ tf.linalg.matrix_transpose(keys), -1, 0) @ values
    states = tf.linalg.matrix_transpose(keys) @ values  # (..., n, d_k, d_v + 1), of each chunk
    before = tf.cumsum(tf.concat([past[..., None, :, :], states[..., :-1, :, :]], axis=-3), axis=-3)
    sums = queries @ before + within
    return tf.reshape(sums, (*lengths(sums)[:-3], -1, sums.shape[-1]))[..., :length, :]


def _mean(sums):
    """Sums of weighted values, and of the weights in the last feature -> weighted means, (..., T, d_v)."""
    total = sums[..., -1:]
    return sums[..., :-1] / tf.where(total > 0, total, 1)
