"""What an examinee takes from a kernel's sockets, and how long it waits: the kernel is two sockets of ZeroMQ here."""

import contextlib
import json
import re
import threading
import time

import pytest
import zmq
from jupyter_client.session import Session

from course_lib.grading.compare import CheckFailed
from course_lib.grading.outside import channel, examinee
from course_lib.grading.outside.examinee import Examinee, NoKernel

READY, SEVEN = b'{"kind": "ready"}', b'{"kind": "returned", "value": ["int", "7"]}'
KEY = "a key"


class Sockets:
    """A kernel that starts to answer, and then does what it is told for each question.

    answers: sends, by a function of frames, what comes after a question; `None` reads no questions
    starts: whether it ever starts to answer
    """

    def __init__(self, answers, starts=True):
        self.starts = starts
        self.context, self.ports, self.interrupts = zmq.Context(), {}, 0
        self.shell, self.stdin = (self.context.socket(zmq.ROUTER) for _ in range(2))
        self.stdin.setsockopt(zmq.SNDHWM, 4)
        self.stdin.setsockopt(zmq.ROUTER_MANDATORY, 1)  # what cannot be sent now waits, and is not dropped
        self.stdin.setsockopt(zmq.SNDTIMEO, 2000)
        for name in ("shell", "stdin"):
            self.ports[f"{name}_port"] = getattr(self, name).bind_to_random_port("tcp://127.0.0.1")
        self.thread = threading.Thread(target=self._run, args=(answers,), daemon=True)
        self.over = False
        self.thread.start()

    def _run(self, answers):
        with contextlib.suppress(zmq.ZMQError):  # the examinee has closed its socket
            self._answer(answers)

    def _answer(self, answers):
        self.whom, _, _, header, *_, content = self.shell.recv_multipart()
        self.header = json.loads(header)
        self.token = re.search(r'"([0-9a-f]{32})"', json.loads(content)["code"])[1].encode()
        ident, token, first = self.stdin.recv_multipart()
        assert (token, first) == (self.token, b"")

        def send(*frames):
            self.stdin.send_multipart([ident, *frames])

        send(b"an earlier token", b'{"kind": "ready"}')
        if self.starts:
            send(self.token, READY)
        while answers and not self.over:
            if self.stdin.poll(50):
                self.stdin.recv_multipart()
                answers(send, self.token)

    def reply(self, content):
        """Say that the request has ended."""
        session = Session(key=KEY.encode())
        message = session.msg("execute_reply", content, parent={"header": self.header})
        self.shell.send_multipart([self.whom, *session.serialize(message)])

    def end(self):
        self.over = True
        self.thread.join(10)
        self.context.destroy(linger=0)

    def connection(self):
        ports = dict.fromkeys(("iopub_port", "hb_port", "control_port"), 1) | self.ports
        return {"ip": "127.0.0.1", "transport": "tcp", "key": KEY.encode(), "signature_scheme": "hmac-sha256", **ports}

    def alive(self):
        return True

    def interrupt(self):
        self.interrupts += 1

    def renew(self):
        raise RuntimeError("no other kernel")

    def starved(self):
        return 0.0

    def time_is_over(self):
        return False


@pytest.fixture
def ask():
    """Gives what a function returns whose kernel answers so; the kernel, and the examinee."""
    made = []

    def asked(answers, **settings):
        kernel = Sockets(answers, **settings)
        one = Examinee(kernel)
        made.append((kernel, one))
        return lambda: one.call("f", (), {}, {}), kernel, one

    yield asked
    for kernel, one in made:
        one.close()
        kernel.end()


def test_what_answers_an_earlier_request_is_not_taken_for_the_answer(ask):
    def answers(send, token):
        send(b"an earlier token", b'{"kind": "returned", "value": ["int", "8"]}')
        send(token, b"{}", b"more")
        send(token)
        send(token, SEVEN)

    call, *_ = ask(answers)
    assert call() == 7


@pytest.mark.parametrize("said", [b"\xff\xfe\x00", b"[" * 100_000, b"7", b"no JSON", b""], ids=range(5))
def test_what_is_no_answer_costs_the_test(ask, said):
    call, *_ = ask(lambda send, token: send(token, said))
    with pytest.raises(CheckFailed, match="cannot be read"):
        call()


def test_what_goes_on_saying_nothing_is_stopped_in_its_time(ask, monkeypatch):
    for module in (channel, examinee):
        monkeypatch.setattr(module, "GRACE_S", 0.3)
    monkeypatch.setattr(channel, "MOST_S", 3)

    def answers(send, token):
        until = time.monotonic() + 6
        while time.monotonic() < until and not kernel.over:
            send(b"an earlier token", SEVEN)
            time.sleep(0.001)

    call, kernel, one = ask(answers)
    one.seconds, begun = 0.3, time.monotonic()
    with pytest.raises(CheckFailed, match="Stopped"):
        call()
    assert time.monotonic() - begun < 6 and kernel.interrupts == 1


def test_what_never_stops_is_not_called_again(ask, monkeypatch):
    for module in (channel, examinee):
        monkeypatch.setattr(module, "GRACE_S", 0.2)
    call, kernel, one = ask(lambda send, token: None)
    one.seconds = 0.2
    with pytest.raises(CheckFailed, match="Stopped after 0.2 seconds"):
        call()
    with pytest.raises(CheckFailed, match="in earlier tests, or could not be stopped"):
        call()
    assert kernel.interrupts == 1


@pytest.mark.parametrize("prepared", [True, False])
def test_a_kernel_that_never_starts_to_answer_is_not_told_of_a_test_that_was_stopped(ask, monkeypatch, prepared):
    for name in ("STARTS_S", "GRACE_S"):
        monkeypatch.setattr(channel, name, 0.2)
    call, kernel, one = ask(lambda send, token: None, starts=False)
    if prepared:  # as each test does
        one.prepare()
    for _ in range(3):
        with pytest.raises(CheckFailed, match="could not begin: your code kept its process busy") as failed:
            call()
        assert "seconds" not in str(failed.value)
    assert kernel.interrupts == 1
    monkeypatch.setattr(kernel, "renew", lambda: None)
    one.recover()
    with pytest.raises(CheckFailed, match="could not begin"):  # it has cost no kernel, and is asked for again
        call()
    assert kernel.interrupts == 2


def test_a_process_that_has_ended_is_not_waited_for(ask, monkeypatch):
    call, kernel, one = ask(lambda send, token: None)
    one.prepare()
    monkeypatch.setattr(kernel, "alive", lambda: False)
    with pytest.raises(CheckFailed, match="ended the process that it runs in"):
        call()
    assert kernel.interrupts == 0


def test_what_goes_on_after_its_end_is_no_kernel_for_the_cells_that_follow(ask):
    call, _, one = ask(lambda send, token: send(token, SEVEN))
    assert call() == 7
    with pytest.raises(NoKernel, match="no other kernel"):
        one.finish()


def test_a_kernel_whose_request_has_ended_costs_the_test(ask):
    call, kernel, _ = ask(lambda send, token: kernel.reply({"status": "error", "ename": "SystemExit", "evalue": "3"}))
    with pytest.raises(CheckFailed, match="SystemExit"):
        call()


@pytest.mark.parametrize("content", [b"[]", b'"ended"', b"7", b"null"])
def test_what_is_no_reply_costs_the_test(ask, content):
    call, kernel, _ = ask(lambda send, token: kernel.reply(content))
    with pytest.raises(CheckFailed, match="cannot be read: it is no message"):
        call()


def test_a_kernel_that_ends_when_no_more_is_asked_is_kept(ask):
    asked = []

    def answers(send, token):
        asked.append(token)
        kernel.reply({"status": "ok"}) if len(asked) == 2 else send(token, SEVEN)

    call, kernel, one = ask(answers)
    assert call() == 7
    one.finish()
    assert len(asked) == 2 and kernel.interrupts == 0


def test_what_never_listens_holds_nobody_up(ask):
    call, _, one = ask(None)
    one.prepare()
    for _ in range(5):  # what waits may move on to the kernel's side, and makes room once more
        with pytest.raises(channel.Deaf):
            for _ in range(100_000):
                one._channel.tell("x" * 1000)
        time.sleep(0.1)
    with pytest.raises(CheckFailed, match="does not listen"):
        call()


def test_no_more_than_a_few_answers_wait_to_be_read(ask):
    counted = []

    def answers(send, token):
        for number in range(200):
            send(token, b" " * 2**20 + SEVEN)
            counted.append(number)

    call, *_ = ask(answers)
    assert call() == 7
    time.sleep(0.5)
    assert len(counted) < 80, len(counted)
