"""T5 (Raffel et al. 2020, section 2.1): an encoder and a decoder that read every task as text and answer in text."""

import operator

import keras
import tensorflow as tf

from course_lib.checks import check_pairs
from course_lib.masks import padding_mask
from course_lib.models.blocks import LayerCache
from course_lib.models.t5 import T5_FAMILY, T5Config, T5Memory, T5Output, T5State, check_config
from course_lib.tensorflow.attention import attention
from course_lib.tensorflow.checkpoint import Checkpoint
from course_lib.tensorflow.decoder import Decoder
from course_lib.tensorflow.decoding import NextLogits
from course_lib.tensorflow.encoder import Encoder
from course_lib.tensorflow.fitting import Fittable
from course_lib.tensorflow.kernels import Traced
from course_lib.tensorflow.layers import ExplicitMask, checked_ids, dense, embedding, product, table_of
from course_lib.tensorflow.positions import RelativePositions
from course_lib.tensorflow.state import get_state, set_state


class T5(Checkpoint, Fittable, ExplicitMask, keras.Model):
    """Tokens without positions of their own, encoder, decoder, and the token table once more as the output.

    Order is seen by numbers that are added to the scores of self-attention, by the distance of query and key, the same
    in all layers of a stack. Norms scale and shift nothing, they stand before each sub-layer and at the end of a stack;
    scores are not divided by sqrt(d_head), and no layer adds a bias. The output matrix, where it is the token table, is
    divided by sqrt(d_model).

    A source's padding, `config.pad_id`, is hidden; a target's stands at its end, where no real token sees it, and may
    be what a target begins with, as T5's is.
    Keras's own loop trains it too: `fit((source_ids, target_ids), labels)`, after `compile` with a loss of logits.

    Parameters
    ----------
    config : sizes
    attention : the attention function, `attention` or `fused_attention`
    """

    family, architecture = T5_FAMILY, "T5ForConditionalGeneration"

    def __init__(self, config: T5Config, attention=attention):
        super().__init__()
        self.config = check_config(config)
        self.token = embedding(config.vocab_size, config.d_model, 1.0)
        sizes = config.n_heads, config.n_buckets, config.max_distance
        self.encoder_position = RelativePositions(*sizes)
        self.decoder_position = RelativePositions(*sizes, bidirectional=False)
        self.dropout = keras.layers.Dropout(config.dropout)
        self.encoder = Encoder(config.n_layers, config.block, attention)
        self.decoder = Decoder(config.n_decoder_layers, config.block, attention)
        self.out_proj = None if config.tie_output else dense(config.d_model, config.vocab_size, bias=False)
        widths = {name: (config.std_of(name), value.shape) for name, value in get_state(self).items()}
        fresh = {name: keras.random.normal(shape, 0.0, std) for name, (std, shape) in widths.items() if std is not None}
        set_state(self, {name: value.numpy() for name, value in fresh.items()}, partial=True)
        vars(self)["_decoding"] = ((), {})  # past Keras, which would count the weights twice

    def call(self, source_ids, target_ids, return_layers=False, training=False):
        """Predict each target token from the true ones before it (teacher forcing).

        Parameters
        ----------
        source_ids : integers, shape (B, S)
        target_ids : integers, shape (B, T): `config.start_id`, then the target without its last token
        return_layers : also return every layer's hidden states and attention weights

        Returns
        -------
        T5Output : logits (B, T, vocab_size), of the token after each; the rest None unless return_layers.

        Raises
        ------
        ValueError : ids outside the vocabulary (when run eagerly; a compiled function cannot look), wrong shapes.
        TypeError : ids that are not integers.
        """
        source_ids = checked_ids("source_ids", source_ids, self.config.vocab_size)
        target_ids = checked_ids("target_ids", target_ids, self.config.vocab_size)
        check_pairs(source_ids.shape, target_ids.shape)
        mask, x = padding_mask(source_ids, self.config.pad_id), self.embed(source_ids)
        encoded = self.encoder(x, mask=mask, return_layers=return_layers, bias=self.encoder_position(x))
        memory, x = self.dropout(encoded.last_hidden), self.embed(target_ids)
        options = {"bias": self.decoder_position(x), "return_layers": return_layers, "causal": True}
        decoded = self.decoder(x, memory, memory_mask=mask, **options)
        return T5Output(self.predict_from(decoded.last_hidden), *encoded[1:], *decoded[1:])

    def next_logits(self, source_ids, cached: bool = True):
        """The logits of the next target token, for decoding: a `NextLogits` for the sources, integers (B, S)."""
        return NextLogits(self, source_ids, cached)

    def encode(self, source_ids):
        """Read the source: integers (B, S) -> T5Memory; errors as for the call."""
        ids = tf.cast(checked_ids("source_ids", source_ids, self.config.vocab_size), tf.int64)
        return self._compiled()["encode"](ids)

    def start(self, memory):
        """The state before the first target token, for a T5Memory."""
        return self._compiled()["start"](memory)

    def step(self, ids, state):
        """Read new target tokens, integers (B, n) -> logits (B, vocab_size) of the one after them, the next state."""
        ids = tf.cast(checked_ids("ids", ids, self.config.vocab_size), tf.int64)
        # a function of its own for one token, and for one text: what TensorFlow knows, it need not look up
        return self._compiled()["step", *(1 if n == 1 else None for n in ids.shape)](ids, state)

    def _compiled(self) -> dict:
        """The functions of decoding, each traced once, for all batches and lengths or for those of one.

        What changes the weights, such as `enable_lora` and `quantize`, makes them anew, and so does another attention
        function in a layer.
        """
        (known, functions), traced = self._decoding, [*self.weights, *self._attentions()]
        if len(known) == len(traced) and all(map(operator.is_, known, traced)):
            return functions

        def encode(ids):
            mask, x = padding_mask(ids, self.config.pad_id), self.embed(ids)
            return T5Memory(self.encoder(x, mask=mask, bias=self.encoder_position(x)).last_hidden, mask)

        def start(memory):
            return T5State(memory.mask, self.decoder.start(memory.hidden))

        def step(ids, state):
            x = self.embed(ids)
            bias = self.decoder_position(x, first=tf.shape(state.caches[0].keys)[2])  # (1, H, n, t + n)
            hidden, caches = self.decoder.step(x, state.caches, None, state.memory_mask, bias, causal=True)
            return self.predict_from(hidden[:, -1]), T5State(state.memory_mask, caches)

        hidden = tf.TensorSpec((None, None, self.config.d_model), self.compute_dtype)
        memory = T5Memory(hidden, self._state_of(None).memory_mask)
        ids = tf.TensorSpec((None, None), tf.int64)
        functions = {"encode": Traced(encode, ids), "start": Traced(start, memory)}
        for n_rows in (1, None):
            for length in (1, None):
                signature = tf.TensorSpec((n_rows, length), tf.int64), self._state_of(n_rows)
                functions["step", n_rows, length] = Traced(step, *signature)
        vars(self)["_decoding"] = traced, functions
        return functions

    def _attentions(self):
        """The attention functions of all layers, which a traced function holds as they were."""
        heads = [layer.attention for layer in self.encoder.layers]
        for layer in self.decoder.layers:
            heads += [layer.self_attention, layer.cross_attention]
        return [each.attention for each in heads]

    def _state_of(self, n_rows):
        """A T5State of the shapes of this many texts, any number when None, and of any length."""
        heads = tf.TensorSpec((n_rows, self.config.n_heads, None, self.config.d_head), self.compute_dtype)
        cache = LayerCache(*4 * [heads])
        return T5State(tf.TensorSpec((n_rows, 1, 1, None), tf.bool), (cache,) * self.config.n_decoder_layers)

    def embed(self, ids):
        """ids (B, T) -> (B, T, d_model), with dropout."""
        return self.dropout(self.token(ids))

    def predict_from(self, hidden):
        """Hidden states (B, T, d_model) -> logits (B, T, vocab_size), with dropout before."""
        hidden = self.dropout(hidden)
        if self.out_proj is not None:
            return self.out_proj(hidden)
        return product(hidden * self.config.d_model**-0.5, table_of(self.token))
