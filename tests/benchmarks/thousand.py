"""A thousand submissions, one in twenty hostile and one in twenty broken, graded unattended, and killed at random.

    python tests/benchmarks/thousand.py [--students N] [--kills N] [--seed N]

The same works are graded twice by `make grade`: once undisturbed, and once by runs of which each but the last is ended
by SIGKILL after a time drawn at random. Said is how long a submission took as the number grows, whose marks are others
in the second gradebook, how many works were graded by more than one run, and what is left of the killed ones.

Of the good works, most have all points; of every third a part is left as it was given out, which costs the points of
its tests and no others, since what follows is tried with right values. The hostile are drawn by the seed among all of
tests/assignments/variants/attacks, none twice before all had their turn; the broken are of the kinds in `broken`.
"""

import argparse
import json
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.support.attacks import ATTACKS, CELL_S, NOTEBOOK_S, answers  # noqa: E402
from tests.support.attacks_on_ours import CONFIG, LIMITS  # noqa: E402
from tests.support.course import ASSIGNMENT, Course, filled_in, grade_id, maximum, reference_answers  # noqa: E402

EVERY = 20  # one of so many is hostile, and one is broken
SETTINGS = f"{CONFIG}\nc.ExecuteOutside.warm = {{{ASSIGNMENT!r}: ['numpy']}}\n"
SEED = {"COURSE_GRADING_SEED": "a thousand"}  # what the tests draw is the same in both


def main(arguments: list[str] | None = None) -> int:
    """Grade, kill, resume, compare; 1 where a mark, a comment or a penalty differs, or anything is left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    if chosen.students < EVERY or chosen.kills < 0:
        parser.error(f"at least {EVERY} students, and no negative number of kills")
    draw = random.Random(chosen.seed)
    with tempfile.TemporaryDirectory(prefix="thousand-", ignore_cleanup_errors=True) as folder:
        calm = Course(Path(folder) / "calm")
        with (calm.root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
            config.write(SETTINGS)
        calm.nbgrader("generate_assignment", ASSIGNMENT)
        kinds = hand_in(calm, chosen.students, draw.sample(sorted(ATTACKS), len(ATTACKS)))
        hostile = [kind for kind in kinds.values() if kind.startswith("attack")]
        print(f"{len(kinds)} works: {len(hostile)} hostile, {len(set(hostile))} of {len(ATTACKS)} attacks among them")
        room = LIMITS["memory"] >> 20
        print(f"limits: {CELL_S} s for a cell, {NOTEBOOK_S} s and {room} MiB for a notebook")
        killed = Course(Path(folder) / "killed", copied_from=calm.root)
        for course in (calm, killed):
            write_attacks(course, kinds)
        shutil.copytree(calm.root / "submitted", killed.root / "submitted", dirs_exist_ok=True)
        write_attacks(killed, kinds)

        times = graded(calm)
        say_times([time for _, time in times])
        deadlines = [draw.uniform(0.1, 0.9) * times[-1][1] / (chosen.kills + 1) for _ in range(chosen.kills)]
        runs = [graded(killed, deadline) for deadline in deadlines] + [graded(killed)]
        print("runs of the killed one graded", [len(run) for run in runs], "works")
        twice = len([name for run in runs for name, _ in run]) - len({name for run in runs for name, _ in run})
        print(f"{twice} works were graded by more than one run")
        left = [
            process for process in psutil.process_iter(["cmdline"]) if folder in " ".join(process.info["cmdline"] or [])
        ]
        print(f"{len(left)} processes are left")
        return compare(calm, killed, kinds) or len(left) > 0


def tests_of(source) -> dict[str, list[str]]:
    """The cells with points that stand between an answer in code and the next, by the answer."""
    found, most = {}, maximum(source)
    for cell in source.cells:
        if grade_id(cell) in most:
            found[next(reversed(found))].append(grade_id(cell))
        elif cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("solution"):
            found[grade_id(cell)] = []
    return found


def left_out(number: int, answers: list[str]) -> str:
    """The answer that the student of this number leaves as it was given out, if it is a good work; "" for most."""
    return answers[number // 3 % len(answers)] if number % 3 == 0 else ""


def hand_in(course: Course, students: int, attacks: list[str]) -> dict[str, str]:
    """Lay the good and the broken works into submitted/; what each student's is, with the attacks by turns."""
    release, solutions = course.release, reference_answers(course.source)
    cells = list(tests_of(course.source))
    faulty, kinds = broken(release, solutions), {}
    for number in range(students):
        student, kind = f"s{number:04d}", "good"
        if number % EVERY == 7:
            kind = f"attack {attacks[number // EVERY % len(attacks)]}"
        elif number % EVERY == 13:
            kind = list(faulty)[number // EVERY % len(faulty)]
        kinds[student] = kind
        if kind.startswith("attack"):
            continue
        without = left_out(number, cells)
        text = nbformat.writes(filled_in(release, {k: v for k, v in solutions.items() if k != without}))
        text = faulty.get(kind, text)
        folder = course.root / "submitted" / student / ASSIGNMENT
        folder.mkdir(parents=True)
        (folder / f"{ASSIGNMENT}.ipynb").write_text(text, encoding="utf-8")
    return kinds


def broken(release, solutions: dict[str, str]) -> dict[str, str]:
    """Works that somebody broke without wanting to, as text, by name."""
    whole = nbformat.writes(filled_in(release, solutions))
    first = next(iter(solutions))
    with_cell = {
        "a syntax error": "def softmax(:\n",
        "an endless loop": "while True:\n    pass\n",
        "a kernel that ends": "import os\nos._exit(1)\n",
        "ten megabytes of output": "print('x' * 10_000_000)\n",
        "a closed package": "import scipy\n",
    }
    texts = {name: nbformat.writes(filled_in(release, solutions | {first: cell})) for name, cell in with_cell.items()}
    without = nbformat.from_dict(filled_in(release, solutions))
    without.cells = without.cells[::2]
    return texts | {
        "half of a file": whole[: len(whole) // 2], "an empty file": "", "no notebook": '{"a": 1}',
        "every second cell": nbformat.writes(without),
    }  # fmt: skip


def write_attacks(course: Course, kinds: dict[str, str]) -> None:
    """Lay the hostile works into submitted/, which know where this course lies."""
    solutions, release = reference_answers(course.source), course.release
    home = course.folder / "home" / "instructor"
    known = f"COURSE, HOME, PORT = {str(course.root)!r}, {str(home)!r}, 9\n"
    for student, kind in kinds.items():
        if kind.startswith("attack"):
            cells = answers(ATTACKS[kind.removeprefix("attack ")], known, solutions)
            folder = course.root / "submitted" / student / ASSIGNMENT
            folder.mkdir(parents=True, exist_ok=True)
            nbformat.write(filled_in(release, cells), folder / f"{ASSIGNMENT}.ipynb")


def graded(course: Course, seconds: float | None = None) -> list[tuple[str, float]]:
    """Grade until the end, or until a SIGKILL after some seconds: the students graded, and when."""
    command = [sys.executable, "-u", "-m", "course_lib.grading.marking", ASSIGNMENT]
    environment = course._environment("instructor") | SEED
    begun, found = time.monotonic(), []
    with (
        (course.folder / "said.txt").open("a") as said,
        subprocess.Popen(
            command, cwd=course.root, env=environment, stdout=subprocess.PIPE, stderr=said, text=True
        ) as process,
    ):
        if seconds is not None:
            killer = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    f"""
import os, time
time.sleep({seconds})
os.kill({process.pid}, {int(signal.SIGKILL)})""",
                ]
            )
        for line in process.stdout:
            said.write(line)
            name, _, rest = line.partition(": ")
            if rest.startswith(("graded", "needs attention")):
                found.append((name, time.monotonic() - begun))
        process.wait()
    if seconds is not None:
        killer.wait()
    elif process.returncode not in (0, 1):
        raise RuntimeError((course.folder / "said.txt").read_text()[-3000:])
    return found


def say_times(times: list[float]) -> None:
    """Seconds for each submission, of the first and of later ones."""
    step = 50 if len(times) >= 100 else len(times)
    parts = [(times[i + step - 1] - (times[i - 1] if i else 0)) / step for i in range(0, len(times) - step + 1, step)]
    print(f"{len(times)} works in {times[-1]:.0f} s; s a work, by {step}: " + " ".join(f"{part:.2f}" for part in parts))
    print(f"first {parts[0]:.2f}, median {statistics.median(parts):.2f}, last {parts[-1]:.2f}")


def marks(course: Course) -> dict[str, dict]:
    """The scores of each graded cell and the comments, by student, as the gradebook has them, and the status."""
    entries = json.loads((course.root / "marks" / f"{ASSIGNMENT}.json").read_text(encoding="utf-8"))
    found = {}
    with course.gradebook() as gradebook:
        for submission in gradebook.find_assignment(ASSIGNMENT).submissions:
            notebook = submission.notebooks[0]
            found[submission.student.id] = {
                "scores": {grade.name: (grade.auto_score, grade.manual_score) for grade in notebook.grades},
                "comments": {each.name: each.comment for each in notebook.comments if each.comment},
                "penalty": submission.late_submission_penalty,
            }
    for student, entry in entries.items():
        found.setdefault(student, {}).update({key: entry[key] for key in ("trouble", "notes", "origin", "replaces")})
    return found


def compare(calm: Course, killed: Course, kinds: dict[str, str]) -> int:
    """Say what differs between the two, and who has not what they earned; 1 where a mark is another.

    A mark is a score, a comment or a penalty. What is told of a work that stopped may differ from run to run.
    """
    one, other = marks(calm), marks(killed)
    different = {student for student in {*one, *other} if one.get(student) != other.get(student)}
    apart = {
        what: {student for student in different if one.get(student, {}).get(what) != other.get(student, {}).get(what)}
        for what in ("scores", "comments", "penalty")
    }
    for student in sorted(different):
        a, b = one.get(student, {}), other.get(student, {})
        print(student, kinds[student], {key: (a.get(key), b.get(key)) for key in {*a, *b} if a.get(key) != b.get(key)})
    print(f"{len(one)} and {len(other)} of {len(kinds)} students have an entry")
    print("others in the second: " + ", ".join(f"{what} of {len(students)}" for what, students in apart.items()))
    most, tests, wrong = maximum(calm.source), tests_of(calm.source), []
    for number, (student, kind) in enumerate(kinds.items()):
        if kind == "good":
            deserved = most | dict.fromkeys(tests.get(left_out(number, list(tests)), []), 0.0)
            earned = {name: one[student].get("scores", {}).get(name, (None,))[0] for name in most}
            if earned != deserved:
                off = {name: (earned[name], deserved[name]) for name in most if earned[name] != deserved[name]}
                wrong.append((student, off))
    print(f"{len(wrong)} of the good works have other points than they earned", *wrong[:5])
    return int(bool(any(apart.values()) or wrong or set(one) != set(other) or len(one) != len(kinds)))


if __name__ == "__main__":
    sys.exit(main())
