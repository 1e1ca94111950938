"""A model's weights as a dict under dotted names, out and in."""

import keras
import numpy as np

from course_lib.checkpoints.weights import match

# Keras's own layers: their variable -> our name, and whether Keras keeps the matrix as (d_in, d_out).
_VARIABLES = {
    keras.layers.Dense: (("kernel", "weight", True), ("bias", "bias", False)),
    keras.layers.LayerNormalization: (("gamma", "weight", False), ("beta", "bias", False)),
    keras.layers.RMSNormalization: (("scale", "weight", False),),
    keras.layers.Embedding: (("embeddings", "weight", False),),
}


def get_state(module) -> dict[str, np.ndarray]:
    """The weights as {dotted name: copy of the array}; matrices are (d_out, d_in).

    Those in bfloat16, which NumPy does not have, come as float32 of the same values. A matrix with a LoRA comes as
    the sum of both. Weights that no attribute or list of layers leads to, as those inside of Keras's other layers and
    of its Sequential and functional models, come as Keras keeps them and under their places in that layer's list of
    weights, "body.attention.weights[2].kernel": such a state is of that class alone.
    """
    return {
        name: _known(np.array(variable.numpy().T if transposed else variable.numpy(), order="C"))
        for name, variable, transposed in _parameters(module)
    }


def set_state(module, state, partial: bool = False) -> None:
    """Set the weights from a dict, in the dtype and on the device of the model.

    Parameters
    ----------
    state : {dotted name: array}, matrices (d_out, d_in); every weight of the module and no other. A LoRA is zero after
    partial : True leaves a parameter that `state` does not hold as it is

    Raises
    ------
    CheckpointError : a name missing (unless partial) or unknown, or a wrong shape; nothing is changed then.
    """
    parameters = list(_parameters(module))
    expected = {name: tuple(v.shape)[::-1] if transposed else tuple(v.shape) for name, v, transposed in parameters}
    values = match(expected, state, new=("",) if partial else ())
    for name, variable, transposed in parameters:
        if name in values:
            variable.assign(values[name].T if transposed else values[name])


def _known(array):
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def _parameters(module):
    found = list(_named(module))
    held = {id(v) for _, variable, _ in found for v in getattr(variable, "parts", (variable,))}
    return found + list(_others(module, held))


class _Merged:
    """A matrix with its LoRA as one variable: read as the sum; set, the LoRA is zero."""

    def __init__(self, layer, name):
        self.matrix, self.sum = getattr(layer, f"_{name}"), getattr(layer, name)
        self.last = getattr(layer, f"lora_{name}_b")
        self.parts = (self.matrix, getattr(layer, f"lora_{name}_a"), self.last)
        self.shape = self.sum.shape

    def numpy(self):
        return self.sum.numpy()

    def assign(self, value):
        self.matrix.assign(value)
        self.last.assign(np.zeros(self.last.shape))


def _named(module, prefix=""):
    for kind, variables in _VARIABLES.items():
        if isinstance(module, kind):
            for attribute, name, transposed in variables:
                if getattr(module, attribute) is None:  # a linear layer without a bias
                    continue
                merged = getattr(module, "lora_enabled", False) and name == "weight"
                yield prefix + name, _Merged(module, attribute) if merged else getattr(module, attribute), transposed
            return
    for name, value in _attributes(module):
        if isinstance(value, keras.Variable):
            yield prefix + name, value, False
        elif isinstance(value, keras.layers.Layer):
            yield from _named(value, f"{prefix}{name}.")


def _others(module, held, prefix=""):
    """What `_named` does not find, under the name of the innermost layer that has one; `held`: the ids of the rest."""
    for name, value in _attributes(module):
        if isinstance(value, keras.layers.Layer):
            yield from _others(value, held, f"{prefix}{name}.")
    for i, variable in enumerate(module.weights):
        if id(variable) not in held:
            held.add(id(variable))
            yield f"{prefix}weights[{i}].{variable.name}", variable, False


def _attributes(module):
    """Names and values of a layer's attributes, and of what stands in those that are lists."""
    for name, value in vars(module).items():
        if name.startswith("_"):  # Keras's own book-keeping holds every layer once more
            continue
        if isinstance(value, list):
            yield from ((f"{name}.{i}", part) for i, part in enumerate(value) if isinstance(part, keras.layers.Layer))
        else:
            yield name, value
