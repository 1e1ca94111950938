"""Tensors for an assignment that may be solved in PyTorch or in TensorFlow: made, read back and differentiated."""

import functools
import inspect
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from course_lib.grading.compare import CheckFailed, as_array, expect
from course_lib.grading.score import seeded

STEP = 1e-2  # of a central difference: in float32 it neglects and rounds away about 1e-5 of the result
SMALL = 1e-3  # what a derivative may differ by, or be where nothing depends on the argument
ITSELF, RIGHT = 2**40, 2**40 + 1  # of the generators that draw directions, far from those of tests
DIRECTIONS = 3  # in which a gradient is compared: in one alone, a wrong one may look right by chance


class Tensors:
    """Makes tensors of the framework in which a notebook is written: `tensors(array)`.

    It is the one that more of the notebook's functions name, and else the first that it imports. In TensorFlow, what
    a student made a `tf.function` runs as it is written, without a graph: the tests look at what is given to theirs.

    Args:
        namespace: the notebook's `globals()`, where the framework's module, or something of it, has a name.

    Raises:
        CheckFailed: where it imports neither framework.
    """

    def __init__(self, namespace: dict):
        roots = {name: _root(value) for name, value in list(namespace.items())}
        found = {name: FRAMEWORKS[root] for name, root in roots.items() if root in FRAMEWORKS}
        if not found:
            raise CheckFailed(
                "Not written yet: neither `import torch` nor `import tensorflow as tf`. Write one of them into the "
                "cell that asks for it, run it, then run this one again."
            )
        uses = Counter(
            framework for names in _names_used(namespace) for framework in {found.get(name) for name in names}
        )
        chosen = max(found.values(), key=uses.__getitem__)  # of two alike, the first
        self.framework, self._make, self._sum, self._differentiate, prepare = chosen
        self._module = sys.modules[self.framework]
        prepare(self._module)

    def __call__(self, array):
        """A tensor of the same shape: float32 of floats, int64 of integers, bool of booleans."""
        array = np.array(array)
        dtype = {"f": np.float32, "i": np.int64, "b": np.bool_}[array.dtype.kind]
        return getattr(self._module, self._make)(array.astype(dtype))

    def gradients(self, function: Callable, *arrays) -> list[np.ndarray]:
        """The derivatives of a function of tensors, whose result is summed, by each of its arguments.

        Args:
            function: takes as many tensors as there are arrays, and returns a tensor of any shape.
            arrays: where to take the derivatives; floats.

        Returns:
            An array of the shape of each argument.

        Raises:
            CheckFailed: where the result does not depend on an argument in a way that the framework can follow.
        """
        found = self._differentiate(self._module, function, [self(array) for array in arrays])
        if any(gradient is None for gradient in found):
            raise CheckFailed(
                "No gradient reaches one of the arguments, so nothing could be learned. Stay within the framework: no "
                "NumPy, `detach`, `item`, `numpy()` or `stop_gradient` on the way."
            )
        return [np.array(gradient) for gradient in found]

    def expect_gradients(self, function: Callable, right: Callable | None = None, /, **arrays) -> None:
        """Check the gradients of a function.

        They are compared with central differences: of `right` where that is given, and else of the function itself,
        right or wrong as that is, so that a wrong value is not charged a second time. A function may answer what is
        differentiated in another way than the rest, and agree with itself: hidden tests give `right`, unless an earlier
        one noticed something wrong.

            tensors.expect_gradients(attend, None if score.lost else right_attend, scores=scores, h=h)

        All arguments make a step at once, each in a direction of its own; where that differs by more than `SMALL`, each
        makes one by itself, which tells by which of them it is wrong. So a right function, as most are, is called as
        often for five arguments as for one. The directions are drawn from the seed of the hidden tests, and a function
        that is compared with `right` never sees them: who knows them needs derivatives along three lines and no more.

        Args:
            function: takes as many tensors as there are arrays, in their order; returns a tensor, or several of them.
            right: takes the arrays, and returns what it should, as an array or as several of them.
            arrays: where to take the derivatives, by the names that a message calls them; floats.

        Raises:
            CheckFailed: where a derivative is NaN, infinite or wrong, or where a function that is compared with itself
                depends on none of its arguments.
        """

        def weighed(*given):
            return self._weighed(function(*given))

        def value(*given) -> float:
            return _total(right(*given)) if right else float(as_array(weighed(*map(self, given))))

        arrays = {name: np.asarray(array, dtype=float) for name, array in arrays.items()}
        found = self._differentiate(self._module, weighed, [self(array) for array in arrays.values()])
        gradients = {}
        for (name, array), gradient in zip(arrays.items(), found, strict=True):
            gradients[name] = np.zeros(array.shape) if gradient is None else np.array(gradient, dtype=float)
            expect(np.isfinite(gradients[name]).all(), f"a derivative by {name} is NaN or infinite.")

        def difference(steps: dict[str, np.ndarray], size: float) -> float:
            """How the result changes in these steps of some arguments at once: a central difference."""
            ends = [arrays | {name: arrays[name] + way * step for name, step in steps.items()} for way in (size, -size)]
            above, below = (value(*end.values()) for end in ends)
            return (above - below) / (2 * size)

        def along(steps: dict[str, np.ndarray]) -> tuple[float, float]:
            """What the gradients state of such steps, and how the result changes."""
            stated = sum((gradients[name] * step).sum() for name, step in steps.items())
            change = difference(steps, STEP)
            if right:  # its calls are cheap: by Richardson's extrapolation, without most of what a difference neglects
                change += (difference(steps, STEP / 2) - change) * 4 / 3
            return stated, change

        rng = seeded(RIGHT if right else ITSELF)
        # Steps differ in their lengths: of two single numbers that made the same one, swapped gradients would agree.
        together = [
            along({name: rng.uniform(0.75, 1.25) * _direction(rng, array) for name, array in arrays.items()})
            for _ in range(DIRECTIONS)
        ]
        agree = all(abs(stated - change) <= SMALL for stated, change in together)
        if agree and (right or any(abs(change) > SMALL for _, change in together)):
            return
        depends = False
        for name, array in arrays.items():
            for stated, change in (along({name: _direction(rng, array)}) for _ in range(DIRECTIONS)):
                depends |= abs(change) > SMALL
                changes = "should change" if right else "changes"
                expect(
                    abs(stated - change) <= SMALL + 0.02 * abs(change),
                    f"the gradient by {name} is not that of the result: along one direction it is {stated:.3g}, where "
                    f"the result {changes} by {change:.3g}. Stay within the framework: no NumPy, `detach`, `item`, "
                    "`numpy()` or `stop_gradient` on the way.",
                )
        expect(right or depends, f"the result depends on none of {', '.join(arrays)}.")

    def _weighed(self, result):
        """One number of all that a function returned."""
        parts = result if isinstance(result, (tuple, list)) else [result]
        add = getattr(self._module, self._sum)
        return sum(add(part * self(weights)) for part, weights in zip(parts, _weights(parts), strict=True))


def _total(result) -> float:
    """The same number of arrays."""
    parts = result if isinstance(result, (tuple, list)) else [result]
    return float(sum((part * weights).sum() for part, weights in zip(parts, _weights(parts), strict=True)))


def _weights(parts) -> list[np.ndarray]:
    """What each number counts, since those of a softmax add up to one."""
    rng = np.random.default_rng(0)
    return [rng.uniform(0.5, 1.5, np.shape(part)) for part in parts]


def _direction(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """A step of length one, of an array's shape."""
    drawn = rng.normal(size=array.shape)
    return drawn / np.linalg.norm(drawn)


def _in_torch(torch, function, given: list) -> list:
    for tensor in given:
        tensor.requires_grad_(True)
    result = function(*given)
    if not isinstance(result, torch.Tensor) or not result.requires_grad:
        return [None] * len(given)
    return torch.autograd.grad(result.sum(), given, allow_unused=True)


def _in_tensorflow(tf, function, given: list) -> list:
    with tf.GradientTape() as tape:
        for tensor in given:
            tape.watch(tensor)
        result = function(*given)
        total = tf.reduce_sum(result) if tf.is_tensor(result) else None
    if total is None:
        return [None] * len(given)
    found = tape.gradient(total, given)
    # of rows that were picked, TensorFlow keeps the places and the derivatives apart
    return [None if gradient is None else tf.convert_to_tensor(gradient) for gradient in found]


def _as_it_is(module) -> None:
    pass


def _without_graphs(tf) -> None:
    tf.config.run_functions_eagerly(True)


class _Framework(NamedTuple):
    name: str
    make: str  # its function that makes a tensor
    sum: str  # ... that adds all numbers of one
    differentiate: Callable
    prepare: Callable  # done once to its module


# Keras computes with TensorFlow here
_TENSORFLOW = _Framework("tensorflow", "constant", "reduce_sum", _in_tensorflow, _without_graphs)
FRAMEWORKS = {
    "torch": _Framework("torch", "tensor", "sum", _in_torch, _as_it_is),
    "tensorflow": _TENSORFLOW,
    "keras": _TENSORFLOW,
}


def _root(value) -> str:
    name = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return name.split(".")[0] if isinstance(name, str) else ""


def _names_used(namespace: dict) -> Iterator[frozenset[str]]:
    """The names in each function written in a notebook, in the methods of its classes, and in what stands in these."""
    for value in list(namespace.values()):
        for part in list(vars(value).values()) if isinstance(value, type) else [value]:
            function = inspect.unwrap(part) if callable(part) else part  # that of a `tf.function`
            if isinstance(function, types.FunctionType) and function.__globals__ is namespace:
                yield _names(function.__code__)


@functools.lru_cache(maxsize=1024)  # asked for in every test, of the same functions
def _names(code: types.CodeType) -> frozenset[str]:
    inner = (_names(value) for value in code.co_consts if isinstance(value, types.CodeType))
    return frozenset(code.co_names).union(*inner)
