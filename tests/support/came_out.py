"""Which lectures need not run: since they last came out again, nothing has changed on which their outputs depend.

came_out.json has the fingerprint that each had then. What cannot be read, or git does not tell, counts as a change.
"""

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
RECORD = "tests/lectures/came_out.json"
PROPERTY = "came out again"  # of the report of a test: with which fingerprint
# What a lecture can use (in the tests its kernel refuses to import more: ELSEWHERE in lecture_process.py), and what
# runs it. Comments count, since lectures show source. The pictures are shown by Markdown, which is not run.
FILES = ("course_lib", "notebooks", "tests/conftest.py", "tests/lectures/test_execution.py")
FILES += ("tests/support/lecture_process.py", ":(exclude)course_lib/grading", ":(exclude,glob)notebooks/*.ipynb")
FILES += (":(exclude)notebooks/diagrams", ":(exclude)notebooks/live")
# A script that stands here, and what it recorded, count for the lectures that have its name in their code, as a word,
# and for those that use a script that has it; what is of no script counts for all.
EXPERIMENTS = "notebooks/experiments/"
SCRIPT = re.compile(rf"{EXPERIMENTS}(?!__init__)\w+\.py")
SETTINGS = ("COURSE_DATA_SOURCE", "COURSE_DEVICE")
# Every other package counts, as frameworks look for what is there. Of the course the files count; the version of what
# pip itself needs is not in constraints.txt.
UNCOUNTED = ("attention_course-", "pip-", "setuptools-", "wheel-")


def fingerprints() -> dict[str, str]:
    """Of each lecture that has one, by its name; none where git does not say which files there are."""
    try:
        files = {name: _hash((ROOT / name).read_bytes()) for name in files_used()}
        texts = {script_of(name): (ROOT / name).read_text(encoding="utf-8") for name in files if SCRIPT.fullmatch(name)}
    except (OSError, ValueError, subprocess.CalledProcessError):
        return {}
    system = [sys.implementation.name, platform.python_version(), platform.system(), platform.machine()]
    around = [system, [os.environ.get(name) for name in SETTINGS], packages()]
    words, found = {script: words_of(text) for script, text in texts.items()}, {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")) if files else ():
        try:
            cells = compared(path)
            named = named_by(cells, words)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):  # whoever runs it says what is wrong
            continue
        unused = words.keys() - named
        used = {name: digest for name, digest in files.items() if script_of(name) not in unused}
        found[path.stem] = _hash(json.dumps([used, *around, cells], sort_keys=True).encode())
    return found


def files_used() -> list[str]:
    """The names of the files that a lecture can use, or that run it."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *FILES]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    return [name for name in sorted(filter(None, set(listed.decode().split("\0")))) if (ROOT / name).is_file()]


def compared(path: Path) -> list[tuple]:
    """What nbval runs and compares in a notebook: prose, counts and layout do not matter."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [
        (cell["source"], cell["metadata"].get("tags"), cell["execution_count"] is None, cell["outputs"])
        for cell in cells
        if cell["cell_type"] == "code"
    ]


def script_of(name: str) -> str | None:
    """The script that a file is or would be of: `gpt` of `gpt.py`, `recorded/gpt.json` and `recorded/gpt/a.npz`."""
    if not name.startswith(EXPERIMENTS):
        return None
    parts = name.removeprefix(EXPERIMENTS).removeprefix("recorded/").split("/")
    return PurePosixPath(parts[0]).stem


def named_by(cells: list[tuple], words: Mapping[str, set[str]]) -> set[str]:
    """The scripts that the code of cells names, and those that these name; of each script there is, its words."""
    new = words.keys() & words_of("\n".join("".join(source) for source, *_ in cells))
    found = set()
    while new:
        found |= new
        new = (words.keys() & set().union(*(words[script] for script in new))) - found
    return found


def words_of(code: str) -> set[str]:
    """Each of its names, also those in strings."""
    return set(re.findall(r"\w+", code))


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
