"""Files that are programs, whatever they are called: an archive, say, from which Python would import."""

import importlib.util
from pathlib import PurePosixPath

NATIVE = (  # how libraries of Linux and of macOS begin
    b"\x7fELF", b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe",
)  # fmt: skip
PLACE = 0x3C  # of a library of Windows: where it says where its header is
MEMBER, LENGTH, HEAD = b"PK\1\2", 28, 46  # how an archive lists a member; where its name's length stands, and its name


def is_program(content: bytes) -> bool:
    """Whether Python could import it under another name, or from it. A text can be a program, too: that is not seen."""
    if content.startswith((importlib.util.MAGIC_NUMBER, *NATIVE)):
        return True
    header = int.from_bytes(content[PLACE : PLACE + 4], "little")
    return bool(content.startswith(b"MZ") and content[header : header + 4] == b"PE\0\0" or modules_in(content))


def modules_in(content: bytes) -> set[str]:
    """The modules and their folders that an archive lists, whatever stands before it: a picture, say.

    It is not opened: `zipfile` and Python's import need not agree on where its list ends.
    """
    found, place = set(), content.find(MEMBER)
    while place >= 0:
        length = int.from_bytes(content[place + LENGTH : place + LENGTH + 2], "little")
        path = PurePosixPath(content[place + HEAD : place + HEAD + length].decode("utf-8", errors="replace"))
        if path.suffix.lower() in (".py", ".pyc"):
            found |= {PurePosixPath(part).stem for part in path.parts}
        place = content.find(MEMBER, place + 1)
    return found
