"""All that a training in TensorFlow needs to go on exactly, as arrays by name, out and in."""

import numpy as np
import tensorflow as tf

from course_lib.tensorflow.state import _parameters, get_state, set_state
from course_lib.training.training_file import under


def seeded(traced, seed: int) -> list:
    """Set every random generator that a traced step draws from, and list their states.

    Each Keras dropout has a generator of its own, and functions without one share Keras's global one. A traced
    step knows all the variables it uses, so none is forgotten, wherever it is kept.

    Parameters
    ----------
    traced : a function of `tf.function`, or one of its concrete functions
    """
    traced = traced.get_concrete_function() if hasattr(traced, "get_concrete_function") else traced
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
    set_state(model, under(arrays, "model."))
    for prefix, variables in (("optimizer.", optimizer.variables), ("random.", random_state)):
        for i, variable in enumerate(variables):
            variable.assign(arrays[f"{prefix}{i}"])


def weights_of(model) -> dict[str, np.ndarray]:
    """Weights, and the parts of each matrix with a LoRA besides, as `set_weights` takes them back."""
    return get_state(model) | {name: part.numpy() for name, part in _parts(model).items()}


def set_weights(model, weights) -> None:
    """Set what `weights_of` gave."""
    parts = _parts(model)
    set_state(model, {name: value for name, value in weights.items() if name not in parts})
    for name, part in parts.items():
        part.assign(weights[name])


def _parts(model) -> dict:
    """Of each matrix with a LoRA: itself, A and B."""
    named = [(name, getattr(variable, "parts", ())) for name, variable, _ in _parameters(model)]
    return {f"{name} {i}": part for name, parts in named for i, part in enumerate(parts)}
