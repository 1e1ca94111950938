"""Derivatives of what a student's functions return: asked for where the framework of the tests comes to them.

A call of such a function is one operation to the framework, on its arguments and on the tensors by which derivatives
are taken: a function of the tests that the call calls may depend on these without being given them.
"""

import contextlib
import functools
from collections.abc import Callable, Sequence

import numpy as np

from course_lib.grading.followed import Answered, Asked, check_like
from course_lib.grading.frameworks import ALIKE, Pair, as_tensor, owner_of
from course_lib.grading.values import Malformed, read


class Call(Asked):
    """A call of a student's function.

    number : by which the student's side knows it
    key, served : see `Examinee.call`
    leaves, tape : of `Derivatives`, when it was made
    """

    def __init__(self, number: int, key: tuple, served: dict[str, Callable], leaves: list, tape, pull: Callable):
        super().__init__(functools.partial(pull, self), leaves)
        self.number, self.key, self.served, self.tape = number, key, served, tape
        self.inner: list[Answered] = []  # calls of functions of ours in it
        self.by_leaves: list[np.ndarray | None] = []  # derivatives that were found on the way through these

    @property
    def followed(self) -> bool:
        """Whether its derivatives may be asked for; known when its arguments have been written."""
        return bool(self.inputs or self.besides)

    def understood(self, forms: list) -> list[np.ndarray | None]:
        """What the student's side says to be the derivatives by the inputs; and those by the leaves.

        Raises
        ------
        Malformed : they are of another shape or dtype.
        ValueError : they are not as many as these.
        """
        found = [read(form) for form in forms]
        for tensor, derivative in zip(self.inputs, found, strict=True):
            if derivative is not None:
                check_like(derivative, owner_of(tensor).numbers(tensor))
        return found + self.by_leaves


class Derivatives:
    """What is known of calls whose derivatives may be asked for.

    frameworks : in which the tests compute, and in which the notebook is written, as it says
    """

    def __init__(self):
        self.frameworks: Pair = ALIKE
        self._leaves: list = []
        self._tape = None
        self._calls: list[Call] = []  # that are under way, the innermost last
        self._number, self._first = 0, 1  # of the last call, and of the first that is not forgotten

    def as_taken(self, value):
        """What a function of the tests gets: TensorFlow takes an array for a tensor, as PyTorch does not."""
        return as_tensor(value, self.frameworks.tests) if self.frameworks.differ else value

    def forget(self) -> None:
        """No derivatives of earlier calls are asked for any more."""
        self._first = self._number + 1

    @contextlib.contextmanager
    def of(self, leaves: Sequence):
        """What is called in this block is differentiated by these tensors after it."""
        owner = owner_of(leaves[0])
        with owner.recording() as tape:
            for tensor in leaves:
                owner.watch(tape, tensor)
            self._leaves, self._tape = list(leaves), tape
            try:
                yield
            finally:
                self._leaves, self._tape = [], None

    def of_all(self, function: Callable) -> Callable:
        """The same function, which is differentiated by all of its arguments."""

        def run(*given):
            with self.of(given):
                return function(*given)

        return run

    def call(self, key: tuple, served: dict[str, Callable], pull: Callable) -> Call:
        """A call that is about to be made; `pull` gets it, the place of a result, and the derivatives by that."""
        self._number += 1
        return Call(self._number, key, served, self._leaves, self._tape, pull)

    def about(self, call: Call) -> dict:
        """What the student's side must know of a call."""
        keep = call.number if call.followed else None
        return {"framework": self.frameworks.notebook, "keep": keep, "first": self._first}

    @contextlib.contextmanager
    def under_way(self, call: Call):
        """A block in which something of a call is asked for."""
        self._calls.append(call)
        call.by_leaves = [None] * len(call.besides)
        try:
            yield
        finally:
            self._calls.pop()

    def inner(self) -> tuple[int, Answered]:
        """A call of a function of ours, in the innermost call that is under way; and its number there."""
        call = self._calls[-1]
        call.inner.append(Answered(call.tape))
        return len(call.inner) - 1, call.inner[-1]

    def pulled(self, number, place, cotangent) -> list[np.ndarray | None]:
        """Derivatives by the arguments of an inner call, which the student's side asks for by its number.

        Raises
        ------
        Malformed : there is no such call in the call that is under way.
        """
        call = self._calls[-1]
        if not (type(number) is int and 0 <= number < len(call.inner)):
            raise Malformed("it asks for derivatives that are not to be had")
        answered = call.inner[number]
        found = answered.pulled(place, cotangent, call.besides)
        own = len(answered.inputs)
        for place, derivative in enumerate(found[own:]):
            if derivative is not None:
                before = call.by_leaves[place]
                call.by_leaves[place] = derivative if before is None else before + derivative
        return found[:own]
