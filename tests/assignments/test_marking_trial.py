"""A dry run over last year's work: it says where our marks differ, why, and changes nothing."""

import contextlib
import hashlib
import os
import sqlite3
from pathlib import Path

import pytest

from course_lib.grading.marking import standing, trial
from course_lib.grading.marking.__main__ import main
from course_lib.grading.marking.trial import Difference, Trial, dry_run, told
from tests.support.course import ASSIGNMENT, Course, filled_in, maximum, reference_answers

LAST_YEAR = {"same": {}, "other": {}, "by-hand": {"softmax": "def softmax(x):\n    return x"}, "new": {}}


def state(folder: Path) -> dict[str, tuple]:
    """All that can change in a folder: names, kinds, rights, times and contents."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        about = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(folder))] = about.st_mode, about.st_mtime_ns, about.st_ino, content
    return found


@pytest.fixture(scope="module")
def made(generated, tmp_path_factory):
    """A course with recorded marks, its state before and after a dry run, and what that came to."""
    course = Course(tmp_path_factory.mktemp("trial"), copied_from=generated.root)
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write("c.ExecuteOutside.sandbox = 'off'\nc.Execute.timeout = 1800\nc.Execute.startup_timeout = 600\n")
    most, answers = maximum(course.source), reference_answers(course.source)
    for student, cells in LAST_YEAR.items():
        course.submit(student, filled_in(course.release, answers | cells))
    (course.root / "submitted" / "same" / ASSIGNMENT / "link.csv").symlink_to(course.root / "gradebook.db")
    with course.gradebook() as gradebook:
        for student in ("same", "other", "by-hand", "gone"):
            gradebook.update_or_create_student(student)
            submission = gradebook.update_or_create_submission(ASSIGNMENT, student)
            for grade in submission.notebooks[0].grades:
                grade.auto_score = most.get(grade.name)
                if (student, grade.name) == ("other", "test-attention"):
                    grade.auto_score = 1.0
                if (student, grade.name) == ("by-hand", "test-softmax"):
                    grade.auto_score, grade.manual_score = 0.0, 3.0
        gradebook.db.commit()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in course._environment("instructor").items():
            patch.setenv(name, value)
        before = state(course.root)
        trials = dry_run(course.root, ASSIGNMENT, jobs=1, say=lambda line: None)
        after = state(course.root)
    return course, {each.student: each for each in trials}, before, after, most


def test_nothing_is_changed(made):
    course, _, before, after, _ = made
    assert {name for name in {*after, *before} if after.get(name) != before.get(name)} == set()
    assert "gradebook.db" in " ".join(before)
    assert not list((course.root).glob("marks")) and not list(course.root.glob(".marking.lock"))


def test_it_says_where_marks_differ_and_why(made):
    _, trials, *_, most = made
    assert set(trials) == {*LAST_YEAR, "gone"}
    assert trials["same"].differences == []
    assert trials["other"].differences == [Difference("test-attention", most["test-attention"], 1.0, "")]
    (changed,) = trials["by-hand"].differences
    assert (changed.question, changed.recorded) == ("test-softmax", 3.0) and changed.now < 3
    assert "by hand" in changed.why and "0 of 1" in changed.why
    assert {each.question for each in trials["new"].differences} == set(most)
    assert "Nothing is recorded" in trials["new"].said
    assert trials["gone"].said == "It has recorded marks, and no work in submitted/" and not trials["gone"].differences


def test_what_is_told_names_each_and_counts():
    trials = [
        Trial("a", [], ""),
        Trial("b", [Difference("q", 1.0, 3.5, "0 of 1  values"), Difference("r", 2.0, None, "")], "late"),
        Trial("c", [], "It has recorded marks"),
    ]
    assert told(trials).splitlines() == [
        "b: -0.5 points. late",
        "  q: 1 now, 3.5 recorded. 0 of 1  values",
        "  r: 2 now, none recorded.",
        "c: no mark differs. It has recorded marks",
        "3 students: 2 as recorded, 1 with another mark. Nothing was changed.",
    ]


def test_the_command_says_it_and_refuses_what_would_change_something(tmp_path, monkeypatch, capsys):
    asked = []
    found = [Trial("b", [Difference("q", 1.0, 3.0, "")], "")]
    monkeypatch.setattr("course_lib.grading.marking.__main__.dry_run", lambda *given: asked.append(given) or found)
    assert main(["hw", "--course", str(tmp_path), "--dry-run", "--jobs", "2"]) == 1
    assert asked == [(tmp_path, "hw", None, 2)] and "1 with another mark" in capsys.readouterr().out
    found[:] = [Trial("a", [], "")]
    assert main(["hw", "--dry-run"]) == 0
    for more in (["--settle", "a"], ["--moodle", "m"], ["--canvas", "c"], ["--scheduler", "tcp://s:1"]):
        with pytest.raises(SystemExit):
            main(["hw", "--dry-run", *more])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("url", "why"), [
    ("mysql://u:secret@h/db", "no gradebook of SQLite or of PostgreSQL at mysql://u:***@h/db"),
    ("sqlite:////nowhere/gradebook.db", "no gradebook of SQLite or of PostgreSQL at sqlite:////nowhere/gradebook.db"),
    ("postgresql+nothing://u:secret@h/db?password=secret", "postgresql+nothing://u:***@h/db cannot be read"),
    ("no url but a secret", "that c.CourseDirectory.db_url names cannot be read"),
])  # fmt: skip
def test_a_gradebook_that_cannot_be_copied_is_named_without_its_password(tmp_path, url, why):
    (tmp_path / "nbgrader_config.py").write_text(f"c = get_config()\nc.CourseDirectory.db_url = {url!r}\n")
    with pytest.raises(ValueError) as raised:
        trial._copy(tmp_path, tmp_path / "copy", "hw", True)
    assert why in str(raised.value) and "secret" not in str(raised.value)


def writing(path: Path, journal: str) -> sqlite3.Connection:
    """Somebody who has the gradebook open, and has written a row."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.execute("CREATE TABLE IF NOT EXISTS marks (mark)")
    connection.execute("INSERT INTO marks VALUES (3)")
    return connection


def marks(path: Path) -> list[tuple]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT mark FROM marks").fetchall()


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_gradebook_is_copied_whole_whoever_has_it_open_and_stays_as_it_is(tmp_path, journal, closed):
    """Of one with a write-ahead log, the file itself lacks what was written last."""
    path = tmp_path / "course" / "gradebook.db"
    path.parent.mkdir()
    writer = writing(path, journal)
    if closed:
        writer.close()
    names, content = {each.name for each in path.parent.iterdir()}, path.read_bytes()
    standing.copy_gradebook(f"sqlite:///{path}", tmp_path / "copy.db")
    assert marks(tmp_path / "copy.db") == [(3,)]
    assert {each.name for each in path.parent.iterdir()} == names and path.read_bytes() == content
    assert ("gradebook.db-wal" in names) == (journal == "wal" and not closed)
    writer.close()


def test_what_is_half_written_is_not_copied_and_nobody_waits_for_ever(tmp_path, monkeypatch):
    path = tmp_path / "gradebook.db"
    writer = writing(path, "delete")
    writer.execute("BEGIN EXCLUSIVE")
    writer.execute("INSERT INTO marks VALUES (4)")
    monkeypatch.setattr(standing, "PATIENCE_S", 0)
    with pytest.raises(ValueError, match="has been writing into .*gradebook.db for 0 seconds: try again later"):
        standing.copy_gradebook(f"sqlite:///{path}", tmp_path / "copy.db")
    writer.execute("ROLLBACK")
    writer.close()
    monkeypatch.undo()
    standing.copy_gradebook(f"sqlite:///{path}", tmp_path / "copy.db")
    assert marks(tmp_path / "copy.db") == [(3,)]


def test_pipes_are_not_copied(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    assert trial._specials(str(tmp_path), ["pipe", "file"]) == ["pipe"]
