"""The training loop in TensorFlow, one for every task: limits, validation, accumulation, saving and exact resumption.

A model of your own needs an objective that knows its batches. Here one of fifteen lines learns what token comes next:

>>> import keras, numpy as np
>>> from types import SimpleNamespace
>>> from course_lib.batches.texts import Batches
>>> from course_lib.tensorflow.training import loop, objectives
>>> class Bigram(keras.Model):
...     def __init__(self, n):
...         super().__init__()
...         self.table = keras.layers.Embedding(n, n)
...         self.table.build()
...     def call(self, ids, training=False):
...         return SimpleNamespace(logits=self.table(ids))
>>> texts = [np.arange(start, start + 6) % 10 for start in range(10)]  # 0 1 2 3 4 5, 1 2 3 4 5 6, ...
>>> model, held_out = Bigram(10), Batches(texts, 5)
>>> history = loop.train(model, lambda epoch: Batches(texts, 5, seed=epoch), objectives.next_token(), held_out,
...                      rate=0.1, epochs=30, progress=False)
>>> print(loop.evaluate(model, held_out, objectives.next_token()).accuracy, history.stopped_by)
1.0 epochs
"""

import time
from collections.abc import Callable, Sequence

import tensorflow as tf

from course_lib.batches.texts import IGNORED
from course_lib.checks import check_count
from course_lib.tensorflow.training.common import check_gradients, check_variables
from course_lib.tensorflow.training.freezing import trained
from course_lib.tensorflow.training.optimizers import adam, check_optimizer, described, own_rate, ready, set_rate
from course_lib.tensorflow.training.snapshots import restore, seeded, set_weights, snapshot, weights_of
from course_lib.training.arguments import check_limit, check_max_norm, check_validation, settings_of
from course_lib.training.bar import Bar
from course_lib.training.divergence import check_weights
from course_lib.training.history import Evaluation, History, JointEvaluation
from course_lib.training.limits import Limits
from course_lib.training.objective import Objective, check_objective, evaluation_of, shares
from course_lib.training.run import Run
from course_lib.training.saving import VALIDATION, Saving
from course_lib.training.schedules import schedule_of


def train(
    model,
    batches: Callable[[int], Sequence],
    objective: Objective,
    validation: Sequence | None = None,
    rate: float | Callable[[int], float] | None = None,
    optimizer=None,
    max_norm: float | None = None,
    accumulate: int = 1,
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
    """Train a model in place and leave its best weights set.

    A training that was killed goes on exactly where it was saved: call this again, with a model of the same sizes and
    the same arguments. One that is over is loaded; with higher limits it goes on.

    A model that is built with the policy "mixed_bfloat16" or "mixed_float16" trains in mixed precision.

    Parameters
    ----------
    model : what the objective calls; for texts, its call names `mask`, and it or its config has a `pad_id`
    batches : epoch (from 0) -> its batches, a sequence of what the objective reads; or what has such a method `epoch`
    objective : one of `training.objectives`, or an `Objective` of your own
    validation : held-out batches of the same kind; decide over the best weights and when patience is over
    rate : a number, or a function of the step (0 for the first), as `schedules.warmup_then_inverse_root`; None is the
        optimizer's own, or 1e-3 for one of the course
    optimizer : of all weights that are not frozen, such as `optimizers.adamw(model)`; None is `optimizers.adam(model)`
    max_norm : the norm that the gradient of all parameters together is cut down to; None cuts nothing
    accumulate : batches whose gradients make one update, each weighted by how many predictions it counts, so that n
        small ones give the update of one large one, but for `contrastive`, which tells each text from those of its
        batch alone; the last update of an epoch may have fewer
    epochs, steps, seconds : limits, epochs and steps whole; whichever comes first. Validation and saving take no time
    validate_every : updates between two validations; None validates at the end of each epoch. The end of a training is
        validated, too, so that one that goes on with higher limits may have a better best than one that had them
    patience : validations without a better one until training stops; None never stops early
    checkpoint : a folder to save to and resume from
    save_every : seconds between two times of saving; infinity saves at the end alone
    seed : of dropout; the order of the batches is theirs
    progress : show a bar
    clock : what counts the seconds; `time.process_time`, with one thread, leaves out those in which other work had the
        processor, though work on its other cores may still slow it down
    jit_compile : compile with XLA, which does so once for every new shape of a batch; for batches of few different
        ones, and objectives whose shapes do not depend on the data, as `masked_lm(blanks_only=False)`

    Returns
    -------
    History : losses, validations, and times.

    Raises
    ------
    ValueError : no limit, a limit that is not positive, an epoch without batches, a batch or held-out data that the
        objective refuses, weights of 16 bits, frozen ones alone, or one that no gradient reaches; an optimizer of
        another model, of a part of its weights, or with a schedule; a LoRA together with a `checkpoint`.
    TypeError : what is no objective, no optimizer, or no batch.
    CheckpointError : `checkpoint` holds a training with another model, other settings, other data (those held out
        included), or other frozen parameters.
    FloatingPointError : the training diverged.
    """
    check_variables(model, saved=checkpoint is not None)
    check_objective(objective)
    check_max_norm(max_norm)
    check_limit("validate_every", validate_every)
    check_count("accumulate", accumulate)
    check_optimizer(model, optimizer)
    own = own_rate(optimizer)
    pad_id = objective.pad_id(model)
    held_out = check_validation(validation, objective, model, patience)
    settings = settings_of(model) | {"pad_id": pad_id, "dtype": model.dtype_policy.name, "clock": clock}
    settings |= {"objective": objective.name, "optimizer": described(optimizer), "accumulate": accumulate}
    settings |= objective.settings | {"max_norm": max_norm, "seed": seed, VALIDATION: held_out}
    rate_at = schedule_of(rate, own)
    run = Run(batches, Limits(epochs, steps, seconds, patience), clock, pad_id, accumulate)
    saving = Saving(checkpoint, save_every, settings, trained(model), rate_at)
    optimizer = adam(model) if optimizer is None else ready(model, optimizer)
    with run, saving, Bar(progress) as bar:
        saved = saving.resume(run)
        train_step = TrainStep(model, optimizer, objective, max_norm, accumulate, jit_compile)
        random_state = train_step.seeded(run.coming(), seed)
        measure = make_measure(model, objective)
        if saved is not None:
            restore(model, optimizer, random_state, saved)
        try:
            for batches in run.updates():  # until a limit is reached
                updates = objective.updates(model, batches)
                set_rate(optimizer, rate_at(run.step))
                loss = train_step(updates)
                run.record(loss, sum(update.counts[0] for update in updates))
                if validation is not None and run.is_due(validate_every):
                    with run.paused():
                        run.validated(evaluate(model, validation, objective, measure), lambda: weights_of(model))
                if saving.is_due(run):
                    with run.paused():
                        saving.save(run, snapshot(model, optimizer, random_state))
                bar.show(run)
            if saving.is_due(run):  # interrupted between two updates
                saving.save(run, snapshot(model, optimizer, random_state))
            check_weights({variable.path: variable.numpy() for variable in model.trainable_variables}, run.kept())
        finally:
            if run.best is not None:
                set_weights(model, run.best_weights)
    return run.history()


class TrainStep:
    """One update from one batch or several, compiled: forward, loss, gradient for each, then clip and step.

    Parameters
    ----------
    max_norm : the norm that the gradient of all variables together is cut down to; None cuts nothing
    accumulate : how many batches may make an update; more than one takes room for one more gradient
    jit_compile : compile with XLA
    """

    def __init__(self, model, optimizer, objective, max_norm=None, accumulate: int = 1, jit_compile: bool = False):
        self.model, self.optimizer, self.objective, self.max_norm = model, optimizer, objective, max_norm
        self.variables = model.trainable_variables
        self.sums = [tf.Variable(tf.zeros_like(v.value)) for v in self.variables] if accumulate > 1 else []
        self.whole = Traced(self._whole, jit_compile)
        self.add = Traced(self._add, jit_compile)
        self.finish = tf.function(self._finish, jit_compile=jit_compile)

    def __call__(self, updates):
        """What `objective.update` read of each batch -> the loss, a tensor: a mean over all that the batches count."""
        if not self.sums:
            return self.whole(updates[0].arrays)
        losses = [self.add(update.arrays, weights) for update, weights in zip(updates, shares(updates), strict=True)]
        self.finish()
        return tf.add_n(losses)

    def seeded(self, coming, seed: int) -> list:
        """Set what the step draws its dropout from, and list its states; `coming` as of `Run.coming`."""
        if coming is None:
            return []
        update = self.objective.read(self.model, *coming)
        more = (shares([update])[0],) if self.sums else ()
        return seeded((self.add if self.sums else self.whole).of(update.arrays, *more), seed)

    def _gradients(self, arrays, weights=None):
        with tf.GradientTape() as tape:
            losses = [part.loss for part in self.objective.losses(self.model, training=True, **arrays)]
            if weights is not None:
                losses = [loss * tf.cast(weights[i], loss.dtype) for i, loss in enumerate(losses)]
            loss = tf.add_n(losses)
            for more in self.model.losses:  # of its regularizers
                loss += tf.cast(more * (1.0 if weights is None else tf.cast(weights[0], more.dtype)), loss.dtype)
            scaled = self.optimizer.scale_loss(loss)  # by 1, unless the model computes in float16
        gradients = check_gradients(self.variables, tape.gradient(scaled, [v.value for v in self.variables]))
        # an embedding's gradient comes as a list of rows, in which a row may stand twice: summed before its norm
        return loss, [tf.convert_to_tensor(gradient) for gradient in gradients]

    def _apply(self, gradients):
        if self.max_norm is not None:
            gradients, _ = tf.clip_by_global_norm(gradients, self.max_norm * self.optimizer.scale_loss(1.0))
        self.optimizer.apply(gradients, self.variables)

    def _whole(self, arrays):
        loss, gradients = self._gradients(arrays)
        self._apply(gradients)
        return loss

    def _add(self, arrays, weights):
        loss, gradients = self._gradients(arrays, weights)
        for total, gradient in zip(self.sums, gradients, strict=True):
            total.assign_add(gradient)
        return loss

    def _finish(self):
        self._apply([total.read_value() for total in self.sums])
        for total in self.sums:
            total.assign(tf.zeros_like(total))


class Traced:
    """A function of arrays by name, traced once for each set of names: with the lengths of the first batch, TensorFlow
    would trace anew for every other."""

    def __init__(self, function, jit_compile: bool = False):
        self.function, self.jit_compile, self.traced = function, jit_compile, {}

    def of(self, arrays, *more):
        """The `tf.function` for arrays like these."""
        names = tuple(sorted(arrays))
        if names not in self.traced:
            signature = [{name: _spec(arrays[name]) for name in names}, *map(_spec, more)]
            self.traced[names] = tf.function(self.function, input_signature=signature, jit_compile=self.jit_compile)
        return self.traced[names]

    def __call__(self, arrays, *more):
        """The function's result for these arrays."""
        tensors = {name: tf.convert_to_tensor(arrays[name]) for name in sorted(arrays)}
        return self.of(arrays, *more)(tensors, *map(tf.convert_to_tensor, more))


def _spec(array):
    return tf.TensorSpec([None] * len(array.shape), array.dtype)


def make_measure(model, objective: Objective):
    """What `evaluate` counts of a batch, as a function traced once: arrays -> (labels, summed nll, right), (P, 3)."""

    def measure(arrays):
        rows = []
        for part in objective.losses(model, training=False, **arrays):
            if part.labels is None:
                right = tf.constant(float("nan"))
            else:
                right = tf.math.count_nonzero((tf.argmax(part.logits, -1) == part.labels) & (part.labels != IGNORED))
            n, right = tf.cast(part.n, tf.float64), tf.cast(right, tf.float64)
            rows.append(tf.stack([n, tf.cast(part.nll, tf.float64) * n, right]))
        return tf.stack(rows)

    return Traced(measure)


def evaluate(model, batches, objective: Objective, measure=None) -> Evaluation | JointEvaluation:
    """How well a model predicts the labels of held-out batches.

    Parameters
    ----------
    batches : of what the objective reads
    measure : `make_measure(model, objective)`, to trace it once for many evaluations

    Returns
    -------
    Evaluation : n_tokens, nll and accuracy over all that the objective counts; of an objective of several parts a
        JointEvaluation, which has each of them besides.
    """
    check_objective(objective)
    measure = measure or make_measure(model, objective)
    read = (
        objective.read(model, f"batch {i}", batch) for i, batch in enumerate(objective.padded_alike(model, batches))
    )
    return evaluation_of(objective, [measure(update.arrays).numpy() for update in read])
