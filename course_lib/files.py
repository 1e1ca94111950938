"""Files that are replaced whole: whoever reads finds the old ones or the new ones, and never a half-written one."""

import contextlib
import errno
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

_PATIENCE = 1.0  # seconds after which an exchange, which takes milliseconds, counts as interrupted
_WRITING, _EXCHANGING = ".saving-", ".exchanging-"


@contextlib.contextmanager
def replacing(folder: str | Path, gone: Iterable[str] = ()) -> Iterator[Path]:
    """A hidden folder to write files in; at the end of the `with` block they move into `folder`, all or none.

    The files are written beside their places, forced to the disk, and renamed over the old ones. If the block fails,
    a full disk included, the old files stay as they were. Several files are renamed one by one; a process that is
    killed in between leaves a trace, which `read_whole` finds. Of several that save here at once, on one machine, each
    exchanges its files alone.

    Parameters
    ----------
    folder : where the files belong; made when it does not exist
    gone : names in `folder` that the new files make obsolete

    Raises
    ------
    OSError : a file could not be written; names the folder and the reason, whichever library did the writing.
    IsADirectoryError : a folder stands where a file belongs; names it.
    """
    folder = Path(folder)
    with _explained(folder, "nothing was changed"):
        folder.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=_WRITING, dir=folder))
        try:
            usual = _usual_mode(scratch)
            yield scratch
            names = sorted(path.name for path in scratch.iterdir())
            for name in names:
                (scratch / name).chmod(usual)  # safetensors' files could be read by their owner alone
                _force(scratch / name)
            gone = list(gone)
            for name in [*names, *gone]:
                if (folder / name).is_dir():
                    raise IsADirectoryError(errno.EISDIR, "", str(folder / name))
            alone = _lock().acquire()
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
    with alone, _explained(folder, "some of its files may be old ones and some new; save again"):
        _exchange(scratch, folder, names, gone)


def read_whole(folder: str | Path, names: Iterable[str], read: Callable[[], Any]) -> Any:
    """`read()`, repeated as long as somebody exchanges the files of these names meanwhile.

    Parameters
    ----------
    folder : where the files are
    names : of the files that `read` may open

    Raises
    ------
    ValueError : a process was killed while its files were taking the places of older ones.
    """
    folder, names = Path(folder), list(names)
    remainder, since = None, 0.0
    while True:
        before = [_version(folder / name) for name in names]
        try:
            result, error = read(), None
        except Exception as caught:  # perhaps of files that do not belong together, so it counts only if they do
            result, error = None, caught
        left = _remainder(folder)
        if not left and before == [_version(folder / name) for name in names]:
            if error is not None:
                raise error
            return result
        if left != remainder:
            remainder, since = left, time.monotonic()
        elif left and time.monotonic() > since + _PATIENCE:
            raise ValueError(
                f"the saving of {folder} was interrupted, and its files may be of two different models: save again, "
                f"or complete it by moving {', '.join(path.name for path in left)} from {left[0].parent} into it"
            )
        time.sleep(0.01)


def _version(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _remainder(folder: Path) -> list[Path]:
    """The files that have not taken their places yet."""
    found = []
    for left in folder.glob(f"{_EXCHANGING}*"):
        with contextlib.suppress(FileNotFoundError):  # the exchange has just ended
            found += [left / name for name in os.listdir(left)]
    return sorted(found)


def _lock():
    """For those who exchange files; the operating system's, so it ends with the process that holds it.

    It is a file that stays, so it is not in their folder, and it is one for all folders: an exchange is short. One of
    another user could not be opened, hence the number.
    """
    user = os.getuid() if hasattr(os, "getuid") else ""
    import filelock  # here, so that the library needs NumPy alone until somebody saves

    return filelock.FileLock(Path(tempfile.gettempdir()) / f"attention-course-{user}.lock")


def _exchange(scratch: Path, folder: Path, names: list[str], gone: Iterable[str]) -> None:
    """The caller holds the lock, so whatever else is on its way here was left by a process that was killed."""
    gone = [name for name in gone if (folder / name).exists()]
    for late in _remainder(folder):
        if late.name in names:  # what we bring is newer; files of other names are still owed
            late.unlink()
    if len(names) + len(gone) > 1:
        scratch = scratch.rename(folder / scratch.name.replace(_WRITING, _EXCHANGING))
    for name in gone:
        (folder / name).unlink(missing_ok=True)
    for name in names:
        os.replace(scratch / name, folder / name)
    for done in {scratch, *folder.glob(f"{_EXCHANGING}*")}:
        with contextlib.suppress(OSError):  # of a remainder that is not empty
            done.rmdir()


@contextlib.contextmanager
def _explained(folder: Path, consequence: str) -> Iterator[None]:
    """An OSError that names `folder`, for one that names a hidden file, or for an error of a library in Rust."""
    try:
        yield
    except Exception as error:
        number = getattr(error, "errno", None)
        if number is None:
            found = re.search(r"\(os error (\d+)\)", str(error))  # as safetensors and tokenizers report it
            if not found:
                raise
            number = int(found[1])
        name = error.filename if isinstance(error, IsADirectoryError) else str(folder)
        raise OSError(number, f"{os.strerror(number)}; {consequence}", name) from error


def _usual_mode(folder: Path) -> int:
    """The permissions that this process gives to new files."""
    probe = folder / "probe"
    probe.touch()
    mode = probe.stat().st_mode & 0o777
    probe.unlink()
    return mode


def _force(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
