"""Loading and saving a model from a folder, in NumPy."""

from course_lib.checkpoints.pretrained import Pretrained
from course_lib.numpy.state import get_state, set_state


class Checkpoint(Pretrained):
    """`from_pretrained` and `save_pretrained` for NumPy."""

    _get_state, _set_state = get_state, set_state
