"""BERT (Devlin et al. 2018): embeddings and the encoder with its pooler; its heads stand in `bert_heads.py`."""

import keras
import tensorflow as tf

from course_lib.checks import check_mask_of_ids, check_segments
from course_lib.models.bert import BERT, BertConfig, BertOutput
from course_lib.models.config_json import check_config
from course_lib.tensorflow.attention import attention
from course_lib.tensorflow.checkpoint import Checkpoint
from course_lib.tensorflow.encoder import Encoder
from course_lib.tensorflow.fitting import Fittable
from course_lib.tensorflow.layers import (
    ExplicitMask,
    checked_ids,
    dense,
    embedding,
    layer_norm,
)
from course_lib.tensorflow.positions import LearnedPositions
from course_lib.tensorflow.serialization import Portable


class BertEmbeddings(Portable, keras.layers.Layer):
    """Token + segment + learned position, then a layer normalisation (section 3, figure 2)."""

    def __init__(self, config: BertConfig):
        super().__init__()
        self.config = config
        self.token = embedding(config.vocab_size, config.d_embedding, config.init_std)
        self.segment = None
        if config.segment_table:
            self.segment = embedding(config.n_segments, config.d_embedding, config.init_std)
        self.position = LearnedPositions(config.d_embedding, config.max_len, config.init_std)
        self.norm = layer_norm(config.d_embedding, config.norm_eps)
        self.dropout = keras.layers.Dropout(config.dropout)

    def call(self, ids, segments=None):
        """ids and segments (B, T) -> (B, T, d_embedding)."""
        ids = checked_ids("ids", ids, self.config.vocab_size)
        segments = tf.zeros_like(ids) if segments is None else checked_ids("segments", segments, self.config.n_segments)
        check_segments(segments.shape, ids.shape)
        x = self.token(ids)
        if self.segment is not None:
            x = x + self.segment(segments)
        return self.dropout(self.norm(self.add_positions(x, ids)))

    def add_positions(self, x, ids):
        """x (B, T, d_embedding) of the tokens ids (B, T) -> x + their positions' vectors; ValueError beyond max_len."""
        return self.position(x)


class BertModel(Checkpoint, Fittable, ExplicitMask, keras.Model):
    """The encoder with its pooler.

    Parameters
    ----------
    config : sizes
    attention : the attention function, `attention` or `fused_attention`
    pooler : whether to build the pooler, tanh of a linear layer on the first token
    """

    family = BERT
    architecture = "BertModel"
    Embeddings, Encoder = BertEmbeddings, Encoder  # other members of the family have others

    def __init__(self, config: BertConfig, attention=attention, pooler: bool = True):
        super().__init__()
        self.config = check_config(config, self.family)
        self.embeddings = self.Embeddings(config)
        self.encoder = self.Encoder(**config.for_encoder, attention=attention)
        self.pooler = dense(config.d_model, config.d_model) if pooler else None
        initialise(self, config.init_std)

    def call(self, ids, mask=None, segments=None, return_layers=False, training=False):
        """Encode a batch.

        Parameters
        ----------
        ids : integers, shape (B, T)
        mask : boolean, broadcastable to (B, H, T, T), True = may attend; see `masks.padding_mask`
        segments : 0 for the first sentence and 1 for the second, shape (B, T); all 0 when None
        return_layers : also return every layer's hidden states and attention weights

        Returns
        -------
        BertOutput : last_hidden (B, T, d_model), pooled (B, d_model), hidden, weights.

        Raises
        ------
        ValueError : ids outside the vocabulary (when run eagerly; a compiled function cannot look), a sequence
            over max_len, wrong shapes.
        TypeError : ids that are not integers, a mask that is not boolean.
        """
        x = self.embeddings(ids, segments=segments)
        check_mask_of_ids(mask, x.shape[:2])
        last_hidden, hidden, weights = self.encoder(x, mask=mask, return_layers=return_layers)
        pooled = None if self.pooler is None else tf.tanh(self.pooler(last_hidden[:, 0]))
        return BertOutput(last_hidden, pooled, hidden, weights)


def initialise(module, std: float):
    """Draw the matrices of a module and of its parts afresh: BERT starts from a narrow normal distribution."""
    start = keras.initializers.RandomNormal(stddev=std)
    for layer in module._flatten_layers():  # embeddings start so by themselves
        if isinstance(layer, keras.layers.Dense):
            layer.kernel.assign(start(layer.kernel.shape))
