"""The book, built as it is published."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from filelock import FileLock

ROOT = Path(__file__).parents[2]
URL, REPOSITORY = "https://example.org/course", "https://github.com/someone/course"
DEPLOYMENT = {"BOOK_URL": URL, "BOOK_REPOSITORY": REPOSITORY, "BOOK_BRANCH": "main"}  # as the workflow sets them


def built_site() -> Path:
    """The folder of a book built for its deployment, once for all processes of a test run.

    BOOK_SITE names one built so to check instead. The build for this machine alone is the second command of the README,
    `make book`.
    """
    if ready := os.environ.get("BOOK_SITE"):
        return Path(ready)
    shared = Path(os.environ["COURSE_TESTS_SHARED"])
    with FileLock(shared / "site.lock"):
        if not (shared / "site").exists():
            _build(Path(tempfile.mkdtemp(dir=shared))).rename(shared / "site")  # whole, or not there
    return shared / "site"


def _build(out: Path) -> Path:
    jupyter_book = Path(sys.executable).with_name("jupyter-book")  # the package cannot be run with -m
    command = [str(jupyter_book), "build", str(ROOT), "--path-output", str(out)]
    # Warnings are errors, and so are references that cannot be resolved.
    built = subprocess.run(
        [*command, "-W", "-n", "--keep-going"],
        cwd=ROOT,
        env={**os.environ, **DEPLOYMENT},
        capture_output=True,
        text=True,
        timeout=3600,
    )
    assert built.returncode == 0, f"the book does not build cleanly:\n{built.stdout[-2000:]}\n{built.stderr[-4000:]}"
    return out / "_build" / "html"
