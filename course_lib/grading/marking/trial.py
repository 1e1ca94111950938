"""A dry run: what was handed in is graded in a copy of the course, and compared with the marks that the gradebook has.

Nothing of the course is written to, its gradebook neither. Marks given by hand are what they are: of a question that a
person changed, the person's mark is compared; of one that only a person marks, nothing.
"""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from course_lib._extras import needed
from course_lib.grading.marking.alone import gradebook_of, open_course
from course_lib.grading.marking.batch import Batch
from course_lib.grading.marking.standing import copy_gradebook, standing
from course_lib.grading.outside.seeds import SECRET

with needed("lab"):
    import nbformat
    from nbgrader.api import Gradebook

COPIED = ("nbgrader_config.py", "roster.csv", "dates.csv", SECRET)
STEPS = ("source", "release", "submitted", "autograded", "feedback")  # whose folders a course may call otherwise
WHY = 300  # letters of a reason


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
    ValueError : the gradebook cannot be copied, or what `Batch` raises.
    """
    root = root.resolve()
    with tempfile.TemporaryDirectory(prefix="dry-run-") as folder:
        copy = Path(folder, "course")
        _copy(root, copy, assignment, submitted=archive is None)
        with gradebook_of(open_course(copy)) as gradebook:
            before = {student.id: standing(gradebook, assignment, student.id) for student in gradebook.students}
        batch = Batch(copy, assignment, say=say)
        if archive:
            batch.collect(archive)
        batch.grade(force=True, jobs=jobs)
        with gradebook_of(batch.course) as gradebook:
            asked = _asked(gradebook, assignment)
            made = []
            for student in sorted({*batch.entries, *(name for name, stood in before.items() if stood)}):
                after = standing(gradebook, assignment, student)
                entry = batch.entries.get(student)
                made.append(_trial(copy, assignment, student, before.get(student, {}), after, entry, asked))
            return made


def told(trials: list[Trial]) -> str:
    """Every difference with its reason, and how many there are."""
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
    return "\n".join([*lines, f"{same}, {differ} with another mark. Nothing was changed."])


def _copy(root: Path, copy: Path, assignment: str, submitted: bool) -> None:
    """What grading reads of a course, and no more. Links stay links: nothing that they lead to is written."""
    coursedir = open_course(root).coursedir
    copy.mkdir(parents=True)
    copy_gradebook(coursedir.db_url, copy / "gradebook.db")
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
            + f"c.ExecuteOutside.also_hidden = [{str(root)!r}]\n"
        )


def _specials(folder: str, names: list[str]) -> list[str]:
    """Pipes and devices, which to copy would never end."""
    paths = {name: Path(folder, name) for name in names}
    return [name for name, path in paths.items() if not (path.is_symlink() or path.is_file() or path.is_dir())]


def _asked(gradebook: Gradebook, assignment: str) -> list[tuple[str, str]]:
    """Notebook and name of each question that carries points, and that no person must mark."""
    found = []
    for notebook in gradebook.find_assignment(assignment).notebooks:
        by_hand = {cell.name for cell in notebook.solution_cells}
        found += [(notebook.name, c.name) for c in notebook.grade_cells if c.max_score and c.name not in by_hand]
    return found


def _trial(copy: Path, assignment: str, student: str, before: dict, after: dict, entry, asked: list) -> Trial:
    if entry is None:
        return Trial(student, [], "It has recorded marks, and no work in submitted/")
    if not entry.marked:
        return Trial(student, _differences({}, before, {}, asked), entry.why)
    said = ". ".join(filter(None, ["" if before else "Nothing is recorded", entry.why]))
    return Trial(student, _differences(after, before, _reports(copy, assignment, student), asked), said)


def _differences(after: dict, before: dict, why: dict[str, str], asked: list) -> list[Difference]:
    found = []
    for notebook, question in asked:
        now, was = (
            each.get("notebooks", {}).get(notebook, {}).get("grades", {}).get(question, {}) for each in (after, before)
        )
        mark, recorded = now.get("auto_score"), _recorded(was)
        if mark != recorded:
            hand = "" if was.get("manual_score") is None else "The recorded mark was given by hand. "
            found.append(Difference(question, mark, recorded, hand + why.get(question, "")))
    return found


def _recorded(grade: dict) -> float | None:
    return grade.get("auto_score") if grade.get("manual_score") is None else grade["manual_score"]


def _reports(copy: Path, assignment: str, student: str) -> dict[str, str]:
    """What the executed notebook says of each question that did not earn everything."""
    found = {}
    for path in sorted((copy / "autograded" / student / assignment).glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            texts = [output.get("text", "") or output.get("evalue", "") for output in cell.get("outputs", [])]
            lines = [line.strip() for text in texts for line in text.splitlines()[1:] or [text] if _lost(line)]
            if question := cell.metadata.get("nbgrader", {}).get("grade_id"):
                found[question] = "; ".join(filter(None, lines))[:WHY]
    return found


def _lost(line: str) -> bool:
    """Whether a line of a report says more than that a test earned all that it is worth."""
    words = line.split()
    return not (len(words) > 2 and words[1] == "of" and words[0] == words[2])


def _mark(mark: float | None) -> str:
    return "none" if mark is None else f"{mark:g}"
