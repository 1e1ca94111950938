"""What a Decision Transformer minimises, in TensorFlow: an objective as those of `objectives.py`."""

import tensorflow as tf

from course_lib.tensorflow.layers import at_least_float32
from course_lib.tensorflow.training.objectives import scored
from course_lib.training import reading
from course_lib.training.objective import Objective, Part, field_of


def actions() -> Objective:
    """The action of each real step, from its return, its state and the steps before (Chen et al. 2021, section 3).

    The mean squared error of actions that are numbers, over their features; the cross-entropy of those that are ids,
    for a model with action_tanh=False. The model's predictions of states and returns are not trained.

    Batches: `TrajectoryBatch`; `model(states, actions, returns, times, real=)` has `actions` (B, T, d_action), `states`
    and `returns`. Of numbers, an evaluation has the mean squared error as `nll`, and no accuracy, but NaN.
    """

    return Objective("actions", reading.trajectories, action_losses, counted="real step")


def action_losses(model, states, actions, returns, times, real, labels=None, training=False):
    """The losses of `actions` for one batch."""
    output = model(states, actions, returns, times, real=real, training=training)
    predicted = field_of(output, "actions", model)
    part = squared(predicted, actions, real) if labels is None else scored(predicted, labels)
    # the loop refuses a weight that no gradient reaches; so these have one, of zeros
    untrained = 0.0 * at_least_float32(tf.reduce_sum(output.states) + tf.reduce_sum(output.returns))
    return [part._replace(loss=part.loss + untrained)]


def squared(predicted, wanted, real) -> Part:
    """The mean squared error of numbers (B, T, d) where `real` (B, T) is True, as a part of a loss."""
    predicted = at_least_float32(predicted)
    errors = tf.reduce_mean((predicted - tf.cast(wanted, predicted.dtype)) ** 2, -1)  # (B, T)
    n = tf.math.count_nonzero(real)
    loss = tf.reduce_sum(tf.where(real, errors, 0.0)) / tf.cast(tf.maximum(n, 1), errors.dtype)
    return Part(loss, loss, n, None, None)
