"""A text cut into its sentences, by a rule of one line."""

import re

# An end, not that of an initial or a title, with the quotes and brackets that close there; the next sentence begins
# with anything but a small letter.
_END = re.compile(
    r"""(?<!\b[A-Z])(?<!\bMr)(?<!\bMs)(?<!\bDr)(?<!\bSt)(?<!\bMrs)[.!?…]+["'”’»)\]]*\s+(?=["'“‘«(\[]*[^\Wa-z_])"""
)


def sentences(text: str) -> list[str]:
    """The sentences of an English text, without white space around them; a text of white space alone has none.

    A sentence ends with one of `.!?…`, closing quotes and brackets, and white space before anything but a small letter.
    Initials and a few titles ("Mr.") end none. The rule errs at other abbreviations; it asks for no model.

    Raises
    ------
    TypeError : something that is not a str.
    """
    if not isinstance(text, str):
        raise TypeError(f"a text must be a str, not a {type(text).__name__}")
    ends = [0, *(match.end() for match in _END.finditer(text)), len(text)]
    return [piece for start, end in zip(ends, ends[1:], strict=False) if (piece := text[start:end].strip())]
