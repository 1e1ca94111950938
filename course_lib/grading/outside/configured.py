"""What a course's settings say of how an assignment is marked, and whether that can be done."""

import functools
import logging
from pathlib import Path
from typing import Protocol

from course_lib._extras import needed
from course_lib.grading.sandbox.provisioner import NAME as SANDBOX
from course_lib.grading.sandbox.view import SandboxMissing, bubblewrap

with needed("lab"):
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
    from nbgrader.api import Gradebook
    from nbgrader.apps import AutogradeApp
    from nbgrader.converters import Autograde
    from traitlets.utils.importstring import import_item

REQUIRED, OFF = "required", "off"


class Settings(Protocol):
    """What is asked of an `ExecuteOutside`, which has a course's settings."""

    parent: AutogradeApp
    assignments: dict[str, list[str]]
    as_nbgrader: list[str]
    unsolved: list[str]
    sandbox: str
    warm: dict[str, list[str]]
    kernel_name: str

    def sandbox_settings(self, assignment: str, root: str) -> dict: ...


def check_marking(settings: Settings, assignment: str, here: bool = True) -> str:
    """Look how an assignment would be marked, before any student's code runs.

    settings : an `ExecuteOutside` whose parent is nbgrader with the configuration of the course
    here : whether this machine marks it, and so needs the sandbox

    Returns
    -------
    what somebody must know who has not asked for it; "" where there is nothing

    Raises
    ------
    ValueError : the configuration does not say how, or contradicts itself; says what to write.
    SandboxMissing : as `check_sandbox` has it.
    """
    outside = type(settings)
    _check_one_way(settings, assignment)
    if any(_marks_outside(each, outside) for each in Autograde(parent=settings.parent).autograde_preprocessors):
        check_named(settings, assignment)
        if here:
            check_sandbox(settings, assignment)
    elif assignment in settings.assignments:
        raise ValueError(
            f"c.ExecuteOutside.assignments names {assignment!r}, and nothing in c.Autograde.autograde_preprocessors "
            f"marks it from outside: write '{outside.__module__}.ExecuteOutside' there, for nbgrader's Execute."
        )
    elif assignment not in settings.as_nbgrader:
        rights = "" if in_sandbox(settings, assignment) else ", and students' code may read and write what you may"
        return (
            f"{assignment!r} is graded as nbgrader does it: its tests run in the student's process{rights}. "
            f"c.ExecuteOutside.as_nbgrader = {[*settings.as_nbgrader, assignment]} in nbgrader_config.py says that you "
            "know; book/own-course.md says how it is marked from outside instead."
        )
    return ""


def _marks_outside(preprocessor, outside: type) -> bool:
    try:
        found = import_item(preprocessor) if isinstance(preprocessor, str) else preprocessor
    except (ImportError, ValueError) as error:  # the second for a name that has an end and no beginning
        raise ValueError(
            f"c.Autograde.autograde_preprocessors names {preprocessor!r}, which cannot be imported: {error}"
        ) from None
    return issubclass(found if isinstance(found, type) else type(found), outside)


def check_named(settings: Settings, assignment: str) -> None:
    """Look whether somebody has said how an assignment is to be marked.

    Raises
    ------
    ValueError : nobody has, or in another spelling, or in two ways; says what to write.
    """
    _check_one_way(settings, assignment)
    if assignment not in settings.assignments and assignment not in settings.as_nbgrader:
        raise ValueError(
            f"Nothing is graded: nbgrader_config.py names {assignment!r} neither in c.ExecuteOutside.assignments nor "
            f"in c.ExecuteOutside.as_nbgrader. Add {assignment!r}: ['numpy'] to the first, with the packages that its "
            "notebooks may import: then its tests run outside the student's process, and students' code in a sandbox. "
            f"Or write c.ExecuteOutside.as_nbgrader = {[*settings.as_nbgrader, assignment]}: then its tests run in the "
            "student's process, and students' code may read and write what you may."
        )


def _check_one_way(settings: Settings, assignment: str) -> None:
    if assignment in settings.assignments and assignment in settings.as_nbgrader:
        rest = [name for name in settings.as_nbgrader if name != assignment]
        raise ValueError(
            f"nbgrader_config.py names {assignment!r} both in c.ExecuteOutside.assignments and in c.ExecuteOutside."
            f"as_nbgrader. Write c.ExecuteOutside.as_nbgrader = {rest}: then its tests run outside the student's "
            f"process. Or take {assignment!r} out of the first: then they run in it, as nbgrader does it."
        )


def slips(settings: Settings, source: Path, url: str) -> list[str]:
    """A sentence on each assignment that the settings name, and that the course does not have.

    source : the folder of the assignments' sources
    url : of the gradebook, which is opened only if a folder is missing
    """
    named: dict[str, list[str]] = {}
    for setting in ("assignments", "as_nbgrader", "warm"):
        for name in getattr(settings, setting):
            if not Path(source, name).is_dir():
                named.setdefault(name, []).append(f"c.ExecuteOutside.{setting}")
    if named:
        with Gradebook(url) as gradebook:
            known = {each.name for each in gradebook.assignments}
            named = {name: places for name, places in named.items() if name not in known}
    return [
        f"{' and '.join(places)} in nbgrader_config.py: {name!r} is no assignment of this course. It has no folder in "
        f"{source}, and the gradebook does not know it: a slip of the pen?"
        for name, places in named.items()
    ]


@functools.cache
def warn_once(log: logging.Logger, line: str) -> None:
    """Warn, unless this process has said the same before."""
    log.warning(line)


def in_sandbox(settings: Settings, assignment: str) -> bool:
    """Whether students' code of an assignment runs in the sandbox, so that it can change nothing of the course."""
    if assignment in settings.assignments:
        return settings.sandbox == REQUIRED
    try:
        kernel = KernelSpecManager().get_kernel_spec(settings.kernel_name)
    except (NoSuchKernel, ValueError):
        return False
    return kernel.metadata.get("kernel_provisioner", {}).get("provisioner_name") == SANDBOX


def check_sandbox(settings: Settings, assignment: str) -> None:
    """Look whether there is the sandbox that an assignment asks for, before anything is graded.

    Raises
    ------
    SandboxMissing : there is none; says how to install it, and how to grade without.
    """
    if assignment in settings.assignments and settings.sandbox == REQUIRED:
        try:
            bubblewrap()
        except SandboxMissing as error:
            raise SandboxMissing(
                f"{error} To grade without a sandbox, where students' code may read and write what you may, set "
                f"c.ExecuteOutside.sandbox = '{OFF}' in nbgrader_config.py, or, where that file reads it, as this "
                f"course's does, the variable COURSE_GRADING_SANDBOX to {OFF}."
            ) from None
