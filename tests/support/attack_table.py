"""Hand in every attack to our grader, to stock nbgrader and to otter-grader, and record what became of it.

    python -m tests.support.attack_table                            all three; an hour and a half or more
    python -m tests.support.attack_table --graders ours --anew      one of them, also what the record has already
    python -m tests.support.attack_table --ages                     nothing is tried: how old the record is

Attacks on another assignment than the first are tried on our grader alone: the record says so by `on`.

Linux with bubblewrap is needed. The other graders run attacks only in a container (`attack_container.py`): an attack
and two who did the work, a container for each. What was found is written to tests/assignments/attacks.json, which the
book shows; what the record has of an attack that did not change since is kept. Each entry has the day on which it was
tried, "A/B" where it was one from A to B, the versions of what was tried, null where nobody knows them, and of our
grader a digest of the library's files that grade. No test asks that these are today's, as to try all on our grader
takes a quarter of an hour: before a release, do it with `--anew`.
"""

import argparse
import datetime
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
from filelock import FileLock

from course_lib import __version__
from course_lib.files import replacing
from tests.support.attack_container import HOME, seen_in
from tests.support.attack_outcomes import HELD, NO_MATTER, of_ours, of_seen, reason_not_to_apply
from tests.support.attack_traces import STUDENTS
from tests.support.attacks import ATTACKS, FIRST, NOTEBOOK_S, answers, assignment_of, fingerprint, said_of, tries
from tests.support.attacks_on_ours import Batch, in_batches
from tests.support.course import ASSIGNMENT, ROOT, filled_in, generated_course, maximum, reference_answers
from tests.support.other_graders import PORT, Otter, Stock, whole_script

RECORD = ROOT / "tests" / "assignments" / "attacks.json"
SOURCE = ROOT / "assignments" / "source" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
GRADING = ROOT / "course_lib" / "grading"
OTHERS = {"nbgrader": Stock, "otter": Otter}
GRADERS = ("ours", *OTHERS)


class Contained:
    """Another grader, prepared once, to which attacks are handed in one at a time."""

    def __init__(self, grader, folder: Path):
        self.grader, self.folder = grader, folder
        self.source = nbformat.read(SOURCE, as_version=4)
        self.solutions = reference_answers(self.source)
        self.release = generated_course(folder / "ours").release
        home = folder / "home"
        left_out = shutil.ignore_patterns("pretrained", "__pycache__")
        shutil.copytree(ROOT / "course_lib", home / "library" / "course_lib", ignore=left_out)
        grader.prepare(home, SOURCE, NOTEBOOK_S)
        (home / "run").write_text(whole_script(grader), encoding="utf-8")
        self.usual = self.control()["seconds"]

    def control(self) -> dict:
        """What is seen where nobody attacks.

        Raises:
            RuntimeError: if somebody has other marks than the work deserves, or anything else is out of order.
        """
        seen, most = self.seen({}), maximum(self.source)
        earned = {student: {cell: marks.get(cell) for cell in most} for student, marks in seen["marks"].items()}
        right = {"a-good": most, "m-attack": dict.fromkeys(most, 0.0), "z-good": most}
        harm = {key: seen[key] for key in ("leaked", "changed", "left", "killed", "taken") if seen[key]}
        if earned != right or harm:
            raise RuntimeError(f"{self.grader.name} without an attack: {earned}, {harm}\n{seen['said']}")
        return seen

    def seen(self, cells: dict[str, str]) -> dict:
        """What is seen where these cells are handed in between two who did the work."""
        good = filled_in(self.release, self.solutions)
        for student, notebook in zip(STUDENTS, (good, filled_in(self.release, cells), good), strict=True):
            place = self.folder / "home" / "course" / "submitted" / student / ASSIGNMENT
            place.mkdir(parents=True, exist_ok=True)
            nbformat.write(notebook, place / f"{ASSIGNMENT}.ipynb")
        return seen_in(self.folder, self.grader.python)

    def attacked(self, name: str) -> dict:
        """What is seen of an attack."""
        known = f"COURSE, HOME, PORT = {HOME + '/course'!r}, {HOME!r}, {PORT}\n"
        return self.seen(answers(ATTACKS[name], known, self.solutions))


def tried_on_ours(names: list[str], folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Attacks on our grader, in batches; those of a batch that were not held are tried again one by one.

    Where one harms others, all of its batch seem to have done so, and then it is seen which it was.
    """
    for number, batch in enumerate(in_batches(names)):
        found = {}
        try:
            found = of_ours(Batch(folder / f"batch-{number}", batch), batch)
        except OSError as error:  # somebody has no executed notebook
            print(f"a batch could not be judged: {error}", file=sys.stderr)
        for name in batch:
            outcomes = found.get(name, ["stopped"])
            if outcomes == [HELD] or len(batch) == 1:
                yield name, outcomes
            else:
                print(f"tried again: {name}, {outcomes}", file=sys.stderr)
                yield from tried_on_ours([name], folder / f"alone-{name}")


def tried_on_another(grader, names: list[str], folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Attacks on a grader in a container, one by one."""
    contained = Contained(grader, folder)
    for name in names:
        seen = contained.attacked(name)
        print({key: seen[key] for key in seen if key not in ("said", "marks")}, file=sys.stderr)
        yield name, of_seen(name, seen, contained.source, contained.usual)


def is_for(grader: str, name: str) -> bool:
    """Whether an attack is tried on a grader: on others than ours, those on the first assignment."""
    return grader == "ours" or assignment_of(ATTACKS[name]) == FIRST


def digest(folder: Path = GRADING) -> str:
    """Sixteen letters that change where a Python file in a folder does."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.py"), key=lambda path: path.relative_to(folder).as_posix()):
        found.update(f"{path.relative_to(folder).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def about(grader: str) -> dict[str, str]:
    """The versions of what is tried."""
    versions = {
        "ours": {"course_lib": __version__, "nbgrader": importlib.metadata.version("nbgrader")},
        "nbgrader": {"nbgrader": importlib.metadata.version("nbgrader")},
        "otter": {"otter-grader": Otter.pinned},
    }[grader]
    bubblewrap = subprocess.run(["bwrap", "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    python = ".".join(map(str, sys.version_info[:3]))
    return versions | {"Python": python, "bubblewrap": bubblewrap}


def days(attacks: dict[str, dict], grader: str) -> str:
    """When a grader was tried, in words: on one day, or from the oldest entry to the newest."""
    dates = [entry["tried"][grader]["date"] for entry in attacks.values() if grader in entry]
    oldest, newest = min(date.split("/")[0] for date in dates), max(date.split("/")[-1] for date in dates)
    return oldest if oldest == newest else f"{oldest} to {newest}"


def versions(attacks: dict[str, dict], grader: str) -> dict[str, str]:
    """The versions of what was tried, in words: "1.0 or 1.1" where some entries have the one and some the other."""
    found: dict[str, set[str]] = {}
    tried = [entry["tried"][grader].get("versions") for entry in attacks.values() if grader in entry]
    for each in tried:
        for name, version in (each or {}).items():
            found.setdefault(name, set()).add(version)
    unknown = ["unknown"] if None in tried else []
    return {name: " or ".join([*sorted(which), *unknown]) for name, which in found.items()}


def ages(record: dict, now: str) -> list[str]:
    """A line for each grader: how many attacks were tried on it, when, and, of ours, how many before it changed.

    now : the `digest` of our grader
    """
    said = []
    for grader in GRADERS:
        attacks = {name: entry for name, entry in record["attacks"].items() if grader == "ours" or "on" not in entry}
        tried = [entry["tried"][grader] for entry in attacks.values() if grader in entry]
        line = f"{grader}: {len(tried)} of {len(attacks)} attacks" + (f", on {days(attacks, grader)}" if tried else "")
        if grader == "ours" and (older := sum(entry.get("digest") != now for entry in tried)):
            line += f"; {older} of them on another state of course_lib/grading: --graders ours --anew tries all"
        said.append(line)
    return said


def read_record() -> dict:
    """The record, without attacks that have changed or gone since."""
    record = {"graders": {}, "attacks": {}}
    if RECORD.is_file():
        record = json.loads(RECORD.read_text(encoding="utf-8"))
    fresh = {}
    for name, text in ATTACKS.items():
        said = {"class": said_of(text)["class"], "tries": tries(text), "fingerprint": fingerprint(text)}
        if assignment_of(text) != FIRST:
            said["on"] = assignment_of(text)
        known = record["attacks"].get(name, {})
        kept = {key: known[key] for key in ("tried", *GRADERS) if key in known}
        fresh[name] = said | (kept if known.get("fingerprint") == said["fingerprint"] else {})
    return record | {"attacks": fresh}


def note(grader: str, name: str, outcomes: list[str], state: str) -> None:
    """Write one outcome into the record, which another process may be writing, too.

    state : the `digest` of our grader when this began; where it is another now, nobody knows which was tried
    """
    tried = {"date": datetime.date.today().isoformat(), "versions": about(grader)}
    if grader == "ours":
        tried["digest"] = state if state == digest() else None
    with FileLock(Path(tempfile.gettempdir(), "attack-table.lock")):
        record = read_record()
        record["attacks"][name].setdefault("tried", {})[grader] = tried
        record["attacks"][name][grader] = outcomes
        record["graders"][grader] = versions(record["attacks"], grader) | {"date": days(record["attacks"], grader)}
        with replacing(RECORD.parent) as scratch:
            text = json.dumps(record, indent=1, ensure_ascii=False)
            (scratch / RECORD.name).write_text(text + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Try what the record does not have."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.attack_table", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--graders", nargs="+", choices=GRADERS, default=GRADERS)
    parser.add_argument("--attacks", nargs="+", choices=ATTACKS, default=list(ATTACKS), metavar="NAME")
    parser.add_argument("--anew", action="store_true", help="also what the record has")
    parser.add_argument("--ages", action="store_true", help="say how old the record is, and try nothing")
    parser.add_argument(
        "--otter", type=Path, default=Path(tempfile.gettempdir()) / "otter-grader", metavar="FOLDER",
        help="an environment for otter-grader, apart from the course's; made where it is missing",
    )  # fmt: skip
    chosen = parser.parse_args(arguments)
    if chosen.ages:
        print(*ages(read_record(), digest()), sep="\n")
        return
    state = digest()
    with tempfile.TemporaryDirectory(prefix="attacks-", ignore_cleanup_errors=True) as folder:
        os.environ.setdefault("COURSE_TESTS_SHARED", folder)
        for grader in chosen.graders:
            known = {} if chosen.anew else read_record()["attacks"]
            names = [name for name in chosen.attacks if grader not in known.get(name, {}) and is_for(grader, name)]
            for name in [name for name in names if reason_not_to_apply(name, grader)]:
                note(grader, name, [NO_MATTER], state)
                names.remove(name)
            if not names:
                continue
            place = Path(folder, grader)
            place.mkdir()
            if grader == "ours":
                found = tried_on_ours(names, place)
            else:
                found = tried_on_another(OTHERS[grader](chosen.otter) if grader == "otter" else Stock(), names, place)
            begun = time.monotonic()
            for name, outcomes in found:
                note(grader, name, outcomes, state)
                print(f"{time.monotonic() - begun:6.0f} s  {grader}  {name}: {', '.join(outcomes)}", flush=True)


if __name__ == "__main__":
    main()
