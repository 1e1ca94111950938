"""Whisper (Radford et al. 2023, section 2.2): an encoder of sound and a decoder that writes down what was said."""

import operator

import keras
import tensorflow as tf

from course_lib.checks import check_length, check_pairs
from course_lib.models.blocks import LayerCache
from course_lib.models.whisper import (
    KERNEL,
    WHISPER,
    WhisperConfig,
    WhisperMemory,
    WhisperOutput,
    WhisperState,
    check_config,
    check_sounds,
)
from course_lib.tensorflow.attention import attention
from course_lib.tensorflow.checkpoint import Checkpoint
from course_lib.tensorflow.decoder import Decoder
from course_lib.tensorflow.decoding import NextLogits
from course_lib.tensorflow.encoder import Encoder
from course_lib.tensorflow.fitting import Fittable
from course_lib.tensorflow.kernels import Traced
from course_lib.tensorflow.layers import ExplicitMask, checked_ids, embedding, gelu, product, table_of
from course_lib.tensorflow.models.bert import initialise
from course_lib.tensorflow.positions import LearnedPositions, SinusoidalPositions
from course_lib.tensorflow.serialization import Portable


class SoundConvolution(Portable, keras.layers.Layer):
    """A sum over a window of 3 frames and all features, at every frame or at every second; beyond the ends are zeros.

    Fresh weights are normal with the standard deviation `std`.
    """

    def __init__(self, d_in: int, d_out: int, stride: int = 1, std: float = 0.02):
        super().__init__()
        self.stride = stride
        start = keras.initializers.RandomNormal(stddev=std)
        self.weight = self.add_weight(shape=(d_out, d_in, KERNEL), initializer=start, name="weight")
        self.bias = self.add_weight(shape=(d_out,), initializer="zeros", name="bias")

    def call(self, x):
        """(B, F, d_in) -> (B, ceil(F / stride), d_out)."""
        x = tf.pad(x, ((0, 0), (1, 1), (0, 0)))  # "SAME" with a stride would pad the end alone
        weight = tf.transpose(tf.cast(self.weight, x.dtype), (2, 1, 0))
        return tf.nn.conv1d(x, weight, self.stride, "VALID") + tf.cast(self.bias, x.dtype)


class Whisper(Checkpoint, Fittable, ExplicitMask, keras.Model):
    """Two convolutions, an encoder that reads the whole sound, a decoder that attends to it, the token table as output.

    The second convolution halves the number of frames. The encoder adds sinusoids of the place, the decoder learned
    positions; both normalise before each sub-layer and at their end; keys have no bias. The output matrix is the token
    table.

    No part of a sound is hidden: whoever puts sounds of several lengths into a batch fills up with silence, which is
    read too. A target's padding stands at its end, where no real token sees it.
    Keras's own loop trains it too: `fit((features, target_ids), labels)`, after `compile` with a loss of logits.

    Parameters
    ----------
    config : sizes
    attention : the attention function, `attention` or `fused_attention`
    """

    family, architecture = WHISPER, "WhisperForConditionalGeneration"

    def __init__(self, config: WhisperConfig, attention=attention):
        super().__init__()
        self.config = check_config(config)
        self.conv1 = SoundConvolution(config.n_mels, config.d_model, 1, config.init_std)
        self.conv2 = SoundConvolution(config.d_model, config.d_model, 2, config.init_std)
        self.sound_position = SinusoidalPositions(config.d_model, config.max_source_len, halves=True)
        self.dropout = keras.layers.Dropout(config.dropout)
        self.encoder = Encoder(config.n_layers, config.block, attention)
        self.token = embedding(config.vocab_size, config.d_model, config.init_std)
        self.position = LearnedPositions(config.d_model, config.max_len, config.init_std)
        self.decoder = Decoder(config.n_decoder_layers, config.decoder_block, attention)
        initialise(self, config.init_std)
        vars(self)["_decoding"] = ((), {})  # past Keras, which would count the weights twice

    def call(self, features, target_ids, return_layers=False, training=False):
        """Predict each target token from the sound and the true tokens before it (teacher forcing).

        Parameters
        ----------
        features : log-mel spectrograms, shape (B, n_mels, F), as `course_lib.audio.log_mel` makes them
        target_ids : integers, shape (B, T): `config.start_id`, then the target without its last token
        return_layers : also return every layer's hidden states and attention weights

        Returns
        -------
        WhisperOutput : logits (B, T, vocab_size), of the token after each; the rest None unless return_layers.

        Raises
        ------
        ValueError : ids outside the vocabulary (when run eagerly; a compiled function cannot look), wrong shapes,
            sounds over max_frames, targets over max_len.
        TypeError : ids that are not integers, features that are not floating point.
        """
        features = self._checked(features)
        target_ids = checked_ids("target_ids", target_ids, self.config.vocab_size)
        check_pairs(features.shape, target_ids.shape)
        encoded = self.encoder(self.embed_source(features), return_layers=return_layers)
        x = self.embed_target(target_ids)
        decoded = self.decoder(x, encoded.last_hidden, return_layers=return_layers, causal=True)
        return WhisperOutput(self.predict_from(decoded.last_hidden), *encoded[1:], *decoded[1:])

    def next_logits(self, features, cached: bool = True):
        """The logits of the next target token, for decoding: a `NextLogits` for the sounds (B, n_mels, F)."""
        return NextLogits(self, features, cached)

    def encode(self, features):
        """Read the sound: (B, n_mels, F) -> WhisperMemory; errors as for the call."""
        return self._compiled()["encode"](tf.cast(self._checked(features), self.compute_dtype))

    def start(self, memory):
        """The state before the first target token, for a WhisperMemory."""
        return self._compiled()["start"](memory)

    def step(self, ids, state):
        """Read new target tokens, integers (B, n) -> logits (B, vocab_size) of the one after them, the next state."""
        ids = tf.cast(checked_ids("ids", ids, self.config.vocab_size), tf.int64)
        read = state.caches[0].keys.shape[2]
        if None not in (ids.shape[1], read):  # the compiled functions do not know the length
            check_length(read + ids.shape[1], self.config.max_len)
        # a function of its own for one token, and for one sound: what TensorFlow knows, it need not look up
        return self._compiled()["step", *(1 if n == 1 else None for n in ids.shape)](ids, state)

    def _compiled(self) -> dict:
        """The functions of decoding, each traced once, for all batches and lengths or for those of one.

        What changes the weights, such as `enable_lora` and `quantize`, makes them anew, and so does another attention
        function in a layer.
        """
        (known, functions), traced = self._decoding, [*self.weights, *self._attentions()]
        if len(known) == len(traced) and all(map(operator.is_, known, traced)):
            return functions

        def encode(features):
            return WhisperMemory(self.encoder(self.embed_source(features)).last_hidden)

        def start(memory):
            return WhisperState(self.decoder.start(memory.hidden))

        def step(ids, state):
            x = self.embed_target(ids, first=tf.shape(state.caches[0].keys)[2])
            x = tf.ensure_shape(x, (*ids.shape, self.config.d_model))
            hidden, caches = self.decoder.step(x, state.caches, causal=True)
            return self.predict_from(hidden[:, -1]), WhisperState(caches)

        features = tf.TensorSpec((None, self.config.n_mels, None), self.compute_dtype)
        memory = WhisperMemory(tf.TensorSpec((None, None, self.config.d_model), self.compute_dtype))
        functions = {"encode": Traced(encode, features), "start": Traced(start, memory)}
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
        """A WhisperState of the shapes of this many sounds, any number when None, and of any length."""
        n_heads = self.config.n_decoder_heads
        heads = tf.TensorSpec((n_rows, n_heads, None, self.config.d_model // n_heads), self.compute_dtype)
        return WhisperState((LayerCache(*4 * [heads]),) * self.config.n_decoder_layers)

    def embed_source(self, features):
        """The input of the encoder: (B, n_mels, F) -> (B, ceil(F / 2), d_model), with dropout."""
        x = gelu(self.conv1(tf.transpose(features, (0, 2, 1))))
        return self.dropout(self.sound_position(gelu(self.conv2(x))))

    def embed_target(self, ids, first=0):
        """Tokens with their positions, from place `first` on: ids (B, T) -> (B, T, d_model), with dropout."""
        return self.dropout(self.position(self.token(ids), first=first))

    def predict_from(self, hidden):
        """Hidden states (B, T, d_model) -> logits (B, T, vocab_size)."""
        return product(hidden, table_of(self.token))

    def _checked(self, features):
        features = tf.convert_to_tensor(features)
        check_sounds(self.config, features.shape, features.dtype.name)
        return features

    def _inputs_signature(self):
        return (
            keras.InputSpec("float32", (None, self.config.n_mels, None), name="features"),
            keras.InputSpec("int64", (None, None), name="target_ids"),
        )
