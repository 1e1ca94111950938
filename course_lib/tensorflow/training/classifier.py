"""Fine-tuning a BERT classifier in TensorFlow by Keras's own means: compile, fit, predict."""

import contextlib

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

from course_lib.batches.texts import Batches, check_examples, epochs_of
from course_lib.checks import check_count
from course_lib.masks import padding_mask
from course_lib.tensorflow.layers import at_least_float32, mean_pool
from course_lib.tensorflow.models.bert import BertModel
from course_lib.tensorflow.models.bert_heads import (
    BertForMaskedLM,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForTokenClassification,
)
from course_lib.tensorflow.serialization import serializable
from course_lib.tensorflow.training.common import check_model
from course_lib.text.padding import positional
from course_lib.training.arguments import (
    check_fraction,
    check_lengths,
    check_max_norm,
    check_positive_or_zero,
    check_problem,
    max_len_of,
    n_classes_of,
)
from course_lib.training.divergence import check_weights, fetched
from course_lib.training.schedules import warmup_then_linear_decay

NO_CLASSIFIERS = (
    BertModel,
    BertForMaskedLM,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForTokenClassification,
)


class WarmupThenLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A rate that rises to `lr` over `warmup` steps and falls to 0 at `n_steps` (Devlin et al. 2018, A.2)."""

    def __init__(self, lr: float, n_steps: int, warmup: int):
        self.lr, self.n_steps, self.warmup = lr, n_steps, warmup

    def __call__(self, step):
        """The rate of the update number `step`, counted from 0."""
        step = tf.minimum(tf.cast(step, tf.float32), self.n_steps - 1.0)
        return self.lr * warmup_then_linear_decay(step, self.n_steps, self.warmup)

    def get_config(self) -> dict:
        """The arguments, by which Keras saves a schedule."""
        return {"lr": self.lr, "n_steps": self.n_steps, "warmup": self.warmup}


serializable(WarmupThenLinearDecay)  # not as a decorator, in whose place the pages of the API have a mock


class Logits(keras.Model):
    """A BERT classifier as Keras wants a model: ids (B, T) in, logits (B, n_classes) out, the mask made inside."""

    def __init__(self, bert):
        super().__init__(dtype=bert.dtype_policy)
        self.bert = bert

    def call(self, ids, training=False):
        """ids (B, T) -> logits (B, n_classes).

        Without `training` among the arguments, `fit` would train without dropout: Keras tells a model that it
        is being trained only if its `call` asks. The layers inside learn it from Keras's call context.
        """
        return self.bert(ids, mask=padding_mask(ids, self.bert.config.pad_id)).logits


class MeanVector(keras.Model):
    """An encoder as Keras wants a model: ids (B, T) in, the mean of the real tokens' states (B, d_model) out."""

    def __init__(self, bert):
        super().__init__(dtype=bert.dtype_policy)
        self.bert = bert

    def call(self, ids):
        """ids (B, T) -> vectors (B, d_model)."""
        hidden = self.bert(ids, mask=padding_mask(ids, self.bert.config.pad_id)).last_hidden  # (B, T, d_model)
        return mean_pool(at_least_float32(hidden), ids != self.bert.config.pad_id)


class Progress(keras.callbacks.Callback):
    """A tqdm bar over all batches of `fit` or `predict`; the losses of the updates are kept in `losses`.

    Keras reports a mean over the epoch so far, which would hide each loss in the rounding of the sum of all. So the
    mean begins anew with each batch: Keras's own history, too, has the loss of an epoch's last batch.
    FloatingPointError ends the training when a loss is NaN or infinite.
    """

    def __init__(self, n_steps: int, show: bool = True):
        super().__init__()
        self.losses, self.bar = [], tqdm(total=n_steps, disable=not show, unit="batch")

    def on_train_batch_begin(self, batch, logs=None):
        """Begin the mean of the loss anew."""
        self.model.reset_metrics()

    def on_train_batch_end(self, batch, logs=None):
        """Keep the loss of this update."""
        self.losses += fetched([logs["loss"]], len(self.losses))
        self.bar.update()

    def on_predict_batch_end(self, batch, logs=None):
        """One batch more."""
        self.bar.update()

    def on_train_end(self, logs=None):
        """Close the bar."""
        self.bar.close()

    on_predict_end = on_train_end


def make_optimizer(
    model, n_steps: int, lr: float = 2e-4, warmup: float = 0.1, weight_decay: float = 0.01, max_norm: float | None = 1.0
):
    """AdamW (Loshchilov and Hutter 2019) whose rate warms up and then decays to 0 (Devlin et al. 2018, A.2).

    Weight decay spares everything with a single axis: biases and the parameters of normalisations.

    Parameters
    ----------
    model : its variables will be trained
    n_steps : updates in all
    lr : the peak rate
    warmup : fraction of the updates until the peak
    weight_decay : times the rate, subtracted from each weight in units of that weight
    max_norm : the norm that the gradient of all variables together is cut down to; None cuts nothing

    Raises
    ------
    ValueError : no steps, a rate or a decay that is negative or not finite, a warmup outside [0, 1), a max_norm that is
        not positive.
    """
    check_count("n_steps", n_steps)
    check_positive_or_zero("lr", lr)
    check_positive_or_zero("weight_decay", weight_decay)
    check_fraction("warmup", warmup)
    check_max_norm(max_norm)
    schedule = WarmupThenLinearDecay(lr, n_steps, int(warmup * n_steps))
    # Keras's epsilon is 1e-7; PyTorch's, 1e-8, is the paper's
    optimizer = keras.optimizers.AdamW(schedule, weight_decay=weight_decay, epsilon=1e-8, global_clipnorm=max_norm)
    optimizer.exclude_from_weight_decay(var_list=[v for v in model.trainable_variables if len(v.shape) <= 1])
    return optimizer


def dataset(passes, labels) -> tf.data.Dataset:
    """A `tf.data` pipeline of ids (B, T) and labels (B,) over several passes, T different from batch to batch."""
    signature = (tf.TensorSpec((None, None), tf.int64), tf.TensorSpec((None,), tf.int64))
    pairs = lambda: ((ids, labels[rows]) for batches in passes for ids, rows in batches)  # noqa: E731
    n_batches = sum(map(len, passes))
    pipeline = tf.data.Dataset.from_generator(pairs, output_signature=signature)
    return pipeline.apply(tf.data.experimental.assert_cardinality(n_batches)).prefetch(2)


def train(
    model,
    sequences,
    labels,
    epochs: int = 1,
    batch_size: int = 32,
    lr: float = 2e-4,
    warmup: float = 0.1,
    weight_decay: float = 0.01,
    max_norm: float | None = 1.0,
    seed: int = 0,
    progress: bool = True,
):
    """Train a classifier in place, on the same batches in the same order as PyTorch's `train`.

    Here by `compile` and `fit`, as one who knows Keras would: its callbacks, metrics and schedules can be added by who
    copies this. `training.loop` with `objectives.classification()` and the same optimizer takes the same path, and has
    validation, accumulation and resumption besides.

    Parameters
    ----------
    model : a `BertForSequenceClassification`, or another model with its call and its logits
    sequences : N arrays of token ids, shape (length,)
    labels : integers, shape (N,)
    epochs, batch_size : passes over the data, and examples an update
    lr, warmup, weight_decay : as for `make_optimizer`
    max_norm : the norm that the gradient of all parameters together is cut down to; None cuts nothing
    seed : of the order of the batches, and of dropout
    progress : show a bar

    Returns
    -------
    The loss of each update, shape (n_steps,).

    Raises
    ------
    ValueError : labels that do not fit the sequences or the classes, no examples, a sequence that is too long, no
        epochs, a negative rate, weights of 16 bits, or frozen ones alone.
    TypeError : labels or ids that are not integers, a model that does not classify.
    FloatingPointError : the training diverged.
    """
    check_model(model)
    check_problem(model)
    sequences = positional("sequences", sequences)
    labels = check_examples(sequences, labels, n_classes_of(model, NO_CLASSIFIERS))
    passes = epochs_of(sequences, epochs, batch_size, seed, model.config.pad_id)
    check_lengths(sequences, max_len_of(model))
    n_steps = sum(map(len, passes))
    keras.utils.set_random_seed(seed)
    classifier, bar = Logits(model), Progress(n_steps, progress)
    classifier.compile(
        optimizer=make_optimizer(model, n_steps, lr, warmup, weight_decay, max_norm),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,  # XLA would compile once more for every new length T
    )
    classifier.optimizer.build(classifier.trainable_variables)  # else `fit` traces its step a second time for them
    # the batches come shuffled; Keras warns if asked to shuffle a tf.data pipeline
    with contextlib.closing(bar.bar):
        classifier.fit(dataset(passes, labels), shuffle=False, verbose=0, callbacks=[bar])
    check_weights({variable.path: variable.numpy() for variable in model.trainable_variables})
    return np.array(bar.losses)


def predict(model, sequences, batch_size: int = 64, progress: bool = False):
    """The logits of each sequence, in the order given: float32 array (N, n_classes)."""
    n_classes_of(model, NO_CLASSIFIERS)
    return _run(Logits(model), sequences, batch_size, progress)


def embed(model, sequences, batch_size: int = 64, progress: bool = False):
    """One vector a text from an encoder: the mean of its tokens' last hidden states, float32 (N, d_model).

    A text of padding alone, which has no tokens, gets zeros.

    Parameters
    ----------
    model : a `BertModel`
    sequences : N arrays of token ids, shape (length,)
    """
    return _run(MeanVector(model), sequences, batch_size, progress)


def _run(model, sequences, batch_size, progress):
    batches = Batches(sequences, batch_size, pad_id=model.bert.config.pad_id)
    pipeline = dataset([batches], np.zeros(len(sequences), dtype=np.int64)).map(lambda ids, labels: ids)
    outputs = model.predict(pipeline, verbose=0, callbacks=[Progress(len(batches), progress)])
    in_order = np.empty(outputs.shape, dtype=np.float32)
    in_order[np.concatenate(batches.groups)] = outputs
    return in_order
