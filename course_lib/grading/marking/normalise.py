"""A student's folder as it came, and beside it the folder that nbgrader grades: the original is never touched."""

import errno
import hashlib
import shutil
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from course_lib._extras import needed
from course_lib.grading.marking.cells import belongs, imported, known_in, rebuilt, unwritten
from course_lib.grading.marking.files import (
    DATA,
    PARTS,
    SECRET,
    TOO_MANY,
    UNOPENED,
    WRITTEN,
    Found,
    handed_in,
    handed_in_at,
    plain_stem,
)
from course_lib.grading.marking.programs import is_program, modules_in
from course_lib.grading.marking.reading import Unreadable, read_notebook
from course_lib.grading.marking.released import Release

with needed("lab"):
    import nbformat
    from nbformat import NotebookNode

NORMALISING_S = 60
NAMES = {  # errors of a disk that are a name's: too long, of letters that it has not, in a file, or a folder's
    errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST,
}  # fmt: skip


class Normalised(NamedTuple):
    """What `normalise` made of a folder."""

    notebooks: dict[str, NotebookNode]  # by the name that was released
    data: dict[PurePosixPath, bytes]
    time: datetime | None  # when it was handed in, in UTC; None where nobody knows
    notes: list[str]  # what was repaired or left behind
    work: str  # a digest of the files as they came
    missing: list[str]  # notebooks of the assignment that are not there
    doubts: list[str]  # what a person has to decide


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
    files, notes, doubts = handed_in(folder, helpers)
    candidates, failures = _candidates(files)
    taken: dict[str, _Candidate] = {}
    for name, release in releases.items():
        others = {plain_stem(other) for other in releases} - {plain_stem(name)}
        free = [c for c in candidates if c not in taken.values() and plain_stem(c.file.path.name) not in others]
        own = [c for c in free if belongs(c.notebook, release)]
        if own:
            *rest, taken[name] = sorted(own, key=lambda c: _rank(c, name, release))
            doubts += _doubts(taken[name], rest, release)
    if not taken:
        lost = [note for note in notes if note == TOO_MANY or UNOPENED in note]  # it may be there
        others = [note for note in notes if note not in lost]
        why = _why_none(files, candidates, failures, others, releases.values())
        raise Unreadable("; ".join([why, *lost]))

    beside = next(iter(taken.values())).file.path.parent
    others = _others(files, {c.file.path for c in candidates}, beside, notes)
    written = [str(p) for p in others if p.suffix.lower() in WRITTEN and p.name != SECRET and str(p) not in helpers]
    made = {}
    for name, candidate in taken.items():
        doubts += _left_out(candidate, releases[name], {p: file for p, file in others.items() if str(p) not in helpers})
        if candidate.file.path.name != f"{name}.ipynb":
            notes.append(f"the notebook was called {candidate.file.path.name[:80]!r}")
        made[name], repairs = rebuilt(candidate.notebook, releases[name], written)
        if unwritten(made[name], releases[name]):
            doubts.append(f"nothing was written in it: is {str(candidate.file.path)[:80]!r} the right file?")
        nbformat.validate(made[name])
        notes += [*candidate.notes, *repairs]
    for candidate in candidates:
        if candidate not in taken.values():
            notes.append(f"{str(candidate.file.path)[:80]!r} was not graded: it has fewer answers, or is the older one")
    notes += [f"{path}: {why}" for path, why in failures.items()]

    data = _data(others, helpers, releases, notes)
    time = handed_in_at(folder, notes)
    missing = [name for name in releases if name not in taken]
    return Normalised(made, data, time, notes, _digest(files), missing, doubts)


def write(normalised: Normalised, folder: Path) -> list[str]:
    """Write what nbgrader grades; what stood in `folder` goes. A file whose name cannot be written is a doubt.

    Raises
    ------
    OSError : the disk takes nothing more, whatever it is called.
    """
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    for name, notebook in normalised.notebooks.items():
        (folder / f"{name}.ipynb").write_text(nbformat.writes(notebook, version=4), encoding="utf-8")
    doubts = []
    for path, content in normalised.data.items():
        try:
            if len(path.parts) > PARTS:
                raise OSError(errno.ENAMETOOLONG, f"it lies in more than {PARTS - 1} folders")
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        except OSError as error:
            if error.errno not in NAMES:
                raise
            doubts.append(
                f"{str(path)[:80]!r} was left behind, as its name cannot be written here ({error.strerror}): if the "
                "notebook reads it, give it another name in both; if not, let the marks stand"
            )
    if normalised.time:
        (folder / "timestamp.txt").write_text(f"{normalised.time:%Y-%m-%d %H:%M:%S} UTC\n", encoding="utf-8")
    return doubts


def normalise_into(folder: Path, releases: dict[str, Release], helpers: Iterable[str], target: Path) -> Normalised:
    """Normalise and write, in another process: what comes back is without the notebooks and files."""
    found = normalise(folder, releases, helpers)
    return found._replace(notebooks={}, data={}, doubts=[*found.doubts, *write(found, target)])


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


def _doubts(taken: _Candidate, rest: list[_Candidate], release: Release) -> list[str]:
    """Other notebooks with as many answers, but not the same: no name and no time tells which was meant."""
    answers = known_in(taken.notebook, release)[0]
    code = _sources(taken)
    return [
        f"{str(each.file.path)[:80]!r} and {str(taken.file.path)[:80]!r} have as many answers, and different ones: the "
        "second was graded; remove the one that was not meant"
        for each in rest
        if answers and known_in(each.notebook, release)[0] == answers and _sources(each) != code
    ]


def _sources(candidate: _Candidate) -> list[str]:
    return [cell.source.strip() for cell in candidate.notebook.cells if cell.source.strip()]


def _why_none(files, candidates, failures, notes, releases) -> str:
    if failures:
        path, why = next(iter(failures.items()))
        return f"{path}: {why}"
    if candidates:
        found = [(known_in(c.notebook, release)[1], len(release.cells)) for c in candidates for release in releases]
        known, most = max(found)
        return (
            f"{candidates[0].file.path} is another notebook: {known} of the {most} cells of this assignment are in it. "
            "If it is the right one, put its answers into the released notebook"
        )
    others = [str(file.path)[:60] for file in files if file.path.name != SECRET]
    if others:
        return f"there is no notebook, but {', '.join(others[:3])}"
    return "there is no file" + (f" that can be read: {notes[0]}" if notes else "")


def _left_out(taken: _Candidate, release: Release, others: dict[PurePosixPath, bytes]) -> list[str]:
    """The modules of the student's own that the notebook needs and does not have."""
    modules = {other: {PurePosixPath(other.parts[0]).stem} for other in others if other.suffix == ".py"}
    modules |= {other: modules_in(file) or set() for other, file in others.items() if is_program(file)}
    if not modules:
        return []
    path = str(taken.file.path)[:80]
    needed = imported(cell.source for cell in taken.notebook.cells if cell.cell_type == "code")
    needed -= imported([*(cell.source for cell in release.cells), *release.texts])  # the course's, and the libraries'
    return [
        f"{path!r} imports {str(other)[:80]!r}, which was left behind: put its code into the notebook"
        for other, inside in modules.items()
        if inside & needed
    ]


def _others(files, notebooks, beside: PurePosixPath, notes: list[str]) -> dict[PurePosixPath, bytes]:
    """The other files, by their paths from the notebook's folder; what lies there comes before what lies above."""
    found: dict[PurePosixPath, bytes] = {}
    for file in sorted(files, key=lambda file: not file.path.is_relative_to(beside)):
        if file.path in notebooks or file.is_notebook:
            continue
        path = file.path.relative_to(beside) if file.path.is_relative_to(beside) else file.path
        if found.setdefault(path, file.content) != file.content:
            notes.append(f"{str(path)[:80]!r} was handed in twice: the one beside the notebook was taken")
    return found


def _data(others: dict[PurePosixPath, bytes], helpers, notebooks, notes: list[str]) -> dict[PurePosixPath, bytes]:
    """The files that go along. No module does: it would stand before the library's.

    Nor does what would make a folder where a file of the assignment belongs, or a file where a folder of it does.
    """
    data = {path: file for path, file in others.items() if path.suffix.lower() in DATA or str(path) in helpers}
    programs = [path for path, file in data.items() if str(path) not in helpers and is_program(file)]
    places = {PurePosixPath(path) for path in (*helpers, *(f"{name}.ipynb" for name in notebooks))}
    folders = {folder for path in places for folder in path.parents}
    in_the_way = [path for path in data if path in folders or places.intersection(path.parents)]
    left = {
        "as no data": [path for path in others if path not in data],
        "as Python could import from it": programs,
        "as a file of the assignment would have no place": in_the_way,
    }
    for why, paths in left.items():
        if paths:
            shown = ", ".join(str(path)[:60] for path in paths[:5])
            notes.append(f"left behind, {why}: {shown}{' and more' if len(paths) > 5 else ''}")
    return {path: file for path, file in data.items() if path not in programs and path not in in_the_way}


def _digest(files: list[Found]) -> str:
    """Of the work: pressing Submit once more with the same notebook changes the secret alone."""
    parts = (f"{file.path}\0{hashlib.sha256(file.content).hexdigest()}\n" for file in files if file.path.name != SECRET)
    return hashlib.sha256("".join(sorted(parts)).encode("utf-8", errors="replace")).hexdigest()
