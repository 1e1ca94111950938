"""Keras's own loop over our models: `compile`, `fit`, `evaluate`, `predict` and `export`."""

import keras
import numpy as np
import tensorflow as tf

from course_lib.tensorflow.layers import at_least_float32
from course_lib.tensorflow.masks import padding_mask


class Fittable:
    """Mix-in of the models: they take what Keras's loop hands a model, and give it their logits.

    The inputs are those of the call, by name or in order: `fit({"ids": ids, "segments": segments}, labels)`,
    `fit((source_ids, target_ids), labels)`, `fit(ids, labels)`. The loss and the metrics see the logits, of a
    `DecisionTransformer` the actions, and `predict` returns them (a model without: a dict of its outputs). `export`
    writes what `predict` does. Logits of several kinds, as of `BertForPreTraining`, are a dict by their names, and so
    are their losses and labels.

    A model that takes a mask hides the padding, `config.pad_id`, in all of these when none is given. A mask of two
    axes is one of the batch and its tokens there, (B, T), and one of three has a row for each query, (B, T, S), as
    Keras cuts all inputs along the batch.
    """

    def __call__(self, *args, **kwargs):
        """As the call; all inputs may come as one dict or tuple, and ids as lists."""
        if args and isinstance(args[0], (dict, list, tuple)) and not _numbers(args[0]):
            args, kwargs = args[1:], {**self._by_name(args[0]), **kwargs}
        args = [np.asarray(x) if isinstance(x, (list, tuple)) else x for x in args]
        return super().__call__(*args, **kwargs)

    def train_step(self, data):
        """One update on a batch (inputs, labels) or (inputs, labels, weights)."""
        return super().train_step(self._prepared(data))

    def test_step(self, data):
        """Loss and metrics of such a batch."""
        return super().test_step(self._prepared(data))

    def predict_step(self, data):
        """The logits of a batch (inputs,)."""
        outputs = super().predict_step(self._prepared(data))
        found = _logits(outputs)
        if found is None:
            found = {name: x for name, x in outputs._asdict().items() if x is not None}
        return tf.nest.map_structure(at_least_float32, found)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The compiled loss of the logits.

        Raises
        ------
        ValueError : a loss was compiled, and the model has no logits.
        """
        logits = _logits(y_pred)
        if self._compile_loss is not None and logits is None:
            raise ValueError(
                f"{type(self).__name__} has no logits for a loss: train BertForSequenceClassification or "
                "BertForMaskedLM, or a model around it, such as keras.Model(ids, head(model(ids).pooled))"
            )
        return super().compute_loss(x, y, y_pred if logits is None else logits, sample_weight, training)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """The compiled metrics of the logits."""
        logits = _logits(y_pred)
        return super().compute_metrics(x, y, y_pred if logits is None else logits, sample_weight)

    def export(self, filepath, format="tf_saved_model", verbose=None, input_signature=None, **kwargs):
        """As Keras's own; what is written is `predict` on a batch, of ids of any shape unless a signature is given.

        Parameters
        ----------
        filepath, format, verbose, kwargs : as for `keras.Model.export`
        input_signature : a list of one entry, the inputs: a `keras.InputSpec`, or a dict or tuple of them
        """
        served = _Served(self)
        served.export(filepath, format, verbose, input_signature or [self._inputs_signature()], **kwargs)

    @property
    def _default_save_signature(self):
        """What `tf.saved_model.save` writes when it is told nothing else."""
        inputs = tf.nest.flatten(self._inputs_signature())
        names = [spec.name for spec in inputs]
        specs = [tf.TensorSpec(spec.shape, spec.dtype, spec.name) for spec in inputs]

        @tf.function(input_signature=specs, autograph=False)
        def serving_default(*given):
            return self.predict_step((dict(zip(names, given, strict=True)),))

        return serving_default

    def _inputs_signature(self):
        """One `InputSpec` for each argument without which the model cannot be called: ids, unless it says otherwise."""
        names = [p.name for p in self._call_signature.parameters.values() if p.default is p.empty]
        specs = tuple(keras.InputSpec("int64", (None, None), name=name) for name in names)
        return specs[0] if len(specs) == 1 else specs

    def _by_name(self, inputs) -> dict:
        if isinstance(inputs, dict):
            return inputs
        names = list(self._call_signature.parameters)
        if isinstance(inputs, (list, tuple)) and not _numbers(inputs):
            return dict(zip(names, inputs, strict=False))
        return {names[0]: np.asarray(inputs) if isinstance(inputs, (list, tuple)) else inputs}

    def _prepared(self, data):
        x, y, weights = keras.utils.unpack_x_y_sample_weight(data)
        x, names = dict(self._by_name(x)), list(self._call_signature.parameters)
        odd = [name for name in x if name not in names]
        if odd:
            raise ValueError(f"{odd[0]!r} is no input of {type(self).__name__}; its inputs are {', '.join(names)}")
        if "mask" in self._call_signature.parameters:
            mask = x.get("mask")
            if mask is None:
                x["mask"] = padding_mask(x["ids"], self.config.pad_id)
            else:
                x["mask"] = _of_four_axes(tf.convert_to_tensor(mask))
        return keras.utils.pack_x_y_sample_weight(x, y, weights)


def _of_four_axes(mask):
    """A mask (B, S), (B, T, S) or (B, H, T, S) as the last of these, with axes of 1 behind the first."""
    if mask.shape.rank is not None:
        return mask if mask.shape.rank == 4 else mask[(slice(None), *[None] * (4 - mask.shape.rank))]
    # TensorFlow traces one function for masks of two and of four axes, which knows neither
    shape = tf.shape(mask)
    shape = tf.concat([shape[:1], tf.ones(4 - tf.rank(mask), shape.dtype), shape[1:]], 0)
    return tf.ensure_shape(tf.reshape(mask, shape), (None,) * 4)


def _logits(outputs):
    """The logits of a model's outputs, or actions; those of several kinds by their names; None for a model without."""
    for name in ("logits", "actions"):
        if hasattr(outputs, name):
            return getattr(outputs, name)
    named = outputs._asdict() if hasattr(outputs, "_asdict") else {}
    return {name: x for name, x in named.items() if name.endswith("_logits")} or None


class _Served(keras.Model):
    """A model as `predict` has it, for `export`."""

    def __init__(self, model):
        super().__init__(name="served")  # Keras would take the class's, whose underscore no scope may begin with
        self.model = model
        self.built = True

    def call(self, inputs):
        return self.model.predict_step((inputs,))


def _numbers(inputs):
    """Whether a list is a batch of ids or a row of them, and no list of inputs."""
    first = inputs[0] if isinstance(inputs, (list, tuple)) and inputs else None
    if isinstance(first, (list, tuple)):
        return not (first and isinstance(first[0], (list, tuple)))
    return isinstance(first, int)
