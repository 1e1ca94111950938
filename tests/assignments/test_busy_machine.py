"""Somebody keeps the machine busy while another's work is marked: that costs the other no points."""

import contextlib
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from jupyter_client.manager import KernelManager

from course_lib.grading import answering, clock
from course_lib.grading.marking.execute import ExecuteToTheEnd
from course_lib.grading.outside import tests
from course_lib.grading.outside.examinee import Examinee
from course_lib.grading.outside.tests import HiddenTests
from tests.support.examinees import InThisProcess

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not clock.starved(), reason="the system does not say who waits for a processor"
)
MANY = 30  # so many keep a processor busy: of ten seconds, whoever is on it too gets a third of one
COMPUTES = """
import time
from types import SimpleNamespace

def computes(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    return seconds
"""


@contextlib.contextmanager
def one_processor():
    """A block in which this thread, and all that it starts, has one processor."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def many_others():
    """A block in which many use the same processor, each in a session of its own, which Linux gives an equal share."""
    spin = ["sh", "-c", 'while kill -0 "$PPID" 2>&-; do :; done']  # as long as this process is there
    others = [subprocess.Popen(spin, start_new_session=True) for _ in range(MANY)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
        for other in others:
            other.wait()


def called(code: str, seconds: float, *given: float) -> tuple[dict, float]:
    """What the student's side says of a call of `f`, and how long that took."""
    namespace: dict = {}
    exec(COMPUTES + code, namespace)
    asked = {"name": "f", "given": {}, "served": [], "seconds": seconds, "framework": None, "keep": None, "first": 1}
    with one_processor(), many_others():
        begun = time.monotonic()
        said = answering._Answers(namespace, ask=None).to(asked)
        return said, time.monotonic() - begun


def test_who_waits_for_a_processor_is_not_stopped():
    said, took = called("def f():\n    return computes(0.1)", 0.5)
    assert said["kind"] == "returned" and took > 0.5


ENDLESS = {"asleep": "time.sleep(30)", "computes": "while True: pass", "naps": "while True: time.sleep(0.01)"}


@pytest.mark.parametrize("code", ENDLESS.values(), ids=ENDLESS)
def test_who_sleeps_or_computes_too_long_is_stopped(code):
    said, took = called(f"def f():\n    {code}", 0.3)
    assert said.get("stopped") and took < 60


def test_what_the_examiner_takes_is_not_of_the_time():
    namespace: dict = {}
    exec("def f(step):\n    return sum(step(n) for n in range(4))", namespace)
    asked = {"name": "f", "given": {"0": ["function", 0]}, "served": [], "seconds": 0.3, "framework": None}

    def ask(text):
        time.sleep(0.2)
        return '{"number": 0, "value": ["int", "0x1"]}'

    assert answering._Answers(namespace, ask).to(asked | {"keep": None, "first": 1})["value"] == ["int", "0x4"]


class OneKernel:
    """A real kernel, for an `Examinee`."""

    def __init__(self, code: str):
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel()
        client = self.manager.blocking_client()
        client.start_channels()
        client.wait_for_ready(timeout=300)
        client.execute_interactive(code, timeout=300)
        client.stop_channels()

    def connection(self):
        return self.manager.get_connection_info()

    def alive(self):
        return self.manager.is_alive()

    def interrupt(self):
        self.manager.interrupt_kernel()

    def starved(self):
        return clock.starved(self.manager.provisioner.pid)

    def renew(self):
        raise AssertionError("the kernel was lost")

    def time_is_over(self):
        return False


TESTS = """
def hidden_tests():
    from course_lib.grading import Score, expect

    score = Score(1, limit_s=0.5)

    @score.check(1, "many calls")
    def _():
        for _ in range(5):
            expect(computes(0.04) == 0.04, "another number")

    return score.total()


hidden_tests()
"""


def test_a_right_answer_earns_its_points_beside_somebody_who_keeps_the_machine_busy():
    with one_processor():
        kernel = OneKernel(COMPUTES)
        examinee = Examinee(kernel)
        try:
            examinee.prepare()
            with many_others():
                begun = time.monotonic()
                outputs = HiddenTests(TESTS, examinee, 1).outputs()
                took = time.monotonic() - begun
        finally:
            examinee.close()
            kernel.manager.shutdown_kernel(now=True)
    assert float(outputs[-1]["data"]["text/plain"]) == 1, outputs
    assert took > 1


def test_who_is_stopped_because_the_machine_was_busy_is_told_so(monkeypatch):
    monkeypatch.setattr(tests, "MOST_S", 0.2)
    for waits, said in ((time.monotonic, "the machine was busy with other work"), (float, "a loop that never ends")):
        monkeypatch.setattr(InThisProcess, "starved", lambda self, waits=waits: waits())
        outputs = HiddenTests(TESTS, InThisProcess("import time\ndef computes(x):\n    time.sleep(1)"), 1).outputs()
        assert said in " ".join(outputs[0]["text"].split())
    # by the student's side, a moment before the examiner's clock says so
    code = "from course_lib.grading.contain import Stopped\ndef computes(x):\n    raise Stopped('')"
    outputs = HiddenTests(TESTS, InThisProcess(code), 1).outputs()
    assert "Stopped after 0.5 seconds. Is there a loop" in " ".join(outputs[0]["text"].split())


def test_calls_of_a_test_share_its_time_and_not_what_was_waited_for(monkeypatch):
    monkeypatch.setattr(InThisProcess, "starved", lambda self: time.monotonic())  # it did nothing but wait
    examinee = InThisProcess("import time\ndef f(x):\n    time.sleep(0.5)")
    examinee.seconds, examinee.end = 1.0, examinee.clock() + 1.0
    examinee.call("f", (1,), {}, {})
    assert examinee.end - examinee.clock() > 0.9
    monkeypatch.setattr(InThisProcess, "starved", lambda self: 0.0)
    examinee.end = examinee.clock() + 1.0
    examinee.call("f", (1,), {}, {})
    assert examinee.end - examinee.clock() < 0.6


def test_how_long_somebody_waited_is_asked_seldom_and_then_taken_off(monkeypatch):
    now, asked = [100.0], []

    def waited():
        asked.append(now[0])
        return 0.5 * (now[0] - 100)

    monkeypatch.setattr(clock.time, "monotonic", lambda: now[0])
    fed = clock.Fed(waited)
    readings = []
    for step in range(1, 41):
        readings.append(fed())
        now[0] = 100 + step / 100
    assert len(asked) <= 9 and asked[-1] > 100.3
    assert readings[-1] - readings[0] == pytest.approx(0.5 * 0.39, abs=clock.EVERY_S)


def test_a_process_that_has_ended_waits_for_nothing():
    assert clock.starved(2**31) == 0


def test_it_is_known_of_a_kernel_that_waits():
    process = SimpleNamespace(km=SimpleNamespace(provisioner=SimpleNamespace(pid=os.getpid())))
    assert ExecuteToTheEnd.starved(process) > 0
    process.km.provisioner.kernel_pid = 2**31  # in the sandbox: `pid` is that of the first process there
    assert ExecuteToTheEnd.starved(process) == 0
    process.km = None
    assert ExecuteToTheEnd.starved(process) == 0
