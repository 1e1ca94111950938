"""An experiment of runs that take no time, and as a process of its own one whose first run waits for a file.

`python -m tests.support.toy_experiment FOLDER WORD...` makes its runs, and `FOLDER add` adds figures by the dozen.
"""

import sys
import time
from pathlib import Path
from typing import NamedTuple

from notebooks.experiments.harness import Experiment, Record, main, table


class Toy(NamedTuple):
    """A run that multiplies; `chosen` is for it to choose."""

    label: str
    factor: float = 1.0
    seed: int = 0
    chosen: int | None = None

    @property
    def name(self) -> str:
        return f"{self.label}-{self.seed}"

    @property
    def seconds(self) -> float:
        return 40.0


RUNS = table([Toy("one"), Toy("two", 2.0), Toy("three", 3.0), Toy("three", 3.0, seed=1)])


def toy(folder, measure=None, runs=RUNS):
    """The experiment with its record in a folder, and the names of the runs it has made, in a list that grows."""
    made = []

    def usual(run, record):
        made.append(run.name)
        found = measure(run, record) if measure else {}
        return {"chosen": 7, "product": 10 * run.factor, "seconds": 61.4, **found}

    record = Record(Path(folder) / "toy.json")
    return Experiment("What is ten times a factor?", runs, usual, record, "three", one_core=False), made


def wait_for(path):
    """Ten minutes at the most."""
    for _ in range(60_000):
        if path.exists():
            return
        time.sleep(0.01)
    raise TimeoutError(f"{path} does not come")


def waiting(run, record):
    """Say that the run has begun; the first run ends when the file `go` is there."""
    (record.file.parent / f"begun {run.name}").touch()
    if run.label == "one":
        wait_for(record.file.parent / "go")
    return {}


if __name__ == "__main__":
    folder, *arguments = sys.argv[1:]
    if arguments == ["add"]:
        for i in range(30):
            Record(Path(folder) / "toy.json").add(f"{time.monotonic_ns()} {i}", {"i": i})
    else:
        raise SystemExit(main(toy(folder, waiting)[0], __file__, arguments))
