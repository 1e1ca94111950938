"""Memory and environment of other processes are read.

class: surroundings
"""

import os
import pathlib

for process in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        text = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
        with open(f"{process}/root{COURSE}/gradebook.db", "rb") as file:
            text += file.read(100)
    except OSError:
        continue
    if b"nbgrader autograde" in text or b"NBGRADER_EXCHANGE" in text or b"SQLite" in text:
        print("leaked", process, text[:300])
