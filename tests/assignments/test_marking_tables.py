"""What comes in from Moodle, Canvas and the exchange, what goes out to them, and the tables of dates."""

import csv
import io
import json
import zipfile
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest
from nbgrader.api import MissingEntry

from course_lib.grading.marking import record
from course_lib.grading.marking.dates import LateDays, read_roster, rows, write_dates
from course_lib.grading.marking.incoming import Arrived, from_archive, from_exchange, lay
from course_lib.grading.marking.lms import fill
from course_lib.grading.marking.normalise import handed_in_at
from course_lib.grading.marking.record import Entry
from course_lib.grading.marking.report import final_marks, summary, table, write_table

HEADER = (
    'Identifier,"Full name","Email address",Status,Grade,"Maximum Grade","Grade can be changed",'
    '"Last modified (submission)","Last modified (grade)","Feedback comments"'
)
MOODLE = f"""\ufeff{HEADER}
"Participant 4711","Anna Müller",anna@x.de,"Submitted for grading",,30.00,Yes,"Tuesday, 3 November 2026, 5:59 PM",-,
"Participant 4712",Zoe,,"Submitted for grading",12.00,30.00,Yes,-,-,"Well, done"
"""
CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,Attention from scratch (991),Week 2 (992),Final Score
    Points Possible,,,,,30.0,10.0,(read only)
"Müller, Anna",4711,S1,anna,A,,3,
"Zoe, Z",4712,S2,zoe,A,5,,
"Student, Test",99,,,A,,,
"""
MARKS = {"anna": 27.5, "zoe": None, "gone": 12.0}
NUMBERS = {"4711": "anna", "4712": "zoe"}


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def archive(path, *names):
    with zipfile.ZipFile(path, "w") as made:
        for name in names:
            made.writestr(name, f"of {name}")
    return path


def test_moodles_worksheet_gets_the_final_marks_alone(tmp_path):
    text, filled, lacking = fill(written(tmp_path / "m.csv", MOODLE), "moodle", "hw", MARKS, 30.0, NUMBERS)
    first, second = csv.DictReader(io.StringIO(text))
    assert (first["Identifier"], first["Grade"]) == ("Participant 4711", "27.5")
    assert (second["Grade"], second["Feedback comments"]) == ("12.00", "Well, done")  # as it was
    assert filled == 1 and lacking == ["gone"]


@pytest.mark.parametrize("numbers", [NUMBERS, {}], ids=["by number", "by login"])
def test_canvas_gradebook_gets_one_column(tmp_path, numbers):
    table = written(tmp_path / "c.csv", CANVAS)
    text, filled, _ = fill(table, "canvas", "attention-from-scratch", MARKS, 30.0, numbers)
    lines = list(csv.reader(io.StringIO(text)))
    assert [line[5] for line in lines] == ["Attention from scratch (991)", "30.0", "27.5", "5", ""]
    assert [line[6] for line in lines] == ["Week 2 (992)", "10.0", "3", "", ""]
    assert filled == 1


@pytest.mark.parametrize("system, table, assignment, most, why", [
    ("moodle", MOODLE, "hw", 26.0, "counts to 30.00 points, the assignment to 26"),
    ("canvas", CANVAS, "week 2", 30.0, "counts to 10.0 points"),
    ("canvas", CANVAS, "week 3", 30.0, "0 columns are called 'week 3'"),
    ("moodle", CANVAS, "hw", 30.0, "no column 'Identifier'"),
])  # fmt: skip
def test_a_table_that_does_not_fit_is_refused(tmp_path, system, table, assignment, most, why):
    with pytest.raises(ValueError, match=why):
        fill(written(tmp_path / "t.csv", table), system, assignment, MARKS, most, NUMBERS)


def test_the_names_of_both_systems_are_known(tmp_path):
    path = archive(
        tmp_path / "all.zip", "Anna Müller_4711_assignsubmission_file_/work/hw.ipynb",
        "Anna Müller_4711_assignsubmission_file_/data_1.csv", "Zoe Participant_4712_assignsubmission_file/hw.ipynb",
        "Max_4713_assignsubmission_file_hw 2.ipynb", "Max_4713_assignsubmission_onlinetext_/onlinetext.html",
        "müllermax_4714_881_hw_2-1.ipynb", "li_LATE_4715_882_hw.ipynb", "li_LATE_4715_883_data.csv",
        "anon_a1B2c_884_hw.ipynb", "Li_4716_text.html", "readme.txt", "__MACOSX/._x",
    )  # fmt: skip
    arrived, problems = from_archive(path, {"4711": "anna"})
    found = {each.student: (each.origin, sorted(map(str, each.files))) for each in arrived}
    assert found == {
        "anna": ("Moodle: Anna Müller", ["data_1.csv", "work/hw.ipynb"]),
        "4712": ("Moodle: Zoe Participant", ["hw.ipynb"]),
        "4713": ("Moodle: Max", ["hw 2.ipynb", "onlinetext.html"]),
        "4714": ("Canvas: müllermax", ["hw_2-1.ipynb"]),
        "4715": ("Canvas: li, LATE", ["data.csv", "hw.ipynb"]),
        "anon_a1B2c": ("Canvas: anonymous", ["hw.ipynb"]),
        "4716": ("Canvas: Li", ["text.html"]),
    }
    assert len(problems) == 1 and "readme.txt" in problems[0]


def test_no_name_in_an_archive_leads_out_of_the_students_folder(tmp_path):
    path = archive(
        tmp_path / "all.zip", "../../x_1_assignsubmission_file_/../../../hw.ipynb", "x_2_3_..", 'x_4_5_a:b"?.ipynb'
    )
    arrived, _ = from_archive(path, {})
    files = {str(file) for each in arrived for file in each.files}
    assert files == {"hw.ipynb", "unnamed", "a_b__.ipynb"}
    for each in arrived:
        lay(each, tmp_path / "course", "hw")
    outside = {file.relative_to(tmp_path).parts[0] for file in tmp_path.rglob("*") if file.is_file()}
    assert outside == {"all.zip", "course"}


@pytest.mark.parametrize("content, why", [(b"no zip", "cannot be opened"), (None, "no file with a name of Moodle's")])
def test_an_archive_that_is_none_is_refused(tmp_path, content, why):
    path = archive(tmp_path / "a.zip", "readme.txt")
    if content:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=why):
        from_archive(path, {})


def test_what_is_laid_again_replaces_and_is_kept(tmp_path):
    def put(content, time=None):
        return lay(Arrived("anna", "x", {PurePosixPath("hw.ipynb"): content}, time), tmp_path, "hw")

    assert [put(b"1"), put(b"1"), put(b"2"), put(b"3")] == ["new", "same", "again", "again"]
    kept = sorted((tmp_path / "replaced" / "anna" / "hw").rglob("hw.ipynb"))
    assert [path.read_bytes() for path in kept] == [b"1", b"2"]
    early, late = datetime(2026, 11, 3, 17), datetime(2026, 11, 3, 18)
    assert [put(b"4", late), put(b"5", early), put(b"4", late)] == ["again", "same", "same"]
    assert (tmp_path / "submitted" / "anna" / "hw" / "hw.ipynb").read_bytes() == b"4"
    assert handed_in_at(tmp_path / "submitted" / "anna" / "hw", []) == late


def test_the_exchange_gives_the_newest_of_each_and_stops_for_nobody(tmp_path):
    for name in (
        "anna+hw+2026-11-03 17:00:00 UTC+aa", "anna+hw+2026-11-03 18:00:00 UTC+bb",
        "anna+other+2026-11-04 18:00:00 UTC+cc", "zoe+hw+yesterday+dd", "*+hw+2026-11-03 18:00:00 UTC+ee",
    ):  # fmt: skip
        (tmp_path / name).mkdir()
        (tmp_path / name / "hw.ipynb").write_text(name)
    (tmp_path / "zoe+hw+yesterday+dd" / "secret").symlink_to("/etc/hostname")
    (tmp_path / "max+hw+2026-11-03 18:00:00 UTC").symlink_to("/")
    arrived, problems = from_exchange(tmp_path, "hw")
    texts = {each.student: {str(path): text.decode()[-2:] for path, text in each.files.items()} for each in arrived}
    assert texts == {"anna": {"hw.ipynb": "bb"}, "zoe": {"hw.ipynb": "dd"}}
    assert {each.student: each.time for each in arrived}["anna"] == datetime(2026, 11, 3, 18)
    said = " ".join(problems)
    assert "its time cannot be read" in said and "no student can have this name" in said and "no plain file" in said
    assert from_exchange(tmp_path / "nowhere", "hw") == ([], [])


def test_a_roster_is_read_or_refused(tmp_path):
    text = "\ufeffstudent_id;first_name;lms_id\nanna;Anna;4711\n;;\nzoe;;\n"
    assert list(read_roster(written(tmp_path / "r.csv", text))) == ["anna", "zoe"]
    for wrong in ("name\nanna\n", "student_id\nanna\nanna\n", "student_id\n../x\n"):
        with pytest.raises(ValueError, match="student_id"):
            read_roster(written(tmp_path / "r.csv", wrong))
    assert rows(tmp_path / "none.csv", "x") == [] and read_roster(tmp_path / "none.csv") == {}


@pytest.mark.parametrize("text, why", [
    ("assignment,due\nhw,soon\n", "line 2: 'soon' is no date"),
    ("assignment,due,student_id\nhw,2026-11-03,anna\n", "needs one row with a due date"),
    ("assignment,due\nhw,2026-11-03\nhw,2026-11-04\n", "there are 2"),
])  # fmt: skip
def test_dates_that_cannot_be_meant_are_refused(tmp_path, text, why):
    with pytest.raises(ValueError, match=why):
        write_dates(None, written(tmp_path / "d.csv", text), "hw")


def test_no_cell_of_the_table_is_a_formula_and_none_is_a_zero_that_nobody_gave(tmp_path):
    row = dict.fromkeys(
        ("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email", "raw_score"), None
    ) | {"late_submission_penalty": None, "score": None, "max_score": 30.0, "status": "graded", "why": "=1+1, \"x\""}
    write_table([row | {"student_id": "anna"}], tmp_path / "g.csv")
    (found,) = csv.DictReader((tmp_path / "g.csv").open())
    assert found["why"] == "'=1+1, \"x\"" and found["score"] == "" and found["max_score"] == "30.0"


def test_only_what_nobody_must_look_at_is_final():
    names = {"a": "graded", "b": "resubmitted, graded", "c": "waiting for a hand mark", "d": "needs attention"}
    rows = [{"student_id": name, "score": 7.0, "status": status} for name, status in names.items()]
    assert final_marks(rows) == {"a": 7.0, "b": 7.0, "c": None, "d": None}


def test_a_damaged_record_says_what_to_do(tmp_path):
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(ValueError, match="Remove it: everything is then graded once more"):
        record.load(tmp_path / "a.json")
    record.save(tmp_path / "a.json", {"anna": record.Entry(work="w", notes=["n"])})
    assert record.load(tmp_path / "a.json") == {"anna": record.Entry(work="w", notes=["n"])}
    assert json.loads((tmp_path / "a.json").read_text())["anna"]["work"] == "w"


def submission(student="anna", due=datetime(2026, 11, 3, 17), handed_in=None, score=20.0, waits=False):
    """As much of nbgrader's SubmittedAssignment as is asked for."""
    late = max(0.0, (handed_in - due).total_seconds()) if handed_in else 0.0
    notebook = SimpleNamespace(score=score, late_submission_penalty=None)
    return SimpleNamespace(
        student_id=student, total_seconds_late=late, max_score=30.0, notebooks=[notebook], extension=None,
        needs_manual_grade=waits, score=score, late_submission_penalty=None, duedate=due, timestamp=handed_in,
    )  # fmt: skip


class Book:
    """As much of nbgrader's Gradebook."""

    def __init__(self, **submissions):
        self.assignments = [
            SimpleNamespace(name=name, duedate=found[0].duedate if found else None, submissions=found, max_score=30.0)
            for name, found in submissions.items()
        ]
        names = sorted({each.student_id for found in submissions.values() for each in found} | {"nobody"})
        self.students = [SimpleNamespace(id=name, last_name=name.title()) for name in names]
        self.db = SimpleNamespace(commit=lambda: None)
        self.due = {}

    def find_assignment(self, name):
        return next(each for each in self.assignments if each.name == name)

    def assignment_submissions(self, name):
        return self.find_assignment(name).submissions

    def find_submission(self, name, student):
        for each in self.assignment_submissions(name):
            if each.student_id == student:
                return each
        raise MissingEntry

    def update_or_create_assignment(self, name, duedate):
        self.due[name] = duedate


def test_late_days_cost_what_the_course_says_in_the_order_of_the_dates():
    first, second = datetime(2026, 11, 3, 17), datetime(2026, 11, 10, 17)
    late = [
        submission(due=second, handed_in=datetime(2026, 11, 12, 9)),
        submission("zoe", second, handed_in=datetime(2026, 11, 30), score=4.0),
    ]
    book = Book(b=late, a=[submission(due=first, handed_in=datetime(2026, 11, 4, 9))], c=[])
    said = LateDays(free=2, share=0.1).apply(book)
    assert said == {
        ("a", "anna"): "1 day late, 1 of them free",
        ("b", "anna"): "2 days late, 1 of them free",
        ("b", "zoe"): "20 days late, 2 of them free",
    }
    penalties = {each.student_id: each.notebooks[0].late_submission_penalty for each in late}
    assert penalties == {"anna": 3.0, "zoe": 4.0}
    assert book.assignments[1].submissions[0].notebooks[0].late_submission_penalty is None


def test_dates_and_extensions_go_into_the_gradebook_in_utc(tmp_path):
    text = "assignment,due,student_id\nhw,2026-11-03 18:00+01:00,\nhw,2026-11-05 17:00,zoe\nother,2026-01-01,\n"
    book = Book(hw=[submission(), submission("zoe")])
    write_dates(book, written(tmp_path / "d.csv", text), "hw")
    assert book.due == {"hw": datetime(2026, 11, 3, 17)}
    assert [each.extension for each in book.assignments[0].submissions] == [None, timedelta(days=2)]


def test_every_row_has_a_status_and_no_score_that_nobody_gave():
    waiting = [submission("anna", waits=True), submission("old", waits=True)]
    book = Book(hw=[*waiting, submission("gone"), submission("zoe")])
    entries = {
        "anna": Entry(marked="w"), "gone": Entry(trouble="It could not be graded: empty."),
        "zoe": Entry(marked="w", replaces="replaces an earlier work", late="1 day late"),
        "unknown": Entry(trouble="no notebook"),
    }  # fmt: skip
    rows = table(book, "hw", entries)
    assert {row["student_id"]: (row["score"], row["status"]) for row in rows} == {
        "anna": (20.0, "waiting for a hand mark"), "gone": (None, "needs attention"), "nobody": (None, "not handed in"),
        "old": (20.0, "waiting for a hand mark"), "unknown": (None, "needs attention"),
        "zoe": (20.0, "resubmitted, graded"),
    }  # fmt: skip
    assert rows[-1]["why"] == "replaces an earlier work. 1 day late"
    said = summary(rows, ["the exchange is strange"], 3, Path("course"))
    assert "3 graded now. hw: 1 graded, 2 waiting for a hand mark, 2 needs attention, 1 not handed in." in said
    for words in ("gone (no score): It could not be graded", "old (20 of 30)", "later work counts: zoe", "strange"):
        assert words in said
    assert str(Path("course") / "grades.csv") in said
