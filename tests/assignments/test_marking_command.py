"""`python -m course_lib.grading.marking` alone, with a batch that stands in: what it hands on, says and returns."""

import csv
import errno
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy.exc import OperationalError

from course_lib.grading import marking
from course_lib.grading.marking import __main__ as command
from course_lib.grading.marking import turn
from course_lib.grading.marking.alone import gradebook_of, open_course
from course_lib.grading.outside.configured import check_marking, in_sandbox, slips
from course_lib.grading.outside.execute import ExecuteOutside
from course_lib.grading.sandbox.view import SandboxMissing


@pytest.fixture
def batch(monkeypatch, tmp_path):
    """A batch that records what is asked of it, with two students; those in `troubled` need somebody's attention."""
    made = SimpleNamespace(asked=[], entries={}, problems=[], course=None, folder=lambda step: Path("course", step))

    def entries(*troubled):
        made.entries = {
            name: SimpleNamespace(trouble=name in troubled, needs_attention=name in troubled) for name in ("a", "b")
        }

    def asked(name, answer=None):
        return lambda *arguments: made.asked.append((name, *arguments)) or answer

    made.check = asked("check")
    monkeypatch.setattr(command, "_say_before", lambda batch, here: made.asked.append(("before", here)))
    made.settle = asked("settle")
    made.collect, made.grade, made.report = asked("collect"), asked("grade"), asked("report", "a summary")
    made.students = entries
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c").mkdir()
    monkeypatch.setattr(command, "Batch", lambda course, assignment: made.asked.append((course, assignment)) or made)
    return made


def test_what_is_chosen_is_handed_on_and_the_summary_printed(batch, capsys):
    batch.students()
    options = "--course c --zip z --moodle m --canvas k --force --jobs 3 --scheduler tcp://s:1 --settle a b"
    assert command.main(["ps1", *options.split()]) == 0
    c, z, m, k = map(Path, "czmk")
    assert batch.asked == [
        (c, "ps1"), ("check", m, k), ("before", False), ("collect", z), ("grade", True, 3, "tcp://s:1"),
        ("settle", ["a", "b"]), ("report", m, k, None),
    ]  # fmt: skip
    assert capsys.readouterr().out == "a summary\n"
    batch.asked.clear()
    assert command.main(["ps1", "--jobs", "2"]) == 0
    assert batch.asked == [
        (Path(), "ps1"), ("check", None, None), ("before", True), ("collect", None), ("grade", False, 2, ""),
        ("settle", []), ("report", None, None, 2),
    ]  # fmt: skip


def test_less_than_one_at_a_time_is_refused(batch, capsys):
    with pytest.raises(SystemExit):
        command.main(["ps1", "--jobs", "0"])
    assert "--jobs should be 1 or more, got 0" in capsys.readouterr().err and not batch.asked


@pytest.mark.parametrize("troubled", ["a", "b", "ab"])
def test_where_somebody_needs_attention_it_is_not_zero(batch, troubled):
    batch.students(*troubled)
    assert command.main(["ps1"]) == 1


def test_nothing_handed_in_is_no_success(batch, capsys):
    batch.problems.append("the exchange is not there")
    assert command.main(["ps1"]) == 2
    said = capsys.readouterr()
    assert said.out == "" and "Nothing is handed in: put notebooks into course/submitted/STUDENT/ps1" in said.err
    assert "the exchange is not there" in said.err


@pytest.mark.parametrize("error", [
    OSError(errno.ENOSPC, "No space left on device", "grades.csv"),
    OperationalError("UPDATE grade", {}, sqlite3.OperationalError("No space left on device")),
    csv.Error("No space left on device"),
])  # fmt: skip
def test_what_ends_a_run_is_said_in_one_line(batch, capsys, error):
    def report(*_):
        raise error

    batch.students()
    batch.report = report
    assert command.main(["ps1"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "No space left on device" in line and "What is entered stays" in line and "UPDATE" not in line


def test_a_second_run_on_the_same_course_is_refused(batch, capsys):
    """Before it looks at anything: it would take what the first has begun for interrupted, and take it back."""
    batch.students()
    second = []
    batch.grade = lambda force, jobs, scheduler: second.append(command.main(["ps2"]))
    assert command.main(["ps1"]) == 0 and second == [2]
    assert "Another run is grading in" in capsys.readouterr().err
    assert [asked for asked in batch.asked if "ps2" in asked] == []
    second.clear()
    batch.grade = lambda force, jobs, scheduler: (
        second.append(command.main(["ps2", "--course", "c"])) if force else None
    )
    assert command.main(["ps1", "--force"]) == 0 and second == [0]  # another course is another


@pytest.mark.parametrize("option", ["--force", "--dry-run"])
def test_a_course_that_is_no_folder_is_named_and_not_made(batch, tmp_path, capsys, option):
    assert command.main(["ps1", "--course", "elsewhere", option]) == 2
    assert "elsewhere is no folder of a course" in capsys.readouterr().err and not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(("error", "why"), [
    (OSError(errno.ENOLCK, "No locks available"), "No locks available"),
    (PermissionError(errno.EACCES, "Permission denied"), "Permission denied"),
    (NotImplementedError("no flock"), "no flock"),
])  # fmt: skip
def test_where_nothing_can_be_locked_that_is_said(batch, tmp_path, monkeypatch, capsys, error, why):
    def acquire(self, timeout):
        raise error

    batch.students()
    assert command.main(["ps1"]) == 0 and capsys.readouterr().err == ""
    (tmp_path / turn.LOCK).unlink()
    monkeypatch.setattr(turn.filelock.FileLock, "acquire", acquire)
    assert command.main(["ps1"]) == 0
    assert f"{tmp_path / turn.LOCK} cannot be locked ({why}): nothing keeps a second run out" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_the_lock_of_another_account_can_be_opened_or_is_no_leave_to_grade(batch, tmp_path, monkeypatch, capsys):
    def acquire(self, timeout):
        raise PermissionError(errno.EACCES, "Permission denied")

    batch.students()
    before = os.umask(0o077)
    try:
        assert command.main(["ps1"]) == 0
    finally:
        os.umask(before)
    assert (tmp_path / turn.LOCK).stat().st_mode & 0o777 == 0o666
    batch.asked.clear()
    monkeypatch.setattr(turn.filelock.FileLock, "acquire", acquire)  # as of a file that an older version made
    assert command.main(["ps1"]) != 0 and batch.asked == []
    assert f"{tmp_path / turn.LOCK} belongs to another account" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no such signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_run_that_is_ended_ends_in_order(batch, name):
    number, ended = getattr(signal, name), []

    def grade(force, jobs, scheduler):
        try:
            assert signal.getsignal(number) is not signal.SIG_DFL  # which would end the tests
            os.kill(os.getpid(), number)
            time.sleep(5)
        finally:
            assert signal.getsignal(number) is signal.SIG_IGN
            os.kill(os.getpid(), number)  # a second one stops no cleaning up
            ended.append(name)

    batch.grade = grade
    before = signal.signal(number, signal.SIG_DFL)  # `nohup make test` has another
    try:
        with pytest.raises(SystemExit) as end:
            command.main(["ps1"])
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)
    assert ended == [name] and end.value.code == 128 + number


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no such signals")
def test_a_run_that_was_told_to_outlive_its_terminal_does(batch, monkeypatch):
    batch.students()
    batch.grade = lambda force, jobs, scheduler: os.kill(os.getpid(), signal.SIGHUP)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert command.main(["ps1"]) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_start_leaves_out_what_takes_longest_and_no_notebook_needs():
    code = "import sys, course_lib.grading.marking.__main__; print('rfc3987_syntax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_a_module_is_imported_without_another_that_whoever_wants_it_still_has(tmp_path, monkeypatch):
    (tmp_path / "slow_one.py").touch()
    for name in ("first_one", "second_one"):
        (tmp_path / f"{name}.py").write_text("try:\n    import slow_one as it\nexcept ImportError:\n    it = None\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("slow_one", "first_one", "second_one"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    marking.import_without("slow_one", "first_one")
    assert sys.modules["first_one"].it is None
    import slow_one

    marking.import_without("slow_one", "second_one")
    marking.import_without("another", "no_such_module")
    assert sys.modules.get("slow_one") is slow_one and "second_one" not in sys.modules and "another" not in sys.modules


OUTSIDE = "c.Autograde.autograde_preprocessors = ['course_lib.grading.outside.execute.ExecuteOutside']\n"
NAMED = "c.ExecuteOutside.assignments = {'hw': []}\n"
MISSPELT = "c.ExecuteOutside.assignments = {'wh': []}\nc.ExecuteOutside.warm = {'wh': [], 'known': [], 'there': []}\n"
HARMLESS = "c.HTMLExporter.preprocessors = ['course_lib.grading.marking.harmless.Harmless']\n"
AS_NBGRADER = "c.ExecuteOutside.as_nbgrader = ['hw']\n"


@pytest.fixture
def configured(tmp_path, monkeypatch):
    """Opens a course with these lines in its configuration, on a machine without a sandbox."""

    def missing():
        raise SandboxMissing("There is none.")

    def opened(lines):
        (tmp_path / "nbgrader_config.py").write_text(f"c = get_config()\n{lines}")
        return open_course(tmp_path)

    monkeypatch.setattr("course_lib.grading.outside.configured.bubblewrap", missing)
    return opened


@pytest.mark.parametrize(("lines", "why"), [
    (OUTSIDE, "Nothing is graded: .* Add 'hw': \\['numpy'\\] to the first, .*as_nbgrader = \\['hw'\\]: then"),
    (OUTSIDE + AS_NBGRADER.replace("hw", "x"), "Nothing is graded: .*as_nbgrader = \\['x', 'hw'\\]"),
    (NAMED, "names 'hw', and nothing in .* marks it from outside: write 'course_lib.grading.outside.execute.Exec"),
    (OUTSIDE.replace("ExecuteO", "ExecuteI"), "autograde_preprocessors names 'course_lib.*', which cannot be imported"),
    ("c.Autograde.autograde_preprocessors = ['.x']\n", "autograde_preprocessors names '.x', which cannot be imported"),
    (OUTSIDE + NAMED + AS_NBGRADER, "names 'hw' both in .*as_nbgrader = \\[\\]: then its tests run outside"),
    (NAMED + AS_NBGRADER, "names 'hw' both in .* take 'hw' out of the first"),
    (OUTSIDE + NAMED, "There is none. To grade without .*sandbox = 'off' in .* COURSE_GRADING_SANDBOX to off"),
])  # fmt: skip
def test_an_assignment_is_refused_where_nobody_has_said_how_it_is_marked_or_that_cannot_be(configured, lines, why):
    with pytest.raises(ValueError, match=why):
        check_marking(ExecuteOutside(parent=configured(lines)), "hw")


def test_an_assignment_that_somebody_has_named_is_marked_without_a_word(configured):
    assert check_marking(ExecuteOutside(parent=configured(OUTSIDE + NAMED)), "hw", here=False) == ""
    for lines in (f"{OUTSIDE}{NAMED}c.ExecuteOutside.sandbox = 'off'\n", OUTSIDE + AS_NBGRADER, AS_NBGRADER):
        assert check_marking(ExecuteOutside(parent=configured(lines)), "hw") == "", lines


def test_before_a_course_is_graded_what_its_settings_lack_is_said_once(configured, tmp_path, capsys):
    """Of plain nbgrader, too; and what they name that is no assignment."""
    course = configured(MISSPELT + HARMLESS)
    (tmp_path / "source" / "there").mkdir(parents=True)
    with gradebook_of(course) as gradebook:
        gradebook.update_or_create_assignment("known")
    batch = SimpleNamespace(course=course, assignment="hw", folder=lambda step: tmp_path / step)
    command._say_before(batch, here=True)
    slip, plain = capsys.readouterr().err.splitlines()
    assert slip.startswith("Warning: c.ExecuteOutside.assignments and c.ExecuteOutside.warm in nbgrader_config.py: ")
    assert "'wh' is no assignment of this course" in slip
    assert re.match(r"Warning: 'hw' is .* may read and write what you may\. .*as_nbgrader = \['hw'\] in .* says", plain)
    with pytest.raises(ValueError, match="Nothing is graded"):
        command._say_before(SimpleNamespace(**vars(batch) | {"course": configured(OUTSIDE + MISSPELT)}), here=True)
    assert capsys.readouterr().err == f"{slip}\n"


@pytest.mark.parametrize(("lines", "said"), [
    ("", r"shows students' work as it is, .*preprocessors = \['course_lib.*\.Harmless'\] in .*, and start"),
    ("c.HTMLExporter.preprocessors = ['nbconvert.preprocessors.TagRemovePreprocessor']\n",
     r"preprocessors = \['nbconvert.preprocessors.TagRemovePreprocessor', 'course_lib.*\.Harmless'\]"),
    (HARMLESS.replace("Harmless", "Harmles"), "has what cannot be loaded, .* does not start: .*Harmles"),
    (HARMLESS, None),
    (HARMLESS.replace("HTMLExporter", "TemplateExporter"), None),
    ("from course_lib.grading.marking.harmless import Harmless\nc.HTMLExporter.preprocessors.append(Harmless)\n", None),
])  # fmt: skip
def test_before_a_course_is_graded_it_is_said_if_work_may_act_in_formgrader(configured, tmp_path, capsys, lines, said):
    course = configured(AS_NBGRADER + lines)
    (tmp_path / "source" / "hw").mkdir(parents=True)
    command._say_before(SimpleNamespace(course=course, assignment="hw", folder=lambda step: tmp_path / step), here=True)
    warnings = capsys.readouterr().err.splitlines()
    assert len(warnings) == (said is not None) and all(re.search(said, line) for line in warnings)


def test_students_code_is_kept_from_the_course_by_a_kernel_in_a_sandbox_too(configured, tmp_path, monkeypatch):
    kernel = tmp_path / "kernels" / "python3-sandbox" / "kernel.json"
    kernel.parent.mkdir(parents=True)
    settings = {"kernel_provisioner": {"provisioner_name": "course-sandbox", "config": {}}}
    kernel.write_text(json.dumps({"argv": ["python"], "display_name": "x", "language": "python", "metadata": settings}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    for lines, kept in [
        ("c.Execute.kernel_name = 'python3-sandbox'\n", True), ("c.Execute.kernel_name = 'python3'\n", False),
        ("c.Execute.kernel_name = 'nowhere'\n", False), ("", False),
        (NAMED, True), (f"{NAMED}c.ExecuteOutside.sandbox = 'off'\n", False),
    ]:  # fmt: skip
        assert in_sandbox(ExecuteOutside(parent=configured(lines)), "hw") == kept, lines
    course = configured("c.Execute.kernel_name = 'python3-sandbox'\n")
    assert "your" not in check_marking(ExecuteOutside(parent=course), "hw")


def test_a_gradebook_is_not_opened_to_look_for_slips_where_all_have_a_folder(tmp_path):
    (tmp_path / "hw").mkdir()
    assert slips(ExecuteOutside(assignments={"hw": []}), tmp_path, "no url") == []
