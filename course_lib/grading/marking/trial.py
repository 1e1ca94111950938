"""A dry run: what was handed in is graded in a copy of the course, and compared with the marks that the gradebook has.

Nothing of the course is written to, its gradebook neither; students' code is kept from it by the sandbox alone. Marks
given by hand are what they are: of a question that a person changed, the person's mark is compared; of one that only a
person marks, nothing.
"""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from course_lib.grading.marking.alone import gradebook_of, open_course
from course_lib.grading.marking.batch import Batch
from course_lib.grading.marking.losses import asked_of, losses
from course_lib.grading.marking.standing import copy_gradebook, standing
from course_lib.grading.outside.configured import check_marking, slips
from course_lib.grading.outside.execute import ExecuteOutside
from course_lib.grading.outside.seeds import SECRET

COPIED = ("nbgrader_config.py", "roster.csv", "dates.csv", SECRET)
STEPS = ("source", "release", "submitted", "autograded", "feedback")  # whose folders a course may call otherwise
NO_SANDBOX = (
    "The dry run itself changed nothing, but students' code ran outside the sandbox, and could write wherever you may."
)


class Difference(NamedTuple):
    """A question of a student's work with another mark than the recorded one; None where there is none."""

    question: str
    now: float | None
    recorded: float | None
    why: str


class Trial(NamedTuple):
    """What a student's work came to: its differences, and what else a person should know."""

    student: str
    differences: list[Difference]
    said: str


def dry_run(
    root: Path, assignment: str, archive: Path | None = None, jobs: int | None = None, say: Callable = print
) -> list[Trial]:
    """Grade the assignment of the course in `root` in a copy; every student who has work there, or recorded marks.

    archive : as for `Batch.collect`, in the place of what lies in submitted/

    Raises
    ------
    ValueError : there is no course, it does not say how the assignment is marked, the sandbox that this needs is
        missing, the gradebook cannot be copied, or what `Batch` raises.
    """
    root = root.resolve()
    if not root.is_dir():
        raise ValueError(f"{root} is no folder of a course")
    course = open_course(root)
    with tempfile.TemporaryDirectory(prefix="dry-run-") as folder:
        copy = Path(folder, "course")
        copy.mkdir()
        copy_gradebook(course.coursedir.db_url, copy / "gradebook.db")
        settings, source = ExecuteOutside(parent=course), root / course.coursedir.source_directory
        for line in slips(settings, source, f"sqlite:///{copy}/gradebook.db"):
            say(f"Warning: {line}")
        if why := check_marking(settings, assignment):
            say(f"Warning: {why}")
        _copy(root, copy, assignment, submitted=archive is None)
        with gradebook_of(open_course(copy)) as gradebook:
            before = {student.id: standing(gradebook, assignment, student.id) for student in gradebook.students}
        batch = Batch(copy, assignment, say=say)
        if archive:
            batch.collect(archive)
        batch.grade(force=True, jobs=jobs)
        with gradebook_of(batch.course) as gradebook:
            asked = asked_of(gradebook, assignment)
            made = []
            for student in sorted({*batch.entries, *(name for name, stood in before.items() if stood)}):
                after = standing(gradebook, assignment, student)
                entry = batch.entries.get(student)
                then = root / course.coursedir.autograded_directory / student / assignment
                now = copy / "autograded" / student / assignment
                made.append(_trial(student, before.get(student, {}), after, entry, asked, (now, then)))
            return made


def told(trials: list[Trial], in_sandbox: bool = True) -> str:
    """Every difference with its reason, and how many there are.

    in_sandbox : whether students' code was kept from the course; otherwise nobody can say what it did there
    """
    lines = []
    for trial in trials:
        if trial.differences or trial.said:
            points = sum((each.now or 0) - (each.recorded or 0) for each in trial.differences)
            change = f" {points:+g} points" if trial.differences else " no mark differs"
            lines.append(f"{trial.student}:{change}{'. ' if trial.said else ''}{trial.said}")
            for each in trial.differences:
                marks = f"{_mark(each.now)} now, {_mark(each.recorded)} recorded"
                lines.append(f"  {each.question}: {marks}. {each.why}".rstrip())
    differ = sum(bool(trial.differences) for trial in trials)
    same = f"{len(trials)} students: {len(trials) - differ} as recorded"
    changed = "Nothing was changed." if in_sandbox else NO_SANDBOX
    return "\n".join([*lines, f"{same}, {differ} with another mark. {changed}"])


def _copy(root: Path, copy: Path, assignment: str, submitted: bool) -> None:
    """What grading reads of a course beside its gradebook. Links stay links: nothing that they lead to is written."""
    course = open_course(root)
    coursedir, hidden = course.coursedir, [*ExecuteOutside(parent=course).also_hidden, str(root)]
    for name in COPIED:
        if (root / name).is_file():
            shutil.copy(root / name, copy / name)
    for step in ("source", "release"):
        path = root / getattr(coursedir, f"{step}_directory") / assignment
        if path.is_dir():
            shutil.copytree(path, copy / step / assignment, symlinks=True)
    for path in (root / coursedir.submitted_directory).glob(f"*/{assignment}") if submitted else ():
        if path.is_dir() and not path.is_symlink():
            place = copy / "submitted" / path.parent.name / assignment
            shutil.copytree(path, place, symlinks=True, ignore=_specials)
    with (copy / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write(
            "\nc = get_config()\n"
            f"c.CourseDirectory.root = {str(copy)!r}\n"
            f"c.CourseDirectory.db_url = {f'sqlite:///{copy}/gradebook.db'!r}\n"
            + "".join(f"c.CourseDirectory.{step}_directory = {step!r}\n" for step in STEPS)
            + f"c.ExecuteOutside.also_hidden = {hidden!r}\n"
        )


def _specials(folder: str, names: list[str]) -> list[str]:
    """Pipes and devices, which to copy would never end."""
    paths = {name: Path(folder, name) for name in names}
    return [name for name, path in paths.items() if not (path.is_symlink() or path.is_file() or path.is_dir())]


def _trial(student: str, before: dict, after: dict, entry, asked: list, executed: tuple[Path, Path]) -> Trial:
    """executed : the folders of the work as it was executed now, and as it was when the marks were recorded"""
    if entry is None:
        return Trial(student, [], "It has recorded marks, and no work in submitted/")
    if not entry.marked:
        return Trial(student, _differences({}, before, asked), entry.why)
    said = ". ".join(filter(None, ["" if before else "Nothing is recorded", entry.why]))
    found = _differences(after, before, asked)
    now, then = map(losses, executed) if found else ({}, {})
    return Trial(student, [each._replace(why=each.why + _why(each, now, then)) for each in found], said)


def _why(each: Difference, now: dict[str, str], then: dict[str, str]) -> str:
    """What the work said of the question where it has the lower mark of the two."""
    if (each.now or 0) < (each.recorded or 0):
        return now.get(each.question, "")
    return f"Then it said: {then[each.question]}" if then.get(each.question) else now.get(each.question, "")


def _differences(after: dict, before: dict, asked: list) -> list[Difference]:
    found = []
    for notebook, question in asked:
        now, was = (
            each.get("notebooks", {}).get(notebook, {}).get("grades", {}).get(question, {}) for each in (after, before)
        )
        mark, recorded = now.get("auto_score"), _recorded(was)
        if mark != recorded:
            hand = "" if was.get("manual_score") is None else "The recorded mark was given by hand. "
            found.append(Difference(question, mark, recorded, hand))
    return found


def _recorded(grade: dict) -> float | None:
    return grade.get("auto_score") if grade.get("manual_score") is None else grade["manual_score"]


def _mark(mark: float | None) -> str:
    return "none" if mark is None else f"{mark:g}"
