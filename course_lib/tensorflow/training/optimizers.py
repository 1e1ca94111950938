"""The optimizers of the course in TensorFlow: Adam as in "Attention is all you need", and AdamW as BERT is tuned by."""

import keras

from course_lib.tensorflow.serialization import serializable
from course_lib.tensorflow.state import _parameters
from course_lib.training.arguments import check_all_held, check_positive_or_zero
from course_lib.training.weight_names import scales_of


class LayerwiseAdamW(keras.optimizers.Adam):
    """AdamW (Loshchilov and Hutter 2019) in which each variable has a share of the rate, and a decay, of its own.

    Parameters
    ----------
    scales, decays : numbers, one for each variable that the optimizer is built of
    """

    def __init__(self, scales, decays, learning_rate=0.0, epsilon=1e-8, **settings):
        super().__init__(learning_rate, epsilon=epsilon, **settings)
        self.scales, self.decays = list(scales), list(decays)

    def update_step(self, gradient, variable, learning_rate):
        """Decay, then Adam's own step, both at this variable's share of the rate."""
        place = self._get_variable_index(variable)
        rate = keras.ops.cast(learning_rate, variable.dtype) * self.scales[place]
        if self.decays[place]:
            self.assign_sub(variable, variable * (rate * self.decays[place]))
        super().update_step(gradient, variable, rate)

    def get_config(self) -> dict:
        """The arguments, by which Keras saves an optimizer."""
        return super().get_config() | {"scales": list(self.scales), "decays": list(self.decays)}


serializable(LayerwiseAdamW)


def adam(model):
    """Adam with beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9 (Vaswani et al. 2017, section 5.3); a loop sets the rate.

    For a model that computes in float16 it scales the loss, without which small gradients would vanish.
    """
    return ready(model, keras.optimizers.Adam(learning_rate=0.0, beta_1=0.9, beta_2=0.98, epsilon=1e-9))


def adamw(model, weight_decay: float = 0.01, layer_decay: float = 1.0):
    """AdamW (Loshchilov and Hutter 2019) with beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8; a loop sets the rate.

    Weight decay spares all that is called "bias", and everything with a single axis, such as the parameters of
    normalisations. Frozen weights stand still. For a model that computes in float16 it scales the loss.

    Parameters
    ----------
    model : its weights will be trained, those that are not frozen
    weight_decay : times the rate, subtracted from each weight in units of that weight
    layer_decay : the rate of each layer in units of that of the layer above, as for `scales_of`

    Raises
    ------
    ValueError : a weight_decay that is negative or not finite, a layer_decay outside (0, 1], or one below 1 for a
        model without layers.
    """
    check_positive_or_zero("weight_decay", weight_decay)
    named = [(name, getattr(variable, "parts", (variable,))) for name, variable, _ in _parameters(model)]
    scales = scales_of([name for name, _ in named], layer_decay)
    scale_of = {id(v): scale for (_, parts), scale in zip(named, scales, strict=True) for v in parts}
    variables = model.trainable_variables
    decays = [float(weight_decay) if len(v.shape) > 1 and v.name != "bias" else 0.0 for v in variables]
    return ready(model, LayerwiseAdamW([scale_of[id(v)] for v in variables], decays))


def ready(model, optimizer):
    """An optimizer for a model's variables; for a model that computes in float16 one that scales the loss."""
    if model.compute_dtype == "float16" and not isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    if not optimizer.built:
        optimizer.build(model.trainable_variables)
    return optimizer


def own_rate(optimizer) -> float | None:
    """The rate of an optimizer; 0 before a loop has set that of `adam` or `adamw`, None without one."""
    return None if optimizer is None else float(optimizer.learning_rate)


def set_rate(optimizer, rate: float) -> None:
    """Set the rate of an optimizer: that of a variable with a scale is the scale times it."""
    optimizer.learning_rate.assign(rate)


def described(optimizer) -> str | None:
    """What kind an optimizer is, and its settings but for the rate: what must be the same for a training to go on."""
    if optimizer is None:
        return None  # the one that `train` makes
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    found = {}
    for name in ("beta_1", "beta_2", "epsilon", "momentum", "weight_decay", "scales", "decays"):  # of every version
        if hasattr(inner, name):
            value = getattr(inner, name)
            found[name] = list(value) if isinstance(value, list) else value
    return f"{type(inner).__name__} {found}"


def check_optimizer(model, optimizer) -> None:
    """Check an optimizer for a model; None is none.

    Raises
    ------
    TypeError : none of Keras's.
    ValueError : one of another model's variables, one that lacks variables which are to be trained, or one whose rate
        is decided by a schedule of its own.
    """
    if optimizer is None:
        return
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise TypeError(f"optimizer must be one of Keras's, such as `adamw(model)`; got {type(optimizer).__name__}")
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    if not hasattr(inner.learning_rate, "assign"):
        raise ValueError("the optimizer has a schedule of its own; give it a number, and the schedule as `rate`")
    own = {id(variable) for variable in model.variables}
    if not inner.built:
        return
    held = {id(variable) for variable in inner._trainable_variables}
    if foreign := len(held - own):
        raise ValueError(f"the optimizer holds {foreign} weights that the model has not; make it of this model's")
    check_all_held([variable.path for variable in model.trainable_variables if id(variable) not in held])
