"""Trains in a process of its own, to be killed.

`python -m tests.support.resume_process FRAMEWORK FOLDER STEPS SLOW SAVE_EVERY` starts one.
"""

import importlib
import json
import sys
import time

from tests.support import translators


def train(framework: str, folder: str | None, steps: int, slow: float = 0.0, save_every: float = 0.0):
    """A training with dropout, clipping, a schedule and validation, saved after every update by default."""
    held_out, pairs = translators.batches(20, seed=5)(0), translators.batches(30, 5)

    def batches(epoch):
        if slow:
            print("epoch", epoch, flush=True)
        return Slow(pairs(epoch), slow)

    return importlib.import_module(f"course_lib.{framework}.training.translation").train(
        translators.build(framework, dropout=0.3),
        batches,
        held_out,
        rate=lambda step: 3e-3 / (step + 1) ** 0.5,
        max_norm=1.0,
        steps=steps,
        validate_every=4,
        checkpoint=folder,
        save_every=save_every,
        seed=3,
        progress=False,
    )


class Slow(list):
    """Batches that take their time, so that the moment of the kill lies anywhere."""

    def __init__(self, items, seconds: float):
        super().__init__(items)
        self.seconds = seconds

    def __getitem__(self, i):
        time.sleep(self.seconds)
        return super().__getitem__(i)


if __name__ == "__main__":
    framework, folder, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    history = train(framework, folder, steps, *map(float, sys.argv[4:]))
    print(json.dumps({"loss": history.loss.tolist(), "validation": history.validation}), flush=True)
