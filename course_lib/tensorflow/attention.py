"""Scaled dot-product attention and multi-head attention (Vaswani et al. 2017, section 3.2)."""

import math

import keras
import tensorflow as tf

from course_lib.checks import check_attention, check_dropout, check_features, check_heads
from course_lib.outputs import AttentionOutput
from course_lib.tensorflow.layers import ExplicitMask, dense
from course_lib.tensorflow.serialization import serializable


def softmax(scores):
    """exp(scores) / sum exp(scores) over the last axis: (..., S) -> (..., S); TensorFlow subtracts the maximum."""
    return tf.nn.softmax(scores, axis=-1)


def attention(q, k, v, mask=None, dropout=0.0):
    """softmax(q k^T / sqrt(d_k)) v: each query's weighted mean of the values (eq. 1).

    Parameters
    ----------
    q : queries, shape (..., T, d_k)
    k : keys, shape (..., S, d_k)
    v : values, shape (..., S, d_v)
    mask : boolean, broadcastable to (..., T, S), True = may attend; None lets everyone attend to everyone
    dropout : probability with which a weight is dropped now; the returned weights are those before it

    Returns
    -------
    AttentionOutput : output (..., T, d_v) and weights (..., T, S). The weights of a query with nothing to
    attend to are zeros, and so is its output.

    Raises
    ------
    ValueError : axes that do not fit, a mask that does not broadcast, a dropout outside [0, 1).
    TypeError : a mask that is not boolean.
    """
    q, k, v, mask = _checked(q, k, v, mask, dropout)
    scores = tf.matmul(q, k, transpose_b=True) / math.sqrt(q.shape[-1])  # (..., T, S)
    if mask is None:
        weights = softmax(scores)
    else:
        weights = softmax(tf.where(mask, scores, scores.dtype.min)) * tf.cast(mask, scores.dtype)
    return AttentionOutput(tf.matmul(_drop(weights, dropout), v), weights)


def fused_attention(q, k, v, mask=None, dropout=0.0):
    """The same numbers as `attention` by fewer passes over the (T, S) scores, without returning the weights.

    Parameters, errors and output as for `attention`; the weights are None.

    The passes saved: q is scaled and not the scores, the mask enters as one added bias, an empty row is zeroed in the
    context, and the gradient of softmax needs the sum over s of w_ts dL/dw_ts. That sum equals the product of the
    context's row with its own gradient, d_v terms for S (Dao et al. 2022, appendix B.2).
    """
    q, k, v, mask = _checked(q, k, v, mask, dropout)
    scale = 1.0 / math.sqrt(q.shape[-1])

    @tf.custom_gradient
    def attend(q, k, v):
        scores = tf.matmul(q * scale, k, transpose_b=True)  # (..., T, S)
        if mask is not None:
            # half of the most negative number: a score may be added to it without an overflow
            scores += tf.where(mask, tf.zeros((), scores.dtype), scores.dtype.min / 2)
        weights = softmax(scores)
        keep = 1.0 if dropout == 0.0 else _drop(tf.ones_like(weights), dropout)  # 0, or 1 / (1 - dropout)
        context = tf.matmul(weights * keep, v)

        def gradient(d_context):
            row_sums = tf.reduce_sum(d_context * context, axis=-1, keepdims=True)  # (..., T, 1)
            d_weights = tf.matmul(d_context, v, transpose_b=True) * keep
            d_scores = weights * (d_weights - row_sums)
            d_q = scale * tf.matmul(d_scores, k)
            d_k = _transposed_product(d_scores, q, scale)
            d_v = _transposed_product(weights * keep, scale * d_context, 1.0 / scale)
            return d_q, d_k, d_v

        return context, gradient

    context = attend(q, k, v)
    if mask is not None:
        context *= tf.cast(tf.reduce_any(tf.experimental.numpy.atleast_1d(mask), -1, keepdims=True), context.dtype)
    return AttentionOutput(context, None)


def _checked(q, k, v, mask, dropout):
    check_dropout(dropout)
    q, k, v = tf.convert_to_tensor(q), tf.convert_to_tensor(k), tf.convert_to_tensor(v)
    if mask is None:
        check_attention(q.shape, k.shape, v.shape)
        return q, k, v, None
    mask = tf.convert_to_tensor(mask)
    check_attention(q.shape, k.shape, v.shape, mask.shape, mask.dtype.name)
    return q, k, v, mask


def _transposed_product(large, small, factor):
    """factor large^T small, for large (..., T, S) and small (..., T, d), as (factor small^T large)^T.

    On a CPU, XLA multiplies by a large transposed matrix four times slower than by a small one. Left alone, it would
    make large^T small of (small^T large)^T again; the factor between product and transposition keeps them apart.
    """
    return tf.linalg.matrix_transpose(factor * tf.matmul(small, large, transpose_a=True))


def _drop(weights, dropout):
    # keras.random, whose generator is a variable that a checkpoint can keep; tf.nn.dropout's is out of reach.
    # One generator of Keras's serves all functions, and each thread has its own: no strategy's replica may make one
    return weights if dropout == 0.0 else keras.random.dropout(weights, dropout)


for _function in (attention, fused_attention):  # here, so that the formula above stands as it is read
    serializable(_function)


class MultiHeadAttention(ExplicitMask, keras.layers.Layer):
    """n_heads attentions side by side, each in d_model / n_heads features of its own (section 3.2.2).

    Parameters
    ----------
    d_model : features of the inputs and of the output
    n_heads : number of heads; divides d_model
    dropout : probability for the attention weights in training
    attention : the attention function, `attention` or `fused_attention`

    Raises
    ------
    ValueError : n_heads does not divide d_model, or a dropout outside [0, 1).
    """

    pads = {"mask": ("k", "v")}

    def __init__(self, d_model: int, n_heads: int, dropout: float = 0.0, attention=attention):
        super().__init__()
        check_dropout(dropout)
        self.d_model, self.n_heads, self.d_head = d_model, n_heads, check_heads(d_model, n_heads)
        self.dropout, self.attention = dropout, attention
        self.q_proj = dense(d_model, d_model)
        self.k_proj = dense(d_model, d_model)
        self.v_proj = dense(d_model, d_model)
        self.out_proj = dense(d_model, d_model)

    def call(self, q, k, v, mask=None, training=False):
        """Project, attend in every head, merge, project.

        Parameters
        ----------
        q : shape (B, T, d_model)
        k, v : shape (B, S, d_model)
        mask : boolean, broadcastable to (B, H, T, S), True = may attend
        training : whether dropout applies; Keras passes it on

        Returns
        -------
        AttentionOutput : output (B, T, d_model), weights (B, H, T, S).

        Raises
        ------
        ValueError, TypeError : as for `attention`.
        """
        for name, x in (("q", q), ("k", k), ("v", v)):
            check_features(name, x.shape, self.d_model)
        q, k, v = self.split(self.q_proj(q)), self.split(self.k_proj(k)), self.split(self.v_proj(v))
        context, weights = self.attention(q, k, v, mask, self.dropout if training else 0.0)
        return AttentionOutput(self.out_proj(self.merge(context)), weights)

    def split(self, x):
        """(B, T, d_model) -> (B, H, T, d_head)."""
        shape = tf.shape(x)
        return tf.transpose(tf.reshape(x, (shape[0], shape[1], self.n_heads, self.d_head)), (0, 2, 1, 3))

    def merge(self, x):
        """(B, H, T, d_head) -> (B, T, d_model), the inverse of `split`."""
        shape = tf.shape(x)
        return tf.reshape(tf.transpose(x, (0, 2, 1, 3)), (shape[0], shape[2], self.d_model))
