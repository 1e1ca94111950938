"""GPT-2 (Radford et al. 2019, section 2.3): a decoder alone, which says after each token what comes next."""

import operator

import keras
import tensorflow as tf

from course_lib.checks import check_length
from course_lib.models.blocks import LayerCache
from course_lib.models.gpt import GPT2, GPTConfig, GPTOutput, GPTState, check_config
from course_lib.tensorflow.attention import attention
from course_lib.tensorflow.checkpoint import Checkpoint
from course_lib.tensorflow.decoder import Decoder
from course_lib.tensorflow.decoding import NextLogits
from course_lib.tensorflow.fitting import Fittable
from course_lib.tensorflow.kernels import Traced
from course_lib.tensorflow.layers import ExplicitMask, checked_ids, embedding, table_of
from course_lib.tensorflow.models.bert import initialise
from course_lib.tensorflow.positions import LearnedPositions


class GPT(Checkpoint, Fittable, ExplicitMask, keras.Model):
    """Tokens with learned positions, causal layers that normalise first, and the token table once more as the output.

    Padding, `config.pad_id`, is hidden: real tokens do not attend to it, and their positions are counted without it,
    so that it may stand on the left or on the right. Fresh matrices are normal; those before a residual are divided by
    the square root of the number of residuals (section 2.3).
    Keras's own loop trains it too: `fit(ids, labels)`, after `compile` with a loss of logits.

    Parameters
    ----------
    config : sizes
    attention : the attention function, `attention` or `fused_attention`
    """

    family, architecture = GPT2, "GPT2LMHeadModel"

    def __init__(self, config: GPTConfig, attention=attention):
        super().__init__()
        self.config = check_config(config)
        self.token = embedding(config.vocab_size, config.d_model, config.init_std)
        self.position = LearnedPositions(config.d_model, config.max_len, config.init_std)
        self.dropout = keras.layers.Dropout(config.embedding_dropout)
        self.decoder = Decoder(config.n_layers, config.block, attention, cross_attention=False)
        initialise(self, config.init_std)
        for layer in self.decoder.layers:
            for linear in (layer.self_attention.out_proj, layer.feed_forward.linear2):
                linear.kernel.assign(linear.kernel * config.residual_scale)
        vars(self)["_decoding"] = ((), {})  # past Keras, which would count the weights twice

    def call(self, ids, return_layers=False, training=False):
        """Predict each token from those before it.

        Parameters
        ----------
        ids : integers, shape (B, T)
        return_layers : also return every layer's hidden states and attention weights

        Returns
        -------
        GPTOutput : logits (B, T, vocab_size), of the token after each; hidden and weights, None unless return_layers.

        Raises
        ------
        ValueError : ids outside the vocabulary (when run eagerly; a compiled function cannot look), wrong shapes,
            sequences over max_len.
        TypeError : ids that are not integers.
        """
        ids = checked_ids("ids", ids, self.config.vocab_size)
        real = self.real_tokens(ids)
        decoded = self.decoder(self.embed(ids, real), mask=_mask(real), return_layers=return_layers, causal=True)
        return GPTOutput(self.predict_from(decoded.last_hidden), decoded.hidden, decoded.self_weights)

    def next_logits(self, n_rows: int = 1, cached: bool = True):
        """The logits of the next token, for decoding: a `NextLogits` for so many sequences, prompts included."""
        return NextLogits(self, n_rows, cached)

    def encode(self, n_rows: int = 1):
        """The GPTState of `n_rows` sequences of which no token was read; a decoder alone has no other source."""
        real = None if self.config.pad_id is None else tf.zeros((n_rows, 0), tf.bool)
        return GPTState(self.decoder.start(n_rows=n_rows), real)

    def start(self, memory):
        """The state before the first token: what `encode` returned."""
        return memory

    def step(self, ids, state):
        """Read new tokens, integers (B, n) -> logits (B, vocab_size) of the one after them, the next state."""
        ids = tf.cast(checked_ids("ids", ids, self.config.vocab_size), tf.int64)
        read = state.caches[0].keys.shape[2]
        if None not in (ids.shape[1], read):  # the compiled functions do not know the length
            check_length(read + ids.shape[1], self.config.max_len)
        # a function of its own for one token, and for one sequence: what TensorFlow knows, it need not look up
        return self._compiled()[tuple(1 if n == 1 else None for n in ids.shape)](ids, state)

    def _compiled(self) -> dict:
        """The functions of `step`, each traced once, for all batches and lengths or for those of one.

        What changes the weights, such as `enable_lora` and `quantize`, makes them anew, and so does another attention
        function in a layer.
        """
        attentions = [layer.self_attention.attention for layer in self.decoder.layers]
        (known, functions), traced = self._decoding, [*self.weights, *attentions]
        if len(known) == len(traced) and all(map(operator.is_, known, traced)):
            return functions

        def step(ids, state):
            real = self.real_tokens(ids)  # (B, n)
            if real is not None:
                real = tf.concat([state.real, real], axis=1)  # (B, t + n)
            x = self.embed(ids, real, tf.shape(state.caches[0].keys)[2])
            x = tf.ensure_shape(x, (*ids.shape, self.config.d_model))
            hidden, caches = self.decoder.step(x, state.caches, _mask(real), causal=True)
            return self.predict_from(hidden[:, -1]), GPTState(caches, real)

        functions = {}
        for n_rows in (1, None):
            for length in (1, None):
                ids = tf.TensorSpec((n_rows, length), tf.int64)
                functions[n_rows, length] = Traced(step, ids, self._state_of(n_rows))
        vars(self)["_decoding"] = traced, functions
        return functions

    def _state_of(self, n_rows):
        """A GPTState of the shapes of this many sequences, any number when None, and of any length."""
        heads = (n_rows, self.config.n_heads, None, self.config.d_model // self.config.n_heads)
        cache = LayerCache(*2 * [tf.TensorSpec(heads, self.compute_dtype)], None, None)
        real = None if self.config.pad_id is None else tf.TensorSpec((n_rows, None), tf.bool)
        return GPTState((cache,) * self.config.n_layers, real)

    def real_tokens(self, ids):
        """ids (B, T) -> boolean (B, T), True at what is no padding; None without a padding id."""
        return None if self.config.pad_id is None else ids != self.config.pad_id

    def embed(self, ids, real=None, first=0):
        """Tokens with their positions, and dropout.

        Parameters
        ----------
        ids : integers, shape (B, n), the tokens from place `first` on
        real : boolean, shape (B, first + n), True at what is no padding; None: all of it
        first : how many tokens stand before these

        Returns
        -------
        Shape (B, n, d_model).

        Raises
        ------
        ValueError : more tokens than max_len.
        """
        if real is None:
            return self.dropout(self.position(self.token(ids), first=first))
        check_length(real.shape[1], self.config.max_len)
        x, places = self.token(ids), tf.maximum(tf.cumsum(tf.cast(real, tf.int32), axis=1) - 1, 0)
        places = places[:, first:]  # (B, n): 0 for the first real token
        return self.dropout(x + tf.cast(tf.gather(self.position.weight, places), x.dtype))

    def predict_from(self, hidden):
        """Hidden states (B, T, d_model) -> logits (B, T, vocab_size)."""
        return tf.matmul(hidden, tf.cast(table_of(self.token), hidden.dtype), transpose_b=True)


def _mask(real):
    """Which keys no query may attend to: boolean (B, S) -> (B, 1, 1, S)."""
    return None if real is None else real[:, None, None, :]
