"""The border between configurations and config.json: what all models share, and that of BERT's family whole.

How the weights are called there, the table of names, stands with each model: `BERT` in `bert.py`, and so on.
"""

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, NamedTuple

from course_lib.errors import UnsupportedConfigError

# The members of the family: their model_type in a config.json, and how the names of their classes begin.
MEMBERS = {"bert": "Bert", "roberta": "Roberta", "distilbert": "DistilBert", "albert": "Albert"}


# Settings that are seldom set, and what they are when a config.json does not name them.
_SELDOM = {"classifier_dropout": None, "problem_type": None, "classifier_pooling": "first", "pre_norm": False}


class Border(NamedTuple):
    """What the config.json of one member of the family says of ours."""

    name: str  # for the messages
    model_type: str
    keys: Mapping[str, str]  # our field -> the key there
    fixed: Mapping[str, Any]  # settings that change the computation, and the only value that ours computes
    absent: Mapping[str, Any] = {}  # our field -> what an absent key stands for, where our default is another
    without_key: tuple[str, ...] = ()  # our fields that it has no key for, since their values are fixed


def known_fields(settings: dict, name: str, keys: Mapping[str, str], fixed: Mapping[str, Any]) -> dict:
    """What the contents of a config.json say of our fields; a key that is absent or null says nothing.

    Parameters
    ----------
    settings : the contents
    name : of the model, for the messages
    keys : our field -> the key there
    fixed : settings that change the computation, and the only value that ours computes; of them the "model_type"

    Raises
    ------
    UnsupportedConfigError : another model or none, or a setting that ours does not compute.
    """
    if not settings.get("model_type"):
        raise UnsupportedConfigError(
            f'this config.json names no "model_type"; a {name}\'s says "{fixed["model_type"]}"'
        )
    for key, value in fixed.items():
        if settings.get(key) not in (None, value):
            raise UnsupportedConfigError(_computes_only(name, key, settings[key], value))
    return {ours: settings[theirs] for ours, theirs in keys.items() if settings.get(theirs) is not None}


@contextmanager
def usable():
    """Around what makes a configuration of a config.json: nonsense in it is an UnsupportedConfigError."""
    try:
        yield
    except (ValueError, TypeError, AttributeError, IndexError) as error:  # the last three: another kind of value
        raise UnsupportedConfigError(f"this config.json cannot be used: {error}") from error


def read(kind, settings: dict):
    """The configuration of class `kind` that the contents of a config.json describe.

    Raises
    ------
    UnsupportedConfigError : not of this member of the family, or a setting that ours does not compute.
    """
    border = kind.border
    model_type = settings.get("model_type")
    if model_type is None and "source_vocab" in settings:
        raise UnsupportedConfigError(
            f"this config.json is no {border.name}'s but a translator's: load_translator opens it"
        )
    if model_type is None:
        raise UnsupportedConfigError(
            f'this config.json names no "model_type"; a {border.name}\'s says "{border.model_type}"'
        )
    types = [_type_of(kind, settings.get("pre_norm"), mean) for mean in (settings.get("classifier_pooling"), None)]
    for key, value in {"model_type": types[-1], **border.fixed}.items():
        if settings.get(key) not in (None, value) and (key, settings[key]) != ("model_type", types[0]):
            raise UnsupportedConfigError(_computes_only(border.name, key, settings[key], value))
    known = {ours: settings[theirs] for ours, theirs in border.keys.items() if settings.get(theirs) is not None}
    with usable():
        if known.get("pooling") == "cls":  # the first token, by its name
            known["pooling"] = "first"
        return kind(**{**border.absent, **known, **read_classes(settings)})


def write(config, architecture: str) -> dict:
    """The contents of a config.json that `transformers` opens as the class `architecture`.

    It has none of these models with `pre_norm`, and without a pooler no classifier that reads the "mean": another
    model_type tells it so. Where its classifier has a pooler, it says itself that the folder lacks that.
    """
    mean = config.pooling if architecture.endswith("ForSequenceClassification") else None
    settings = {theirs: getattr(config, ours) for ours, theirs in config.border.keys.items()}
    answers = architecture.endswith("ForQuestionAnswering")  # there a start and an end are what is labelled
    return {
        "architectures": [architecture],
        "model_type": _type_of(config, config.pre_norm, mean),
        "position_embedding_type": "absolute",
        **{key: value for key, value in settings.items() if key not in _SELDOM or value != _SELDOM[key]},
        **write_classes(_nameless(2) if answers else class_names(config)),
    }


def read_classes(settings: dict) -> dict:
    """The fields `n_classes` and `labels` of a configuration, of the contents of a config.json of any family.

    Raises
    ------
    ValueError, TypeError, AttributeError : names that are none, or fewer than classes.
    """
    labels, n_labels = settings.get("id2label"), settings.get("num_labels")
    if labels and n_labels is not None and len(labels) < n_labels:
        raise ValueError(f"id2label names {len(labels)} classes, but num_labels is {n_labels}")
    n_classes = len(labels) if labels else 2 if n_labels is None else n_labels
    return {"n_classes": n_classes, "labels": _labels(labels) if labels else None}


def write_classes(names: tuple[str, ...]) -> dict:
    """What a config.json says of classes with these names, or of those that `class_names` gives."""
    return {
        "id2label": {str(i): name for i, name in enumerate(names)},
        "label2id": {name: i for i, name in enumerate(names)},
    }


def class_names(config) -> tuple[str, ...]:
    """The names of the classes of a configuration; where it has none, those that `transformers` makes up."""
    return config.labels or _nameless(config.n_classes)


def reader_of(kind):
    """`read_config` of a `Family`: (the contents of a config.json, the name of one of our classes) -> configuration."""

    def read_config(settings: dict, architecture: str):
        if not architecture.endswith(("ForMaskedLM", "ForPreTraining")):
            # the others have no output matrix that could be tied
            settings = {**settings, "tie_word_embeddings": True}
        if architecture.endswith("ForQuestionAnswering"):  # a start and an end, whatever was classified before
            settings = {name: value for name, value in settings.items() if name not in ("id2label", "num_labels")}
        return read(kind, settings)

    return read_config


def check_config(config, family):
    """The configuration; TypeError unless it is one of the family's."""
    expected = family.config
    border = getattr(config, "border", None)
    if not isinstance(config, expected) or border.model_type != expected.border.model_type:
        theirs = f"; {MEMBERS[border.model_type]}Model takes this one" if isinstance(border, Border) else ""
        raise TypeError(f"a {family.name} is built of a {expected.__name__}, got {config!r}{theirs}")
    return config


def check_keys(kind) -> None:
    """See that each field of a configuration has its key, so that a new one cannot be forgotten."""
    unnamed = {f.name for f in fields(kind)} ^ {*kind.border.keys, *kind.border.without_key, "n_classes", "labels"}
    assert not unnamed, unnamed


def _computes_only(name: str, key: str, found, value) -> str:
    """What to say of a setting that ours does not compute, and who opens a model of BERT's family."""
    message = f"this config.json has {key}={found!r}; the course's {name} computes {value!r} only"
    if key == "model_type" and isinstance(found, str) and found in MEMBERS:
        message += f"; {MEMBERS[found]}Model and the other classes of that name open it"
    return message


def _type_of(kind, pre_norm, pooling) -> str:
    """The model_type of a configuration or its class, of its own where `transformers` would compute something else."""
    mean = "-mean-pooling" if pooling == "mean" and not kind.pooler else ""
    return kind.border.model_type + ("-pre-norm" if pre_norm else "") + mean


def _labels(id2label: dict) -> tuple[str, ...] | None:
    """The names of the classes in order; None for those that `transformers` makes up, or where ids are left out."""
    names = {int(i): str(name) for i, name in id2label.items()}
    labels = tuple(names.get(i) for i in range(len(names)))
    return None if None in labels or labels == _nameless(len(labels)) else labels


def _nameless(n_classes: int) -> tuple[str, ...]:
    return tuple(f"LABEL_{i}" for i in range(n_classes))
