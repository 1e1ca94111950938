"""The course is removed.

class: gradebook and others
"""

import shutil

shutil.rmtree(COURSE, ignore_errors=True)
