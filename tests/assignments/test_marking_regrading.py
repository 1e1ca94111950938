"""A regrading counts as a whole or not at all; a batch whose grading is stood in for, without kernels."""

import contextlib
import csv
import errno
import io
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath

import nbformat
import pytest
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import Autograde

from course_lib.grading.marking import alone, apart, batch, feedback, gradings, laying, overview, record, standing
from course_lib.grading.marking.__main__ import main
from course_lib.grading.marking.batch import Batch
from course_lib.grading.marking.execute import STOPPED
from course_lib.grading.marking.incoming import Arrived
from course_lib.grading.outside.prepared import hidden_tests
from tests.support.course import ASSIGNMENT, Course, filled_in, maximum, reference_answers
from tests.support.folders import refuse

FEEDBACK, GRADE = Batch._feedback, alone._grade
FIRST, SECOND = datetime(2026, 11, 3, 17), datetime(2026, 11, 9, 17)


def stands_in(points, ends=None, stopped=""):
    """A `_grade` that gives so many points for the first part, then ends as `ends` does; `stopped` is why early."""

    def grade(course, assignment, student):
        root = Path(course.coursedir.root)
        with alone.gradebook_of(course) as gradebook:
            gradebook.update_or_create_student(student)
            stamp = root / "submitted" / student / assignment / "timestamp.txt"
            time = datetime.fromisoformat(stamp.read_text()[:19]) if stamp.exists() else FIRST
            submission = gradebook.update_or_create_submission(assignment, student, timestamp=time)
            for row in submission.notebooks[0].grades:
                row.auto_score = points if row.name == "test-softmax" else 0
                row.needs_manual_grade = row.manual_score is not None  # as nbgrader does
            gradebook.db.commit()
        folder = root / course.coursedir.autograded_directory / student / assignment
        folder.mkdir(parents=True)
        error = nbformat.v4.new_output("error", ename=STOPPED, evalue=stopped)
        cells = [nbformat.v4.new_code_cell(outputs=[error])] if stopped else []
        executed = nbformat.v4.new_notebook(cells=cells, metadata={"points": points})
        nbformat.write(executed, folder / f"{assignment}.ipynb")
        return ends() if ends else ""

    return grade


def broken(*_):
    return 1 / 0


@pytest.fixture(scope="module")
def graded(generated, tmp_path_factory):
    """A course in which anna has 3 points of the work of the 3rd; nobody grades in it again."""
    made = Course(tmp_path_factory.mktemp("graded") / "course", copied_from=generated.root)
    with (made.root / "nbgrader_config.py").open("a") as config:
        config.write(f"c.ExecuteOutside.unsolved = [{ASSIGNMENT!r}]\n")  # which would be stood in for, too
    solved = filled_in(made.release, reference_answers(made.source))
    made.submit("anna", solved)
    handed_in(made, FIRST)
    with pytest.MonkeyPatch.context() as patch:
        surrounded(made, patch)
        ran(made)
    return made


@pytest.fixture
def course(graded, tmp_path, monkeypatch):
    """Another such course, in which she handed in other work on the 9th."""
    made = Course(tmp_path / "course", copied_from=graded.root)
    for step in ("submitted", "autograded"):
        shutil.copytree(graded.root / step, made.root / step)
    surrounded(made, monkeypatch)
    handed_in(made, SECOND, "\n# mended")
    return made


def surrounded(course, monkeypatch):
    """An instructor's environment, where `_grade` is stood in for and no feedback is made."""
    for name, value in course._environment("instructor").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(alone, "_grade", stands_in(3))
    monkeypatch.setattr(Batch, "_feedback", lambda self, gradebook, jobs: None)


def handed_in(course, time, more=""):
    folder = course.root / "submitted" / "anna" / ASSIGNMENT
    path = folder / f"{ASSIGNMENT}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[5].source += more
    nbformat.write(notebook, path)
    (folder / "timestamp.txt").write_text(f"{time} UTC")


def ran(course, force=False):
    made = Batch(course.root, ASSIGNMENT, say=lambda line: None)
    made.grade(force)
    return made, made.report()


def stands(course, student="anna"):
    """Points and time in the gradebook, and what the executed notebook says."""
    path = course.root / "autograded" / student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    with course.gradebook() as gradebook:
        submission = gradebook.find_submission(ASSIGNMENT, student)
        return submission.score, submission.timestamp, nbformat.read(path, as_version=4).metadata.points


@pytest.mark.parametrize("ends", [lambda: "nbgrader: broken", lambda: os._exit(9)], ids=["fails", "is killed"])
def test_a_regrading_that_fails_changes_nothing(course, monkeypatch, ends):
    monkeypatch.setattr(alone, "_grade", stands_in(1, ends))
    made, said = ran(course)
    assert stands(course) == (3.0, FIRST, 3)
    assert "marks are those of the work before" in made.entries["anna"].why and "anna (3 of 30)" in said
    monkeypatch.setattr(alone, "_grade", stands_in(4))
    made, _ = ran(course)
    assert stands(course) == (4.0, SECOND, 4) and not made.entries["anna"].trouble
    assert [path.name for path in (course.root / "autograded" / "anna").iterdir()] == [ASSIGNMENT]


def test_nbgraders_own_reason_is_in_the_line_of_the_student(course, monkeypatch):
    """By nbgrader's own Autograde, whose first step fails; no kernel is started."""
    monkeypatch.setattr(alone, "_grade", GRADE)
    monkeypatch.setattr(Autograde, "init_assignment", broken)
    assert "anna (3 of 30): It could not be graded: nbgrader: ZeroDivisionError: division by zero" in ran(course)[1]


def test_work_that_stops_keeps_what_it_earned_and_says_so(course, monkeypatch):
    monkeypatch.setattr(alone, "_grade", stands_in(2, stopped="Stopped: the kernel died"))
    made, _ = ran(course)
    assert stands(course) == (2.0, SECOND, 2)
    assert made.entries["anna"].trouble == "Not all of it ran. Stopped: the kernel died"


def test_later_work_replaces_the_earlier_unless_it_cannot_be_read(course):
    made, _ = ran(course)
    assert made.entries["anna"].why == "replaces the work of 2026-11-03 17:00 UTC, which had 3 points"
    (course.root / "submitted" / "anna" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").write_bytes(b"{")
    made, said = ran(course)
    assert stands(course) == (3.0, SECOND, 3) and "anna (3 of 30)" in said
    assert "cut off" in made.entries["anna"].why and "marks are those of the work before" in made.entries["anna"].why


def test_what_a_person_marks_meanwhile_stays(course, monkeypatch):
    """A grading takes minutes, and the one who marks the written answers need not wait for it."""

    def marked() -> str:
        with course.gradebook() as gradebook:
            grade = gradebook.find_grade("explain", ASSIGNMENT, ASSIGNMENT, "anna")
            grade.manual_score, grade.extra_credit, grade.needs_manual_grade = 3.0, 0.5, False
            gradebook.find_comment("explain", ASSIGNMENT, ASSIGNMENT, "anna").manual_comment = "well done"
            gradebook.db.commit()
        return ""

    def found():
        with course.gradebook() as gradebook:
            grade = gradebook.find_grade("explain", ASSIGNMENT, ASSIGNMENT, "anna")
            comment = gradebook.find_comment("explain", ASSIGNMENT, ASSIGNMENT, "anna")
            return grade.manual_score, grade.extra_credit, comment.manual_comment, grade.needs_manual_grade

    monkeypatch.setattr(alone, "_grade", stands_in(3, marked))
    ran(course)
    assert found() == (3.0, 0.5, "well done", True)  # of the work before: somebody must look at the new one
    ran(course, force=True)
    assert found() == (3.0, 0.5, "well done", False)


def test_the_folders_of_a_course_may_be_on_several_file_systems(course, monkeypatch):
    own = {"submitted", "autograded", ".grading", "replaced", "undecided"}

    def disk(path) -> str:
        (name, *_) = Path(path).relative_to(course.root).parts
        return name if name in own else "the course's"

    def within_one(move):
        def moved(source, target, **how):
            if disk(source) != disk(target):
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            return move(source, target, **how)

        return moved

    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, within_one(getattr(os, name)))
    monkeypatch.setattr(alone, "_grade", stands_in(4))
    assert not ran(course)[0].entries["anna"].trouble and stands(course) == (4.0, SECOND, 4)
    later = {PurePosixPath(f"{ASSIGNMENT}.ipynb"): b"later"}
    assert laying.lay(Arrived("anna", "x", later, SECOND + timedelta(1)), course.root, ASSIGNMENT, []) == "again"
    assert laying.lay(Arrived("anna", "x", {PurePosixPath("a"): b""}), course.root, ASSIGNMENT, []) == "undecided"
    assert (course.root / "submitted" / "anna" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").read_bytes() == b"later"
    assert [path.name for path in (course.root / "replaced" / "anna" / ASSIGNMENT / "1").glob("*.ipynb")]
    assert (course.root / "undecided" / "anna" / ASSIGNMENT / "1" / "a").is_file()
    assert [path.name for path in (course.root / "submitted" / "anna").iterdir()] == [ASSIGNMENT]


def test_a_file_beside_the_tests_counts_as_one_of_them(course):
    ran(course)
    assert ran(course)[0].graded == 0
    data = course.root / "source" / ASSIGNMENT / "data.csv"
    data.write_text("1,2")
    assert ran(course)[0].graded == 1
    (data.parent / ".ipynb_checkpoints").mkdir(exist_ok=True)
    (data.parent / ".ipynb_checkpoints" / "any.ipynb").write_text("{}")
    assert ran(course)[0].graded == 0
    data.write_text("1,3")
    assert ran(course)[0].graded == 1


@pytest.mark.skipif(sys.platform == "win32", reason="a link needs rights there")
def test_a_folder_that_is_a_link_is_named_for_what_it_is(course):
    place = course.root / "submitted" / "anna" / ASSIGNMENT
    place.rename(course.folder / "elsewhere")
    place.symlink_to(course.folder / "elsewhere")
    made, said = ran(course)
    assert "is a link, or no folder: put the files themselves there" in made.entries["anna"].why
    assert "anna (3 of 30)" in said and stands(course)[0] == 3.0


def test_feedback_is_made_where_something_changed(course, monkeypatch):
    made = course.folder / "made.txt"

    def generate_feedback(self, assignment, student, force):
        (course.root / "feedback" / student / assignment).mkdir(parents=True, exist_ok=True)
        with made.open("a") as file:
            file.write(f"{student} ")
        return {"success": True}

    monkeypatch.setattr(Batch, "_feedback", FEEDBACK)
    monkeypatch.setattr(feedback.NbGraderAPI, "generate_feedback", generate_feedback)
    ran(course)
    ran(course)
    assert made.read_text() == "anna "
    with course.gradebook() as gradebook:
        gradebook.find_grade("explain", ASSIGNMENT, ASSIGNMENT, "anna").manual_score = 3.5
        gradebook.db.commit()
    ran(course)
    assert made.read_text() == "anna anna "


@pytest.mark.parametrize("ends", [None, lambda: "nbgrader: broken"], ids=["and graded again", "and fails now"])
def test_a_student_removed_from_the_gradebook_stops_no_report(course, monkeypatch, ends):
    """The marks that the record speaks of are gone; the row says nothing of them, and all others have theirs."""
    ran(course)
    with course.gradebook() as gradebook:
        gradebook.remove_student("anna")
    monkeypatch.setattr(Batch, "_feedback", FEEDBACK)
    monkeypatch.setattr(feedback.NbGraderAPI, "generate_feedback", lambda *_, **__: {"success": True})
    monkeypatch.setattr(alone, "_grade", stands_in(2, ends))
    made, said = ran(course)
    assert ("anna (no score): It could not be graded: nbgrader: broken" in said) == bool(ends)
    assert "marks are those of the work before" not in said


def test_a_student_removed_with_all_work_is_left_out_and_named_once(course, monkeypatch):
    ran(course)
    monkeypatch.setattr(Batch, "_feedback", FEEDBACK)
    with course.gradebook() as gradebook:
        gradebook.remove_student("anna")
    shutil.rmtree(course.root / "submitted" / "anna")
    assert (course.root / "autograded" / "anna" / ASSIGNMENT).is_dir()
    made, said = ran(course)
    assert "anna: neither in submitted/ nor in the gradebook any more; left out" in said and not made.entries
    assert "anna" not in ran(course)[1]


def test_nobodys_feedback_stops_that_of_others(course, monkeypatch):
    course.submit("zoe", nbformat.read(next((course.root / "submitted").rglob("*.ipynb")), as_version=4))

    def generate_feedback(self, assignment, student, force):
        if student == "anna":
            raise OSError(28, "No space left on device")
        (course.root / "feedback" / student / assignment).mkdir(parents=True)
        return {"success": True}

    monkeypatch.setattr(Batch, "_feedback", FEEDBACK)
    monkeypatch.setattr(feedback.NbGraderAPI, "generate_feedback", generate_feedback)
    assert "anna: no feedback: [Errno 28] No space left on device" in ran(course)[1]
    assert [path.name for path in (course.root / "feedback").iterdir()] == ["zoe"]


def test_who_has_a_notebook_that_cannot_be_read_gets_no_feedback_and_stops_nobody(course, monkeypatch):
    course.submit("zoe", nbformat.read(next((course.root / "submitted").rglob("*.ipynb")), as_version=4))
    made, _ = ran(course)
    (course.root / "autograded" / "anna" / ASSIGNMENT / "folder.ipynb").mkdir()
    monkeypatch.setattr(Batch, "_feedback", FEEDBACK)
    monkeypatch.setattr(feedback.NbGraderAPI, "generate_feedback", lambda *_, **__: {"success": True})
    assert "anna: no feedback: [Errno 21] Is a directory" in made.report() and made.entries["zoe"].feedback


def test_a_first_grading_that_fails_leaves_nothing(course, monkeypatch):
    course.submit("zoe", nbformat.read(next((course.root / "submitted").rglob("*.ipynb")), as_version=4))
    monkeypatch.setattr(alone, "_grade", stands_in(1, lambda: "nbgrader: broken"))
    ran(course)
    with pytest.raises(MissingEntry):
        stands(course, "zoe")
    assert not (course.root / "autograded" / "zoe" / ASSIGNMENT).exists()


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("place", [(gradings, "wait_for_one"), (gradings, "enter"), (Batch, "settle")], ids=str)
def test_a_run_that_is_interrupted_is_made_up_for_by_the_next(course, monkeypatch, place):
    """Before a grading is over; when it is, between its two places; and after both, with its record."""
    at_once = place[1] != "wait_for_one"
    monkeypatch.setattr(alone, "_grade", stands_in(1, None if at_once else lambda: time.sleep(20)))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(*place, interrupt)
        ran(course)[0].settle([])
    assert not multiprocessing.active_children()
    points, time, executed = stands(course)
    assert (points, time) == ((1.0, SECOND) if place[0] is Batch else (3.0, FIRST))
    assert executed == (1 if at_once else 3)
    assert not (course.root / ".grading").exists()
    monkeypatch.setattr(alone, "_grade", stands_in(4))
    made, _ = ran(course)
    assert made.graded == (place[0] is not Batch)
    assert stands(course) == ((1.0, SECOND, 1) if place[0] is Batch else (4.0, SECOND, 4))


def test_works_are_graded_side_by_side_and_entered_by_one(course, monkeypatch):
    """Each of two waits until the other is under way."""
    course.submit("zoe", nbformat.read(next((course.root / "submitted").rglob("*.ipynb")), as_version=4))

    def both(folder=course.folder):
        (folder / str(os.getpid())).write_text("")
        end = time.monotonic() + 30
        while len(list(folder.glob("[0-9]*"))) < 2:
            if time.monotonic() > end:
                return "nbgrader: alone"
            time.sleep(0.05)
        return ""

    monkeypatch.setattr(alone, "_grade", stands_in(2, both))
    said = []
    made = Batch(course.root, ASSIGNMENT, say=said.append)
    made.grade(jobs=2)
    assert [line[-8:] for line in said] == ["(1 of 2)", "(2 of 2)"]
    assert stands(course) == (2.0, SECOND, 2) and stands(course, "zoe")[0] == 2.0
    for path in course.folder.glob("[0-9]*"):
        path.unlink()
    made.grade(force=True, jobs=3)
    assert not made.entries["anna"].trouble and made.graded == 4


def test_no_grading_sees_the_gradebook_or_what_another_student_has(course, monkeypatch):
    def looks(own, assignment, student):
        with alone.gradebook_of(own) as gradebook:
            seen = [each.id for each in gradebook.students]
            assert str(own.coursedir.db_url) != str(alone.open_course(course.root).coursedir.db_url)
        return f"nbgrader: it sees {seen}"

    for name in ("zoe", "known"):
        course.submit(name, nbformat.read(next((course.root / "submitted").rglob("*.ipynb")), as_version=4))
    with course.gradebook() as gradebook:
        gradebook.update_or_create_student("known")  # of the roster, and never graded: a course may ask for that
    monkeypatch.setattr(alone, "_grade", looks)
    made, _ = ran(course)
    assert "it sees ['anna']" in made.entries["anna"].trouble and "it sees []" in made.entries["zoe"].trouble
    assert "it sees ['known']" in made.entries["known"].trouble


@pytest.mark.skipif(apart.FORK != "fork", reason="only forked processes have what was compiled before")
def test_what_a_grading_asks_of_its_gradebook_was_compiled_before_it_was_forked(course, monkeypatch):
    def says_what_is_new(own, assignment, student):
        own.config.Autograde.autograde_preprocessors = ["nbgrader.preprocessors.SaveAutoGrades"]
        with alone.gradebook_of(own) as gradebook:
            compiled = gradebook.engine._compiled_cache
        before = {*map(str, compiled.values())}
        assert hidden_tests({"db_url": own.coursedir.db_url, "notebook": assignment, "assignment": assignment})
        why = GRADE(own, assignment, student)
        new = {*map(str, compiled.values())} - before
        return why or f"nbgrader: beside {len(before)} it compiled {new or 'none'}"

    course.submit("zoe", nbformat.read(next((course.root / "submitted").rglob("*.ipynb")), as_version=4))
    monkeypatch.setattr(alone, "_grade", says_what_is_new)
    made, _ = ran(course)
    for student in ("anna", "zoe"):  # who was graded before, and who is new
        assert re.search(r"beside \d\d+ it compiled none", made.entries[student].trouble)


@pytest.mark.parametrize(("what", "begins"), [
    ("nothing", False), ("force", True), ("a new student", True), ("an unreadable work", False), ("other tests", True),
    ("a cluster", False),
])  # fmt: skip
def test_the_sandbox_begins_to_import_where_a_work_is_surely_graded(what, begins, course, monkeypatch):
    ran(course)
    done = []
    monkeypatch.setattr(gradings, "begin_sandbox", lambda settings, assignment, root: done.append(assignment))
    monkeypatch.setattr(gradings.Gradings, "_prepare_forks", lambda self: done.append("the rest"))
    if what in ("a new student", "an unreadable work"):
        course.submit("zoe", nbformat.read(next((course.root / "submitted").rglob("*.ipynb")), as_version=4))
    if what == "an unreadable work":
        next((course.root / "submitted" / "zoe").rglob("*.ipynb")).write_bytes(b"%PDF")
        with monkeypatch.context() as before:
            before.setattr(gradings.Gradings, "_prepare_forks", lambda self: None)
            ran(course)
        done.clear()
    made = Batch(course.root, ASSIGNMENT, say=print)
    if what == "other tests":
        made.tests = "other"
    folders = sorted((course.root / "submitted").glob(f"*/{ASSIGNMENT}"))
    waits = gradings.Gradings(made, what in ("force", "a cluster"), "tcp://127.0.0.1:9" if what == "a cluster" else "")
    monkeypatch.setattr(waits, "_begun", lambda folder: [])
    waits.run(folders, 1)
    assert done == [ASSIGNMENT] * begins + ["the rest"]


def test_what_only_saves_time_stops_nobody(course, monkeypatch):
    monkeypatch.setattr(gradings, "begin_sandbox", broken)
    monkeypatch.setattr(gradings, "rehearse", broken)
    monkeypatch.setattr(alone, "_grade", stands_in(2))
    ran(course)
    made = Batch(course.root, ASSIGNMENT, say=print)
    made.grade(force=True)
    assert not made.entries["anna"].trouble and stands(course)[0] == 2.0


def test_all_that_stands_can_be_entered_elsewhere(course, tmp_path):
    ran(course)
    with course.gradebook() as gradebook:
        submission = gradebook.find_submission(ASSIGNMENT, "anna")
        submission.extension = timedelta(hours=3)
        submission.notebooks[0].late_submission_penalty = 1.5
        submission.notebooks[0].comments[0].manual_comment = "well done"
        grade = gradebook.find_grade("explain", ASSIGNMENT, ASSIGNMENT, "anna")
        grade.manual_score, grade.extra_credit = 3.5, 0.5
        gradebook.db.commit()
        stands = standing.standing(gradebook, ASSIGNMENT, "anna")
        standing.definitions(gradebook, tmp_path / "other.db")
    with Gradebook(f"sqlite:///{tmp_path / 'other.db'}", gradebook.course_id) as other:
        standing.enter(other, ASSIGNMENT, "anna", stands)
        assert standing.standing(other, ASSIGNMENT, "anna") == stands
        assert "well done" in str(stands) and other.find_submission(ASSIGNMENT, "anna").score == 7


def test_a_mark_whose_cell_somebody_removed_from_the_gradebook_stops_nothing(course):
    ran(course)
    with course.gradebook() as gradebook:
        grade = gradebook.find_grade("test-softmax", ASSIGNMENT, ASSIGNMENT, "anna")
        gradebook.db.delete(grade.cell)
        gradebook.db.commit()
        assert standing.standing(gradebook, ASSIGNMENT, "anna")
        standing.enter(gradebook, ASSIGNMENT, "anna", standing.standing(gradebook, ASSIGNMENT, "anna"))
    made, _ = ran(course, force=True)
    assert not made.entries["anna"].trouble and (course.root / "grades.csv").is_file()


def test_the_overview_counts_marked_work_alone(course, monkeypatch):
    """anna has 3 of 3 points and zoe 1; that of the last could not be graded."""
    for name in ("zoe", "zzz"):
        course.submit(name, nbformat.read(next((course.root / "submitted").rglob("*.ipynb")), as_version=4))
    ran(course)
    monkeypatch.setattr(alone, "_grade", stands_in(1))
    (course.root / "submitted" / "zoe" / ASSIGNMENT / "more.txt").write_text("other work")
    (course.root / "submitted" / "zzz" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").write_bytes(b"{")
    with course.gradebook() as gradebook:
        gradebook.remove_submission(ASSIGNMENT, "zzz")
    ran(course)
    rows = list(csv.DictReader((course.root / "marks" / f"{ASSIGNMENT}.csv").open(encoding="utf-8")))
    (found,) = [row for row in rows if row["question"] == "test-softmax"]
    points = maximum(course.source)["test-softmax"]
    assert (float(found["points"]), float(found["mean"])) == (points, 2.0)
    shares = [int(found[name]) for name in ("none", "under half", "half or more", "all")]
    assert sum(shares) == 2 and shares[0] == 0
    (waits,) = [row for row in rows if row["question"] == "explain"]
    assert (waits["mean"], waits["waiting"]) == ("0.0", "0")
    with course.gradebook() as gradebook:  # of which no record says that its marks are ours
        assert {sum(each.shares) for each in overview.questions(gradebook, ASSIGNMENT, {})} == {0}
    assert "cut off" in (course.root / "marks" / f"{ASSIGNMENT}.html").read_text(encoding="utf-8")


class Terminal(io.StringIO):
    """A terminal, as far as a bar needs one."""

    def isatty(self):
        return True

    @property
    def screen(self):
        """What a person sees in the end, line by line."""
        lines = []
        for line in self.getvalue().split("\n"):
            seen = ""
            for part in line.split("\r"):
                seen = part + seen[len(part) :]
            lines.append(seen.rstrip())
        return lines


def test_on_a_terminal_a_bar_counts_and_estimates_below_the_lines(course, monkeypatch):
    for student, content in (("zoe", None), ("broken", b"{")):
        course.submit(student, nbformat.read(next((course.root / "submitted").rglob("*.ipynb")), as_version=4))
        if content:
            (course.root / "submitted" / student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").write_bytes(content)
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    wait, threads = gradings.wait_for_one, set()
    monkeypatch.setattr(gradings, "wait_for_one", lambda *given: threads.update(threading.enumerate()) or wait(*given))
    monkeypatch.setattr(alone, "_grade", stands_in(3, lambda: time.sleep(2) or ""))
    Batch(course.root, ASSIGNMENT).grade(jobs=1)
    assert terminal.screen == ["anna: graded", "broken: needs attention", "zoe: graded", ""]
    drawn = re.findall(r"(\d)/3 \[(\d\d:\d\d)<(\d\d:\d\d|\?)", terminal.getvalue())
    assert [int(done) for done, _, _ in drawn] == sorted(int(done) for done, _, _ in drawn)
    assert {done for done, _, _ in drawn} == {"0", "1", "2", "3"}
    assert len({clock for done, clock, _ in drawn if done == "0"}) > 1  # it goes on while nothing is over
    assert "?" not in {left for done, _, left in drawn if done == "2"}
    assert threads and "tqdm_monitor" not in {thread.name for thread in threads}


ON_A_TERMINAL = """
import contextlib, time
from types import SimpleNamespace
from course_lib.grading.marking import gradings

gradings.workplace = lambda course: contextlib.nullcontext()
gradings.Gradings._is_surely_graded = lambda self, folder: False
gradings.Gradings._prepare_forks = lambda self: None
gradings.grade_solution = lambda batch, grading: None
gradings.Gradings._begun = lambda self, folder: time.sleep(0.2) or self.say(f"{folder}: graded") or []
gradings.Gradings(SimpleNamespace(say=print, course=None, assignment=""), False).run(["anna", "zoe"], 1)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="pseudo-terminals differ")
@pytest.mark.parametrize("size", [(24, 100), (0, 0)], ids=["its size is known", "its size is unknown"])
def test_a_real_terminal_shows_the_bar(size):
    import pty  # which Windows lacks
    import termios

    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, size)
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen([sys.executable, "-c", ON_A_TERMINAL], stdin=theirs, stdout=theirs, env=environment)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # its end
        while part := os.read(ours, 1000):
            shown += part
    os.close(ours)
    assert process.wait() == 0
    assert shown.count(b"anna: graded") == shown.count(b"zoe: graded") == 1
    assert b"1/2 [" in shown and b"2/2 [" in shown


def test_where_there_is_no_terminal_each_line_counts(course, monkeypatch, capsys):
    course.submit("zoe", nbformat.read(next((course.root / "submitted").rglob("*.ipynb")), as_version=4))
    Batch(course.root, ASSIGNMENT).grade(jobs=1)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("anna: graded  (1 of 2)\nzoe: graded  (2 of 2)\n", "")


def test_a_course_may_call_its_folders_otherwise(course, monkeypatch, capsys):
    """As c.CourseDirectory lets it; all that marking reads and writes goes along."""
    names = {"source": "in", "release": "out", "submitted": "handed_in", "autograded": "marked", "feedback": "returned"}
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write("c.ExecuteOutside.sandbox = 'off'\n")
        for step, name in names.items():
            config.write(f"c.CourseDirectory.{step}_directory = {name!r}\n")
            if (course.root / step).is_dir():
                (course.root / step).rename(course.root / name)
    archive = course.folder / "archive" / "Zoe_4712_assignsubmission_file_"
    archive.mkdir(parents=True)
    shutil.copy(course.root / "handed_in" / "anna" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb", archive)

    def generate_feedback(self, assignment, student, force):
        (course.root / "returned" / student / assignment).mkdir(parents=True)
        return {"success": True}

    monkeypatch.setattr(Batch, "_feedback", FEEDBACK)
    monkeypatch.setattr(feedback.NbGraderAPI, "generate_feedback", generate_feedback)
    monkeypatch.setattr(alone, "_grade", stands_in(2))
    assert main([ASSIGNMENT, "--course", str(course.root), "--zip", str(archive.parent), "--jobs", "1"]) == 0
    said = capsys.readouterr().out
    assert "2 graded now" in said and f"Feedback: {course.root / 'returned'}." in said
    assert "Could not be told" not in said
    for student in ("4712", "anna"):
        assert all((course.root / names[step] / student / ASSIGNMENT).is_dir() for step in names if step in (
            "submitted", "autograded", "feedback"))  # fmt: skip
    assert not [step for step in names if (course.root / step).exists()]
    assert main([ASSIGNMENT, "--course", str(course.root), "--jobs", "1"]) == 0
    assert "0 graded now" in capsys.readouterr().out
    assert main([ASSIGNMENT, "--course", str(course.root), "--jobs", "1", "--dry-run"]) == 0
    assert "2 students: 2 as recorded" in capsys.readouterr().out


def test_a_course_with_folders_in_another_order_is_refused(course, capsys):
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write("c.CourseDirectory.directory_structure = '{student_id}/{nbgrader_step}/{assignment_id}'\n")
    assert main([ASSIGNMENT, "--course", str(course.root)]) == 2
    assert "directory_structure is '{student_id}/{nbgrader_step}/{assignment_id}'" in capsys.readouterr().err


def test_how_long_a_run_may_still_take_is_said():
    assert gradings._left(10, 130, 300) == "  (10 of 130, about 60 minutes left)"
    assert gradings._left(129, 130, 3000) == "  (129 of 130)"


def test_a_course_that_cannot_be_written_to_is_said_so(course, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(alone, "definitions", full)
    with pytest.raises(ValueError, match="Nothing more can be graded in .*: No space left on device"):
        Batch(course.root, ASSIGNMENT, say=lambda line: None).grade()


def test_the_time_is_that_of_the_work_also_where_nobody_knows_it(course, monkeypatch):
    stamp = course.root / "submitted" / "anna" / ASSIGNMENT / "timestamp.txt"
    stamp.unlink()
    monkeypatch.setattr(alone, "_grade", stands_in(4))
    ran(course)
    assert stands(course) == (4.0, None, 4)
    stamp.write_text("2026-11-04 17:00:00 UTC")  # an instructor knows; the work is the same
    made, _ = ran(course)
    assert stands(course) == (4.0, datetime(2026, 11, 4, 17), 4) and made.graded == 0


def test_a_gradebook_that_is_new_is_filled_again(course):
    ran(course)
    with course.gradebook() as gradebook:
        gradebook.remove_submission(ASSIGNMENT, "anna")
    made, _ = ran(course)
    assert made.graded == 1 and stands(course)[0] == 3.0


def test_what_cannot_be_written_stops_nobody_else(course, monkeypatch, tmp_path):
    archive = tmp_path / "all"
    for name in ("A_1", "B_2", "C_3"):
        folder = archive / f"{name}_assignsubmission_file_"
        folder.mkdir(parents=True)
        (folder / "hw.ipynb").write_text("{}")
    write = Path.write_bytes

    def full(path, content):
        if "2" in path.parts:
            raise OSError(28, "No space left on device")
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    made = Batch(course.root, ASSIGNMENT, say=lambda line: None)
    made.collect(archive)
    assert {name for name in "123" if (course.root / "submitted" / name).is_dir() and
            (course.root / "submitted" / name / ASSIGNMENT).is_dir()} == {"1", "3"}  # fmt: skip
    assert "cannot be written: No space left on device" in made.entries["2"].why
    assert made.entries["2"].needs_attention and not made.entries["1"].unlaid


@pytest.fixture
def collected(course, tmp_path, monkeypatch):
    """Collects zoe's work from a folder; takes whether her data can be read, and returns the run and her entry."""
    folder = tmp_path / "all" / "Zoe_2_assignsubmission_file_"
    folder.mkdir(parents=True)
    shutil.copy(course.root / "submitted" / "anna" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb", folder)
    (folder / "data.csv").write_text("1,2")
    def collect(readable):
        made = Batch(course.root, ASSIGNMENT, say=lambda line: None)
        with monkeypatch.context() as patch:
            if not readable:
                refuse(patch, lambda path: path == folder / "data.csv")
            made.collect(tmp_path / "all")
        return made, made.entries["2"]

    return collect


def test_work_of_which_a_file_could_not_be_read_needs_attention_until_it_comes(course, collected):
    for readable in (False, False, True):
        _, entry = collected(readable)
        assert entry.needs_attention != readable
        assert ("Not all came" in entry.why and "data.csv' cannot be read: Permission denied" in entry.why) != readable
        assert (course.root / "submitted" / "2" / ASSIGNMENT / "data.csv").exists() == readable


def test_what_work_lacks_is_said_beside_what_the_next_one_lacks(tmp_path, collected):
    collected(False)
    (tmp_path / "all" / "Zoe_2_assignsubmission_file_" / "more.csv").write_text("3")
    _, entry = collected(False)
    assert entry.why.count("data.csv' cannot be read: Permission denied") == 2
    assert "What came last from Moodle: Zoe could not be read wholly" in entry.why and ". Not all came" in entry.why
    assert not collected(True)[1].needs_attention


def test_whole_work_stays_where_the_next_cannot_be_read_wholly_and_that_is_said(course, collected):
    place = course.root / "submitted" / "2" / ASSIGNMENT
    for readable in (True, False, True):
        made, entry = collected(readable)
        assert entry.needs_attention != readable
        assert (place / "data.csv").is_file() and not (course.root / "replaced" / "2").exists()
        if not readable:
            assert "What came last from Moodle: Zoe could not be read wholly, so the work before it stays" in entry.why
            assert entry.why.endswith("'Zoe_2_assignsubmission_file_/data.csv' cannot be read: Permission denied")
            made.grade()
            assert entry.marked and not entry.trouble and entry.unlaid, "graded, and that is still said"
    (place / "hw.ipynb").write_text("mended by hand")
    assert [collected(readable)[1].needs_attention for readable in (True, False, True)] == [False, True, False]


def test_what_a_run_has_laid_is_recorded_however_it_ends(course, monkeypatch, tmp_path):
    for name in ("A_1", "B_2", "C_3"):
        folder = tmp_path / "all" / f"{name}_assignsubmission_file_"
        folder.mkdir(parents=True)
        (folder / "hw.ipynb").write_text("{}")
    lay, save, saved = laying.lay, record.save, []

    def until(each, *arguments):
        return interrupt() if each.student == "3" else lay(each, *arguments)

    def noted(path, entries):
        saved.append(sum(bool(entry.origin) for entry in entries.values()))
        save(path, entries)

    monkeypatch.setattr(laying, "lay", until)
    monkeypatch.setattr(record, "save", noted)
    for seconds, times in ((1000, [2]), (-1, [1, 2, 2])):  # in the end; and as it goes on, for a run that is killed
        saved.clear()
        made = Batch(course.root, ASSIGNMENT, say=lambda line: None)
        monkeypatch.setattr(batch, "SAVE_S", seconds)
        with pytest.raises(KeyboardInterrupt):
            made.collect(tmp_path / "all")
        assert saved == times
        entries = record.load(made.record)
        assert [(entries[name].origin, len(entries[name].came)) for name in "12"] == [
            ("Moodle: A", 1),
            ("Moodle: B", 1),
        ]
        made.record.unlink()
        shutil.rmtree(course.root / "submitted")


def test_two_ways_to_hand_in_wait_for_a_person(course, tmp_path):
    ran(course)
    folder = tmp_path / "all" / "Anna_7_assignsubmission_file_"
    folder.mkdir(parents=True)
    (folder / "hw.ipynb").write_text("{}")
    (course.root / "roster.csv").write_text("student_id,lms_id\nanna,7\n")
    made = Batch(course.root, ASSIGNMENT, say=lambda line: None)
    made.collect(tmp_path / "all")
    made.grade()
    said = made.report()
    assert "needs attention" in said and f"the other is undecided/anna/{ASSIGNMENT}/1" in said
    shutil.rmtree(course.root / "undecided" / "anna" / ASSIGNMENT / "1")
    made, said = ran(course)
    assert not made.entries["anna"].needs_attention


def test_a_mark_by_hand_stays_for_the_same_work_and_not_for_other(course):
    def marked_by_hand(gradebook):
        return gradebook.find_grade("explain", ASSIGNMENT, ASSIGNMENT, "anna")

    ran(course)
    with course.gradebook() as gradebook:
        grade = marked_by_hand(gradebook)
        grade.manual_score, grade.needs_manual_grade = 3.5, False
        gradebook.db.commit()
    for change, waits in ((False, False), (True, True)):
        if change:
            handed_in(course, SECOND, "\n# other work")
        made = Batch(course.root, ASSIGNMENT, say=lambda line: None)
        made.grade(force=True)
        with course.gradebook() as gradebook:
            grade = marked_by_hand(gradebook)
            assert (grade.manual_score, grade.needs_manual_grade) == (3.5, waits)


@pytest.mark.parametrize(("points", "waits"), [(3, False), (4, True)], ids=["same", "corrected"])
def test_an_override_of_a_test_that_was_corrected_waits_for_a_person(course, monkeypatch, points, waits):
    ran(course)
    with course.gradebook() as gradebook:
        grade = gradebook.find_grade("test-softmax", ASSIGNMENT, ASSIGNMENT, "anna")
        grade.manual_score, grade.needs_manual_grade = 3.5, False
        gradebook.db.commit()
    monkeypatch.setattr(alone, "_grade", stands_in(points))
    Batch(course.root, ASSIGNMENT, say=lambda line: None).grade(force=True)
    with course.gradebook() as gradebook:
        assert gradebook.find_grade("test-softmax", ASSIGNMENT, ASSIGNMENT, "anna").needs_manual_grade == waits


def test_an_extension_in_the_gradebook_stays(course):
    ran(course)
    with course.gradebook() as gradebook:
        gradebook.find_submission(ASSIGNMENT, "anna").extension = timedelta(hours=3)
        gradebook.db.commit()
    Batch(course.root, ASSIGNMENT, say=lambda line: None).grade(force=True)
    with course.gradebook() as gradebook:
        assert gradebook.find_submission(ASSIGNMENT, "anna").extension == timedelta(hours=3)


def test_whoever_is_not_in_the_roster_is_named(course):
    (course.root / "roster.csv").write_text("student_id\nzoe\n")
    assert "Not in roster.csv: anna" in ran(course)[1]


WORKSHEET = "Identifier,Grade,Maximum Grade\nParticipant 7,,{}\n"


@pytest.mark.parametrize(("name", "content", "why"), [
    ("dates.csv", "assignment,due\nattention-from-scratch,12/01/2026\n", "meant in one way alone"),
    ("dates.csv", "assignment,due,student_id\nattention-from-scratch,2026-12-01,anna\n", "needs one row with a due"),
    ("moodle.csv", "Identifier,Note\n", "no column 'Grade'"),
    ("moodle.csv", WORKSHEET.format("20.00"), "counts to 20.00 points, the assignment to 30"),
    ("moodle.csv", None, "moodle.csv cannot be read: No such file"),
    ("marks/another.json", "{", "another.json cannot be read"),
])  # fmt: skip
def test_a_slip_in_a_table_is_said_before_anything_is_graded(course, monkeypatch, capsys, name, content, why):
    (course.root / "moodle.csv").write_text(WORKSHEET.format("30.00"))
    if content is None:
        (course.root / name).unlink()
    else:
        (course.root / name).write_text(content)

    def too_late(*_):
        raise AssertionError("it was begun")

    monkeypatch.setattr(Batch, "collect", too_late)
    assert main([ASSIGNMENT, "--course", str(course.root), "--moodle", str(course.root / "moodle.csv")]) == 2
    assert why in capsys.readouterr().err


def test_tables_without_a_slip_change_nothing_when_they_are_checked(course):
    (course.root / "moodle.csv").write_text(WORKSHEET.format("30.00"))
    (course.root / "dates.csv").write_text(f"assignment,due\n{ASSIGNMENT},2026-12-01\n")
    before = {path: path.read_bytes() for path in course.root.iterdir() if path.is_file()}
    Batch(course.root, ASSIGNMENT, say=lambda line: None).check(course.root / "moodle.csv", None)
    assert {path: path.read_bytes() for path in course.root.iterdir() if path.is_file()} == before


def test_marks_that_somebody_looked_at_stand_for_this_work_and_this_trouble(course):
    as_released = course.root / "release" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    shutil.copy(as_released, course.root / "submitted" / "anna" / ASSIGNMENT)

    def settled(*names):
        made = Batch(course.root, ASSIGNMENT, say=lambda line: None)
        made.grade()
        made.settle(names)
        return made, made.report()

    made, said = settled("nobody")
    assert made.entries["anna"].needs_attention and "nothing was written in it" in said
    assert "nobody was not settled: no marks of the last work are there" in said
    made, said = settled("anna")
    assert not made.entries["anna"].needs_attention
    assert "Needs attention" not in said
    assert made.entries["anna"].why.startswith("settled by hand: nothing was written in it")
    made, said = settled()  # in a later run, too
    assert not made.entries["anna"].needs_attention
    place = course.root / "submitted" / "anna" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    place.write_text(as_released.read_text() + "\n")  # other work, in which nothing is written either
    made, said = settled()
    assert made.entries["anna"].needs_attention
    nbformat.write(filled_in(course.release, reference_answers(course.source)), place)
    made, said = settled("anna")
    assert "anna was not settled: there is no trouble with the marks" in said and not made.entries["anna"].settled


def test_that_a_run_was_interrupted_is_said_at_once_and_at_the_end(course):
    """A slip in a table ends a run before its end."""
    (course.root / "submitted" / "anna" / f".{ASSIGNMENT}.arriving").mkdir()
    said = []
    made = Batch(course.root, ASSIGNMENT, say=said.append)
    assert said == made.problems and said[0].startswith("anna: a run was interrupted here; what came was not laid")


def test_what_could_not_be_graded_cannot_be_settled(course, monkeypatch):
    monkeypatch.setattr(alone, "_grade", stands_in(1, lambda: "nbgrader: broken"))
    made = Batch(course.root, ASSIGNMENT, say=lambda line: None)
    made.grade()
    made.settle(["anna"])
    assert made.entries["anna"].needs_attention
    assert made.problems[-1] == "anna was not settled: no marks of the last work are there"


def test_a_course_that_names_no_exchange_is_told_nothing_about_one(course, monkeypatch):
    monkeypatch.setenv("NBGRADER_EXCHANGE", "")
    made = Batch(course.root, ASSIGNMENT, say=lambda line: None)
    made.collect()
    assert made.problems == []
