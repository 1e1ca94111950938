"""What one student hands in, however odd, large or deep, costs nobody else, and what is left out of it is said."""

import contextlib
import errno
import os
import shutil
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from course_lib.grading.marking import accounts, files, incoming
from course_lib.grading.marking.collecting import take
from course_lib.grading.marking.incoming import from_archive, from_exchange
from course_lib.grading.marking.laying import lay
from course_lib.grading.marking.record import Entry
from course_lib.grading.marking.unread import in_folder
from tests.support.archives import archive
from tests.support.folders import refuse, when_opened

STAMP = "2026-11-03 17:00:00 UTC"


def submitted(exchange, student, stamp=STAMP, **contents):
    """A folder of the exchange; `__` in a name stands for /, and `_` for a point."""
    folder = exchange / f"{student}+hw+{stamp}+secret"
    for name, content in ({"hw_ipynb": "1"} | contents).items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


def arrived(exchange):
    """By student; nothing strange was said of the exchange."""
    found, problems = from_exchange(exchange, "hw")
    assert not [each for each in problems if "by whom nobody can be told" not in each]
    return {each.student: each for each in found}


def names(each):
    return [str(path) for path in each.files]


@contextlib.contextmanager
def deep(top, name, number):
    """So many folders in each other, with a file in the last; no call of Python's makes or removes these at once."""
    here = os.getcwd()
    os.chdir(top)
    for _ in range(number):
        os.mkdir(name)
        os.chdir(name)
    Path("x.csv").write_text("1")
    os.chdir(here)
    try:
        yield
    finally:
        os.chdir(top)
        for _ in range(number):
            os.chdir(name)
        os.remove("x.csv")
        for _ in range(number):
            os.chdir("..")
            os.rmdir(name)
        os.chdir(here)


@pytest.mark.parametrize(("name", "number", "left"), [
    ("a", 1200, "/a/a' lies in 49 folders; hand in what it holds in fewer"),
    ("b" * 200, 30, "/x.csv' has too long a path; hand it in in fewer folders"),  # longer than the system takes
], ids=["many folders", "long names"])  # fmt: skip
def test_folders_without_end_cost_their_student_alone(tmp_path, name, number, left):
    folder = submitted(tmp_path, "anna")
    submitted(tmp_path, "ben")
    with deep(folder, name, number):
        found = arrived(tmp_path)
    assert names(found["anna"]) == names(found["ben"]) == ["hw.ipynb"]
    (said,) = found["anna"].left
    assert said.endswith(left) and found["anna"].lacks == found["ben"].lacks == found["ben"].left == ()


def test_a_file_deep_in_an_archive_is_laid_higher(tmp_path):
    path = archive(tmp_path / "all.zip", f"A_1_assignsubmission_file_/{'a/' * 1200}hw.ipynb")
    ((anna,), problems) = (list(each) for each in from_archive(path, {}))
    assert names(anna) == ["a/" * (files.PARTS - 1) + "hw.ipynb"] and anna.left == () and problems == []


def test_a_folder_that_may_be_listed_but_not_entered_costs_its_files_alone(tmp_path, monkeypatch):
    """Its rights are r--, which bind everybody but root."""
    submitted(tmp_path, "anna", locked__x_csv="1")
    submitted(tmp_path, "ben", open__y_csv="1")

    class Entry:
        def __init__(self, entry):
            self.name, self.entry = entry.name, entry

        def stat(self, **how):
            if self.name == "x.csv":
                raise PermissionError(errno.EACCES, "Permission denied")
            return self.entry.stat(**how)

    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: contextlib.nullcontext(map(Entry, scandir(folder))))
    found = arrived(tmp_path)
    assert names(found["anna"]) == ["hw.ipynb"] and names(found["ben"]) == ["hw.ipynb", "open/y.csv"]
    assert found["anna"].lacks == ("'locked/x.csv' cannot be read: Permission denied",) and found["ben"].lacks == ()


@pytest.mark.parametrize(("error", "why"), [
    (FileNotFoundError(errno.ENOENT, "No such file"), "No such file"), (OverflowError("too large"), "too large"),
    (ValueError("year 36812 is out of range"), "year 36812 is out of range"),
])  # fmt: skip
def test_a_folder_that_cannot_be_looked_at_costs_its_student_alone(tmp_path, monkeypatch, error, why):
    """As it is gone since the exchange was listed, or has a time that no calendar has."""
    submitted(tmp_path, "anna")
    submitted(tmp_path, "ben")

    def owner(folder):
        if folder.name.startswith("anna"):
            raise error
        return "ben"

    monkeypatch.setattr(accounts, "owner_of", owner)
    found, (said,) = from_exchange(tmp_path, "hw")
    assert [each.student for each in found] == ["ben"]
    assert said == f"'anna+hw+{STAMP}+secret' in the exchange cannot be looked at and was left out: {why}"


def test_notebooks_and_data_have_room_before_what_is_large_or_lies_deeper(tmp_path, monkeypatch):
    """What had none is not unreadable: it would not come the next time either."""
    monkeypatch.setattr(incoming, "LARGEST", 100)
    pictures = {f"data__{number:02}_png": "x" * 10 for number in range(20)}
    large = {"a_pt": "x" * 90, "model_pt": "x" * 101}
    submitted(tmp_path, "anna", **pictures, **large, hw_ipynb="x" * 30, work_zip="x" * 20, top_csv="x" * 10)
    submitted(tmp_path, "ben", **{name: pictures[name] for name in list(pictures)[:10]})
    submitted(tmp_path, "max", **pictures)
    found = arrived(tmp_path)
    assert names(found["anna"]) == ["hw.ipynb", "work.zip", "top.csv", *(f"data/{n:02}.png" for n in (0, 1, 2, 3))]
    assert [found[student].lacks for student in found] == [()] * 3
    assert found["anna"].left[0] == "'data/04.png' was left out: one student's files have more than 0 MiB"
    assert found["anna"].left[10:] == ("and 8 more files",)
    assert len(found["ben"].left) == 1 and found["max"].left[10:] == ("and 1 more file",)


def test_of_many_files_that_cannot_be_read_few_are_named(tmp_path, monkeypatch):
    submitted(tmp_path, "anna", **{f"{number}_csv": "1" for number in range(30)})
    refuse(monkeypatch, Path.is_file)
    said = arrived(tmp_path)["anna"].lacks
    assert len(said) == 11 and said[0] == "'hw.ipynb' cannot be read: Permission denied" and "21 more" in said[-1]


def test_links_and_pipes_are_named_with_their_student_and_make_no_work_unreadable(tmp_path):
    """In the exchange, and in an archive that was unpacked."""
    for folder in (submitted(tmp_path / "exchange", "anna"), tmp_path / "all" / "A_1_assignsubmission_file_"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "hw.ipynb").write_text("1")
        (folder / "data.csv").symlink_to("/etc/hostname")
        (folder / "folder").symlink_to("/etc")
        os.mkfifo(folder / "pipe.csv")
    ((one,), problems) = (list(each) for each in from_archive(tmp_path / "all", {}))
    assert problems == []
    for each in (arrived(tmp_path / "exchange")["anna"], one):
        assert names(each) == ["hw.ipynb"] and each.lacks == ()
        ends = "no plain file; hand in the file itself"
        assert [why.replace("'A_1_assignsubmission_file_/", "'") for why in each.left] == [
            f"'data.csv' is a link, {ends}", f"'pipe.csv' is a pipe or a device, {ends}", f"'folder' is a link, {ends}",
        ]  # fmt: skip


@pytest.mark.parametrize(("name", "student", "late", "laid"), [
    ("anon_ab3de_67890_hw.ipynb", "anon_ab3de", False, "hw.ipynb"),
    ("anon_ab3de_67890_1_hw.ipynb", "anon_ab3de", False, "1_hw.ipynb"),
    ("anon_12345_67890_2024_hw.ipynb", "anon_12345", False, "2024_hw.ipynb"),
    ("LATE_anon_ab3de_67890_1_hw.ipynb", "anon_ab3de", True, "1_hw.ipynb"),
    ("all/anon_ab3de_67890_1_hw.ipynb", "anon_ab3de", False, "1_hw.ipynb"),
    ("anon_12345_text.html", "anon_12345", False, "text.html"),
    ("lastfirst_12345_67890_hw.ipynb", "12345", False, "hw.ipynb"),
    ("lastfirst_12345_67890_1_hw.ipynb", "12345", False, "1_hw.ipynb"),
    ("last_first_LATE_12345_67890_2_hw.ipynb", "12345", True, "2_hw.ipynb"),
    ("anon_4711_67890_hw.ipynb", "4711", False, "hw.ipynb"),  # whose name it is
    ("anonymou_ab3de_4711_67890_hw.ipynb", "4711", False, "hw.ipynb"),
])  # fmt: skip
def test_whose_a_file_of_canvas_is(tmp_path, name, student, late, laid):
    ((one,), problems) = (list(each) for each in from_archive(archive(tmp_path / "all.zip", name), {}))
    assert (one.student, one.origin.endswith(", LATE"), names(one), problems) == (student, late, [laid], [])


def test_no_two_names_differ_in_case_alone(tmp_path):
    given = "HW.ipynb hw.ipynb Data/a.csv data/A.csv data/b.csv DATA b.pt B.PT/c.csv STRASSE.csv stra\u00dfe.csv"
    path = archive(tmp_path / "all.zip", *(f"A_1_assignsubmission_file_/{name}" for name in given.split()))
    ((one,), _) = (list(each) for each in from_archive(path, {}))
    assert {str(made): text.decode().partition("/")[2] for made, text in one.files.items()} == {
        "HW.ipynb": "HW.ipynb", "hw_2.ipynb": "hw.ipynb", "Data/a.csv": "Data/a.csv", "data/A_2.csv": "data/A.csv",
        "data/b.csv": "data/b.csv", "DATA_2": "DATA", "b.pt": "b.pt", "B_2.PT/c.csv": "B.PT/c.csv",
        "STRASSE.csv": "STRASSE.csv", "stra\u00dfe_2.csv": "stra\u00dfe.csv",
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_many_files_of_one_name_are_laid_in_as_many_steps(tmp_path, monkeypatch):
    number, made = 200, []
    numbered = incoming._numbered
    monkeypatch.setattr(incoming, "_numbered", lambda *name: made.append(name) or numbered(*name))
    given = ["a"] + ["hw.ipynb", "a/b.csv"] * number
    path = archive(tmp_path / "all.zip", *(f"A_1_assignsubmission_file_/{name}" for name in given))
    ((one,), _) = (list(each) for each in from_archive(path, {}))
    rest = range(2, number + 1)
    assert set(names(one)) == {
        "a", "hw.ipynb", "a_2/b.csv", *(f"hw_{k}.ipynb" for k in rest), *(f"a_2/b_{k}.csv" for k in rest),
    }  # fmt: skip
    assert len(made) < 10 * number


def test_what_is_called_like_the_courses_but_for_its_case_is_not_laid(tmp_path):
    """On some disks it would stand in its place."""
    path = archive(
        tmp_path / "all.zip", "annam_1_2_Timestamp.TXT", "annam_1_3_hw.ipynb", "__macosx/m_1_3_a.csv", "THUMBS.db",
        "Li_4_assignsubmission_file_/work/TIMESTAMP.txt", "Li_4_assignsubmission_file_/hw.ipynb",
    )  # fmt: skip
    shutil.unpack_archive(path, tmp_path / "all")
    for given in (path, tmp_path / "all"):
        found, problems = (list(each) for each in from_archive(given, {}))
        assert not problems and {each.student: names(each) for each in found} == dict.fromkeys(["1", "4"], ["hw.ipynb"])


def test_what_the_assignment_brings_is_looked_up():
    """A work and an assignment may have thousands of files each."""

    class Helpers(frozenset):
        def __iter__(self):
            raise AssertionError("all of them are walked through")

    given = Helpers({"data/train.csv"})
    places = ("x/y/data/train.csv", "data/train.csv", "mydata/train.csv", "train.csv")
    uses = [files.order(PurePosixPath(place), given)[0] for place in places]
    assert uses == [files.GIVEN, files.GIVEN, files.OWN, files.OWN]


MEANWHILE = "cannot be read: something else was put in its place meanwhile"
posix = pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="no folder can be opened there")


@posix
@pytest.mark.parametrize(("place", "opened", "by", "said"), [
    ("data/z.csv", "data/z.csv", "link", "data/z.csv"),
    ("data/z.csv", "data/z.csv", "pipe", "data/z.csv"),
    ("data", "data/z.csv", "link", "data/z.csv"),
    ("data", "data", "link", "data"),
    ("", "", "link", f"anna+hw+{STAMP}+secret"),
])  # fmt: skip
def test_what_takes_the_place_of_what_was_listed_is_not_read(tmp_path, monkeypatch, place, opened, by, said):
    """A student exchanges it before it is opened: nothing of the instructor's goes along, and nobody waits."""
    own = tmp_path / "own"
    (own / "data").mkdir(parents=True)
    for name in ("hw.ipynb", "data/z.csv", "z.csv"):
        (own / name).write_text("secret")
    folder = submitted(tmp_path / "exchange", "anna", data__z_csv="1")
    submitted(tmp_path / "exchange", "ben")

    def exchange(path):
        if path == folder / opened and not (tmp_path / "old").exists():
            (folder / place).rename(tmp_path / "old")
            if by == "pipe":
                os.mkfifo(folder / place)
            else:
                (folder / place).symlink_to(own / place)

    when_opened(monkeypatch, exchange)
    found = arrived(tmp_path / "exchange")
    assert (tmp_path / "old").exists() and names(found["ben"]) == ["hw.ipynb"]
    assert found["anna"].lacks == (f"'{said}' {MEANWHILE}",) and b"secret" not in found["anna"].files.values()


def test_a_file_that_grows_after_it_was_listed_takes_nobodys_room(tmp_path, monkeypatch):
    monkeypatch.setattr(incoming, "LARGEST", 100)
    folder = submitted(tmp_path, "anna", data_csv="1", more_csv="2")
    (file, *_) = in_folder(folder)
    assert file.read(1) == b"1"
    (folder / "hw.ipynb").write_text("12345")
    assert file.read(3) == b"123"
    when_opened(monkeypatch, lambda path: path.name == "data.csv" and path.write_text("1" * 200))
    anna = arrived(tmp_path)["anna"]
    assert names(anna) == ["hw.ipynb", "more.csv"] and anna.lacks == ()
    assert anna.left == ("'data.csv' was left out: one student's files have more than 0 MiB",)


def test_of_more_files_than_a_student_may_have_the_notebooks_come_first(tmp_path, monkeypatch):
    """However many there are, they cost the others little."""
    monkeypatch.setattr(incoming, "MANY", 3)
    submitted(tmp_path, "anna", **{f"{letter}_csv": "1" for letter in "abcd"}, deep__hw_ipynb="1")
    submitted(tmp_path, "ben", a_csv="1", b_csv="1")
    anna, ben = arrived(tmp_path).values()
    assert names(anna) == ["hw.ipynb", "deep/hw.ipynb", "a.csv"] and names(ben) == ["hw.ipynb", "a.csv", "b.csv"]
    assert anna.left == ("the rest was left out: one student's files are more than 3",) and ben.left == ()


def test_of_folders_with_too_many_files_what_lies_higher_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(incoming, "LISTED", 4)
    submitted(tmp_path, "anna", a__b__c_csv="1", a__hw_ipynb="1", b_csv="1")
    anna = arrived(tmp_path)["anna"]
    assert names(anna) == ["hw.ipynb", "a/hw.ipynb", "b.csv"]
    assert anna.left == ("'a/b' and all behind it was left out: there are too many files",)


def test_a_work_for_which_there_is_just_room_is_known_again(tmp_path, monkeypatch):
    """Its note and its time stamp lie beside it, and come before the last of its data."""
    monkeypatch.setattr(incoming, "MANY", 3)
    monkeypatch.setattr(incoming, "LARGEST", 30)
    submitted(tmp_path / "exchange", "anna", hw_ipynb="12345", a_csv="1", z_csv="1" * 24)
    anna = arrived(tmp_path / "exchange")["anna"]
    came = []
    assert [lay(anna, tmp_path, "hw", came) for _ in range(2)] == ["new", "same"] and len(anna.files) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="a name is a text there")
@pytest.mark.parametrize(("name", "origin"), [
    (b"Anna M\xfcller_1_assignsubmission_file_/hw.ipynb", "Moodle: Anna M?ller"),
    (b"m\xfcller_LATE_1_34_hw.ipynb", "Canvas: m?ller, LATE"),
])  # fmt: skip
def test_a_name_of_an_unpacked_archive_that_is_no_text_can_be_written(tmp_path, name, origin):
    path = os.path.join(os.fsencode(tmp_path), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"1")
    ((one,), problems) = (list(each) for each in from_archive(tmp_path, {}))
    assert one.origin == origin and not problems and names(one) == ["hw.ipynb"]


def test_an_archive_may_be_unpacked_behind_a_link(tmp_path):
    (tmp_path / "all" / "A_1_assignsubmission_file_").mkdir(parents=True)
    (tmp_path / "all" / "A_1_assignsubmission_file_" / "hw.ipynb").write_text("1")
    (tmp_path / "link").symlink_to(tmp_path / "all")
    ((one,), problems) = (list(each) for each in from_archive(tmp_path / "link", {}))
    assert names(one) == ["hw.ipynb"] and not problems and not one.lacks


def test_a_file_whose_name_is_lost_stops_nobody(tmp_path):
    path = archive(tmp_path / "all.zip", "A_1_assignsubmission_file_/hw.ipynb", "B_2_assignsubmission_file_/hw.ipynb")
    content = bytearray(path.read_bytes())
    content[content.rfind(b"B_2_")] = 0  # where a name ends
    path.write_bytes(content)
    found, problems = (list(each) for each in from_archive(path, {}))
    assert [each.student for each in found] == ["1"] and problems == [
        "'.' has no name of Moodle's or Canvas's and was left out"
    ]


def test_folders_of_an_archive_are_no_files(tmp_path):
    path = archive(tmp_path / "all.zip", "A_1_assignsubmission_file_/hw.ipynb")
    with zipfile.ZipFile(path, "a") as made:
        made.mkdir("A_1_assignsubmission_file_/data")
    ((one,), problems) = (list(each) for each in from_archive(path, {}))
    assert names(one) == ["hw.ipynb"] and not problems


def test_what_is_no_folder_in_the_exchange_is_said(tmp_path):
    submitted(tmp_path, "anna")
    (tmp_path / f"ben+hw+{STAMP}").symlink_to("/")
    (tmp_path / f"zoe+hw+{STAMP}.zip").write_text("1")
    (tmp_path / f"zoe+other+{STAMP}.zip").write_text("1")
    found, problems = from_exchange(tmp_path, "hw")
    assert [each.student for each in found] == ["anna"]
    assert [each for each in problems if "by whom" not in each] == [
        "Links or files have names of submissions in the exchange, and were left out: "
        f"'ben+hw+{STAMP}', 'zoe+hw+{STAMP}.zip'"
    ]


def test_where_nothing_of_the_newest_can_be_read_the_newest_that_can_is_laid_and_that_is_told(tmp_path, monkeypatch):
    """In each run, until it can be read."""
    times = [STAMP.replace("17", hour) for hour in ("15", "16", "17", "18")]
    for time, text in zip(times, ("first", "good", "bad", "worse"), strict=True):
        submitted(tmp_path / "exchange", "anna", time, hw_ipynb=text)
    entry = Entry()

    def run():
        for each in from_exchange(tmp_path / "exchange", "hw")[0]:
            take(each, entry, tmp_path, "hw", tmp_path / "submitted")
        return (tmp_path / "submitted" / "anna" / "hw" / "hw.ipynb").read_text()

    with monkeypatch.context() as patch:
        refuse(patch, lambda path: any(time in path.name for time in times[2:]))
        for _ in range(2):
            assert run() == "good" and "could not be read wholly, so the work before it stays" in entry.why
            assert entry.why.endswith(f"'anna+hw+{times[3]}+secret' cannot be read: Permission denied")
    assert run() == "worse" and not entry.needs_attention


def test_work_of_which_nothing_but_its_time_stamp_can_be_read_is_not_there(tmp_path, monkeypatch):
    for time in (STAMP, STAMP.replace("17", "18")):
        folder = submitted(tmp_path, "anna", time)
        (folder / "timestamp.txt").write_text(time)
    refuse(monkeypatch, lambda path: path == folder / "hw.ipynb")
    found = list(from_exchange(tmp_path, "hw")[0])
    assert [len(each.lacks) for each in found] == [0, 1]


@pytest.mark.skipif(sys.platform != "linux", reason="open files are listed elsewhere, or nowhere")
def test_no_folder_stays_open(tmp_path):
    submitted(tmp_path, "anna", a__b__c__hw_ipynb="1")
    arrived(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    arrived(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before
