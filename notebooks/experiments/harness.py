"""What the experiments share: a table of runs, a record of what they measured, and a command line.

An experiment is a table, name -> settings, and a function that makes one run and returns its figures. The settings are
a NamedTuple with a property `seconds`, about how long the run takes. `main` makes the runs that the record lacks, one
after the other, and writes the figures of each as soon as it ends: an interruption loses the run it falls into and no
other. Several processes may be at work on one experiment, and no two of them make the same run.
"""

import argparse
import contextlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from course_lib.files import replacing


class DamagedRecord(ValueError):
    """A record that cannot be read, and is not written over."""


class Waiting(Exception):
    """A run cannot be made before others are."""


class Record:
    """What runs measured: figures by their names in a JSON file, longer results in the folder of the same name."""

    def __init__(self, file: str | Path):
        self.file = Path(file)
        self.folder = self.file.with_suffix("")

    @classmethod
    def of(cls, script: str | Path) -> "Record":
        """The record of an experiment, in the folder `recorded` beside its script."""
        return cls(Path(script).resolve().parent / "recorded" / f"{Path(script).stem}.json")

    def read(self) -> dict[str, dict]:
        """The figures of all runs so far, by name. DamagedRecord for a file that is not a table of runs."""
        if not self.file.exists():
            return {}
        try:
            found = json.loads(self.file.read_text(encoding="utf-8"))
            if not isinstance(found, dict) or not all(isinstance(figures, dict) for figures in found.values()):
                raise ValueError("it holds something else than figures by the names of runs")
        except ValueError as error:
            file = shown(self.file)
            raise DamagedRecord(
                f"{file} is damaged: {error}. `git restore {file}` brings back the recorded one; without the file, "
                "all runs are made again"
            ) from error
        return found

    def add(self, name: str, figures: Mapping[str, Any]) -> None:
        """Write the figures of one run beside those of the others, whoever else writes meanwhile."""
        with self._lock("record"):
            write_text(self.file, json.dumps(self.read() | {name: dict(figures)}, indent=1) + "\n")

    def keep(self, name: str, lines: Iterable[str]) -> None:
        """Write the texts that a run produced, a line each, into the folder."""
        write_text(self.folder / f"{name}.txt", "\n".join(lines) + "\n")

    @contextlib.contextmanager
    def claimed(self, name: str) -> Iterator[bool]:
        """Whether this process may make a run: not while another one does. A process that is killed claims nothing."""
        try:
            held = self._lock(f"run {name}").acquire(timeout=0)
        except Timeout:
            yield False
            return
        with held:
            yield True

    def _lock(self, name: str) -> FileLock:
        folder = self.file.parent / ".locks" / self.file.stem
        folder.mkdir(parents=True, exist_ok=True)
        return FileLock(folder / f"{name}.lock")


@dataclass(frozen=True)
class Experiment:
    """Runs, and how one of them is made.

    Parameters
    ----------
    about : what is asked, and whatever else `--help` should say
    runs : name -> settings, in the order in which they are made
    measure : settings, record -> figures; texts and weights it leaves in the record's folder itself
    record : where the figures go, each run's after its settings
    example : a word that names of runs contain, for `--help`
    one_core : whether a run keeps to one thread, so that the processor's clock counts the seconds of one core
    """

    about: str
    runs: Mapping[str, Any]
    measure: Callable[[Any, Record], dict]
    record: Record
    example: str
    one_core: bool = True

    def state(self, name: str, recorded: Mapping[str, dict]) -> str:
        """Of a run: "recorded", "lacking", or "changed" if it was recorded with other settings than the table's.

        A setting that is None in the table may have been chosen by the run.
        """
        if name not in recorded:
            return "lacking"
        wanted = {key: value for key, value in self.runs[name]._asdict().items() if value is not None}
        return "recorded" if wanted.items() <= recorded[name].items() else "changed"


def table(runs: Iterable[Any]) -> dict[str, Any]:
    """Runs by their names; ValueError if two have the same one."""
    named: dict[str, Any] = {}
    for run in runs:
        if run.name in named:
            raise ValueError(f"two runs are called {run.name!r}: a name must say what distinguishes a run")
        named[run.name] = run
    return named


def name_of(run: tuple) -> str:
    """The settings of a run that are not None, a word each: a name that says what distinguishes it."""
    return " ".join(str(value) for value in run if value is not None)


def of_trials(names: Iterable[str], record: Record) -> dict[str, dict]:
    """The figures of the trials that a run's settings are chosen by; Waiting as long as one of them is lacking."""
    names, recorded = list(names), record.read()
    if missing := [name for name in names if name not in recorded]:
        raise Waiting(f"its settings are chosen by trials; run first {', '.join(missing)}")
    return {name: recorded[name] for name in names}


def run(experiment: Experiment, names: Iterable[str], again: bool = False) -> list[str]:
    """Make those of the named runs that the record lacks, or all of them again; return those that failed.

    A run that fails says why, and the next one begins. One that another process makes is left to it.
    """
    record, failed, names = experiment.record, [], list(names)
    for place, name in enumerate(names, start=1):
        settings = experiment.runs[name]
        with record.claimed(name) as ours:
            if not ours:
                print(f"{name}: another process is at it", flush=True)
                continue
            if not again and experiment.state(name, record.read()) == "recorded":
                continue
            print(f"{name}: {place} of {len(names)}, about {duration(settings.seconds)}", flush=True)
            figures = None
            try:
                figures = settings._asdict() | experiment.measure(settings, record)
                record.add(name, figures)
            except Waiting as error:
                print(f"{name} was not made: {error}", file=sys.stderr, flush=True)
                failed.append(name)
            except Exception:
                traceback.print_exc()
                if figures is not None:  # hours of work, and no place for them
                    print(f"measured, but not recorded: {json.dumps({name: figures}, default=str)}", flush=True)
                failed.append(name)
            else:
                short = {key: value for key, value in figures.items() if not isinstance(value, (list, dict))}
                print(json.dumps(short), flush=True)
    return failed


def main(experiment: Experiment, script: str | Path, arguments: list[str] | None = None) -> int:
    """The command line of an experiment; returns 0, or 1 if a run failed, or 130 after Ctrl-C."""
    parser = parser_of(experiment, script)
    options = parser.parse_args(arguments)
    meant = {word: named(word, experiment.runs) for word in options.words}
    for word, found in meant.items():
        if not found:
            parser.error(f"no run's name contains {word!r}. The runs: {', '.join(experiment.runs)}")
    names = [name for name in experiment.runs if not meant or any(name in found for found in meant.values())]
    try:
        if options.list:
            print(listing(experiment, names))
            return 0
        recorded = experiment.record.read()
        wanted = [name for name in names if options.again or experiment.state(name, recorded) != "recorded"]
        if not wanted:
            print(f"Nothing to do: {shown(experiment.record.file)} has all of it, and --again makes it again.")
        with one_core() if experiment.one_core else contextlib.nullcontext():
            failed = run(experiment, wanted, options.again)
    except DamagedRecord as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted: the runs before this one are recorded, and the same command goes on.", file=sys.stderr)
        return 130
    if failed:
        print(f"Not made: {', '.join(failed)}. The others are recorded.", file=sys.stderr)
    return 1 if failed else 0


def named(word: str, names: Iterable[str]) -> list[str]:
    """The run of this name; where there is none, those whose names contain it."""
    names = list(names)
    return [word] if word in names else [name for name in names if word in name]


def parser_of(experiment: Experiment, script: str | Path) -> argparse.ArgumentParser:
    """The options, after what the experiment is about and before some examples."""
    command = f"python {shown(Path(script).resolve())}"
    examples = {
        "": "the runs that the record lacks",
        " --list": "all runs, whether they are recorded, and how long they take",
        f" {experiment.example}": f"of the runs that the record lacks those whose name contains {experiment.example!r}",
        f" {experiment.example} --again": "all of those, in place of what is recorded",
    }
    parser = argparse.ArgumentParser(
        prog=command,
        description=f"{experiment.about.strip()}\n\nFigures are recorded in {shown(experiment.record.file)}.",
        epilog="\n".join(["examples:", *(f"  {command}{words}\n      {what}" for words, what in examples.items())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="the runs of this name, or with this in their names")
    parser.add_argument("--list", action="store_true", help="make no run; say which are recorded and what each takes")
    parser.add_argument("--again", action="store_true", help="also recorded runs; the new figures replace the old")
    return parser


def listing(experiment: Experiment, names: Iterable[str]) -> str:
    """A line for each run: its state, the seconds it took or takes about, its name; and what is still to be made."""
    recorded, lines, left = experiment.record.read(), [], []
    for name in names:
        state, seconds = experiment.state(name, recorded), experiment.runs[name].seconds
        if state == "recorded":
            lines.append(f"{state:8}  {'took ' + duration(recorded[name].get('seconds', seconds)):>12}  {name}")
        else:
            lines.append(f"{state:8}  {'about ' + duration(seconds):>12}  {name}")
            left.append(seconds)
    if any(line.startswith("changed") for line in lines):
        lines.append("changed: recorded with other settings than the table's now")
    to_do = f"the other {len(left)} take about {duration(sum(left))}" if left else "none is left to make"
    done = sum(line.startswith("recorded") for line in lines)
    return "\n".join([*lines, f"{done} recorded in {shown(experiment.record.file)}; {to_do}."])


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """One thread for PyTorch, and for TensorFlow if it has not been imported yet."""
    import torch  # here, because it takes seconds, and no list of runs needs it

    settings = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
    before, threads = {name: os.environ.get(name) for name in settings}, torch.get_num_threads()
    os.environ |= settings
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8: whoever reads meanwhile finds the old one or the new one."""
    with replacing(path.parent) as scratch:
        (scratch / path.name).write_text(text, encoding="utf-8")


def duration(seconds: float) -> str:
    """As somebody would say it who waits for it."""
    if seconds < 600:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def shown(path: Path) -> str:
    """A path as seen from here, if it lies below."""
    with contextlib.suppress(ValueError):
        path = path.relative_to(Path.cwd())
    return path.as_posix()
