"""Thirty students through the whole cycle with real parts, from the release to the feedback and the table of marks.

What each should have is computed from the prices of the bank and of variants/handed_in.py, never from what came out.
The right and the wrong answers stand in the bank at equal distances; of each group of malformed ones there is one, and
of those that nobody can grade some more. Kernels start warm here; those who are alone in a course have cold ones.
"""

import csv
import html
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest

from course_lib.grading.marking.batch import Batch
from tests.assignments.variants import Variant, handed_in
from tests.assignments.variants.attention_from_scratch import BANK
from tests.support.course import (
    ASSIGNMENT,
    Course,
    filled_in,
    grade_id,
    maximum,
    patient_with_all_but,
    reference_answers,
)
from tests.support.quick import scores, source_of

SOURCE = source_of(ASSIGNMENT)
POINTS = maximum(SOURCE)
ALL = sum(cell.metadata.get("nbgrader", {}).get("points", 0) for cell in SOURCE.cells)  # with the written answer
KINDS = {kind.name: kind for kind in handed_in.KINDS}
WRITTEN = "1. The variance is $d_k$. 2. It saturates. 3. It sees the future. 4. Change a later token."
COMMENT = "Say why the terms are independent."
LAST = "multi-head-attention"
DUE, EXTENDED = "2025-11-03 17:00:00", "2025-11-06 17:00:00"
NOON, LATER, AGAIN, LATE = "2025-11-03 12:00:00", "2025-11-03 15:00:00", "2025-11-03 16:00:00", "2025-11-05 12:00:00"


class Work(NamedTuple):
    """What is handed in at one time: who writes it, given a folder and the solved notebook, and what it should lose."""

    write: Callable[[Path, dict], None]
    loses: dict[str, float] = {}
    named: str = ""  # why nobody can grade it
    notes: str | None = ""  # what is said of it; None: a malformed one, of which something may be said
    attention: str = ""  # why somebody must look at what it earned


class Student(NamedTuple):
    """One student's works, with the time of each; those of `again` come when the first were graded."""

    works: dict[str, Work]
    again: dict[str, Work] = {}
    by_hand: bool = True  # whether there is a written answer, and somebody marks it

    @property
    def counts(self) -> tuple[str, Work] | None:
        """The last work that can be graded, and its time."""
        found = [(time, work) for time, work in (self.works | self.again).items() if not work.named]
        return found[-1] if found else None


def answered(cells: dict[str, str], **more) -> Work:
    """The solved notebook with these cells."""

    def write(folder: Path, notebook: dict) -> None:
        for name, code in cells.items():
            handed_in.cell(notebook, name)["source"] = code
        handed_in.called(handed_in.NAME)(folder, notebook)

    return Work(write, **more)


def of_bank(variant: Variant) -> Work:
    return answered(variant.cells, loses=variant.loses)


def spread(variants: list[Variant], number: int) -> list[Variant]:
    return [variants[n * len(variants) // number] for n in range(number)]


def malformed(name: str) -> Work:
    kind = KINDS[name]
    return Work(kind.write, kind.loses, kind.why, kind.notes or None)


def as_released(folder: Path, notebook: dict) -> None:
    """What was fetched is handed in as it is."""


ENDLESS = "import time\nwhile True:\n    time.sleep(0.1)"
LAST_LOST = {f"test-{LAST}": POINTS[f"test-{LAST}"]}
RIGHT, WRONG = of_bank(BANK.right[0]), of_bank(BANK.wrong[0])
STUDENTS = (
    {f"right-{n}": Student({NOON: of_bank(variant)}) for n, variant in enumerate(spread(BANK.right, 3))}
    | {f"wrong-{n}": Student({NOON: of_bank(variant)}) for n, variant in enumerate(spread(BANK.wrong, 4))}
    | {
        name: Student({NOON: malformed(kind)})
        for name, kind in {
            "renamed": "called homework_final_v2.ipynb", "packed": "an archive", "encoded": "UTF-16",
            "bare": "no metadata in any cell", "deleted": "an answer deleted",
            "cut": "cut off", "picture": "a picture of the answer", "empty": "empty", "page": "a web page",
            "pdf": "a PDF called a notebook", "merging": "an unfinished merge", "no-cell": "no cell",
            "other": "another assignment's notebook", "list": "a list",
        }.items()
    }
    | {
        "untouched": Student({NOON: Work(as_released, POINTS, attention="nothing was written in it")}, by_hand=False),
        "waiting": Student({NOON: RIGHT}, by_hand=False),
        "endless": Student({NOON: answered({LAST: ENDLESS}, loses=LAST_LOST)}),
        "dying": Student({NOON: answered({LAST: "import os\nos._exit(3)"}, loses=LAST_LOST, attention="own kernel")}),
        "late": Student({LATE: RIGHT}), "extended": Student({LATE: RIGHT}),
        "second-thought": Student({NOON: WRONG, LATER: RIGHT}),
        "better": Student({NOON: WRONG}, {AGAIN: RIGHT}),
        "worse": Student({NOON: RIGHT}, {AGAIN: malformed("cut off")}),
    }
)  # fmt: skip
ROSTER = [*STUDENTS, "absent"]
HAND = {name: n % 9 / 2 for n, name in enumerate(STUDENTS) if STUDENTS[name].by_hand}


def handing_in(course: Course, solved: dict, name: str, works: dict[str, Work]) -> None:
    """`nbgrader submit`, for each work at its time."""
    folder = course.folder / name / ASSIGNMENT
    for time, work in works.items():
        if work.write is not as_released:
            shutil.rmtree(folder)
            folder.mkdir()
        work.write(folder, json.loads(json.dumps(solved)))
        course.nbgrader(
            "submit", ASSIGNMENT, "--student", name, f"--ExchangeSubmit.timestamp_format={time} UTC",
            cwd=folder.parent, home=name,
        )  # fmt: skip


def marking_by_hand(course: Course) -> None:
    """Somebody marks the written answers, but for one student's."""
    with course.gradebook() as gradebook:
        for name, mark in HAND.items():
            found = gradebook.find_assignment(ASSIGNMENT).submissions
            if name in {each.student_id for each in found if each.needs_manual_grade}:
                grade = gradebook.find_grade("explain", ASSIGNMENT, ASSIGNMENT, name)
                grade.manual_score, grade.needs_manual_grade = mark, False
                gradebook.find_comment("explain", ASSIGNMENT, ASSIGNMENT, name).manual_comment = COMMENT
        gradebook.db.commit()


def grading(course: Course) -> Batch:
    made = Batch(course.root, ASSIGNMENT, say=lambda line: None)
    made.collect()
    made.grade()
    return made


@pytest.fixture(scope="module")
def cycle(generated, tmp_path_factory):
    """The whole cycle, run once; the tests below look at what it left. What was said, and how many were graded when."""
    course = Course(tmp_path_factory.mktemp("thirty"), copied_from=generated.root)
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write(patient_with_all_but(ENDLESS))
        config.write("c.Execute.iopub_timeout = 600\nc.LateDays.free = 1\nc.LateDays.share = 0.1\n")
        config.write(f"c.ExecuteOutside.warm = {{{ASSIGNMENT!r}: ['numpy', 'numpy.random']}}\n")
    people = "".join(f"{name},{name.title()},Of Thirty,{name}@x.de\n" for name in ROSTER)
    (course.root / "roster.csv").write_text(f"student_id,first_name,last_name,email\n{people}")
    dates = f"{ASSIGNMENT},{DUE} UTC,\n{ASSIGNMENT},{EXTENDED} UTC,extended\n"
    (course.root / "dates.csv").write_text(f"assignment,due,student_id\n{dates}")
    course.nbgrader("release_assignment", ASSIGNMENT)
    said = {}
    first, *others = (course.student_folder(name) for name in STUDENTS)
    as_first = {"cwd": first, "home": first.name}
    said["list"] = course.nbgrader("list", **as_first)
    course.nbgrader("fetch_assignment", ASSIGNMENT, **as_first)
    for folder in others:  # all would fetch the same
        shutil.copytree(first / ASSIGNMENT, folder / ASSIGNMENT)
    fetched = nbformat.read(first / ASSIGNMENT / handed_in.NAME, as_version=4)
    handed_in.STUBS.update({grade_id(c): c.source for c in fetched.cells if grade_id(c) in reference_answers(SOURCE)})
    solved = json.loads(nbformat.writes(filled_in(fetched, reference_answers(SOURCE) | {"explain": WRITTEN})))
    for name, student in STUDENTS.items():
        handing_in(course, solved, name, student.works)
    with pytest.MonkeyPatch.context() as patch:
        for key, value in course._environment("instructor").items():
            patch.setenv(key, value)
        graded = [grading(course).graded]
        marking_by_hand(course)
        for name, student in STUDENTS.items():
            handing_in(course, solved, name, student.again)
        second = grading(course)
        graded.append(second.graded)
        said["summary"] = second.report()
    course.nbgrader("export", "--to", "own.csv")
    course.nbgrader("release_feedback", ASSIGNMENT)
    as_student = {"cwd": course.folder / "wrong-0", "home": "wrong-0"}
    course.nbgrader("fetch_feedback", ASSIGNMENT, "--student", "wrong-0", **as_student)
    return course, said, graded, fetched


def earned(work: Work) -> dict[str, float]:
    """The points of every test."""
    return {name: of - work.loses.get(name, 0) for name, of in POINTS.items()}


def row(name: str) -> dict[str, str]:
    """What the table should have, but for the last column."""
    counts = STUDENTS[name].counts if name in STUDENTS else None
    made = {
        "assignment": ASSIGNMENT, "duedate": EXTENDED if name == "extended" else DUE, "timestamp": "",
        "student_id": name, "last_name": "Of Thirty", "first_name": name.title(), "email": f"{name}@x.de",
        "raw_score": "", "late_submission_penalty": "", "score": "", "max_score": str(float(ALL)),
        "status": "needs attention" if name in STUDENTS else "not handed in",
    }  # fmt: skip
    if counts is None:
        return made
    time, work = counts
    score, penalty = sum(earned(work).values()) + HAND.get(name, 0), 0.1 * ALL if name == "late" else 0.0
    stopped = work.attention or any(work.named for work in STUDENTS[name].again.values())
    waits = name in ("waiting", "better")  # other work: what it had by hand counts until somebody looks again
    status = "needs attention" if stopped else "waiting for a hand mark" if waits else "graded"
    return made | {
        "timestamp": time, "raw_score": str(score), "late_submission_penalty": str(penalty),
        "score": str(score - penalty), "status": f"resubmitted, {status}" if name == "better" else status,
    }  # fmt: skip


def why(name: str) -> list[str] | None:
    """Parts of what the last column should say, which should be empty where there are none; None: whatever it says."""
    if name not in STUDENTS:
        return []
    student = STUDENTS[name]
    works = [*student.works.values(), *student.again.values()]
    first, last = works[0], works[-1]
    before = sum(earned(first).values()) + HAND.get(name, 0)
    if name == "late":
        return ["2 days late, 1 of them free"]
    if name == "better":
        return [f"replaces the work of {NOON[:-3]} UTC, which had {before:g} points"]
    if name == "worse":
        return [last.named, "The marks are those of the work before"]
    return list(filter(None, [last.named, last.notes, last.attention])) or (None if last.notes is None else [])


def table(path: Path) -> dict[str, dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return {row["student_id"]: row for row in csv.DictReader(lines)}


def test_there_are_thirty():
    assert len(STUDENTS) == 30


def test_the_students_see_and_fetch_the_release(cycle):
    _, said, _, fetched = cycle
    assert ASSIGNMENT in said["list"]
    text = "\n".join(cell.source for cell in fetched.cells)
    assert "YOUR CODE HERE" in text and "YOUR ANSWER HERE" in text
    for secret in ("SOLUTION", "HIDDEN", "hidden_softmax", "most_negative", "Marking", "rng.normal"):
        assert secret not in text


def test_the_table_is_the_expected_one_cell_by_cell(cycle):
    course, *_ = cycle
    found = table(course.root / "grades.csv")
    said = {name: each.pop("why") for name, each in found.items()}
    assert found == {name: row(name) for name in sorted(ROSTER)}
    for name, text in said.items():
        parts = why(name)
        assert parts is None or all(part in text for part in parts) and bool(text) == bool(parts), (name, text)


def test_nbgraders_own_export_is_the_same(cycle):
    course, *_ = cycle
    assert (course.root / "own.csv").read_bytes() == (course.root / "grades.csv").read_bytes()


@pytest.mark.parametrize("name", [name for name, student in STUDENTS.items() if student.counts])
def test_each_has_the_points_that_its_work_has_alone(cycle, scorer, name):
    """Every test by itself; and the same as in a process of its own, but where the work would not let that end."""
    course, *_ = cycle
    in_batch = course.scores(name)
    expected = earned(STUDENTS[name].counts[1])
    assert {test: in_batch[test] for test in POINTS} == expected
    if name not in ("endless", "dying", "worse"):
        path = course.root / "normalised" / name / ASSIGNMENT / handed_in.NAME
        alone = scores(scorer.executed(nbformat.read(path, as_version=4)))
        assert {test: alone[test] for test in POINTS} == expected


@pytest.mark.parametrize("name", ["wrong-1", "packed", "dying"])
def test_the_whole_course_for_one_student_gives_the_same_row(cycle, generated, tmp_path, monkeypatch, name):
    course, *_ = cycle
    alone = Course(tmp_path / "alone", copied_from=generated.root)
    for table_ in ("roster.csv", "dates.csv"):
        shutil.copy(course.root / table_, alone.root)
    shutil.copytree(course.root / "submitted" / name, alone.root / "submitted" / name)
    for key, value in alone._environment("instructor").items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(Batch, "_feedback", lambda self, gradebook, jobs: None)
    grading(alone)
    marking_by_hand(alone)
    Batch(alone.root, ASSIGNMENT, say=lambda line: None).report()
    assert table(alone.root / "grades.csv")[name] == table(course.root / "grades.csv")[name]


def test_only_what_is_new_is_graded_again(cycle):
    _, _, graded, _ = cycle
    assert graded == [sum(bool(student.counts) for student in STUDENTS.values()), 1]


def test_the_summary_counts_and_names_who_needs_somebody(cycle):
    _, said, _, _ = cycle
    rows = {name: row(name) for name in ROSTER}
    for status in ("graded", "waiting for a hand mark", "needs attention", "not handed in"):
        assert f"{sum(each['status'].endswith(status) for each in rows.values())} {status}" in said["summary"]
    for name, each in rows.items():
        assert (f"  {name} (" in said["summary"]) == each["status"].endswith(("attention", "mark")), name


def test_all_get_feedback_and_what_was_lost_is_in_it(cycle):
    course, *_ = cycle
    marked = {name for name, student in STUDENTS.items() if student.counts}
    assert {path.name for path in (course.root / "feedback").iterdir()} == marked
    (page,) = (course.folder / "wrong-0").rglob("*.html")
    text = html.unescape(page.read_text())
    assert BANK.says[BANK.wrong[0].name][1] in text and COMMENT in text
    assert f"<strong>{float(row('wrong-0')['score']):g}</strong> of" in text
