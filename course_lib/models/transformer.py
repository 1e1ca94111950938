"""The Transformer's checkpoints: our own names and settings, in a folder as `transformers` would lay it out."""

from dataclasses import asdict
from pathlib import Path

from course_lib.config import TransformerConfig
from course_lib.errors import CheckpointError
from course_lib.pretrained import Family

# the translators that come with the library, a folder each; a README beside the weights says how they were made
SHIPPED = Path(__file__).parent.parent / "translators"


def read_config(settings: dict, architecture: str = "Transformer") -> TransformerConfig:
    """The configuration that a config.json describes; CheckpointError for one that is not a Transformer's."""
    if kind := settings.get("model_type"):
        raise CheckpointError(
            f"this config.json is of a {kind!r}, no translator; BertModel.from_pretrained opens a 'bert'"
        )
    try:
        return TransformerConfig(**settings)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"this config.json does not describe a translator: {error}") from error


def write_config(config: TransformerConfig, architecture: str = "Transformer") -> dict:
    """The contents of a config.json: the fields of the configuration."""
    return asdict(config)


def find(name_or_folder: str | Path, source: str | None = None) -> Path:
    """The folder of a translator: one that is there, or one that ships, by its name.

    Raises
    ------
    UnknownNameError : neither a name nor a folder.
    FileNotFoundError : a folder that is no translator, but has the name of one that ships.
    """
    from course_lib.data.registry import UnknownNameError  # here, so that the library needs NumPy alone until then

    shipped = {path.parent.name: path.parent for path in SHIPPED.glob("*/config.json")}
    folder = Path(name_or_folder)
    if not folder.is_dir():
        folder = shipped.get(str(name_or_folder), folder)
    elif str(name_or_folder) in shipped and not (folder / "config.json").is_file():
        raise FileNotFoundError(
            f"the folder {folder} here is no translator, it holds no config.json, but it has the name of one that "
            "ships: rename it, or work in another folder"
        )
    if not folder.is_dir():
        names = ", ".join(sorted(shipped)) or "those that ship, of which there is none here"
        raise UnknownNameError(f"there is no translator {str(name_or_folder)!r}: give a folder, or one of {names}")
    return folder


TRANSFORMER = Family("Transformer", read_config, write_config, find)
