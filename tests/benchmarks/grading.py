"""Processor time for each submission, from collected to table and feedback: `make grade` beside nbgrader as it comes.

    python tests/benchmarks/grading.py [--students N] [--rounds N]

Every submission is the right solution of *Attention from scratch*. nbgrader as it comes has a configuration of two
lines; what it runs is `autograde`, `generate_feedback` and `export`. Both grade in a course of their own, by turns,
with all their processes and kernels counted. In the second run of a round, one submission of all has changed.
"""

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.support.course import ASSIGNMENT, BIN, Course, filled_in, reference_answers  # noqa: E402

PLAIN = """c = get_config()
c.CourseDirectory.course_id = "attention"
"""
# by name: the commands, in the course's folder
ARMS = {
    "nbgrader as it comes": [
        [BIN / "nbgrader", "autograde", ASSIGNMENT],
        [BIN / "nbgrader", "generate_feedback", ASSIGNMENT],
        [BIN / "nbgrader", "export"],
    ],
    "make grade": [[sys.executable, "-m", "course_lib.grading.marking", ASSIGNMENT]],
}


def main(arguments: list[str] | None = None) -> int:
    """Grade the same submissions by both, and print seconds of processor time for each submission."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args(arguments)
    if min(chosen.students, chosen.rounds) < 1:
        parser.error("at least one student and one round")
    seconds = {name: [] for name in ARMS}
    for _ in range(chosen.rounds):
        for name, rounds in seconds.items():
            with tempfile.TemporaryDirectory() as folder:
                rounds.append(measured(name, Path(folder), chosen.students))
    print(f"{chosen.students} submissions, {chosen.rounds} rounds; seconds of processor time, the median of the rounds")
    for name, rounds in seconds.items():
        first, second = (statistics.median(times) for times in zip(*rounds, strict=True))
        print(f"{name:22s} all new {first / chosen.students:5.2f} a submission, one changed {second:6.2f} in all")
    theirs, ours = seconds.values()
    for which, what in enumerate(("all new", "one changed")):
        ratios = sorted(mine[which] / other[which] for mine, other in zip(ours, theirs, strict=True))
        print(f"make grade / nbgrader, {what}: {statistics.median(ratios):.2f} [{ratios[0]:.2f}, {ratios[-1]:.2f}]")
    return 0


def measured(name: str, folder: Path, students: int) -> tuple[float, float]:
    """Seconds of processor time of two runs: of all submissions, and again when one has changed."""
    course = Course(folder / "run")
    if name != "make grade":
        (course.root / "nbgrader_config.py").write_text(PLAIN, encoding="utf-8")
    environment = course._environment("instructor")
    run(course.root, environment, [[BIN / "nbgrader", "generate_assignment", ASSIGNMENT]])
    answers = reference_answers(course.source)
    for number in range(students):
        course.submit(f"student{number}", filled_in(course.release, answers))
    first = run(course.root, environment, ARMS[name])
    shutil.rmtree(course.root / "submitted" / "student0")
    course.submit("student0", filled_in(course.release, answers | {"softmax": answers["softmax"] + "\n# a comment"}))
    return first, run(course.root, environment, ARMS[name])


def run(folder: Path, environment: dict, commands: list) -> float:
    """The processor time of commands, with all their children."""
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    for command in commands:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode not in (0, 1):  # 1: somebody needs attention
            raise RuntimeError(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime


if __name__ == "__main__":
    sys.exit(main())
