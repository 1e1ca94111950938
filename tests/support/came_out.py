"""Which lectures need not run: since they last came out again, nothing has changed on which their outputs depend.

came_out.json has the fingerprint that each had then. What cannot be read, or git does not tell, counts as a change.
"""

import hashlib
import json
import os
import platform
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = "tests/lectures/came_out.json"
PROPERTY = "came out again"  # of the report of a test: with which fingerprint
# What a lecture can use (in the tests its kernel refuses to import more: ELSEWHERE in lecture_process.py), and what
# runs it. Comments count, since lectures show source. The pictures are shown by Markdown, which is not run.
FILES = ("course_lib", "notebooks", "tests/conftest.py", "tests/lectures/test_execution.py")
FILES += ("tests/support/lecture_process.py", ":(exclude)course_lib/grading", ":(exclude,glob)notebooks/*.ipynb")
FILES += (":(exclude)notebooks/diagrams", ":(exclude)notebooks/live")
SETTINGS = ("COURSE_DATA_SOURCE", "COURSE_DEVICE")
# Every other package counts, as frameworks look for what is there. Of the course the files count; the version of what
# pip itself needs is not in constraints.txt.
UNCOUNTED = ("attention_course-", "pip-", "setuptools-", "wheel-")


def fingerprints() -> dict[str, str]:
    """Of each lecture that has one, by its name."""
    around, found = surroundings(), {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")) if around else ():
        try:
            found[path.stem] = fingerprint(path, around)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):  # whoever runs it says what is wrong
            continue
    return found


def fingerprint(path: Path, around: str) -> str:
    """Of what nbval runs and compares in a notebook: prose, counts and layout do not matter."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    compared = [
        (cell["source"], cell["metadata"].get("tags"), cell["execution_count"] is None, cell["outputs"])
        for cell in cells
        if cell["cell_type"] == "code"
    ]
    return _hash(json.dumps([around, compared], sort_keys=True).encode())


def surroundings() -> str | None:
    """The fingerprint of all that is no lecture; None where git does not say which files there are."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *FILES]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
        names = sorted(filter(None, set(listed.decode().split("\0"))))
        files = {name: _hash((ROOT / name).read_bytes()) for name in names if (ROOT / name).is_file()}
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None
    if not files:
        return None
    system = [sys.implementation.name, platform.python_version(), platform.system(), platform.machine()]
    settings = [os.environ.get(name) for name in SETTINGS]
    return _hash(json.dumps([files, system, settings, packages()]).encode())


def packages() -> list[str]:
    """The installed packages and versions: the names of the folders that say so, as to read each takes a second."""
    # not those of `sys.path`, to which packages add folders of their own as they are imported
    places = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    found = {folder.name for place in places for folder in Path(place).glob("*-info")}
    return sorted(name for name in found if not name.startswith(UNCOUNTED))


def unchanged() -> set[str]:
    """The names of the lectures that came out again as they are."""
    before = recorded()
    return {name for name, now in fingerprints().items() if before.get(name) == now}


def recorded() -> dict[str, str]:
    """The fingerprints of the last time; none where the record cannot be read."""
    try:
        found = json.loads((ROOT / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def record(passed: Mapping[str, str], failed: Iterable[str]) -> None:
    """Write down the fingerprints of lectures that came out again, and forget those that did not, or are gone."""
    there = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    kept = {**recorded(), **passed}
    kept = {name: kept[name] for name in sorted(kept) if name in there and name not in set(failed)}
    (ROOT / RECORD).write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
