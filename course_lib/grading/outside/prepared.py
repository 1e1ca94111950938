"""What is done once for all works of an assignment, before the processes that grade them are forked."""

import asyncio
import contextlib
import functools
import importlib
import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

from course_lib._extras import needed
from course_lib.grading.contain import _descriptor_silenced
from course_lib.grading.frameworks import OWNERS, fastest_beside
from course_lib.grading.outside.borrowed import check_borrowed
from course_lib.grading.outside.configured import REQUIRED, Settings
from course_lib.grading.outside.tests import compiled, names_asked_for
from course_lib.grading.sandbox.provisioner import SandboxProvisioner
from course_lib.grading.sandbox.view import SandboxMissing, bubblewrap

with needed("lab"):
    from nbgrader.api import Gradebook, Notebook
    from nbgrader.coursedir import CourseDirectory


def hidden_tests(about: dict) -> dict[str, str]:
    """The cells of hidden tests of a notebook, as the gradebook has them: by name, those that carry points.

    about : the `nbgrader` part of a preprocessor's resources
    """
    with Gradebook(about["db_url"]) as gradebook:
        return _hidden_tests(gradebook.find_notebook(about["notebook"], about["assignment"]))


def check_tests(about: dict, coursedir: CourseDirectory, is_solved: bool) -> None:
    """Raise what `check_borrowed` does of a notebook; `about` as for `hidden_tests`."""
    with Gradebook(about["db_url"]) as gradebook:
        notebook = gradebook.find_notebook(about["notebook"], about["assignment"])
        check_borrowed(coursedir, about["assignment"], notebook, _hidden_tests(notebook), is_solved)


def _hidden_tests(notebook: Notebook) -> dict[str, str]:
    by_hand = {cell.name for cell in notebook.solution_cells}
    points = {cell.name for cell in notebook.grade_cells if cell.max_score and cell.name not in by_hand}
    return {cell.name: cell.source for cell in notebook.source_cells if cell.name in points}


def prepare_tests(settings: Settings, gradebook: Gradebook, assignment: str) -> None:
    """Compile an assignment's hidden tests, for all gradings that are forked from this process.

    Raises
    ------
    ValueError : one cannot run, so that nobody could be marked; says which, and what to do. Or as `check_borrowed`.
    """
    if assignment not in settings.assignments:
        return
    for notebook in gradebook.find_assignment(assignment).notebooks:
        tests = _hidden_tests(notebook)
        for name, source in tests.items():
            try:
                with warnings.catch_warnings(action="ignore"):
                    names_asked_for(source)
                    compiled(source)
            except (SyntaxError, ValueError) as error:
                raise ValueError(
                    f"The hidden tests of {name!r} in {notebook.name!r} cannot run: {type(error).__name__}: {error}. "
                    f"Mend them in the source notebook and run `nbgrader generate_assignment {assignment} --force`; "
                    "until then nothing is graded."
                ) from None
        check_borrowed(settings.parent.coursedir, assignment, notebook, tests, assignment not in settings.unsolved)


def begin_sandbox(settings: Settings, assignment: str, root: str) -> SandboxProvisioner | None:
    """Begin to import, in the sandbox, what an assignment's kernels are to be warm with; None where they start cold.

    root : the folder of the course
    """
    if settings.sandbox != REQUIRED or assignment not in settings.assignments or not settings.warm.get(assignment):
        return None
    try:
        bubblewrap()
    except SandboxMissing:  # each grading says so
        return None
    provisioner = SandboxProvisioner(**settings.sandbox_settings(assignment, root))
    provisioner.begin(_variables())
    return provisioner


def prepare_sandbox(settings: Settings, assignment: str, root: str) -> str:
    """Wait until kernels can be forked that are warm, so that all gradings forked from this process share them.

    What their tests compute in is imported in this process at the same time, whatever comes of it in the sandbox.

    root : the folder of the course

    Returns
    -------
    "", or why the kernels will start cold
    """
    provisioner = begin_sandbox(settings, assignment, root)
    if provisioner is None:
        return ""
    with ThreadPoolExecutor(1) as beside:  # a loop in this thread would be one with those of all forked processes
        prepared = beside.submit(asyncio.run, provisioner.prepare(_variables()))
        for module in OWNERS:
            if module in settings.warm[assignment]:
                _have(fastest_beside(module)) or _have(module)  # what hidden tests compare with is tensors, too
        return prepared.result()


def _variables() -> dict[str, str]:
    """With which kernels are started, as nbgrader sets them."""
    return {**os.environ, "NBGRADER_EXECUTION": "autograde"}


@functools.cache
def _have(module: str) -> bool:
    """Import it, once, whatever it prints; where that fails, each grading tries itself."""
    with contextlib.suppress(Exception), _descriptor_silenced(2):
        importlib.import_module(module)
    return sys.modules.get(module) is not None
