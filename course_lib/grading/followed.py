"""Derivatives of calls that another process answers.

Each side keeps what it computed. `Asked` makes of an answer's tensors results of an operation on the arguments; where
the framework asks for the derivatives of that operation, the other process is asked. `Answered` keeps what a call
computed for that, and `Kept` the calls of the student's side. Tensors have no names: both sides find them in the order
in which `values` writes and reads them.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from course_lib.grading.frameworks import LEAF, TensorFlow, Torch, owner_of
from course_lib.grading.values import Malformed

Pull = Callable[[int, np.ndarray], list]
MOST_KEPT = 100  # calls whose derivatives may still be asked for
MOST_RESULTS = 1_000  # of an answer that are differentiated: each is an operation of its own, which takes a millisecond


class Asked:
    """A call of a function in the other process.

    pull : asks for the derivatives of a number by all inputs, by its derivatives by one of the results, of which it
        gets the place. It returns an array, or None, of each input, and perhaps of what is `besides`.
    besides : tensors on which the results depend, too, by functions of this side that the call calls. In PyTorch a
        result is only differentiated where it depends on something that is.
    """

    def __init__(self, pull: Pull, besides: Sequence = ()):
        self.pull, self.besides = pull, list(besides)
        self.inputs: list = []
        self._results = 0

    def gives(self, tensor, mark: str):
        """An argument that is differentiated, while it is written."""
        self.inputs.append(tensor)
        return tensor

    def gets(self, tensor, mark: str):
        """A result, while it is read: a result of the inputs.

        Raises
        ------
        Malformed : it is of another framework than an input, or there are too many.
        """
        place, self._results = self._results, self._results + 1
        inputs, owner = [*self.inputs, *self.besides], owner_of(tensor)
        if any(owner_of(each) is not owner for each in inputs):
            raise Malformed("it is of another framework than what was given")
        if not inputs:
            return tensor
        if place >= MOST_RESULTS:
            raise Malformed(f"it has more than {MOST_RESULTS} tensors that are differentiated")
        return owner.connected(tensor, inputs, functools.partial(self._pulled, place))

    def _pulled(self, place: int, cotangent: np.ndarray) -> list:
        found = self.pull(place, cotangent)
        return found + [None] * (len(self.inputs) + len(self.besides) - len(found))


class Answered:
    """A call that was answered in this process.

    tape : what `recording` of the framework gave, while the call ran
    """

    def __init__(self, tape=None):
        self.tape = tape
        self.inputs: list = []
        self.outputs: list = []

    def takes(self, tensor, mark: str):
        """An argument, while it is read."""
        owner = owner_of(tensor)
        owner.watch(self.tape, tensor)
        self.inputs.append(tensor)
        return owner.given(tensor, mark)

    def returns(self, tensor, mark: str):
        """A result, while it is written."""
        self.outputs.append(tensor)
        return tensor

    def pulled(self, place, cotangent, besides: Sequence = ()) -> list[np.ndarray | None]:
        """The derivatives of a number by each input, and by what is `besides`, by those by one of the results.

        Raises
        ------
        Malformed : there is no such result, or it has another shape or dtype.
        """
        if not (type(place) is int and 0 <= place < len(self.outputs)):
            raise Malformed("it asks for derivatives of what was not returned")
        output = self.outputs[place]
        owner = owner_of(output)
        check_like(cotangent, owner.numbers(output))
        return owner.pulled(self.tape, output, [*self.inputs, *besides], cotangent)


class Kept:
    """The calls that the other side has made of this one and may ask for derivatives of, by its numbers.

    What such a call calls on the other side may depend on what is differentiated there, and nobody here can see it. So
    in each call there is a tensor by which nobody asks for derivatives: on it, all that comes from there depends.
    """

    def __init__(self):
        self._calls: dict[int, tuple[Answered, list]] = {}
        self._under_way: list[list] = []  # of each call that runs now, the innermost last: that tensor

    @property
    def besides(self) -> list:
        """For an `Asked`: what the results of a call that is made now depend on, beside its arguments."""
        return self._under_way[-1] if self._under_way else []

    def forget(self, first: int) -> None:
        """Let go of the calls before this number, and of those that are too many."""
        for number in [*[*self._calls][:-MOST_KEPT], *(each for each in self._calls if each < first)]:
            self._calls.pop(number, None)

    @contextlib.contextmanager
    def call(self, owner: Torch | TensorFlow | None, number: int | None) -> Iterator[Answered | None]:
        """A block in which a call is answered; it is kept if it has a number. `owner`: the notebook's framework."""
        if not owner or number is None:
            yield None
            return
        with owner.recording() as tape:
            beside = Answered(tape).takes(owner.made(np.zeros((), np.float32), LEAF), LEAF)
            self._under_way.append([beside])
            try:
                yield (answered := Answered(tape))
            finally:
                self._under_way.pop()
        self._calls[number] = answered, [beside]

    def pulled(self, number: int, place: int, cotangent) -> list[np.ndarray | None]:
        """The derivatives of a number by what a call was given, by those by one of its results.

        Raises
        ------
        Malformed : the call is not kept any more, or has no such result.
        """
        if number not in self._calls:
            raise Malformed("its derivatives are not to be had any more")
        answered, besides = self._calls[number]
        return answered.pulled(place, cotangent, besides)[: len(answered.inputs)]


def check_like(derivative, array: np.ndarray) -> None:
    """Raise `Malformed` unless this can be the derivatives by what the array holds."""
    if not isinstance(derivative, np.ndarray) or (derivative.dtype, derivative.shape) != (array.dtype, array.shape):
        raise Malformed("a derivative has another shape or dtype than that by which it is taken")
