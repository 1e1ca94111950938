"""The way to `answering` in a kernel, and back: texts, by the sockets through which Jupyter asks for what is typed in.

What comes is a student's: anything, of any size, at any time, or nothing. Here it is bounded, and nothing of it is
believed; `examinee` says what each of it means for a test.
"""

import json
import secrets
import time
from collections.abc import Callable
from typing import Protocol

from course_lib._extras import needed
from course_lib.grading.values import Malformed

with needed("lab"):
    import zmq
    from jupyter_client import AsyncKernelManager, BlockingKernelClient

START = '__import__("course_lib.grading.answering", fromlist=["serve_notebook"]).serve_notebook("{token}")'
LARGEST = 48 * 2**20  # bytes of a frame from a kernel: whoever sends more is cut off
WAITING = 4  # messages of a kernel that wait to be read: one that answers has one, and one more where it was stopped
STARTS_S = 60
GRACE_S = 2  # beyond the seconds that a call may take: for the answer, and again after an interrupt
MOST_S = 60  # beyond that, at most, where the machine is busy with others: that time is not the student's, see `clock`
LOOKS_MS = 200


class LimitedManager(AsyncKernelManager):
    """A kernel manager whose clients take no message that is too large."""

    def client(self, **settings):
        """A client of the kernel."""
        return limited(super().client(**settings))


class Kernel(Protocol):
    """What a channel needs of whoever runs the kernel."""

    def connection(self) -> dict: ...
    def alive(self) -> bool: ...
    def interrupt(self) -> None: ...


class Gone(Exception):
    """The kernel's process has ended."""


class Deaf(Exception):
    """It reads nothing: a thousand texts are waiting there already."""


class Over(Exception):
    """It answers no more; what it says of that, and whether it was interrupted before."""

    def __init__(self, content: dict, interrupted: bool):
        super().__init__()
        self.content, self.interrupted = content, interrupted


class Unstoppable(Exception):
    """It said nothing in time, nor after an interrupt."""


class Channel:
    """Asks one kernel, again and again.

    clock : seconds of the student's; see `Examinee.clock`
    """

    def __init__(self, kernel: Kernel, clock: Callable[[], float]):
        self.kernel, self.clock = kernel, clock
        self._client = self._request = None
        self._token = b""  # of the request

    @property
    def is_open(self) -> bool:
        """Whether the kernel waits for questions."""
        return self._request is not None

    def open(self) -> None:
        """Let the kernel answer."""
        if not self._client:
            self._client = limited(BlockingKernelClient())
            self._client.context.setsockopt(zmq.RCVHWM, WAITING)
            self._client.load_connection_info(self.kernel.connection())
            self._client.start_channels(shell=True, iopub=False, stdin=True, hb=False, control=False)
        token = secrets.token_hex(16)
        self._token = token.encode()
        self._request = self._client.execute(
            START.format(token=token), silent=True, store_history=False, allow_stdin=False
        )
        self.tell("")  # whom to answer
        self.hear(self.within(STARTS_S))  # it is ready

    def forget(self) -> None:
        """No more is asked: the kernel may have answered its last question, or not."""
        self._request = None

    def close(self) -> None:
        """Let go of the kernel; the next question looks for it anew."""
        if self._client:
            self._client.stop_channels()
        self._client = self._request = None

    def tell(self, text: str) -> None:
        """Send what `answering` waits for.

        Raises
        ------
        Deaf
        """
        try:
            self._client.stdin_channel.socket.send_multipart([self._token, text.encode()], zmq.NOBLOCK)
        except zmq.Again:
            raise Deaf from None

    def within(self, seconds: float) -> tuple[float, float]:
        """When so many seconds have gone by on our `clock`, and the time by which it is enough, whatever that says."""
        return self.clock() + seconds, time.monotonic() + seconds + MOST_S

    def hear(self, end: tuple[float, float]) -> dict:
        """The next thing that the kernel says to our question, until `within` says that it is enough.

        Raises
        ------
        Malformed : what it says is no answer.
        Over, Gone, Unstoppable
        """
        poller = zmq.Poller()
        for channel in (self._client.stdin_channel, self._client.shell_channel):
            poller.register(channel.socket, zmq.POLLIN)
        interrupted = False
        while True:
            for socket, _ in poller.poll(LOOKS_MS):
                found = self._read(socket, interrupted)
                if found is not None:
                    return found
            if not self.kernel.alive():
                raise Gone
            if self.clock() > end[0] or time.monotonic() > end[1]:
                if interrupted:
                    raise Unstoppable
                interrupted, end = True, self.within(GRACE_S)
                self.kernel.interrupt()

    def _read(self, socket, interrupted: bool) -> dict | None:
        """An answer; None where it is one to an earlier request, or to none of ours."""
        try:
            if socket is self._client.stdin_channel.socket:
                token, *frames = socket.recv_multipart()
                if token != self._token or len(frames) != 1:
                    return None
                answer = json.loads(frames[0])
                if not isinstance(answer, dict):
                    raise Malformed("it is no answer")
                return answer
            _, message = self._client.session.recv(socket)
            if message and message["parent_header"].get("msg_id") == self._request:
                self._request, content = None, message["content"]
                if not isinstance(content, dict):
                    raise Malformed("it is no message")
                raise Over(content, interrupted)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            if isinstance(error, Malformed):
                raise
            raise Malformed("it is no message") from None
        return None


def limited(client):
    """A client whose sockets, which it has yet to open, are closed at a frame that is too large."""
    client.context.setsockopt(zmq.MAXMSGSIZE, LARGEST)
    return client
