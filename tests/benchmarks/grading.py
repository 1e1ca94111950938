"""Seconds for each submission, from collected to table and feedback: `make grade` beside nbgrader as it comes.

    python tests/benchmarks/grading.py [ASSIGNMENT] [--students N] [--stock N] [--rounds N] [--arms warm] [--tensorflow]

Every submission is the right solution; with `--tensorflow` that in TensorFlow, and kernels that start warm have that
in PyTorch's place, as the instructor's page says for such a class. nbgrader as it comes has a configuration of two
lines; what it runs is `autograde`, `generate_feedback` and `export`, on one core, as it knows no other way. `make
grade` uses all cores, and starts its kernels warm, as the course is set, or cold; or cold and without the sandbox. All
arms of a round grade the same works, in a course of their own, in an order drawn for the round; all their processes and
kernels are counted. Then one submission has changed, and they grade again. nbgrader as it comes takes as long for each
work of a large class as of a small one, so that it may have fewer of them (`--stock`).
"""

import argparse
import importlib
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import nbformat

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.support.course import ASSIGNMENT, BIN, Course, filled_in, reference_answers  # noqa: E402

PLAIN = """c = get_config()
c.CourseDirectory.course_id = "attention"
"""
STOCK = "nbgrader as it comes"
COLD = "\nc.ExecuteOutside.warm = {}\n"
IN_TENSORFLOW = "\nc.ExecuteOutside.warm = {name: ['numpy', 'tensorflow'] for name in c.ExecuteOutside.assignments}\n"


class Arm(NamedTuple):
    """One way to grade: what is added to the configuration, and to the environment."""

    configuration: str = ""
    environment: dict[str, str] = {}


ARMS = {
    "warm": Arm(),  # as the course sets it
    "cold": Arm(COLD),
    "cold, no sandbox": Arm(COLD, {"COURSE_GRADING_SANDBOX": "off"}),
}


class Took(NamedTuple):
    """Seconds of a run."""

    wall: float
    processor: float


def main(arguments: list[str] | None = None) -> int:
    """Grade the same submissions in every way, and print seconds for each submission, and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("assignment", nargs="?", default=ASSIGNMENT)
    parser.add_argument("--students", type=int, default=10)
    parser.add_argument("--stock", type=int, help="submissions that nbgrader as it comes has; as many by default")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=[*ARMS])
    parser.add_argument("--tensorflow", action="store_true")
    chosen = parser.parse_args(arguments)
    if chosen.stock is None:
        chosen.stock = chosen.students
    if min(chosen.students, chosen.stock, chosen.rounds) < 1:
        parser.error("at least one student and one round")
    if not (ROOT / "assignments" / "source" / chosen.assignment).is_dir():
        parser.error(f"no assignment {chosen.assignment!r}")
    if chosen.tensorflow and not in_tensorflow(chosen.assignment):
        parser.error(f"{chosen.assignment} has no solution in TensorFlow")
    names = [STOCK, *chosen.arms]
    works = {name: chosen.stock if name == STOCK else chosen.students for name in names}
    rounds, scores = [], {}
    for number in range(chosen.rounds):
        taken = {}
        for name in random.Random(number).sample(names, len(names)):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                taken[name], scores[name] = measured(
                    name, Path(folder), chosen.assignment, works[name], chosen.tensorflow
                )
            print(f"round {number + 1}, {name}: {taken[name][0]}", file=sys.stderr, flush=True)
        rounds.append(taken)
    if any(score != scores[STOCK] for score in scores.values()):
        raise RuntimeError(f"not the same scores: {json.dumps(scores)}")
    subject = f"{chosen.assignment}{' in TensorFlow' if chosen.tensorflow else ''}"
    sizes = f"{chosen.students} submissions, {chosen.stock} with {STOCK}"
    print(f"{subject}, {sizes}, {os.cpu_count()} cores; medians of {chosen.rounds} rounds")
    for name in names:
        new, changed = ([taken[name][which] for taken in rounds] for which in (0, 1))
        wall, processor = (statistics.median(values) / works[name] for values in zip(*new, strict=True))
        again = statistics.median(each.wall for each in changed)
        print(
            f"{name:22s} {wall:6.2f} s a submission, {processor:6.2f} of a processor; one changed {again:6.1f} s in all"
        )
    for name in names[1:]:
        times = sorted(taken[STOCK][0].wall / works[STOCK] / (taken[name][0].wall / works[name]) for taken in rounds)
        print(f"{name} is {statistics.median(times):.1f} times [{times[0]:.1f}, {times[-1]:.1f}] as fast as {STOCK}")
    if {"cold", "cold, no sandbox"} <= {*names}:
        print_cost(rounds)
    return 0


def print_cost(rounds: list[dict]) -> None:
    """What the sandbox takes."""
    costs = sorted(taken["cold"][0].wall / taken["cold, no sandbox"][0].wall for taken in rounds)
    print(f"with / without the sandbox: {statistics.median(costs):.2f} [{costs[0]:.2f}, {costs[-1]:.2f}]")


def in_tensorflow(assignment: str) -> dict[str, str]:
    """The cells of the solution in TensorFlow, by name; none where the assignment is not about tensors."""
    bank = importlib.import_module(f"tests.assignments.variants.{assignment.replace('-', '_')}").BANK
    return next((variant.cells for variant in bank.right if variant.name == "in TensorFlow"), {})


def measured(
    name: str, folder: Path, assignment: str, students: int, tensorflow: bool = False
) -> tuple[tuple[Took, Took], dict]:
    """What two runs took, of all submissions and again when one has changed; the scores of each graded cell."""
    course = Course(folder / "run")
    arm = ARMS.get(name, Arm())
    configuration = course.root / "nbgrader_config.py"
    ours = configuration.read_text(encoding="utf-8") + (IN_TENSORFLOW if tensorflow else "") + arm.configuration
    configuration.write_text(PLAIN if name == STOCK else ours)
    environment = course._environment("instructor") | arm.environment
    run(course.root, environment, [[BIN / "nbgrader", "generate_assignment", assignment]])
    source, release = (
        nbformat.read(course.root / place / assignment / f"{assignment}.ipynb", as_version=4)
        for place in ("source", "release")
    )
    answers = reference_answers(source) | (in_tensorflow(assignment) if tensorflow else {})
    work = filled_in(release, answers)
    for number in range(students):
        hand_in(course, assignment, f"student{number}", work)
    marking = [[sys.executable, "-m", "course_lib.grading.marking", assignment]]
    stock = [
        [BIN / "nbgrader", *words]
        for words in (("autograde", assignment), ("generate_feedback", assignment), ("export",))
    ]
    commands = stock if name == STOCK else marking
    first = run(course.root, environment, commands)
    shutil.rmtree(course.root / "submitted" / "student0")
    cell = next(cell for cell in answers if "def " in answers[cell])
    changed = filled_in(release, answers | {cell: answers[cell] + "\n# a comment"})
    hand_in(course, assignment, "student0", changed)
    second = run(course.root, environment, commands)
    with course.gradebook() as gradebook:
        scores = {
            grade.name: grade.auto_score
            for number in range(students)
            for grade in gradebook.find_submission_notebook(assignment, assignment, f"student{number}").grades
        }
    return (first, second), scores


def hand_in(course: Course, assignment: str, student: str, notebook) -> None:
    """Lay a notebook where `nbgrader collect` would."""
    folder = course.root / "submitted" / student / assignment
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / f"{assignment}.ipynb")


def run(folder: Path, environment: dict, commands: list) -> Took:
    """What commands took, with all their children."""
    start, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    for command in commands:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode not in (0, 1):  # 1: somebody needs attention
            raise RuntimeError(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        if "has no effect" in done.stdout:
            raise RuntimeError(done.stdout)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Took(time.monotonic() - begun, end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime)


if __name__ == "__main__":
    sys.exit(main())
