"""What a worker of a cluster answers: an archive of JSON and of the executed notebook, and what is looked at in it."""

import io
import json
import math
import zipfile
from datetime import datetime
from pathlib import PurePosixPath
from typing import NamedTuple

from course_lib.grading.marking.alone import Marks
from course_lib.grading.marking.apart import Unfinished
from course_lib.grading.marking.files import LARGEST, MOST
from course_lib.grading.marking.standing import COMMENT, GRADE

MARKS, EXECUTED = "marks.json", "executed"  # in the archive: a file, and the folder of all others
ROOM, FILES = 2 * LARGEST, 2 * MOST  # what was handed in, and what comes with it
LONGEST_COMMENT = 10_000


class Asked(NamedTuple):
    """What a notebook asks."""

    points: dict[str, float]  # the most of every question
    by_hand: set[str]  # questions that only a person marks
    commented: set[str]  # cells that have a comment


def answer(stands: dict, why: str, files: dict[str, bytes] | None = None) -> bytes:
    """The answer that has these marks, the reason why there are no others, and these files by their paths."""
    files = {f"{EXECUTED}/{path}": content for path, content in (files or {}).items()}
    return archive_of({MARKS: json.dumps({"stands": stands, "why": why}).encode(), **files})


def archive_of(files: dict[str, bytes]) -> bytes:
    """An archive with these files."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return written.getvalue()


def checked(
    archive: bytes, stood: dict, asked: dict[str, Asked], handed_in: datetime | None
) -> tuple[Marks, dict[PurePosixPath, bytes]]:
    """Marks, and the files of the executed notebook, of a worker's answer.

    stood : what the work before has, whose hand marks and comments no worker may change
    asked : what each notebook of the assignment asks
    handed_in : the time of the work that was sent, where that is known

    Raises
    ------
    Unfinished : it is not what `grade_parcel` returns; says where.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            members = opened.infolist()
            if sum(member.file_size for member in members) > ROOM or len(members) > FILES:
                raise ValueError(f"it has more than {FILES} files, or than {ROOM >> 20} MiB")
            files = {member.filename: opened.read(member) for member in members}
        said = json.loads(files.pop(MARKS))
        marks = Marks(said["stands"], said["why"])
        _check(isinstance(marks.why, str), "the reason")
        _check(bool(marks.stands) == marks.are_there, "that there are marks and a reason why not, or neither,")
        if marks.are_there:
            _check_standing(marks.stands, stood, asked, handed_in)
        return marks._replace(why=marks.why[:1000]), {_inside(name): content for name, content in files.items()}
    except Exception as error:
        raise Unfinished(f"the worker's answer cannot be used: {short(error)}") from None


def short(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def _check_standing(stands: dict, stood: dict, asked: dict[str, Asked], handed_in: datetime | None) -> None:
    """ValueError where it is not what `standing` says of a work that was graded."""
    _check(set(stands) == {"timestamp", "extension", "notebooks"}, "the parts of a submission")
    # nbgrader keeps that of the work before where this one has none
    time = stood.get("timestamp") if handed_in is None else handed_in.isoformat(timespec="seconds")
    _check(stands["timestamp"] == time, "the time")
    _check(stands["extension"] == stood.get("extension"), "the extension")
    _check(set(stands["notebooks"]) == set(asked), "the notebooks")
    for name, notebook in stands["notebooks"].items():
        _check(set(notebook) == {"penalty", "grades", "comments"}, "the parts of a notebook")
        penalty = notebook["penalty"]
        _check(penalty is None or (_is_number(penalty) and penalty >= 0), "the penalty")
        before = stood.get("notebooks", {}).get(name, {"grades": {}, "comments": {}})
        _check_grades(notebook["grades"], before["grades"], asked[name])
        _check_comments(notebook["comments"], before["comments"], asked[name])


def _check_grades(grades: dict, before: dict, asked: Asked) -> None:
    _check(set(grades) == set(asked.points), "the questions")
    for question, grade in grades.items():
        _check(set(grade) == set(GRADE), f"the grade of {question}")
        mark = grade["auto_score"]
        within = question in asked.by_hand if mark is None else _is_number(mark) and 0 <= mark <= asked.points[question]
        _check(within, f"the points of {question}")
        _check(isinstance(grade["needs_manual_grade"], bool), f"the grade of {question}")
        for by_hand in ("manual_score", "extra_credit"):
            _check(grade[by_hand] == before.get(question, {}).get(by_hand), f"the hand mark of {question}")


def _check_comments(comments: dict, before: dict, asked: Asked) -> None:
    _check(set(comments) <= asked.commented, "the cells with a comment")
    for cell, comment in comments.items():
        _check(set(comment) == set(COMMENT), f"the comment on {cell}")
        text = comment["auto_comment"]
        _check(text is None or (isinstance(text, str) and len(text) <= LONGEST_COMMENT), f"the comment on {cell}")
        same = comment["manual_comment"] == before.get(cell, {}).get("manual_comment")
        _check(same, f"the hand comment on {cell}")


def _check(holds: bool, of_what: str) -> None:
    if not holds:
        raise ValueError(f"{of_what} cannot be right")


def _is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _inside(name: str) -> PurePosixPath:
    """The path of an executed file in its folder; ValueError where it leads elsewhere."""
    path = PurePosixPath(name)
    if path.parts[:1] != (EXECUTED,) or len(path.parts) < 2 or ".." in path.parts or set(name) & set("\\:\0"):
        raise ValueError(f"the file {name[:80]!r} has no place")
    return path.relative_to(EXECUTED)
