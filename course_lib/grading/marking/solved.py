"""The course's own solution, graded as a student's before anybody is: what it does not earn, nobody could."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from course_lib.files import replacing
from course_lib.grading.marking.alone import GRADING, NORMALISED, Marks, gradebook_of
from course_lib.grading.marking.apart import Apart, Unfinished
from course_lib.grading.marking.losses import asked_of, losses
from course_lib.grading.marking.normalise import NORMALISING_S, normalise_into
from course_lib.grading.marking.reading import Unreadable
from course_lib.grading.outside.execute import ExecuteOutside

ROUNDING = 1e-6  # of points that are added up
WORKER = "course-own-solution"  # the student that it is graded as, whom no gradebook keeps


def grade_solution(batch, grading: Callable[..., Apart]) -> None:
    """Grade it in a `workplace`, once for each state of it and of the tests, and look whether it has all its points.

    batch : a `Batch`
    grading : of a student whose normalised work is there, as `Gradings` has it

    Raises
    ------
    OSError : the course cannot be written to.
    ValueError : it has not all its points.
    """
    source, place = source_of(batch), batch.record.with_name(f".{batch.assignment}-solved")
    if source is None or _said_in(place) == (digest := digest_of(batch, source)):
        return
    target = batch.root / NORMALISED / WORKER / batch.assignment
    try:
        Apart(NORMALISING_S, normalise_into, source, batch.releases, batch.helpers, target).result()
        marks = grading(WORKER, {}, is_known=True).result()
    except (Unfinished, Unreadable) as error:
        marks = Marks({}, str(error))
    finally:
        shutil.rmtree(target.parent, ignore_errors=True)
    check_marks(batch, source, marks)
    with replacing(place.parent) as scratch:
        (scratch / place.name).write_text(digest)


def source_of(batch) -> Path | None:
    """The folder of an assignment's source notebooks, where these are to be graded first.

    None where the tests run in the student's process, where the course says that its sources are no solutions
    (`c.ExecuteOutside.unsolved`), and where not all of them stand here.

    batch : a `Batch`
    """
    settings, folder = ExecuteOutside(parent=batch.course), batch.folder("source") / batch.assignment
    is_meant = batch.assignment in settings.assignments and batch.assignment not in settings.unsolved
    return folder if is_meant and all((folder / f"{name}.ipynb").is_file() for name in batch.releases) else None


def digest_of(batch, source: Path) -> str:
    """Of all that the marks of a solution hang on: one that was graded need not be, as long as this is the same."""
    packages = ExecuteOutside(parent=batch.course).assignments[batch.assignment]
    found = hashlib.sha256(f"{batch.tests} {packages}".encode())
    for path in sorted(path for path in source.rglob("*") if path.is_file()):
        found.update(f"\0{path.relative_to(source)}\0".encode(errors="replace") + path.read_bytes())
    return found.hexdigest()


def check_marks(batch, source: Path, marks: Marks) -> None:
    """Look whether the solution has all its points.

    marks : what its grading in a `workplace` came to

    Raises
    ------
    ValueError : it has not; says which, why, and what to do.
    """
    with gradebook_of(batch.course) as gradebook:
        asked = asked_of(gradebook, batch.assignment)
    said = losses(batch.root / GRADING / WORKER / batch.assignment)
    lines = []
    for (notebook, question), most in asked.items():
        grades = marks.stands.get("notebooks", {}).get(notebook, {}).get("grades", {})
        earned = grades.get(question, {}).get("auto_score") or 0
        if earned < most - ROUNDING:
            lines.append(f"  {question}: {earned:g} of {most:g} points. {said.get(question, '')}".rstrip())
    if lines:
        why = "\n".join([*([f"  {marks.why}"] if marks.why else []), *lines])
        raise ValueError(
            f"Nothing is graded: handed in by a student, the course's own solution in {source} would not have all its "
            f"points, and no right work might.\n{why}\nMend the tests or the solution, and run `nbgrader "
            f"generate_assignment {batch.assignment} --force`. If the source is not meant to be a whole solution, "
            f"c.ExecuteOutside.unsolved = [{batch.assignment!r}] in nbgrader_config.py says so."
        )


def _said_in(path: Path) -> str:
    """What stands in a small file; "" where there is none."""
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""
