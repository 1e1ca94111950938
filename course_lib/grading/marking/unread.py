"""What an archive holds, and a folder that others may change meanwhile: its files, of which nothing was read yet.

Of a folder in the exchange its student may put a link to your files, or a pipe that nobody writes to, in the place of
what was listed. So each folder and each file is opened from the open folder above it and through no link, and then
looked at. Windows opens no folders: there a path is taken as it is.
"""

import contextlib
import errno
import os
import re
import stat
import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from course_lib.grading.marking.files import BROKEN, MOST, PARTS

CAREFUL = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # who opens a pipe may wait for ever
FOLDER = os.O_RDONLY | CAREFUL | getattr(os, "O_DIRECTORY", 0)
DESCRIPTORS = os.open in os.supports_dir_fd and os.scandir in os.supports_fd
MANY = 10 * MOST  # files of one student; the time that more take is everybody's
LISTED = 2 * MANY  # files and folders of one student that are looked at, to find the best among them
EXCHANGED = "something else was put in its place meanwhile"


class Unread(NamedTuple):
    """A file of which nothing was read yet."""

    place: PurePosixPath  # for messages
    size: int
    read: Callable[[int], bytes]  # so many bytes of it at least, where it has them; raises one of `files.BROKEN`
    why: str = ""  # why it is left out and never read, after its name


def in_zip(path: Path) -> Iterator[Unread]:
    """The files of an archive, an archive inside it as the file that it is; names are data, and nothing is unpacked.

    Raises
    ------
    ValueError : it cannot be opened.
    """
    try:
        archive = zipfile.ZipFile(path)  # open until its last file is read: each opening goes through all the names
    except BROKEN as error:
        raise ValueError(f"{path} cannot be opened as a .zip: {error}") from None
    for member in archive.infolist():
        place = PurePosixPath(*re.split(r"[/\\]", member.filename))
        if not member.filename.endswith("/"):  # `is_dir` fails where a damaged name is empty
            yield Unread(place, member.file_size, lambda most, member=member: archive.read(member))


def in_folder(top: Path, most: int = sys.maxsize) -> Iterator[Unread]:
    """The files of a folder, and its links, pipes and devices: what lies higher first, of one folder the notebooks.

    A folder that cannot be read is a file, and so is one so deep that what it holds would be below `PARTS` - 1 others.

    Parameters
    ----------
    top : no link; where it may be one, resolve it
    most : files and folders to look at; then it ends, with one that says so
    """
    folders, number = [PurePosixPath()], 0
    for inside in folders:  # it grows
        with contextlib.ExitStack() as stack:
            try:
                here = stack.enter_context(_open_folder(top, inside)) if DESCRIPTORS else top / inside
                found = stack.enter_context(os.scandir(here))
                entries = sorted(found, key=lambda entry: (".ipynb" not in entry.name.lower(), entry.name))
            except OSError as error:
                yield Unread(inside if inside.parts else PurePosixPath(top.name), 0, partial(_refuse, error))
                continue
            for entry in entries:
                place, number = inside / entry.name, number + 1
                if number > most:
                    yield Unread(place, 0, _nothing, "and all behind it was left out: there are too many files")
                    return
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError as error:  # its folder may be listed, but not entered
                    yield Unread(place, 0, partial(_refuse, error))
                    continue
                if not stat.S_ISDIR(status.st_mode):
                    yield Unread(place, status.st_size, partial(_content, top, place), _strange(status.st_mode))
                elif len(place.parts) < PARTS:
                    folders.append(place)
                else:
                    yield Unread(place, 0, _nothing, f"lies in {PARTS - 1} folders; hand in what it holds in fewer")


def _strange(mode: int) -> str:
    """Why a file is never read that is no plain one."""
    what = "" if stat.S_ISREG(mode) else "a link" if stat.S_ISLNK(mode) else "a pipe or a device"
    return what and f"is {what}, no plain file; hand in the file itself"


def _content(top: Path, place: PurePosixPath, most: int) -> bytes:
    """The first bytes of a plain file.

    Raises
    ------
    OSError : it cannot be read, or is none any more.
    """
    with open(place, "rb", opener=lambda name, flags: _open(top, place, flags | CAREFUL)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(EXCHANGED)
        return file.read(most)


@contextlib.contextmanager
def _open_folder(top: Path, place: PurePosixPath) -> Iterator[int]:
    """A descriptor of a folder, for a `with` block."""
    here = _open(top, place, FOLDER)
    try:
        yield here
    finally:
        os.close(here)


def _open(top: Path, place: PurePosixPath, flags: int) -> int:
    """A descriptor of what lies in a folder, to which no link leads.

    Raises
    ------
    OSError : it cannot be opened, or a link does lead there.
    """
    if not DESCRIPTORS:
        return os.open(top / place, flags)
    above = None
    try:
        for part in (top, *place.parts)[:-1]:
            here = os.open(part, FOLDER, dir_fd=above)
            if above is not None:
                os.close(above)
            above = here
        return os.open((top, *place.parts)[-1], flags, dir_fd=above)
    except OSError as error:
        raise OSError(EXCHANGED) if error.errno in (errno.ELOOP, errno.ENOTDIR) else error from None
    finally:
        if above is not None:
            os.close(above)


def _refuse(error: OSError, most: int) -> bytes:
    """What could not even be looked at cannot be read, for the same reason."""
    raise error


def _nothing(most: int) -> bytes:
    return b""
