"""Which parts of a model a training in TensorFlow changes."""

from course_lib.tensorflow.state import _parameters
from course_lib.training.weight_names import matching


def freeze(model, parts) -> list[str]:
    """Let parts of a model stand still in trainings to come: no gradient, no update, no weight decay.

    Their dropout goes on. Freeze before the optimizer is made.

    Parameters
    ----------
    parts : names of weights or of what holds them, such as "bert.embeddings" and "bert.encoder.layers.0"; "" is all

    Returns
    -------
    The names of the weights that are frozen by it, as `get_state` has them.

    Raises
    ------
    ValueError : a part that the model has not.
    TypeError : a part that is no text.
    """
    return _set_trainable(model, parts, False)


def unfreeze(model, parts="") -> list[str]:
    """Let parts of a model be trained again, by default all; arguments, result and errors as for `freeze`."""
    return _set_trainable(model, parts, True)


def trained(model) -> list[str]:
    """The names of the weights that a training changes."""
    return [name for name, variable, _ in _parameters(model) if getattr(variable, "trainable", True)]


def _set_trainable(model, parts, trainable: bool) -> list[str]:
    variables = {name: variable for name, variable, _ in _parameters(model)}
    names = matching(list(variables), parts)
    for name in names:
        for variable in getattr(variables[name], "parts", (variables[name],)):  # of a matrix with its LoRA
            variable.trainable = trainable
    return names
