"""What a student's folder holds: notebooks to choose from, data that go along, and what is left behind.

Nothing here follows a link, opens a pipe or a device, imports a module, or writes. Archives are read in memory, also
inside archives, and their names are taken apart like those of files.
"""

import codecs
import datetime
import io
import lzma
import os
import re
import stat
import unicodedata
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Set
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from course_lib.grading.marking.moments import moment

DATA = {".npy", ".npz", ".csv", ".tsv", ".json", ".txt", ".md", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".pdf"}
WRITTEN = {  # what a written answer may be handed in as
    ".txt", ".md", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".heic", ".doc", ".docx", ".odt", ".rtf", ".tex",
    ".html", ".htm",
}  # fmt: skip
SECRET = "submission_secret.txt"  # nbgrader's, new each time the same work is submitted; feedback is fetched with it
LARGEST, MOST, DEEPEST = 256 * 2**20, 500, 4  # bytes of all files, and of all archives; files; archives inside archives
PARTS = 50  # of a path: Python goes one call deeper for each folder that it makes, copies or removes
TOO_MANY = f"more than {MOST} files or {LARGEST >> 20} MiB: the rest was left behind"
UNOPENED = f"is an archive inside too many, or one of more than {LARGEST >> 20} MiB, and was left behind"
LINK = "is a link and was left behind"
ARCHIVE = b"PK\x03\x04"  # how one begins
NOTEBOOK, OWN, GIVEN, REST = range(4)  # what a file may be good for; OWN: a student's data, or a written answer
BROKEN = (  # what reading an archive or a file may raise
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError, NotImplementedError, OSError, EOFError, ValueError,
)  # fmt: skip
SILENT = {"__MACOSX", "__pycache__", ".ipynb_checkpoints", ".DS_Store", "Thumbs.db", "desktop.ini", "timestamp.txt"}
_SILENT = {name.casefold() for name in SILENT}


class Found(NamedTuple):
    """A file that was handed in."""

    path: PurePosixPath  # inside the student's folder; inside an archive, the archive's name is a folder
    content: bytes
    time: float  # when it was last changed, in seconds; 0 where nobody knows

    @property
    def is_notebook(self) -> bool:
        """By its name, which a browser may have lengthened."""
        return _is_notebook(self.path)


class _Unread(NamedTuple):
    """A file of which nothing was read yet. Its path and time are those that `Found` will have."""

    path: PurePosixPath
    size: int
    time: float
    read: Callable[[int], bytes]  # at most so many bytes; BadZipFile, which says why, where its archive is at fault


def handed_in(folder: Path, helpers: Iterable[str] = ()) -> tuple[list[Found], list[str], list[str]]:
    """All files of a student's folder, sentences on what was left behind, and on what a person has to decide.

    What is good for more comes first, and then what lies higher: nothing takes the room of what matters more. Files of
    a system or an editor are left behind in silence (`SILENT`, names that begin with a point).

    helpers : paths of files that the assignment itself brings, from its folder
    """
    given = frozenset(helpers)
    left: dict[str, list[PurePosixPath]] = defaultdict(list)  # by the reason
    found: list[Found] = []
    room = LARGEST
    for file in sorted(_unread(folder, given, left), key=lambda file: order(file.path, given)):
        if len(found) == MOST or file.size > room:
            left[TOO_MANY].append(file.path)
            continue
        try:
            content = file.read(room)
        except zipfile.BadZipFile as why:
            left[str(why)].append(file.path)
            continue
        room -= len(content)
        found.append(Found(file.path, content, file.time))
    needed = [path for path in left[TOO_MANY] if _use(path, given) in (NOTEBOOK, OWN)]
    return found, _notes(left), _doubts([*left[UNOPENED], *needed])


def handed_in_at(folder: Path, notes: list[str]) -> datetime.datetime | None:
    """What timestamp.txt says, in UTC without a zone as nbgrader keeps it; None, and a note, where it says nothing."""
    file = folder / "timestamp.txt"
    try:
        time = None if file.is_symlink() else moment(_content(file, 100).decode("utf-8-sig"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError):
        time = None
    if time is None:
        notes.append("its time stamp cannot be read, so nobody knows whether it is late")
    return time


def order(path: PurePosixPath, given: Set[str] = frozenset()) -> tuple:
    """A key for sorting: first what is good for more (`given` is the assignment's own), and then what lies higher."""
    return _use(path, given), len(path.parts), path


def silent(parts: Iterable[str]) -> bool:
    """Whether one of these is a name of `SILENT`, in any case: some disks take `Timestamp.txt` for the course's."""
    return any(part.casefold() in _SILENT for part in parts)


def safe_name(name: str) -> str | None:
    """A file's or student's name that can be a path and a pattern of nbgrader's; None where nothing is left of it.

    Letters of any script, digits, and `_ . @ -` stay; everything else becomes `_`. A point at the beginning goes.
    """
    name = re.sub(r"[^\w.@-]+", "_", unicodedata.normalize("NFC", name)).lstrip(".").strip("_")
    name = name.encode("utf-8", errors="ignore")[:120].decode("utf-8", errors="ignore")
    return name or None


def table_text(path: Path) -> str:
    """A table as spreadsheets save it: UTF-8 or UTF-16 with or without a mark, otherwise Windows' Latin letters.

    Raises
    ------
    ValueError : there is no such file, or it cannot be read.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from None
    encoding = "utf-16" if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")


def plain_stem(name: str) -> str:
    """A notebook's name without what browsers and people add, for comparing: "My HW (1) copy.ipynb" -> "myhw"."""
    stem = re.sub(r"\.ipynb.*$", "", name.strip().lower())
    stem = re.sub(r"([ _-]*(\(\d+\)|copy ?\d*|final|v\d+|-\d+))+$", "", stem)
    return "".join(letter for letter in stem if letter.isalnum())


def _is_notebook(path: PurePosixPath) -> bool:
    return bool(re.search(r"\.ipynb(\.(txt|json|html?))?$", path.name.strip(), re.IGNORECASE))


def _is_given(path: PurePosixPath, given: Set[str]) -> bool:
    """Whether it is called as a file of the assignment, in whichever folder the student has all of them."""
    parts = path.parts[-PARTS:]  # a name in an archive may have thousands
    return any("/".join(parts[at:]) in given for at in range(len(parts)))


def _use(path: PurePosixPath, given: Set[str]) -> int:
    """What a file is good for. nbgrader lays the assignment's own files itself: a student's data come before them."""
    if _is_notebook(path):
        return NOTEBOOK
    if _is_given(path, given):
        return GIVEN
    return OWN if path.suffix.lower() in DATA | WRITTEN else REST


def _is_archive(file: _Unread, given: Set[str]) -> bool:
    """Whether it is opened: an archive that is called like one, or like a notebook, and is not the assignment's own.

    Arrays, documents, tables and models (.npz, .docx, .xlsx, .keras, .pt) are archives as well: these are one file.
    """
    if not _is_notebook(file.path):
        named = ".zip" in file.path.name.lower() or not file.path.suffix
        if not named or _is_given(file.path, given):  # a folder in the place of that file would be in nbgrader's way
            return False
    try:
        return file.read(len(ARCHIVE)) == ARCHIVE
    except zipfile.BadZipFile:  # whoever reads it will say so
        return False


def _unread(folder: Path, given: Set[str], left: dict[str, list[PurePosixPath]]) -> Iterator[_Unread]:
    """All files; in place of an archive, the files in it. Small archives are opened first: data are what is large."""
    room = LARGEST  # all archives stay in memory until the last of their files is read
    waiting = [(file, 0) for file in sorted(_walk(folder, left), key=lambda file: file.size)]
    for file, depth in waiting:  # it grows
        if not _is_archive(file, given):
            yield file
        elif depth == DEEPEST or file.size > room:
            left[UNOPENED].append(file.path)
        else:
            try:
                content = file.read(room)
                members = _members(content, file.path, left)
            except zipfile.BadZipFile:
                left["is an archive that cannot be opened"].append(file.path)
                continue
            room -= len(content)
            waiting += [(inner, depth + 1) for inner in sorted(members, key=lambda inner: inner.size)]


def _walk(folder: Path, left: dict[str, list[PurePosixPath]]) -> Iterator[_Unread]:
    """The plain files of a folder, however deep."""
    folders = [(folder, PurePosixPath())]
    for there, inside in folders:  # it grows
        for entry in sorted(os.scandir(there), key=lambda entry: entry.name):
            place = inside / entry.name.encode("utf-8", "replace").decode()
            if silent([entry.name]) or entry.name.startswith("."):
                continue
            if entry.is_symlink():
                left[LINK].append(place)
            elif entry.is_dir():
                folders.append((Path(entry.path), place))
            elif not entry.is_file():
                left["is no plain file and was left behind"].append(place)
            else:
                status = entry.stat()
                yield _Unread(place, status.st_size, status.st_mtime, partial(_content, Path(entry.path)))


def _content(path: Path, most: int) -> bytes:
    """The first bytes of a plain file, and of nothing that took its place in the meantime."""
    careful = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | careful)) as file:
        return file.read(most) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""


def _members(content: bytes, place: PurePosixPath, left: dict[str, list[PurePosixPath]]) -> list[_Unread]:
    """The files of an archive by the places that they get.

    Raises
    ------
    BadZipFile : it cannot be opened.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except BROKEN as error:
        raise zipfile.BadZipFile(str(error)) from None
    found = []
    for member in archive.infolist():
        parts = [part for part in re.split(r"[/\\]", member.filename) if part not in ("", ".", "..")]
        if not parts or member.is_dir() or silent(parts) or any(p.startswith(".") for p in parts):
            continue
        if stat.S_ISLNK(member.external_attr >> 16):
            left[LINK].append(place.joinpath(*parts))
        else:
            read = partial(_unpacked, archive, member)
            found.append(_Unread(place.joinpath(*parts), member.file_size, _time(member), read))
    return found


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> bytes:
    """The first bytes of a member.

    Raises
    ------
    BadZipFile : it cannot be read; says why, in words that are the same for all such members.
    """
    try:
        with archive.open(member) as file:
            return file.read(most)
    except BROKEN:
        why = "has a password" if member.flag_bits & 1 else "is damaged in its archive, or packed in an unknown way,"
        raise zipfile.BadZipFile(f"{why} and was left behind") from None


def _time(member: zipfile.ZipInfo) -> float:
    try:
        return datetime.datetime(*member.date_time).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _shown(path: PurePosixPath) -> str:
    """A path for a message: short, and without letters that a terminal obeys."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(path))[-80:]


def _notes(left: dict[str, list[PurePosixPath]]) -> list[str]:
    """One sentence for each reason: a folder of links, or a locked archive, may have thousands."""
    notes = [
        f"{_shown(paths[0])} {why}" + (f"; {len(paths) - 1} more like it" if len(paths) > 1 else "")
        for why, paths in left.items()
        if paths and why != TOO_MANY
    ]
    return notes + [TOO_MANY] * bool(left[TOO_MANY])


def _doubts(lost: list[PurePosixPath]) -> list[str]:
    """What to say where files on which marks may hang had no room."""
    if not lost:
        return []
    more = f", nor had {len(lost) - 1} more" if len(lost) > 1 else ""
    return [
        f"{_shown(lost[0])!r} had no room{more}, as a work may have {MOST} files and {LARGEST >> 20} MiB: remove from "
        "it what its notebook does not need; if that needs none of what had no room, let the marks stand"
    ]
