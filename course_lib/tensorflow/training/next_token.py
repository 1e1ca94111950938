"""Training a translation model in TensorFlow: one compiled step with teacher forcing, validation, exact resumption."""

import time
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from course_lib.tensorflow.losses import cross_entropy
from course_lib.tensorflow.state import _parameters, get_state, set_state
from course_lib.tensorflow.training.classifier import check_model
from course_lib.training.arguments import (
    check_limit,
    check_max_norm,
    check_padding,
    check_validation,
    max_len_of,
    number,
    pair_of,
    settings_of,
    vocabularies_of,
)
from course_lib.training.bar import Bar
from course_lib.training.divergence import check_weights
from course_lib.training.history import Evaluation, History
from course_lib.training.limits import Limits
from course_lib.training.resume import part
from course_lib.training.run import Run
from course_lib.training.saving import VALIDATION, Saving
from course_lib.training.schedules import schedule_of
from course_lib.training.teacher_forcing import example_of, pad_id_of, teacher_forcing

# ids (B, S) and (B, T) of any length: with the shapes of the first batch, TensorFlow would trace anew for every other
IDS = tf.TensorSpec((None, None), tf.int64)


def make_optimizer(model):
    """Adam with beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9 (Vaswani et al. 2017, section 5.3); `train` sets the rate.

    For a model that computes in float16 it scales the loss, without which small gradients would vanish.
    """
    optimizer = keras.optimizers.Adam(learning_rate=0.0, beta_1=0.9, beta_2=0.98, epsilon=1e-9)
    if model.compute_dtype == "float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    optimizer.build(model.trainable_variables)
    return optimizer


def train(
    model,
    batches: Callable[[int], Sequence],
    validation: Sequence | None = None,
    rate: float | Callable[[int], float] = 1e-3,
    smoothing: float = 0.1,
    max_norm: float | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    seconds: float | None = None,
    validate_every: int | None = None,
    patience: int | None = None,
    checkpoint=None,
    save_every: float = 60.0,
    seed: int = 0,
    progress: bool = True,
    clock: Callable[[], float] = time.perf_counter,
    jit_compile: bool = False,
) -> History:
    """Train a translation model in place with teacher forcing and leave its best weights set.

    A training that was killed goes on exactly where it was saved: call this again, with a model of the same sizes and
    the same arguments. One that is over is loaded; with higher limits it goes on.

    Parameters
    ----------
    model : `model(source_ids (B, S), target_ids (B, T))` has `logits` (B, T, V); with a `pad_id`, or a config with one
    batches : epoch (from 0) -> its batches, as `PairBatches.epoch`: source ids (B, S), target ids (B, T)
    validation : held-out batches of the same kind; decide over the best weights and when patience is over
    rate : of Adam; a number, or a function of the step (0 for the first), as `schedules.warmup_then_inverse_root`
    smoothing : of the labels
    max_norm : the norm that the gradient of all parameters together is cut down to; None cuts nothing
    epochs, steps, seconds : limits, epochs and steps whole; whichever comes first. Validation and saving take no time
    validate_every : updates between two validations; None validates at the end of each epoch
    patience : validations without a better one until training stops; None never stops early
    checkpoint : a folder to save to and resume from
    save_every : seconds between two times of saving; infinity saves at the end alone
    seed : of dropout; the order of the batches is theirs
    progress : show a bar
    clock : what counts the seconds; `time.process_time`, with one thread, leaves out those in which other work had the
        processor, though work on its other cores may still slow it down
    jit_compile : compile with XLA, which does so once for every new (B, S, T); for batches of few different shapes

    Returns
    -------
    History : losses, validations, and times.

    Raises
    ------
    ValueError : no limit, a limit that is not positive, an epoch without batches, held-out ids that the model cannot
        read; weights in float16, frozen ones alone, or one that no gradient reaches; a LoRA together with a
        `checkpoint`.
    CheckpointError : `checkpoint` holds a training with another model, other settings, other data (those held out
        included), or other frozen parameters.
    FloatingPointError : the training diverged.
    """
    check_variables(model, saved=checkpoint is not None)
    check_max_norm(max_norm)
    check_limit("validate_every", validate_every)
    pad_id = pad_id_of(model)
    held_out = check_validation(validation, pad_id, max_len_of(model), patience, vocabularies_of(model))
    settings = settings_of(model) | {"pad_id": pad_id, "dtype": model.dtype_policy.name, "clock": clock}
    settings |= {"smoothing": number("smoothing", smoothing), "max_norm": max_norm, "seed": seed, VALIDATION: held_out}
    trainable = [name for name, variable, _ in _parameters(model) if getattr(variable, "trainable", True)]
    rate_at = schedule_of(rate)
    run = Run(batches, Limits(epochs, steps, seconds, patience), clock, pad_id)
    saving = Saving(checkpoint, save_every, settings, trainable, rate_at)
    with run, saving, Bar(progress) as bar:
        saved = saving.resume(run)
        optimizer = make_optimizer(model)
        train_step = make_train_step(model, optimizer, smoothing, max_norm, jit_compile)
        random_state = seeded(train_step, seed)
        measure = make_measure(model) if validation is not None else None
        if saved is not None:
            restore(model, optimizer, random_state, saved)
        try:
            for batch in run:  # until a limit is reached
                example, n_tokens = example_of(run.place(), batch, pad_id)
                optimizer.learning_rate.assign(rate_at(run.step))
                loss = train_step(*map(tf.convert_to_tensor, example))
                run.record(loss, n_tokens)
                if validation is not None and run.is_due(validate_every):
                    with run.paused():
                        run.validated(evaluate(model, validation, measure), lambda: get_state(model))
                if saving.is_due(run):
                    with run.paused():
                        saving.save(run, snapshot(model, optimizer, random_state))
                bar.show(run)
            if saving.is_due(run):  # interrupted between two updates
                saving.save(run, snapshot(model, optimizer, random_state))
            check_weights({variable.path: variable.numpy() for variable in model.trainable_variables}, run.kept())
        finally:
            if run.best is not None:
                set_state(model, run.best_weights)
    return run.history()


def check_variables(model, saved: bool) -> None:
    """Check the variables of a model before it is trained; `saved`: whether the training shall be resumable.

    Raises
    ------
    ValueError : weights in float16, or none to train; a LoRA in a training that is saved.
    """
    check_model(model)
    known = {id(variable) for _, variable, _ in _parameters(model)}
    merged = [variable.path for variable in model.trainable_variables if id(variable) not in known]
    if saved and merged:
        raise ValueError(
            "a checkpoint holds what `get_state` gives, which adds up a matrix and its LoRA, so that "
            f"{merged[0]} could not be trained on from there; train without a checkpoint, or without a LoRA"
        )


def check_gradients(variables, gradients) -> list:
    """The gradients of variables; ValueError that names those that have none."""
    unused = [v.path for v, gradient in zip(variables, gradients, strict=True) if gradient is None]
    if unused:
        raise ValueError(f"no gradient reaches {', '.join(unused)}: the logits do not depend on it; freeze it")
    return gradients


def make_train_step(model, optimizer, smoothing: float = 0.1, max_norm: float | None = None, jit_compile=False):
    """One update as a function traced once: (source (B, S), inputs (B, T), labels (B, T)) -> the loss, a tensor."""
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
    pad_id = pad_id_of(model)

    @tf.function(input_signature=[IDS, IDS, IDS])
    def measure(source, inputs, labels):
        logits = model(source, inputs, training=False).logits
        _, nll, n_tokens = cross_entropy(logits, labels, pad_id)
        right = tf.math.count_nonzero((tf.argmax(logits, -1) == labels) & (labels != pad_id))
        n_tokens, right = tf.cast(n_tokens, tf.float64), tf.cast(right, tf.float64)
        return tf.stack([n_tokens, tf.cast(nll, tf.float64) * n_tokens, right])

    return measure


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
    check_padding(batches, pad_id_of(model))
    measure = measure or make_measure(model)
    pairs = (pair_of(f"batch {i}", batch) for i, batch in enumerate(batches))
    counts = [measure(*map(tf.convert_to_tensor, teacher_forcing(pair))) for pair in pairs]
    return Evaluation.from_counts([count.numpy() for count in counts])


def seeded(step, seed: int) -> list:
    """Set every random generator that a compiled step draws from, and list their states.

    Each Keras dropout has a generator of its own, and functions without one share Keras's global one. A compiled
    step knows all the variables it uses, so none is forgotten, wherever it is kept.
    """
    traced = step.get_concrete_function()
    generators = [v for v in traced.variables if "seed_generator_state" in v.name]
    met = {id(handle): place for place, handle in enumerate(traced.captured_inputs)}
    generators.sort(key=lambda v: met[id(v.handle)])  # in the order of the forward pass; their names count on and on
    for i, state in enumerate(generators):
        state.assign(tf.cast([seed, i], state.dtype) * tf.constant([1, 1 << 20], state.dtype))
    return generators


def snapshot(model, optimizer, random_state) -> dict[str, np.ndarray]:
    """Weights, optimizer and random state as arrays by name; `restore` takes them back."""
    arrays = {f"model.{name}": value for name, value in get_state(model).items()}
    arrays |= {f"optimizer.{i}": v.numpy() for i, v in enumerate(optimizer.variables)}
    return arrays | {f"random.{i}": v.numpy() for i, v in enumerate(random_state)}


def restore(model, optimizer, random_state, arrays) -> None:
    """Set what `snapshot` kept; CheckpointError when the weights do not fit the model."""
    set_state(model, part(arrays, "model."))
    for prefix, variables in (("optimizer.", optimizer.variables), ("random.", random_state)):
        for i, variable in enumerate(variables):
            variable.assign(arrays[f"{prefix}{i}"])
