"""Files that are replaced whole: whoever reads finds the old ones or the new ones, and never a half-written one."""

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

_WRITING, _EXCHANGING = ".saving-", ".exchanging-"


@contextlib.contextmanager
def replacing(folder: str | Path, gone: Iterable[str] = ()) -> Iterator[Path]:
    """A hidden folder to write files in; at the end of the `with` block they move into `folder`, all or none.

    The files are written beside their places, forced to the disk, and renamed over the old ones. If the block fails,
    a full disk included, the old files stay as they were. Several files are renamed one by one; a process that is
    killed in between leaves a trace, which `check_exchanged` finds.

    Parameters
    ----------
    folder : where the files belong; made when it does not exist
    gone : names in `folder` that the new files make obsolete

    Raises
    ------
    OSError : a file could not be written; names the folder and the reason, whichever library did the writing.
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
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
    with _explained(folder, "some of its files may be old ones and some new; save again"):
        _exchange(scratch, folder, names, gone)


def check_exchanged(folder: str | Path) -> None:
    """Raise ValueError when a process was killed while its files were taking the places of older ones."""
    for left in Path(folder).glob(f"{_EXCHANGING}*"):
        names = sorted(path.name for path in left.iterdir())
        if names:
            raise ValueError(
                f"the saving of {folder} was interrupted, and its files may be of two different models: save again, "
                f"or complete it by moving {', '.join(names)} from {left} into it"
            )


def _exchange(scratch: Path, folder: Path, names: list[str], gone: Iterable[str]) -> None:
    gone = [name for name in gone if (folder / name).exists()]
    if len(names) + len(gone) > 1:
        scratch = scratch.rename(folder / scratch.name.replace(_WRITING, _EXCHANGING))
        for left in folder.glob(f"{_EXCHANGING}*"):  # of a process that was killed here
            if left != scratch:
                shutil.rmtree(left, ignore_errors=True)
    for name in gone:
        (folder / name).unlink(missing_ok=True)
    # Another process that saves here too may have taken our folder for such a remainder; then its files count.
    with contextlib.suppress(FileNotFoundError):
        for name in names:
            os.replace(scratch / name, folder / name)
        scratch.rmdir()


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
        raise OSError(number, f"{os.strerror(number)}; {consequence}", str(folder)) from error


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
