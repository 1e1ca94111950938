"""The course is removed."""

import shutil

shutil.rmtree(COURSE, ignore_errors=True)
