"""What PyTorch and TensorFlow do each in its own way where their tensors pass between two processes.

Neither is imported here. A tensor is known by the module that made it, and a framework that nobody has imported in
this process has no tensors in it.
"""

import contextlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

# What a tensor is to its framework. Those of FOLLOWED are differentiated: LEAF is where that begins, RESULT was
# computed from others. In TensorFlow it is not seen of a tensor; there all floats are results while we record.
CONSTANT, LEAF, RESULT, VARIABLE = "constant", "leaf", "result", "variable"
FOLLOWED = (LEAF, RESULT)


class Torch:
    """PyTorch, whose tensors know themselves whether they are differentiated."""

    name = "torch"

    @property
    def module(self):
        return sys.modules[self.name]

    def kinds(self) -> tuple[type, ...]:
        """The types of its tensors."""
        return (self.module.Tensor,)

    def numbers(self, tensor) -> np.ndarray | None:
        """What it holds; None of one of which NumPy makes no array: sparse, quantised, of another dtype, conjugate."""
        with contextlib.suppress(TypeError, ValueError, RuntimeError):
            return tensor.detach().cpu().numpy()

    def mark(self, tensor, followed: bool) -> str:
        """What it is, followed or not: nobody else would know. VARIABLE is a parameter without derivatives."""
        if not (tensor.requires_grad and tensor.is_floating_point()):
            return VARIABLE if isinstance(tensor, self.module.nn.Parameter) else CONSTANT
        return LEAF if tensor.is_leaf else RESULT

    def made(self, array: np.ndarray, mark: str):
        """A tensor of an array that nobody else writes to."""
        tensor = self.module.from_numpy(array)
        if mark == VARIABLE:
            return self.module.nn.Parameter(tensor, requires_grad=False)
        return tensor.requires_grad_(mark in FOLLOWED)

    def given(self, leaf, mark: str):
        """What a function gets in the place of a leaf: of what was a RESULT, something that may be written to."""
        return leaf.clone() if mark == RESULT else leaf

    def recording(self):
        """A block, of which derivatives are asked for afterwards; as a tape, where the framework has one."""
        return contextlib.nullcontext()

    def watch(self, tape, tensor) -> None:
        """Let derivatives by a tensor be on a tape."""

    def connected(self, tensor, inputs: Sequence, pull: Callable[[np.ndarray], list]):
        """The tensor, as the result of an operation on the inputs.

        pull: what the derivatives of a number by each input are, None where there is none, of its derivatives by the
            tensor.
        """
        torch = self.module

        class Call(torch.autograd.Function):
            @staticmethod
            def forward(context, *inputs):
                return tensor.clone()

            @staticmethod
            @torch.autograd.function.once_differentiable
            def backward(context, cotangent):
                found = pull(self.numbers(cotangent))
                return tuple(None if array is None else torch.from_numpy(np.array(array)) for array in found)

        return Call.apply(*inputs)

    def pulled(self, tape, output, inputs: Sequence, cotangent: np.ndarray) -> list[np.ndarray | None]:
        """What `connected` asks for, of what was computed here."""
        if not (inputs and output.requires_grad):
            return [None] * len(inputs)
        torch = self.module
        with torch.enable_grad():  # `grad` imports SymPy to take derivatives of anything but one number
            weighed = (output * torch.from_numpy(np.array(cotangent))).sum()
        found = torch.autograd.grad(weighed, inputs, retain_graph=True, allow_unused=True)
        return [None if each is None else self.numbers(each) for each in found]


class TensorFlow:
    """TensorFlow, where a tape differentiates."""

    name = "tensorflow"

    def __init__(self):
        self._tapes = 0  # of `recording`, that record now

    @property
    def module(self):
        return sys.modules[self.name]

    def kinds(self) -> tuple[type, ...]:
        """The types of its tensors."""
        return self.module.Tensor, self.module.Variable

    def numbers(self, tensor) -> np.ndarray | None:
        """What it holds; None of a part of a graph."""
        with contextlib.suppress(TypeError, ValueError, AttributeError, NotImplementedError):
            return np.asarray(tensor.numpy())

    def mark(self, tensor, followed: bool) -> str:
        """What it is of CONSTANT, RESULT and VARIABLE."""
        if isinstance(tensor, self.module.Variable):
            return VARIABLE
        return RESULT if followed and self._tapes and tensor.dtype.is_floating else CONSTANT

    def made(self, array: np.ndarray, mark: str):
        """A tensor of an array that nobody else writes to."""
        return self.module.Variable(array) if mark == VARIABLE else self.module.constant(array)

    def given(self, leaf, mark: str):
        """What a function gets in the place of a leaf."""
        return leaf

    @contextlib.contextmanager
    def recording(self):
        """A block that a tape records."""
        with self.module.GradientTape(persistent=True) as tape:
            self._tapes += 1
            try:
                yield tape
            finally:
                self._tapes -= 1

    def watch(self, tape, tensor) -> None:
        """Let derivatives by a tensor be on a tape."""
        if tape is not None:
            tape.watch(tensor)

    def connected(self, tensor, inputs: Sequence, pull: Callable[[np.ndarray], list]):
        """As in PyTorch."""
        tf = self.module

        @tf.custom_gradient
        def call(*inputs):
            def backward(cotangent):
                found = pull(self.numbers(tf.convert_to_tensor(cotangent)))
                found = [None if array is None else tf.constant(array) for array in found]
                return found if len(found) > 1 else found[0]

            return tf.identity(tensor), backward

        return call(*inputs)

    def pulled(self, tape, output, inputs: Sequence, cotangent: np.ndarray) -> list[np.ndarray | None]:
        """As in PyTorch."""
        found = tape.gradient(output, list(inputs), output_gradients=self.module.constant(cotangent))
        # of rows that were picked, TensorFlow keeps the places and the derivatives apart
        return [None if each is None else self.numbers(self.module.convert_to_tensor(each)) for each in found]


OWNERS = {owner.name: owner for owner in (Torch(), TensorFlow())}


def owner_of(value) -> Torch | TensorFlow | None:
    """The framework whose tensor a value is; None where it is no tensor."""
    for name, owner in OWNERS.items():
        if sys.modules.get(name) is not None and isinstance(value, owner.kinds()):
            return owner
    return None


class Pair(NamedTuple):
    """The frameworks on two sides between which tensors pass; both None where the notebook has none.

    tests : in which the hidden tests compute
    notebook : in which the notebook is written
    """

    tests: str | None = None
    notebook: str | None = None

    @property
    def differ(self) -> bool:
        """Whether a tensor of the one becomes a tensor of the other on its way."""
        return self.tests != self.notebook

    def in_notebook(self, name: str) -> str:
        """Of which framework a tensor of this one is in the notebook."""
        return self.notebook if self.differ else name

    def at_tests(self, name: str) -> str:
        """Of which framework a tensor of this one in the notebook is at the tests."""
        return self.tests if self.differ else name


ALIKE = Pair()


def fastest_beside(name: str) -> str:
    """In which framework tests compute for a notebook that is written in this one: PyTorch, where it is installed.

    It begins and computes in a small part of the time that TensorFlow takes.
    """
    return Torch.name if importlib.util.find_spec(Torch.name) else name


def as_tensor(value, name: str):
    """An array as a constant tensor of a framework, which may share its numbers; anything else as it is."""
    return OWNERS[name].made(value, CONSTANT) if isinstance(value, np.ndarray) else value


def loaded(name: str | None) -> Torch | TensorFlow | None:
    """A framework that has been imported in this process; None of any other name."""
    return OWNERS.get(name) if sys.modules.get(name) is not None else None
