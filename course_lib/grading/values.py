"""Values as JSON, between two processes of which one trusts nothing that the other says.

Whatever is read becomes a plain value: None, a truth value, a number, a text, bytes, a range, an array of NumPy's, a
tensor, or a tuple, a list, a set, a dictionary, a view of one or an iterator of these. Nothing that is read runs. What
is no such value is written as the name of its type alone. A function passes only where a `Budget` keeps it, as a number
by which the other side may call it. A tensor passes as the array that it holds, and as what it is to its framework; it
is read where that has been imported, or as one of another framework, in which this side computes.
"""

import base64
import binascii
import itertools
import re
from collections.abc import Callable, Iterator

import numpy as np

from course_lib.grading.frameworks import ALIKE, CONSTANT, FOLLOWED, OWNERS, VARIABLE, Pair, loaded, owner_of

KINDS = "biufc"  # of NumPy's dtypes: truth values, integers, floats, complex numbers
TEXTS = "US"  # and of arrays alone: texts, bytes
BYTES = 2**24  # of all arrays in a message, and of all its texts
LETTERS = 3_000  # of a whole number
LAST = 0x10FFFF  # the number of the last letter of Unicode
ITEMS, DEPTH = 100_000, 8  # of tuples and lists together; of one in another
KEYS = 1_000  # of a dictionary or a set, whose hashes somebody can choose: with more, to read it would take minutes
DTYPE = re.compile(r"[<>|](?:[biufc]\d{1,2}|[US]\d{1,7})")
NAME = re.compile(r"\w{1,80}")
VIEWS = {"keys": type({}.keys()), "items": type({}.items()), "values": type({}.values())}  # of a dictionary
PARTS = {
    "tuple": tuple,
    "list": list,
    "iterator": iter,
    "set": set,
    "frozenset": frozenset,
    "keys": lambda parts: dict.fromkeys(parts).keys(),
    "items": lambda parts: dict(parts).items(),
    "values": lambda parts: dict(enumerate(parts)).values(),
}
HASHED = ("set", "frozenset", "keys")


class Malformed(ValueError):
    """What came is no value, or too large."""


class Budget:
    """What may still be read or written of a message.

    bytes, items : how much there may be, before the first value.
    keep : of a function that is written, the number that the other side calls it by; None: no function passes.
    made : of a number that is read, a function that calls the other side's; None: no function passes.
    follow : of each tensor that is differentiated, and what it is: the tensor to be taken in its place, where it is
        read. None: none is asked for its derivatives later.
    frameworks : the `Pair`, on the tests' side; `ALIKE` in the notebook, where each tensor keeps its framework.
    """

    def __init__(
        self,
        bytes: int = BYTES,
        items: int = ITEMS,
        keep: Callable[[Callable], int] | None = None,
        made: Callable[[int], Callable] | None = None,
        follow: Callable | None = None,
        frameworks: Pair = ALIKE,
    ):
        self.bytes, self.items, self.keep, self.made, self.follow = bytes, items, keep, made, follow
        self.frameworks = frameworks

    def take(self, bytes: int, depth: int) -> None:
        """Raise `Malformed` where it is not left."""
        self.bytes, self.items = self.bytes - bytes, self.items - 1
        if self.bytes < 0:
            raise Malformed("it is too large")
        if self.items < 0 or depth > DEPTH:
            raise Malformed("it has too many parts, or parts in parts")


def write(value, budget: Budget | None = None, depth: int = 0) -> list:
    """A value as lists and texts for JSON: what it is, and what it holds.

    Raises:
        Malformed: it is larger than a message may be.
    """
    budget = budget or Budget()
    kind = type(value)
    if isinstance(value, np.generic) and value.dtype.kind in KINDS:
        return ["number", *_numbers(value, budget, depth)]
    if isinstance(value, np.ndarray) and value.dtype.kind in KINDS + TEXTS:
        return ["array", *_numbers(value, budget, depth)]
    if owner := owner_of(value):
        array = owner.numbers(value)
        if array is not None and array.dtype.kind in KINDS:
            mark = owner.mark(value, budget.follow is not None)
            form = ["tensor", budget.frameworks.in_notebook(owner.name), mark, *_numbers(array, budget, depth)]
            if budget.follow and mark in FOLLOWED:
                budget.follow(value, mark)
            return form
    if isinstance(value, str):
        value = str.__str__(value)  # of a subclass, too: the letters that it has
    budget.take(len(value) if isinstance(value, str | bytes | bytearray) else 0, depth)
    if value is None:
        return ["none"]
    if kind is bool:
        return ["bool", value]
    if isinstance(value, int) and len(hex(int.__int__(value))) < LETTERS:  # of a subclass, too: the number that it is
        return ["int", hex(int.__int__(value))]
    if isinstance(value, float):
        return ["float", float.hex(value)]
    if kind is complex:
        return ["complex", [value.real.hex(), value.imag.hex()]]
    if kind is range and len(hex(value.start) + hex(value.stop) + hex(value.step)) < LETTERS:
        return ["range", [hex(value.start), hex(value.stop), hex(value.step)]]
    if isinstance(value, str):
        return ["text", value]
    if isinstance(value, bytes | bytearray):
        return ["bytes", base64.b64encode(value).decode("ascii")]
    for name, of in {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset, **VIEWS}.items():
        if isinstance(value, of):
            return [name, [write(part, budget, depth + 1) for part in value]]
    if isinstance(value, dict):
        return ["dict", [[write(part, budget, depth + 1) for part in item] for item in dict.items(value)]]
    if isinstance(value, Iterator):  # a generator, say, of which a test may make a list
        parts = itertools.islice(value, budget.items + 1)
        return ["iterator", [write(part, budget, depth + 1) for part in parts]]
    if budget.keep and callable(value):
        return ["function", budget.keep(value)]
    return ["other", kind.__name__]


def read(form, budget: Budget | None = None, depth: int = 0):
    """The value of what `write` made, or of what somebody else did; arrays are new, and may be written to.

    Raises:
        Malformed: it is none, or larger than it may be.
    """
    budget = budget or Budget()
    try:
        name, *held = form
        if name in ("array", "number"):
            return _array(name, *held, budget, depth)
        if name == "tensor":
            return _tensor(*held, budget, depth)
        (content,) = held or [None]
        size = len(content) if isinstance(content, str) else 0
        budget.take(size * 3 // 4 if name == "bytes" else size, depth)
        if name == "none":
            return None
        if name == "bool" and isinstance(content, bool):
            return content
        if name == "int":
            return _whole(content)
        if name == "float":
            return float.fromhex(content)
        if name == "complex":
            real, imaginary = content
            return complex(float.fromhex(real), float.fromhex(imaginary))
        if name == "range":
            found = range(*map(_whole, content))
            budget.items -= len(found)  # a test may make a list of it
            budget.take(0, depth)
            return found
        if name == "text" and isinstance(content, str):
            return content
        if name == "bytes" and isinstance(content, str):
            return base64.b64decode(content, validate=True)
        if name in PARTS and isinstance(content, list):
            parts = [read(part, budget, depth + 1) for part in content]
            _scattered(parts if name in HASHED else [key for key, _ in parts] if name == "items" else [])
            return PARTS[name](parts)
        if name == "dict" and isinstance(content, list):
            items = [(read(key, budget, depth + 1), read(part, budget, depth + 1)) for key, part in content]
            _scattered([key for key, _ in items])
            return dict(items)
        if name == "function" and budget.made and type(content) is int:
            return budget.made(content)
        if name == "other" and NAME.fullmatch(content):
            return type(content, (), {})()  # nothing but the name of its type
    except (TypeError, ValueError, OverflowError, binascii.Error) as error:
        if isinstance(error, Malformed):
            raise
        raise Malformed(f"it is no value: {type(error).__name__}") from None
    raise Malformed("it is no value")


def _whole(letters: str) -> int:
    if len(letters) >= LETTERS:
        raise Malformed("it is too large a number")
    return int(letters, 16)


def _scattered(keys: list) -> None:
    """Raise `Malformed` where a dictionary or a set of these could take minutes."""
    if sum(not _is_scattered(key) for key in keys) > KEYS:
        raise Malformed(f"it has more than {KEYS} keys that are no texts and no whole numbers below 2**60")


def _is_scattered(key) -> bool:
    """Whether nobody can choose many such keys of the same hash, with which a dictionary compares all with all.

    That of a text is secret, and no two small numbers have the same. That of a tuple of numbers can be solved for one.
    """
    if isinstance(key, tuple):
        return all(isinstance(part, str | bytes) for part in key)
    return isinstance(key, str | bytes) or isinstance(key, int | np.integer) and abs(int(key)) < 2**60


def _numbers(value: np.ndarray | np.generic, budget: Budget, depth: int) -> list:
    budget.take(value.nbytes, depth)
    array = np.array(value, copy=True, subok=False)
    return [array.dtype.str, list(array.shape), base64.b64encode(array.tobytes()).decode("ascii")]


def _array(name: str, dtype: str, shape: list, data: str, budget: Budget, depth: int):
    if not (isinstance(dtype, str) and DTYPE.fullmatch(dtype) and len(shape) <= 32):
        raise Malformed("its dtype or shape is none")
    if not all(type(size) is int and 0 <= size <= BYTES for size in shape):
        raise Malformed("its shape is none")
    budget.take(len(data) * 3 // 4, depth)
    array = np.frombuffer(base64.b64decode(data, validate=True), np.dtype(dtype)).copy()
    if array.dtype.kind == "U" and np.any(array.view(np.dtype("u4").newbyteorder(array.dtype.byteorder)) > LAST):
        raise Malformed("it has letters that are none")
    array = array.reshape(shape)  # raises ValueError where the numbers are too few or too many
    return array[()] if name == "number" and array.ndim == 0 else array


def _tensor(whose: str, mark: str, dtype: str, shape: list, data: str, budget: Budget, depth: int):
    array = _array("array", dtype, shape, data, budget, depth)
    owner = loaded(budget.frameworks.at_tests(whose)) if whose in OWNERS else None
    known = mark in (CONSTANT, VARIABLE, *FOLLOWED)
    if owner is None or not (known and array.dtype.isnative):
        raise Malformed("it is a tensor of no framework that is in use here")
    if mark in FOLLOWED and array.dtype.kind != "f":
        raise Malformed("it is differentiated, and holds no floats")
    try:
        tensor = owner.made(array, mark)
    except Exception as error:  # its own: of a dtype that it lacks, say
        raise Malformed(f"it is no tensor: {type(error).__name__}") from None
    return budget.follow(tensor, mark) if budget.follow and mark in FOLLOWED else tensor
