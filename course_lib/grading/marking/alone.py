"""One student's submission, graded by nbgrader in a gradebook of its own: it can stop or delay nobody else's."""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from course_lib._extras import needed
from course_lib.grading.marking.apart import GRACE_S
from course_lib.grading.marking.execute import STOPPED, ExecuteToTheEnd
from course_lib.grading.marking.in_memory import in_memory
from course_lib.grading.marking.standing import NOTHING, definitions, enter, explained, standing
from course_lib.grading.outside.prepared import hidden_tests
from course_lib.grading.restore import RestoreCells

with needed("lab"):
    import nbformat
    import psutil
    from nbgrader.api import Gradebook
    from nbgrader.apps import AutogradeApp
    from nbgrader.apps.api import NbGraderAPI
    from nbgrader.converters import Autograde
    from nbgrader.preprocessors import CheckCellMetadata, OverwriteCells
    from traitlets.config import Config
    from traitlets.utils.importstring import import_item

NORMALISED, GRADING = "normalised", ".grading"  # folders: what is graded, and what is being graded
DEFINITIONS = "assignments.db"
RAISED = re.compile(r"^ +.*\n(\w[\w.]*(?::.*)?)$", re.MULTILINE)  # what follows the last frame of a traceback
LOGGED = re.compile(r"^\[(?:ERROR|CRITICAL)\] ((?:.|\n(?!\[[A-Z]+\] ))*)", re.MULTILINE)
# What a rebuilt notebook has behind it: its cells and all that nbgrader knows of them are the gradebook's.
DONE = {RestoreCells, OverwriteCells, CheckCellMetadata}
SAYS_NOTHING = ("There was an error processing", "Please see")  # nbgrader's words beside a traceback


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
    course.update_config(for_rebuilt(course))  # which may read all settings anew, so that what follows comes after it
    course.coursedir.submitted_directory, course.coursedir.autograded_directory = NORMALISED, GRADING
    with in_memory(root / GRADING / DEFINITIONS) as course.coursedir.db_url:
        if is_known:
            with gradebook_of(course) as gradebook:
                gradebook.update_or_create_student(student)
                if stood:
                    enter(gradebook, assignment, student, stood)
        why = _grade(course, assignment, student)
        with gradebook_of(course) as gradebook:
            return Marks(standing(gradebook, assignment, student), why or _stopped_in(root / GRADING / student))


def rehearse(course: AutogradeApp, assignment: str) -> None:
    """Ask once, in a `workplace`, what each grading asks of a gradebook: what that compiles is forked with the rest."""
    student = "rehearsal"  # in memory only
    with in_memory(Path(course.coursedir.root, GRADING, DEFINITIONS)) as url:
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
    fresh, old = (place.with_name(f".{assignment}.{which}") for which in ("after", "before"))
    for left in (fresh, old):
        shutil.rmtree(left, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(new, fresh)  # which copies where the two folders are on two file systems
    if place.exists():
        os.replace(place, old)
    os.replace(fresh, place)
    shutil.rmtree(old, ignore_errors=True)


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
    """Settings by which nbgrader does not do again what `cells.rebuilt` has done, and validates once in each pass.

    Nor does it start a process for the work: this one has a limit. The tests were looked at before anybody was graded.
    """
    settings, autograde = Config(), Autograde(parent=course)
    settings.ExecuteOutside.apart, settings.ExecuteOutside.looked_at = False, True
    for name in ("sanitize_preprocessors", "autograde_preprocessors"):
        given = [import_item(each) if isinstance(each, str) else each for each in getattr(autograde, name)]
        settings.Autograde[name] = [each for each in given if each not in DONE] or given
    # after the last preprocessor, and not after each; nbconvert fails where there is none
    settings.Exporter.optimistic_validation = all(settings.Autograde.values())
    return settings


def _grade(course: AutogradeApp, assignment: str, student: str) -> str:
    """Let nbgrader grade; "" or why it did not."""
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


def _stopped_in(folder: Path) -> str:
    """What ExecuteToTheEnd said in a cell that did not run."""
    for path in sorted(folder.rglob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                if output.output_type == "error" and output.ename == STOPPED:
                    return output.evalue
    return ""
