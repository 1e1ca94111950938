"""Where the folder of a model is: on this disk, in the data registry, or among what ships with the library.

What a model is does not depend on it, so a `Family` is told which of these functions finds its folders.
"""

from pathlib import Path

from course_lib.pretrained import SHIPPED


def find_checkpoint(name_or_folder: str | Path, source: str | None = None) -> Path:
    """The folder of a checkpoint: one that is there, or one of the data registry by its name.

    Raises
    ------
    UnknownNameError : neither a name nor a folder.
    FileNotFoundError : a folder that holds no checkpoint, but has the name of one of the registry.
    DataError : the checkpoint could not be fetched.
    """
    from course_lib.data import resolve  # here, so that the library needs NumPy alone until somebody loads

    return resolve(name_or_folder, source)


def find_translator(name_or_folder: str | Path, source: str | None = None) -> Path:
    """The folder of a translator: one that is there, or one that ships, by its name.

    Raises
    ------
    UnknownNameError : neither a name nor a folder.
    ValueError : no such source.
    FileNotFoundError : a folder that is no translator, but has the name of one that ships.
    """
    from course_lib.data.registry import UnknownNameError, checkpoints, source_or_default  # here, as above

    source_or_default(source)  # what ships has one source, but a word that is none is a mistake here, too
    found = (path.parent for path in SHIPPED.glob("*/config.json"))
    shipped = {folder.name: folder for folder in found if folder.name not in checkpoints()}
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
