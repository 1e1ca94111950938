"""An examinee without a kernel, for tests of what is asked and answered."""

import json
import queue
import threading

import numpy as np

from course_lib.grading import answering
from course_lib.grading.compare import CheckFailed
from course_lib.grading.outside.examinee import Examinee


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

    def starved(self) -> float:
        return 0.0  # beyond what this process is

    def _tell(self, text: str) -> None:
        self.sent.append(text)
        self._down.put(text)

    def _ask_up(self, text: str) -> str:
        self._up.put(text)
        return self._down.get()

    def begin_again(self) -> None:
        """After a cell of tests, whatever they did: the next one is asked anew."""
        self._lost, self._request = False, None
        self._fatal.clear()
        self.renew()

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
        self._next((0, 0))

    def _next(self, end: tuple[float, float]) -> dict:
        return json.loads(self._up.get(timeout=20))
