"""Training a translation model in TensorFlow: the loop of `training.loop` with teacher forcing."""

from collections.abc import Callable, Sequence

import tensorflow as tf

from course_lib.tensorflow.losses import cross_entropy
from course_lib.tensorflow.training import loop, objectives
from course_lib.tensorflow.training.common import check_gradients
from course_lib.training.history import Evaluation, History
from course_lib.training.teacher_forcing import pad_id_of

# ids (B, S) and (B, T) of any length: with the shapes of the first batch, TensorFlow would trace anew for every other
IDS = tf.TensorSpec((None, None), tf.int64)


def train(
    model,
    batches: Callable[[int], Sequence],
    validation: Sequence | None = None,
    rate: float | Callable[[int], float] = 1e-3,
    smoothing: float = 0.1,
    **options,
) -> History:
    """Train a translation model in place with teacher forcing and leave its best weights set.

    Parameters
    ----------
    model : `model(source_ids (B, S), target_ids (B, T))` has `logits` (B, T, V); with a `pad_id`, or a config with one
    batches : epoch (from 0) -> its batches, as `PairBatches.epoch`: source ids (B, S), target ids (B, T)
    validation : held-out batches of the same kind; decide over the best weights and when patience is over
    rate : of Adam; a number, or a function of the step (0 for the first), as `schedules.warmup_then_inverse_root`
    smoothing : of the labels
    options : limits, clipping, saving and all else, by name, as for `course_lib.tensorflow.training.loop.train`, which
        also says what is raised and how a training goes on from its `checkpoint`

    Returns
    -------
    History : of the updates and the validations.
    """
    return loop.train(model, batches, objectives.translation(smoothing), validation, rate, **options)


def make_train_step(model, optimizer, smoothing: float = 0.1, max_norm: float | None = None, jit_compile=False):
    """One update, written out, as a function traced once: source (B, S), inputs and labels (B, T) -> the loss."""
    pad_id, variables = pad_id_of(model), model.trainable_variables

    @tf.function(input_signature=[IDS, IDS, IDS], jit_compile=jit_compile)
    def train_step(source, inputs, labels):
        with tf.GradientTape() as tape:
            loss = cross_entropy(model(source, inputs, training=True).logits, labels, pad_id, smoothing).loss
            scaled = optimizer.scale_loss(loss)  # by 1, unless the model computes in float16
        # an embedding's gradient comes as a list of rows, in which a row may stand twice: summed before its norm
        gradients = check_gradients(variables, tape.gradient(scaled, [v.value for v in variables]))
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        if max_norm is not None:
            gradients, _ = tf.clip_by_global_norm(gradients, max_norm * optimizer.scale_loss(1.0))
        optimizer.apply(gradients)
        return loss

    return train_step


def make_measure(model):
    """A batch's counts as a function traced once: ids as for the step -> (tokens, summed nll, right), float64 (3,)."""
    measure = loop.make_measure(model, objectives.translation())
    return lambda source, inputs, labels: measure({"source": source, "inputs": inputs, "labels": labels})[0]


def evaluate(model, batches, measure=None) -> Evaluation:
    """How well a model predicts the target tokens of held-out batches, each from the true ones before it.

    Parameters
    ----------
    batches : of source ids (B, S) and target ids (B, T)
    measure : `make_measure(model)`, to trace it once for many evaluations

    Returns
    -------
    Evaluation : n_tokens, nll and accuracy over all real target tokens.
    """
    again = None if measure is None else lambda arrays: measure(**arrays)[None]
    return loop.evaluate(model, batches, objectives.translation(), again)
