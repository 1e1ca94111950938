"""A whole assignment: everything that came is normalised, graded on all cores, recorded, and reported."""

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path

from course_lib._extras import needed
from course_lib.files import replacing
from course_lib.grading.marking import collecting, dates, incoming, laying, lms, record, report
from course_lib.grading.marking.alone import cores, gradebook_of, open_course, room
from course_lib.grading.marking.cluster import places
from course_lib.grading.marking.feedback import PAGES, feedback
from course_lib.grading.marking.files import SILENT
from course_lib.grading.marking.gradings import Bar, Gradings
from course_lib.grading.marking.overview import write_overview
from course_lib.grading.marking.released import Release, release_of
from course_lib.grading.marking.standing import names_of_cells, standing

with needed("lab"):
    import nbformat
    from nbgrader.api import MissingEntry
    from nbgrader.exchange.default import Exchange

STRUCTURE = os.path.join("{nbgrader_step}", "{student_id}", "{assignment_id}")  # nbgrader's own
SAVE_S = 1  # between two savings while works are laid: one takes a tenth of it where there are a thousand students


class Batch:
    """One run over one assignment of the course in the folder `root`.

    Raises
    ------
    ValueError : the assignment was never generated, or a table of the course or its gradebook cannot be read.
    """

    def __init__(self, root: Path, assignment: str, say: Callable[[str], None] = print):
        self.root, self.assignment, self.say = root.resolve(), assignment, say
        self.course = open_course(self.root)
        if self.course.coursedir.directory_structure != STRUCTURE:
            raise ValueError(
                f"c.CourseDirectory.directory_structure is {self.course.coursedir.directory_structure!r}, and marking "
                f"knows {STRUCTURE!r} alone: leave the setting out of nbgrader_config.py"
            )
        self.record = self.root / "marks" / f"{assignment}.json"
        self.entries = record.load(self.record)
        self.roster = dates.read_roster(self.root / "roster.csv")
        self.problems: list[str] = []
        self.graded = 0
        with gradebook_of(self.course) as gradebook:
            dates.write_roster(gradebook, self.roster)
            self.releases = self._releases(gradebook)
        for line in laying.finish(self.root, assignment, self.folder("submitted")):
            self.say(line)  # now: a slip in a table may end the run before its last lines
            self.problems.append(line)
        cells = (f"{name}{release.cells}" for name, release in self.releases.items())
        self.tests = _digest(*cells, *self._brought())

    def folder(self, step: str) -> Path:
        """Where the course has the works of a step of nbgrader's: "submitted", "autograded" and so on by default."""
        return self.root / getattr(self.course.coursedir, f"{step}_directory")

    @property
    def numbers(self) -> dict[str, str]:
        """The learning system's number of a student -> the id here, as roster.csv says."""
        return {row["lms_id"]: student for student, row in self.roster.items() if row.get("lms_id")}

    def check(self, moodle: Path | None = None, canvas: Path | None = None) -> None:
        """Read now what `report` needs at the end: a slip in it must not cost an hour of grading.

        Raises
        ------
        ValueError : dates.csv, a system's table, or the record of another assignment cannot be read; says why.
        """
        dates.read_dates(self.root / "dates.csv", self.assignment)
        for path in self.record.parent.glob("*.json"):
            record.load(path)
        with gradebook_of(self.course) as gradebook:
            most = gradebook.find_assignment(self.assignment).max_score
        for system, template in (("moodle", moodle), ("canvas", canvas)):
            if template:
                lms.fill(template, system, self.assignment, {}, most, self.numbers)

    def collect(self, archive: Path | None = None) -> None:
        """Lay what the exchange or an archive brings into submitted/, and say what it replaces."""
        if archive is None:
            arrived, problems = [], []
            if exchange := str(self.course.config.Exchange.get("root", Exchange.root.default_value) or ""):
                inbound = Path(exchange, self.course.coursedir.course_id, "inbound")
                arrived, problems = incoming.from_exchange(inbound, self.assignment)
        else:
            arrived, problems = incoming.from_archive(archive, self.numbers)
        self.problems += problems
        saved = time.monotonic()
        try:
            for each in arrived:
                entry, place = self.entries.setdefault(each.student, record.Entry()), self.folder("submitted")
                self.problems += collecting.take(each, entry, self.root, self.assignment, place)
                if time.monotonic() - saved > SAVE_S:  # a run that is killed runs no `finally`
                    self._save_laid()
                    saved = time.monotonic()
        finally:
            self._save_laid()

    def _save_laid(self) -> None:
        """Save the record when the disk has what it knows: of a work that the record knows, none is brought again."""
        if hasattr(os, "sync"):  # not on Windows
            os.sync()
        record.save(self.record, self.entries)

    def grade(self, force: bool = False, jobs: int | None = None, scheduler: str = "") -> None:
        """Grade what is new, what changed, and what stopped the last time; all of it if `force`.

        So many works as `jobs` says are graded at a time, by default as many as `room` says; by the Dask cluster whose
        address is `scheduler`, if there is one, and then as many as it has room for by default. The gradebook is
        written by this process alone, when a grading is over: one that fails, or is interrupted, changes nothing.

        Raises
        ------
        ValueError : the folder of the course cannot be written to; the cluster cannot grade; a hidden test cannot run.
        """
        most = places(scheduler, self.course, self.assignment) if scheduler else room()
        folders = sorted(self.folder("submitted").glob(f"*/{self.assignment}"))
        try:
            Gradings(self, force, scheduler).run(folders, jobs or most)
        except OSError as error:
            raise ValueError(f"Nothing more can be graded in {self.root}: {error.strerror or error}") from error

    def settle(self, students: Iterable[str]) -> None:
        """Let the marks of these stand, whatever trouble there was: somebody has looked.

        It holds for this work and this trouble, until that is over. Who has no marks of the last work cannot be
        settled; that is said.
        """
        for student in students:
            entry = self.entries.get(student, record.Entry())
            self._undecided(student, entry)
            if not entry.marked or entry.marked != entry.work:
                self.problems.append(f"{student} was not settled: no marks of the last work are there")
            elif not entry.troubles:
                self.problems.append(f"{student} was not settled: there is no trouble with the marks")
            else:
                entry.settled = entry.seen
        record.save(self.record, self.entries)

    def report(self, moodle: Path | None = None, canvas: Path | None = None, jobs: int | None = None) -> str:
        """Write dates into the gradebook, grades.csv, changed feedback and the systems' tables; return the summary.

        So many students' feedback as `jobs` says is made at a time, one for each core by default.
        """
        with gradebook_of(self.course) as gradebook:
            unknown = dates.write_dates(gradebook, self.root / "dates.csv", self.assignment)
            self.problems += [f"{student} has an extension in dates.csv, and is no student" for student in unknown]
            late = dates.LateDays(parent=self.course).apply(gradebook)
            for student, entry in self.entries.items():
                entry.late = late.get((self.assignment, student), "")
                self._undecided(student, entry)
                entry.unsettle()
            self._leave_out(gradebook)
            self._feedback(gradebook, jobs or cores())
            rows = report.table(gradebook, self.assignment, self.entries)
            write_overview(gradebook, self.assignment, self.entries, self.record.parent)
            most = gradebook.find_assignment(self.assignment).max_score
            everything = list(rows)
            for other in gradebook.assignments:
                if other.name != self.assignment:
                    entries = record.load(self.record.with_name(f"{other.name}.json"))
                    everything += report.table(gradebook, other.name, entries)
        if self.roster and set(self.entries) - set(self.roster):
            self.problems.append(f"Not in roster.csv: {', '.join(sorted(set(self.entries) - set(self.roster)))}")
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
        return report.summary(rows, self.problems, self.graded, self.root, self.folder("feedback"))

    def _leave_out(self, gradebook) -> None:
        """Those whose work and whose marks somebody removed: they have left the course."""
        for student, entry in list(self.entries.items()):
            folder = self.folder("submitted") / student / self.assignment
            elsewhere = entry.unlaid or entry.undecided
            if not (elsewhere or os.path.lexists(folder) or standing(gradebook, self.assignment, student)):
                del self.entries[student]
                place = self.course.coursedir.submitted_directory
                self.problems.append(f"{student}: neither in {place}/ nor in the gradebook any more; left out")

    def _undecided(self, student: str, entry: record.Entry) -> None:
        """As long as other work lies there, nobody knows whether the later one was graded."""
        entry.undecided, entry.others[record.UNDECIDED] = "", ""
        folder = Path("undecided", student, self.assignment)
        there = [path.name for path in (self.root / folder).glob("*") if path.name.isdecimal()]
        if there:
            other = folder / max(there, key=int)
            entry.others[record.UNDECIDED] = laying.noted(self.root / other).work
            place = Path(self.course.coursedir.submitted_directory, student, self.assignment)
            entry.undecided = (
                f"Two works came by two ways, and no time tells which is later: the other is {other}. "
                f"Let it take the place of {place}, or remove it"
            )

    def _feedback(self, gradebook, jobs: int) -> None:
        """Make the feedback of those whose notebook, marks or comments changed."""
        now = {}
        for student, entry in self.entries.items():
            folder = self.folder("autograded") / student / self.assignment
            if not entry.marked or not folder.is_dir():
                continue
            try:
                shown = self._shown(gradebook, student, folder)
            except Exception as error:  # whatever it is, the next student gets feedback
                self.problems.append(f"{student}: no feedback: {error}")
            else:
                if shown != entry.feedback or not (self.folder("feedback") / student / self.assignment).is_dir():
                    now[student] = shown
        with Bar(len(now), " students", self.say) as bar:
            for student, why in feedback(self.root, self.assignment, now, jobs):
                if why:
                    self.problems.append(f"{student}: no feedback: {why}")
                else:
                    self.entries[student].feedback = now[student]
                bar.update()

    def _shown(self, gradebook, student: str, folder: Path) -> str:
        """A digest of what a student's feedback shows: the executed notebook in `folder`, the marks, the comments."""
        submission, names = gradebook.find_submission(self.assignment, student), names_of_cells(gradebook)
        marks = [
            (names.get(each.cell_id), each.score, each.max_score, each.needs_manual_grade)
            for notebook in submission.notebooks
            for each in notebook.grades
        ]
        written = [each for notebook in submission.notebooks for each in notebook.comments]
        comments = [(names.get(each.cell_id), each.comment) for each in written]
        executed = [path.read_bytes() for path in sorted(folder.glob("*.ipynb"))]
        shown = sorted(marks, key=str), sorted(comments, key=str), submission.late_submission_penalty
        return _digest(PAGES, str(shown), *executed)

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
                path = self.folder("release") / self.assignment / f"{name}.ipynb"
                released = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
            except (OSError, ValueError):
                place = Path(self.course.coursedir.release_directory, self.assignment, f"{name}.ipynb")
                self.problems.append(f"{place} cannot be read: generate it again")
                released = None
            releases[name] = release_of(gradebook, self.assignment, name, released)
        return releases

    @cached_property
    def helpers(self) -> frozenset[str]:
        """The paths of all files that the instructor gives out, as they are when a run begins."""
        source = self.folder("source") / self.assignment
        return frozenset(path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file())

    def _brought(self) -> Iterator[str | bytes]:
        """Paths and contents of the files that nbgrader lays beside a work when it grades it: marks hang on them."""
        source = self.folder("source") / self.assignment
        for name in sorted(self.helpers):
            if name.removesuffix(".ipynb") not in self.releases and not set(Path(name).parts) & SILENT:
                yield name
                yield (source / name).read_bytes()


def _digest(*parts: str | bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part if isinstance(part, bytes) else part.encode("utf-8", errors="replace"))
        found.update(b"\0")
    return found.hexdigest()
