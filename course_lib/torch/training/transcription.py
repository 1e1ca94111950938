"""What a Whisper minimises, in PyTorch: an objective as those of `objectives.py`."""

from functools import partial

from course_lib.torch.training.objectives import smoothed
from course_lib.training import reading
from course_lib.training.arguments import number
from course_lib.training.objective import Objective, field_of


def transcription(smoothing: float = 0.0) -> Objective:
    """The next token of what is said, from the sound and the true tokens before it (teacher forcing).

    Batches: `SoundBatch`; `model(features, target_ids).logits` (B, T, V).

    Parameters
    ----------
    smoothing : of the labels, as for `cross_entropy`
    """

    return Objective(
        "transcription",
        reading.sounds,
        partial(transcription_losses, smoothing=smoothing),
        settings={"smoothing": number("smoothing", smoothing)},
        pad_id=reading.padding_of,
        counted="target token besides padding",
    )


def transcription_losses(model, features, inputs, labels, smoothing):
    """The losses of `transcription` for one batch."""
    return [smoothed(field_of(model(features, inputs), "logits", model), labels, smoothing)]
