"""Checkpoints: Hugging Face's names and files on one side, ours on the other.

Weights travel as `dict[str, ndarray]` under our dotted names, with matrices in PyTorch's (d_out, d_in)
layout; the three frameworks read and write the same dict. The rename table below is data: it is read in
both directions, so what loads also saves.
"""

import json
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

# Hugging Face's name -> ours, after "bert." is stripped; {n} is the layer's number.
# None = dropped on purpose: buffers, copies of tied weights, the next-sentence head.
RENAMES: dict[str, str | None] = {
    "embeddings.word_embeddings.weight": "embeddings.token.weight",
    "embeddings.position_embeddings.weight": "embeddings.position.weight",
    "embeddings.token_type_embeddings.weight": "embeddings.segment.weight",
    "embeddings.LayerNorm.{p}": "embeddings.norm.{p}",
    "encoder.layer.{n}.attention.self.query.{p}": "encoder.layers.{n}.attention.q_proj.{p}",
    "encoder.layer.{n}.attention.self.key.{p}": "encoder.layers.{n}.attention.k_proj.{p}",
    "encoder.layer.{n}.attention.self.value.{p}": "encoder.layers.{n}.attention.v_proj.{p}",
    "encoder.layer.{n}.attention.output.dense.{p}": "encoder.layers.{n}.attention.out_proj.{p}",
    "encoder.layer.{n}.attention.output.LayerNorm.{p}": "encoder.layers.{n}.norm1.{p}",
    "encoder.layer.{n}.intermediate.dense.{p}": "encoder.layers.{n}.feed_forward.linear1.{p}",
    "encoder.layer.{n}.output.dense.{p}": "encoder.layers.{n}.feed_forward.linear2.{p}",
    "encoder.layer.{n}.output.LayerNorm.{p}": "encoder.layers.{n}.norm2.{p}",
    "pooler.dense.{p}": "pooler.{p}",
    "cls.predictions.transform.dense.{p}": "head.transform.{p}",
    "cls.predictions.transform.LayerNorm.{p}": "head.norm.{p}",
    "cls.predictions.bias": "head.bias",
    "classifier.{p}": "classifier.{p}",
    "embeddings.position_ids": None,
    "cls.predictions.decoder.{p}": None,
    "cls.seq_relationship.{p}": None,
}


class CheckpointError(ValueError):
    """A checkpoint that cannot be read, or whose weights do not fit the model."""


def from_hugging_face(state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Rename the weights of a Hugging Face BERT to our names; the leading "bert." goes.

    Raises
    ------
    CheckpointError : a name that is not in the table (the first few are listed).
    """
    renamed, unknown = {}, []
    for name, value in state.items():
        plain = re.sub(r"gamma$", "weight", re.sub(r"beta$", "bias", name.removeprefix("bert.")))
        ours = _rename(plain, RENAMES.items(), default="?")
        if ours == "?":
            unknown.append(name)
        elif ours is not None:
            renamed[ours] = value
    if unknown:
        raise CheckpointError(f"the checkpoint holds weights that are not a BERT's: {_few(unknown)}")
    return renamed


def to_hugging_face(state: Mapping[str, np.ndarray], prefix: str = "") -> dict[str, np.ndarray]:
    """The inverse of `from_hugging_face`; `prefix` is "bert." for a model with a head.

    Raises
    ------
    CheckpointError : a name of ours that the table does not hold.
    """
    inverse = [(ours, theirs) for theirs, ours in RENAMES.items() if ours is not None]
    renamed, unknown = {}, []
    for name, value in state.items():
        theirs = _rename(name.removeprefix("bert."), inverse, default="?")
        if theirs == "?":
            unknown.append(name)
        else:
            headed = theirs.startswith(("cls.", "classifier."))
            renamed[theirs if headed else prefix + theirs] = value
    if unknown:
        raise CheckpointError(f"these weights have no Hugging Face name: {_few(unknown)}")
    return renamed


def match(
    expected: Mapping[str, tuple], state: Mapping[str, np.ndarray], new: Iterable[str] = (), unused: Iterable[str] = ()
) -> dict[str, np.ndarray]:
    """Strict loading: every weight used, every parameter filled, every shape equal.

    Parameters
    ----------
    expected : the model's parameter names and shapes
    state : the weights on offer
    new : first parts of parameter names that may keep their fresh values, such as "classifier"
    unused : first parts of weight names that this model leaves out on purpose, such as "pooler"

    Returns
    -------
    The weights to set, a subset of `state`.

    Raises
    ------
    CheckpointError : missing or unknown names, or wrong shapes; names the first few.
    """
    new, unused = ((part,) if isinstance(part, str) else tuple(part) for part in (new, unused))
    missing = [name for name in expected if name not in state and not name.startswith(new)]
    unknown = [name for name in state if name not in expected and not name.startswith(unused)]
    wrong = [
        f"{name} (is {tuple(state[name].shape)}, must be {tuple(shape)})"
        for name, shape in expected.items()
        if name in state and tuple(state[name].shape) != tuple(shape)
    ]
    problems = [
        f"{what}: {_few(names)}"
        for what, names in (("missing", missing), ("not used by the model", unknown), ("of the wrong shape", wrong))
        if names
    ]
    if problems:
        raise CheckpointError("the weights do not fit the model; " + "; ".join(problems))
    return {name: state[name] for name in expected if name in state}


def read_checkpoint(folder: str | Path) -> tuple[dict, dict[str, np.ndarray]]:
    """Read config.json and model.safetensors from a folder, as (settings, weights) under Hugging Face's names.

    Raises
    ------
    FileNotFoundError : no such folder, or one of the two files is not in it.
    CheckpointError : a file that is truncated or not what its name says.
    """
    folder = Path(folder)
    for name in ("config.json", "model.safetensors"):
        if not (folder / name).is_file():
            raise FileNotFoundError(
                f"{folder} holds no {name}; a checkpoint is a folder with config.json and model.safetensors"
            )
    try:
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if not isinstance(settings, dict):
            raise ValueError("the top level is not an object")
    except ValueError as error:
        raise CheckpointError(f"{folder / 'config.json'} is not a valid JSON file: {error}") from error
    try:
        state = load_file(folder / "model.safetensors")
        # NumPy itself has no bfloat16, and neither would its arrays fit a torch tensor
        state = {name: v.astype(np.float32) if v.dtype.name == "bfloat16" else v for name, v in state.items()}
    except SafetensorError as error:
        raise CheckpointError(
            f"{folder / 'model.safetensors'} is truncated or not a safetensors file ({error}); fetch it again"
        ) from error
    return settings, state


def write_checkpoint(folder: str | Path, settings: dict, state: Mapping[str, np.ndarray]) -> Path:
    """Write config.json and model.safetensors, each first beside its place and then moved into it.

    Returns
    -------
    The folder, made when it did not exist.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".saving-") as scratch:
        arrays = {name: np.ascontiguousarray(value) for name, value in state.items()}
        # transformers refuses a file that does not say which framework's layout it has
        save_file(arrays, Path(scratch) / "model.safetensors", metadata={"format": "pt"})
        (Path(scratch) / "config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        for name in ("model.safetensors", "config.json"):
            (Path(scratch) / name).replace(folder / name)
    return folder


def _rename(name: str, pairs: Iterable[tuple[str, str | None]], default: str) -> str | None:
    for source, target in pairs:
        pattern = re.escape(source).replace(r"\{n\}", r"(?P<n>\d+)").replace(r"\{p\}", "(?P<p>weight|bias)")
        found = re.fullmatch(pattern, name)
        if found:
            return target if target is None else target.format(**found.groupdict())
    return default


def _few(names: list[str], limit: int = 5) -> str:
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + rest
