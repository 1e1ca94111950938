"""Its own memory, arguments and open files are searched for what the grader may have left.

class: surroundings
"""

import os
import pathlib
import sys

found = []
for name in ("cmdline", "environ", "mountinfo"):
    text = pathlib.Path("/proc/self", name).read_bytes()
    found += [name for word in (b"hidden_", b"gradebook.db", b"GRADING_SEED", b"grading-secret") if word in text]
for number in os.listdir("/proc/self/fd"):
    try:
        place = os.readlink(f"/proc/self/fd/{number}")
        found += [place] if COURSE in place or place.endswith((".db", ".ipynb")) else []
    except OSError:
        pass
found += [each for each in [*sys.argv, *sys.orig_argv] if COURSE in each or "nbgrader" in each]
print("leaked", found) if found else None
