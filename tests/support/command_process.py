"""Run nbgrader commands, and ours that grades, quickly: one warm process, one fork per command (imports take seconds).

Reads one JSON object per line (program, arguments, folder, environment, output file) from standard input; writes the
exit status of the command per line. The command is the same code that the `nbgrader` script runs, or
`python -m course_lib.grading.marking`.
"""

import json
import os
import sys

import nbconvert.exporters  # noqa: F401  (imported once, before the forks)
import nbgrader.apps
import nbgrader.server_extensions.formgrader  # noqa: F401
from nbgrader.apps.nbgraderapp import NbGraderApp

from course_lib.grading.marking.__main__ import main as marking


def _run(job: dict) -> None:
    log = os.open(job["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.clear()
    os.environ.update(job["environment"])
    os.chdir(job["folder"])
    if job["program"] == "marking":
        raise SystemExit(marking(job["arguments"]))
    sys.argv = ["nbgrader", *job["arguments"]]
    NbGraderApp.launch_instance()


def _status(job: dict) -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        _run(job)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main():
    """Serve until standard input ends."""
    for line in sys.stdin:
        print(_status(json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
