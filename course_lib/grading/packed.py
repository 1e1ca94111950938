"""Probabilities as plain text, so that a notebook can hold what a model predicted, and a grader needs no model.

Each probability becomes one of 256 steps, and three of these become four letters (base64, RFC 4648): 3,000 sentences
take 4,000 letters. A step stands for its middle, so a probability is off by 1/512 at most, none becomes 0 or 1, and
none crosses 0.5.
"""

import base64
import binascii
import textwrap

import numpy as np

from course_lib.grading.compare import CheckFailed, as_array, expect

STEPS = 256
WIDTH = 100  # letters in a line


def pack(probabilities) -> str:
    """Probabilities as text: letters, in lines of 100.

    Args:
        probabilities: floats from 0 to 1, (N,), N of 1 or more; an array, a list, or a tensor of PyTorch or TensorFlow.

    Raises:
        CheckFailed: for another shape, for what is no float, and for numbers that are no probabilities.
    """
    values = as_array(probabilities, "the array of probabilities")
    expect(
        values.ndim == 1 and values.size > 0,
        f"The probabilities should have the shape (N,), one for each sentence; yours have {values.shape}. Of two "
        "columns, take that of the label 1: probabilities[:, 1].",
    )
    expect(
        bool(((values >= 0) & (values <= 1)).all()),  # NaN is neither
        "Probabilities lie from 0 to 1, and none is NaN; some of yours do not. Of logits, take the softmax first.",
    )
    steps = np.minimum(values.astype(float) * STEPS, STEPS - 1).astype(np.uint8)
    return textwrap.fill(base64.b64encode(steps.tobytes()).decode(), WIDTH)


def unpack(text, count: int | None = None, what: str = "PREDICTIONS") -> np.ndarray:
    """The probabilities of a text that `pack` made, float64 (N,).

    Args:
        text: what `pack` returned; white space in it does not count. None stands for what is not there yet.
        count: how many there should be; any number if None.
        what: how to call the text in a message.

    Raises:
        CheckFailed: for what `pack` did not make, and for another number of probabilities.
    """
    expect(text is not None, f"Not written yet: there is no {what}. Run its cell, then run this one again.")
    expect(isinstance(text, str), f"{what} should be the text that `pack` returned; it is a {type(text).__name__}.")
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise CheckFailed(
            f"{what} is not what `pack` returned: letters are missing, or others came in. Copy the whole text again."
        ) from None
    if count is not None:
        expect(len(data) == count, f"{what} holds {len(data):,} probabilities; there should be {count:,}.")
    return (np.frombuffer(data, np.uint8) + 0.5) / STEPS
