"""A dry run over last year's work: it says where our marks differ, why, and changes nothing."""

import contextlib
import hashlib
import os
import re
import sqlite3
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from course_lib.grading.compare import CheckFailed, expect
from course_lib.grading.marking import standing, trial
from course_lib.grading.marking.__main__ import main
from course_lib.grading.marking.alone import open_course
from course_lib.grading.marking.losses import WHY, losses
from course_lib.grading.marking.trial import NO_SANDBOX, Difference, Trial, dry_run, told
from course_lib.grading.outside import configured
from course_lib.grading.outside.execute import ExecuteOutside
from course_lib.grading.sandbox.view import SandboxMissing
from course_lib.grading.score import Score
from tests.support.course import ASSIGNMENT, ROOT, Course, filled_in, maximum, reference_answers

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
    assert told([], in_sandbox=False) == f"0 students: 0 as recorded, 0 with another mark. {NO_SANDBOX}"


def test_the_command_says_it_and_refuses_what_would_change_something(tmp_path, monkeypatch, capsys):
    asked = []
    found = [Trial("b", [Difference("q", 1.0, 3.0, "")], "")]
    monkeypatch.setattr("course_lib.grading.marking.__main__.dry_run", lambda *given: asked.append(given) or found)
    assert main(["hw", "--course", str(tmp_path), "--dry-run", "--jobs", "2"]) == 1
    assert asked == [(tmp_path, "hw", None, 2)] and f"1 with another mark. {NO_SANDBOX}" in capsys.readouterr().out
    found[:] = [Trial("a", [], "")]
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\nc.ExecuteOutside.assignments = {'hw': []}\n")
    assert main(["hw", "--course", str(tmp_path), "--dry-run"]) == 0
    assert "0 with another mark. Nothing was changed." in capsys.readouterr().out
    for more in (["--settle", "a"], ["--moodle", "m"], ["--canvas", "c"], ["--scheduler", "tcp://s:1"]):
        with pytest.raises(SystemExit):
            main(["hw", "--dry-run", *more])
    assert [path.name for path in tmp_path.iterdir()] == ["nbgrader_config.py"]


def test_the_reason_is_what_the_work_said_where_its_mark_was_lower():
    now, then = {"q": "0 of 1  values"}, {"q": "it was slow"}
    for marks, known, why in [
        ((1.0, 3.0), (now, then), "0 of 1  values"), ((1.0, 3.0), ({}, then), ""), ((None, 3.0), (now, then), now["q"]),
        ((3.0, 1.0), (now, then), "Then it said: it was slow"), ((3.0, 1.0), (now, {"q": ""}), "0 of 1  values"),
        ((3.0, None), (now, {}), "0 of 1  values"),
    ]:  # fmt: skip
        assert trial._why(Difference("q", *marks, ""), *known) == why


@pytest.mark.parametrize(("url", "why"), [
    ("mysql://u:secret@h/db", "no gradebook of SQLite or of PostgreSQL at mysql://u:***@h/db"),
    ("sqlite:////nowhere/gradebook.db", "no gradebook of SQLite or of PostgreSQL at sqlite:////nowhere/gradebook.db"),
    ("postgresql+nothing://u:secret@h/db?password=secret", "postgresql+nothing://u:***@h/db cannot be read"),
    ("no url but a secret", "that c.CourseDirectory.db_url names cannot be read"),
])  # fmt: skip
def test_a_gradebook_that_cannot_be_copied_is_named_without_its_password(tmp_path, url, why):
    (tmp_path / "nbgrader_config.py").write_text(f"c = get_config()\nc.CourseDirectory.db_url = {url!r}\n")
    with pytest.raises(ValueError) as raised:
        dry_run(tmp_path, "hw")
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


OUTSIDE = "c.Autograde.autograde_preprocessors = ['course_lib.grading.outside.execute.ExecuteOutside']\n"


@pytest.mark.parametrize(("lines", "why"), [
    ("c.ExecuteOutside.assignments = {'hw': []}\n", "There is none. To grade without a sandbox"),
    ("c.ExecuteOutside.assignments = {'wh': []}\n", "Nothing is graded: nbgrader_config.py names 'hw' neither in"),
])  # fmt: skip
def test_what_could_not_be_marked_in_earnest_is_not_tried_either(tmp_path, monkeypatch, capsys, lines, why):
    def missing():
        raise SandboxMissing("There is none.")

    monkeypatch.setattr(configured, "bubblewrap", missing)
    monkeypatch.setattr(trial, "Batch", None)
    course = opened(tmp_path, OUTSIDE + lines)
    before = state(tmp_path)
    assert main(["hw", "--course", str(course.coursedir.root), "--dry-run"]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(why) and state(tmp_path) == before
    assert said.out.startswith("Warning: c.ExecuteOutside.assignments in nbgrader_config.py:")


def test_what_the_sandbox_hides_it_hides_in_a_dry_run_too(tmp_path):
    opened(tmp_path / "course", "c.ExecuteOutside.also_hidden = ['/else']\n")
    (tmp_path / "copy").mkdir()
    trial._copy(tmp_path / "course", tmp_path / "copy", "hw", True)
    settings = ExecuteOutside(parent=open_course(tmp_path / "copy"))
    assert settings.also_hidden == ["/else", str(tmp_path / "course")]


def opened(folder, lines):
    folder.mkdir(exist_ok=True)
    (folder / "nbgrader_config.py").write_text(f"c = get_config()\nc.CourseDirectory.root = {str(folder)!r}\n{lines}")
    trial.gradebook_of(open_course(folder)).close()
    return open_course(folder)


PAGE = (ROOT / "book" / "own-course.md").read_text(encoding="utf-8")
LINES, SAID = (re.search(f"```{kind}\n(.*?)```", PAGE, re.DOTALL)[1] for kind in ("python", "text"))
PATIENT = "c.Execute.timeout, c.Execute.startup_timeout = 1800, 600\n"
MEAN = "def mean(values):\n    {}return sum(values) / len(values) if values else 0"
WORKS = {
    "anna": MEAN.format(""),
    "ben": "import sys\n" + MEAN.format("if values[1:]: print('this may be slow', file=sys.stderr)\n    "),
    "cleo": MEAN.format("").removesuffix(" if values else 0"),
}
TESTS = {"test-mean": (2, "assert mean([1, 2]) == 1.5"), "test-empty": (1, "assert mean([5]) == 5")}


def notebook_of_plain_asserts(tests):
    """A source of plain nbgrader: an answer, and hidden tests that raise an error or do not."""
    cells = [({"solution": True}, "mean", f"### BEGIN SOLUTION\n{WORKS['anna']}\n### END SOLUTION")]
    for name, (points, code) in tests.items():
        about = {"grade": True, "locked": True, "points": points}
        cells.append((about, name, f"### BEGIN HIDDEN TESTS\n{code}\n### END HIDDEN TESTS"))
    made = []
    for about, name, code in cells:
        known = {"grade": False, "solution": False, "locked": False, "task": False, "schema_version": 3}
        made.append(new_code_cell(code, metadata={"nbgrader": known | about | {"grade_id": name}}))
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=made, metadata={"kernelspec": spec})


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A course of plain nbgrader with last year's marks, whose tests were mended since, with the lines of the page."""
    folder = tmp_path_factory.mktemp("plain")
    source = folder / "made" / "source" / "ps1" / "ps1.ipynb"
    source.parent.mkdir(parents=True)
    nbformat.write(notebook_of_plain_asserts(TESTS), source)
    (folder / "made" / "nbgrader_config.py").write_text(
        f"c = get_config()\nc.CourseDirectory.course_id = 'attention'\n{PATIENT}"
    )
    course = Course(folder, copied_from=folder / "made")
    course.nbgrader("generate_assignment", "ps1")
    release = nbformat.read(course.root / "release" / "ps1" / "ps1.ipynb", as_version=4)
    for student, code in WORKS.items():
        work = course.root / "submitted" / student / "ps1" / "ps1.ipynb"
        work.parent.mkdir(parents=True)
        nbformat.write(filled_in(release, {"mean": code}), work)
    course.nbgrader("autograde", "ps1")
    mended = TESTS | {"test-empty": (1, "assert mean([]) == 0")}
    nbformat.write(notebook_of_plain_asserts(mended), course.root / "source" / "ps1" / "ps1.ipynb")
    course.nbgrader("generate_assignment", "ps1", "--force")
    return course


def marks_of(course):
    with course.gradebook() as gradebook:
        found = {each.student_id: each.notebooks[0].grades for each in gradebook.find_assignment("ps1").submissions}
        return {student: {grade.name: grade.auto_score for grade in grades} for student, grades in found.items()}


FULL = {"test-mean": 2, "test-empty": 1}


def test_an_existing_course_is_tried_and_then_graded_with_the_lines_that_the_page_names(plain):
    recorded = {"anna": FULL, "ben": FULL | {"test-mean": 0}, "cleo": FULL}
    assert marks_of(plain) == recorded
    status, said = plain.marking("ps1", "--dry-run", "--jobs", "1")
    assert status == 1 and "Warning: 'ps1' is graded as nbgrader does it" in said  # and so is standard error
    assert "ben:" not in said.replace("ben: graded", "") and "cleo: -1 points" in said

    with (plain.root / "nbgrader_config.py").open("a") as config:
        config.write(LINES)
    status, said = plain.marking("ps1", "--dry-run", "--jobs", "1")
    assert status == 1 and "Warning" not in said and said.endswith(f"2 with another mark. {NO_SANDBOX}\n")
    assert set(SAID.splitlines()) <= set(said.splitlines()) and "anna:" not in said.replace("anna: graded", "")
    assert marks_of(plain) == recorded

    status, said = plain.marking("ps1", "--jobs", "1")
    assert status == 0 and "3 graded" in said and "Warning" not in said
    assert marks_of(plain) == {"anna": FULL, "ben": FULL, "cleo": FULL | {"test-empty": 0}}
    rows = (plain.root / "grades.csv").read_text().splitlines()
    assert len(rows) == 4 and [",graded," in row for row in rows] == [False, True, True, True]


def test_an_error_without_words_is_told_by_its_line(tmp_path):
    pointed = "\x1b[32m----> 2\x1b[39m \x1b[38;5;28;01massert\x1b[39;00m mean([]) == 0"
    traceback = ["\x1b[31mAssertionError\x1b[39m  Traceback", f"      1 x = 1\n{pointed}"]
    outputs = [
        [new_output("error", ename="AssertionError", evalue="", traceback=traceback)],
        [new_output("error", ename="KeyError", evalue="", traceback=[])],
        [new_output("error", ename="KeyError", evalue="no key\n  in mean, line 2\n", traceback=traceback)],
        [new_output("stream", name="stderr", text="a line\nand another\n")],
        [new_output("stream", name="stdout", text="1 of 2 points\n0 of 1  values: none")],
    ]
    about = [{"nbgrader": {"grade_id": f"q{number}"}} for number in range(len(outputs))]
    cells = [new_code_cell(metadata=known, outputs=each) for known, each in zip(about, outputs, strict=True)]
    nbformat.write(new_notebook(cells=cells), tmp_path / "hw.ipynb")
    (tmp_path / "other.ipynb").write_text("{")
    assert list(losses(tmp_path).values()) == [
        "AssertionError: assert mean([]) == 0", "KeyError", "no key; in mean, line 2", "text on standard error, a line",
        "0 of 1  values: none",
    ]  # fmt: skip
    assert losses(tmp_path / "nowhere") == {}


def said_of(folder, *outputs):
    cell = new_code_cell(metadata={"nbgrader": {"grade_id": "q"}}, outputs=list(outputs))
    nbformat.write(new_notebook(cells=[cell]), folder / "hw.ipynb")
    return losses(folder)["q"]


SENTENCE = (
    "the weights of a row that a padding mask hides from all should be those of the well-known case without a mask, "
    f"{'q' * 81} says"
)


@pytest.mark.parametrize("shift", range(0, 40, 3), ids=str)  # it is wrapped between words, at the hyphen, in the word
def test_a_reason_reads_as_it_was_written(tmp_path, capsys, shift):
    sentence, other = f"{'x' * shift} {SENTENCE}".strip(), "of another kind\nin mean, line 2 of its cell:  return 0"
    failed = CheckFailed(f"{sentence}\n{other}")
    assert len(str(failed).splitlines()) > 4
    error = new_output("error", ename="CheckFailed", evalue=str(failed), traceback=[])
    said = f"{sentence}; of another kind; in mean, line 2 of its cell:  return 0"
    assert said_of(tmp_path, error) == said

    score, name = Score(4), "n" * 62  # a line as wide as those of a reason
    for what in (name, "earned", f"{name}2"):
        score.check(4 / 3, what)(lambda fails=what != "earned": fails and expect(False, sentence))
    score.total()
    report = new_output("stream", name="stdout", text=capsys.readouterr().out)
    lost = [f"0 of 1.33333  {name}", sentence, f"0 of 1.33333  {name}2", sentence]
    assert said_of(tmp_path, report) == "; ".join(lost)[:WHY]


def test_lines_that_no_wrapping_made_stay_apart(tmp_path):
    wide, slip = "w" * 70, f"  -0.5  {'s ' * 34}"
    error = new_output("error", ename="AssertionError", evalue=f"{wide}\n{wide * 2}\n{wide}\nend", traceback=[])
    assert said_of(tmp_path, error) == f"{wide}; {wide * 2}; {wide}; end"
    report = new_output("stream", name="stdout", text=f"1 of 2 points\n{slip}\n{slip}\n")
    assert said_of(tmp_path, report) == f"{slip.strip()}; {slip.strip()}"
