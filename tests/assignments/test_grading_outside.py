"""Hidden tests outside the student's process: what they see, what they serve, and what they make of the answers."""

import json
import os
import time

import numpy as np
import pytest

from course_lib import grading
from course_lib.grading import answering
from course_lib.grading.compare import CheckFailed
from course_lib.grading.outside.examinee import VALUES
from course_lib.grading.outside.seeds import SECRET, secret_of, seed_for, what_lies_in
from course_lib.grading.outside.tests import HiddenTests, names_asked_for
from course_lib.grading.score import SEED
from tests.support.examinees import InThisProcess


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
    ("tests", "error"),
    {
        "x = 1\nassert x == 1": "ValueError: the last line of a cell of hidden tests has to be the score",
        "def f(): pass": "ValueError: the last line",
        "": "ValueError: the last line",
        "break\n1": "SyntaxError: 'break' outside loop",
        "def (": "SyntaxError: invalid syntax",
    }.items(),
)
def test_no_mark_comes_of_a_cell_of_hidden_tests_with_a_slip(tests, error):
    with pytest.raises((ValueError, SyntaxError)) as raised:
        outputs_of(tests, "")
    assert f"{type(raised.value).__name__}: {raised.value}".startswith(error)


def test_a_cell_of_hidden_tests_runs_once():
    _, outputs = outputs_of("runs = []\nruns.append(1) or len(runs)", "")
    assert score_of(outputs) == 1


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
    with pytest.raises(CheckFailed, match=r"too\s+large"):
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
    left = [call["seconds"] for call in map(json.loads, examinee.sent) if call and "seconds" in call]
    assert score_of(outputs) == 2 and len(left) == 2 and min(left) > 0.2  # of half a second


@pytest.mark.parametrize("name", ["hidden_tests", "right_softmax", "score", "attention", "__builtins__", "print"])
def test_nothing_else_is_served(name):
    code = (
        "from course_lib.grading import answering\n"
        "def softmax(x):\n    return x\n"
        f"def attention(x):\n    return answering._Answers({{}}, ask)._theirs({name!r})(x)"
    )
    examinee = InThisProcess(code)
    examinee.namespace["ask"] = examinee._channel.ask_up
    outputs = HiddenTests(FOLLOWS, examinee, 1).outputs()
    said = " ".join(outputs[0]["text"].split())
    assert score_of(outputs) == 0 and "it asks for a value that is not to be had" in said


def test_right_values_are_not_served_without_end_nor_of_large_arguments():
    endless = "def softmax(x):\n    return x\ndef attention(x):\n    while True:\n        softmax(x)"
    examinee = InThisProcess(endless)
    with pytest.raises(CheckFailed, match=f"more than {VALUES} values"):
        examinee.call("attention", (np.ones(2),), {}, {"softmax": lambda x: x})
    large = "def attention(x):\n    return softmax(np.ones(10**5))"
    examinee = InThisProcess(large)
    with pytest.raises(CheckFailed, match=r"too\s+large"):
        examinee.call("attention", (np.ones(2),), {}, {"softmax": lambda x: x})


@pytest.mark.parametrize(
    "said",
    [
        {}, {"kind": "score", "value": 4.0}, {"kind": "returned"}, {"kind": "returned", "value": 4.0},
        {"kind": "returned", "value": ["array", "|O", [1], ""]}, {"kind": ["returned"]}, {"kind": "ready"},
        {"kind": "returned", "value": ["none"], "changed": [1]},
        {"kind": "returned", "value": ["none"], "changed": {"5": ["none"]}},
        {"kind": "returned", "value": ["none"], "changed": {"0": ["array", "<i8", [2], "AAAAAAAAAAA="]}},
        {"kind": "raised", "types": 3, "text": 4}, {"kind": "raised", "types": ["SystemExit"], "text": "x"},
        {"kind": "raised", "types": ["KeyboardInterrupt", "BaseException"], "text": "x"}, {"kind": "wanted"},
        {"kind": "raised", "types": ["a b"], "text": None, "stopped": "yes"},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_whatever_the_student_s_side_says_is_at_most_a_failure(said, monkeypatch):
    monkeypatch.setattr(answering._Answers, "to", lambda *given: said)
    with pytest.raises(CheckFailed):
        InThisProcess(RIGHT).call("softmax", (np.ones(2),), {}, {})


def test_the_tests_seed_and_helpers_are_put_back():
    def now():
        return grading.Score, grading.expect_closed, grading.expect_unchanged

    before, environment = now(), os.environ.get(SEED)
    outputs_of(SOFTMAX, RIGHT)
    assert now() == before and os.environ.get(SEED) == environment


def test_other_seeds_draw_other_inputs():
    given = [json.loads(outputs_of(SOFTMAX, RIGHT, seed)[0].sent[1])["given"] for seed in (1, 1, 2)]
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


def test_what_lies_beside_a_notebook_is_known_by_its_names_and_contents(tmp_path):
    def found():
        return what_lies_in(tmp_path)

    (tmp_path / "hw.ipynb").write_text("{}")
    assert found() == []
    seen = []
    (tmp_path / "data").mkdir()
    seen.append(found())
    (tmp_path / "data" / "x.ipynb").write_text("1")  # which is no notebook of the assignment, and can be read
    seen.append(found())
    (tmp_path / "data" / "x.ipynb").write_text("2")
    seen.append(found())
    (tmp_path / "data" / "x.ipynb").rename(tmp_path / "y.txt")
    seen.append(found())
    (tmp_path / "link").symlink_to("1")
    seen.append(found())
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("2")
    assert len({*map(tuple, [*seen, found()])}) == 6 and found() == found()


def asked(code: str, name: str, *given, served=None):
    examinee = InThisProcess(code)
    return examinee, examinee.call(name, given, {}, served or {})


def test_a_function_among_the_arguments_is_called_where_it_is():
    seen = []

    def step(ids, state):
        seen.append(ids)
        return ids * 2, state + 1

    code = "def greedy(step, state):\n    ids, state = step(np.arange(2), state)\n    return step(ids, state)"
    _, (ids, state) = asked(code, "greedy", step, 3)
    assert ids.tolist() == [0, 4] and state == 5 and [each.tolist() for each in seen] == [[0, 1], [0, 2]]


def test_what_a_function_of_ours_raises_comes_back_as_it_was_raised():
    def step(ids):
        raise CheckFailed("the step got other ids")

    with pytest.raises(CheckFailed, match="^the step got other ids$"):
        asked("def greedy(step):\n    return step(1)", "greedy", step)
    code = "def greedy(step):\n    try:\n        step(1)\n    except RuntimeError:\n        return 7"
    assert asked(code, "greedy", step)[1] == 7


def test_a_function_of_ours_may_call_the_student_s_which_find_their_own_versions():
    """As one that undoes a mistake does, which stands in the place of the student's own meanwhile."""
    code = (
        "def mask(ids):\n    return ids == 0\n"
        "def both(ids):\n    return mask(ids) & (ids < 9)\n"
        "def around(inner):\n    return inner(5)"
    )
    examinee = InThisProcess(code)

    def turned(ids):
        return ~examinee.call("mask", (ids,), {}, {"mask": turned})

    found = examinee.call("both", (np.array([0, 1, 9]),), {}, {"mask": turned})
    assert found.tolist() == [False, True, False] and examinee.namespace["mask"](0) is True
    deeper = []

    def deep(number):
        deeper.append(number)
        return examinee.call("around", (deep,), {}, {}) if len(deeper) < 20 else number

    with pytest.raises(CheckFailed, match="call each other without end"):
        examinee.call("around", (deep,), {}, {})


def test_a_function_is_ours_to_give_during_its_call_alone():
    code = (
        "kept = []\n"
        "def f(step):\n    kept.append(step)\n    return step(1)\n"
        "def g(x):\n    return kept[0](x)\n"
        "def h(x):\n    return f"
    )
    examinee, found = asked(code, "f", lambda x: x + 1)
    assert found == 2
    with pytest.raises(CheckFailed, match="not to be had"):
        examinee.call("g", (1,), {}, {})
    assert not callable(InThisProcess(code).call("h", (1,), {}, {}))


def test_what_is_gone_through_is_handed_back_and_has_an_end():
    assert list(asked("def f():\n    yield from 'ab'", "f")[1]) == ["a", "b"]
    with pytest.raises(CheckFailed, match="too many parts"):
        asked("import itertools\ndef f():\n    return itertools.count()", "f")


def test_each_part_of_an_argument_is_known_as_the_function_left_it():
    window = {"start": np.zeros(2), "end": np.zeros(2)}
    given = [window]
    examinee, _ = asked("def f(windows):\n    windows[0]['end'] += 1", "f", given)
    left = {id(before): after for before, after in examinee.changed}
    assert not window["end"].any() and left[id(window["end"])].all() and not left[id(window["start"])].any()
    examinee, _ = asked("def f(windows):\n    windows.pop()", "f", given)
    assert given == [window] and examinee.changed[0][1] == []
    examinee, _ = asked("def f(windows):\n    return windows[0]", "f", given)
    assert not examinee.changed


KEPT = """
def hidden_tests():
    from course_lib.grading import Score, expect, expect_untouched

    score = Score(2)

    @score.check(1, "left alone")
    def _():
        words = ["a", "b"]
        f(words)
        expect_untouched(words, ["a", "b"], "words")

    @score.check(1, "a value of the notebook")
    def _():
        expect(globals().get("TEXT") == "yes", f"it is {globals().get('TEXT')}")

    return score.total()


hidden_tests()
"""


@pytest.mark.parametrize(
    ("code", "earned", "said"),
    [
        ("TEXT = 'yes'\ndef f(words):\n    return words[::-1]", 2, "2 of 2"),
        (
            "TEXT = 'no'\ndef f(words):\n    words.sort(reverse=True)",
            0,
            "changed its argument `words`",
        ),
        ("def f(words):\n    pass", 1, "it is None"),
        ("TEXT = 'yes'", 1, "NameError: name 'f' is not defined"),
    ],
    ids=["right", "wrong", "no value", "no function"],
)
def test_lists_and_values_of_a_notebook(code, earned, said):
    _, outputs = outputs_of(KEPT, code)
    assert score_of(outputs) == earned and said in " ".join(outputs[0]["text"].split())


def test_a_mistake_that_is_undone_is_undone_for_other_functions_too():
    tests = """
def hidden_tests():
    from course_lib.grading import Score, Slip, expect

    slips = [Slip("the sign", 0.5, "f", lambda f: lambda x: -f(x))]
    score = Score(2, namespace=globals(), slips=slips)

    @score.check(1, "f")
    def _():
        expect(f(1) == 1, f"it is {f(1)}")

    @score.check(1, "g")
    def _():
        expect(g(1) == 2, f"it is {g(1)}")

    return score.total()


hidden_tests()
"""
    _, outputs = outputs_of(tests, "def f(x):\n    return -x\ndef g(x):\n    return f(x) + 1")
    assert score_of(outputs) == 1.5 and "-0.5  the sign" in outputs[0]["text"]


def test_what_it_takes_to_pass_a_call_on_is_not_of_the_student_s_time(monkeypatch):
    examinee = InThisProcess("def f(x):\n    return x")
    examinee.end = time.monotonic() + 1
    before, ask = examinee.end, InThisProcess._ask
    monkeypatch.setattr(InThisProcess, "_ask", lambda *given: (time.sleep(0.03), ask(*given))[1])
    for _ in range(10):
        examinee.call("f", (1,), {}, {})
    assert 0.3 <= examinee.end - before <= 0.5 + 1e-6


def test_what_it_takes_to_pass_values_of_ours_on_is_not_either(monkeypatch):
    examinee = InThisProcess("def f(step):\n    return [step(n) for n in range(10)]")
    examinee.end = time.monotonic() + 1
    before, value = examinee.end, InThisProcess._value_of_ours
    monkeypatch.setattr(InThisProcess, "_value_of_ours", lambda *given: (time.sleep(0.03), value(*given))[1])
    examinee.call("f", (lambda n: n,), {}, {})
    assert 0.3 <= examinee.end - before <= 0.55 + 1e-6
