"""What came is laid where nbgrader collects, submitted/STUDENT/ASSIGNMENT, and what it replaces is kept.

A run may be killed before its record is saved. So the file `CAME` in the folder of a work says what came and how, and
gets there with the work.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from course_lib.grading.marking.files import SECRET, handed_in_at
from course_lib.grading.marking.incoming import Arrived, contents_of

# Beside the place of a work: what is being written, what is whole, and what it replaces until that is in replaced/.
ARRIVING, ARRIVED, REPLACED = ".{}.arriving", ".{}.arrived", ".{}.replaced"
CAME = ".came"  # in a work's folder: a `Came`
# How a work lies there: as all of it came, as some did, otherwise, or as what was put aside: by a person's hand, too.
WHOLE, PART, MENDED, ASIDE = "whole", "part", "mended", "aside"


class Came(NamedTuple):
    """What the course wrote down of a work when it laid it."""

    work: str = ""  # its digest
    how: str = ""  # WHOLE, PART or ASIDE
    origin: str = ""
    lacks: str = ""  # as `lacking` says it


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
    later, or was put there by hand since this came; "before", where this came before and was replaced since; "in part",
    where it would replace what is there, but not all of it could be read: nothing is laid; "undecided", where no time
    tells which of the two is later: it then lies in undecided/STUDENT/ASSIGNMENT, and a person decides.

    Raises
    ------
    OSError : it cannot be written; what was there is there. Where it is replaced/ alone that cannot be written to, what
        was there waits beside its place, and `finish` tries again.
    """
    # No student writes that file, on no disk: undecided work that a person puts into its place would have it.
    files = {path: content for path, content in arrived.files.items() if path.name.casefold() != CAME}
    place = root / submitted / arrived.student / assignment
    work = _digest(files)
    said = _later(arrived, work, place, came) if place.exists() else "new"
    if arrived.lacks and said in ("again", "undecided"):
        said = "in part"
    if said in ("new", "again", "undecided"):
        scratch, whole, old = _beside(place)
        try:
            _write(files, arrived.time, scratch)
            _note(Came(work, PART if arrived.lacks else WHOLE, arrived.origin, lacking(arrived)), scratch)
            os.replace(scratch, whole)
            if said == "undecided":
                _put_aside(whole, root / "undecided" / arrived.student / assignment)
            else:
                _put(whole, place, old)
            if said == "again":
                _put_aside(old, root / "replaced" / arrived.student / assignment)
        finally:  # not where the process is killed: `finish`
            shutil.rmtree(scratch, ignore_errors=True)
    if not arrived.lacks and work not in came:
        came.append(work)
    return said


def lacking(arrived: Arrived) -> str:
    """What of it did not come, and why; "" where all of it did."""
    return ", ".join((*arrived.lacks, *arrived.left))


def identity(arrived: Arrived) -> str:
    """What tells it from all other work of its student that is not laid either."""
    return f"{_digest(arrived.files)} {arrived.time or ''}".strip()


def noted(folder: Path) -> Came:
    """What the course wrote down of the work in this folder; nothing of work that it did not lay."""
    path = folder / CAME
    try:
        return _read(path.read_bytes() if path.is_file() and not path.is_symlink() else b"")
    except OSError:
        return Came()


def finish(root: Path, assignment: str, submitted: str | Path = "submitted") -> list[str]:
    """Complete what `lay` had begun when its process was killed, or remove it; one sentence for each student."""
    said = []
    names = [name.format(assignment) for name in (ARRIVING, ARRIVED, REPLACED)]
    for folder in sorted({left.parent for name in names for left in (root / submitted).glob(f"*/{name}")}):
        try:
            told = _finish(folder / assignment, root / "replaced" / folder.name / assignment)
        except OSError as error:
            told = f"what it left in {folder} is in the way: {error.strerror or error}"
        said.append(f"{folder.name}: a run was interrupted here; {told}")
    return said


def _finish(place: Path, replaced: Path) -> str:
    """Complete one student's, and say what became of it."""
    scratch, whole, old = _beside(place)
    told = "what had come is laid"
    if not place.exists() and whole.exists():
        os.replace(whole, place)
    elif not place.exists() and old.exists():
        os.replace(old, place)
        told = "what was there is there again"
    if old.exists():
        _put_aside(old, replaced)
    for left in (scratch, whole):
        if left.exists():
            shutil.rmtree(left)
            told = "what came was not laid; the exchange brings it again, and an archive has to be given again"
    return told


def _beside(place: Path) -> list[Path]:
    """Where a work is written, where it is when it is whole, and where what it replaces waits."""
    return [place.with_name(name.format(place.name)) for name in (ARRIVING, ARRIVED, REPLACED)]


def _put_aside(work: Path, folder: Path) -> None:
    """Move it into a folder of numbered works, from which only a person takes it back; its note says so."""
    came = noted(work)
    if came.work:
        _note(came._replace(how=ASIDE), work)
    shutil.move(work, _next(folder))  # which may copy: a course may have its folders on several file systems


def _note(came: Came, folder: Path) -> None:
    (folder / CAME).write_text(json.dumps(came._asdict()), encoding="utf-8")


def _put(whole: Path, place: Path, old: Path) -> None:
    """Let it take the place of what is there, which becomes `old`: by renaming, so that neither is ever there in part.

    Raises
    ------
    OSError : it cannot; what was there is there.
    """
    if not place.exists():
        os.replace(whole, place)
        return
    os.replace(place, old)
    try:
        os.replace(whole, place)
    except OSError:
        os.replace(old, place)
        raise


def _later(arrived: Arrived, work: str, place: Path, came: list[str]) -> str:
    """What to do with it where other work is in place."""
    there, how = _lying(place, came)
    if work == there:
        return "same"
    # What came in part is no later work than the whole; and of what comes in part nobody knows what it is.
    known = work in came and how != PART and not arrived.lacks
    by_hand = how not in (WHOLE, PART)
    stamp = handed_in_at(place, notes=[])
    if known and by_hand:  # whoever put that there could see this one
        return "stays"
    if arrived.time:
        laid = stamp or datetime.fromtimestamp(place.stat().st_mtime, UTC).replace(tzinfo=None)
        if arrived.time.replace(microsecond=0) > laid:
            return "again"
        if stamp == arrived.time.replace(microsecond=0) and not known:  # it was laid before all of it was there
            return "undecided" if by_hand else "again"
        return "stays" if stamp or known else "undecided"
    if known:
        return "stays" if work == came[-1] else "before"
    return "undecided" if stamp or how == MENDED else "again"  # of two archives the one given last counts


def _lying(place: Path, came: list[str]) -> tuple[str, str]:
    """The digest of the work in this folder, and how it lies there; "" where nobody can tell how work that came does.

    `came` gets the digest where it lacks it, since the run that laid the work was killed.
    """
    files = contents_of(place)
    there = _digest(files)
    said = _read(files.get(PurePosixPath(CAME), b""))
    if said.work != there:  # an older version wrote no note, and a person may have moved the files alone
        return there, "" if there in came and not said.work else MENDED
    if said.how == WHOLE and there not in came:
        came.append(there)
    return there, said.how


def _read(content: bytes) -> Came:
    """What a file `CAME` says."""
    try:
        return Came(**{name: str(value) for name, value in json.loads(content).items()})
    except (ValueError, AttributeError, TypeError, RecursionError):  # of an older version: the digest and how it lies
        return Came(*content.decode(errors="replace").split(" ")[:2])


def _write(files: Mapping[PurePosixPath, bytes], time: datetime | None, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    if sum(path.is_file() for path in folder.rglob("*")) < len(files):
        raise OSError("this disk takes the names of two of its files for one")
    if time:
        (folder / "timestamp.txt").write_text(f"{time:%Y-%m-%d %H:%M:%S} UTC\n", encoding="utf-8")


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
