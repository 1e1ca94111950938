"""The decoder of the Transformer (Vaswani et al. 2017, section 3.1), whole or one token at a time."""

from torch import nn

from course_lib.checks import check_features
from course_lib.models.blocks import (
    BlockConfig,
    DecoderLayerOutput,
    DecoderOutput,
    LayerCache,
    check_block,
    check_memory,
)
from course_lib.torch.attention import MultiHeadAttention, attention
from course_lib.torch.encoder import FeedForward
from course_lib.torch.layers import NORMS


class DecoderLayer(nn.Module):
    """Self-attention, attention to the encoder, feed-forward; each with dropout, a residual and a normalisation.

    Parameters
    ----------
    config : sizes and kind of the block; its rotary positions are those of self-attention
    attention : the attention function
    cross_attention : False for a decoder alone, without an encoder to attend to, such as GPT's
    """

    def __init__(self, config: BlockConfig, attention=attention, cross_attention: bool = True):
        super().__init__()
        self.config = check_block(config)
        self.self_attention = MultiHeadAttention(attention=attention, **config.for_attention)
        self.norm1 = NORMS[config.norm](config.d_model, config.norm_eps)
        self.cross_attention = self.norm2 = None
        if cross_attention:
            self.cross_attention = MultiHeadAttention(
                attention=attention, **{**config.for_attention, "rotary_base": None}
            )
            self.norm2 = NORMS[config.norm](config.d_model, config.norm_eps)
        self.feed_forward = FeedForward(**config.for_feed_forward)
        self.norm3 = NORMS[config.norm](config.d_model, config.norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x, memory=None, mask=None, memory_mask=None, bias=None, causal=False):
        """Run the sub-layers.

        Parameters
        ----------
        x : shape (B, T, d_model)
        memory : the encoder's output, shape (B, S, d_model); None for a decoder alone
        mask : boolean, broadcastable to (B, H, T, T), True = may attend
        memory_mask : boolean, broadcastable to (B, H, T, S), True = may attend
        bias : numbers that are added to the scores of self-attention, broadcastable to (B, H, T, T)
        causal : hide the future besides

        Returns
        -------
        DecoderLayerOutput : output (B, T, d_model), self_weights (B, H, T, T), cross_weights (B, H, T, S) or None.

        Raises
        ------
        ValueError : another shape, a memory for a decoder alone, or none for one with an encoder.
        """
        check_features("x", x.shape, self.config.d_model)
        check_memory(memory, self.cross_attention)
        return self._sublayers(
            x,
            lambda h: self.self_attention(h, h, h, mask=mask, bias=bias, causal=causal),
            lambda h: self.cross_attention(h, memory, memory, mask=memory_mask),
        )

    def start(self, memory=None, n_rows=1):
        """The cache before the first token: nothing of the target, keys and values of the memory (B, S, d_model).

        A decoder alone has no memory; it is told how many sequences there will be, `n_rows`.
        """
        check_memory(memory, self.cross_attention)
        to_itself, read = self.self_attention, (None, None)
        if memory is not None:
            read = self.cross_attention.project(memory, memory)
            n_rows, read = memory.shape[0], [x.contiguous() for x in read]  # laid out as each token will read them
        nothing = (to_itself.k_proj.weight if memory is None else read[0]).new_zeros(
            n_rows, to_itself.n_kv_heads, 0, to_itself.d_head
        )
        return LayerCache(nothing, nothing, *read)

    def step(self, x, cache, mask=None, memory_mask=None, bias=None, causal=False):
        """New tokens x (B, n, d_model) after the t of the cache -> output (B, n, d_model), the cache of t + n.

        `mask` and `bias` are broadcastable to (B, H, n, t + n), `memory_mask` to (B, H, n, S).
        """

        def to_target(h):
            nonlocal cache
            keys, values = self.self_attention.project(h, h, (cache.keys, cache.values))  # (B, H, t + n, d_head)
            cache = cache._replace(keys=keys, values=values)
            return self.self_attention.attend(h, keys, values, mask, bias, causal)

        def to_memory(h):
            return self.cross_attention.attend(h, cache.memory_keys, cache.memory_values, memory_mask)

        return self._sublayers(x, to_target, to_memory).output, cache

    def _sublayers(self, x, to_target, to_memory):
        cross_weights = None
        if self.config.pre_norm:
            attended, self_weights = to_target(self.norm1(x))
            x = x + self.dropout(attended)
            if self.cross_attention is not None:
                attended, cross_weights = to_memory(self.norm2(x))
                x = x + self.dropout(attended)
            x = x + self.dropout(self.feed_forward(self.norm3(x)))
        else:
            attended, self_weights = to_target(x)
            x = self.norm1(x + self.dropout(attended))
            if self.cross_attention is not None:
                attended, cross_weights = to_memory(x)
                x = self.norm2(x + self.dropout(attended))
            x = self.norm3(x + self.dropout(self.feed_forward(x)))
        return DecoderLayerOutput(x, self_weights, cross_weights)


class Decoder(nn.Module):
    """n_layers decoder layers; with pre_norm one more normalisation at the end.

    Parameters
    ----------
    n_layers : how many
    config : sizes and kind of the block; its rotary positions are those of self-attention
    attention : the attention function
    cross_attention : False for a decoder alone, without an encoder to attend to, such as GPT's
    """

    def __init__(self, n_layers: int, config: BlockConfig, attention=attention, cross_attention: bool = True):
        super().__init__()
        self.config = check_block(config)
        self.layers = nn.ModuleList(DecoderLayer(config, attention, cross_attention) for _ in range(n_layers))
        self.norm = NORMS[config.norm](config.d_model, config.norm_eps) if config.pre_norm else None

    def forward(self, x, memory=None, mask=None, memory_mask=None, return_layers=False, bias=None, causal=False):
        """Run the layers.

        Parameters
        ----------
        x : shape (B, T, d_model)
        memory : the encoder's output, shape (B, S, d_model); None for a decoder alone
        mask : boolean, broadcastable to (B, H, T, T), True = may attend
        memory_mask : boolean, broadcastable to (B, H, T, S), True = may attend
        return_layers : also return every layer's hidden states and attention weights
        bias : numbers that are added to the scores of self-attention in each layer, broadcastable to (B, H, T, T)
        causal : hide the future besides

        Returns
        -------
        DecoderOutput : last_hidden (B, T, d_model), hidden, self_weights and cross_weights (None unless return_layers).
        """
        hidden, self_weights, cross_weights = [x], [], []
        for layer in self.layers:
            x, to_target, to_memory = layer(x, memory, mask=mask, memory_mask=memory_mask, bias=bias, causal=causal)
            if return_layers:
                hidden.append(x)
                self_weights.append(to_target)
                cross_weights.append(to_memory)
        if self.norm is not None:
            x = self.norm(x)
        if not return_layers:
            return DecoderOutput(x, None, None, None)
        return DecoderOutput(
            x, tuple(hidden), tuple(self_weights), tuple(cross_weights) if memory is not None else None
        )

    def start(self, memory=None, n_rows=1):
        """The layers' caches before the first token, for a memory (B, S, d_model), or for `n_rows` sequences alone."""
        return tuple(layer.start(memory, n_rows) for layer in self.layers)

    def step(self, x, caches, mask=None, memory_mask=None, bias=None, causal=False):
        """New tokens x (B, n, d_model) after the t of the caches -> last hidden states (B, n, d_model), new caches."""
        grown = []
        for layer, cache in zip(self.layers, caches, strict=True):
            x, cache = layer.step(x, cache, mask, memory_mask, bias, causal)
            grown.append(cache)
        return (x if self.norm is None else self.norm(x)), tuple(grown)
