"""The student's side starts to answer in a real kernel, however late the examiner's second socket is joined to it."""

import json
import time

import pytest
import zmq
from jupyter_client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from course_lib.grading.outside.channel import START

TOKEN = b"ours"


@pytest.fixture(scope="module")
def kernel():
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=120)
    yield manager
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.fixture
def client(kernel):
    made = BlockingKernelClient()
    made.load_connection_info(kernel.get_connection_info())
    made.start_channels(shell=True, iopub=False, stdin=False, hb=False, control=False)
    yield made
    made.stop_channels()


def told(client, token, text):
    client.stdin_channel.socket.send_multipart([token, text])


def answer(client):
    socket = client.stdin_channel.socket
    assert socket.poll(30_000, zmq.POLLIN), "nothing came: it was said to nobody"
    return socket.recv_multipart()


def ended(client):
    told(client, TOKEN, b"null")
    assert client.get_shell_msg(timeout=30)["content"]["status"] == "ok"


@pytest.mark.parametrize("late_s", [0.0, 1.0])
def test_who_is_ready_says_so_to_an_examiner_who_comes_late(client, late_s):
    client.execute(START.format(token="ours"), silent=True, store_history=False, allow_stdin=False)
    time.sleep(late_s)
    told(client, TOKEN, b"")
    token, text = answer(client)
    assert token == TOKEN and json.loads(text) == {"kind": "ready"}
    ended(client)


def test_what_is_said_without_the_token_is_answered_by_nobody(client):
    client.execute(START.format(token="ours"), silent=True, store_history=False, allow_stdin=False)
    told(client, b"another", b"")
    told(client, TOKEN, b"")
    assert json.loads(answer(client)[1]) == {"kind": "ready"}
    told(client, b"another", b'{"loaded": ["sys"]}')  # of a request that was ended before its answer came
    told(client, TOKEN, b'{"loaded": ["json"]}')
    assert json.loads(answer(client)[1]) == {"kind": "loaded", "names": ["json"]}
    ended(client)


def test_code_that_asks_for_input_fails_and_its_kernel_goes_on(client):
    client.execute("def asks():\n    return input()")
    assert client.get_shell_msg(timeout=30)["content"]["status"] == "ok"
    client.execute(START.format(token="ours"), silent=True, store_history=False, allow_stdin=False)
    told(client, TOKEN, b"")
    answer(client)
    asked = {"name": "asks", "given": {}, "served": [], "seconds": 3, "framework": None, "first": 0, "keep": None}
    told(client, TOKEN, json.dumps(asked).encode())
    said = json.loads(answer(client)[1])
    assert said["kind"] == "raised" and "here is nobody" in said["text"]
    ended(client)
