"""The secret of which the seeds are made is removed, or emptied.

class: gradebook and others
"""

import pathlib

for path in (pathlib.Path(COURSE, ".grading-secret"), pathlib.Path(COURSE, "..", ".grading-secret")):
    try:
        path.write_text("0" * 64)
        path.unlink()
    except OSError:
        pass
