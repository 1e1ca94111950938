"""The student's side starts to answer in a real kernel, however late the examiner's second socket is joined to it."""

import json
import time

import pytest
import zmq
from jupyter_client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from course_lib.grading.outside.examinee import START


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


@pytest.mark.parametrize("late_s", [0.0, 1.0])
def test_who_is_ready_says_so_to_an_examiner_who_comes_late(kernel, late_s):
    client = BlockingKernelClient()
    client.load_connection_info(kernel.get_connection_info())
    client.start_channels(shell=True, iopub=False, stdin=False, hb=False, control=False)
    client.execute(START, silent=True, store_history=False, allow_stdin=True)
    time.sleep(late_s)
    try:
        channel = client.stdin_channel
        assert channel.socket.poll(30_000, zmq.POLLIN), "nothing came: it was said to nobody"
        assert json.loads(client.session.recv(channel.socket)[1]["content"]["prompt"]) == {"kind": "ready"}
    finally:
        client.input("null")
        assert client.get_shell_msg(timeout=30)["content"]["status"] == "ok"
        client.stop_channels()
