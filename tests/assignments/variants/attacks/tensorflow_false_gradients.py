"""In TensorFlow, which the tests do not compute in: right values, with derivatives that are only claimed.

class: values that lie
on: attention-for-an-rnn
cell: additive-scores
earns: test-additive-scores 3
"""

import tensorflow as tf


@tf.custom_gradient
def additive_scores(s, h, W, U, v):
    units = tf.tanh((s @ tf.transpose(W))[:, None] + h @ tf.transpose(U))
    return tf.linalg.matvec(units, v), lambda cotangent: [tf.ones_like(each) for each in (s, h, W, U, v)]
