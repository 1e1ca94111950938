"""What the tokenizers take: one text or a sequence of them, every one a str that can be written as UTF-8."""

from collections.abc import Callable, Sequence
from typing import Any

from course_lib.strings import as_texts as as_texts


def tokenized(function: Callable[[Sequence], Any], batch: Sequence, **texts: Sequence[str]) -> Any:
    """`function(batch)` of the `tokenizers` library, which cannot say what is wrong with a str.

    Parameters
    ----------
    texts : the texts of the batch by the name of the argument that they came in

    Raises
    ------
    ValueError : a text with half of a character, a lone surrogate; names the first one.
    """
    try:
        return function(batch)
    except (TypeError, UnicodeError):  # looked for only now: it is rare, and looking costs time
        for name, column in texts.items():
            for index, text in enumerate(column):
                try:
                    text.encode("utf-8")
                except UnicodeEncodeError as error:
                    raise ValueError(
                        f"{name}[{index}] holds half of a character, the lone surrogate {text[error.start]!r} at "
                        f"{error.start}; read the file as UTF-8, or leave it out by "
                        "text.encode('utf-8', 'ignore').decode('utf-8')"
                    ) from None
        raise
