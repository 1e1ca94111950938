"""Works of one assignment, graded side by side; their marks are entered by one writer, one after the other."""

import contextlib
import gc
import math
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from course_lib._extras import needed
from course_lib.grading.marking import record
from course_lib.grading.marking.alone import (
    NORMALISED,
    Marks,
    cores,
    grade_alone,
    gradebook_of,
    grading_limit,
    rehearse,
    take_over,
    workplace,
)
from course_lib.grading.marking.apart import FORK, Apart, Unfinished, wait_for_one
from course_lib.grading.marking.cluster import grade_elsewhere, sending_limit
from course_lib.grading.marking.collecting import recall
from course_lib.grading.marking.files import safe_name
from course_lib.grading.marking.normalise import NORMALISING_S, Normalised, normalise_into
from course_lib.grading.marking.reading import Unreadable
from course_lib.grading.marking.solved import grade_solution
from course_lib.grading.marking.standing import enter, keep_reviewed, standing
from course_lib.grading.outside.execute import ExecuteOutside
from course_lib.grading.outside.prepared import begin_sandbox, prepare_sandbox, prepare_tests
from course_lib.grading.sandbox.warm import end_parents

with needed("lab"):
    import nbformat
    from jupyter_client.provisioning import KernelProvisionerFactory
    from nbgrader.api import Gradebook, MissingEntry

EVERY_S = 1  # the clock of a bar goes on while nothing is over


class Job(NamedTuple):
    """One student's work, under way: it is normalised, and then graded if anything is new."""

    student: str
    entry: record.Entry
    stood: dict  # of an earlier work, or of this one
    is_known: bool  # whether the gradebook has this student
    work: Apart
    found: Normalised | None = None  # when it is graded
    begun: float = 0.0  # time.monotonic(), of the grading


class Bar(tqdm):
    """How far a run is and how long it may still take, below the lines that are said; for a terminal.

    number : of things to be done; unit : what each is; say : what says lines, and there is a bar if it is `print`
    """

    monitor_interval = 0  # tqdm's thread, which would be there at every fork

    def __init__(self, number: int, unit: str, say: Callable[[str], None]):
        columns, rows = shutil.get_terminal_size()
        super().__init__(
            total=number, file=sys.stdout, unit=unit, leave=False,
            ncols=columns - 1, nrows=rows,  # where a terminal does not say how large it is, tqdm would show nothing
            smoothing=0,  # an estimate from all works, not from the last ones
            disable=say is not print or not sys.stdout.isatty(),
        )  # fmt: skip

    def show(self, done: int) -> None:
        """So many works are done by now; its clock goes on also where there are no more than before."""
        self.n = done
        self.refresh()


class Gradings:
    """The gradings of one run. On a terminal a `Bar` counts them, elsewhere each line does.

    batch : a `Batch`, which knows the course, what was handed in before, and what is told of it
    force : whether those are graded again of whom nothing changed
    scheduler : the address of a Dask cluster that grades; "": this machine does
    """

    def __init__(self, batch, force: bool, scheduler: str = ""):
        self.batch, self.force, self.scheduler, self.say = batch, force, scheduler, batch.say
        self._starts_cold = self._is_rehearsed = False
        self._known: Gradebook | None = None

    def run(self, folders: Iterable[Path], jobs: int) -> None:
        """Grade the works in these folders, so many at a time.

        Raises
        ------
        OSError : the course cannot be written to.
        ValueError : a hidden test cannot run, or the course's own solution has not all points.
        """
        waiting, begun = deque(folders), time.monotonic()
        number = len(waiting)
        running: list[Job] = []
        bar = Bar(number, " works", self.batch.say)
        if not bar.disable:
            self.say = bar.write
        try:
            if any(map(self._is_surely_graded, waiting)):
                with contextlib.suppress(Exception):  # each grading says so
                    self._with_course(begin_sandbox)  # it imports while this process does the rest
            self._prepare_forks()
            gc.freeze()  # what is imported stays: to look through it again would cost the import of PyTorch a second
            with bar, workplace(self.batch.course):
                if waiting:
                    grade_solution(self.batch, self._grading)
                while waiting or running:
                    while waiting and len(running) < jobs and sum(job.found is None for job in running) < cores():
                        running += self._begun(waiting.popleft())
                        bar.show(number - len(waiting) - len(running))
                    if running:
                        wait_for_one([job.work for job in running], math.inf if bar.disable else EVERY_S)
                    for job in [job for job in running if job.work.is_over]:
                        running.remove(job)
                        if job.found is None:
                            running += self._normalised(job)
                        else:
                            done = number - len(waiting) - len(running)
                            self._end(job, _left(done, number, time.monotonic() - begun) if bar.disable else "")
                    bar.show(number - len(waiting) - len(running))
        finally:
            for job in running:
                job.work.stop()
            end_parents()
            gc.unfreeze()

    def _prepare_forks(self) -> None:
        """Do once what each grading would do: those that are forked from this process need not."""
        for relaxed in (False, True):  # nbconvert's, which reads the schema in both ways
            nbformat.validate(nbformat.v4.new_notebook(), relax_add_props=relaxed)
        KernelProvisionerFactory.instance(parent=self.batch.course)
        with gradebook_of(self.batch.course) as gradebook:
            prepare_tests(ExecuteOutside(parent=self.batch.course), gradebook, self.batch.assignment)

    @contextlib.contextmanager
    def _gradebook(self) -> Iterator[Gradebook]:
        """The course's gradebook. Between two of these blocks this process has no connection: others may write, too."""
        self._known = self._known or gradebook_of(self.batch.course)
        try:
            yield self._known
        finally:
            self._known.db.remove()

    def _begun(self, folder: Path) -> list[Job]:
        """The work in this folder, under way; nothing where no student can have it."""
        student = folder.parent.name
        if safe_name(student) != student:
            self.batch.problems.append(
                f"{folder.parent.parent.name}/{student!r}: no student can have this name; rename the folder"
            )
            return []
        entry = self.batch.entries.setdefault(student, record.Entry())
        try:
            if folder.is_symlink() or not folder.is_dir():
                raise Unreadable(f"{folder} is a link, or no folder: put the files themselves there")
            with self._gradebook() as gradebook:
                stood = standing(gradebook, self.batch.assignment, student)
                is_known = _is_known(gradebook, student)
            if not stood:
                entry.marked = ""  # what it says of marks was true of a gradebook that had this student
            target = self.batch.root / NORMALISED / student / self.batch.assignment
            recall(entry, folder)
            given = folder, self.batch.releases, self.batch.helpers, target
            return [Job(student, entry, stood, is_known, Apart(NORMALISING_S, normalise_into, *given))]
        except Exception as error:  # whatever it is, the next student is graded
            self._unreadable(student, entry, error)
            record.save(self.batch.record, self.batch.entries)
            return []

    def _normalised(self, job: Job) -> list[Job]:
        """Its grading, begun; none where nothing is new, or it cannot be read."""
        student, entry = job.student, job.entry
        try:
            found = job.work.result()
            if job.stood and entry.work == found.work and entry.tests == self.batch.tests and not self.force:
                with self._gradebook() as gradebook:
                    self._date(gradebook, student, found.time)
                return []
            work = self._grading(student, job.stood, job.is_known)
            return [job._replace(work=work, found=found, begun=time.monotonic())]
        except Exception as error:  # whatever it is, the next student is graded
            self._unreadable(student, entry, error)
            record.save(self.batch.record, self.batch.entries)
            return []

    def _grading(self, student: str, stood: dict, is_known: bool) -> Apart:
        """A student's normalised work, being graded here or on the cluster."""
        arguments = self.batch.root, self.batch.assignment, student, stood, is_known
        if self.scheduler:
            return Apart(sending_limit(self.batch.course), grade_elsewhere, self.scheduler, *arguments)
        self._prepare()
        return Apart(grading_limit(self.batch.course), grade_alone, *arguments)

    def _is_surely_graded(self, folder: Path) -> bool:
        """Whether the work in this folder is graded on this machine whatever it says, and was not unreadable before."""
        entry = self.batch.entries.get(folder.parent.name, record.Entry())
        is_new = not (entry.work or entry.trouble) or bool(entry.work) and entry.tests != self.batch.tests
        return not self.scheduler and (self.force or is_new)

    def _with_course(self, work: Callable):
        """What `begin_sandbox` or `prepare_sandbox` returns for the course and the assignment that are graded."""
        course = self.batch.course
        return work(ExecuteOutside(parent=course), self.batch.assignment, course.coursedir.root)

    def _prepare(self) -> None:
        """Do once what each grading would do, and import again in the sandbox when what had imported has ended."""
        if FORK == "fork" and not self._is_rehearsed:
            self._is_rehearsed = True
            with contextlib.suppress(Exception):  # each grading compiles for itself
                rehearse(self.batch.course, self.batch.assignment)
            gc.freeze()  # that, too
        if not self._starts_cold:
            if why := self._with_course(prepare_sandbox):
                self._starts_cold = True
                self.batch.problems.append(f"c.ExecuteOutside.warm has no effect, kernels started cold: {why}")

    def _end(self, job: Job, left: str) -> None:
        """Enter what a grading came to."""
        student, entry, found = job.student, job.entry, job.found
        try:
            before = self._standing(student) if job.stood and entry.marked else ""
            try:
                marks = job.work.result()
            except Unfinished as error:
                marks = Marks({}, str(error))
            graded = marks.are_there
            if graded:
                self._enter(job, marks)
            entry.work, entry.notes = found.work, found.notes
            entry.seconds = round(time.monotonic() - job.begun, 1)
            if graded:
                if before and entry.marked != found.work:
                    entry.replaces = f"replaces {before}"
                entry.marked, entry.tests = found.work, self.batch.tests
                entry.trouble = f"Not all of it ran. {marks.why}" if marks.why else ""
            else:
                self._failed(entry, marks.why)
            if found.missing:
                entry.trouble = f"{', '.join(found.missing)} missing. {entry.trouble}"
            entry.trouble = ". ".join(filter(None, [*found.doubts, entry.trouble]))
            self.batch.graded += 1
            self.say(f"{student}: {'needs attention' if entry.trouble else 'graded'}{left}")
        except Exception as error:  # whatever it is, the next student's is entered
            self._unreadable(student, entry, error)
        finally:
            record.save(self.batch.record, self.batch.entries)

    def _enter(self, job: Job, marks: Marks) -> None:
        """Marks into the gradebook, the executed notebook into autograded/.

        Where a run ends in between, or before its record is written, the work is graded again the next time.
        """
        take_over(self.batch.root, self.batch.assignment, job.student, self.batch.folder("autograded"))
        with self._gradebook() as gradebook:
            stood = standing(gradebook, self.batch.assignment, job.student)  # somebody may have marked meanwhile
            enter(gradebook, self.batch.assignment, job.student, marks.stands, by_hand=False)
            if stood and job.entry.marked == job.found.work:
                keep_reviewed(gradebook, self.batch.assignment, job.student, stood)
            self._date(gradebook, job.student, job.found.time)

    def _unreadable(self, student: str, entry: record.Entry, error: Exception) -> None:
        told = isinstance(error, Unreadable | Unfinished)
        self._failed(entry, str(error) if told else f"{type(error).__name__}: {str(error)[:200]}")
        entry.notes = []
        self.say(f"{student}: needs attention")

    def _date(self, gradebook: Gradebook, student: str, time) -> None:
        """Lateness is that of the work whose marks stand; where it has no time, nbgrader keeps that of earlier work."""
        submission = gradebook.find_submission(self.batch.assignment, student)
        if submission.timestamp != time:
            submission.timestamp = time
            gradebook.db.commit()

    def _failed(self, entry: record.Entry, why: str) -> None:
        stays = " The marks are those of the work before." if entry.marked else ""
        entry.trouble = f"It could not be graded: {why}.{stays}"
        entry.work = ""  # it is tried again the next time

    def _standing(self, student: str) -> str:
        """When what is in the gradebook was handed in, and what it earned."""
        with self._gradebook() as gradebook:
            submission = gradebook.find_submission(self.batch.assignment, student)
            time = submission.timestamp
            when = f"the work of {time:%Y-%m-%d %H:%M} UTC" if time else "an earlier work"
            return f"{when}, which had {submission.score:g} points"


def _is_known(gradebook: Gradebook, student: str) -> bool:
    try:
        gradebook.find_student(student)
    except MissingEntry:
        return False
    return True


def _left(done: int, number: int, seconds: float) -> str:
    """How far a run is, and how long it may still take."""
    minutes = (number - done) * seconds / done / 60
    if minutes < 1.5:
        return f"  ({done} of {number})"
    return f"  ({done} of {number}, about {minutes:.0f} minutes left)"
