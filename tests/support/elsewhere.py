"""`course_lib.grading.marking` on Linux, without what macOS or Windows lack: processes are started, and not forked.

A started process reads this file again, so that it lacks the same.
"""

import os
import signal
import sys

import psutil  # noqa: F401  which imports `resource` on Linux

for module, names in (
    (os, ("fork", "forkpty", "register_at_fork", "pidfd_open", "memfd_create", "sched_getaffinity")),
    (signal, ("setitimer", "getitimer", "alarm", "SIGALRM", "pidfd_send_signal")),
):
    for name in names:
        delattr(module, name)
sys.modules["resource"] = None  # an import raises ModuleNotFoundError

from course_lib.grading.marking import apart, gradings  # noqa: E402

apart.FORK = gradings.FORK = "spawn"

from course_lib.grading.marking.__main__ import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
