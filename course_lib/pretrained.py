"""Loading and saving a model from a folder, the same in the three frameworks."""

from dataclasses import replace
from pathlib import Path

from course_lib.config import BertConfig
from course_lib.data import resolve
from course_lib.weights import from_hugging_face, match, read_checkpoint, to_hugging_face, write_checkpoint


class Pretrained:
    """Mix-in of the BERT models: `from_pretrained` and `save_pretrained`.

    A framework supplies `_get_state` and `_set_state`; a model says in `unused` which parts of a
    checkpoint it leaves out on purpose, and in `architecture` which class of `transformers` it is.
    """

    architecture: str
    unused: tuple[str, ...] = ()

    @classmethod
    def from_pretrained(cls, name_or_folder, new=(), attention=None, **changes):
        """Build the model that a checkpoint describes and fill it with the checkpoint's weights.

        Parameters
        ----------
        name_or_folder : a folder with config.json and model.safetensors, or a name of the data registry
        new : first parts of the parameters that the checkpoint lacks and that shall keep their fresh values,
            such as ["classifier"] before fine-tuning, or ["pooler", "classifier"]
        attention : the attention function; the framework's plain `attention` when None
        changes : fields of `BertConfig` to replace, such as n_classes=3 or dropout=0.0

        Raises
        ------
        ValueError : neither a folder nor the name of a checkpoint of the registry.
        FileNotFoundError : a file missing in the folder.
        CheckpointError : weights missing, unknown, of another shape, or a truncated file.
        UnsupportedConfigError : a config.json that is not of a BERT we compute.
        """
        settings, state = read_checkpoint(resolve(name_or_folder))
        config = replace(BertConfig.from_hugging_face(settings), **changes)
        model = cls(config) if attention is None else cls(config, attention=attention)
        # a model with a head keeps the encoder under "bert."; the checkpoint's names come without it
        fresh = {name.removeprefix("bert."): (name, value.shape) for name, value in model._get_state().items()}
        expected = {name: shape for name, (_, shape) in fresh.items()}
        weights = match(expected, from_hugging_face(state), new=new, unused=cls.unused)
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
