"""What comes from the exchange, or in an archive of Moodle's or Canvas's; `laying` puts it where nbgrader collects.

The names are those that the two write today. Moodle: `Full Name_12345_assignsubmission_file/hw.ipynb`, with `file_/` in
older versions, and no folder where the teacher wants none (mod/assign/classes/downloader.php). Canvas:
`lastfirst_12345_67890_hw.ipynb`, with `LATE_` before the first number; the numbers are the user's and the file's, and
an anonymous user is `anon_` and five letters (lib/content_zipper.rb).
"""

import os
import re
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from course_lib.grading.marking.files import BROKEN, LARGEST, SILENT, handed_in_at, safe_name
from course_lib.grading.marking.lms import student_of
from course_lib.grading.marking.moments import moment
from course_lib.grading.marking.record import BY_ANOTHER

# Moodle makes blanks of the underscores in a name: what has some is a file that a student called like one of Moodle's.
MOODLE = re.compile(
    r"(?:^|/)(?P<name>[^/_]+)_(?P<user>\d+)_assignsubmission_(?P<kind>[a-z]+)(?P<late>)_?/?(?P<rest>.+)$", re.DOTALL
)
CANVAS = re.compile(
    r"(?:^|/)(?:(?P<name>[^/]+?)_)?(?P<late>LATE_)?(?P<user>\d+|anon_\w{5})_"
    r"(?:\d+_(?P<rest>[^/]+)|(?P<kind>text|link)\.html)$"
)
NAMED = 10  # students in one sentence
LONGEST = 120  # bytes of a file's name; a name in an archive may have more than a disk takes


class Arrived(NamedTuple):
    """What one student handed in by one way."""

    student: str
    origin: str  # for the table: which way, and whether that way calls it late
    files: dict[PurePosixPath, bytes]
    time: datetime | None = None  # UTC, without a zone
    lacks: tuple[str, ...] = ()  # why some of it is not among `files`


def from_archive(path: Path, students: Mapping[str, str]) -> tuple[Iterator[Arrived], list[str]]:
    """The students' files in an archive of a learning management system, or in a folder made of one.

    Parameters
    ----------
    path : the .zip, or a folder that it was unpacked to
    students : the system's number of a student -> the id in this course; others keep their number

    Returns
    -------
    What arrived, read one student at a time, and one sentence for everything that could not be told.

    Raises
    ------
    ValueError : the archive cannot be opened, or nothing in it has a name of Moodle's or Canvas's.
    """
    problems: list[str] = []
    found: dict[str, _Files] = {}
    origins: dict[str, str] = {}
    for place, size, read in _in_folder(path, PurePosixPath(), problems) if path.is_dir() else _in_zip(path):
        if SILENT.intersection(place.parts):
            continue
        match = MOODLE.search(str(place)) or CANVAS.search(str(place))
        if match is None:
            problems.append(f"{_shown(place)} has no name of Moodle's or Canvas's and was left out")
            continue
        laid = _safe_path(match["rest"] or f"{match['kind']}.html")
        if SILENT.intersection(laid.parts):  # above all a student's own timestamp.txt: it would count as the course's
            continue
        system = "Moodle" if match.re is MOODLE else "Canvas"
        student = student_of(match["user"], students)
        if student is None:
            problems.append(
                f"{_shown(place)} was left out: {system}'s number {match['user']} is nobody's lms_id in roster.csv, "
                "but somebody else's student_id; write down whose it is"
            )
            continue
        origins[student] = f"{system}: {(match['name'] or 'anonymous')[:60]}{', LATE' if match['late'] else ''}"
        found.setdefault(student, _Files()).add(laid, (place, size, read))
    if not found:
        raise ValueError(f"{path.name} holds no file with a name of Moodle's or Canvas's. {' '.join(problems[:3])}")
    return (_arrived(name, origins[name], files) for name, files in found.items()), problems


def from_exchange(inbound: Path, assignment: str) -> tuple[Iterator[Arrived], list[str]]:
    """The newest that each student submitted into nbgrader's exchange, and one sentence for what is strange there.

    nbgrader's own `collect` stops for everybody at one time stamp that it cannot read, follows links, and keeps the
    older work unless it is told `--update`. Where a time cannot be read, or has not come yet, the folder's counts here.
    A course without an exchange has no such folder; that is said as well. So is whose account another's work came from,
    where accounts tell anything (`_telling`).
    """
    newest: dict[str, tuple[datetime, str | None, Path]] = {}
    tomorrow = datetime.now(UTC).replace(tzinfo=None) + timedelta(days=1)
    problems: list[str] = []
    wrote: list[tuple[str | None, str]] = []
    try:
        folders = sorted(inbound.iterdir())
    except OSError as error:
        folders = []
        problems.append(
            f"Nothing was collected from the exchange, {inbound}: {error.strerror}. (A course without an exchange sets "
            "the variable NBGRADER_EXCHANGE to nothing.)"
        )
    for folder in folders:
        student, here, rest = folder.name.partition(f"+{assignment}+")
        if not here or folder.is_symlink() or not folder.is_dir():
            continue
        if safe_name(student) != student:
            problems.append(f"{_shown(folder.name)} in the exchange: no student can have this name")
            continue
        wrote.append((owner := _owner(folder), student))
        # A secret follows the time, whose zone may be written +08; the file has the time alone.
        time = handed_in_at(folder, notes=[]) or moment(rest.rpartition("+")[0]) or moment(rest)
        if time is None or time > tomorrow:  # of a wrong clock, it would be the newest for ever
            time = datetime.fromtimestamp(folder.stat().st_mtime, UTC).replace(tzinfo=None)
            problems.append(f"{_shown(folder.name)} in the exchange: its time cannot be right; the folder's was taken")
        # Of two within a second, of which `time` has no fractions, the later by its name.
        if student not in newest or time >= newest[student][0]:
            newest[student] = (time, owner, folder)
    strangers, said = _telling(wrote, {folder.name.partition("+")[0] for folder in folders}, inbound)
    problems += said
    found = {student: (_in_place(folder, problems), *how) for student, (*how, folder) in newest.items()}
    origins = {(owner, student): f"{BY_ANOTHER}{owner}" for owner, student in wrote if owner in strangers - {student}}
    return (
        _arrived(name, origins.get((owner, name), "exchange"), files, time)
        for name, (files, time, owner) in found.items()
    ), problems


def contents_of(folder: Path) -> dict[PurePosixPath, bytes]:
    """The files of one student's folder, as far as they can be read."""
    return _arrived("", "", _in_place(folder, [])).files


def _in_zip(path: Path) -> Iterator[tuple[PurePosixPath, int, Callable[[], bytes]]]:
    """The files of an archive, an archive inside it as the file that it is; names are data, and nothing is unpacked."""
    try:
        archive = zipfile.ZipFile(path)  # open until its last file is read: each opening goes through all the names
    except BROKEN as error:
        raise ValueError(f"{path} cannot be opened as a .zip: {error}") from None
    for member in archive.infolist():
        place = PurePosixPath(*re.split(r"[/\\]", member.filename))
        if not member.is_dir():
            yield place, member.file_size, lambda member=member: archive.read(member)


def _in_folder(
    folder: Path, inside: PurePosixPath, problems: list[str]
) -> Iterator[tuple[PurePosixPath, int, Callable[[], bytes]]]:
    """The files of a folder; a link, a pipe or a device in it is named and left out.

    A folder that cannot be read is a file that cannot.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        yield inside, 0, folder.read_bytes
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _in_folder(Path(entry.path), inside / entry.name, problems)
        elif entry.is_file(follow_symlinks=False):
            yield inside / entry.name, entry.stat().st_size, Path(entry.path).read_bytes
        else:
            problems.append(f"{_shown(folder.name)}/{_shown(entry.name)} is no plain file; left out")


def _in_place(folder: Path, problems: list[str]) -> dict[PurePosixPath, tuple]:
    """The files of one student's folder, for `_arrived`."""
    return {place: (place, size, read) for place, size, read in _in_folder(folder, PurePosixPath(), problems)}


def _arrived(student: str, origin: str, files: Mapping[PurePosixPath, tuple], time: datetime | None = None) -> Arrived:
    """One student's files, as far as they can be read and are not too large; the others are what it lacks."""
    contents, lacks, room = {}, [], LARGEST
    for path, (place, size, read) in files.items():
        if size > room:
            lacks.append(f"{_shown(place)} was left out: one student's files have more than {LARGEST >> 20} MiB")
            continue
        try:
            contents[path] = read()
        except BROKEN as error:
            why = error.strerror if isinstance(error, OSError) else None
            lacks.append(f"{_shown(place)} cannot be read: {str(why or error)[:60]}")
        room -= size
    return Arrived(student, origin, contents, time, tuple(lacks))


class _Files(dict):
    """One student's files, by where they are laid."""

    def __init__(self):
        self.folders: set[PurePosixPath] = set()

    def add(self, path: PurePosixPath, value) -> None:
        """Under a name that no other has, and that is not another's folder."""
        made = PurePosixPath()
        for at, part in enumerate(path.parts, start=1):
            number, name, last = 1, PurePosixPath(part), at == len(path.parts)
            while made / name in self or (last and made / name in self.folders):
                number += 1
                name = PurePosixPath(part).with_name(f"{PurePosixPath(part).stem}_{number}{PurePosixPath(part).suffix}")
            made /= name
        self[made] = value
        self.folders.update(made.parents)


def _safe_path(text: str) -> PurePosixPath:
    """A path inside a folder: no part of it leads out, and all can be written on any system."""
    parts = [re.sub(r'[\x00-\x1f<>:"|?*]', "_", part) for part in re.split(r"[/\\]", text)]
    return PurePosixPath(*[_short(part) for part in parts if part.strip(". ")] or ["unnamed"])


def _short(name: str) -> str:
    """A name that a disk takes, with its ending."""
    whole = name.encode("utf-8", errors="replace")
    if len(whole) > LONGEST:
        end = PurePosixPath(name).suffix.encode("utf-8", errors="replace")[:20]
        whole = whole[: LONGEST - len(end)] + end
    return whole.decode("utf-8", errors="ignore")


def _telling(wrote: list[tuple[str | None, str]], students: set[str], inbound: Path) -> tuple[set[str], list[str]]:
    """The accounts that wrote in the name of others and may be students', and sentences on these and on the others.

    On many a drive all belongs to one account, and containers of all students run as one. What belongs to an account
    that is no student's and wrote for several, or that the exchange itself belongs to, says nothing of anybody; nor
    does any, where nobody's folder belongs to an account with the student's name.

    wrote : the account and the student of each folder
    students : all who ever handed something in in this course
    """
    others: dict[str, list[str]] = {}
    for owner, student in wrote:
        if owner not in (student, None):
            others.setdefault(owner, []).append(student)
    if not others:
        return set(), []
    course = _owner(inbound)
    strangers = {
        owner: whose
        for owner, whose in others.items()
        if owner in students or (len(set(whose)) == 1 and owner != course and any(o == s for o, s in wrote))
    }
    said = [_strange(owner, whose) for owner, whose in strangers.items()]
    if silent := sorted(others.keys() - strangers):
        number = sum(len(others[owner]) for owner in silent)
        named = ", ".join(silent[:NAMED]) + (f" and {len(silent) - NAMED} more" if len(silent) > NAMED else "")
        many = f"{number} folders in the exchange belong" if number > 1 else "A folder in the exchange belongs"
        said.append(
            f"{many} to {named}, by whom nobody can be told: the account is no student's, as on a drive or in "
            "containers that have one for all. Whose work it is, is known by the folder's name alone"
        )
    return set(strangers), said


def _strange(owner: str, students: list[str]) -> str:
    """What to say of the folders in the exchange that one account wrote in the names of others."""
    names = list(dict.fromkeys(students))
    named = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    many = f"{len(students)} folders in the exchange were" if len(students) > 1 else "A folder in the exchange was"
    return f"{many} written by {owner} in the name of {named}: ask whose work it is"


def _owner(folder: Path) -> str | None:
    if sys.platform == "win32":
        return None
    try:
        return folder.owner()
    except KeyError:
        return f"user {folder.stat().st_uid}"


def _shown(name) -> str:
    return repr(str(name)[-80:])
