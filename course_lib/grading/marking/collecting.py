"""What the record says of a work that came: how it came, what of it did not, and why it is not in submitted/."""

import os
import re
from pathlib import Path

from course_lib.grading.marking import laying
from course_lib.grading.marking.incoming import Arrived
from course_lib.grading.marking.record import BY_ANOTHER, Entry


def take(each: Arrived, entry: Entry, root: Path, assignment: str, submitted: Path) -> list[str]:
    """Lay what a student handed in by one way, and note in `entry` what became of it.

    What went wrong by one way is told until that way brings what is good, or work takes the place of all before it.

    Returns
    -------
    What is to be said of it that concerns no mark.
    """
    way, what = _way(each.origin), laying.lacking(each)
    try:
        said = laying.lay(each, root, assignment, entry.came, submitted)
    except OSError as error:  # whatever its files are called, the next student's are collected
        _tell(entry, each, f"What came from {each.origin} cannot be written: {error.strerror or error}")
        return []
    if said in ("new", "again"):
        entry.laid, entry.unlaid = "", {}
    recall(entry, root / submitted / each.student / assignment)
    if said == "same":
        entry.origin = entry.origin or each.origin  # where a person put it there before it came
    is_its_own = said == "same" and way == _way(entry.origin)
    if is_its_own:  # otherwise what it lacked before, it lacks now
        entry.lacks = _lacks(each.origin, what)
        if not each.origin.startswith(BY_ANOTHER):  # whoever hands in another's work takes it from nobody
            entry.origin = each.origin
    if said == "in part" or (said == "same" and what and not is_its_own):
        _tell(
            entry,
            each,
            f"What came last from {each.origin} could not be read wholly, so the work before it stays and is graded; "
            f"mend what came, or ask for it again: {what}",
        )
    elif said in ("same", "undecided") or (said == "stays" and not each.lacks):
        for known in (way, ""):  # nothing later came: what could not be read or written then is this
            entry.unlaid.pop(known, None)
    if said == "before":
        return [f"{each.student}: what {each.origin} has came before, and later work took its place"]
    return []


def recall(entry: Entry, folder: Path) -> None:
    """What the course wrote down of work that the record does not know.

    The run that laid it was killed, or a person put it there from undecided/. Where a person put other work there, with
    no note of the course, that lacks nothing.
    """
    came = laying.noted(folder)
    if entry.laid and folder.is_dir() and not os.path.lexists(folder / laying.CAME):
        entry.lacks, entry.laid = "", ""
    if came.origin and came.work != entry.laid:
        entry.origin, entry.lacks, entry.laid = came.origin, _lacks(came.origin, came.lacks), came.work


def _tell(entry: Entry, each: Arrived, why: str) -> None:
    """Why this work is not in submitted/."""
    entry.unlaid[_way(each.origin)], entry.others[_way(each.origin)] = why, laying.identity(each)


def _lacks(origin: str, what: str) -> str:
    return f"Not all came from {origin}: {what}" if what else ""


def _way(origin: str) -> str:
    """The system by which it came: "Moodle", "Canvas" or "exchange"."""
    return re.split("[:,]", origin)[0]
