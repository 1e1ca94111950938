"""A process with one framework in it: it builds subjects and times them when the parent asks.

    python worker.py FRAMEWORK THREADS

Requests and replies are lines of JSON on standard input and output. Between requests the process sleeps in
`readline`, so the subject that is being timed has the machine to itself.
"""

import gc
import importlib
import json
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np


class Memory:
    """The growth of the resident memory of this process between two points, and its peak since then, in bytes."""

    def __init__(self):
        gc.collect()
        self.before = self._read("VmRSS") or self._peak_of_all_time()

    def forget(self):
        """Forget the peak so far, where the system can (Linux)."""
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            pass

    def peak(self) -> int:
        """Peak since `forget`, less the memory held when this object was made."""
        return (self._read("VmHWM") or self._peak_of_all_time()) - self.before

    @staticmethod
    def _read(name):
        try:
            lines = Path("/proc/self/status").read_text().splitlines()
        except OSError:
            return None
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":")), None)

    @staticmethod
    def _peak_of_all_time():
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


class Worker:
    """Answers the parent's requests: `build`, `turn`, `memory`, `gemm`."""

    def __init__(self, framework: str, threads: int):
        self.framework = importlib.import_module(f"{framework}_subjects")
        self.framework.set_threads(threads)

    def build(self, subject: str, job: dict, outputs: str | None) -> dict:
        """Build a subject, write its outputs to a file if one is named, and run it once."""
        self.call = None
        self.call, compute_outputs = getattr(self.framework, subject)(job)
        self.memory = Memory()
        if outputs is not None:
            np.savez(outputs, **compute_outputs())
        self.call()
        self.memory.forget()
        return {}

    def turn(self, calls: int) -> dict:
        """One call to warm the caches that the other subject used, then `calls` timed ones.

        Returns the mean seconds by the clock on the wall, and the mean seconds of processor time in all threads.
        """
        self.call()
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(calls):
            self.call()
        return {"wall": (time.perf_counter() - wall) / calls, "cpu": (time.process_time() - cpu) / calls}

    def peak(self) -> dict:
        """Bytes by which the calls since `build` raised the resident memory over that of the built model."""
        return {"bytes": self.memory.peak()}

    def gemm(self, size: int) -> dict:
        """The best rate of a large matrix product, in floating-point operations a second."""
        self.call = self.framework.gemm(size)
        turns = [self.turn(calls=2) for _ in range(4)]
        return {clock: 2 * size**3 / min(turn[clock] for turn in turns) for clock in ("wall", "cpu")}


def main(framework: str, threads: int) -> None:
    """Answer requests until standard input ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a library that prints must not disturb the replies
    worker = Worker(framework, threads)
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        reply = getattr(worker, request.pop("do"))(**request)
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
