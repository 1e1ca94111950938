"""The Transformer as a translator (Vaswani et al. 2017, figure 1): embeddings, encoder, decoder, logits."""

import math
import operator

import keras
import tensorflow as tf

from course_lib.checks import check_length, check_pairs
from course_lib.masks import padding_mask
from course_lib.models.blocks import LayerCache
from course_lib.models.transformer import (
    TRANSFORMER,
    TransformerConfig,
    TransformerMemory,
    TransformerOutput,
    TransformerState,
)
from course_lib.tensorflow.attention import attention
from course_lib.tensorflow.checkpoint import Checkpoint
from course_lib.tensorflow.decoder import Decoder
from course_lib.tensorflow.decoding import NextLogits
from course_lib.tensorflow.encoder import Encoder
from course_lib.tensorflow.fitting import Fittable
from course_lib.tensorflow.kernels import Traced
from course_lib.tensorflow.layers import ExplicitMask, checked_ids, dense, embedding, lengths, table_of
from course_lib.tensorflow.positions import LearnedPositions, SinusoidalPositions


class Transformer(Checkpoint, Fittable, ExplicitMask, keras.Model):
    """Encoder and decoder with their embeddings; the masks are made inside, from `config.pad_id`.

    Fresh embeddings are normal with the standard deviation d_model^-0.5, so that multiplied by sqrt(d_model)
    (section 3.4) they are of the size of the sinusoids; linear layers start from Glorot's uniform distribution.
    Keras's own loop trains it too: `fit((source_ids, target_ids), labels)`, after `compile` with a loss of logits.

    Parameters
    ----------
    config : sizes
    attention : the attention function, `attention` or `fused_attention`
    """

    family, architecture = TRANSFORMER, "Transformer"

    def __init__(self, config: TransformerConfig, attention=attention):
        super().__init__()
        self.config = config
        std = config.d_model**-0.5
        self.source_embedding = embedding(config.source_vocab, config.d_model, std)
        self.target_embedding = None
        if not config.share_embeddings:
            self.target_embedding = embedding(config.target_vocab, config.d_model, std)
        self.source_position, self.target_position = _positions(config), _positions(config)
        self.dropout = keras.layers.Dropout(config.dropout)
        self.encoder = Encoder(config.n_layers, config.block, attention)
        self.decoder = Decoder(config.n_layers, config.block, attention)
        self.out_proj = None if config.tie_output else dense(config.d_model, config.target_vocab)
        vars(self)["_decoding"] = ((), {})  # past Keras, which would count the weights twice

    def call(self, source_ids, target_ids, return_layers=False, training=False):
        """Predict each target token from the true ones before it (teacher forcing).

        Parameters
        ----------
        source_ids : integers, shape (B, S)
        target_ids : integers, shape (B, T): the start token, then the target without its last token
        return_layers : also return every layer's hidden states and attention weights

        Returns
        -------
        TransformerOutput : logits (B, T, target_vocab), of the token after each; the rest None unless return_layers.

        Raises
        ------
        ValueError : ids outside the vocabulary, wrong shapes, sequences over max_len.
        TypeError : ids that are not integers.
        """
        source_ids = checked_ids("source_ids", source_ids, self.config.source_vocab)
        target_ids = checked_ids("target_ids", target_ids, self.config.target_vocab)
        check_pairs(source_ids.shape, target_ids.shape)
        memory_mask = padding_mask(source_ids, self.config.pad_id)
        encoded = self.encoder(self.embed_source(source_ids), mask=memory_mask, return_layers=return_layers)
        x, mask = self.embed_target(target_ids), padding_mask(target_ids, self.config.pad_id)
        decoded = self.decoder(
            x, encoded.last_hidden, mask=mask, memory_mask=memory_mask, return_layers=return_layers, causal=True
        )
        return TransformerOutput(self.predict_from(decoded.last_hidden), *encoded[1:], *decoded[1:])

    def next_logits(self, source_ids, cached: bool = True):
        """The logits of the next target token, for decoding: a `NextLogits` for the sources, integers (B, S)."""
        return NextLogits(self, source_ids, cached)

    def encode(self, source_ids):
        """Read the source: integers (B, S) -> TransformerMemory; errors as for the call."""
        ids = tf.cast(checked_ids("source_ids", source_ids, self.config.source_vocab), tf.int64)
        self._check_room(ids.shape[1])
        return self._compiled()["encode"](ids)

    def start(self, memory):
        """The state before the first target token, for a TransformerMemory."""
        return self._compiled()["start"](memory)

    def step(self, ids, state):
        """Read new target tokens, integers (B, n) -> logits (B, target_vocab) of the one after them, the next state."""
        ids = tf.cast(checked_ids("ids", ids, self.config.target_vocab), tf.int64)
        if None not in (ids.shape[1], state.mask.shape[-1]):
            self._check_room(state.mask.shape[-1] + ids.shape[1])
        # a function of its own for one token, and for one sentence: what TensorFlow knows, it need not look up
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
            mask = padding_mask(ids, self.config.pad_id)
            return TransformerMemory(self.encoder(self.embed_source(ids), mask=mask).last_hidden, mask)

        def start(memory):
            return TransformerState(memory.mask, memory.mask[..., :0], self.decoder.start(memory.hidden))

        def step(ids, state):
            mask = tf.concat([state.mask, padding_mask(ids, self.config.pad_id)], axis=-1)  # (B, 1, 1, t + n)
            x = self.embed_target(ids, tf.shape(mask)[-1] - lengths(ids)[1])
            x = tf.ensure_shape(x, (*ids.shape, self.config.d_model))
            hidden, caches = self.decoder.step(x, state.caches, mask, state.memory_mask, causal=True)
            return self.predict_from(hidden[:, -1]), TransformerState(state.memory_mask, mask, caches)

        hidden = tf.TensorSpec((None, None, self.config.d_model), self.compute_dtype)
        memory = TransformerMemory(hidden, self._state_of(None).mask)
        functions = {"encode": Traced(encode, _ids(None, None)), "start": Traced(start, memory)}
        for n_rows in (1, None):
            for length in (1, None):
                signature = _ids(n_rows, length), self._state_of(n_rows)
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
        """A TransformerState of the shapes of this many sentences, any number when None, and of any length."""
        mask = tf.TensorSpec((n_rows, 1, 1, None), tf.bool)
        n_heads = self.config.n_kv_heads or self.config.n_heads
        heads = (n_rows, n_heads, None, self.config.d_model // self.config.n_heads)
        cache = LayerCache(*4 * [tf.TensorSpec(heads, self.compute_dtype)])
        return TransformerState(mask, mask, (cache,) * self.config.n_layers)

    def _check_room(self, length):
        if self.target_position is not None:  # the compiled functions do not know the length
            check_length(length, self.config.max_len)

    def embed_source(self, ids):
        """ids (B, S) -> (B, S, d_model): embeddings times sqrt(d_model), with positions and dropout."""
        return self.dropout(self._placed(self.source_embedding(ids), self.source_position))

    def embed_target(self, ids, first=0):
        """ids (B, T), the tokens from place `first` on -> (B, T, d_model), as `embed_source`."""
        table = self.source_embedding if self.target_embedding is None else self.target_embedding
        return self.dropout(self._placed(table(ids), self.target_position, first))

    def predict_from(self, hidden):
        """Hidden states (B, T, d_model) -> logits (B, T, target_vocab)."""
        if self.out_proj is not None:
            return self.out_proj(hidden)
        table = self.source_embedding if self.target_embedding is None else self.target_embedding
        return tf.matmul(hidden, tf.cast(table_of(table), hidden.dtype), transpose_b=True)

    def _placed(self, embedded, position, first=0):
        embedded = embedded * math.sqrt(self.config.d_model)
        return embedded if position is None else position(embedded, first=first)


def _ids(n_rows, length):
    return tf.TensorSpec((n_rows, length), tf.int64)


def load_translator(name_or_folder="translator-es-en", attention=attention):
    """A trained `Translator`, text in and text out: `load_translator()("Hace frío.")`.

    Its model is that of `Transformer.from_pretrained`, which opens the folder without the tokenizers.

    Parameters
    ----------
    name_or_folder : "translator-es-en", Spanish to English, or a folder that `save_translator` wrote
    attention : the attention function, `attention` or `fused_attention`

    Raises
    ------
    FileNotFoundError : neither a name nor a folder, or a folder that lacks a file.
    CheckpointError : a damaged file, or weights that do not fit the model.
    """
    from course_lib.decoding.translator import open_translator  # here: it needs packages that models do not

    return open_translator(Transformer, name_or_folder, attention)


def _positions(config):
    if config.positions == "sinusoidal":
        return SinusoidalPositions(config.d_model, config.max_len)
    return LearnedPositions(config.d_model, config.max_len) if config.positions == "learned" else None
