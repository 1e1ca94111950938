"""The encoder of the Transformer (Vaswani et al. 2017, sections 3.1 and 3.3)."""

from course_lib.checks import check_choice, check_dropout, check_features
from course_lib.models.blocks import BlockConfig, EncoderOutput, check_block
from course_lib.numpy.attention import MultiHeadAttention, attention
from course_lib.numpy.layers import ACTIVATIONS, NORMS, Linear, Module


class FeedForward(Module):
    """activation(x W1 + b1) W2 + b2, at every position alike (eq. 2).

    Parameters
    ----------
    d_model : features of the input and of the output
    d_ff : features between
    activation : "relu" (the paper), "gelu" (BERT), "gelu_new" (ALBERT) or "silu"
    gated : multiply what is between by x V + c, features of its own that decide what passes (Shazeer 2020)
    linear_bias : whether the linear layers add a bias
    dropout : probability for the features between in training

    Raises
    ------
    ValueError : an activation that is none of these, a dropout outside [0, 1).
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        activation: str = "relu",
        gated: bool = False,
        linear_bias: bool = True,
        dropout: float = 0.0,
    ):
        check_choice("activation", activation, ACTIVATIONS)
        check_dropout(dropout)
        self.d_model = d_model
        self.linear1 = Linear(d_model, d_ff, bias=linear_bias)
        self.gate = Linear(d_model, d_ff, bias=linear_bias) if gated else None
        self.activation = ACTIVATIONS[activation]
        self.linear2 = Linear(d_ff, d_model, bias=linear_bias)

    def __call__(self, x):
        """(B, T, d_model) -> (B, T, d_model); ValueError for another shape."""
        check_features("x", x.shape, self.d_model)
        hidden = self.activation(self.linear1(x))
        return self.linear2(hidden if self.gate is None else hidden * self.gate(x))


class EncoderLayer(Module):
    """Self-attention, then feed-forward; each with dropout, a residual and a normalisation.

    Parameters
    ----------
    config : sizes and kind of the block
    attention : the attention function
    """

    def __init__(self, config: BlockConfig, attention=attention):
        self.config = check_block(config)
        self.attention = MultiHeadAttention(attention=attention, **config.for_attention)
        self.norm1 = NORMS[config.norm](config.d_model, config.norm_eps)
        self.feed_forward = FeedForward(**config.for_feed_forward)
        self.norm2 = NORMS[config.norm](config.d_model, config.norm_eps)

    def __call__(self, x, mask=None, bias=None, causal=False):
        """Run the two sub-layers.

        Parameters
        ----------
        x : shape (B, T, d_model)
        mask : boolean, broadcastable to (B, H, T, T), True = may attend
        bias : numbers that are added to the scores, broadcastable to (B, H, T, T)
        causal : hide the future besides

        Returns
        -------
        output (B, T, d_model), weights (B, H, T, T).

        Raises
        ------
        ValueError : another shape.
        """
        check_features("x", x.shape, self.config.d_model)
        if self.config.pre_norm:
            h = self.norm1(x)
            attended, weights = self.attention(h, h, h, mask=mask, bias=bias, causal=causal)
            x = x + attended
            return x + self.feed_forward(self.norm2(x)), weights
        attended, weights = self.attention(x, x, x, mask=mask, bias=bias, causal=causal)
        x = self.norm1(x + attended)
        return self.norm2(x + self.feed_forward(x)), weights


class Encoder(Module):
    """n_layers encoder layers; with pre_norm one more normalisation at the end.

    Parameters
    ----------
    n_layers : how many
    config : sizes and kind of the block
    attention : the attention function
    """

    def __init__(self, n_layers: int, config: BlockConfig, attention=attention):
        self.config = check_block(config)
        self.layers = [EncoderLayer(config, attention) for _ in range(n_layers)]
        self.norm = NORMS[config.norm](config.d_model, config.norm_eps) if config.pre_norm else None

    def sequence(self):
        """The layers in the order in which they run."""
        return self.layers

    def __call__(self, x, mask=None, return_layers=False, bias=None, causal=False):
        """Run the layers.

        Parameters
        ----------
        x : shape (B, T, d_model)
        mask : boolean, broadcastable to (B, H, T, T), True = may attend
        return_layers : also return every layer's hidden states and attention weights
        bias : numbers that are added to the scores of each layer, broadcastable to (B, H, T, T)
        causal : hide the future besides

        Returns
        -------
        EncoderOutput : last_hidden (B, T, d_model), hidden and weights (None unless return_layers).
        """
        hidden, all_weights = [x], []
        for layer in self.sequence():
            x, weights = layer(x, mask=mask, bias=bias, causal=causal)
            if return_layers:
                hidden.append(x)
                all_weights.append(weights)
        if self.norm is not None:
            x = self.norm(x)
        return EncoderOutput(x, tuple(hidden), tuple(all_weights)) if return_layers else EncoderOutput(x, None, None)
