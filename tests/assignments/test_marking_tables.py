"""What comes in from Moodle, Canvas and the exchange, what goes out to them, and the tables of dates."""

import codecs
import contextlib
import csv
import errno
import io
import json
import os
import shutil
import zipfile
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest
from nbgrader.api import MissingEntry

from course_lib.grading.marking import accounts, incoming, record
from course_lib.grading.marking.dates import LateDays, read_roster, rows, write_dates
from course_lib.grading.marking.incoming import Arrived, from_archive, from_exchange
from course_lib.grading.marking.laying import CAME, finish, lay
from course_lib.grading.marking.lms import fill
from course_lib.grading.marking.moments import moment
from course_lib.grading.marking.normalise import handed_in_at
from course_lib.grading.marking.record import Entry
from course_lib.grading.marking.report import COLUMNS, final_marks, summary, table, write_table
from tests.support.archives import archive
from tests.support.folders import refuse

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
EARLY, LATE, FUTURE = datetime(2020, 11, 3, 17), datetime(2020, 11, 3, 18), datetime(2190, 1, 1)


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def put(root, content, time, came, data=None):
    """Lay anna's notebook, which is a number; `data` beside it can be read or not."""
    files = {PurePosixPath("hw.ipynb"): str(content).encode()} | ({PurePosixPath("data.csv"): b"1,2"} if data else {})
    lacks = ("'data.csv' cannot be read",) if data is False else ()
    return lay(Arrived("anna", "x", files, time, lacks), root, "hw", came)


def contents(root, where="submitted"):
    """Of all of anna's notebooks there."""
    return [path.read_text() for path in sorted((root / where / "anna" / "hw").rglob("hw.ipynb"))]


def test_moodles_worksheet_gets_the_final_marks_alone(tmp_path):
    text, filled, lacking = fill(written(tmp_path / "m.csv", MOODLE), "moodle", "hw", MARKS, 30.0, NUMBERS)
    first, second = csv.DictReader(io.StringIO(text))
    assert (first["Identifier"], first["Grade"]) == ("Participant 4711", "27.5")
    assert (second["Grade"], second["Feedback comments"]) == ("12.00", "Well, done")  # as it was
    assert filled == 1 and lacking == ["gone"]


def test_a_login_is_not_taken_for_the_id_of_somebody_with_another_number(tmp_path):
    table = written(tmp_path / "c.csv", CANVAS)
    for numbers in ({"4713": "anna"}, {"4711": "gone", "4713": "anna"}):  # this anna is another one
        text, filled, lacking = fill(table, "canvas", "attention-from-scratch", {"anna": 27.5}, 30.0, numbers)
        assert filled == 0 and lacking == ["anna"] and "27.5" not in text


def test_a_blank_line_in_a_table_stops_nothing(tmp_path):
    for system, text in (("canvas", CANVAS), ("moodle", MOODLE)):
        blank = written(tmp_path / f"{system}.csv", text + "\n\n")
        assert fill(blank, system, "attention-from-scratch", MARKS, 30, NUMBERS)[1] == 1


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
    assert len(problems) == 1 and "readme.txt" in problems[0]
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


def test_no_name_in_an_archive_leads_out_of_the_students_folder(tmp_path):
    path = archive(
        tmp_path / "all.zip", "../../x_1_assignsubmission_file_/../../../hw.ipynb", "x_2_3_..", 'x_4_5_a:b"?.ipynb'
    )
    arrived, _ = from_archive(path, {})
    arrived = list(arrived)
    files = {str(file) for each in arrived for file in each.files}
    assert files == {"hw.ipynb", "unnamed", "a_b__.ipynb"}
    for each in arrived:
        lay(each, tmp_path / "course", "hw", [])
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
    came = []
    said = [put(tmp_path, content, None, came) for content in (1, 1, 2, 3)]
    assert said == ["new", "same", "again", "again"]
    assert contents(tmp_path, "replaced") == ["1", "2"]
    said = [put(tmp_path, content, time, came) for content, time in ((4, FUTURE), (5, EARLY), (4, FUTURE))]
    assert said == ["again", "stays", "same"]
    assert contents(tmp_path) == ["4"]
    assert handed_in_at(tmp_path / "submitted" / "anna" / "hw", []) == FUTURE
    assert put(tmp_path, 4, FUTURE + timedelta(days=1), came) == "same"  # the same work once more makes nobody late
    assert handed_in_at(tmp_path / "submitted" / "anna" / "hw", []) == FUTURE


@pytest.mark.parametrize("steps, said, counts, aside", [
    ([(1, EARLY), (2, None)], ["new", "undecided"], "1", ["2"]),  # an archive has no times
    ([(1, EARLY), (2, None), (1, EARLY), (2, None)], ["new", "undecided", "same", "stays"], "1", ["2"]),
    ([(1, EARLY), (2, None), (3, LATE)], ["new", "undecided", "again"], "3", ["2"]),
    ([(1, None), (2, EARLY)], ["new", "undecided"], "1", ["2"]),  # handed in before the archive was laid
    ([(1, None), (2, FUTURE)], ["new", "again"], "2", []),
    ([(1, None), (2, None), (1, None)], ["new", "again", "before"], "2", []),  # last week's archive
    ([(1, EARLY), (2, LATE), (1, FUTURE)], ["new", "again", "again"], "1", []),  # back to the first version
    ([(1, EARLY), (2, EARLY), (2, EARLY)], ["new", "again", "same"], "2", []),  # half of it was there
    ([(1, EARLY), (2, EARLY), (1, EARLY)], ["new", "again", "stays"], "2", []),
])  # fmt: skip
def test_nothing_replaces_later_work_whichever_way_it_comes(tmp_path, steps, said, counts, aside):
    came = []
    assert [put(tmp_path, content, time, came) for content, time in steps] == said
    assert contents(tmp_path) == [counts] and contents(tmp_path, "undecided") == aside


def test_what_an_instructor_mended_stays_when_the_archive_comes_again(tmp_path):
    came = []
    put(tmp_path, 1, None, came)
    (tmp_path / "submitted" / "anna" / "hw" / "hw.ipynb").write_text("mended")
    assert put(tmp_path, 1, None, came) == "stays" and contents(tmp_path) == ["mended"]
    assert put(tmp_path, 2, None, came) == "undecided" and contents(tmp_path) == ["mended"]


def test_what_an_instructor_mended_is_not_replaced_by_what_was_half_there(tmp_path):
    came = []
    put(tmp_path, 1, EARLY, came)
    (tmp_path / "submitted" / "anna" / "hw" / "hw.ipynb").write_text("mended")
    assert [put(tmp_path, content, EARLY, came) for content in (1, 2)] == ["stays", "undecided"]
    assert contents(tmp_path) == ["mended"]


@pytest.mark.parametrize("way", ["mailed", "copied", "moved back", "undecided"])
def test_what_a_person_put_there_stays_when_work_comes_again_that_came_before(tmp_path, way):
    """However old the folder's time is; later work that is new takes its place."""
    came, place = [], tmp_path / "submitted" / "anna" / "hw"
    for content, time in ((1, EARLY), (2, LATE)):
        put(tmp_path, content, time, came)
    if way == "copied":  # its files alone, as `cp replaced/anna/hw/1/* submitted/anna/hw` does
        for name in ("hw.ipynb", "timestamp.txt"):
            shutil.copy(tmp_path / "replaced" / "anna" / "hw" / "1" / name, place)
    else:
        if way == "undecided":
            assert put(tmp_path, 1.5, None, came) == "undecided"
        shutil.rmtree(place)
        if way == "mailed":
            written(place.with_name("mail"), "mailed")
            place.mkdir()
            place.with_name("mail").rename(place / "hw.ipynb")
        else:
            shutil.move(tmp_path / ("undecided" if way == "undecided" else "replaced") / "anna" / "hw" / "1", place)
    os.utime(place, (0, 0))
    there = contents(tmp_path)
    assert there != ["2"] and put(tmp_path, 2, LATE, came) == "stays" and contents(tmp_path) == there
    assert put(tmp_path, 3, FUTURE, came) == "again" and contents(tmp_path) == ["3"]


def test_where_a_person_put_work_without_a_time_new_work_is_undecided_unless_it_is_later(tmp_path):
    place = tmp_path / "submitted" / "anna" / "hw"
    place.mkdir(parents=True)
    written(place / "hw.ipynb", "mailed")
    came = []
    said = [put(tmp_path, *how, came) for how in ((1, EARLY), (1, EARLY), (2, FUTURE))]
    assert said == ["undecided", "stays", "again"]


@pytest.mark.parametrize("time", [EARLY, None], ids=["exchange", "archive"])
@pytest.mark.parametrize("between", ["later work", "a mend"])
def test_what_comes_in_part_is_not_taken_for_work_that_came_before(tmp_path, between, time):
    """Though what of it can be read is the same."""
    came = []
    put(tmp_path, 1, time, came)
    if between == "a mend":
        (tmp_path / "submitted" / "anna" / "hw" / "hw.ipynb").write_text("mended")
    else:
        put(tmp_path, 2, time, came)
    assert put(tmp_path, 1, time and LATE, came, data=False) == "in part"


@pytest.mark.parametrize("time", [EARLY, None], ids=["exchange", "archive"])
def test_what_came_in_part_takes_nobodys_place(tmp_path, time):
    """And is no work that came before: the whole one is that."""
    came = []
    said = [put(tmp_path, 1, time, came, data) for data in (True, False, True)]
    assert said == ["new", "in part", "same"] and len(came) == 1
    assert (tmp_path / "submitted" / "anna" / "hw" / "data.csv").is_file()
    said = [put(tmp_path, 2, time and LATE, came, data) for data in (False, True)]
    assert said == ["in part", "again"] and contents(tmp_path, "replaced") == ["1"]
    assert not (tmp_path / "undecided").exists()


@pytest.mark.parametrize("time", [EARLY, None], ids=["exchange", "archive"])
def test_what_came_in_part_makes_room_for_the_whole(tmp_path, time):
    """Also where that came before, and a person removed it."""
    came = []
    assert [put(tmp_path, 1, time, came, data) for data in (False, False, True)] == ["new", "same", "again"]
    shutil.rmtree(tmp_path / "submitted")
    assert [put(tmp_path, 1, time, came, data) for data in (False, True)] == ["new", "again"]
    assert len(came) == 1 and (tmp_path / "submitted" / "anna" / "hw" / "data.csv").is_file()


def test_of_earlier_work_that_came_in_part_nothing_is_said(tmp_path):
    came = []
    assert [put(tmp_path, 2, LATE, came), put(tmp_path, 1, EARLY, came, data=False)] == ["new", "stays"]


def test_a_run_that_is_killed_before_its_record_is_saved_forgets_no_work(tmp_path):
    came = []
    put(tmp_path, 1, None, came)
    assert put(tmp_path, 2, None, list(came)) == "again" and len(came) == 1
    assert [put(tmp_path, content, None, came) for content in (3, 2)] == ["again", "before"]
    assert contents(tmp_path) == ["3"] and not (tmp_path / "undecided").exists()


def test_what_cannot_be_written_leaves_what_was_there(tmp_path, monkeypatch):
    came = []
    put(tmp_path, 1, None, came)

    def full(path, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(Path, "write_bytes", full)
        put(tmp_path, 2, None, came)
    assert contents(tmp_path) == ["1"] and not (tmp_path / "replaced").exists()
    assert [path.name for path in (tmp_path / "submitted" / "anna").iterdir()] == ["hw"]


@pytest.mark.parametrize(("killed_at", "counts", "told"), [
    (1, ["1"], "was not laid; the exchange brings it again"), (2, ["1"], "was not laid; the exchange brings it again"),
    (3, ["2"], "what had come is laid"), (4, ["2"], "what had come is laid"), (5, ["2"], None),
])  # fmt: skip
def test_a_run_that_is_killed_while_it_lays_loses_no_work(tmp_path, monkeypatch, killed_at, counts, told):
    """Killed before each of the four renamings, and after all of them."""
    came = []
    put(tmp_path, 1, None, came)
    moved = []

    def until(real):
        def move(source, target):
            moved.append(source)
            if len(moved) == killed_at:
                raise SystemExit
            real(source, target)

        return move

    with monkeypatch.context() as patch, contextlib.suppress(SystemExit):
        for name in ("replace", "rename"):
            patch.setattr(os, name, until(getattr(os, name)))
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)  # nothing runs after a kill
        put(tmp_path, 2, None, list(came))
    said = finish(tmp_path, "hw")
    assert contents(tmp_path) == counts and contents(tmp_path, "replaced") == ["1"] * (killed_at > 2)
    assert [told in each and each.startswith("anna: a run was interrupted") for each in said] == [True] * bool(told)
    assert [path.name for path in (tmp_path / "submitted" / "anna").iterdir()] == ["hw"]
    assert put(tmp_path, 2, None, came) in ("again", "same") and contents(tmp_path) == ["2"]
    assert finish(tmp_path, "hw") == []


def test_half_a_work_is_not_laid(tmp_path):
    half = tmp_path / "submitted" / "anna" / ".hw.arriving"
    half.mkdir(parents=True)
    (half / "hw.ipynb").write_text("ha")
    (said,) = finish(tmp_path, "hw")
    assert said.startswith("anna: a run was interrupted here; what came was not laid; ")
    assert said.endswith("; the exchange brings it again, and an archive has to be given again")
    assert put(tmp_path, 1, None, []) == "new" and contents(tmp_path) == ["1"]


def test_odd_names_of_files_find_a_place(tmp_path):
    path = archive(
        tmp_path / "all.zip", *(f"A_1_assignsubmission_file_/{name}" for name in (
            "é" * 150 + ".ipynb", "a", "a/b.csv", "x:y.csv", "x?y.csv", "two\nlines.ipynb", "c/d", "c/c", "d/d", "d",
        )),
    )  # fmt: skip
    ((anna,), problems) = (list(each) for each in from_archive(path, {}))
    assert lay(anna, tmp_path, "hw", []) == "new" and not problems
    folder = tmp_path / "submitted" / "1" / "hw"
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()) == [
        CAME, "a", "a_2/b.csv", "c/c", "c/d", "d/d", "d_2", "two_lines.ipynb", "x_y.csv", "x_y_2.csv",
        "é" * 57 + ".ipynb",
    ]  # fmt: skip


def test_an_archive_is_opened_once_and_no_file_looks_at_all_others(tmp_path, monkeypatch):
    number, opened, looked = 200, [], []

    class Opened(zipfile.ZipFile):
        def __init__(self, *arguments):
            opened.append(self)
            super().__init__(*arguments)

    class Looked(PurePosixPath):
        @property
        def parents(self):
            looked.append(self)
            return super().parents

    path = archive(tmp_path / "all.zip", *(f"A_1_assignsubmission_file_/d/{name}.csv" for name in range(number)))
    monkeypatch.setattr(incoming, "PurePosixPath", Looked)
    monkeypatch.setattr(zipfile, "ZipFile", Opened)
    ((anna,), _) = (list(each) for each in from_archive(path, {}))
    assert len(anna.files) == number and len(opened) == 1 and len(looked) == number
    assert opened[0].fp is not None  # as long as this test has it
    opened.pop().close()


def test_a_damaged_file_in_an_archive_stops_nobody(tmp_path):
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("A_1_assignsubmission_file_/hw.ipynb", b"abc" * 1000)
        made.writestr("B_2_assignsubmission_file_/hw.ipynb", b"xyz" * 1000)
    bytes_ = bytearray(path.read_bytes())
    start = bytes_.index(b"hw.ipynb") + len("hw.ipynb")
    bytes_[start : start + 10] = b"\xff" * 10
    path.write_bytes(bytes_)
    arrived, problems = (list(each) for each in from_archive(path, {}))
    assert {each.student: len(each.files) for each in arrived} == {"1": 0, "2": 1} and not problems
    (why,) = arrived[0].lacks
    assert "'A_1_assignsubmission_file_/hw.ipynb' cannot be read" in why and not arrived[1].lacks


def test_a_file_that_cannot_be_read_is_named_with_its_student(tmp_path, monkeypatch):
    """And a folder; a stamp that cannot be read stops nobody."""
    for student in ("anna", "zoe"):
        folder = tmp_path / f"{student}+hw+2026-11-03 17:00:00 UTC"
        (folder / "locked").mkdir(parents=True)
        for name in ("hw.ipynb", "data.csv", "timestamp.txt", "locked/x.csv"):
            (folder / name).write_text("2026-11-03 17:00:00 UTC")

    def denied(real):
        def opened(path, *arguments, **more):
            if is_refused(Path(path)):
                raise PermissionError(errno.EACCES, "Permission denied")
            return real(path, *arguments, **more)

        return opened

    def is_refused(path):
        return "anna" in str(path) and path.name in ("hw.ipynb", "timestamp.txt", "locked")

    monkeypatch.setattr(accounts, "owner_of", lambda folder: None)
    monkeypatch.setattr(os, "open", denied(os.open))
    refuse(monkeypatch, is_refused)
    arrived, problems = (list(each) for each in from_exchange(tmp_path, "hw"))
    assert problems == [] and {each.student: [*map(str, each.files)] for each in arrived} == {
        "anna": ["data.csv"], "zoe": ["hw.ipynb", "data.csv", "timestamp.txt", "locked/x.csv"],
    }  # fmt: skip
    said = {each.student: each.lacks for each in arrived}
    assert said["zoe"] == () and said["anna"] == tuple(
        f"'{name}' cannot be read: Permission denied" for name in ("hw.ipynb", "timestamp.txt", "locked")
    )


def test_what_is_no_text_does_not_keep_the_table_from_being_written(tmp_path):
    write_table([dict.fromkeys(COLUMNS, "x\udcfcy")], tmp_path / "grades.csv")
    assert "x?y" in (tmp_path / "grades.csv").read_text(encoding="utf-8")


def test_a_number_that_could_be_anothers_goes_to_nobody(tmp_path):
    path = archive(tmp_path / "all.zip", "A_11_assignsubmission_file_/hw.ipynb", "B_7_assignsubmission_file_/hw.ipynb")
    arrived, problems = from_archive(path, {"7": "11", "8": "x"})  # the student called 11 has the number 7
    assert {each.student: each.origin for each in arrived} == {"11": "Moodle: B"}
    assert "number 11 is nobody's lms_id" in problems[0]


def test_a_file_called_like_one_of_moodles_stays_its_owners(tmp_path):
    path = archive(tmp_path / "all.zip", "anna_99_881_Zoe_4711_assignsubmission_file_hw.ipynb")
    arrived, _ = from_archive(path, {})
    assert {each.student: each.origin for each in arrived} == {"99": "Canvas: anna"}


@pytest.mark.parametrize("text, time", [
    ("2026-12-01 18:00+01:00", datetime(2026, 12, 1, 17)), ("2026-12-01T18:00:30Z", datetime(2026, 12, 1, 18, 0, 30)),
    ("01.12.2026 18:00", datetime(2026, 12, 1, 18)), ("1. 12. 2026, 18.00 Europe/Berlin", datetime(2026, 12, 1, 17)),
    ("2026-11-03 17:00:00.12 UTC", datetime(2026, 11, 3, 17)), ("2026-12-01", datetime(2026, 12, 1)),
    ("2026-07-01 18:00 Europe/Berlin", datetime(2026, 7, 1, 16)), ("12/01/2026", None), ("1-12-26", None),
    ("31.02.2026", None), ("0001-01-01", None),
    ("2026-12-01 18:00 Nowhere/Land", None), ("2026-12-01 18:00 Europe", None), ("yesterday", None), ("", None),
    ("2026-11-01 18:00:00.1 +08", datetime(2026, 11, 1, 10)), ("2026-11-01 18:00:00 -03", datetime(2026, 11, 1, 21)),
    ("2026-12-01 18:00-19", None), ("2026-12-01-03", None),
    ("2026-12-01 25:00", None), ("13.13.2026", None),
])  # fmt: skip
def test_a_date_means_one_day_or_none(text, time):
    assert moment(text) == time


def test_a_day_without_an_hour_ends_at_midnight():
    assert moment("01.12.2026", end_of_day=True) == datetime(2026, 12, 1, 23, 59, 59)
    assert moment("01.12.2026 18:00", end_of_day=True) == datetime(2026, 12, 1, 18)


def test_the_exchange_gives_the_newest_of_each_and_stops_for_nobody(tmp_path):
    for name in (
        "anna+hw+2026-11-03 17:00:00 UTC+aa", "anna+hw+2026-11-03 18:00:00 UTC+bb",
        "anna+other+2026-11-04 18:00:00 UTC+cc", "zoe+hw+yesterday+dd", "*+hw+2026-11-03 18:00:00 UTC+ee",
        "anna+hw+2126-11-03 17:00:00 UTC+ff",  # a clock that is wrong
    ):  # fmt: skip
        (tmp_path / name).mkdir()
        (tmp_path / name / "hw.ipynb").write_text(name)
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / "zoe+hw+yesterday+dd" / "secret").symlink_to("/etc/hostname")
    (tmp_path / "max+hw+2026-11-03 18:00:00 UTC").symlink_to("/")
    arrived, problems = (list(each) for each in from_exchange(tmp_path, "hw"))
    texts = {each.student: {str(path): text.decode()[-2:] for path, text in each.files.items()} for each in arrived}
    assert texts == {"anna": {"hw.ipynb": "bb"}, "zoe": {"hw.ipynb": "dd"}}
    assert {each.student: each.time for each in arrived}["anna"] == datetime(2026, 11, 3, 18)
    said = " ".join(problems)
    assert said.count("its time cannot be right") == 2
    assert "no student can have this name" in said
    assert [len(each.left) for each in arrived] == [0, 1]


@pytest.mark.parametrize("stamped", [True, False], ids=["with a stamp", "by its name"])
def test_the_later_of_two_in_one_second_counts(tmp_path, stamped):
    for second in ("59.100000", "59.900000"):
        folder = tmp_path / f"anna+hw+2026-11-03 17:00:{second} UTC+secret"
        folder.mkdir()
        (folder / "hw.ipynb").write_text(second)
        if stamped:
            (folder / "timestamp.txt").write_text(f"2026-11-03 17:00:{second} UTC")
    ((anna,), problems) = (list(each) for each in from_exchange(tmp_path, "hw"))
    assert anna.files[PurePosixPath("hw.ipynb")] == b"59.900000"


def test_an_exchange_that_is_not_there_is_said(tmp_path):
    arrived, problems = (list(each) for each in from_exchange(tmp_path / "nowhere", "hw"))
    place = tmp_path / "nowhere"
    why = f"Nothing was collected from the exchange, {place}: No such file or directory. (A course "
    why += 'without an exchange sets c.Exchange.root = "" in nbgrader_config.py; or NBGRADER_EXCHANGE to nothing, '
    why += "where that variable is read.)"
    assert arrived == [] and problems == [why]


def exchange(folder, monkeypatch, owner):
    """What is said of an exchange in which `owner` tells the account of a folder by its name, and whose work it is."""
    monkeypatch.setattr(accounts, "owner_of", lambda each: owner(each.name))
    arrived, problems = from_exchange(folder, "hw")
    return problems, {each.student: each.origin for each in arrived}


def own(name):
    return name.partition("+")[0]


def test_what_a_student_wrote_for_others_is_one_line(tmp_path, monkeypatch):
    students = ["anna", "zoe", *map(str, range(11, 23))]
    for student in students:
        for hour in (17, 18, 19):
            (tmp_path / f"{student}+hw+2026-11-03 {hour}:00:00 UTC").mkdir()
    problems, origins = exchange(tmp_path, monkeypatch, lambda name: "zoe" if name[0] == "2" else own(name))
    assert problems == ["9 folders in the exchange were written by zoe in the name of 20, 21, 22: ask whose work it is"]
    assert {student for student in origins if origins[student] != "exchange"} == {"20", "21", "22"}
    assert origins["20"] == "exchange, written by zoe"
    (said,), origins = exchange(tmp_path, monkeypatch, lambda name: "zoe" if "19:" in name else own(name))
    assert said.startswith("13 folders") and "20 and 3 more: ask" in said
    assert {origin for student, origin in origins.items() if student != "zoe"} == {"exchange, written by zoe"}
    assert origins["zoe"] == "exchange"
    problems, origins = exchange(tmp_path, monkeypatch, lambda name: "zoe" if "anna+hw+2026-11-03 17" in name else None)
    assert problems == ["A folder in the exchange was written by zoe in the name of anna: ask whose work it is"]
    assert set(origins.values()) == {"exchange"}, "what counts is anna's own"
    problems, origins = exchange(tmp_path, monkeypatch, lambda name: "max" if name[:4] == "anna" else own(name))
    assert origins["anna"] == "exchange, written by max" and "ask whose work it is" in problems[0], "he wrote for one"


@pytest.mark.parametrize("owner", [
    lambda name: "nobody",
    lambda name: f"user {abs(hash(own(name))) % 1000}",  # accounts that this machine does not know
    lambda name: "jovyan" if own(name) < "14" else own(name),
    lambda name: "prof" if "+" not in name or own(name) == "14" else own(name),  # the exchange is the instructor's
], ids=["a drive's", "of unknown numbers", "some in containers", "the instructor's"])  # fmt: skip
def test_an_account_that_is_no_students_accuses_nobody(tmp_path, monkeypatch, owner):
    for student in range(11, 15):
        (tmp_path / f"{student}+hw+2026-11-03 17:00:00 UTC").mkdir()
    (said,), origins = exchange(tmp_path, monkeypatch, owner)
    assert "by whom nobody can be told" in said and "ask whose" not in said
    assert origins == dict.fromkeys(["11", "12", "13", "14"], "exchange")


@pytest.mark.parametrize("stamped", [True, False], ids=["with a stamp", "by its name"])
def test_a_zone_without_minutes_is_no_delay(tmp_path, stamped):
    folder = tmp_path / "anna+hw+2026-11-01 18:00:00.1 +08+secret"
    folder.mkdir()
    if stamped:
        (folder / "timestamp.txt").write_text("2026-11-01 18:00:00.1 +08")
    arrived, _ = from_exchange(tmp_path, "hw")
    assert [each.time for each in arrived] == [datetime(2026, 11, 1, 10)]


@pytest.mark.parametrize(("make", "hour"), [
    (lambda path: path.write_bytes(codecs.BOM_UTF8 + b"2026-11-03 18:00:00 UTC" + b" " * 100 + b"more"), 18),
    (lambda path: None, 17), (os.mkfifo, 17), (lambda path: path.mkdir(), 17),
    (lambda path: path.symlink_to(path.parent.with_name("other.txt")), 17),
], ids=["with a mark and without end", "none", "a pipe", "a folder", "a link"])  # fmt: skip
def test_a_time_stamp_in_the_exchange_is_read_with_care(tmp_path, make, hour):
    """Where it says nothing, the time in the folder's name counts."""
    written(tmp_path / "other.txt", "2026-11-03 19:00:00 UTC")
    folder = tmp_path / "anna+hw+2026-11-03 17:00:00 UTC"
    folder.mkdir()
    make(folder / "timestamp.txt")
    arrived, _ = from_exchange(tmp_path, "hw")
    assert [each.time for each in arrived] == [datetime(2026, 11, 3, hour)]


def test_a_students_own_time_stamp_is_not_the_courses(tmp_path):
    """From Canvas, from Moodle with folders and without, zipped and unpacked; and what a system left is no problem."""
    path = archive(
        tmp_path / "all.zip", "annam_1_2_timestamp.txt", "annam_1_3_hw.ipynb", "zoe_LATE_2_4_hw.ipynb",
        "zoe_LATE_2_5_.DS_Store", "Max_3_assignsubmission_file_timestamp.txt", "Max_3_assignsubmission_file_hw.ipynb",
        *(f"Li_4_assignsubmission_file_/{name}" for name in (
            "timestamp.txt", "work\\timestamp.txt", "hw.ipynb", "work/__pycache__/a.pyc", ".DS_Store",
        )),
        ".DS_Store", "Thumbs.db", "unpacked/desktop.ini", "__MACOSX/annam_1_3_hw.ipynb",
    )  # fmt: skip
    shutil.unpack_archive(path, tmp_path / "all")
    written(tmp_path / "all" / "Li_4_assignsubmission_file_work\\timestamp.txt", "by a program that knows no folder")
    for given in (path, tmp_path / "all"):
        arrived, problems = (list(each) for each in from_archive(given, {}))
        assert not problems and {each.student: [*map(str, each.files)] for each in arrived} == dict.fromkeys(
            ["1", "2", "3", "4"], ["hw.ipynb"]
        )


def test_an_archive_with_a_students_time_stamp_is_replaced_by_the_next(tmp_path):
    came = []
    for number, said in ((3, "new"), (4, "again")):
        path = archive(tmp_path / "all.zip", f"anna_1_{number}_hw.ipynb")
        with zipfile.ZipFile(path, "a") as more:
            more.writestr("anna_1_2_timestamp.txt", "2020-11-03 17:00:00 UTC")
        (anna,), _ = from_archive(path, {"1": "anna"})
        assert lay(anna, tmp_path, "hw", came) == said
    notes = []
    assert handed_in_at(tmp_path / "submitted" / "anna" / "hw", notes) is None and notes == []


def test_the_same_work_with_another_secret_is_the_same(tmp_path):
    def submitted(time, secret):
        files = {PurePosixPath("hw.ipynb"): b"1", PurePosixPath("submission_secret.txt"): secret}
        return lay(Arrived("anna", "exchange", files, time), tmp_path, "hw", came)

    came = []
    assert [submitted(EARLY, b"a"), submitted(LATE, b"b")] == ["new", "same"]


def test_a_roster_is_read_or_refused(tmp_path):
    text = "\ufeffstudent_id;first_name;lms_id\nanna;Anna;4711\n;;\nzoe;;\n"
    assert list(read_roster(written(tmp_path / "r.csv", text))) == ["anna", "zoe"]
    for encoding in ("utf-8-sig", "utf-16", "cp1252"):
        (tmp_path / "r.csv").write_bytes(' student_id\tfirst_name\r\nanna\t"M\u00fcller\nA."\r\n'.encode(encoding))
        assert read_roster(tmp_path / "r.csv")["anna"]["first_name"] == "M\u00fcller\nA."
    for wrong in ("name\nanna\n", "student_id\nanna\nanna\n", "student_id\n../x\n"):
        with pytest.raises(ValueError, match="student_id"):
            read_roster(written(tmp_path / "r.csv", wrong))
    for wrong, why in (
        ("student_id,lms_id\na,1\nb,1\n", "a have the same lms_id"),
        ("student_id,lms_id\na,7\n7,\n", "is a student_id, and the lms_id of a"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=why):
            read_roster(written(tmp_path / "r.csv", wrong))
    assert list(read_roster(written(tmp_path / "r.csv", "student_id,lms_id\na,7\n7,8\n"))) == ["a", "7"]
    assert rows(tmp_path / "none.csv", "x") == [] and read_roster(tmp_path / "none.csv") == {}


@pytest.mark.parametrize("text, why", [
    ("assignment,due\nhw,soon\n", "line 2: 'soon' is no date"),
    ("assignment,due\nhw,12/01/2026\n", "meant in one way alone"),
    ("assignment,due,student_id\nhw,2026-11-03,\nhw,2026-11-02,anna\n", "one that ends before it is due"),
    ("assignment,due,student_id\nhw,2026-11-03,\nhw,2026-11-05,anna\nhw,2026-11-06,anna\n", "line 4: anna has two"),
    ("assignment,due,student_id\nhw,2026-11-03,anna\n", "needs one row with a due date"),
    ("assignment,due\nhw,2026-11-03\nhw,2026-11-04\n", "there are 2"),
])  # fmt: skip
def test_dates_that_cannot_be_meant_are_refused(tmp_path, text, why):
    with pytest.raises(ValueError, match=why):
        write_dates(None, written(tmp_path / "d.csv", text), "hw")


def test_no_cell_of_the_table_is_a_formula_and_none_is_a_zero_that_nobody_gave(tmp_path):
    row = dict.fromkeys(
        ("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email", "raw_score"), None
    ) | {"late_submission_penalty": None, "score": None, "max_score": 30.0, "status": "graded", "why": '=1+1, "x"'}
    write_table([row | {"student_id": "anna"}], tmp_path / "g.csv")
    (found,) = csv.DictReader((tmp_path / "g.csv").open())
    assert found["why"] == '\'=1+1, "x"' and found["score"] == "" and found["max_score"] == "30.0"


@pytest.mark.parametrize("text", ["=cmd|'/C calc'!A0", "\t=1", "\r\n+1", " @x", "-1"])
def test_no_text_of_a_students_is_a_formula(tmp_path, text):
    row = dict.fromkeys(COLUMNS) | {"student_id": "anna", "first_name": text}
    write_table([row], tmp_path / "g.csv")
    with (tmp_path / "g.csv").open(newline="") as lines:
        assert next(csv.DictReader(lines))["first_name"] == f"'{text}"


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
    text += "hw,04.11.2026,max\n"
    book = Book(hw=[submission(), submission("zoe"), submission("max")])
    assert write_dates(book, written(tmp_path / "d.csv", text + "hw,2026-12-01,Zoe\n"), "hw") == ["Zoe"]  # misspelt
    assert book.due == {"hw": datetime(2026, 11, 3, 17)}
    extensions = [each.extension for each in book.assignments[0].submissions]
    assert extensions == [None, timedelta(days=2), timedelta(days=1, hours=6, minutes=59, seconds=59)]


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
    said = summary(rows, ["the exchange is strange"], 3, Path("course"), Path("course", "returned"))
    assert "3 graded now. hw: 1 graded, 2 waiting for a hand mark, 2 needs attention, 1 not handed in." in said
    for words in ("gone (no score): It could not be graded", "old (20 of 30)", "later work counts: zoe", "strange"):
        assert words in said
    assert str(Path("course") / "grades.csv") in said
    assert f"Feedback: {Path('course', 'returned')}." in said


@pytest.mark.parametrize(("root", "place"), [("/x/assignments", "assignments"), ("/x/course", "/x/course")])
def test_where_formgrader_is_opened_is_the_folder_of_the_course(root, place):
    rows = table(Book(hw=[submission(waits=True)]), "hw", {})
    said = summary(rows, [], 1, Path(root), Path(root, "feedback"))
    assert f" In {place}: jupyter lab, Nbgrader, Formgrader; then run this again." in said
