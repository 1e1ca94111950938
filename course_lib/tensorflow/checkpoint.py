"""Loading and saving a model from a folder, in TensorFlow."""

from course_lib.checkpoints.pretrained import Pretrained
from course_lib.tensorflow.state import get_state, set_state


class Checkpoint(Pretrained):
    """`from_pretrained` and `save_pretrained` for TensorFlow."""

    _set_state = set_state

    def _get_state(self):
        return {name: value for name, value in get_state(self).items() if "weights[" not in name}

    def save_pretrained(self, folder):
        """As that of the other frameworks.

        Raises
        ------
        ValueError : weights that such a file has no place for, of a quantized model or of layers beside the model's.
        """
        odd = [name for name in get_state(self) if "weights[" in name]
        if odd:
            raise ValueError(
                f"{odd[0]} has no place in the file of a checkpoint, which holds the model's own weights in floating "
                'point; for layers of your own use `model.save("model.keras")`; of a quantized model, '
                '`model.save_weights("model.weights.h5")`, and load them into a fresh one that is quantized likewise'
            )
        return super().save_pretrained(folder)
