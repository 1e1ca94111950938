"""What came is laid where nbgrader collects, submitted/STUDENT/ASSIGNMENT, and what it replaces is kept.

A run may be killed before its record is saved. So the file `CAME` in the folder of a work says what came, and gets
there with the work.
"""

import hashlib
import os
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from course_lib.grading.marking.files import SECRET, handed_in_at
from course_lib.grading.marking.incoming import Arrived, contents_of

ARRIVING, ARRIVED = ".{}.arriving", ".{}.arrived"  # beside its place: what is being written, and what is whole
CAME = ".came"  # in a work's folder: its digest, and WHOLE or PART
WHOLE, PART, MENDED = "whole", "part", "mended"  # how a work lies there: as all of it came, as some did, or otherwise


def lay(arrived: Arrived, root: Path, assignment: str, came: list[str], submitted: str | Path = "submitted") -> str:
    """Put it into submitted/STUDENT/ASSIGNMENT, whole or not at all, unless what is there is the later work.

    Parameters
    ----------
    came : digests of what came whole from this student before, by whichever way; that of `arrived` is added, and that
        of a work whose run was killed before it could be
    submitted : what the course calls the folder submitted/

    Returns
    -------
    "new"; "again", where it replaces what goes to replaced/; "same", where it is there; "stays", where what is there is
    later, or was mended by hand; "before", where it came before and was replaced since; "in part", where it would
    replace what is there, but not all of it could be read: nothing is laid; "undecided", where no time tells which of
    the two is later: it then lies in undecided/STUDENT/ASSIGNMENT, and a person decides.

    Raises
    ------
    OSError : it cannot be written; what was there is there.
    """
    place = root / submitted / arrived.student / assignment
    work = _digest(arrived.files)
    said = _later(arrived, work, place, came) if place.exists() else "new"
    if arrived.lacks and said in ("again", "undecided"):
        said = "in part"
    if said in ("new", "again", "undecided"):
        target = place if said != "undecided" else _next(root / "undecided" / arrived.student / assignment)
        scratch, whole = (place.with_name(name.format(assignment)) for name in (ARRIVING, ARRIVED))
        try:
            _write(arrived, scratch)
            if target == place:
                (scratch / CAME).write_text(f"{work} {PART if arrived.lacks else WHOLE}", encoding="utf-8")
            os.replace(scratch, whole)
            if said == "again":
                shutil.move(place, _next(root / "replaced" / arrived.student / assignment))
            shutil.move(whole, target)  # which copies where a course has its folders on several file systems
        finally:  # not where the process is killed: `finish`
            shutil.rmtree(scratch, ignore_errors=True)
    if not arrived.lacks and work not in came:
        came.append(work)
    return said


def finish(root: Path, assignment: str, submitted: str | Path = "submitted") -> list[str]:
    """Complete what `lay` had begun when its process was killed, or remove it; one sentence for each student."""
    said = []
    for left in sorted((root / submitted).glob(f"*/.{assignment}.arriv*")):
        place = left.with_name(assignment)
        try:
            if left.name == ARRIVED.format(assignment) and not place.exists():
                os.replace(left, place)
                told = "what had come is laid"
            else:
                shutil.rmtree(left)
                told = "what came was not laid; give its archive again"
        except OSError as error:
            told = f"{left} is in the way: {error.strerror}"
        said.append(f"{left.parent.name}: a run was interrupted here; {told}")
    return said


def _later(arrived: Arrived, work: str, place: Path, came: list[str]) -> str:
    """What to do with it where other work is in place."""
    there, how = _lying(place, came)
    if work == there:
        return "same"
    known = work in came and how != PART  # what came in part is no later work than the whole
    stamp = handed_in_at(place, notes=[])
    if arrived.time:
        laid = stamp or datetime.fromtimestamp(place.stat().st_mtime, UTC).replace(tzinfo=None)
        if arrived.time.replace(microsecond=0) > laid:
            return "again"
        if stamp == arrived.time.replace(microsecond=0) and not known:  # it was laid before all of it was there
            return "undecided" if how == MENDED else "again"
        return "stays" if stamp or known else "undecided"
    if known:
        return "stays" if work == came[-1] else "before"
    return "undecided" if stamp or how == MENDED else "again"  # of two archives the one given last counts


def _lying(place: Path, came: list[str]) -> tuple[str, str]:
    """The digest of the work in this folder, and how it lies there: WHOLE, PART or MENDED.

    `came` gets the digest where it lacks it, since the run that laid the work was killed.
    """
    files = contents_of(place)
    there = _digest(files)
    work, _, how = files.get(PurePosixPath(CAME), b"").decode(errors="replace").partition(" ")
    if work != there:
        return there, WHOLE if there in came else MENDED
    if how == WHOLE and there not in came:
        came.append(there)
    return there, how


def _write(arrived: Arrived, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path, content in arrived.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    if arrived.time:
        (folder / "timestamp.txt").write_text(f"{arrived.time:%Y-%m-%d %H:%M:%S} UTC\n", encoding="utf-8")


def _next(folder: Path) -> Path:
    """A new place in a folder of numbered ones."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = [int(each.name) for each in folder.iterdir() if each.name.isdecimal()]
    return folder / str(1 + max(numbers, default=0))


def _digest(files: Mapping[PurePosixPath, bytes]) -> str:
    """Of the work, whenever it was handed in."""
    parts = [
        f"{path}\0{hashlib.sha256(content).hexdigest()}\n"
        for path, content in files.items()
        if path.name not in ("timestamp.txt", SECRET, CAME)
    ]
    return hashlib.sha256("".join(sorted(parts)).encode("utf-8", errors="replace")).hexdigest()
