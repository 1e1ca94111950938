"""A whole assignment: everything that came is normalised, graded one by one, recorded, and reported."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from course_lib._extras import needed
from course_lib.files import replacing
from course_lib.grading.marking import dates, incoming, lms, record, report
from course_lib.grading.marking.alone import (
    NORMALISED,
    Unfinished,
    apart,
    grade_alone,
    gradebook_of,
    open_course,
)
from course_lib.grading.marking.cells import Release, release_of
from course_lib.grading.marking.files import safe_name
from course_lib.grading.marking.normalise import Normalised, normalise, write
from course_lib.grading.marking.reading import Unreadable

with needed("lab"):
    import nbformat
    from nbgrader.api import MissingEntry
    from nbgrader.apps.api import NbGraderAPI


NORMALISING_S = 60


class Batch:
    """One run over one assignment of the course in the folder `root`.

    Raises
    ------
    ValueError : the assignment was never generated, or a table of the course cannot be read.
    """

    def __init__(self, root: Path, assignment: str, say: Callable[[str], None] = print):
        self.root, self.assignment, self.say = root.resolve(), assignment, say
        self.course = open_course(self.root)
        self.record = self.root / "marks" / f"{assignment}.json"
        self.entries = record.load(self.record)
        self.roster = dates.read_roster(self.root / "roster.csv")
        self.problems: list[str] = []
        self.graded = 0
        with gradebook_of(self.course) as gradebook:
            dates.write_roster(gradebook, self.roster)
            self.releases = self._releases(gradebook)
        self.tests = _digest(*(f"{name}{release.cells}" for name, release in self.releases.items()))

    @property
    def numbers(self) -> dict[str, str]:
        """The learning system's number of a student -> the id here, as roster.csv says."""
        return {row["lms_id"]: student for student, row in self.roster.items() if row.get("lms_id")}

    def collect(self, archive: Path | None = None) -> None:
        """Lay what the exchange or an archive brings into submitted/, and say what it replaces."""
        if archive is None:
            exchange = self.course.config.Exchange.get("root")
            inbound = Path(str(exchange or "/nowhere")) / self.course.coursedir.course_id / "inbound"
            arrived, problems = incoming.from_exchange(inbound, self.assignment)
        else:
            arrived, problems = incoming.from_archive(archive, self.numbers)
        self.problems += problems
        for each in arrived:
            if incoming.lay(each, self.root, self.assignment) != "same":
                self.entries.setdefault(each.student, record.Entry()).origin = each.origin

    def grade(self, force: bool = False) -> None:
        """Grade what is new, what changed, and what stopped the last time; all of it if `force`."""
        for folder in sorted((self.root / "submitted").glob(f"*/{self.assignment}")):
            student = folder.parent.name
            if safe_name(student) != student or not folder.is_dir() or folder.is_symlink():
                self.problems.append(f"submitted/{student!r}: no student can have this name; rename the folder")
                continue
            entry = self.entries.setdefault(student, record.Entry())
            try:
                self._grade(folder, student, entry, force)
            except Exception as error:  # whatever it is, the next student is graded
                told = isinstance(error, Unreadable | Unfinished)
                self._failed(entry, str(error) if told else f"{type(error).__name__}: {str(error)[:200]}")
                entry.notes = []
                self.say(f"{student}: needs attention")
            record.save(self.record, self.entries)

    def report(self, moodle: Path | None = None, canvas: Path | None = None) -> str:
        """Write dates into the gradebook, grades.csv, changed feedback and the systems' tables; return the summary."""
        with gradebook_of(self.course) as gradebook:
            dates.write_dates(gradebook, self.root / "dates.csv", self.assignment)
            late = dates.LateDays(parent=self.course).apply(gradebook)
            for student, entry in self.entries.items():
                entry.late = late.get((self.assignment, student), "")
            self._feedback(gradebook)
            rows = report.table(gradebook, self.assignment, self.entries)
            most = gradebook.find_assignment(self.assignment).max_score
            everything = list(rows)
            for other in gradebook.assignments:
                if other.name != self.assignment:
                    entries = record.load(self.record.with_name(f"{other.name}.json"))
                    everything += report.table(gradebook, other.name, entries)
        report.write_table(everything, self.root / "grades.csv")
        for system, template in (("moodle", moodle), ("canvas", canvas)):
            if template:
                marks = report.final_marks(rows)
                text, filled, lacking = lms.fill(template, system, self.assignment, marks, most, self.numbers)
                name = f"grades-{system}.csv"
                with replacing(self.root) as scratch:
                    (scratch / name).write_text(text, encoding="utf-8")
                self.problems += [f"{student} is not in {template.name}" for student in lacking]
                self.problems.append(f"{name}: {filled} final marks; all other cells are as they were exported")
        record.save(self.record, self.entries)
        return report.summary(rows, self.problems, self.graded, self.root)

    def _grade(self, folder: Path, student: str, entry: record.Entry, force: bool) -> None:
        target = self.root / NORMALISED / student / self.assignment
        found = apart(NORMALISING_S, _normalise, folder, self.releases, self._helpers(), target)
        same = entry.work == found.work
        if same and entry.tests == self.tests and not force:
            return
        before = self._standing(student) if entry.marked else ""
        trouble = grade_alone(self.course, self.assignment, student)
        entry.work, entry.notes = found.work, found.notes
        if trouble.startswith("Stopped") or not trouble:
            if before and entry.marked != found.work:
                entry.replaces = f"replaces {before}"
            entry.marked, entry.tests = found.work, self.tests
            entry.trouble = f"Not all of it ran. {trouble}" if trouble else ""
        else:
            self._failed(entry, trouble)
        if found.missing:
            entry.trouble = f"{', '.join(found.missing)} missing. {entry.trouble}"
        self.graded += 1
        self.say(f"{student}: {'needs attention' if entry.trouble else 'graded'}")

    def _failed(self, entry: record.Entry, why: str) -> None:
        stays = " The marks are those of the work before." if entry.marked else ""
        entry.trouble = f"It could not be graded: {why}.{stays}"
        entry.work = ""  # it is tried again the next time

    def _standing(self, student: str) -> str:
        """When what is in the gradebook was handed in, and what it earned."""
        with gradebook_of(self.course) as gradebook:
            submission = gradebook.find_submission(self.assignment, student)
            time = submission.timestamp
            when = f"the work of {time:%Y-%m-%d %H:%M} UTC" if time else "an earlier work"
            return f"{when}, which had {submission.score:g} points"

    def _feedback(self, gradebook) -> None:
        """Make the feedback of those whose notebook, marks or comments changed."""
        api = NbGraderAPI(self.course.coursedir, parent=self.course)
        for student, entry in self.entries.items():
            folder = self.root / "autograded" / student / self.assignment
            if not entry.marked or not folder.is_dir():
                continue
            submission = gradebook.find_submission(self.assignment, student)
            marks = [
                (grade.name, grade.score, grade.max_score, comment)
                for notebook in submission.notebooks
                for grade in notebook.grades
                for comment in [[c.comment for c in notebook.comments if c.name == grade.name]]
            ]
            executed = [path.read_bytes() for path in sorted(folder.glob("*.ipynb"))]
            now = _digest(str(sorted(marks)), str(submission.late_submission_penalty), *executed)
            if now == entry.feedback and (self.root / "feedback" / student / self.assignment).is_dir():
                continue
            said = api.generate_feedback(self.assignment, student, force=True)
            if said["success"]:
                entry.feedback = now
            else:
                self.problems.append(f"{student}: no feedback: {(said.get('error') or '').strip().splitlines()[-1:]}")

    def _releases(self, gradebook) -> dict[str, Release]:
        """Every notebook of the assignment, as the gradebook and the released file have it."""
        try:
            names = [notebook.name for notebook in gradebook.find_assignment(self.assignment).notebooks]
        except MissingEntry:
            names = []
        if not names:
            raise ValueError(f"{self.assignment} is not in the gradebook: run nbgrader generate_assignment first")
        releases = {}
        for name in sorted(names):
            try:
                path = self.root / "release" / self.assignment / f"{name}.ipynb"
                released = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
            except (OSError, ValueError):
                self.problems.append(f"release/{self.assignment}/{name}.ipynb cannot be read: generate it again")
                released = None
            releases[name] = release_of(gradebook, self.assignment, name, released)
        return releases

    def _helpers(self) -> set[str]:
        source = self.root / "source" / self.assignment
        return {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}


def _normalise(folder: Path, releases: dict[str, Release], helpers: set[str], target: Path) -> Normalised:
    found = normalise(folder, releases, helpers)
    write(found, target)
    return found._replace(notebooks={}, data={})


def _digest(*parts: str | bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part if isinstance(part, bytes) else part.encode("utf-8", errors="replace"))
        found.update(b"\0")
    return found.hexdigest()
