"""One student's submission, graded by nbgrader in a process of its own: it can stop or delay nobody else's."""

import contextlib
import multiprocessing
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from course_lib._extras import needed
from course_lib.grading.marking.execute import STOPPED, ExecuteToTheEnd
from course_lib.grading.marking.standing import put_back

with needed("lab"):
    import nbformat
    import psutil
    from nbgrader.api import Gradebook
    from nbgrader.apps import AutogradeApp
    from nbgrader.apps.api import NbGraderAPI

NORMALISED = "normalised"
GRACE_S = 120  # beyond the notebook's own limit: to start, to end, and to write
MEMORY, LARGEST_FILE = 8 * 2**30, 2**30  # bytes that a submission's processes may have, and may write into one file
RAISED = re.compile(r"^ +.*\n(\w[\w.]*(?::.*)?)$", re.MULTILINE)  # what follows the last frame of a traceback
LOGGED = re.compile(r"^\[(?:ERROR|CRITICAL)\] ((?:.|\n(?!\[[A-Z]+\] ))*)", re.MULTILINE)
SAYS_NOTHING = ("There was an error processing", "Please see")  # nbgrader's words beside a traceback
FORK = "fork" if sys.platform == "linux" else "spawn"  # a fork has nbgrader imported already


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
    """The course's gradebook, open; use it in a `with` statement."""
    return Gradebook(course.coursedir.db_url, course.coursedir.course_id)


def grade_alone(course: AutogradeApp, assignment: str, student: str) -> str:
    """Grade what stands in normalised/STUDENT/ASSIGNMENT; return "" or why not all of it could be graded.

    The marks are in the gradebook afterwards, and the executed notebook in autograded/, as nbgrader leaves them, which
    is half of them where it was stopped. What stood in autograded/ is kept beside it, until `settle` or `take_back`.
    """
    root = Path(course.coursedir.root)
    after, before = _executed(root, assignment, student)
    _remove(before)
    if after.exists():
        os.replace(after, before)
    try:
        why = apart(ExecuteToTheEnd(parent=course).notebook_limit + GRACE_S, _grade, root, assignment, student)
    except Unfinished as error:
        why = str(error)
    if not why and after.exists():
        return _stopped_in(after)
    return why or "nbgrader left no notebook"


def settle(course: AutogradeApp, assignment: str, student: str) -> None:
    """What `grade_alone` did is to stay: what it kept of the time before goes."""
    _remove(_executed(Path(course.coursedir.root), assignment, student)[1])


def take_back(course: AutogradeApp, assignment: str, student: str, stood: dict) -> None:
    """Make gradebook and autograded/ what they were before `grade_alone`, when `standing` returned `stood`."""
    with gradebook_of(course) as gradebook:
        put_back(gradebook, assignment, student, stood)
    after, before = _executed(Path(course.coursedir.root), assignment, student)
    if before.exists() or not stood:
        _remove(after)
    if before.exists():
        os.replace(before, after)


def apart(limit_s: float, work: Callable, *arguments):
    """What `work(*arguments)` returns, done in a process of its own, which ends with everything that it started.

    Raises
    ------
    Unfinished : it took longer than `limit_s`, or was killed.
    Exception : what `work` raised.
    """
    context = multiprocessing.get_context(FORK)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_do, args=(sender, work, *arguments))
    process.start()
    sender.close()
    try:
        if not receiver.poll(limit_s):
            raise Unfinished(f"it took more than {limit_s:g} seconds")
        result = receiver.recv()
    except EOFError:
        raise Unfinished("its process was killed; it may have asked for too much memory") from None
    finally:
        _end(process)
        receiver.close()
    if isinstance(result, Exception):
        raise result
    return result


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
        sender.send(work(*arguments))
    except Exception as error:
        sender.send(error)


def _grade(root: Path, assignment: str, student: str) -> str:
    course = open_course(root)
    course.coursedir.submitted_directory = NORMALISED
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
    process.join(5)
    if process.is_alive():
        process.kill()
        process.join()


def _stopped_in(folder: Path) -> str:
    """What ExecuteToTheEnd said in a cell that did not run."""
    for path in sorted(folder.glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                if output.output_type == "error" and output.ename == STOPPED:
                    return output.evalue
    return ""


def _executed(root: Path, assignment: str, student: str) -> tuple[Path, Path]:
    """The folder of the executed notebook, and where the one before it is kept."""
    folder = root / "autograded" / student
    return folder / assignment, folder / f".{assignment}.before"


def _remove(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True) if folder.exists() else []:
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    with contextlib.suppress(FileNotFoundError):
        folder.rmdir()
