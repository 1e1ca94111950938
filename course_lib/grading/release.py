"""Proof that what students get holds no solution and no hidden test.

`make release ASSIGNMENT=NAME` makes the students' version and runs `python -m course_lib.grading.release NAME`: every
line that nbgrader took out of a source notebook is looked for in every file of the release, in the texts of notebooks,
the members of archives, and the bytes of all else. What is found is named, and the release removed.

Some lines stand on both sides with right, such as `import numpy as np`. `generic_lines.txt` in the course's folder
names them, one a line; all others are secret. A line that starts with `#` is a comment.
"""

import argparse
import contextlib
import io
import json
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from course_lib._extras import needed

with needed("lab"):
    import nbformat

GENERIC = "generic_lines.txt"


class Leak(NamedTuple):
    """A secret line in a released file."""

    line: str
    cell: str  # the source's cell that it comes from
    file: str

    def __str__(self) -> str:
        return f"{self.file}: {self.line!r} of {self.cell}"


def secrets_of(source, released) -> dict[str, str]:
    """The lines of a source notebook that its release lacks in the same cell, with the name of that cell.

    A cell is known by its grade_id; what has none is public, and a cell that the release lacks is secret as a whole.
    """
    shown = {_name(cell): _lines(cell.source) for cell in released.cells}
    found: dict[str, str] = {}
    for cell in source.cells:
        name = _name(cell)
        if name is not None:
            for line in _lines(cell.source) - shown.get(name, set()):
                found[line] = name
    return found


def leaks_in(folder: Path, secrets: dict[str, str]) -> list[Leak]:
    """The secrets that stand in a file of a folder, wherever in a line, or in the name of one."""
    found = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        file = str(path.relative_to(folder))
        text = "\n".join([file, *_texts(path.name, path.read_bytes())])
        found += [Leak(line, cell, file) for line, cell in secrets.items() if line in text]
    return found


def generic_lines(course: Path) -> set[str]:
    """The lines that may stand in a release though the source has them in a solution or a hidden test, too."""
    path = course / GENERIC
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def prove(course: Path, assignment: str) -> int:
    """How many secret lines were looked for, and not found in the release.

    Raises
    ------
    ValueError : there is no release, a notebook of the source is missing in it, a source has nothing to hide, or a
        secret was found: then the release is removed.
    """
    source, release = course / "source" / assignment, course / "release" / assignment
    notebooks = sorted(source.glob("*.ipynb"))
    if not notebooks:
        raise ValueError(f"there is no notebook in {source}")
    secrets: dict[str, str] = {}
    for path in notebooks:
        if not (release / path.name).exists():
            raise ValueError(f"{release / path.name} is missing: run nbgrader generate_assignment {assignment}")
        pair = (nbformat.read(folder / path.name, as_version=4) for folder in (source, release))
        secrets |= secrets_of(*pair)
    if not secrets:
        raise ValueError(f"{source} holds no solution and no hidden test: is it marked ### BEGIN SOLUTION ?")
    secrets = {line: cell for line, cell in secrets.items() if line not in generic_lines(course)}
    leaks = leaks_in(release, secrets)
    if leaks:
        shutil.rmtree(release)
        raise ValueError(
            f"{len(leaks)} lines of solutions or hidden tests stand in {release}, which was removed:\n"
            + "\n".join(f"  {leak}" for leak in leaks[:20])
            + ("\n  ..." if len(leaks) > 20 else "")
            + f"\nTake them out of the source's public cells and files, or name them in {course / GENERIC}."
        )
    return len(secrets)


def main(arguments: list[str] | None = None) -> int:
    """Prove, say so, and return 0; 1 where a secret was found or there is nothing to prove."""
    parser = argparse.ArgumentParser(prog="python -m course_lib.grading.release", description=__doc__.split("\n\n")[0])
    parser.add_argument("assignment")
    parser.add_argument("--course", type=Path, default=Path(), help="the folder of the nbgrader course; this one")
    chosen = parser.parse_args(arguments)
    try:
        count = prove(chosen.course, chosen.assignment)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    folder = chosen.course / "release" / chosen.assignment
    print(f"None of the {count} lines of solutions and hidden tests is in {folder}, which may be handed out.")
    return 0


def _texts(name: str, data: bytes) -> Iterator[str]:
    """What can be read in a file: its bytes, each text of JSON, the members of an archive."""
    yield data.decode("utf-8", errors="replace")
    yield from (data.decode(encoding, errors="replace") for encoding in ("utf-16-le", "utf-16-be") if b"\0" in data)
    with contextlib.suppress(ValueError):  # no JSON: a text or numbers, and its bytes are above
        yield from _strings(json.loads(data))
    if zipfile.is_zipfile(io.BytesIO(data)):  # .npz, too
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.namelist():
                yield member
                yield from _texts(member, archive.read(member))


def _strings(value) -> Iterator[str]:
    """All texts of a JSON value; a list of lines, as notebooks keep their cells, as one text too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _strings(inner)
    elif isinstance(value, list):
        yield "".join(inner for inner in value if isinstance(inner, str))
        for inner in value:
            yield from _strings(inner)


def _name(cell) -> str | None:
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def _lines(source: str) -> set[str]:
    return {line.strip() for line in source.splitlines() if line.strip()}


if __name__ == "__main__":
    sys.exit(main())
