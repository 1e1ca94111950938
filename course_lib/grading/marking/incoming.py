"""What comes from the exchange, or in an archive of Moodle's or Canvas's, laid where nbgrader collects: submitted/.

The names are those that the two write today. Moodle: `Full Name_12345_assignsubmission_file/hw.ipynb`, with `file_/` in
older versions, and no folder where the teacher wants none (mod/assign/classes/downloader.php). Canvas:
`lastfirst_12345_67890_hw.ipynb`, with `LATE_` before the first number; the numbers are the user's and the file's, and
an anonymous user is `anon_` and five letters (lib/content_zipper.rb).
"""

import os
import re
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from course_lib._extras import needed
from course_lib.grading.marking.files import LARGEST, SILENT, safe_name

with needed("lab"):
    from nbgrader.utils import parse_utc

MOODLE = re.compile(
    r"(?:^|/)(?P<name>[^/]+)_(?P<user>\d+)_assignsubmission_(?P<kind>[a-z]+)(?P<late>)_?/?(?P<rest>.+)$"
)
CANVAS = re.compile(
    r"(?:^|/)(?:(?P<name>[^/]+?)_)?(?P<late>LATE_)?(?P<user>\d+|anon_\w{5})_"
    r"(?:\d+_(?P<rest>[^/]+)|(?P<kind>text|link)\.html)$"
)


class Arrived(NamedTuple):
    """What one student handed in by one way."""

    student: str
    origin: str  # for the table: which way, and whether that way calls it late
    files: dict[PurePosixPath, bytes]
    time: datetime | None = None  # UTC, without a zone


def from_archive(path: Path, students: dict[str, str]) -> tuple[list[Arrived], list[str]]:
    """The students' files in an archive of a learning management system, or in a folder made of one.

    Parameters
    ----------
    path : the .zip, or a folder that it was unpacked to
    students : the system's number of a student -> the id in this course; others keep their number

    Returns
    -------
    What arrived, and one sentence for everything that could not be told.

    Raises
    ------
    ValueError : the archive cannot be opened, or nothing in it has a name of Moodle's or Canvas's.
    """
    problems: list[str] = []
    files = _plain_files(path, problems) if path.is_dir() else _members(path, problems)
    found: dict[str, Arrived] = {}
    for place, content in files.items():
        match = MOODLE.search(str(place)) or CANVAS.search(str(place))
        if match is None:
            problems.append(f"{_shown(place)} has no name of Moodle's or Canvas's and was left out")
            continue
        user, system = match["user"], "Moodle" if match.re is MOODLE else "Canvas"
        origin = f"{system}: {(match['name'] or 'anonymous')[:60]}{', LATE' if match['late'] else ''}"
        student = students.get(user) or user
        arrived = found.setdefault(student, Arrived(student, origin, {}))
        arrived.files[_safe_path(match["rest"] or f"{match['kind']}.html")] = content
    if not found:
        raise ValueError(f"{path.name} holds no file with a name of Moodle's or Canvas's. {' '.join(problems[:3])}")
    return list(found.values()), problems


def from_exchange(inbound: Path, assignment: str) -> tuple[list[Arrived], list[str]]:
    """The newest that each student submitted into nbgrader's exchange, and one sentence for what is strange there.

    nbgrader's own `collect` stops for everybody at one time stamp that it cannot read, follows links, and keeps the
    older work unless it is told `--update`. A time that cannot be read is that of the folder here.
    """
    newest: dict[str, tuple[datetime, Path]] = {}
    problems: list[str] = []
    for folder in sorted(inbound.iterdir()) if inbound.is_dir() else []:
        student, here, rest = folder.name.partition(f"+{assignment}+")
        if not here or folder.is_symlink() or not folder.is_dir():
            continue
        if safe_name(student) != student:
            problems.append(f"{_shown(folder.name)} in the exchange: no student can have this name")
            continue
        owner = _owner(folder)
        if owner not in (student, None):
            problems.append(f"{_shown(folder.name)} in the exchange was written by {owner}: ask whose work it is")
        time = _time(rest.split("+")[0])
        if time is None:
            time = datetime.fromtimestamp(folder.stat().st_mtime, UTC).replace(tzinfo=None)
            problems.append(f"{_shown(folder.name)} in the exchange: its time cannot be read; the folder's was taken")
        if student not in newest or time > newest[student][0]:
            newest[student] = (time, folder)
    arrived = [
        Arrived(student, "exchange", _plain_files(folder, problems), time) for student, (time, folder) in newest.items()
    ]
    return arrived, problems


def lay(arrived: Arrived, root: Path, assignment: str) -> str:
    """Put it into submitted/STUDENT/ASSIGNMENT; return "new", "again" (what it replaces goes to replaced/) or "same".

    What came through the exchange replaces nothing that came later.
    """
    place = root / "submitted" / arrived.student / assignment
    said = "new"
    if place.exists():
        had = place / "timestamp.txt"
        before = _time(had.read_text(encoding="utf-8", errors="replace")) if had.is_file() else None
        if arrived.time and before and before >= arrived.time.replace(microsecond=0):
            return "same"
        if _work(arrived.files) == _work(_plain_files(place, [])) and not arrived.time:
            return "same"
        kept = root / "replaced" / arrived.student / assignment
        kept.mkdir(parents=True, exist_ok=True)
        os.replace(place, kept / str(1 + len(list(kept.iterdir()))))
        said = "again"
    place.mkdir(parents=True)
    for path, content in arrived.files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(content)
    if arrived.time:
        (place / "timestamp.txt").write_text(f"{arrived.time:%Y-%m-%d %H:%M:%S} UTC\n", encoding="utf-8")
    return said


def _members(path: Path, problems: list[str]) -> dict[PurePosixPath, bytes]:
    """The files of an archive, an archive inside it as the file that it is; names are data, and nothing is unpacked."""
    found: dict[PurePosixPath, bytes] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                place = PurePosixPath(*re.split(r"[/\\]", member.filename))
                if member.is_dir() or any(part in SILENT for part in place.parts):
                    continue
                if member.file_size > LARGEST:
                    problems.append(f"{_shown(place)} is larger than {LARGEST >> 20} MiB and was left out")
                    continue
                try:
                    found[place] = archive.read(member)
                except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError, EOFError) as error:
                    problems.append(f"{_shown(place)} cannot be read: {str(error)[:60]}")
    except (OSError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be opened as a .zip: {error}") from None
    return found


def _plain_files(folder: Path, problems: list[str]) -> dict[PurePosixPath, bytes]:
    """The files of a folder; a link, a pipe or a device in it is named and left out."""
    return dict(_walk(folder, PurePosixPath(), problems))


def _walk(folder: Path, inside: PurePosixPath, problems: list[str]) -> Iterator[tuple[PurePosixPath, bytes]]:
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), inside / entry.name, problems)
        elif entry.is_file(follow_symlinks=False) and entry.stat().st_size <= LARGEST:
            yield inside / entry.name, Path(entry.path).read_bytes()
        else:
            problems.append(f"{_shown(folder.name)}/{_shown(entry.name)} is no plain file, or too large; left out")


def _safe_path(text: str) -> PurePosixPath:
    """A path inside a folder: no part of it leads out, and all can be written on any system."""
    parts = [re.sub(r'[\x00-\x1f<>:"|?*]', "_", part) for part in re.split(r"[/\\]", text)]
    return PurePosixPath(*[part for part in parts if part.strip(". ")] or ["unnamed"])


def _work(files: dict[PurePosixPath, bytes]) -> dict[PurePosixPath, bytes]:
    return {path: content for path, content in files.items() if path.name != "timestamp.txt"}


def _time(text: str) -> datetime | None:
    try:
        time = parse_utc(text.strip())
    except (ValueError, OverflowError, TypeError):
        return None
    return time if text.strip() and 1990 < time.year < 2200 else None


def _owner(folder: Path) -> str | None:
    if sys.platform == "win32":
        return None
    try:
        return folder.owner()
    except KeyError:
        return f"user {folder.stat().st_uid}"


def _shown(name) -> str:
    return repr(str(name)[-80:])
