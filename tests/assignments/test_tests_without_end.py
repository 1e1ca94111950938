"""Hidden tests that would compute for ever with what a student's code returns, where nbgrader's own process grades."""

import asyncio
import functools
import logging
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import psutil
import pytest
from jupyter_core.utils import ensure_event_loop
from nbgrader.converters.base import NbGraderException
from nbgrader.utils import compute_checksum

import course_lib
from course_lib.grading.marking.alone import for_rebuilt, gradebook_of, open_course
from course_lib.grading.marking.apart import FORK, GRACE_S, Unfinished
from course_lib.grading.outside import deadline, execute
from course_lib.grading.outside.deadline import NoProcess, in_time, is_alone
from course_lib.grading.outside.execute import ExecuteOutside
from tests.support.course import ASSIGNMENT, BIN, filled_in, generated_course, grade_id, maximum, reference_answers
from tests.support.running import still_running
from tests.support.sandbox import NEEDS_SANDBOX, wait_for

TESTED = "test-padding-mask"
LARGE = 2**31  # not 2**40: a test that fails must come to an end
TESTS = "def hidden_tests():\n    return min(2.0, float(sum(range(count('abc')))))\n\n\nhidden_tests()"
# of the kernel, of what has started it, and of what it has started, which would go on for an hour
NUMBERS = """
import os, subprocess, sys
asleep = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
with open({!r}, "w") as file:
    file.write(f"{{os.getpid()}} {{os.getppid()}} {{asleep.pid}}\\n")
"""
# Nobody runs out of time but Ben, whatever the machine is busy with.
CONFIG = """
import functools
from course_lib.grading.outside import execute
def in_time(known, limit_s, log, work, nb, resources):
    return known(6 if resources["nbgrader"]["student"] == "ben" else limit_s, log, work, nb, resources)
execute.in_time = functools.partial(in_time, execute.in_time)
c.Execute.timeout, c.Execute.startup_timeout, c.ExecuteToTheEnd.notebook_limit = 1800, 600, 3600
"""
# As Formgrader has it: in a server's process, with a loop and threads. It does not ask who runs it.
SERVER = """
import asyncio, threading, sys
print("the script runs")
threading.Thread(target=threading.Event().wait, daemon=True).start()
from nbgrader.apps import NbGraderApp
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
app = NbGraderApp()
app.initialize([])
api = NbGraderAPI(CourseDirectory(parent=app), parent=app)
async def serve():
    for student in sys.argv[1:]:
        said = api.autograde({!r}, student)
        print(student, said["success"], said.get("log"))
asyncio.run(serve())
"""


def course_in(folder, config=CONFIG, last="", large=LARGE):
    """A course with works of three students, of whom Ben's returns a number for which the tests take a minute or more.

    last : a cell at the end of each work
    """
    course = generated_course(folder)
    with (course.root / "nbgrader_config.py").open("a") as file:
        file.write(f"{config}\nc.ExecuteOutside.unsolved = [{ASSIGNMENT!r}]\n")  # its source has no `count`
    with gradebook_of(open_course(course.root)) as gradebook:
        cells = gradebook.find_notebook(ASSIGNMENT, ASSIGNMENT).source_cells
        known = next(each for each in cells if each.name == TESTED)
        cell = next(each for each in course.release.cells if grade_id(each) == TESTED)
        known.source = cell.source = TESTS
        known.checksum = compute_checksum(cell)
        gradebook.db.commit()
    for student, number in {"anna": 3, "ben": large, "zoe": 3}.items():
        work = filled_in(course.release, reference_answers(course.source))
        own = NUMBERS.format(str(folder / student)) if os.environ["COURSE_GRADING_SANDBOX"] == "off" else ""
        work.cells.insert(0, nbformat.v4.new_code_cell(f"def count(text):\n    return {number}\n{own}"))
        work.cells.append(nbformat.v4.new_code_cell(last))
        course.submit(student, work)
    return course


def environment(course):
    """Of a process that imports the library that this one has."""
    found = course._environment("instructor")
    return found | {"PYTHONPATH": os.pathsep.join([str(Path(course_lib.__file__).parents[1]), found["PYTHONPATH"]])}


def running(folder, student):
    """Those of the processes that have a part in a student's grading that still run."""
    return still_running(map(int, (folder / student).read_text().split()))


def nothing_runs(folder, *students):
    """What was killed may take a moment."""
    return wait_for(lambda: not any(running(folder, student) for student in students))


def has_all_marks(course, student):
    scores = course.scores(student)
    return {name: scores[name] for name in maximum(course.source)} == maximum(course.source)


def has_no_marks(course, student):
    grades = course.scores(student)
    return grades and not any(grades[name] for name in maximum(course.source))


def says_what_to_do(said):
    return "'ben' has no new marks of this work: it took more than 6 seconds. Each work has 3720 seconds" in said


@pytest.mark.parametrize("sandbox", ["off", pytest.param("required", marks=NEEDS_SANDBOX)])
def test_who_cannot_be_marked_has_no_marks_and_all_others_have_theirs(sandbox, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_GRADING_SANDBOX", sandbox)
    course = course_in(tmp_path)
    said = course.nbgrader("autograde", ASSIGNMENT, ok=False)
    assert has_all_marks(course, "anna") and has_all_marks(course, "zoe"), said
    assert has_no_marks(course, "ben") and not (course.root / "autograded" / "ben" / ASSIGNMENT).exists()
    assert says_what_to_do(said) and "nbgrader has removed" not in said
    if sandbox == "off":
        assert nothing_runs(tmp_path, "anna", "ben", "zoe")


def test_formgrader_grades_where_there_are_threads_and_a_loop_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_GRADING_SANDBOX", "off")
    course = course_in(tmp_path, last="os._exit(3)")
    (tmp_path / "serve.py").write_text(SERVER.format(ASSIGNMENT))
    command = [sys.executable, tmp_path / "serve.py", "ben", "zoe"]
    done = subprocess.run(command, cwd=course.root, env=environment(course), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the script runs") == 1
    assert "ben False" in done.stdout and says_what_to_do(done.stdout) and "nbgrader has removed" in done.stdout
    assert "zoe True" in done.stdout and has_all_marks(course, "zoe") and has_no_marks(course, "ben")
    assert done.stdout.count("[ERROR] Kernel died while waiting for execute reply") == 1  # Zoe's, in its own process
    assert nothing_runs(tmp_path, "ben", "zoe")


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_ctrl_c_ends_all(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_GRADING_SANDBOX", "off")
    course = course_in(tmp_path, CONFIG.replace("6 if", "3600 if"), large=2**40)
    with subprocess.Popen(
        [BIN / "nbgrader", "autograde", ASSIGNMENT, "--student", "ben"], cwd=course.root, stderr=subprocess.PIPE,
        env=environment(course), start_new_session=True, text=True,
    ) as run:  # fmt: skip
        assert wait_for(lambda: (tmp_path / "ben").exists() and (tmp_path / "ben").read_text().endswith("\n"))
        assert len(running(tmp_path, "ben")) == 3
        os.killpg(run.pid, signal.SIGINT)
        try:
            assert "Canceled" in run.communicate(timeout=60)[1]  # it takes five; what is under way would take hours
        finally:
            for each in [*psutil.Process(run.pid).children(recursive=True), run] if run.poll() is None else []:
                each.kill()
    assert run.returncode and nothing_runs(tmp_path, "ben")
    assert not (course.root / "autograded" / "ben" / ASSIGNMENT).exists()


def work_of(student):
    """An `ExecuteOutside` as far as it makes a process, and the resources of a student's notebook."""
    made = SimpleNamespace(
        log=logging.getLogger("nbgrader"), parent=SimpleNamespace(parent=SimpleNamespace(force=False)),
        notebook_limit=50, _assignment="hw", _root="/", _executed=lambda nb, given: (f"{nb}, executed", given),
    )  # fmt: skip
    return functools.partial(ExecuteOutside._executed_apart, made, "a notebook", {"nbgrader": {"student": student}})


def test_a_work_has_the_limit_of_its_notebook_and_some_time(monkeypatch):
    asked = []

    def ends(limit_s, *given):
        asked.append(limit_s)
        raise Unfinished("its process was ended by SIGKILL")

    monkeypatch.setattr(execute, "in_time", ends)
    monkeypatch.setattr(execute, "prepare_sandbox", lambda *given: "")
    with pytest.raises(NbGraderException, match="'ben' has no new marks of this work: its process was ended by"):
        work_of("ben")()
    assert asked == [50 + GRACE_S]


def test_where_no_process_can_be_made_the_tests_run_in_this_one_and_that_is_said_once(monkeypatch, caplog):
    def none(*given):
        raise NoProcess("it has a lambda")

    monkeypatch.setattr(execute, "in_time", none)
    monkeypatch.setattr(execute, "prepare_sandbox", lambda *given: "")
    assert [work_of(student)() for student in ("ben", "zoe")] == ["a notebook, executed"] * 2
    assert caplog.text.count("nothing ends one that computes on: it has a lambda") == 1


@pytest.mark.parametrize(("alone", "begun"), [(True, 2), (False, 0)])
def test_what_kernels_are_forked_from_is_begun_by_who_forks_and_that_it_does_not_work_is_said_once(
    alone, begun, monkeypatch, caplog
):
    """A process that is started, and not forked, knows nothing of it."""
    asked = []
    monkeypatch.setattr(execute, "in_time", lambda limit_s, log, work, *given: work(*given))
    monkeypatch.setattr(execute, "is_alone", lambda: alone)
    monkeypatch.setattr(execute, "prepare_sandbox", lambda *given: asked.append(given[1:]) or f"no module {alone}")
    assert [work_of(student)() for student in ("ben", "zoe")] == ["a notebook, executed"] * 2
    assert asked == [("hw", "/")] * begun and caplog.text.count("start cold: no module") == bool(begun)


def test_make_grade_which_has_a_process_for_each_work_starts_no_second_one(tmp_path):
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\n")
    course = open_course(tmp_path)
    assert ExecuteOutside(parent=course).apart
    course.update_config(for_rebuilt(course))
    assert not ExecuteOutside(parent=course).apart


def test_a_process_with_threads_or_a_loop_is_not_forked(monkeypatch):
    async def asked():
        return is_alone()

    for threads in (1, 2):
        monkeypatch.setattr(deadline.threading, "active_count", lambda threads=threads: threads)
        assert is_alone() == (threads == 1 and FORK == "fork")
        assert not asyncio.run(asked())


def says(log):
    log.info("said")
    logging.getLogger("another").warning("said by another")
    return os.getpid()


class Own(Exception):
    """That takes other arguments than it has, so that nobody can read it who gets it from another process."""

    def __init__(self, one, two):
        super().__init__(one)


def fails(log):
    raise Own("no kernel", "at all")


class Keeps(logging.Handler):
    """A handler that passes over some, and puts all others down."""

    def __init__(self, records):
        super().__init__(logging.INFO)
        self.emit = lambda record: records.append((record.levelname, record.getMessage()))


@pytest.fixture(params=[True, False] if FORK == "fork" else [False])
def log(request, monkeypatch):
    """A log as nbgrader has it; work in time is done in a process that is forked, or started."""
    monkeypatch.setattr(deadline, "is_alone", lambda: request.param)
    made = logging.getLogger(f"a log {request.param}")
    made.records, made.level, made.propagate = [], logging.DEBUG, False
    made.handlers = [Keeps(made.records)]
    return made


def test_what_a_process_logs_is_logged_here_and_what_others_say_there_once(log):
    log.handlers = [Keeps(log.records)]  # alone: pytest has added its own
    assert deadline._level(log) == logging.INFO  # what is below it is not sent
    numbers = {in_time(600, log, says, logging.getLogger(log.name)) for _ in range(2)}
    assert len(numbers) == 2 and os.getpid() not in numbers
    assert log.records.count(("INFO", "said")) == 2 and len(log.records) == 3
    assert log.records.count(("WARNING", "said by another")) == 1


def has_a_loop_of_its_own():
    return not hasattr(ensure_event_loop(), "begun_by")


def test_a_process_runs_no_loop_that_another_has(log):
    ensure_event_loop().begun_by = os.getpid()
    assert in_time(600, log, has_a_loop_of_its_own) and not has_a_loop_of_its_own()


def test_why_a_process_fails_is_logged_whatever_it_raises(log):
    with pytest.raises(NbGraderException, match="^Own: no kernel$"):
        in_time(600, log, fails, logging.getLogger(log.name))
    (said,) = (said for level, said in log.records if level == "ERROR")  # others may warn there of what they like
    assert "Traceback" in said and "in fails" in said


def test_what_is_handed_to_a_process_that_is_started():
    given = ExecuteOutside(assignments={"hw": ["numpy"]}, notebook_limit=7, warm={"hw": ["numpy"]})
    given._sources, given._seed = {"test": "1"}, 5
    made = pickle.loads(pickle.dumps(given))
    assert (made.assignments, made.notebook_limit, made.warm) == ({"hw": ["numpy"]}, 7, {})
    assert (made._sources, made._seed, made.log) == ({"test": "1"}, 5, given.log)


def test_what_cannot_be_handed_to_a_process_that_is_started_is_said(monkeypatch):
    monkeypatch.setattr(deadline, "is_alone", lambda: False)
    with pytest.raises(NoProcess, match="lambda"):
        in_time(600, logging.getLogger("nbgrader"), lambda: None)
