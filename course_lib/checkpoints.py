"""A training's state in one file: every array it needs to go on, and the facts beside them."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from course_lib.weights import CheckpointError

FILE = "training.safetensors"


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
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path, scratch = folder / FILE, folder / f".{FILE}.{os.getpid()}"
    arrays = {name: np.ascontiguousarray(value).reshape(np.shape(value)) for name, value in arrays.items()}
    try:
        save_file(arrays, scratch, metadata={"facts": json.dumps(facts)})
        with open(scratch, "rb") as file:
            os.fsync(file.fileno())
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
    for left in folder.glob(f".{FILE}.*"):  # of a process that was killed while it wrote
        left.unlink(missing_ok=True)
    return path


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


def part(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """The arrays whose names start with `prefix`, under the rest of their names."""
    return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}
