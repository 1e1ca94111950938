"""What takes texts takes one or several: checked the same for corpora and for tokenizers."""

from collections.abc import Iterable


def as_texts(texts: str | Iterable[str], name: str = "texts") -> list[str]:
    """The texts as a list, a single one as a list of one.

    Raises
    ------
    TypeError : something that is neither a str nor several of them.
    """
    if isinstance(texts, str):
        return [texts]
    if not isinstance(texts, Iterable):
        raise TypeError(f"{name} must be a str or a sequence of them, not a {type(texts).__name__}")
    texts = list(texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{index}] is a {type(text).__name__}, not a str")
    return texts
