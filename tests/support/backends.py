"""One face for the three frameworks: NumPy arrays in, NumPy arrays out.

`tensor` turns an array into the framework's own kind, float32 in PyTorch and TensorFlow and float64 in NumPy;
`array` turns a result back, also inside tuples; `call` does both around a function, layer or model.
`gradients` differentiates: by autograd, and in NumPy, which has none, by central differences.
"""

import importlib

import numpy as np


class Backend:
    """What the tests ask of a framework."""

    name: str
    float_type = np.float32
    tolerance = {"rtol": 2e-5, "atol": 5e-6}
    has_training = True

    def __repr__(self):
        return self.name

    @property
    def lib(self):
        return importlib.import_module(f"course_lib.{self.name}")

    def make(self, name, *args, state=None, **kwargs):
        """Build `name` of the framework's sub-package and fill it with a state."""
        module = getattr(self.lib, name)(*args, **kwargs)
        if state is not None:
            self.lib.set_state(module, state)
        return module

    def function(self, name):
        """A function of the framework's sub-package by its name."""
        return getattr(self.lib, name)

    def call(self, function, *args, training=False, **kwargs):
        """Call with arrays turned into tensors; the result comes back as arrays."""
        args = [self.tensor(value) for value in args]
        kwargs = {name: self.tensor(value) for name, value in kwargs.items()}
        return self.array(self.run(function, training, *args, **kwargs))

    def run(self, function, training, *args, **kwargs):
        return function(*args, **kwargs)

    def tensor(self, value):
        if not isinstance(value, np.ndarray):
            return value
        return self.from_array(value.astype(self.float_type) if value.dtype.kind == "f" else value)

    def array(self, value):
        if isinstance(value, tuple):
            parts = [self.array(part) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return None if value is None else self.to_array(value)

    def gradients(self, function, *inputs, **constants):
        """Derivatives of sum(c * output), c fixed and random, by the float inputs and by every weight.

        The output is the first field when there are several. Returns (list of arrays, dict of arrays); places
        that were not computed hold NaN.
        """
        raise NotImplementedError


def cotangent(shape):
    """The fixed random numbers that turn an output into one number."""
    return np.random.default_rng(99).normal(size=shape)


def first(output):
    return output[0] if isinstance(output, tuple) else output


class NumPyBackend(Backend):
    name = "numpy"
    float_type = np.float64
    tolerance = {"rtol": 1e-10, "atol": 1e-12}
    has_training = False
    step = 1e-5
    # Places of an input and of a weight to differentiate by; the error of float64 there is about 1e-9. A wrong gradient
    # of a weight is wrong nearly everywhere, and a model has a hundred of them.
    at_most, at_most_of_a_weight = 24, 8

    def from_array(self, value):
        return value.copy()

    def to_array(self, value):
        return np.asarray(value)

    def seed(self, number):
        np.random.seed(number)

    def gradients(self, function, *inputs, **constants):
        inputs = [self.tensor(value) for value in inputs]

        def loss():
            output = first(function(*inputs, **constants))
            return float((output * cotangent(output.shape)).sum())

        by_input = [
            self._differences(value, loss) if value.dtype.kind == "f" else np.full(value.shape, np.nan)
            for value in inputs
        ]
        by_weight = {}
        if not hasattr(function, "__code__"):  # a module and not a plain function
            state = self.lib.get_state(function)
            for name, value in state.items():
                again = lambda: (self.lib.set_state(function, state), loss())[1]  # noqa: E731
                by_weight[name] = self._differences(value, again, self.at_most_of_a_weight)
            self.lib.set_state(function, state)
        return by_input, by_weight

    def _differences(self, array, loss, at_most=at_most):
        slopes = np.full(array.shape, np.nan)
        places = np.random.default_rng(array.size).permutation(array.size)[:at_most]
        for place in (np.unravel_index(i, array.shape) for i in places):
            value = array[place]
            array[place] = value + self.step
            above = loss()
            array[place] = value - self.step
            below = loss()
            array[place] = value
            slopes[place] = (above - below) / (2 * self.step)
        return slopes


class TorchBackend(Backend):
    name = "torch"

    def from_array(self, value):
        import torch

        return torch.from_numpy(np.array(value, order="C"))

    def to_array(self, value):
        return value.detach().cpu().numpy()

    def run(self, function, training, *args, **kwargs):
        if hasattr(function, "train"):
            function.train(training)
        return function(*args, **kwargs)

    def seed(self, number):
        import torch

        torch.manual_seed(number)

    def gradients(self, function, *inputs, **constants):
        import torch

        inputs = [self.tensor(value) for value in inputs]
        inputs = [value.requires_grad_(value.is_floating_point()) for value in inputs]
        output = first(self.run(function, False, *inputs, **constants))
        (output * self.tensor(cotangent(tuple(output.shape)))).sum().backward()
        by_weight = {}
        if isinstance(function, torch.nn.Module):
            state = self.lib.get_state(function)
            for weight in function.parameters():
                weight.data = torch.zeros_like(weight) if weight.grad is None else weight.grad
            by_weight = self.lib.get_state(function)  # the gradients under the weights' names and layout
            self.lib.set_state(function, state)
        return [value.grad.numpy() if value.requires_grad else None for value in inputs], by_weight


class TensorFlowBackend(Backend):
    name = "tensorflow"

    def from_array(self, value):
        import tensorflow as tf

        return tf.constant(value)

    def to_array(self, value):
        return value.numpy()

    def run(self, function, training, *args, **kwargs):
        import keras

        if isinstance(function, keras.layers.Layer):
            kwargs["training"] = training
        return function(*args, **kwargs)

    def seed(self, number):
        import keras

        keras.utils.set_random_seed(number)

    def gradients(self, function, *inputs, **constants):
        import keras
        import tensorflow as tf

        inputs = [self.tensor(value) for value in inputs]
        variables = function.trainable_variables if isinstance(function, keras.layers.Layer) else []
        with tf.GradientTape() as tape:
            for value in inputs:
                if value.dtype.is_floating:
                    tape.watch(value)
            output = first(self.run(function, False, *inputs, **constants))
            loss = tf.reduce_sum(output * self.tensor(cotangent(tuple(output.shape))))
        floats = [value for value in inputs if value.dtype.is_floating]
        values = [v.value for v in variables]
        slopes = tape.gradient(loss, floats + values, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        slopes = [tf.convert_to_tensor(slope).numpy() for slope in slopes]
        by_input = iter(slopes[: len(floats)])
        by_weight = {}
        if variables:
            state = self.lib.get_state(function)
            for variable, slope in zip(variables, slopes[len(floats) :], strict=True):
                variable.assign(slope)
            by_weight = self.lib.get_state(function)
            self.lib.set_state(function, state)
        return [next(by_input) if value.dtype.is_floating else None for value in inputs], by_weight


NUMPY, TORCH, TENSORFLOW = NumPyBackend(), TorchBackend(), TensorFlowBackend()
BACKENDS = (NUMPY, TORCH, TENSORFLOW)
