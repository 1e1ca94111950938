"""Values that pass between two processes: what is written is read again, and what is no value is refused."""

import base64
import json
import pickle
from enum import IntEnum

import numpy as np
import pytest

from course_lib.grading.values import BYTES, DEPTH, ITEMS, KEYS, Budget, Malformed, read, write

VALUES = [
    None, True, False, 0, -7, 2**200, 1.5, float("nan"), float("-inf"), "", "ä text\n", (), [],
    (1, [2.0, "x"], (None,)), {}, {"a": 1, 2: [{"b": np.arange(3)}]},
    np.float32(1.5), np.int64(3), np.True_, np.zeros(()), np.zeros((0, 3)), np.arange(6.0).reshape(2, 3).T,
    np.array([True, False]), np.arange(4, dtype=">i2"), np.array([1 + 2j]), np.float16([1.5]),
    1 - 2j, complex("nan"), b"", b"\x00\xff", range(3), range(7, -2**70, -2**70), set(), {1, "x", (2, b"y")},
    frozenset({frozenset({1.5}), None}), 2**9000, np.array([["ä", "bcd"]]), np.array(["€"], dtype=">U3"),
    np.array([b"x", b""]), np.array([], dtype=str),
]  # fmt: skip


def passed(value):
    return read(json.loads(json.dumps(write(value))))


@pytest.mark.parametrize("value", VALUES, ids=[f"{place} {type(value).__name__}" for place, value in enumerate(VALUES)])
def test_a_value_is_the_same_on_the_other_side(value):
    found = passed(value)
    assert type(found) is type(value)
    if isinstance(value, np.ndarray | np.generic):
        assert found.dtype == value.dtype and found.shape == value.shape
    np.testing.assert_equal(found, value)


def test_a_dictionary_whose_keys_are_chosen_to_collide_is_refused():
    """Their hashes are all 0: with n of them Python compares each with each."""
    chosen = [write(k * (2**61 - 1)) for k in range(KEYS + 2)]
    pairs = [write((k, -k)) for k in range(KEYS + 2)]  # with the first number given, the second sets the hash
    for keys in (chosen, pairs, [["tuple", [key, ["text", ""]]] for key in chosen]):
        with pytest.raises(Malformed, match="more than 1000 keys"):
            read(["dict", [[key, ["none"]] for key in keys]])
        for name in ("set", "frozenset", "keys", "items"):
            parts = [["tuple", [key, ["none"]]] for key in keys] if name == "items" else list(keys)
            with pytest.raises(Malformed, match="more than 1000 keys"):
                read([name, parts])
    assert len(read(["dict", [[key, ["none"]] for key in chosen[:KEYS]]])) == KEYS
    n = 3 * KEYS
    texts = [map(str, range(n)), ((f"{k}", b"x") for k in range(n)), (f"{k}".encode() for k in range(n))]
    for honest in (range(n), map(np.int64, range(n)), *texts):
        assert len(passed(dict.fromkeys(honest))) == n


def test_views_of_a_dictionary_are_such_views_and_subclasses_what_they_stand_for():
    some = {"a": 1, (2,): [3]}
    assert passed(some.keys()) == some.keys() and type(passed(some.keys())) is type(some.keys())
    assert list(passed(some.items())) == list(some.items()) and list(passed(some.values())) == [1, [3]]
    for value, plain in ((IntEnum("Two", {"b": 2}).b, 2), (type("F", (float,), {})(1.5), 1.5), (np.bytes_(b"x"), b"x")):
        assert passed(value) == plain and type(passed(value)) is type(plain)
    assert passed(bytearray(b"x")) == b"x"


def test_an_array_that_was_read_is_plain_and_may_be_written_to():
    class Own(np.ndarray):
        pass

    found = passed(np.arange(3.0).view(Own))
    found[0] = 7
    assert type(found) is np.ndarray and found.tolist() == [7, 1, 2]


@pytest.mark.parametrize(
    "value",
    [object(), len, np.array([None]), np.array("2026-01-01", "M8[D]"), 2**20_000, range(2**20_000)],
    ids=lambda v: type(v).__name__,
)
def test_of_anything_else_the_name_of_its_type_passes_alone(value):
    assert write(value) == ["other", type(value).__name__]
    assert type(passed(value)).__name__ == type(value).__name__ and not vars(passed(value))


def array(dtype="<f8", shape=(1,), data=bytes(8)):
    return ["array", dtype, list(shape), base64.b64encode(data).decode()]


REFUSED = {
    "an object dtype": array("|O"),
    "a pickle for bytes": array("|O", data=pickle.dumps([])),
    "a structured dtype": array("<f8,<f8"),
    "a void dtype": array("|V8"),
    "dates": array("<M8"),
    "a dtype that does not exist": array("<f7"),
    "a dtype that is no text": ["array", 3, [1], ""],
    "too few bytes": array(shape=(2,)),
    "too many bytes": array(data=bytes(16)),
    "a negative size": array(shape=(-1,)),
    "a size that is no whole number": array(shape=(1.0,)),
    "a truth value for a size": array(shape=(True,)),
    "sizes whose product is too large": array(shape=(2**23, 2**23)),
    "too many axes": array(shape=[1] * 65),
    "letters that are not base64": ["array", "<f8", [1], "!" * 12],
    "no array at all": ["array"],
    "a name that nobody knows": ["code", "1 + 1"],
    "a name that is a list": [[], 1],
    "nothing": [],
    "a text for a list": ["list", "abc"],
    "a number for a text": ["text", 3],
    "a text for a truth value": ["bool", "yes"],
    "a number for a float": ["float", 3],
    "letters for a float": ["float", "x"],
    "a very long whole number": ["int", "0x" + "f" * 10_000],
    "a type with another name than one": ["other", "a.b"],
    "a type without a name": ["other", None],
    "a dict": {"a": 1},
    "half of a complex number": ["complex", ["0x1p0"]],
    "a complex number of texts": ["complex", ["x", "y"]],
    "a range without a step": ["range", ["0x0", "0x1", "0x0"]],
    "a range of very long numbers": ["range", ["0x0", "0x1", "0x" + "f" * 10_000]],
    "bytes that are not base64": ["bytes", "!"],
    "a number for bytes": ["bytes", 3],
    "a set of lists": ["set", [["list", []]]],
    "a set of arrays": ["frozenset", [array()]],
    "a text for a set": ["set", "abc"],
    "items that are no pairs": ["items", [["int", "0x1"]]],
    "letters that are none": array("<U1", data=b"\xff\xff\xff\x7f"),
    "letters of too few bytes": array("<U3"),
    "letters of no length": array("<U0", data=b""),
    "a bare text": "none",
    "None": None,
}


@pytest.mark.parametrize("form", REFUSED.values(), ids=REFUSED)
def test_what_is_no_value_is_refused(form):
    with pytest.raises(Malformed):
        read(form)


def test_what_is_too_large_is_refused_on_both_sides():
    deep = []
    for _ in range(DEPTH + 1):
        deep = [deep]
    many = [0] * (ITEMS + 1)
    for value in (np.zeros(BYTES), "x" * (BYTES + 1), bytes(BYTES + 1), many, deep, [np.zeros(BYTES // 16)] * 3):
        with pytest.raises(Malformed, match="too"):
            write(value)
    unlimited = Budget(2**40, 2**30)
    for value in (np.zeros(BYTES // 4), "x" * (BYTES + 1), many, set(range(ITEMS + 1)), range(ITEMS + 1)):
        with pytest.raises(Malformed, match="too"):
            read(write(value, unlimited))
