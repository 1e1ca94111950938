"""The Transformer as a translator (Vaswani et al. 2017, figure 1): embeddings, encoder, decoder, logits."""

import math
import operator

import keras
import tensorflow as tf

from course_lib.checks import check_continuation, check_length, check_pairs
from course_lib.config import TransformerConfig
from course_lib.masks import padding_mask
from course_lib.outputs import LayerCache, TransformerOutput
from course_lib.tensorflow.attention import attention
from course_lib.tensorflow.decoder import Decoder
from course_lib.tensorflow.fitting import Fittable
from course_lib.tensorflow.layers import ExplicitMask, at_least_float32, checked_ids, dense, embedding, table_of
from course_lib.tensorflow.positional import LearnedPositions, SinusoidalPositions, rotary
from course_lib.tensorflow.state import get_state, set_state
from course_lib.tensorflow.transformer import Encoder
from course_lib.translate import Translator, read_translator

IDS = tf.TensorSpec((None, None), tf.int64)


class Transformer(Fittable, ExplicitMask, keras.Model):
    """Encoder and decoder with their embeddings; the masks are made inside, from `config.pad_id`.

    Fresh embeddings are normal with the standard deviation d_model^-0.5, so that multiplied by sqrt(d_model)
    (section 3.4) they are of the size of the sinusoids; linear layers start from Glorot's uniform distribution.
    Keras's own loop trains it too: `fit((source_ids, target_ids), labels)`, after `compile` with a loss of logits.

    Parameters
    ----------
    config : sizes
    attention : the attention function, `attention` or `fused_attention`
    """

    _get_state = get_state  # for what asks any framework's model

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
        to_itself = rotary(attention) if config.positions == "rotary" else attention
        sizes = (config.n_layers, config.d_model, config.n_heads, config.d_ff, config.dropout)
        sizes += (config.attention_dropout, config.activation, config.pre_norm, config.norm_eps)
        self.encoder = Encoder(*sizes, to_itself)
        self.decoder = Decoder(*sizes, attention, to_itself)
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
        mask = self.target_mask(target_ids)
        x, memory = self.embed_target(target_ids), encoded.last_hidden
        decoded = self.decoder(x, memory, mask=mask, memory_mask=memory_mask, return_layers=return_layers)
        return TransformerOutput(self.predict_from(decoded.last_hidden), *encoded[1:], *decoded[1:])

    def next_logits(self, source_ids, cached: bool = True):
        """The logits of the next target token, for decoding: a `NextLogits` for the sources, integers (B, S)."""
        return NextLogits(self, source_ids, cached)

    def embed_source(self, ids):
        """ids (B, S) -> (B, S, d_model): embeddings times sqrt(d_model), with positions and dropout."""
        return self.dropout(self._placed(self.source_embedding(ids), self.source_position))

    def embed_target(self, ids):
        """ids (B, T) -> (B, T, d_model), as `embed_source`."""
        table = self.source_embedding if self.target_embedding is None else self.target_embedding
        return self.dropout(self._placed(table(ids), self.target_position))

    def target_mask(self, ids, n_queries: int | None = None):
        """Neither the future nor padding: ids (B, T) -> boolean (B, 1, n_queries, T) of the last ones (None: all)."""
        s = tf.range(tf.shape(ids)[1])
        t = s if n_queries is None else s[-n_queries:]
        return padding_mask(ids, self.config.pad_id) & (s <= t[:, None])

    def predict_from(self, hidden):
        """Hidden states (B, T, d_model) -> logits (B, T, target_vocab)."""
        if self.out_proj is not None:
            return self.out_proj(hidden)
        table = self.source_embedding if self.target_embedding is None else self.target_embedding
        return tf.matmul(hidden, tf.cast(table_of(table), hidden.dtype), transpose_b=True)

    def _placed(self, embedded, position):
        embedded = embedded * math.sqrt(self.config.d_model)
        return embedded if position is None else position(embedded)


class NextLogits:
    """The logits of the next token: called with growing ids (N, t), it reads what is new and keeps the rest.

    The start token comes first. Row i belongs to source i until `reorder` says otherwise.

    Parameters
    ----------
    model : a `Transformer`
    source_ids : integers, shape (B, S)
    cached : False computes all tokens anew at every call, the slow way to the same logits
    """

    def __init__(self, model, source_ids, cached: bool = True):
        self.model, self.n_read = model, 0
        ids = tf.cast(checked_ids("source_ids", source_ids, model.config.source_vocab), tf.int64)
        _check_room(ids, model.source_position)
        self.functions = _compiled(model)
        self.memory_mask = padding_mask(ids, model.config.pad_id)
        self.memory = self.functions["encode"](ids, self.memory_mask)
        self.caches = model.decoder.start(self.memory) if cached else None

    def __call__(self, ids):
        """ids (N, t) -> NumPy array (N, target_vocab); ValueError unless they continue what was read."""
        ids = tf.convert_to_tensor(ids)
        check_continuation(ids.shape, self.memory.shape[0], self.n_read)
        ids = tf.cast(checked_ids("ids", ids, self.model.config.target_vocab), tf.int64)
        _check_room(ids, self.model.target_position)
        if self.caches is None:
            logits = self.functions["decode"](ids, self.memory, self.memory_mask)
        else:
            new = tf.constant(ids.shape[1] - self.n_read)
            logits, self.caches = self.functions["step"](ids, new, self.caches, self.memory_mask)
        self.n_read = ids.shape[1]
        return logits.numpy()

    def reorder(self, rows):
        """Row i of the next call continues row rows[i] of the last one: integers (N,), repeated or left out at will."""
        self.memory, self.memory_mask = tf.gather(self.memory, rows), tf.gather(self.memory_mask, rows)
        if self.caches is not None:
            self.caches = tuple(LayerCache(*(tf.gather(part, rows) for part in cache)) for cache in self.caches)


def _check_room(ids, position):
    if position is not None:  # the compiled functions do not know the length
        check_length(ids.shape[1], position.max_len)


def _compiled(model) -> dict:
    """The model's functions for decoding, each traced once for all batches and lengths, kept with the model.

    What changes its weights, such as `enable_lora` and `quantize`, makes them anew.
    """
    weights, functions = model._decoding
    if len(weights) == len(model.weights) and all(map(operator.is_, weights, model.weights)):
        return functions
    config, dtype = model.config, model.compute_dtype
    n_heads, d_head = config.n_heads, config.d_model // config.n_heads
    memory, mask = tf.TensorSpec((None, None, config.d_model), dtype), tf.TensorSpec((None, 1, 1, None), tf.bool)
    caches = (LayerCache(*4 * [tf.TensorSpec((None, n_heads, None, d_head), dtype)]),) * config.n_layers

    @tf.function(input_signature=[IDS, mask])
    def encode(ids, memory_mask):
        return model.encoder(model.embed_source(ids), mask=memory_mask).last_hidden

    @tf.function(input_signature=[IDS, memory, mask])
    def decode(ids, memory, memory_mask):
        x, mask = model.embed_target(ids), model.target_mask(ids)
        hidden = model.decoder(x, memory, mask=mask, memory_mask=memory_mask).last_hidden
        return at_least_float32(model.predict_from(hidden[:, -1]))

    @tf.function(input_signature=[IDS, tf.TensorSpec((), tf.int32), caches, mask])
    def step(ids, new, caches, memory_mask):
        x, mask = model.embed_target(ids)[:, -new:], model.target_mask(ids, new)
        hidden, caches = model.decoder.step(x, caches, mask, memory_mask)
        return at_least_float32(model.predict_from(hidden[:, -1])), caches

    functions = {"encode": encode, "decode": decode, "step": step}
    vars(model)["_decoding"] = model.weights, functions
    return functions


def load_translator(name_or_folder="tatoeba-es-en", attention=attention) -> Translator:
    """A trained translator, text in and text out: `load_translator()("Hace frío.")`.

    Parameters
    ----------
    name_or_folder : "tatoeba-es-en", Spanish to English, or a folder that `save_translator` wrote
    attention : the attention function, `attention` or `fused_attention`

    Raises
    ------
    FileNotFoundError : neither a name nor a folder, or a folder that lacks a file.
    CheckpointError : a damaged file, or weights that do not fit the model.
    """
    files = read_translator(name_or_folder)
    model = Transformer(files.config, attention)
    set_state(model, files.weights)
    return Translator(model, files.source_tokenizer, files.target_tokenizer)


def _positions(config):
    if config.positions == "sinusoidal":
        return SinusoidalPositions(config.d_model, config.max_len)
    return LearnedPositions(config.d_model, config.max_len) if config.positions == "learned" else None
