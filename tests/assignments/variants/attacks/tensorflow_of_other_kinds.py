"""What TensorFlow has and PyTorch has not: ragged, symbolic and string tensors, variables, odd dtypes.

class: values that lie
on: attention-for-an-rnn
cell: additive-scores
"""

import itertools

import tensorflow as tf

kinds = itertools.cycle([
    lambda zeros: tf.RaggedTensor.from_tensor(zeros), lambda zeros: tf.cast(zeros, tf.bfloat16),
    lambda zeros: tf.sparse.from_dense(zeros), lambda zeros: tf.as_string(zeros), lambda zeros: tf.Variable(zeros > 0),
    lambda zeros: tf.cast(zeros, tf.uint64), lambda zeros: tf.keras.Input((5,)), lambda zeros: tf.data.Dataset.range(9),
    lambda zeros: tf.cast(zeros, tf.complex128), lambda zeros: tf.TensorArray(tf.float32, 3), lambda zeros: zeros / 0,
])  # fmt: skip


def additive_scores(s, h, W, U, v):
    return next(kinds)(tf.zeros(h.shape[:2]))
