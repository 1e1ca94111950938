"""A student's folder as it came, and beside it the folder that nbgrader grades: the original is never touched."""

import hashlib
import shutil
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from course_lib._extras import needed
from course_lib.grading.marking.cells import Release, known_in, rebuilt
from course_lib.grading.marking.files import DATA, Found, handed_in, plain_stem
from course_lib.grading.marking.reading import Unreadable, read_notebook

with needed("lab"):
    import nbformat
    from nbformat import NotebookNode
    from nbgrader.utils import parse_utc


class Normalised(NamedTuple):
    """What `normalise` made of a folder."""

    notebooks: dict[str, NotebookNode]  # by the name that was released
    data: dict[PurePosixPath, bytes]
    time: datetime | None  # when it was handed in, in UTC; None where nobody knows
    notes: list[str]  # what was repaired or left behind
    work: str  # a digest of the files as they came
    missing: list[str]  # notebooks of the assignment that are not there


class _Candidate(NamedTuple):
    file: Found
    notebook: NotebookNode
    notes: list[str]


def normalise(folder: Path, releases: dict[str, Release], helpers: Iterable[str] = ()) -> Normalised:
    """Find, read and rebuild the notebooks of one student's folder.

    Parameters
    ----------
    folder : submitted/STUDENT/ASSIGNMENT, or any other; nothing in it changes
    releases : every notebook of the assignment, by its name
    helpers : paths of files that the assignment itself brings, which may go along whatever they are

    Raises
    ------
    Unreadable : there is no notebook of this assignment; the message says why, and what there is instead.
    """
    files, notes = handed_in(folder)
    candidates, failures = _candidates(files)
    taken: dict[str, _Candidate] = {}
    for name, release in releases.items():
        others = {plain_stem(other) for other in releases} - {plain_stem(name)}
        free = [c for c in candidates if c not in taken.values() and plain_stem(c.file.path.name) not in others]
        ranked = sorted(free, key=lambda c: _rank(c, name, release))
        if ranked and known_in(ranked[-1].notebook, release)[1]:
            taken[name] = ranked[-1]
    if not taken:
        raise Unreadable(_why_none(files, candidates, failures, notes))

    made = {}
    for name, candidate in taken.items():
        if candidate.file.path.name != f"{name}.ipynb":
            notes.append(f"the notebook was called {candidate.file.path.name[:80]!r}")
        made[name], repairs = rebuilt(candidate.notebook, releases[name])
        nbformat.validate(made[name])
        notes += [*candidate.notes, *repairs]
    for candidate in candidates:
        if candidate not in taken.values():
            notes.append(f"{str(candidate.file.path)[:80]!r} was not graded: it has fewer answers, or is the older one")
    notes += [f"{path}: {why}" for path, why in failures.items()]

    data = _data(files, {c.file.path for c in candidates}, next(iter(taken.values())).file.path.parent, helpers, notes)
    time = handed_in_at(folder, notes)
    missing = [name for name in releases if name not in taken]
    return Normalised(made, data, time, notes, _digest(files), missing)


def write(normalised: Normalised, folder: Path) -> None:
    """Write what nbgrader grades; what stood in `folder` goes."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    for path, content in normalised.data.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    for name, notebook in normalised.notebooks.items():
        (folder / f"{name}.ipynb").write_text(nbformat.writes(notebook, version=4), encoding="utf-8")
    if normalised.time:
        (folder / "timestamp.txt").write_text(f"{normalised.time:%Y-%m-%d %H:%M:%S} UTC\n", encoding="utf-8")


def handed_in_at(folder: Path, notes: list[str]) -> datetime | None:
    """What timestamp.txt says, in UTC without a zone as nbgrader keeps it; None, and a note, where it says nothing."""
    file = folder / "timestamp.txt"
    if not file.is_file() or file.is_symlink():
        return None
    try:
        text = file.read_bytes()[:100].decode("utf-8-sig").strip()
        time = parse_utc(text) if text else None
        if time is not None and abs(time.year - datetime.now().year) < 50:
            return time
    except (ValueError, OverflowError, UnicodeDecodeError, TypeError):
        pass
    notes.append("its time stamp cannot be read, so nobody knows whether it is late")
    return None


def _candidates(files: list[Found]) -> tuple[list[_Candidate], dict[PurePosixPath, Unreadable]]:
    """Notebooks by name; where there is none, whatever can be read as one."""
    named = [file for file in files if file.is_notebook]
    found, failures = [], {}
    for file in named or files:
        try:
            found.append(_Candidate(file, *read_notebook(file.content)))
        except Unreadable as why:
            if file.is_notebook:
                failures[file.path] = why
    return found, failures


def _rank(candidate: _Candidate, name: str, release: Release) -> tuple:
    answers, known = known_in(candidate.notebook, release)
    path = candidate.file.path
    exact, alike = path.name == f"{name}.ipynb", plain_stem(path.name) == plain_stem(name)
    return (answers, known, exact, alike, -len(path.parts), candidate.file.time, str(path))


def _why_none(files, candidates, failures, notes) -> str:
    if failures:
        path, why = next(iter(failures.items()))
        return f"{path}: {why}"
    if candidates:
        return f"{candidates[0].file.path} is another notebook: none of its cells is one of this assignment's"
    if files:
        return f"there is no notebook, but {', '.join(str(file.path)[:60] for file in files[:3])}"
    return "there is no file" + (f" that can be read: {notes[0]}" if notes else "")


def _data(files, notebooks, beside: PurePosixPath, helpers, notes: list[str]) -> dict[PurePosixPath, bytes]:
    """The files that go along, as they lie beside the notebook. No module does: it would stand before the library's."""
    data, left = {}, []
    for file in files:
        path = file.path.relative_to(beside) if file.path.is_relative_to(beside) else file.path
        if file.path in notebooks or file.is_notebook:
            continue
        if path.suffix.lower() in DATA or str(path) in helpers:
            data[path] = file.content
        else:
            left.append(str(path)[:60])
    if left:
        notes.append(f"left behind, as no data: {', '.join(left[:5])}{' and more' if len(left) > 5 else ''}")
    return data


def _digest(files: list[Found]) -> str:
    parts = (f"{file.path}\0{hashlib.sha256(file.content).hexdigest()}\n" for file in files)
    return hashlib.sha256("".join(sorted(parts)).encode("utf-8", errors="replace")).hexdigest()
