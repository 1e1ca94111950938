"""An examinee without a kernel, for tests of what is asked and answered."""

import json
import queue
import signal
import threading

import numpy as np

from course_lib.grading import answering
from course_lib.grading.outside.channel import Channel
from course_lib.grading.outside.examinee import Examinee


class InThisProcess(Examinee):
    """An examinee without a kernel: the student's side runs in a thread, and both hand each other texts."""

    def __init__(self, code: str):
        super().__init__(kernel=self)
        self.namespace: dict = {"np": np}
        exec(code, self.namespace)
        self._channel = InThread(self.namespace, self.clock)

    @property
    def sent(self) -> list[str]:
        """All that was asked."""
        return self._channel.sent

    def time_is_over(self) -> bool:
        return False

    def starved(self) -> float:
        return 0.0  # beyond what this process is

    def begin_again(self) -> None:
        """After a cell of tests, whatever they did: the next one is asked anew."""
        self._lost = False
        self._channel.tell("null")  # for the thread that has answered: as long as it waits, each clock looks at it
        self._channel.close()
        self._fatal.clear()

    def renew(self) -> None:
        self._channel.close()

    def _ask(self, asked: dict, served: dict) -> dict:
        try:
            return super()._ask(asked, served)
        except BaseException:  # the thread ends before its redirections of output outlive those of this one
            self._channel.end()
            raise


class InThread(Channel):
    """A channel to a thread."""

    def __init__(self, namespace: dict, clock):
        super().__init__(None, clock)
        self.namespace, self.sent = namespace, []
        self._up, self._down = queue.Queue(), queue.Queue()

    def open(self) -> None:
        self._request = "one"
        self._thread = threading.Thread(target=answering.serve, args=(self.namespace, self.ask_up), daemon=True)
        self._thread.start()
        self.hear((0, 0))

    def close(self) -> None:
        self._request = None
        self._up, self._down = queue.Queue(), queue.Queue()

    def end(self) -> None:
        """Let the thread end, whatever it waits for."""
        if threading.current_thread() is threading.main_thread():
            signal.setitimer(signal.ITIMER_REAL, 0)  # of `contained`, which rings again and again, also while we wait
        for _ in range(3):
            self._down.put("null")
        self._thread.join(20)

    def tell(self, text: str) -> None:
        self.sent.append(text)
        self._down.put(text)

    def hear(self, end: tuple[float, float]) -> dict:
        return json.loads(self._up.get(timeout=20))

    def ask_up(self, text: str) -> str:
        """What the thread asks with."""
        self._up.put(text)
        return self._down.get()
