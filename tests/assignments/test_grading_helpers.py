"""course_lib.grading by itself: what it lets through, what it stops, and what it says."""

import asyncio
import io
import linecache
import logging
import os
import subprocess
import sys
import threading
import time
import warnings
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest

from course_lib.grading import (
    CheckFailed,
    Score,
    Slip,
    check,
    contained,
    expect_array,
    expect_dtype,
    expect_pair,
    expect_shape,
    expect_unchanged,
    expect_untouched,
)
from course_lib.grading.contain import Stopped


def half_right():
    score = Score(3)

    @score.check(1, "holds")
    def _():
        pass

    @score.check(2, "fails")
    def _():
        expect_array([1.0], [2.0])

    return score


def test_a_score_is_a_plain_float_and_its_report_gives_the_reason(capsys):
    total = half_right().total()
    assert type(total) is float and total == 1.0
    report = capsys.readouterr().out
    assert "1 of 3 points" in report
    assert "0 of 2  fails" in report and "at index [0] you have 1; it should be 2" in report


def test_a_seed_gives_the_hidden_tests_other_inputs(monkeypatch):
    def draw(number):
        return Score(1).rng(number).random()

    monkeypatch.delenv("COURSE_GRADING_SEED", raising=False)
    first = draw(1)
    assert draw(1) == first != draw(2)
    monkeypatch.setenv("COURSE_GRADING_SEED", "2027")
    assert draw(1) != first
    monkeypatch.setenv("COURSE_GRADING_SEED", "next year")
    with pytest.raises(ValueError, match="is 'next year'; set it to a whole number"):
        draw(1)


def test_points_that_do_not_add_up_are_the_authors_error():
    score = Score(3)
    score.check(1, "alone")(lambda: None)
    with pytest.raises(ValueError, match="worth 1 points, the cell 3"):
        score.total()
    with pytest.raises(ValueError, match="namespace=globals"):
        Score(1, follow_through={"f": abs})


def test_follow_through_tries_right_versions_and_puts_the_students_back(capsys):
    def wrong():
        return 0.0

    names = {"first": wrong}

    def test():
        expect_array(names["first"](), 1.0)

    for functions, earned in [({"first": lambda: 1.0}, 1.0), ({"first": lambda: 2.0}, 0.0), ({"other": wrong}, 0.0)]:
        score = Score(1, follow_through=functions, namespace=names)
        score.check(1, "second part")(test)
        assert score.total() == earned
        assert ("you have 0; it should be 1" in capsys.readouterr().out) == (not earned), "the student's own failure"
        assert names == {"first": wrong}


def negated(function):
    return lambda x: -function(x)


def without_one(function):
    return lambda x: function(x) - (x > 2)


def score_of(function, *slips):
    """Two tests of `double`, worth 2 points each."""
    names = {"double": function}
    score = Score(4, namespace=names, slips=slips)
    for x in (1.0, 5.0):
        score.check(2, f"of {x:g}")(lambda x=x: expect_array(names["double"](x), 2 * x))
    earned = score.total()
    assert names == {"double": function}
    return earned


SLIPS = [Slip("the sign", 1, "double", negated), Slip("one too many beyond 2", 1.5, "double", without_one)]


@pytest.mark.parametrize(
    ("function", "earned", "said"),
    [
        (lambda x: 2 * x, 4.0, []),
        (lambda x: -2 * x, 3.0, ["-1  the sign"]),
        (lambda x: 2 * x + (x > 2), 2.5, ["-1.5  one too many"]),
        (lambda x: -2 * x - (x > 2), 1.5, ["-1  the sign", "-1.5  one too many"]),
        (lambda x: -2 * x if x > 2 else 2 * x, 2.0, []),
        (lambda x: 7 * x, 0.0, []),
    ],
)
def test_a_slip_costs_its_price_and_not_what_its_tests_would(function, earned, said, capsys):
    assert score_of(function, *SLIPS) == earned
    report = capsys.readouterr().out
    assert all(words in report for words in said) and report.count("charged here alone") == len(said)


def test_a_slip_that_costs_more_than_its_tests_is_charged_by_them(capsys):
    assert score_of(lambda x: -2 * x if x > 2 else 2 * x, Slip("beyond 2", 3, "double", negated)) == 2.0
    assert score_of(lambda x: -2 * x, Slip("of another", 1, "triple", negated)) == 0.0
    with pytest.raises(ValueError, match="slips need namespace"):
        Score(1, slips=SLIPS)


def test_a_test_can_ask_what_earlier_ones_have_charged(capsys):
    """With a slip undone, what the tests lost before is charged no more."""

    def lost_before(function, *slips):
        names, lost = {"double": function}, []
        score = Score(3, namespace=names, slips=slips)
        for x in (1.0, 5.0, 6.0):

            @score.check(1, f"of {x:g}")
            def _(x=x):
                lost.append(score.lost)
                expect_array(names["double"](x), 2 * x)

        score.total()
        return lost

    assert lost_before(lambda x: 2 * x) == [0, 0, 0]
    assert lost_before(lambda x: 2 * x + (x == 5)) == [0, 0, 1]
    assert lost_before(lambda x: -2 * x, SLIPS[0]) == [0, 1, 2, 0, 0, 0]


def test_slips_are_not_tried_where_a_loop_never_ends():
    calls = []

    def endless(x):
        calls.append(x)
        while True:
            pass

    names = {"double": endless}
    score = Score(1, namespace=names, slips=SLIPS, limit_s=1.0)
    score.check(1, "ends")(lambda: names["double"](1.0))
    assert score.total() == 0.0 and calls == [1.0]


def test_a_loop_costs_one_try_not_one_per_check():
    calls = []

    def endless():
        calls.append(1)
        while True:
            pass

    names = {"first": endless}
    score = Score(4, follow_through={"first": lambda: None}, namespace=names)
    for _ in range(4):
        score.check(1, "uses the first part")(lambda: names["first"]())
    assert score.total() == 4.0
    assert len(calls) == 1


@pytest.mark.parametrize(
    "noise",
    [
        lambda: print("text"),
        lambda: print("text", file=sys.stderr),
        lambda: os.write(2, b"text"),
        lambda: warnings.warn("text", stacklevel=1),
        lambda: logging.getLogger().warning("text"),
        lambda: np.log(np.zeros(1)) * 0,
        lambda: subprocess.run([sys.executable, "-c", "import sys; sys.stderr.write('text')"]),
    ],
)
def test_nothing_a_student_writes_gets_out(noise, capfd):
    logging.basicConfig(stream=sys.stderr)
    with contained():
        noise()
    assert capfd.readouterr() == ("", "")
    os.write(2, b"afterwards")
    assert capfd.readouterr().err == "afterwards"


def test_a_log_handler_made_earlier_writes_nothing_either():
    written = io.StringIO()
    logger = logging.getLogger("a student's")
    logger.propagate = False
    logger.handlers = [logging.StreamHandler(written)]  # as one that holds the old standard error
    with contained():
        logger.warning("inside")
    logger.warning("outside")
    assert written.getvalue() == "outside\n"


def test_what_a_student_displays_is_no_mark(monkeypatch):
    displayed = []
    monkeypatch.setattr(sys, "displayhook", displayed.append)
    with contained():
        sys.displayhook(400.0)
    sys.displayhook(4.0)
    assert displayed == [4.0]


def everything_that_speaks():
    return sys.stdout, sys.stderr, sys.displayhook, logging.root.manager.disable, list(warnings.filters)


@pytest.mark.parametrize("first_out", ["the first in", "the last in"])
def test_nothing_gets_out_of_two_threads_and_everything_speaks_again_after_both(first_out, capfd):
    """A test that was given up goes on in its thread while the next one begins."""
    before, displayed, inside, go = everything_that_speaks(), [], threading.Event(), threading.Event()

    def given_up():
        with contained():
            inside.set()
            go.wait(60)
            noise()

    def noise():
        print("text")
        os.write(2, b"text")
        warnings.warn("text", stacklevel=1)
        logging.getLogger().warning("text")
        sys.displayhook("text")

    thread = threading.Thread(target=given_up)

    def end():
        go.set()
        thread.join()

    thread.start()
    assert inside.wait(60)
    with contained():
        sys.displayhook = displayed.append  # as a student can; the next test has silence all the same
        with contained():
            noise()
        if first_out == "the first in":
            end()
        noise()
    assert (everything_that_speaks() == before) == (first_out == "the first in")
    end()
    assert everything_that_speaks() == before and displayed == []
    assert capfd.readouterr() == ("", "")
    os.write(2, b"afterwards")
    assert capfd.readouterr().err == "afterwards"


def test_a_score_is_readable_whatever_the_notebooks_display_settings(monkeypatch):
    """Of a shell that stands in for IPython's; `tricks.py` has the settings in a notebook."""
    plain = SimpleNamespace(float_precision="%.1f")
    shell = SimpleNamespace(
        ast_node_interactivity="none", display_formatter=SimpleNamespace(formatters={"text/plain": plain})
    )
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    with pytest.raises(CheckFailed, match="which hides the score"):
        Score(1)
    assert shell.ast_node_interactivity == "last_expr" and plain.float_precision == ""
    Score(1)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (NotImplementedError(), "Not written yet"),
        (SystemExit(0), "called exit"),
        (KeyError("x"), "KeyError: 'x'"),
        (RecursionError("deep"), "RecursionError: deep"),
        (MemoryError(), "MemoryError"),
        (asyncio.CancelledError(), "CancelledError"),
        (type("Mute", (Exception,), {"__str__": lambda self: self.nothing})(), "Mute, whose text cannot be read"),
    ],
)
def test_every_way_to_fail_is_a_failed_check(fault, words):
    with pytest.raises(CheckFailed, match=words), contained():
        raise fault


def test_a_failure_names_the_line_of_the_notebook_and_not_that_of_a_library(monkeypatch):
    source, cell, names = "import json\ndef solve():\n    return json.loads('{')\n", "<ipython-input-7>", {}
    monkeypatch.setitem(linecache.cache, cell, (len(source), None, source.splitlines(True), cell))
    exec(compile(source, cell, "exec"), names)
    words = r"(?s)JSONDecodeError: .*\nin solve, line 3 of its cell:  return json.loads"
    with pytest.raises(CheckFailed, match=words), contained():
        names["solve"]()


def test_a_loop_is_stopped_and_an_interrupt_passes():
    with pytest.raises(Stopped, match="Stopped after 0.2 seconds"), contained(limit_s=0.2):
        while True:
            try:
                pass
            except Exception:
                pass
    with pytest.raises(KeyboardInterrupt), contained():
        raise KeyboardInterrupt


def test_the_text_of_an_exception_is_limited_in_time_and_silent(capfd):
    class Endless(Exception):
        def __str__(self):
            while True:
                print("text")

    with pytest.raises(Stopped), contained(limit_s=0.2):
        raise Endless
    assert capfd.readouterr() == ("", "")


def test_a_limit_holds_on_behind_another_one_inside():
    begun = time.monotonic()
    with pytest.raises(Stopped, match="after 0.3 seconds"), contained(limit_s=0.3):
        with contained(limit_s=5):
            pass
        while time.monotonic() < begun + 60:
            pass


def test_a_silence_that_is_interrupted_while_it_begins_is_over(monkeypatch):
    before = everything_that_speaks()

    def interrupted(*given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(warnings, "simplefilter", interrupted)
        with pytest.raises(KeyboardInterrupt), contained():
            pass
    assert everything_that_speaks() == before


def test_no_alarm_comes_through_while_a_silence_inside_begins(monkeypatch):
    before, done, disable = everything_that_speaks(), [], logging.disable

    def slow(level):
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            pass
        disable(level)
        done.append(level)

    with pytest.raises(Stopped), contained(limit_s=0.1):
        monkeypatch.setattr(logging, "disable", slow)
        with contained(limit_s=60):
            pass
        while True:
            pass
    assert done == [logging.CRITICAL] and everything_that_speaks() == before


SWALLOWING = {
    "a short try": """
def f(): pass
while True:
    try: f()
    except: pass
""",
    "a long try": """
def f():
    for i in range(10**9): pass
while True:
    try: f()
    except: continue
""",
    "a sleep": """
import time
while True:
    try: time.sleep(100)
    except BaseException: pass
""",
    "a try in a try": """
while True:
    try:
        while True:
            try: sum(range(1000))
            except: pass
    except: pass
""",
    "a try in a try in a try": """
while True:
    try:
        while True:
            try:
                while True:
                    try: sum(range(1000))
                    except: pass
            except: pass
    except: pass
""",
    "a function that calls itself": """
def f(n):
    try: f(n + 1)
    except: pass
while True: f(0)
""",
    "a suppress": """
from contextlib import suppress
import time
while True:
    with suppress(BaseException): time.sleep(100)
""",
    "a context manager": """
from contextlib import contextmanager
@contextmanager
def careless():
    try: yield
    except BaseException: pass
while True:
    with careless(): sum(range(1000))
""",
    "a finally": """
while True:
    try: sum(range(1000))
    finally: continue
""",
}
CONTAINED = """
import sys
import time
from course_lib.grading import contained
from course_lib.grading.contain import Stopped
source = compile(sys.stdin.read(), "a student's", "exec")
for _ in range(3):
    try:
        with contained(limit_s=0.1):
            exec(source, {})
    except Stopped:
        print("stopped", flush=True)
time.sleep(0.2)  # an alarm that goes on would end it here
print("the end")
"""


@pytest.mark.parametrize("loop", SWALLOWING)
def test_a_loop_that_catches_everything_is_stopped_and_nothing_after_it(loop):
    """In a process of its own: what is not stopped would never let this one go on. The bound is a generous one."""
    command = [sys.executable, "-c", CONTAINED]
    done = subprocess.run(command, input=SWALLOWING[loop], capture_output=True, text=True, timeout=60)
    assert done.stdout.split("\n") == ["stopped"] * 3 + ["the end", ""], done.stderr


def catching():
    try:
        time.sleep(1)
    except BaseException:
        pass


def suppressing():
    with suppress(BaseException):
        time.sleep(1)


@pytest.mark.parametrize("careless", [catching, suppressing])
def test_what_caught_an_alarm_is_stopped_by_the_next_behind_the_place(careless):
    alarms = []

    def stubborn():
        while len(alarms) < 10:
            careless()
            alarms.append("caught")

    with pytest.raises(Stopped), contained(limit_s=0.01):
        stubborn()
    assert len(alarms) <= 2


def test_code_that_is_stopped_puts_its_own_things_in_order_first():
    """The first alarm leaves time for what a library does on the way out, such as PyTorch's `no_grad`."""
    order = []

    def careful():
        try:
            while True:
                sum(range(10))
        finally:
            order.append([sum(range(n)) for n in range(50)])

    with pytest.raises(Stopped), contained(limit_s=0.01):
        careful()
    assert len(order) == 1


@pytest.mark.parametrize(
    ("actual", "words"),
    [
        (None, "Did you forget to `return`"),
        ([[1.0], [1.0, 2.0]], "is no array"),
        (np.array(["a", "b"]), "should be an array of floats"),
        ([1, 2], "should be an array of floats; yours is a list of dtype int64"),
        ([1.0, 2.0 + 1j], "should be an array of floats"),
        ([[1.0, 2.0]], r"has shape \(1, 2\); it should have shape \(2,\)"),
        ([1.0, np.nan], "1 of its 2 numbers are NaN or infinite"),
        ([1.0, np.inf], "1 of its 2 numbers are NaN or infinite"),
        ([1.0, 2.001], r"at index \[1\] you have 2.001; it should be 2"),
        ([2.0, 1.0], "you sorted it"),
        ([[2.0, 1.0]], r"has shape \(1, 2\); it should have shape \(2,\)"),
        ([2.0, 1.0, 1.0], r"has shape \(3,\); it should have shape \(2,\)"),
    ],
)
def test_expect_array_says_what_is_wrong(actual, words):
    with pytest.raises(CheckFailed, match=words):
        expect_array(actual, [1.0, 2.0], mistakes={"you sorted it": [2.0, 1.0]})


@pytest.mark.parametrize(
    ("actual", "right", "words"),
    [
        (2.5, 2.0, "the loss: you have 2.5; it should be 2."),
        ([[3.0]], [[2.0]], "the loss: at index [0, 0] you have 3; it should be 2."),
        (14.00020, 14.0, "the loss: you have 14.0002; it should be 14."),
        (1234567.0, 1233456.0, "the loss: you have 1.2346e+06; it should be 1.2335e+06."),
        (True, False, "the loss: you have True; it should be False."),
    ],
)
def test_expect_array_names_a_place_where_there_are_several_and_shows_a_difference(actual, right, words):
    with pytest.raises(CheckFailed) as caught:
        expect_array(np.array(actual), np.array(right), "the loss", rtol=1e-6)
    assert str(caught.value) == words


def test_expect_array_takes_what_is_right():
    expect_array([1.0, 2.0], [1.0, 2.0])
    expect_array(np.array([1, 2], "f4"), [1.0, 2.0])
    expect_array(np.asfortranarray(np.ones((2, 3))), np.ones((2, 3)))
    expect_array([1e-7, 10.0005], [0.0, 10.0])
    expect_array(np.array([True]), [True])
    with pytest.raises(CheckFailed):
        expect_array(np.array([True]), [False])


class Agreeable(np.ndarray):
    """An array that answers True to every comparison."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return np.bool_(True)


def test_an_array_that_agrees_with_everything_is_compared_by_its_numbers():
    with pytest.raises(CheckFailed, match=r"at index \[1\] you have 0; it should be 2"):
        expect_array(np.zeros(2).view(Agreeable), [1e-7, 2.0])


def test_the_other_checks_fail_when_they_should():
    array = np.ones(2)
    expect_unchanged(array, np.ones(2), "x")
    expect_unchanged(np.array([np.nan, 1.0]), np.array([np.nan, 1.0]), "x")
    expect_dtype(array, float)
    with pytest.raises(CheckFailed, match="the result has dtype float32; it should be float64"):
        expect_dtype(np.ones(2, "f4"), float)
    assert expect_shape([1.0, 2.0], (2,)).dtype == float
    with pytest.raises(CheckFailed, match=r"the result has shape \(2,\); it should have shape \(1, 2\)"):
        expect_shape(array, (1, 2))
    with pytest.raises(CheckFailed, match="changed its argument `x`"):
        expect_unchanged(array, np.zeros(2), "x")
    assert expect_pair([1, 2]) == (1, 2)
    with pytest.raises(CheckFailed, match="(?s)yours returned a.ndarray"):
        expect_pair(np.ones(2))
    with pytest.raises(CheckFailed, match="(?s)yours returned 3.values"):
        expect_pair((1, 2, 3))


def test_check_stops_at_a_failure_and_names_itself(capsys):
    check("fine")(lambda: None)
    assert capsys.readouterr().out == "ok  fine\n"
    with pytest.raises(CheckFailed, match="(?s)^named.*index"):
        check("named")(lambda: expect_array([1.0], [2.0]))


def test_messages_fit_the_width_that_nbgrader_validate_prints():
    with pytest.raises(CheckFailed) as caught:
        expect_array([1.0], [2.0], mistakes={"word " * 60: [1.0]})
    assert max(map(len, str(caught.value).splitlines())) <= 80


CLOSED = """
import sys
from course_lib.grading import CheckFailed, close_modules, expect_closed
close_modules("colorsys", reason="Mix the colours yourself.")
close_modules("colorsys", reason="Mix the colours yourself.")
assert sum(type(finder).__name__ == "_Closed" for finder in sys.meta_path) == 1
try:
    import colorsys
except ImportError as error:
    assert str(error) == "`colorsys` is closed in this notebook. Mix the colours yourself.", error
else:
    raise SystemExit("not closed")
expect_closed("colorsys")
import graphlib
try:
    expect_closed("graphlib")
except CheckFailed as error:
    assert "loaded graphlib" in str(error)
else:
    raise SystemExit("not noticed")
"""


def test_closed_modules_cannot_be_imported_and_are_noticed():
    done = subprocess.run([sys.executable, "-c", CLOSED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_list_or_a_dictionary_is_left_untouched():
    before = [{"start": np.array([np.inf, 1.0])}, ("a", 2)]
    expect_untouched([{"start": np.array([np.inf, 1.0])}, ("a", 2)], before, "windows")
    for changed in (
        [{"start": np.array([np.inf, 2.0])}, ("a", 2)], [{"start": np.ones(3)}, ("a", 2)], [{"start": None}, ("a", 2)],
        [{}, ("a", 2)], [{"start": before[0]["start"], "end": 1}, ("a", 2)], [before[0], ("a", 3)], [before[0]],
        [before[0], ("a",)], [before[0], "a2"], [*before, 3], {}, None,
    ):  # fmt: skip
        with pytest.raises(CheckFailed, match="changed its argument `windows`"):
            expect_untouched(changed, before, "windows")
