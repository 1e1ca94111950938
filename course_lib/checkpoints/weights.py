"""Checkpoints: the folders of config.json and weights that models come from, and strict loading.

Weights travel as `dict[str, ndarray]` under our dotted names, with matrices in PyTorch's (d_out, d_in) layout; the
three frameworks read and write the same dict.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from course_lib.errors import CheckpointError, few
from course_lib.files import read_whole, replacing

# safetensors' names of the types that are read; a quantised weight of 8 bits is not the number that it holds
_TYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "BOOL")
_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"


def with_ties(state: Mapping[str, np.ndarray], ties: Mapping[str, str], prefix: str = "") -> dict[str, np.ndarray]:
    """The weights, under the family's names, with the second copy of a tied one where the first is absent.

    Parameters
    ----------
    ties : the second name -> the first
    prefix : what the first name may lack

    Raises
    ------
    CheckpointError : two copies that differ.
    """
    state = dict(state)
    for second, first in ties.items():
        if second not in state:
            continue
        present = next((name for name in (first, first.removeprefix(prefix)) if name in state), None)
        if present is None:
            state[first] = state[second]
        elif not np.array_equal(state[present], state[second]):
            raise CheckpointError(
                f"{second} is not {present}: the output matrix is not the token table; ours is tied, so this "
                "checkpoint would compute something else here"
            )
    return state


def match(
    expected: Mapping[str, tuple], state: Mapping[str, np.ndarray], new: Iterable[str] = (), unused: Iterable[str] = ()
) -> dict[str, np.ndarray]:
    """Strict loading: every weight used, every parameter filled, every shape equal.

    Parameters
    ----------
    expected : the model's parameter names and shapes
    state : the weights on offer
    new : first parts of parameter names that may keep their fresh values, such as "classifier"; "" means all
    unused : first parts of weight names that this model leaves out on purpose, such as "pooler"

    Returns
    -------
    The weights to set, a subset of `state`.

    Raises
    ------
    CheckpointError : missing or unknown names, wrong shapes, or no floating-point numbers; names the first few.
    """
    new, unused = ((part,) if isinstance(part, str) else tuple(part) for part in (new, unused))
    missing = [name for name in expected if name not in state and not within(name, new)]
    unknown = [name for name in state if name not in expected and not within(name, unused)]
    wrong = [
        f"{name} (is {tuple(state[name].shape)}, must be {tuple(shape)})"
        for name, shape in expected.items()
        if name in state and tuple(state[name].shape) != tuple(shape)
    ]
    kinds = {name: str(state[name].dtype) for name in expected if name in state}  # of any library's arrays
    odd = [f"{name} (is {kind})" for name, kind in kinds.items() if "float" not in kind]
    problems = [
        f"{what}: {few(names)}"
        for what, names in (
            ("missing", missing),
            ("not used by the model", unknown),
            ("of the wrong shape", wrong),
            ("not of floating point", odd),
        )
        if names
    ]
    if problems:
        raise CheckpointError("the weights do not fit the model; " + "; ".join(problems))
    return {name: state[name] for name in expected if name in state}


def within(name: str, parts: Iterable[str]) -> bool:
    """Whether a dotted name is one of the parts or lies in one: "layers.1" holds "layers.1.bias", not "layers.10"."""
    return any(part in ("", name) or name.startswith(part.rstrip(".") + ".") for part in parts)


def read_checkpoint(folder: str | Path) -> tuple[dict, dict[str, np.ndarray]]:
    """Read config.json and the weights from a folder, as (settings, weights) under Hugging Face's names.

    The weights are in model.safetensors, or in the shards that model.safetensors.index.json lists. Those in bfloat16
    come as float32, which has every value that bfloat16 has; NumPy has no such type.

    Raises
    ------
    FileNotFoundError : no such folder, or one of the two files is not in it.
    CheckpointError : a file that is truncated or not what its name says, or weights in a type that is not read.
    """
    folder = Path(folder)
    if folder.is_file():
        raise FileNotFoundError(f"{folder} is a file; give the folder that it is in")
    if not (folder / "config.json").is_file():
        raise FileNotFoundError(
            f"{folder} holds no config.json; a checkpoint is a folder with config.json and model.safetensors"
        )
    try:
        return read_whole(
            folder,
            ("config.json", _WEIGHTS, _INDEX),
            lambda: (_read_json(folder / "config.json"), _read_weights(folder)),
        )
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(str(error)) from None


def write_checkpoint(folder: str | Path, settings: dict, state: Mapping[str, np.ndarray]) -> Path:
    """Write config.json and model.safetensors, each first beside its place and then moved into it.

    Returns
    -------
    The folder, made when it did not exist.

    Raises
    ------
    OSError : the files could not be written, on a full disk for one; those that were there before are as they were.
    """
    from safetensors.numpy import save_file  # here, so that the library needs NumPy alone until somebody saves

    with replacing(folder) as scratch:
        arrays = {name: np.asarray(value, order="C") for name, value in state.items()}
        # transformers refuses a file that does not say which framework's layout it has
        save_file(arrays, scratch / _WEIGHTS, metadata={"format": "pt"})
        (scratch / "config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    return Path(folder)


def _read_json(path: Path) -> dict:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))  # some editors put a mark in front
        if not isinstance(content, dict):
            raise ValueError("the top level is not an object")
    except ValueError as error:
        raise CheckpointError(f"{path} is not a valid JSON file: {error}") from error
    return content


def _read_weights(folder: Path) -> dict[str, np.ndarray]:
    """All weights of a folder, of one file or of several."""
    if (folder / _WEIGHTS).is_file():
        return _read_arrays(folder / _WEIGHTS)
    if (folder / _INDEX).is_file():
        places = _read_json(folder / _INDEX).get("weight_map")
        if not isinstance(places, dict) or not all(isinstance(name, str) for name in places.values()):
            raise CheckpointError(f"{folder / _INDEX} does not say which file holds which weight")
        state = {}
        for name in sorted(set(places.values())):
            if Path(name).name != name:  # a file of another folder is none of this checkpoint
                raise CheckpointError(f"{folder / _INDEX} names {name}, which is not in its folder")
            if not (folder / name).is_file():
                raise FileNotFoundError(f"{folder} holds no {name}, a part of the weights that {_INDEX} lists")
            state |= _read_arrays(folder / name)
        if lost := [name for name in places if name not in state]:
            raise CheckpointError(f"the files that {folder / _INDEX} lists lack weights: {few(lost)}")
        return state
    message = f"{folder} holds no {_WEIGHTS}; a checkpoint is a folder with config.json and {_WEIGHTS}"
    pickles = sorted(path.name for path in folder.iterdir() if path.suffix in (".bin", ".pt", ".pth", ".ckpt"))
    if pickles:
        message += (
            f". Its {few(pickles)} may be a pickle, and opening one runs whatever code it holds, so it is not read: "
            "where you trust it, open it in `transformers` with the class that config.json names under "
            '"architectures", and write the weights again by its `save_pretrained`'
        )
    raise FileNotFoundError(message)


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of one safetensors file, those in bfloat16 as float32."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            types = {name: file.get_slice(name).get_dtype() for name in file.keys()}
            if odd := [f"{name} ({kind})" for name, kind in types.items() if kind not in _TYPES]:
                raise CheckpointError(
                    f"{path} holds weights in types that are not read: {few(odd)}; float16, bfloat16, float32 and "
                    "float64 are, so save the model in one of them"
                )
            wide = _read_bfloat16(path) if "BF16" in types.values() else {}
            return {name: wide[name] if kind == "BF16" else file.get_tensor(name) for name, kind in types.items()}
    except SafetensorError as error:
        raise CheckpointError(f"{path} is truncated or not a safetensors file ({error}); fetch it again") from error


def _read_bfloat16(path: Path) -> dict[str, np.ndarray]:
    """The bfloat16 arrays of a file as float32: a bfloat16 is the upper half of a float32's bits.

    safetensors itself hands them out only where a package has taught NumPy the type.
    """
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")  # of the header, which says where each array lies behind it
        header = json.loads(file.read(size))
    arrays = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "BF16":
            first, last = entry["data_offsets"]
            halves = np.fromfile(path, dtype="<u2", count=(last - first) // 2, offset=8 + size + first)
            arrays[name] = (halves.astype(np.uint32) << 16).view(np.float32).reshape(entry["shape"])
    return arrays
