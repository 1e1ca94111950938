"""One student's submission, graded by nbgrader in a process of its own: it can stop or delay nobody else's."""

import contextlib
import ctypes
import functools
import itertools
import math
import multiprocessing
import multiprocessing.connection
import os
import re
import shutil
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from course_lib._extras import needed
from course_lib.grading.marking.execute import STOPPED, ExecuteToTheEnd
from course_lib.grading.marking.standing import NOTHING, definitions, enter, explained, standing
from course_lib.grading.outside.prepared import hidden_tests
from course_lib.grading.restore import RestoreCells

with needed("lab"):
    import nbformat
    import nbgrader.api
    import psutil
    from nbgrader.api import Base, Gradebook
    from nbgrader.apps import AutogradeApp
    from nbgrader.apps.api import NbGraderAPI
    from nbgrader.converters import Autograde
    from nbgrader.preprocessors import CheckCellMetadata, OverwriteCells
    from sqlalchemy import event
    from sqlalchemy.pool import NullPool
    from traitlets.config import Config
    from traitlets.utils.importstring import import_item

NORMALISED, GRADING = "normalised", ".grading"  # folders: what is graded, and what is being graded
DEFINITIONS = "assignments.db"
GRACE_S = 120  # beyond the notebook's own limit: to start, to end, and to write
ENDS_S = 5  # for a process to end when it has nothing to do any more
MEMORY, LARGEST_FILE = 8 * 2**30, 2**30  # bytes that a submission's processes may have, and may write into one file
RAISED = re.compile(r"^ +.*\n(\w[\w.]*(?::.*)?)$", re.MULTILINE)  # what follows the last frame of a traceback
LOGGED = re.compile(r"^\[(?:ERROR|CRITICAL)\] ((?:.|\n(?!\[[A-Z]+\] ))*)", re.MULTILINE)
# What a rebuilt notebook has behind it: its cells and all that nbgrader knows of them are the gradebook's.
DONE = {RestoreCells, OverwriteCells, CheckCellMetadata}
SAYS_NOTHING = ("There was an error processing", "Please see")  # nbgrader's words beside a traceback
DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG, from linux/prctl.h
FORK = "fork" if sys.platform == "linux" else "spawn"  # a fork has nbgrader imported already
IN_MEMORY = "course-lib-in-memory"  # in the URL of such a gradebook
_names: set[str] = set()  # of those that this process has open
_create_engine, _create_all = nbgrader.api.create_engine, Base.metadata.create_all


@functools.lru_cache(8)
def _engine(url: str, **settings):
    """nbgrader opens a gradebook a dozen times in a grading, and SQLAlchemy compiles what is asked once for an engine.

    No connection is kept, so that forked processes may go on with it; and that of a gradebook that could not be opened
    would go on with a file that was replaced since.
    """
    engine = _create_engine(url, **{"poolclass": NullPool, **settings})
    if IN_MEMORY in str(url):  # where somebody else has not yet committed, who reads would fail, and not wait
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA read_uncommitted = 1"))
    return engine


def _create_missing(bind, *given, **settings) -> None:
    """nbgrader looks for every table each time, and one in memory is a copy that has them."""
    if IN_MEMORY not in str(bind.engine.url):
        _create_all(bind, *given, **settings)


nbgrader.api.create_engine, Base.metadata.create_all = _engine, _create_missing


class Unfinished(Exception):
    """Work that was ended from outside, or ended itself."""


def open_course(root: Path) -> AutogradeApp:
    """nbgrader with the configuration of the course in `root`; its `coursedir` knows the folders and the gradebook."""
    with contextlib.chdir(root):
        app = AutogradeApp()
        app.log_level = "ERROR"
        app.initialize([])
    return app


def gradebook_of(course: AutogradeApp) -> Gradebook:
    """The course's gradebook, open; use it in a `with` statement.

    Raises
    ------
    ValueError : it cannot be opened; says why.
    """
    with explained(course.coursedir.db_url):
        return Gradebook(course.coursedir.db_url, course.coursedir.course_id)


class Marks(NamedTuple):
    """What a grading came to: `stands` is what `standing` says after it, `why` is "" or why not all could be graded."""

    stands: dict
    why: str

    @property
    def are_there(self) -> bool:
        """Whether it was graded: also where its time was over, so that not all of it ran."""
        return not self.why or self.why.startswith("Stopped")


@contextlib.contextmanager
def workplace(course: AutogradeApp) -> Iterator[None]:
    """A block in which `grade_alone` finds what it needs; what it left, or left an earlier run, goes at the end."""
    folder = Path(course.coursedir.root, GRADING)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        with gradebook_of(course) as gradebook:
            definitions(gradebook, folder / DEFINITIONS)
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def grade_alone(root: Path, assignment: str, student: str, stood: dict, is_known: bool) -> Marks:
    """Grade what stands in normalised/STUDENT/ASSIGNMENT, in a gradebook of its own, in a `workplace`.

    The course's gradebook is neither read nor written, so that any number of these can be under way; `stood` is what
    `standing` says of it, and `is_known` whether it has this student, without whom a course may refuse to grade
    (`c.Autograde.create_student`). The executed notebook is left for `take_over`.
    """
    course = open_course(root)
    course.coursedir.submitted_directory, course.coursedir.autograded_directory = NORMALISED, GRADING
    with _in_memory(root / GRADING / DEFINITIONS) as course.coursedir.db_url:
        if is_known:
            with gradebook_of(course) as gradebook:
                gradebook.update_or_create_student(student)
                if stood:
                    enter(gradebook, assignment, student, stood)
        why = _grade(course, assignment, student)
        with gradebook_of(course) as gradebook:
            return Marks(standing(gradebook, assignment, student), why or _stopped_in(root / GRADING / student))


@contextlib.contextmanager
def _in_memory(path: Path) -> Iterator[str]:
    """The URL of a copy of the gradebook in this file, which this process alone has, during this block."""
    # The first name is the same in each process: a forked one finds the engine of this URL, with what it has compiled.
    name = next(name for number in itertools.count() if (name := f"file:{IN_MEMORY}-{number}") not in _names)
    place = f"{name}?mode=memory&cache=shared"
    _names.add(name)
    try:
        with contextlib.closing(sqlite3.connect(place, uri=True)) as copy:  # there as long as somebody has it open
            with contextlib.closing(sqlite3.connect(path)) as file:
                file.backup(copy)
            yield f"sqlite:///{place}&uri=true"
    finally:
        _names.remove(name)


def rehearse(course: AutogradeApp, assignment: str) -> None:
    """Ask once, in a `workplace`, what each grading asks of a gradebook: what that compiles is forked with the rest."""
    student = "rehearsal"  # in memory only
    with _in_memory(Path(course.coursedir.root, GRADING, DEFINITIONS)) as url:
        for _ in range(2):  # of what is in the gradebook already, other things are asked
            with Gradebook(url, course.coursedir.course_id) as gradebook:
                gradebook.find_assignment(assignment)
                enter(gradebook, assignment, student, NOTHING)
                submission = gradebook.find_submission(assignment, student)
                gradebook.db.commit()  # so that it asks again for
                str(submission), submission.total_seconds_late  # what nbgrader logs
                for notebook in submission.notebooks:
                    hidden_tests({"db_url": url, "notebook": notebook.name, "assignment": assignment})
                    gradebook.find_submission_notebook(notebook.name, assignment, student)
                    for grade in notebook.grades:
                        grade = gradebook.find_grade(grade.cell.name, notebook.name, assignment, student)
                        grade.auto_score = grade.max_score
                        gradebook.db.commit()
                    for comment in notebook.comments:
                        comment = gradebook.find_comment(comment.cell.name, notebook.name, assignment, student)
                        comment.auto_comment = "No response."  # nbgrader's own
                        gradebook.db.commit()


def take_over(root: Path, assignment: str, student: str, autograded: str | Path = "autograded") -> None:
    """Let the notebook that `grade_alone` executed take the place of the one before, in the folder `autograded`.

    Raises
    ------
    FileNotFoundError : it left none.
    """
    new, place = root / GRADING / student / assignment, root / autograded / student / assignment
    if not any(new.glob("*.ipynb")):
        raise FileNotFoundError("nbgrader left no notebook")
    old = place.with_name(f".{assignment}.before")
    shutil.rmtree(old, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        os.replace(place, old)
    os.replace(new, place)
    shutil.rmtree(old, ignore_errors=True)


class Apart:
    """`work(*arguments)`, under way in a process of its own, which ends with everything that it started."""

    def __init__(self, limit_s: float, work: Callable, *arguments):
        context = multiprocessing.get_context(FORK)
        self.answer, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_do, args=(sender, work, *arguments))
        self._process.start()
        sender.close()
        self.limit_s, self.end = limit_s, time.monotonic() + limit_s

    @property
    def is_over(self) -> bool:
        """Whether `result` need not wait."""
        return self.answer.poll(0) or time.monotonic() >= self.end

    def result(self):
        """What the work returns.

        Raises
        ------
        Unfinished : it took longer than `limit_s`, or was killed.
        Exception : what the work raised.
        """
        try:
            if not self.answer.poll(max(0, self.end - time.monotonic())):
                raise Unfinished(f"it took more than {self.limit_s:g} seconds")
            result = self.answer.recv()
        except EOFError:
            self._process.join(ENDS_S)
            raise Unfinished(f"its process {how_it_ended(self._process.exitcode)}") from None
        finally:
            self.stop()
        if isinstance(result, Exception):
            raise result
        return result

    def stop(self) -> None:
        """End it, done or not."""
        _end(self._process)
        self.answer.close()


def apart(limit_s: float, work: Callable, *arguments):
    """The result of an `Apart`."""
    return Apart(limit_s, work, *arguments).result()


def how_it_ended(code: int | None) -> str:
    """What became of a process, by its exit code: below zero, it is that of a signal."""
    if code is None:
        return "does not answer any more"
    if code >= 0:
        return f"ended with exit status {code}, and without a result"
    name = signal.Signals(-code).name
    return f"was ended by {name}" + ("; it may have asked for too much memory" if name == "SIGKILL" else "")


def wait_for_one(works: list[Apart], most_s: float = math.inf) -> None:
    """Return when one of these is over, or after so many seconds."""
    left = min(most_s, min(work.end for work in works) - time.monotonic())
    multiprocessing.connection.wait([work.answer for work in works], max(0, left))


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(psutil.Process, "cpu_affinity"):  # macOS lends no part of the machine
        return len(psutil.Process().cpu_affinity())
    return psutil.cpu_count() or 1


def room() -> int:
    """How many works this machine grades at a time.

    For a third of its time a work waits for its kernel, so that half as many again as cores keep these busy; and one.
    """
    return cores() * 3 // 2 + 1


def grading_limit(course: AutogradeApp) -> float:
    """Seconds for one submission, from its start to its end."""
    return ExecuteToTheEnd(parent=course).notebook_limit + GRACE_S


def for_rebuilt(course: AutogradeApp) -> Config:
    """Settings by which nbgrader does not do again what `cells.rebuilt` has done, and validates once in each pass."""
    settings, autograde = Config(), Autograde(parent=course)
    for name in ("sanitize_preprocessors", "autograde_preprocessors"):
        given = [import_item(each) if isinstance(each, str) else each for each in getattr(autograde, name)]
        settings.Autograde[name] = [each for each in given if each not in DONE] or given
    # after the last preprocessor, and not after each; nbconvert fails where there is none
    settings.Exporter.optimistic_validation = all(settings.Autograde.values())
    return settings


def _do(sender, work: Callable, *arguments) -> None:
    """In the child."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has no limits, and macOS not these
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    try:
        _end_with_parent()
        sender.send(work(*arguments))
    except Exception as error:
        sender.send(error)


def _end_with_parent() -> None:
    """From now on this process ends with the one that started it, also where that is killed: the next run may begin."""
    parent = multiprocessing.parent_process()
    if sys.platform == "linux":  # by the system itself: a thread gets no turn during one long search for an expression
        ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent.pid:  # it has ended just before
            os._exit(1)
    else:
        threading.Thread(target=lambda: parent.join() or os._exit(1), daemon=True).start()


def _grade(course: AutogradeApp, assignment: str, student: str) -> str:
    """Let nbgrader grade; "" or why it did not."""
    course.update_config(for_rebuilt(course))
    said = NbGraderAPI(course.coursedir, parent=course).autograde(assignment, student, force=True)
    return "" if said["success"] else f"nbgrader: {reason(said)}"


def reason(said: dict) -> str:
    """Why nbgrader did not succeed, of what its interface returned: the error that it logged, or raised itself.

    It logs the error with a traceback, and raises another one that only says to look there.
    """
    log = re.sub("^    ", "", said.get("log") or "", flags=re.MULTILINE)  # all lines of a record but the first
    raised = (said.get("error") or "").strip()
    errors = RAISED.findall(log)
    if not errors:
        errors = [record for record in LOGGED.findall(log) if not record.startswith(SAYS_NOTHING)]
    if not errors:
        errors = RAISED.findall(raised) or [raised or "it gave no reason"]
    return " ".join(errors[-1].split())[:300]


def _end(process) -> None:
    """End the child and whatever it started: a kernel is in a session of its own."""
    with contextlib.suppress(psutil.Error):
        family = psutil.Process(process.pid)
        for member in [*family.children(recursive=True), family] if process.is_alive() else []:
            with contextlib.suppress(psutil.Error):
                if member.pid != process.pid:
                    member.kill()
    process.join(ENDS_S)
    if process.is_alive():
        process.kill()
        process.join()


def _stopped_in(folder: Path) -> str:
    """What ExecuteToTheEnd said in a cell that did not run."""
    for path in sorted(folder.rglob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                if output.output_type == "error" and output.ename == STOPPED:
                    return output.evalue
    return ""
