"""Scaled dot-product attention and multi-head attention (Vaswani et al. 2017, section 3.2)."""

import math

import keras
import tensorflow as tf

from course_lib.checks import check_attention, check_dropout, check_features, check_heads
from course_lib.models.blocks import AttentionOutput
from course_lib.tensorflow.kernels import attention_context
from course_lib.tensorflow.layers import ExplicitMask, dense, drop, lengths
from course_lib.tensorflow.positions import rotate
from course_lib.tensorflow.serialization import serializable


def softmax(scores):
    """exp(scores) / sum exp(scores) over the last axis: (..., S) -> (..., S); TensorFlow subtracts the maximum."""
    return tf.nn.softmax(scores, axis=-1)


def attention(q, k, v, mask=None, bias=None, dropout=0.0, scale=None, causal=False):
    """softmax(q k^T / sqrt(d_k) + bias) v: each query's weighted mean of the values (eq. 1).

    Parameters
    ----------
    q : queries, shape (..., T, d_k)
    k : keys, shape (..., S, d_k); also of fewer heads, (B, H / n, S, d_k), each for n heads of queries that follow
        each other (Ainslie et al. 2023)
    v : values, shape (..., S, d_v), of as many heads as k
    mask : boolean, broadcastable to (..., T, S), True = may attend; None lets everyone attend to everyone
    bias : numbers that are added to the scores, broadcastable to (..., T, S), such as those of ALiBi and of T5; minus
        infinity hides, as a mask does
    dropout : probability with which a weight is dropped now; the returned weights are those before it
    scale : what q k^T is multiplied by, 1 / sqrt(d_k) when None
    causal : hide the future besides, as `causal_mask(T, S)` does; `fused_attention` may do it without a mask

    Returns
    -------
    AttentionOutput : output (..., T, d_v) and weights (..., T, S). The weights of a query with nothing to
    attend to are zeros, and so is its output.

    Raises
    ------
    ValueError : axes that do not fit, a mask or bias that does not broadcast, a dropout outside [0, 1), a scale that
        is not positive, causal attention to fewer keys than queries.
    TypeError : a mask that is not boolean, or a bias that is.
    """
    q, k, v, mask, bias = _prepared(q, k, v, mask, bias, dropout, scale, causal)
    scores = tf.matmul(q, k, transpose_b=True) / (math.sqrt(q.shape[-1]) if scale is None else 1 / scale)  # (..., T, S)
    if bias is not None:
        scores += bias
    if mask is None:
        weights = softmax(scores)
    else:
        weights = softmax(tf.where(mask, scores, scores.dtype.min)) * tf.cast(mask, scores.dtype)
    return AttentionOutput(tf.matmul(drop(weights, dropout), v), weights)


def fused_attention(q, k, v, mask=None, bias=None, dropout=0.0, scale=None, causal=False):
    """The same numbers as `attention` by fewer passes over the (T, S) scores, without returning the weights.

    Parameters, errors and output as for `attention`; the weights are None.
    """
    q, k, v, mask, bias = _prepared(q, k, v, mask, bias, dropout, scale, causal)
    scale = 1.0 / math.sqrt(q.shape[-1]) if scale is None else scale
    return AttentionOutput(attention_context(q, k, v, mask, bias, dropout, scale), None)


def _prepared(q, k, v, mask, bias, dropout, scale, causal):
    """Checked: keys and values for every head, a mask that hides the future if it shall, a bias in q's dtype."""
    q, k, v = tf.convert_to_tensor(q), tf.convert_to_tensor(k), tf.convert_to_tensor(v)
    mask = None if mask is None else tf.convert_to_tensor(mask)
    bias = None if bias is None else tf.convert_to_tensor(bias)
    check_attention(q.shape, k.shape, v.shape, mask, bias, dropout, scale, causal)
    if bias is not None:  # minus infinity hides; other numbers stay above what stands for a hidden score
        bias = tf.cast(bias, q.dtype)
        seen = bias != -math.inf
        mask = seen if mask is None else mask & seen
        bias = tf.maximum(bias, q.dtype.min / 4)
    if causal and q.shape[-2] != 1:  # the last of the keys may attend to all
        n_queries, n_keys = tf.shape(q)[-2], tf.shape(k)[-2]
        past = tf.range(n_keys) <= tf.range(n_keys - n_queries, n_keys)[:, None]
        mask = past if mask is None else mask & past
    if len(q.shape) > 3 and q.shape[-3] != k.shape[-3]:
        n_sharing = q.shape[-3] // k.shape[-3]
        k, v = tf.repeat(k, n_sharing, axis=-3), tf.repeat(v, n_sharing, axis=-3)
    return q, k, v, mask, bias


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
    n_kv_heads : heads of keys and values, each for n_heads / n_kv_heads heads of queries; n_heads when None
    d_head : features of a head; d_model / n_heads when None
    linear_bias : whether the four linear layers add a bias
    scale : what q k^T is multiplied by; 1 / sqrt(d_head) when None
    rotary_base : of rotary positions, 10000 as a rule; None for none. For self-attention only
    qkv_bias : whether those of queries, keys and values do, where not as `linear_bias` says
    key_bias : whether that of keys does, where not as those of queries and values

    Raises
    ------
    ValueError : n_heads does not divide d_model, n_kv_heads not n_heads, or a dropout outside [0, 1).
    """

    pads = {"mask": ("k", "v")}

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        dropout: float = 0.0,
        attention=attention,
        n_kv_heads: int | None = None,
        d_head: int | None = None,
        linear_bias: bool = True,
        scale: float | None = None,
        rotary_base: float | None = None,
        qkv_bias: bool | None = None,
        key_bias: bool | None = None,
    ):
        super().__init__()
        check_dropout(dropout)
        self.d_model, self.n_heads, self.n_kv_heads = d_model, n_heads, n_kv_heads or n_heads
        self.d_head = check_heads(d_model, n_heads, n_kv_heads, d_head)
        self.dropout, self.attention, self.scale, self.rotary_base = dropout, attention, scale, rotary_base
        qkv_bias = linear_bias if qkv_bias is None else qkv_bias
        self.q_proj = dense(d_model, n_heads * self.d_head, bias=qkv_bias)
        key_bias = qkv_bias if key_bias is None else key_bias
        self.k_proj = dense(d_model, self.n_kv_heads * self.d_head, bias=key_bias)
        self.v_proj = dense(d_model, self.n_kv_heads * self.d_head, bias=qkv_bias)
        self.out_proj = dense(n_heads * self.d_head, d_model, bias=linear_bias)

    def call(self, q, k, v, mask=None, bias=None, causal=False, training=False):
        """Project, attend in every head, merge, project.

        Parameters
        ----------
        q : shape (B, T, d_model)
        k, v : shape (B, S, d_model)
        mask : boolean, broadcastable to (B, H, T, S), True = may attend
        bias : numbers that are added to the scores, broadcastable to (B, H, T, S)
        causal : hide the future besides
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
        return self.attend(q, *self.project(k, v), mask, bias, causal, training)

    def project(self, k, v, past=None):
        """The keys and the values of every head, which a cache can keep.

        Parameters
        ----------
        k, v : shape (B, S, d_model)
        past : what an earlier call returned, for the t places before these; None: these are the first

        Returns
        -------
        Keys, already turned by rotary positions, and values, (B, n_kv_heads, t + S, d_head) each.
        """
        keys, values = self.split(self.k_proj(k)), self.split(self.v_proj(v))
        keys = self._turned(keys, 0 if past is None else tf.shape(past[0])[2])
        if past is None:
            return keys, values
        return tf.concat([past[0], keys], axis=2), tf.concat([past[1], values], axis=2)

    def attend(self, q, keys, values, mask=None, bias=None, causal=False, training=False):
        """From keys and values that `project` returned: q (B, T, d_model), the rest as for the call.

        With rotary positions, the queries are the last of the keys.
        """
        queries = self.split(self.q_proj(q))
        queries = self._turned(queries, tf.shape(keys)[2] - tf.shape(queries)[2])
        options = {"bias": bias, "scale": self.scale, "causal": causal or None}
        # a function of one's own need know only what is asked of it
        options = {name: value for name, value in options.items() if value is not None}
        context, weights = self.attention(
            queries, keys, values, mask=mask, dropout=self.dropout if training else 0.0, **options
        )
        return AttentionOutput(self.out_proj(self.merge(context)), weights)

    def _turned(self, x, first):
        return x if self.rotary_base is None else rotate(x, first, self.rotary_base)

    def split(self, x):
        """(B, T, H d_head) -> (B, H, T, d_head), for any number of heads."""
        n_rows, length, width = lengths(x)
        return tf.transpose(tf.reshape(x, (n_rows, length, width // self.d_head, self.d_head)), (0, 2, 1, 3))

    def merge(self, x):
        """(B, H, T, d_head) -> (B, T, H d_head), the inverse of `split`."""
        n_rows, n_heads, length, _ = lengths(x)
        return tf.reshape(tf.transpose(x, (0, 2, 1, 3)), (n_rows, length, n_heads * self.d_head))
