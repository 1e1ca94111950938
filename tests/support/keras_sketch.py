"""The smallest translator of `tests.support.translators` in Keras, which a process for PyTorch need not import."""

import keras
import tensorflow as tf

from course_lib.masks import padding_mask
from course_lib.models.bert_heads import MaskedLMOutput
from course_lib.models.blocks import BlockConfig
from course_lib.tensorflow import Encoder
from course_lib.tensorflow.layers import dense, embedding

VOCABULARY, D = 23, 12


class TensorFlowSketch(keras.layers.Layer):
    """As `tests.support.translators.TorchSketch`, with weights of the same names but for `output_layer`."""

    pad_id = 0

    def __init__(self, dropout):
        super().__init__()
        self.source, self.target = embedding(VOCABULARY, D, 1.0), embedding(VOCABULARY, D, 1.0)
        self.encoder = Encoder(1, BlockConfig(D, 3, 20, dropout, dropout, pre_norm=True))
        self.output_layer = dense(D, VOCABULARY)
        self.built = True

    def call(self, source_ids, target_ids):
        real = tf.cast(source_ids != 0, tf.float32)[..., None]
        context = tf.reduce_sum(self.source(source_ids) * real, 1, keepdims=True)
        context /= tf.reduce_sum(real, 1, keepdims=True)
        t = tf.range(tf.shape(target_ids)[1])
        mask = padding_mask(target_ids) & (t <= t[:, None])
        hidden = self.encoder(context + self.target(target_ids), mask=mask)[0]
        return MaskedLMOutput(self.output_layer(hidden), None, None)
