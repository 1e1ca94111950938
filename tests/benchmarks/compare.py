"""Interleaved timing of subjects that live in processes of their own."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from figures import Figure, Subject
from problems import attention_flops, bert_flops, model_flops, rnn_flops, translator_flops

HERE = Path(__file__).parent
PAUSE = 0.005  # seconds: threads that wait actively for more work after a turn have gone to sleep by then
TURN = 0.08  # seconds that a turn shall last, so that starting it costs nothing in comparison
LONGEST = 90  # seconds after which a figure has no more rounds than FEWEST: decoding without a cache is slow
FEWEST = 3
MINILM = {"n_layers": 6, "d_model": 384, "d_ff": 1536, "vocab_size": 30522}
TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}  # float32 sums in another order, over up to 12 million terms


class Worker:
    """The parent's end of a worker process."""

    def __init__(self, framework: str, threads: int):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), framework, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""},
        )

    def send(self, do: str, **request) -> None:
        """Start a request; `receive` waits for the reply."""
        try:
            self.process.stdin.write(json.dumps({"do": do, **request}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self._fail()

    def receive(self) -> dict:
        """The reply to the last request; RuntimeError with the end of its log when the process has died."""
        line = self.process.stdout.readline()
        return json.loads(line) if line else self._fail()

    def ask(self, do: str, **request) -> dict:
        """Send and receive."""
        self.send(do, **request)
        return self.receive()

    def close(self) -> None:
        """End the process."""
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def _fail(self):
        self.process.wait()
        self.log.seek(0)
        raise RuntimeError("a benchmark's process died:\n" + self.log.read().decode(errors="replace")[-4000:])


class Pool:
    """One process per role (peer, subject 1, ...) and framework, used again until a figure wants others.

    A process that a figure has no use for ends, since it would hold memory, unless all shall be kept.
    """

    def __init__(self, threads: int, keep: bool = False):
        self.threads, self.keep, self.workers = threads, keep, {}

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.clear()

    def clear(self) -> None:
        """End all processes."""
        for worker in self.workers.values():
            worker.close()
        self.workers = {}

    def for_figure(self, figure: Figure) -> list[Worker]:
        """Workers for the peer and each subject."""
        roles = [(i, subject.framework) for i, subject in enumerate(_subjects(figure))]
        if not self.keep and any(role not in self.workers for role in roles):
            self.clear()
        for role in roles:
            if role not in self.workers:
                self.workers[role] = Worker(role[1], self.threads)
        return [self.workers[role] for role in roles]


def compare(figure: Figure, pool: Pool, seconds: float, rounds: int, clock: str = "wall") -> list[dict]:
    """Time a figure's subjects against its peer.

    Every subject first shows that its outputs and gradients equal the peer's. Then they take turns, A B C,
    C B A, A B C ..., for at least `rounds` rounds and about `seconds` seconds; for three where so many would take more
    than a minute and a half. A round gives one ratio.
    `clock` is "wall", or "cpu" for the processor time of all threads.

    Returns
    -------
    One dict per subject: ratio (median over rounds), low and high (quartiles), share (of the rate of a large
    matrix product, measured in the same minute, that its matrix products reach), memory (ratio of the peaks, or None).

    Raises
    ------
    AssertionError : outputs that differ.
    """
    subjects, workers = _subjects(figure), pool.for_figure(figure)
    _build(figure, subjects, workers)
    calls, spent = [], 0.0
    for worker in workers:
        first = worker.ask("turn", calls=1)["wall"]
        calls.append(max(1, min(20, round(TURN / first))))
        spent += first * (calls[-1] + 1) + PAUSE
    n_rounds = max(rounds, round(seconds / spent)) if rounds * spent < LONGEST else FEWEST
    times = [[] for _ in workers]
    for i in range(n_rounds):
        order = range(len(workers)) if i % 2 == 0 else reversed(range(len(workers)))
        for j in order:
            time.sleep(PAUSE)
            times[j].append(workers[j].ask("turn", calls=calls[j])[clock])
    peaks = [_peak(figure, subject, pool.threads) if figure.memory else None for subject in subjects]
    rate = max(worker.ask("gemm", size=1024)[clock] for worker in workers[:2])
    flops = _flops(figure.job)
    results = []
    for j, subject in enumerate(subjects):
        ratios = [mine / theirs for mine, theirs in zip(times[j], times[0], strict=True)]
        low, median, high = np.quantile(ratios, (0.25, 0.5, 0.75)).tolist()
        target = figure.targets.get(subject.label)
        results.append(
            {
                "figure": figure.name,
                "peer": subjects[0].label,
                "subject": subject.label,
                "ratio": median,
                "low": low,
                "high": high,
                "rounds": n_rounds,
                "seconds": statistics.median(times[j]),
                "share": flops / statistics.median(times[j]) / rate,
                "memory": None if peaks[j] is None else peaks[j] / peaks[0],
                "memory_bytes": peaks[j],
                "target": target,
                "verdict": verdict(median, target),
                "memory_verdict": verdict(
                    None if peaks[j] is None else peaks[j] / peaks[0], figure.memory_targets.get(subject.label, target)
                ),
            }
        )
    return results


def _peak(figure, subject, threads):
    """The peak memory in a process of its own: to compare outputs, a subject may compute them in another way."""
    worker = Worker(subject.framework, threads)
    try:
        worker.ask("build", subject=subject.build, job={**figure.job, **subject.settings}, outputs=None)
        worker.ask("turn", calls=2)
        return worker.ask("peak")["bytes"]
    finally:
        worker.close()


def verdict(ratio: float | None, target: float | None) -> str:
    """ "met" or "missed", by the two decimals that the table shows; "" where no mark is set."""
    if ratio is None or target is None:
        return ""
    return "met" if round(ratio, 2) <= target else "missed"


def _flops(job):
    if "model" in job:
        return model_flops(job)
    if "vocab_size" in job:
        return translator_flops(job)
    if "cell" in job:
        return rnn_flops(job)
    return attention_flops(job) if "n_heads" in job else bert_flops(job, **MINILM)


def _subjects(figure: Figure) -> list[Subject]:
    return [figure.peer, *figure.subjects]


def _build(figure, subjects, workers):
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / f"{i}.npz") for i in range(len(workers))]
        for subject, worker, file in zip(subjects, workers, files, strict=True):
            worker.send("build", subject=subject.build, job={**figure.job, **subject.settings}, outputs=file)
        for worker in workers:
            worker.receive()
        expected = dict(np.load(files[0]))
        for subject, file in zip(subjects[1:], files[1:], strict=True):
            for name, value in np.load(file).items():
                if name in expected:
                    message = f"{figure.name}: {name} of {subject.label} differs from the peer's"
                    np.testing.assert_allclose(value, expected[name], **TOLERANCE, err_msg=message)
