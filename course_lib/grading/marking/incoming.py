"""What comes from the exchange, or in an archive of Moodle's or Canvas's; `laying` puts it where nbgrader collects.

The names are those that the two write today. Moodle: `Full Name_12345_assignsubmission_file/hw.ipynb`, with `file_/` in
older versions, and no folder where the teacher wants none (mod/assign/classes/downloader.php). Canvas:
`lastfirst_12345_67890_hw.ipynb`, with `LATE_` before the first number; the numbers are the user's and the file's. An
anonymous user is `anon_` and five letters, with no name before them (lib/content_zipper.rb).
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from course_lib.grading.marking import accounts
from course_lib.grading.marking.accounts import NAMED
from course_lib.grading.marking.files import BROKEN, LARGEST, NOTEBOOK, PARTS, handed_in_at, order, safe_name, silent
from course_lib.grading.marking.lms import student_of
from course_lib.grading.marking.moments import moment
from course_lib.grading.marking.record import BY_ANOTHER
from course_lib.grading.marking.unread import LISTED, MANY, Unread, in_folder, in_zip

# Moodle makes blanks of the underscores in a name: what has some is a file that a student called like one of Moodle's.
MOODLE = re.compile(
    r"(?:^|/)(?P<name>[^/_]+)_(?P<user>\d+)_assignsubmission_(?P<kind>[a-z]+)(?P<late>)_?/?(?P<rest>.+)$", re.DOTALL
)
CANVAS = re.compile(
    r"(?:^|/)(?:(?!(?:LATE_)?anon_[^\W_]{5}_)(?P<name>[^/]+?)_)?(?P<late>LATE_)?(?P<user>\d+|anon_[^\W_]{5})_"
    r"(?:\d+_(?P<rest>[^/]+)|(?P<kind>text|link)\.html)$"
)
LONGEST, PATH = 120, 900  # bytes of a file's name, and of its path: one in an archive may have more than a disk takes


class Arrived(NamedTuple):
    """What one student handed in by one way."""

    student: str
    origin: str  # for the table: which way, and whether that way calls it late
    files: dict[PurePosixPath, bytes]
    time: datetime | None = None  # UTC, without a zone
    lacks: tuple[str, ...] = ()  # what could not be read and is not among `files`, in a few sentences
    left: tuple[str, ...] = ()  # what was left out as too large, or as no plain file; it would be each time it comes

    @property
    def is_unreadable(self) -> bool:
        """Whether nothing of it could be read."""
        return bool(self.lacks) and all(silent(path.parts) for path in self.files)


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
    for file in in_folder(path.resolve()) if path.is_dir() else in_zip(path):
        place = file.place
        if silent(place.parts):
            continue
        match = MOODLE.search(str(place)) or CANVAS.search(str(place))
        if match is None:
            problems.append(f"{_shown(place)} has no name of Moodle's or Canvas's and was left out")
            continue
        laid = _safe_path(match["rest"] or f"{match['kind']}.html")
        if silent(laid.parts):  # above all a student's own timestamp.txt: it would count as the course's
            continue
        system = "Moodle" if match.re is MOODLE else "Canvas"
        student = student_of(match["user"], students)
        if student is None:
            problems.append(
                f"{_shown(place)} was left out: {system}'s number {match['user']} is nobody's lms_id in roster.csv, "
                "but somebody else's student_id; write down whose it is"
            )
            continue
        name = (match["name"] or "anonymous")[:60].encode(errors="replace").decode()  # of a folder: any bytes
        origins[student] = f"{system}: {name}{', LATE' if match['late'] else ''}"
        found.setdefault(student, _Files()).add(laid, file)
    if not found:
        raise ValueError(f"{path.name} holds no file with a name of Moodle's or Canvas's. {' '.join(problems[:3])}")
    return (_arrived(name, origins[name], files) for name, files in found.items()), problems


def from_exchange(inbound: Path, assignment: str) -> tuple[Iterator[Arrived], list[str]]:
    """The newest that each student submitted into nbgrader's exchange, and one sentence for what is strange there.

    Where nothing of it can be read, the newest of which something can comes before it.

    nbgrader's own `collect` stops for everybody at one time stamp that it cannot read, follows links, and keeps the
    older work unless it is told `--update`. Where a time cannot be read, or has not come yet, the folder's counts here.
    A course without an exchange has no such folder; that is said as well. So is whose account another's work came from,
    where accounts tell anything (`accounts.telling`).
    """
    works: dict[str, list[tuple[datetime, str | None, Path]]] = {}
    problems: list[str] = []
    strays: list[str] = []
    wrote: list[tuple[str | None, str]] = []
    try:
        folders = sorted(inbound.iterdir())
    except OSError as error:
        folders = []
        problems.append(
            f"Nothing was collected from the exchange, {inbound}: {error.strerror}. (A course without an exchange sets "
            'c.Exchange.root = "" in nbgrader_config.py; or NBGRADER_EXCHANGE to nothing, where that variable is read.)'
        )
    for folder in folders:
        student, here, rest = folder.name.partition(f"+{assignment}+")
        if not here:
            continue
        try:
            if folder.is_symlink() or not folder.is_dir():
                strays.append(_shown(folder.name))
                continue
            owner, (time, right) = accounts.owner_of(folder), _time(folder, rest)
        except (OSError, ValueError, OverflowError) as error:  # the last two: of a time that no calendar has
            why = error.strerror if isinstance(error, OSError) else error
            problems.append(f"{_shown(folder.name)} in the exchange cannot be looked at and was left out: {why}")
            continue
        if safe_name(student) != student:
            problems.append(f"{_shown(folder.name)} in the exchange: no student can have this name")
            continue
        if not right:
            problems.append(f"{_shown(folder.name)} in the exchange: its time cannot be right; the folder's was taken")
        wrote.append((owner, student))
        works.setdefault(student, []).append((time, owner, folder))
    if strays:
        named = ", ".join(_few(strays))
        problems.append(f"Links or files have names of submissions in the exchange, and were left out: {named}")
    strangers, said = accounts.telling(wrote, {folder.name.partition("+")[0] for folder in folders}, inbound)
    problems += said
    origins = {(owner, student): f"{BY_ANOTHER}{owner}" for owner, student in wrote if owner in strangers - {student}}
    return (
        each
        for student, theirs in works.items()
        for each in _newest(
            _arrived(student, origins.get((owner, student), "exchange"), _in_place(folder), time)
            # Of two within a second, of which `time` has no fractions, the later by its name.
            for time, owner, folder in reversed(sorted(theirs, key=lambda work: work[0]))
        )
    ), problems


def _newest(works: Iterator[Arrived]) -> list[Arrived]:
    """Of one student's works, the newest first, that one; before it, if need be, the newest that can be read."""
    newest = next(works)
    readable = next((each for each in works if not each.is_unreadable), None) if newest.is_unreadable else None
    return [readable, newest] if readable else [newest]


def contents_of(folder: Path) -> dict[PurePosixPath, bytes]:
    """The files of one student's folder, as far as they can be read."""
    return _arrived("", "", _in_place(folder.resolve()), beside=2).files


def _time(folder: Path, rest: str) -> tuple[datetime, bool]:
    """When a folder of the exchange was handed in, in UTC, and whether that is what it says of itself.

    rest : what follows the assignment in its name

    Raises
    ------
    OSError, ValueError, OverflowError : it says nothing, and neither does the disk.
    """
    # A secret follows the time, whose zone may be written +08; the file has the time alone.
    time = handed_in_at(folder, notes=[]) or moment(rest.rpartition("+")[0]) or moment(rest)
    tomorrow = datetime.now(UTC).replace(tzinfo=None) + timedelta(days=1)
    if time and time <= tomorrow:  # of a wrong clock, it would be the newest for ever
        return time, True
    return datetime.fromtimestamp(folder.stat().st_mtime, UTC).replace(tzinfo=None), False


def _in_place(folder: Path) -> dict[PurePosixPath, Unread]:
    """The files of one student's folder, for `_arrived`."""
    return {file.place: file for file in in_folder(folder, LISTED)}


def _arrived(
    who: str, origin: str, files: Mapping[PurePosixPath, Unread], time: datetime | None = None, beside: int = 0
) -> Arrived:
    """One student's files, as far as there is room and they can be read.

    beside : small files that the course may have laid beside what had room
    """
    contents, lacks, room, many = {}, [], LARGEST + beside * 2**20, MANY + beside
    chosen = sorted(files, key=_order)
    left = [f"the rest was left out: one student's files are more than {MANY}"] if len(chosen) > many else []
    for path in chosen[:many]:
        place, size, read, why = files[path]
        if why:
            left.append(f"{_shown(place)} {why}")
            continue
        if len(str(path).encode(errors="replace")) > PATH:
            left.append(f"{_shown(place)} has too long a path; hand it in in fewer folders")
            continue
        try:
            content = read(room + 1) if size <= room else b""
        except BROKEN as error:
            why = error.strerror if isinstance(error, OSError) else None
            lacks.append(f"{_shown(place)} cannot be read: {str(why or error)[:60]}")
            continue
        if max(size, len(content)) > room:  # the second, where it grew meanwhile
            left.append(f"{_shown(place)} was left out: one student's files have more than {LARGEST >> 20} MiB")
            continue
        contents[path] = content
        room -= len(content)
    return Arrived(who, origin, contents, time, _few(lacks), _few(left))


def _order(path: PurePosixPath) -> tuple:
    """As `files` takes them, but what is called an archive comes after the notebooks: it may hold one."""
    use, *rest = order(path)
    return use != NOTEBOOK, ".zip" not in path.name.lower(), use, *rest


def _few(said: list[str]) -> tuple[str, ...]:
    """As many sentences as fit into a cell of a table."""
    more = len(said) - NAMED
    return *said[:NAMED], *([f"and {more} more file{'s' * (more > 1)}"] if more > 0 else [])


class _Files(dict):
    """One student's files, by where they are laid; no two places differ in case alone, as some disks do not tell."""

    def __init__(self):
        self.files: set[str] = set()  # in one case, and so are the folders
        self.folders: set[str] = set()
        self.numbers: dict[tuple[str, bool], int] = {}  # the last that a name got, as a file or as a folder

    def add(self, path: PurePosixPath, file: Unread) -> None:
        """Under a name that no other has, and that is not another's folder."""
        made = PurePosixPath()
        for at, part in enumerate(path.parts, start=1):
            last = at == len(path.parts)
            key = _plain(made / part), last
            number = self.numbers.get(key, 1)
            while (name := _plain(made / _numbered(part, number))) in self.files or (last and name in self.folders):
                number += 1
            self.numbers[key] = number
            made /= _numbered(part, number)
        self[made] = file
        self.files.add(_plain(made))
        self.folders.update(map(_plain, made.parents))


def _plain(path: PurePosixPath) -> str:
    return str(path).casefold()


def _numbered(name: str, number: int) -> str:
    """A name, but for the first with a number before its ending."""
    return name if number == 1 else f"{PurePosixPath(name).stem}_{number}{PurePosixPath(name).suffix}"


def _safe_path(text: str) -> PurePosixPath:
    """A path inside a folder: no part of it leads out, and all can be written on any system; the last `PARTS` of it."""
    parts = [re.sub(r'[\x00-\x1f<>:"|?*]', "_", part) for part in re.split(r"[/\\]", text)]
    return PurePosixPath(*[_short(part) for part in parts if part.strip(". ")][-PARTS:] or ["unnamed"])


def _short(name: str) -> str:
    """A name that a disk takes, with its ending."""
    whole = name.encode("utf-8", errors="replace")
    if len(whole) > LONGEST:
        end = PurePosixPath(name).suffix.encode("utf-8", errors="replace")[:20]
        whole = whole[: LONGEST - len(end)] + end
    return whole.decode("utf-8", errors="ignore")


def _shown(name) -> str:
    return repr(str(name)[-80:])
