"""What models say of tokens and of spans, in TensorFlow: the functions of `course_lib.predictions.Predictions`."""

import tensorflow as tf

from course_lib.masks import padding_mask
from course_lib.predictions import Predictions, check_outputs
from course_lib.tensorflow.layers import at_least_float32

__all__ = ["answer", "find_answers", "span_logits", "tag", "token_logits"]


def reader(model, fields: dict[str, int], knows_segments: bool):
    """How `Predictions` reads a batch."""

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int64)] * (1 + knows_segments))  # one graph for all
    def forward(ids, *segments):
        further = {"segments": segments[0]} if knows_segments else {}
        output = model(ids, mask=padding_mask(ids, model.config.pad_id), training=False, **further)
        return [at_least_float32(logits) for logits in check_outputs(model, output, fields)]

    return lambda *inputs: [logits.numpy() for logits in forward(*inputs)]


predictions = Predictions(reader)
token_logits, span_logits = predictions.token_logits, predictions.span_logits
tag, find_answers, answer = predictions.tag, predictions.find_answers, predictions.answer
