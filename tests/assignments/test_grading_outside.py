"""Hidden tests outside the student's process: what they see, what they serve, and what they make of the answers."""

import json
import os
import queue
import threading
import time

import numpy as np
import pytest

from course_lib import grading
from course_lib.grading import answering
from course_lib.grading.compare import CheckFailed
from course_lib.grading.outside.examinee import RIGHT_VALUES, Examinee
from course_lib.grading.outside.seeds import SECRET, secret_of, seed_for
from course_lib.grading.outside.tests import HiddenTests, names_asked_for
from course_lib.grading.score import SEED


class InThisProcess(Examinee):
    """An examinee without a kernel: the student's side runs in a thread, and both hand each other texts."""

    def __init__(self, code: str):
        super().__init__(kernel=self)
        self.namespace: dict = {"np": np}
        exec(code, self.namespace)
        self._up, self._down = queue.Queue(), queue.Queue()
        self._client = self
        self.sent: list[str] = []

    def time_is_over(self) -> bool:
        return False

    def input(self, text: str) -> None:
        self.sent.append(text)
        self._down.put(text)

    def _ask_up(self, text: str) -> str:
        self._up.put(text)
        return self._down.get()

    def renew(self) -> None:
        self._up, self._down = queue.Queue(), queue.Queue()

    def _ask(self, asked: dict, served: dict) -> dict:
        try:
            return super()._ask(asked, served)
        except BaseException:  # the thread ends before its redirections of output outlive those of this one
            for _ in range(3):
                self._down.put("null")
            self._thread.join(20)
            raise

    def close(self) -> None:
        self._request = None

    def _start(self) -> None:
        if self._lost:
            raise CheckFailed("lost")
        self._request = "one"
        self._thread = threading.Thread(target=answering.serve, args=(self.namespace, self._ask_up), daemon=True)
        self._thread.start()
        self._next(0)

    def _next(self, end: float) -> dict:
        return json.loads(self._up.get(timeout=20))


def outputs_of(tests: str, code: str, seed: int = 1):
    examinee = InThisProcess(code)
    outputs = HiddenTests(tests, examinee, seed).outputs()
    return examinee, outputs


def score_of(outputs) -> float:
    return float(outputs[-1]["data"]["text/plain"])


SOFTMAX = """
def hidden_tests():
    from course_lib.grading import Score, expect_array, expect_unchanged
    import numpy as np

    score = Score(3)

    @score.check(1, "values")
    def _():
        x = score.rng(1).normal(size=(2, 3))
        expect_array(softmax(x.copy()), np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True))

    @score.check(1, "left alone")
    def _():
        x = score.rng(2).normal(size=(2, 3))
        before = x.copy()
        softmax(x)
        expect_unchanged(x, before, "x")

    @score.check(1, "an error")
    def _():
        try:
            softmax(np.ones(0))
        except ValueError:
            return
        raise AssertionError("no error")

    return score.total()


hidden_tests()
"""
RIGHT = """
def softmax(x):
    if not x.size:
        raise ValueError("nothing to normalise")
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)
"""


def test_a_right_function_earns_everything_and_no_test_reaches_its_process():
    examinee, outputs = outputs_of(SOFTMAX, RIGHT)
    assert score_of(outputs) == 3 and "3 of 3 points" in outputs[0]["text"]
    assert not [name for name in examinee.namespace if "hidden" in name]
    assert all("hidden" not in text and "expect" not in text for text in examinee.sent)


@pytest.mark.parametrize(
    ("code", "earned", "said"),
    {
        "wrong values": ("def softmax(x):\n    return x", 1, "it should be"),
        "None": ("def softmax(x):\n    pass", 1, "Did you forget to `return` it?"),
        "changes its argument": (RIGHT.replace("return", "x -= 1\n    return"), 2, "in place"),
        "raises": ("def softmax(x):\n    raise KeyError('no')", 0, "KeyError: 'no'"),
        "an error of its own": ("class Own(ValueError): pass\ndef softmax(x):\n    raise Own('no')", 1, "Own: no"),
        "not written": ("def softmax(x):\n    raise NotImplementedError", 0, "Not written yet"),
        "not there": ("", 0, "NameError: name 'softmax' is not defined."),
        "an exit": ("def softmax(x):\n    raise SystemExit", 0, "Your code called exit"),
        "a set": ("def softmax(x):\n    return {1}", 1, "yours is a set of dtype object"),
        "too large": ("def softmax(x):\n    return np.zeros(10_000_000)", 0, "too large"),
    }.values(),
)  # fmt: skip
def test_what_a_wrong_function_earns_and_is_told(code, earned, said):
    _, outputs = outputs_of(SOFTMAX, code)
    assert score_of(outputs) == earned
    assert said in outputs[0]["text"]


FOLLOWS = """
def hidden_tests():
    from course_lib.grading import Score, expect_array
    import numpy as np

    def right_softmax(x):
        return np.full(x.shape, 7.0)

    score = Score(1, follow_through={"softmax": right_softmax}, namespace=globals())

    @score.check(1, "uses softmax")
    def _():
        expect_array(attention(np.ones(2)), np.array([7.0, 7.0]))

    return score.total()


hidden_tests()
"""


def test_a_right_version_of_an_earlier_part_serves_its_values_and_the_students_own_comes_back():
    code = "def softmax(x):\n    return x\ndef attention(x):\n    return softmax(x)"
    examinee, outputs = outputs_of(FOLLOWS, code)
    assert score_of(outputs) == 1 and "with right versions of the earlier parts" in outputs[0]["text"]
    assert examinee.namespace["softmax"](3) == 3


def test_of_a_part_whose_own_tests_are_still_to_come_no_right_value_is_sent():
    """As when a student has moved a cell of tests before those of an earlier part."""
    code = "def softmax(x):\n    return x\ndef attention(x):\n    return softmax(x)"
    examinee = InThisProcess(code)
    outputs = HiddenTests(FOLLOWS, examinee, 1, to_come={"softmax", "mask"}).outputs()
    assert score_of(outputs) == 0 and not [text for text in examinee.sent if "served" in text and 'softmax"]' in text]


def test_a_function_that_empties_its_arguments_does_not_empty_what_the_tests_compute_with():
    tests = SOFTMAX.replace("softmax(x.copy()), np.exp(x)", "softmax(x), np.exp(x)")
    code = "def softmax(x):\n    x[...] = 0\n    return np.full(x.shape, 1 / 3)"
    assert score_of(outputs_of(tests, code)[1]) == 0
    examinee, given = InThisProcess(code), np.ones((2, 3))
    examinee.call("softmax", (given,), {}, {})
    assert given.all() and not examinee.changed[0][1].any()


@pytest.mark.parametrize("asked", ["np.empty((50_000, 0))", "10**6", "np.int64(-10**6)"])
def test_a_right_version_is_not_made_to_compute_for_ever(asked):
    """By what takes no bytes to send, and without end to compute with."""
    examinee = InThisProcess(f"def attention(x):\n    return softmax({asked})")
    with pytest.raises(CheckFailed, match="too large"):
        examinee.call("attention", (np.ones(2),), {}, {"softmax": lambda x: x})


def test_the_start_of_a_kernel_is_not_of_the_students_time(monkeypatch):
    tests = """
def hidden_tests():
    from course_lib.grading import Score

    score = Score(2, limit_s=0.5)

    @score.check(2, "twice")
    def _():
        assert f(1) + f(2) == 3

    return score.total()


hidden_tests()
"""
    start = InThisProcess._start
    monkeypatch.setattr(InThisProcess, "_start", lambda self: (time.sleep(1), start(self)))
    examinee, outputs = outputs_of(tests, "def f(x):\n    return x")
    left = [call["seconds"] for call in map(json.loads, examinee.sent) if call]
    assert score_of(outputs) == 2 and len(left) == 2 and min(left) > 0.2  # of half a second


@pytest.mark.parametrize("name", ["hidden_tests", "right_softmax", "score", "attention", "__builtins__", "print"])
def test_nothing_else_is_served(name):
    code = (
        "from course_lib.grading import answering\n"
        "def softmax(x):\n    return x\n"
        f"def attention(x):\n    return answering._served({name!r}, ask)(x)"
    )
    examinee = InThisProcess(code)
    examinee.namespace["ask"] = examinee._ask_up
    outputs = HiddenTests(FOLLOWS, examinee, 1).outputs()
    said = " ".join(outputs[0]["text"].split())
    assert score_of(outputs) == 0 and "it asks for a value that is not to be had" in said


def test_right_values_are_not_served_without_end_nor_of_large_arguments():
    endless = "def softmax(x):\n    return x\ndef attention(x):\n    while True:\n        softmax(x)"
    examinee = InThisProcess(endless)
    with pytest.raises(CheckFailed, match=f"more than {RIGHT_VALUES} values"):
        examinee.call("attention", (np.ones(2),), {}, {"softmax": lambda x: x})
    large = "def attention(x):\n    return softmax(np.ones(10**5))"
    examinee = InThisProcess(large)
    with pytest.raises(CheckFailed, match="too large"):
        examinee.call("attention", (np.ones(2),), {}, {"softmax": lambda x: x})


@pytest.mark.parametrize(
    "said",
    [
        {}, {"kind": "score", "value": 4.0}, {"kind": "returned"}, {"kind": "returned", "value": 4.0},
        {"kind": "returned", "value": ["array", "|O", [1], ""]}, {"kind": ["returned"]}, {"kind": "ready"},
        {"kind": "returned", "value": ["none"], "changed": [1]},
        {"kind": "returned", "value": ["none"], "changed": {"5": ["none"]}},
        {"kind": "returned", "value": ["none"], "changed": {"0": ["array", "<i8", [1], "AAAAAAAAAAA="]}},
        {"kind": "raised", "types": 3, "text": 4}, {"kind": "raised", "types": ["SystemExit"], "text": "x"},
        {"kind": "raised", "types": ["KeyboardInterrupt", "BaseException"], "text": "x"}, {"kind": "wanted"},
        {"kind": "raised", "types": ["a b"], "text": None, "stopped": "yes"},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_whatever_the_student_s_side_says_is_at_most_a_failure(said, monkeypatch):
    monkeypatch.setattr(answering, "_called", lambda *given: said)
    with pytest.raises(CheckFailed):
        InThisProcess(RIGHT).call("softmax", (np.ones(2),), {}, {})


def test_the_tests_seed_and_helpers_are_put_back():
    def now():
        return grading.Score, grading.expect_closed, grading.expect_unchanged

    before, environment = now(), os.environ.get(SEED)
    outputs_of(SOFTMAX, RIGHT)
    assert now() == before and os.environ.get(SEED) == environment


def test_other_seeds_draw_other_inputs():
    given = [json.loads(outputs_of(SOFTMAX, RIGHT, seed)[0].sent[0])["given"] for seed in (1, 1, 2)]
    assert given[0] == given[1] != given[2]


def test_closed_modules_are_those_that_the_students_process_loaded():
    tests = (
        "def hidden_tests():\n    from course_lib.grading import expect_closed\n    expect_closed({!r})\nhidden_tests()"
    )
    _, outputs = outputs_of(tests.format("json"), "import json")
    assert outputs[-1]["ename"] == "CheckFailed" and "loaded json" in outputs[-1]["evalue"]


def test_the_names_of_a_cell_are_those_that_it_expects_of_the_notebook():
    source = "import os\ndef f(x):\n    from builtins import max\n    return max(g(x), os.x, h.y, len(x))\nf(k)"
    assert names_asked_for(source) == {"g", "h", "k"}


def test_a_course_has_one_secret_that_its_owner_alone_may_read(tmp_path):
    first = secret_of(tmp_path)
    assert secret_of(tmp_path) == first and len(first) == 64
    assert [path.name for path in tmp_path.iterdir()] == [SECRET]
    if os.name == "posix":
        assert (tmp_path / SECRET).stat().st_mode & 0o777 == 0o600
    (tmp_path / SECRET).write_text("short")
    with pytest.raises(ValueError, match="no secret"):
        secret_of(tmp_path)


def test_a_seed_depends_on_each_text_and_on_where_it_ends():
    made = {seed_for(b"k" * 32, *of) for of in [("a", "b"), ("ab",), ("ab", ""), ("a", "c"), ("b", "a")]}
    assert len(made | {seed_for(b"j" * 32, "a", "b")}) == 6
    assert seed_for(b"k" * 32, "a", "b") == seed_for(b"k" * 32, "a", "b")
