"""How an assignment went, for who teaches it: marks/ASSIGNMENT.html to look at, two tables beside it to compute with.

ASSIGNMENT.csv has the questions, ASSIGNMENT-causes.csv what was said of students, and how long it took.
"""

import csv
import io
import re
import statistics
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from course_lib._extras import needed
from course_lib.files import replacing
from course_lib.grading.marking.record import Entry
from course_lib.grading.marking.report import for_spreadsheet
from course_lib.grading.marking.standing import names_of_cells

with needed("lab"):
    from jinja2 import Environment, StrictUndefined
    from nbgrader.api import Gradebook

SHARES = ("none", "under half", "half or more", "all")  # of the points of a question
SAID = {  # what is said of students, by the word for it in the table: a title, and what to know of it
    "attention": ("Why a person must look", ""),
    "changed": (
        "Changed tests and names",
        "Tests, points and cells are the released ones again, so that no mark is other for a change. Work that another "
        "account handed in has the marks it earned. Each may be an accident; look at the work before you ask.",
    ),
    "repaired": ("What was repaired, or left behind", ""),
}
PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")  # of one student: names of files, numbers of cells
TEMPLATE = Path(__file__).with_name("overview.html.jinja")


class Question(NamedTuple):
    """A cell that carries points: how many students' work has which share of them, in the order of `SHARES`."""

    notebook: str
    name: str
    points: float
    mean: float | None  # of those that are marked; None where nobody is
    shares: tuple[int, int, int, int]
    waiting: int  # for a hand mark


def questions(gradebook: Gradebook, assignment: str, entries: Mapping[str, Entry]) -> list[Question]:
    """Every question of an assignment, as the notebooks have them, over the students whose work has marks."""
    found: dict[tuple[str, str], list] = defaultdict(list)
    most: dict[tuple[str, str], float] = {}
    names = names_of_cells(gradebook)
    for notebook in gradebook.find_assignment(assignment).notebooks:
        for cell in notebook.grade_cells:
            if cell.max_score:
                most[notebook.name, cell.name] = cell.max_score
    for submission in gradebook.assignment_submissions(assignment):
        if entries.get(submission.student_id, Entry()).marked:
            for notebook in submission.notebooks:
                for grade in notebook.grades:
                    mark = None if grade.needs_manual_grade else grade.score
                    found[notebook.name, names.get(grade.cell_id)].append(mark)
    made = []
    for (notebook, name), points in most.items():
        marks = [mark for mark in found[notebook, name] if mark is not None]
        shares = [sum(_share(mark, points) == number for mark in marks) for number in range(len(SHARES))]
        mean = round(statistics.fmean(marks), 2) if marks else None
        made.append(Question(notebook, name, points, mean, tuple(shares), len(found[notebook, name]) - len(marks)))
    return made


def causes(said: Mapping[str, list[str]]) -> list[tuple[str, list[str]]]:
    """What was said of students, the commonest first, with those of whom; quoted names and numbers do not count.

    Where these differ among the students, "…" stands for them.
    """
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for student, texts in sorted(said.items()):
        for text in texts:
            found[PARTICULAR.sub("…", text)].setdefault(student, text)
    by_number = sorted(found.values(), key=lambda whose: (-len(whose), min(whose.values())))
    return [(_in_common(list(whose.values())), list(whose)) for whose in by_number]


def said_of(entries: Mapping[str, Entry]) -> dict[str, list[tuple[str, list[str]]]]:
    """The causes of each kind in `SAID`."""
    texts = {
        "attention": {student: entry.troubles for student, entry in entries.items()},
        "changed": {student: entry.changed for student, entry in entries.items()},
        "repaired": {
            student: [note for note in entry.notes if note not in entry.changed] for student, entry in entries.items()
        },
    }
    return {kind: causes(texts[kind]) for kind in SAID}


def write_overview(gradebook: Gradebook, assignment: str, entries: Mapping[str, Entry], folder: Path) -> None:
    """Write the page and both tables into the folder, each whole or not at all."""
    asked = questions(gradebook, assignment, entries)
    rows = [["notebook", "question", "points", "mean", *SHARES, "waiting"]]
    rows += [[each.notebook, each.name, each.points, each.mean, *each.shares, each.waiting] for each in asked]
    with replacing(folder) as scratch:
        (scratch / f"{assignment}.csv").write_text(_table(rows), encoding="utf-8")
        (scratch / f"{assignment}-causes.csv").write_text(_table(rows_of_causes(entries)), encoding="utf-8")
        (scratch / f"{assignment}.html").write_text(page(assignment, asked, entries), encoding="utf-8")


def rows_of_causes(entries: Mapping[str, Entry]) -> list[list]:
    """A row for each cause, and for each time: its kind, what it is, of how many, and of which students."""
    rows = [["kind", "what", "how many", "students"]]
    for kind, found in said_of(entries).items():
        rows += [[kind, what, len(students), ", ".join(students)] for what, students in found]
    seconds = _seconds(entries)
    if seconds:
        rows.append(["time", "seconds that half of the works took at most", statistics.median(seconds.values()), ""])
    slowest = sorted(seconds, key=seconds.__getitem__, reverse=True)
    return rows + [["time", "seconds", seconds[student], student] for student in slowest]


def page(assignment: str, asked: list[Question], entries: Mapping[str, Entry]) -> str:
    """The page, which needs nothing beside it. What students wrote is text in it, never markup."""
    seconds = _seconds(entries)
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(
        assignment=assignment,
        asked=asked,
        shares=SHARES,
        marked=sum(bool(entry.marked) for entry in entries.values()),
        attention=sum(entry.needs_attention for entry in entries.values()),
        said=[(*SAID[kind], found) for kind, found in said_of(entries).items()],
        seconds=seconds,
        half=statistics.median(seconds.values()) if seconds else None,
        slowest=max(seconds, key=seconds.__getitem__, default=None),
    )


def _in_common(texts: list[str]) -> str:
    return texts[0] if len(set(texts)) == 1 else PARTICULAR.sub("…", texts[0])


def _seconds(entries: Mapping[str, Entry]) -> dict[str, float]:
    return {student: entry.seconds for student, entry in entries.items() if entry.seconds}


def _table(rows: list[list]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([map(for_spreadsheet, row) for row in rows])
    return text.getvalue()


def _share(mark: float, points: float) -> int:
    return 0 if mark <= 0 else 3 if mark >= points else 1 + (2 * mark >= points)
