"""nbgrader's Execute, where hidden tests run outside the kernel, and student's code in it, in a sandbox."""

import copy
import os
import time
from pathlib import Path

from course_lib._extras import needed
from course_lib.grading.marking.apart import GRACE_S, Unfinished
from course_lib.grading.marking.execute import ExecuteToTheEnd
from course_lib.grading.outside.absent import Absent
from course_lib.grading.outside.channel import LimitedManager
from course_lib.grading.outside.configured import OFF, REQUIRED, check_named, check_sandbox, slips, warn_once
from course_lib.grading.outside.deadline import NoProcess, in_time, is_alone
from course_lib.grading.outside.examinee import Examinee
from course_lib.grading.outside.prepared import check_tests, hidden_tests, prepare_sandbox
from course_lib.grading.outside.seeds import secret_of, seed_for, what_lies_in
from course_lib.grading.outside.tests import HiddenTests, names_asked_for
from course_lib.grading.sandbox.provisioner import sandboxed
from course_lib.grading.score import SEED

with needed("lab"):
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_core.utils import run_sync
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from nbformat import NotebookNode
    from nbgrader.apps import AutogradeApp
    from nbgrader.converters.base import NbGraderException
    from traitlets import Bool, Dict, Enum, List, TraitError, Unicode, validate

ANSWERS = "course_lib.grading.answering"  # which every kernel imports
GONE = (  # nothing of ours is made or asked before nbgrader has made room for what it is about to write
    "As it was told to grade whatever there is, nbgrader has removed the executed notebook of {!r} first, if there was "
    "one. Marks stay as they are; grade again to have both anew."
)
UNFINISHED = (
    "{!r} has no new marks of this work: {}. Each work has {:g} seconds, c.ExecuteToTheEnd.notebook_limit and {} more. "
    "Perhaps a hidden test computes with what this student's code returned, however large that is: so it goes on for "
    "hours in `sum(range(n))` where n is 2**40, which nothing else can stop. Let the test look at a value before it "
    "computes with it; if it is no test, grade this student again when the machine is less busy. Others are graded."
)
KEPT = ("_assignment", "_packages", "_root", "_sources", "_to_come", "_passed_over", "_seed")  # of an ExecuteOutside
LIMITS = {"memory": 2 * 2**30, "processes": 64, "scratch": 128 * 2**20}  # settings of SandboxProvisioner


class EndOfRun(SystemExit, KeyboardInterrupt):
    """`nbgrader autograde` takes back what it began, as at Ctrl-C, and ends with this status.

    At any other error it would go on with the next student.
    """


class SandboxedSpecs(KernelSpecManager):
    """The installed kernels, each in a sandbox with the same settings."""

    settings = Dict()

    def get_kernel_spec(self, kernel_name: str):
        """A kernel by its name."""
        return sandboxed(super().get_kernel_spec(kernel_name), **self.settings)


class ExecuteOutside(ExecuteToTheEnd):
    """Run the notebook in a kernel, and its cells of hidden tests outside, with what the kernel hands back.

    Use it in nbgrader_config.py in the place of Execute, in `Autograde.autograde_preprocessors`. An assignment that
    `as_nbgrader` names runs as in ExecuteToTheEnd, with its tests in the student's process; one that is named neither
    there nor in `assignments` is not graded.
    """

    assignments = Dict(
        key_trait=Unicode(), value_trait=List(Unicode()),
        help="Assignments to be marked from outside: name -> the packages that their notebooks may import.",
    ).tag(config=True)  # fmt: skip
    as_nbgrader = List(
        Unicode(),
        help="Assignments graded as nbgrader does it: tests in the student's process, students' code with your rights.",
    ).tag(config=True)
    unsolved = List(
        Unicode(),
        help="Assignments whose sources are no whole solutions: others are graded first, and must have all points.",
    ).tag(config=True)
    sandbox = Enum([REQUIRED, OFF], REQUIRED, help="Whether these run in a sandbox, or with your rights.").tag(
        config=True
    )

    apart = Bool(
        True, help="Whether hidden tests run in a process of their own, which is ended where they compute on and on."
    ).tag(config=True)
    looked_at = Bool(False, help="Whether somebody has looked at the hidden tests before, as `make grade` does.").tag(
        config=True
    )
    also_hidden = List(Unicode(), help="Folders that no notebook may see, beside the course's own.").tag(config=True)
    limits = Dict(
        help="What a notebook in the sandbox may use: memory, scratch (bytes) and processes, where not as in LIMITS.",
    ).tag(config=True)
    warm = Dict(
        key_trait=Unicode(), value_trait=List(Unicode()),
        help="Modules that an assignment's kernels have imported when they start, in the sandbox: name -> modules.",
    ).tag(config=True)  # fmt: skip

    @validate("limits")
    def _known(self, proposal: dict) -> dict:
        if unknown := sorted(proposal["value"].keys() - LIMITS.keys()):
            raise TraitError(f"c.ExecuteOutside.limits has no {', '.join(unknown)}; it has {', '.join(LIMITS)}")
        return proposal["value"]

    def preprocess(self, nb: NotebookNode, resources: dict, km=None) -> tuple[NotebookNode, dict]:
        """Run all cells, as far as time and kernels go."""
        about = resources["nbgrader"]
        self._assignment = about["assignment"]
        self._packages = self.assignments.get(self._assignment)
        self._sources: dict[str, str] = {}
        self._to_come: dict[str, frozenset[str]] = {}
        self._passed_over: set[int] = set()
        converter = self.parent.parent  # preprocessor -> exporter -> converter
        coursedir = converter.coursedir
        for line in slips(self, Path(coursedir.root, coursedir.source_directory), about["db_url"]):
            warn_once(self.log, line)
        try:
            check_named(self, self._assignment)
            check_sandbox(self, self._assignment)
            if self._packages is not None and not self.looked_at:
                check_tests(about, coursedir, self._assignment not in self.unsolved)
        except ValueError as error:
            why = f"{error} {GONE.format(about['student'])}" if converter.force else str(error)
            if not isinstance(converter.parent, AutogradeApp):  # asked for one student alone
                raise NbGraderException(why) from None
            self.log.error(why)
            raise EndOfRun(1) from None
        if self._packages is not None:
            self._root = coursedir.root
            self._sources = hidden_tests(about)
            self._to_come = {name: names_asked_for(source) for name, source in self._sources.items()}
            code = [cell for cell in nb.cells if cell.cell_type == "code"]
            own = [cell.source for cell in code if _grade_id(cell) not in self._sources]
            names = [self._assignment, about["notebook"], about["student"], os.environ.get(SEED, "")]
            beside = what_lies_in(Path(resources["metadata"]["path"]))
            self._seed = seed_for(secret_of(Path(self._root)), *names, *own, *beside)
            if self.apart:
                return self._executed_apart(nb, resources), resources
        return self._executed(nb, resources, km)

    def _executed_apart(self, nb: NotebookNode, resources: dict) -> NotebookNode:
        """As `_executed`, in a process of its own.

        Raises
        ------
        NbGraderException : it did not come to an end, or failed; nbgrader goes on with the next student.
        """
        if is_alone() and (why := prepare_sandbox(self, self._assignment, self._root)):
            warn_once(self.log, f"c.ExecuteOutside.warm has no effect, kernels start cold: {why}")
        limit_s, student = self.notebook_limit + GRACE_S, resources["nbgrader"]["student"]
        try:
            return in_time(limit_s, self.log, self._executed, nb, resources)[0]
        except NoProcess as error:
            warn_once(self.log, f"Hidden tests run in this process, and nothing ends one that computes on: {error}")
            return self._executed(nb, resources)[0]
        except Unfinished as error:
            why = UNFINISHED.format(student, error, limit_s, GRACE_S)
            raise NbGraderException(f"{why} {GONE.format(student)}" if self.parent.parent.force else why) from None

    def _executed(self, nb: NotebookNode, resources: dict, km=None) -> tuple[NotebookNode, dict]:
        if self._packages is None:
            return super().preprocess(nb, resources, km)
        self._examinee, self._absent = Examinee(self), Absent(self._packages, nb.cells)
        try:
            nb, resources = super().preprocess(nb, resources, km)
        finally:
            self._examinee.close()
        nb.metadata.pop("widgets", None)  # of any size, and shown nowhere
        return nb, resources

    def __reduce__(self):
        """What `_executed` needs in a process that was started and not forked; nbgrader's own objects stay here."""
        settings = {name: getattr(self, name) for name in self.trait_names(config=True)}
        settings["warm"] = {}  # for one work it would import as much
        return _rebuilt, (type(self), self.config, self.log, settings, {name: vars(self).get(name) for name in KEPT})

    def preprocess_cell(self, cell: NotebookNode, resources: dict, index: int) -> tuple[NotebookNode, dict]:
        """Run one cell: in the kernel, or, of hidden tests, here."""
        self._index = index
        source = self._sources.get(_grade_id(cell))
        if source is None or self.time_is_over():
            try:
                cell, resources = super().preprocess_cell(cell, resources, index)
            except Exception as error:
                if self._packages is None:
                    raise
                self._stop(f"the code of cell {index + 1} sent what is no message of a kernel ({type(error).__name__})")
                cell.outputs = [self._notice()]
            if self._packages is not None and cell.cell_type == "code" and not _is_graded(cell):
                self._absent.look(index)
            if self._packages is not None and cell.cell_type == "code" and _is_graded(cell):
                # a public check, worth nothing: what the notebook shows there must not be read as points
                cell.outputs = [each for each in cell.get("outputs", []) if each.output_type in ("stream", "error")]
            if self._stopped and self._packages is not None and not self.time_is_over():
                self._stopped = ""  # that cell has the notice; the others need not pay for it
                self._passed_over.add(index)
                self.renew()
            return cell, resources
        self._to_come.pop(_grade_id(cell), None)  # wherever the student has moved it
        to_come = set().union(*self._to_come.values())
        cell.outputs = HiddenTests(source, self._examinee, self._seed, to_come).outputs()
        self._absent.explain(index, source)
        self._examinee.finish()
        return cell, resources

    def create_kernel_manager(self):
        """A manager of a kernel, in a sandbox where it should be."""
        if self._packages is None:
            return super().create_kernel_manager()
        self.km = LimitedManager(kernel_name=self.kernel_name or "python3", config=self.config)
        if self.sandbox == REQUIRED:
            settings = self.sandbox_settings(self._assignment, self._root)
            self.km.kernel_spec_manager = SandboxedSpecs(settings=settings)
            # What it said has been read, and what it started ends with it. By itself, one with PyTorch takes a second.
            self.shutdown_kernel = "immediate"
        return self.km

    def sandbox_settings(self, assignment: str, root: str) -> dict:
        """The settings of the `SandboxProvisioner` of an assignment's kernels; `root` is the folder of the course."""
        exchange = str(self.config.Exchange.get("root") or "")
        warm = self.warm.get(assignment, [])
        return {
            "packages": self.assignments[assignment], "hidden": [root, *self.also_hidden, *filter(None, [exchange])],
            "seconds": 2.0 * self.notebook_limit, "warm": warm and [*warm, ANSWERS], **LIMITS, **self.limits,
        }  # fmt: skip

    # What an examinee asks of whoever runs its kernel

    def connection(self) -> dict:
        """How the kernel is reached."""
        return self.km.get_connection_info()

    def alive(self) -> bool:
        """Whether the kernel's process runs."""
        return run_sync(self.km.is_alive)()

    def interrupt(self) -> None:
        """Interrupt the kernel."""
        run_sync(self.km.interrupt_kernel)()

    def time_is_over(self) -> bool:
        """Whether the notebook has had its time."""
        return time.monotonic() > self._end

    def renew(self) -> None:
        """A new kernel, in which the student's cells before this one have run again, those apart that ended one."""
        self._examinee.close()
        if self.kc is not None:
            self.kc.stop_channels()
        if self.km is not None and self.km.has_kernel:
            run_sync(self.km.shutdown_kernel)(now=True)
        self.kc = None
        self.create_kernel_manager()
        self.start_new_kernel()
        self.start_new_kernel_client()
        for place, cell in enumerate(self.nb.cells[: self._index]):
            own = cell.cell_type == "code" and cell.source.strip() and not _is_graded(cell)
            if own and place not in self._passed_over and not self.time_is_over():
                try:
                    self.execute_cell(copy.deepcopy(cell), place)
                except (DeadKernelError, CellTimeoutError):
                    self._passed_over.add(place)
                    return None if self.time_is_over() else self.renew()
                except Exception:  # what came is no message of a kernel: nobody's fault but the cell's
                    self._passed_over.add(place)

    def _stop(self, why: str) -> None:
        ended = getattr(self.km.provisioner, "ended", "")
        super()._stop(f"{why}: {ended}" if ended else why)


def _rebuilt(kind: type[ExecuteOutside], config, log, settings: dict, kept: dict) -> ExecuteOutside:
    made = kind(config=config, log=log, **settings)
    vars(made).update(kept)
    return made


def _grade_id(cell: NotebookNode) -> str | None:
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def _is_graded(cell: NotebookNode) -> bool:
    return cell.metadata.get("nbgrader", {}).get("grade", False)
