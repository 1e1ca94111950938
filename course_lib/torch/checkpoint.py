"""Loading and saving a model from a folder, in PyTorch."""

from course_lib.checkpoints.pretrained import Pretrained
from course_lib.torch.state import get_state, set_state


class Checkpoint(Pretrained):
    """`from_pretrained` and `save_pretrained` for PyTorch; a loaded model starts in evaluation mode."""

    _get_state, _set_state = get_state, set_state

    @classmethod
    def from_pretrained(cls, name_or_folder, new=(), attention=None, source=None, **changes):
        return super().from_pretrained(name_or_folder, new, attention, source, **changes).eval()

    from_pretrained.__func__.__doc__ = Pretrained.from_pretrained.__doc__
