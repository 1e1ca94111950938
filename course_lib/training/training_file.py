"""A training's state in one file: every array it needs to go on, and the facts beside them."""

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import filelock
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from course_lib.errors import CheckpointError

FILE, LOCK = "training.safetensors", ".training.lock"


def write_training(folder: str | Path, arrays: Mapping[str, np.ndarray], facts: dict) -> Path:
    """Write arrays and facts into `folder`, so that a reader finds the old file or the new one, never half of one.

    The file is written under another name, forced to the disk and renamed over the old one, which file systems do
    in one step. One file holds everything, so weights and place in the data can never be of different moments.

    Parameters
    ----------
    folder : made when it does not exist
    arrays : of any shape and dtype, by name
    facts : what JSON can hold

    Returns
    -------
    The path of the file.

    Raises
    ------
    OSError : it cannot be written, such as on a full disk; says where and why, and the old file stays.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path, scratch = folder / FILE, folder / f".{FILE}.{os.getpid()}"
    arrays = {name: _plain(np.asarray(value)) for name, value in arrays.items()}
    try:
        scratch.touch()
        usual = scratch.stat().st_mode  # safetensors would let the owner alone read it
        save_file(arrays, scratch, metadata={"facts": json.dumps(facts)})
        scratch.chmod(usual)
        with open(scratch, "rb") as file:
            os.fsync(file.fileno())
        os.replace(scratch, path)
    except (OSError, SafetensorError) as error:
        raise _not_saved(path, error, sum(value.nbytes for value in arrays.values())) from error
    finally:
        with contextlib.suppress(OSError):  # as on a disk that has become read-only; the error above says so
            scratch.unlink(missing_ok=True)
    return path


@contextlib.contextmanager
def alone_in(folder: str | Path) -> Iterator[None]:
    """A block in which no other training is saved into `folder`, in this process or another.

    Where the file system has no locks, or lets us write nothing, the block is entered as it is.

    Raises
    ------
    CheckpointError : there is another one.
    """
    folder = Path(folder)
    lock = filelock.FileLock(folder / LOCK)  # the operating system's, so it ends with the process that holds it
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except filelock.Timeout as error:
        raise CheckpointError(
            f"another training is being saved into {folder}; wait for its end, or use another folder"
        ) from error
    except (OSError, NotImplementedError):
        pass
    else:
        for left in folder.glob(f".{FILE}.*"):  # of a process that was killed while it wrote: the living are not here
            left.unlink(missing_ok=True)
    try:
        yield
    finally:
        lock.release()


def prepare_folder(folder: str | Path) -> None:
    """Make a folder, and see that files can be written into it; OSError when not, before hours of training."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".{FILE}.{os.getpid()}"
        probe.write_bytes(b"1")
        probe.unlink()
    except OSError as error:
        raise OSError(error.errno, f"no training can be saved there: {error.strerror}", str(folder)) from error


def read_training(folder: str | Path) -> tuple[dict[str, np.ndarray], dict] | None:
    """The arrays and the facts that `write_training` left in `folder`, or None when there are none.

    Raises
    ------
    CheckpointError : a file that is truncated, or not one of ours.
    """
    path = Path(folder) / FILE
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads(file.metadata()["facts"])
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is no training to resume ({error}); move it away to start afresh") from error


def under(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """The arrays whose names start with `prefix`, under the rest of their names."""
    return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}


def _plain(value: np.ndarray) -> np.ndarray:
    """An array as the file takes it: contiguous, and bfloat16, which NumPy lacks, as the float32 of equal value."""
    value = value.astype(np.float32) if value.dtype.name == "bfloat16" else value
    return np.ascontiguousarray(value).reshape(value.shape)


def _not_saved(path: Path, error: Exception, n_bytes: int) -> OSError:
    """The error of the operating system behind any that writing gives, with the path and the room on its disk."""
    number = re.search(r"os error (\d+)", str(error))  # safetensors has an error of its own, with the number inside
    number = int(number[1]) if number else getattr(error, "errno", None)
    why = os.strerror(number) if number else str(error)
    free = shutil.disk_usage(path.parent).free
    text = f"the training was not saved: {why} ({n_bytes / 1e6:,.1f} MB needed, {free / 1e6:,.1f} MB free on the disk)"
    return OSError(number, text, str(path))
