"""What one student hands in, however odd, large or deep, costs nobody else, and what is left out of it is said."""

import contextlib
import errno
import os
import shutil
from pathlib import Path, PurePosixPath

import pytest

from course_lib.grading.marking import accounts, files, incoming
from course_lib.grading.marking.incoming import from_archive, from_exchange
from tests.support.archives import archive

STAMP = "2026-11-03 17:00:00 UTC"


def submitted(exchange, student, **contents):
    """A folder of the exchange; `__` in a name stands for /, and `_` for a point."""
    folder = exchange / f"{student}+hw+{STAMP}+secret"
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


@pytest.mark.parametrize(("name", "number", "lacks", "left"), [
    ("a", 1200, "", "/a/a/x.csv' lies in more than 49 folders; hand it in in fewer"),
    ("b" * 200, 30, "bbb' cannot be read: File name too long", ""),  # its path is longer than the system takes
], ids=["many folders", "long names"])  # fmt: skip
def test_folders_without_end_cost_their_student_alone(tmp_path, name, number, lacks, left):
    folder = submitted(tmp_path, "anna")
    submitted(tmp_path, "ben")
    with deep(folder, name, number):
        found = arrived(tmp_path)
    assert names(found["anna"]) == names(found["ben"]) == ["hw.ipynb"]
    for said, ends in ((found["anna"].lacks, lacks), (found["anna"].left, left)):
        assert len(said) == bool(ends) and "".join(said).endswith(ends)
    assert found["ben"].lacks == found["ben"].left == ()


def test_a_file_deep_in_an_archive_is_laid_higher(tmp_path):
    path = archive(tmp_path / "all.zip", f"A_1_assignsubmission_file_/{'a/' * 1200}hw.ipynb")
    ((anna,), problems) = (list(each) for each in from_archive(path, {}))
    assert names(anna) == ["a/" * (files.PARTS - 1) + "hw.ipynb"] and anna.left == () and problems == []


def test_a_folder_that_may_be_listed_but_not_entered_costs_its_files_alone(tmp_path, monkeypatch):
    """Its rights are r--, which bind everybody but root."""
    submitted(tmp_path, "anna", locked__x_csv="1")
    submitted(tmp_path, "ben", open__x_csv="1")

    def refused(path, *_, **__):
        if "/locked/" in os.fspath(path):
            raise PermissionError(errno.EACCES, "Permission denied")
        return read(path)

    class Entry:
        def __init__(self, entry):
            self.name, self.path, self.entry = entry.name, entry.path, entry

        def __getattr__(self, name):
            return lambda **how: refused(self.path) if "/locked/" in self.path else getattr(self.entry, name)(**how)

    read, scandir = Path.read_bytes, os.scandir
    monkeypatch.setattr(Path, "read_bytes", refused)
    monkeypatch.setattr(os, "scandir", lambda path: map(Entry, scandir(path)))
    found = arrived(tmp_path)
    assert names(found["anna"]) == ["hw.ipynb"] and names(found["ben"]) == ["hw.ipynb", "open/x.csv"]
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

    def refused(path):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refused)
    said = arrived(tmp_path)["anna"].lacks
    assert len(said) == 11 and said[0] == "'hw.ipynb' cannot be read: Permission denied" and "21 more" in said[-1]


def test_links_and_pipes_are_named_with_their_student_and_make_no_work_unreadable(tmp_path, monkeypatch):
    """In the exchange, and in an archive that was unpacked."""
    read = Path.read_bytes

    def plain(path):
        assert path.is_file(), "whoever opens a pipe waits for ever"
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", plain)
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
