"""What a student's folder holds: notebooks to choose from, data that go along, and what is left behind.

Nothing here follows a link, opens a pipe or a device, imports a module, or writes. Archives are read in memory, also
inside archives, and their names are taken apart like those of files.
"""

import codecs
import datetime
import heapq
import io
import lzma
import os
import re
import stat
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from course_lib.grading.marking.moments import moment

DATA = {".npy", ".npz", ".csv", ".tsv", ".json", ".txt", ".md", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".pdf"}
WRITTEN = {  # what a written answer may be handed in as
    ".txt", ".md", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".heic", ".doc", ".docx", ".odt", ".rtf", ".tex",
    ".html", ".htm",
}  # fmt: skip
SECRET = "submission_secret.txt"  # nbgrader's, new each time the same work is submitted; feedback is fetched with it
LARGEST, MOST, DEEPEST = 256 * 2**20, 500, 4  # bytes of one file and of all; files; archives inside archives, folders
TOO_MANY = f"more than {MOST} files or {LARGEST >> 20} MiB: the rest was left behind"
ARCHIVE = b"PK\x03\x04"  # how one begins
CLOSED = DATA | WRITTEN  # arrays and documents are archives as well, and are taken as they are
BROKEN = (  # what reading an archive or a file may raise
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError, NotImplementedError, OSError, EOFError, ValueError,
)  # fmt: skip
SILENT = {"__MACOSX", "__pycache__", ".ipynb_checkpoints", ".DS_Store", "Thumbs.db", "desktop.ini", "timestamp.txt"}


class Found(NamedTuple):
    """A file that was handed in."""

    path: PurePosixPath  # inside the student's folder; inside an archive, the archive's name is a folder
    content: bytes
    time: float  # when it was last changed, in seconds; 0 where nobody knows

    @property
    def is_notebook(self) -> bool:
        """By its name, which a browser may have lengthened."""
        return _is_notebook(self.path)


def handed_in(folder: Path) -> tuple[list[Found], list[str]]:
    """All files of a student's folder, notebooks first, and one sentence for each that was left behind.

    Files of a system or an editor are left behind in silence (`SILENT`, names that begin with a point).
    """
    notes: list[str] = []
    found: list[Found] = []
    room = LARGEST
    plain = list(_walk(folder, PurePosixPath(), notes, 0))
    for notebooks in (True, False):  # in two rounds: no number of other files leaves a notebook without room
        for file in _taken(plain, notebooks, notes):
            room -= len(file.content)
            if len(found) == MOST or room < 0:
                notes.append(TOO_MANY)
                break
            found.append(file)
    return found, list(dict.fromkeys(notes))  # both rounds look into an archive, and say the same of it


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


def _is_archive(path: PurePosixPath, content: bytes) -> bool:
    """Whether it is one that is opened; the first bytes are enough."""
    return content.startswith(ARCHIVE) and path.suffix.lower() not in CLOSED


def _walk(
    folder: Path, inside: PurePosixPath, notes: list[str], depth: int
) -> Iterator[tuple[PurePosixPath, os.DirEntry]]:
    """The plain files, of which nothing is read yet."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        place = inside / entry.name.encode("utf-8", "replace").decode()
        if entry.name in SILENT or entry.name.startswith("."):
            continue
        if entry.is_symlink():
            notes.append(f"{_shown(place)} is a link and was left behind")
        elif entry.is_dir():
            if depth < DEEPEST:
                yield from _walk(Path(entry.path), place, notes, depth + 1)
            else:
                notes.append(f"{_shown(place)} is too deep a folder and was left behind")
        elif not entry.is_file():
            notes.append(f"{_shown(place)} is no plain file and was left behind")
        elif entry.stat().st_size > LARGEST:
            notes.append(f"{_shown(place)} is larger than {LARGEST >> 20} MiB and was left behind")
        else:
            yield place, entry


def _taken(plain: list[tuple[PurePosixPath, os.DirEntry]], notebooks: bool, notes: list[str]) -> Iterator[Found]:
    """The notebooks among a folder's files, or all others; also those in archives."""
    for place, entry in _chosen(plain, notebooks, notes):
        path = Path(entry.path)
        if _is_wanted(place, notebooks, _content(path, len(ARCHIVE))):
            file = Found(place, _content(path, LARGEST), entry.stat().st_mtime)
            yield from _opened(file, notebooks, notes, len(place.parts) - 1)


def _chosen(files: Iterable[tuple], notebooks: bool, notes: list[str]) -> list[tuple]:
    """The first of these files, by their paths: what is wanted, then archives that it may be in."""
    near = (file for file in files if _is_notebook(file[0]) == notebooks or file[0].suffix.lower() not in CLOSED)
    first = heapq.nsmallest(MOST + 1, near, key=lambda file: _is_notebook(file[0]) != notebooks)
    if len(first) > MOST:
        notes.append(TOO_MANY)
    return first[:MOST]


def _is_wanted(path: PurePosixPath, notebooks: bool, start: bytes) -> bool:
    """Whether a file that begins like this is what is looked for, or is to be opened for it."""
    return _is_notebook(path) == notebooks or _is_archive(path, start)


def _content(path: Path, most: int) -> bytes:
    """The first bytes of a plain file, and of nothing that took its place in the meantime."""
    careful = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | careful)) as file:
        return file.read(most) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""


def _opened(file: Found, notebooks: bool, notes: list[str], depth: int) -> Iterator[Found]:
    """The file, or what is wanted of what an archive holds."""
    if not _is_archive(file.path, file.content):
        yield file
        return
    if depth >= DEEPEST:
        notes.append(f"{_shown(file.path)} is an archive inside too many and was left behind")
        return
    try:
        archive = zipfile.ZipFile(io.BytesIO(file.content))
    except BROKEN:
        notes.append(f"{_shown(file.path)} is an archive that cannot be opened")
        return
    room = LARGEST
    for place, member in _chosen(_members(archive, file.path), notebooks, notes):
        if _is_link(member):
            notes.append(f"{_shown(place)} is a link and was left behind")
            continue
        try:
            with archive.open(member) as inside:
                if not _is_wanted(place, notebooks, inside.peek(len(ARCHIVE))):
                    continue
                room -= member.file_size
                if room < 0:
                    which = f"{_shown(place)} and what follows it in its archive"
                    notes.append(f"{which} are too large and were left behind")
                    return
                content = inside.read(LARGEST)
        except BROKEN as error:
            notes.append(f"{_shown(place)} cannot be read: {str(error)[:60]}")  # a wrong sum, or a password
            continue
        yield from _opened(Found(place, content, _time(member)), notebooks, notes, depth + 1)


def _members(archive: zipfile.ZipFile, place: PurePosixPath) -> Iterator[tuple[PurePosixPath, zipfile.ZipInfo]]:
    """The files of an archive by the places that they get; links come last, so that they take no file's room."""
    for member in sorted(archive.infolist(), key=_is_link):
        parts = [part for part in re.split(r"[/\\]", member.filename) if part not in ("", ".", "..")]
        if parts and not member.is_dir() and not any(part in SILENT or part.startswith(".") for part in parts):
            yield place.joinpath(*parts), member


def _is_link(member: zipfile.ZipInfo) -> bool:
    return stat.S_ISLNK(member.external_attr >> 16)


def _time(member: zipfile.ZipInfo) -> float:
    try:
        return datetime.datetime(*member.date_time).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _shown(path: PurePosixPath) -> str:
    """A path for a message: short, and without letters that a terminal obeys."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(path))[-80:]
