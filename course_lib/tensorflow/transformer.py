"""The encoder of the Transformer (Vaswani et al. 2017, sections 3.1 and 3.3)."""

import keras
import tensorflow as tf

from course_lib.checks import check_choice, check_dropout, check_features
from course_lib.outputs import EncoderOutput
from course_lib.tensorflow.attention import MultiHeadAttention, attention
from course_lib.tensorflow.layers import ExplicitMask, dense, layer_norm
from course_lib.tensorflow.serialization import Portable


def gelu(x):
    """x Phi(x) with the exact normal distribution (Hendrycks and Gimpel 2016, section 2)."""
    return tf.nn.gelu(x, approximate=False)


ACTIVATIONS = {"gelu": gelu, "relu": tf.nn.relu}


class FeedForward(Portable, keras.layers.Layer):
    """activation(x W1 + b1) W2 + b2, at every position alike (eq. 2).

    Raises
    ------
    ValueError : an activation that is neither "relu" nor "gelu".
    """

    def __init__(self, d_model: int, d_ff: int, activation: str = "relu"):
        super().__init__()
        check_choice("activation", activation, ACTIVATIONS)
        self.d_model = d_model
        self.linear1 = dense(d_model, d_ff)
        self.activation = ACTIVATIONS[activation]
        self.linear2 = dense(d_ff, d_model)

    def call(self, x):
        """(B, T, d_model) -> (B, T, d_model); ValueError for another shape."""
        check_features("x", x.shape, self.d_model)
        return self.linear2(self.activation(self.linear1(x)))


class EncoderLayer(ExplicitMask, keras.layers.Layer):
    """Self-attention, then feed-forward; each with dropout, a residual and a layer normalisation.

    Parameters
    ----------
    d_model, n_heads, d_ff : sizes
    dropout : after each sub-layer, before it is added to the residual (section 5.4); training only
    attention_dropout : of the attention weights; training only
    activation : "relu" (the paper) or "gelu" (BERT)
    pre_norm : False normalises after adding, as in the paper; True before the sub-layer (Xiong et al. 2020)
    norm_eps : added to the variance
    attention : the attention function
    """

    pads = {"mask": ("x",)}

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
    ):
        super().__init__()
        check_dropout(dropout)
        self.d_model, self.pre_norm = d_model, pre_norm
        self.attention = MultiHeadAttention(d_model, n_heads, attention_dropout, attention)
        self.norm1 = layer_norm(d_model, norm_eps)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm2 = layer_norm(d_model, norm_eps)
        self.dropout = keras.layers.Dropout(dropout)

    def call(self, x, mask=None):
        """(B, T, d_model) -> output (B, T, d_model), weights (B, H, T, T); ValueError for another shape."""
        check_features("x", x.shape, self.d_model)
        if self.pre_norm:
            h = self.norm1(x)
            attended, weights = self.attention(h, h, h, mask=mask)
            x = x + self.dropout(attended)
            return x + self.dropout(self.feed_forward(self.norm2(x))), weights
        attended, weights = self.attention(x, x, x, mask=mask)
        x = self.norm1(x + self.dropout(attended))
        return self.norm2(x + self.dropout(self.feed_forward(x))), weights


class Encoder(ExplicitMask, keras.layers.Layer):
    """n_layers encoder layers; with pre_norm one more normalisation at the end. Parameters as `EncoderLayer`."""

    pads = {"mask": ("x",)}

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
    ):
        super().__init__()
        self.layers = [
            EncoderLayer(d_model, n_heads, d_ff, dropout, attention_dropout, activation, pre_norm, norm_eps, attention)
            for _ in range(n_layers)
        ]
        self.norm = layer_norm(d_model, norm_eps) if pre_norm else None

    def call(self, x, mask=None, return_layers=False):
        """Run the layers.

        Parameters
        ----------
        x : shape (B, T, d_model)
        mask : boolean, broadcastable to (B, H, T, T), True = may attend
        return_layers : also return every layer's hidden states and attention weights

        Returns
        -------
        EncoderOutput : last_hidden (B, T, d_model), hidden and weights (None unless return_layers).
        """
        hidden, all_weights = [x], []
        for layer in self.layers:
            x, weights = layer(x, mask=mask)
            if return_layers:
                hidden.append(x)
                all_weights.append(weights)
        if self.norm is not None:
            x = self.norm(x)
        return EncoderOutput(x, tuple(hidden), tuple(all_weights)) if return_layers else EncoderOutput(x, None, None)
