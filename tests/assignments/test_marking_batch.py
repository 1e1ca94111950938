"""A batch with real kernels: well-behaved students among unlucky ones, twice, and the table of marks cell by cell."""

import csv
import zipfile

import nbformat
import pytest

from course_lib.grading.marking.__main__ import main
from course_lib.grading.marking.batch import Batch
from tests.support.course import ASSIGNMENT, Course, filled_in, maximum, patient_with_all_but, reference_answers

ANSWER = "1. The variance is $d_k$. 2. It saturates. 3. It sees the future. 4. Change a later token."
LAST = "multi-head-attention"
EXITS = "import os\nos._exit(3)"
IGNORES = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True:\n    time.sleep(0.1)"
KILLS = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)"
NOISY = """import sys, threading, time

def complain():
    for _ in range(400):
        sys.stderr.write("a thread of an earlier part\\n")
        time.sleep(0.01)

threading.Thread(target=complain, daemon=True).start()
print("x" * 3_000_000)

"""
ROSTER = "student_id,first_name,last_name,email,lms_id\nanna,Anna,Müller,anna@x.de,4711\nnobody,No,Body,,4713\n"
DATES = f"assignment,due,student_id\n{ASSIGNMENT},2026-11-03 18:00+01:00,\n{ASSIGNMENT},2026-11-05 17:00,noisy\n"


def moodle(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def table(course):
    with (course.root / "grades.csv").open(encoding="utf-8", newline="") as lines:
        return {row["student_id"]: row for row in csv.DictReader(lines)}


def pages(course):
    return {path: path.stat().st_mtime_ns for path in (course.root / "feedback").rglob("*.html")}


@pytest.fixture(scope="module")
def runs(generated, tmp_path_factory):
    """Three runs of one course; what each said, and its table."""
    course = Course(tmp_path_factory.mktemp("marking"), copied_from=generated.root)
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write(patient_with_all_but(IGNORES))
        config.write("c.Execute.iopub_timeout = 10\nc.LateDays.free = 1\nc.LateDays.share = 0.1\n")
        config.write("c.ExecuteOutside.sandbox = 'off'\n")  # so that a work can kill the process that grades it
    solved = filled_in(course.release, reference_answers(course.source) | {"explain": ANSWER})
    utf_16 = nbformat.writes(solved).encode("utf-16")
    course.submit("good", solved)
    course.submit("exits", filled_in(solved, {LAST: EXITS}))
    course.submit("ignores", filled_in(solved, {LAST: IGNORES}))
    course.submit("kills", filled_in(solved, {"softmax": KILLS}))
    course.submit("noisy", filled_in(solved, {"softmax": NOISY + reference_answers(course.source)["softmax"]}))
    for student, day in (("good", 3), ("noisy", 7)):
        stamp = f"2026-11-0{day} 16:59:00 UTC"
        (course.root / "submitted" / student / ASSIGNMENT / "timestamp.txt").write_text(stamp)
    (course.root / "roster.csv").write_text(ROSTER, encoding="utf-8")
    (course.root / "dates.csv").write_text(DATES, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in course._environment("instructor").items():
            patch.setenv(name, value)
        first = Batch(course.root, ASSIGNMENT, say=lambda line: None)
        first.collect(moodle(course.folder / "1.zip", {
            "Anna Müller_4711_assignsubmission_file_/hw (1).ipynb": utf_16,
            "Zoe_4712_assignsubmission_file_/hw.ipynb": b"",
        }))  # fmt: skip
        first.grade()
        said = [first.report()]
        tables, feedback = [table(course)], [pages(course)]

        with course.gradebook() as gradebook:  # a person marks the answer of one
            grade = gradebook.find_grade("explain", ASSIGNMENT, ASSIGNMENT, "good")
            grade.manual_score, grade.needs_manual_grade = 3.5, False
            gradebook.db.commit()
        again = Batch(course.root, ASSIGNMENT, say=lambda line: None)
        again.grade()
        said.append(again.report())
        tables.append(table(course))
        feedback.append(pages(course))

        last = Batch(course.root, ASSIGNMENT, say=lambda line: None)
        wrong = filled_in(solved, {"softmax": "def softmax(x):\n    return x"})
        last.collect(moodle(course.folder / "2.zip", {
            "Anna Müller_4711_assignsubmission_file/hw.ipynb": nbformat.writes(wrong).encode(),
            "Zoe_4712_assignsubmission_file/hw.ipynb": utf_16,
        }))  # fmt: skip
        (course.root / "submitted" / "good" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").write_bytes(b"{")
        last.grade()
        said.append(last.report())
        tables.append(table(course))
    return course, said, tables, feedback, [first.graded, again.graded, last.graded]


def shown(row):
    return row["score"], row["late_submission_penalty"], row["status"]


def test_everybody_has_the_right_mark_or_a_name(runs):
    course, _, (rows, *_), *_ = runs
    assert {student: shown(row) for student, row in rows.items()} == {
        "4712": ("", "", "needs attention"),
        "anna": ("26.0", "0.0", "waiting for a hand mark"),
        "exits": ("22.0", "0.0", "needs attention"),
        "good": ("26.0", "0.0", "waiting for a hand mark"),
        "ignores": ("22.0", "0.0", "needs attention"),
        "kills": ("", "", "needs attention"),
        "noisy": ("23.0", "3.0", "waiting for a hand mark"),
        "nobody": ("", "", "not handed in"),
    }
    assert rows["anna"]["last_name"] == "Müller" and "utf-16" in rows["anna"]["why"]
    assert "the file is empty" in rows["4712"]["why"]
    assert "ended its own kernel in cell 37" in rows["exits"]["why"]
    assert "could not be interrupted" in rows["ignores"]["why"]
    assert "was ended by SIGKILL" in rows["kills"]["why"]
    assert rows["noisy"]["why"] == "2 days late, 1 of them free"
    assert {row["duedate"] for row in rows.values()} == {"2026-11-03 17:00:00", "2026-11-05 17:00:00"}
    assert rows["good"]["timestamp"] == "2026-11-03 16:59:00"


def test_the_well_behaved_have_the_marks_that_they_have_alone(runs):
    course, *_ = runs
    points = maximum(course.source)
    for student in ("good", "noisy", "4712"):
        assert {name: course.scores(student)[name] for name in points} == points, student


def test_what_a_submission_prints_does_not_fill_the_disk(runs):
    course, *_ = runs
    assert (course.root / "autograded" / "noisy" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").stat().st_size < 2_000_000


def test_the_summary_names_every_failure_and_what_to_do(runs):
    _, (said, *_), *_ = runs
    assert "6 graded now. attention-from-scratch: 3 waiting for a hand mark, 4 needs attention, 1 not handed in" in said
    for name in ("4712 (no score)", "exits (22 of 30)", "ignores (22 of 30)", "kills (no score)", "Formgrader"):
        assert name in said


def test_what_did_not_change_is_neither_graded_nor_given_feedback_again(runs):
    _, _, (_, rows, _), (first, second), graded = runs
    assert graded[:2] == [6, 1]  # the killed one is tried again
    assert shown(rows["good"]) == ("29.5", "0.0", "graded")
    changed = {path.parts[-3] for path in second if second[path] != first.get(path)}
    assert changed == {"good"}


def test_a_resubmission_replaces_what_it_should_and_says_so(runs):
    course, said, (*_, rows), _, graded = runs
    assert shown(rows["anna"]) == ("23.0", "0.0", "resubmitted, waiting for a hand mark")
    assert "replaces an earlier work, which had 26 points" in rows["anna"]["why"]
    assert shown(rows["4712"]) == ("26.0", "0.0", "waiting for a hand mark")  # nothing was graded before
    assert shown(rows["good"]) == ("29.5", "0.0", "needs attention")
    assert "cut off" in rows["good"]["why"] and "marks are those of the work before" in rows["good"]["why"]
    assert "Resubmitted (1), the later work counts: anna" in said[2]
    kept = course.root / "replaced" / "anna" / ASSIGNMENT / "1" / "hw (1).ipynb"
    assert kept.read_bytes().startswith(b"\xff\xfe")


def test_nbgraders_own_export_has_the_status_too(runs):
    course, *_ = runs
    course.nbgrader("export", "--to", "own.csv")
    assert (course.root / "own.csv").read_bytes() == (course.root / "grades.csv").read_bytes()


def test_what_is_wrong_with_the_course_is_said_at_once(runs, monkeypatch, capsys):
    course, *_ = runs
    monkeypatch.chdir(course.root)
    assert main(["unknown"]) == 2
    assert "unknown is not in the gradebook: run nbgrader generate_assignment first" in capsys.readouterr().err
    (course.root / "roster.csv").write_text("name\nx\n")
    assert main([ASSIGNMENT]) == 2
    assert "lacks the column student_id" in capsys.readouterr().err
