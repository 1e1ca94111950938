"""The decoder of the Transformer (Vaswani et al. 2017, section 3.1), whole or one token at a time."""

import keras
import tensorflow as tf

from course_lib.checks import check_dropout, check_features
from course_lib.outputs import DecoderLayerOutput, DecoderOutput, LayerCache
from course_lib.tensorflow.attention import MultiHeadAttention, attention
from course_lib.tensorflow.layers import ExplicitMask, layer_norm
from course_lib.tensorflow.transformer import FeedForward


class DecoderLayer(ExplicitMask, keras.layers.Layer):
    """Self-attention, attention to the encoder, feed-forward; each with dropout, a residual and a normalisation.

    Parameters
    ----------
    d_model, n_heads, d_ff : sizes
    dropout : after each sub-layer, before it is added to the residual (section 5.4); training only
    attention_dropout : of the attention weights; training only
    activation : "relu" (the paper) or "gelu"
    pre_norm : False normalises after adding, as in the paper; True before the sub-layer (Xiong et al. 2020)
    norm_eps : added to the variance
    attention : the attention function
    self_attention : the attention function of the first sub-layer, where it differs; `attention` when None
    """

    pads = {"mask": ("x",), "memory_mask": ("memory",)}

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation: str = "relu",
        pre_norm: bool = False,
        norm_eps: float = 1e-5,
        attention=attention,
        self_attention=None,
    ):
        super().__init__()
        check_dropout(dropout)
        self.d_model, self.pre_norm = d_model, pre_norm
        self.self_attention = MultiHeadAttention(d_model, n_heads, attention_dropout, self_attention or attention)
        self.norm1 = layer_norm(d_model, norm_eps)
        self.cross_attention = MultiHeadAttention(d_model, n_heads, attention_dropout, attention)
        self.norm2 = layer_norm(d_model, norm_eps)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm3 = layer_norm(d_model, norm_eps)
        self.dropout = keras.layers.Dropout(dropout)

    def call(self, x, memory, mask=None, memory_mask=None):
        """Run the three sub-layers.

        Parameters
        ----------
        x : shape (B, T, d_model)
        memory : the encoder's output, shape (B, S, d_model)
        mask : boolean, broadcastable to (B, H, T, T), True = may attend
        memory_mask : boolean, broadcastable to (B, H, T, S), True = may attend

        Returns
        -------
        DecoderLayerOutput : output (B, T, d_model), self_weights (B, H, T, T), cross_weights (B, H, T, S).

        Raises
        ------
        ValueError : another shape.
        """
        check_features("x", x.shape, self.d_model)
        return self._sublayers(
            x,
            lambda h: self.self_attention(h, h, h, mask=mask),
            lambda h: self.cross_attention(h, memory, memory, mask=memory_mask),
        )

    def start(self, memory):
        """The cache before the first token: no keys and values of the target, those of the memory (B, S, d_model)."""
        attend = self.cross_attention
        keys, values = attend.split(attend.k_proj(memory)), attend.split(attend.v_proj(memory))
        nothing = tf.zeros((tf.shape(memory)[0], attend.n_heads, 0, attend.d_head), keys.dtype)
        return LayerCache(nothing, nothing, keys, values)

    def step(self, x, cache, mask=None, memory_mask=None):
        """New tokens x (B, n, d_model) after the t of the cache -> output (B, n, d_model), the cache of t + n.

        `mask` is broadcastable to (B, H, n, t + n), `memory_mask` to (B, H, n, S).
        """
        attend, x = self.self_attention, tf.cast(x, self.compute_dtype)  # as Keras does before `call`

        def to_target(h):
            nonlocal cache
            keys = tf.concat([cache.keys, attend.split(attend.k_proj(h))], axis=2)  # (B, H, t + n, d_head)
            values = tf.concat([cache.values, attend.split(attend.v_proj(h))], axis=2)
            cache = cache._replace(keys=keys, values=values)
            return _attend(attend, h, keys, values, mask)

        def to_memory(h):
            return _attend(self.cross_attention, h, cache.memory_keys, cache.memory_values, memory_mask)

        return self._sublayers(x, to_target, to_memory).output, cache

    def _sublayers(self, x, to_target, to_memory):
        if self.pre_norm:
            attended, self_weights = to_target(self.norm1(x))
            x = x + self.dropout(attended)
            attended, cross_weights = to_memory(self.norm2(x))
            x = x + self.dropout(attended)
            x = x + self.dropout(self.feed_forward(self.norm3(x)))
        else:
            attended, self_weights = to_target(x)
            x = self.norm1(x + self.dropout(attended))
            attended, cross_weights = to_memory(x)
            x = self.norm2(x + self.dropout(attended))
            x = self.norm3(x + self.dropout(self.feed_forward(x)))
        return DecoderLayerOutput(x, self_weights, cross_weights)


class Decoder(ExplicitMask, keras.layers.Layer):
    """n_layers decoder layers; with pre_norm one more normalisation at the end. Parameters as `DecoderLayer`."""

    pads = {"mask": ("x",), "memory_mask": ("memory",)}

    def __init__(
        self,
        n_layers: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation: str = "relu",
        pre_norm: bool = False,
        norm_eps: float = 1e-5,
        attention=attention,
        self_attention=None,
    ):
        super().__init__()
        sizes = (d_model, n_heads, d_ff, dropout, attention_dropout, activation, pre_norm, norm_eps)
        self.layers = [DecoderLayer(*sizes, attention, self_attention) for _ in range(n_layers)]
        self.norm = layer_norm(d_model, norm_eps) if pre_norm else None

    def call(self, x, memory, mask=None, memory_mask=None, return_layers=False):
        """Run the layers.

        Parameters
        ----------
        x : shape (B, T, d_model)
        memory : the encoder's output, shape (B, S, d_model)
        mask : boolean, broadcastable to (B, H, T, T), True = may attend
        memory_mask : boolean, broadcastable to (B, H, T, S), True = may attend
        return_layers : also return every layer's hidden states and attention weights

        Returns
        -------
        DecoderOutput : last_hidden (B, T, d_model), hidden, self_weights and cross_weights (None unless return_layers).
        """
        hidden, self_weights, cross_weights = [x], [], []
        for layer in self.layers:
            x, to_target, to_memory = layer(x, memory, mask=mask, memory_mask=memory_mask)
            if return_layers:
                hidden.append(x)
                self_weights.append(to_target)
                cross_weights.append(to_memory)
        if self.norm is not None:
            x = self.norm(x)
        if not return_layers:
            return DecoderOutput(x, None, None, None)
        return DecoderOutput(x, tuple(hidden), tuple(self_weights), tuple(cross_weights))

    def start(self, memory):
        """The layers' caches before the first token, for a memory (B, S, d_model)."""
        return tuple(layer.start(memory) for layer in self.layers)

    def step(self, x, caches, mask=None, memory_mask=None):
        """New tokens x (B, n, d_model) after the t of the caches -> last hidden states (B, n, d_model), new caches."""
        grown = []
        for layer, cache in zip(self.layers, caches, strict=True):
            x, cache = layer.step(x, cache, mask, memory_mask)
            grown.append(cache)
        return (x if self.norm is None else self.norm(x)), tuple(grown)


def _attend(layer, q, keys, values, mask):
    """What `layer` does, from keys and values (B, H, S, d_head) that are projected already."""
    context, weights = layer.attention(layer.split(layer.q_proj(q)), keys, values, mask)
    return layer.out_proj(layer.merge(context)), weights
