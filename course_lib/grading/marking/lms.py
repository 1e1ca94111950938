"""Moodle's and Canvas's own tables, filled in: export one there, give it to `fill`, and import what comes back.

A table from the system itself has its numbers, its language and its columns, which no table made here would. Moodle: in
the assignment, *Download grading worksheet* (the import needs Identifier, Grade and Last modified (grade)). Canvas: in
the gradebook, *Export* (Student, ID, SIS User ID, SIS Login ID, Section, then `Name (number)` for each assignment).
"""

import csv
import io
import re
from collections.abc import Mapping
from pathlib import Path

from course_lib.grading.marking.files import table_text

SYSTEMS = {"moodle": ("Identifier", "Grade"), "canvas": ("ID", None)}


def student_of(number: str, students: Mapping[str, str]) -> str | None:
    """Whose number of the learning system this is; one that nobody has is an id of its own.

    `students` is the system's number of a student -> the id here. None for a number that nobody has, but that is the id
    of a student who has another number: the two are not the same person.
    """
    return students.get(number) or (None if number in students.values() else number)


def fill(
    table: Path,
    system: str,
    assignment: str,
    marks: Mapping[str, float | None],
    most: float,
    students: Mapping[str, str],
) -> tuple[str, int, list[str]]:
    """The text of the table with the marks in it.

    Parameters
    ----------
    table : the file that the system exported
    system : "moodle" or "canvas"
    assignment : its name; in Canvas the column of this name, with or without a number behind it
    marks : by student id; None where there is no final mark, which leaves the cell as it was
    most : the assignment's points
    students : the system's number of a student -> the id here; others go by their number, or by the login in Canvas

    Returns
    -------
    The text, how many cells were filled, and the students with a final mark whom the table lacks.

    Raises
    ------
    ValueError : a column is missing, or the system counts to another number of points.
    """
    text = table_text(table)
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    lines = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    identity, column = SYSTEMS[system]
    header = [cell.strip() for cell in lines[0]] if lines else []
    column = column or _column(header, assignment)
    for name in (identity, column):
        if name not in header:
            raise ValueError(
                f"{table} has no column {name!r}; its columns are {', '.join(header)[:200]}. Export it in English"
            )
    who, where = header.index(identity), header.index(column)
    login = header.index("SIS Login ID") if "SIS Login ID" in header else who
    _check_points(table, lines, header, where, most)
    filled, seen = 0, set()
    for line in lines[1:]:
        if len(line) <= max(who, where, login) or "Points Possible" in line[0]:
            continue
        number = re.search(r"(\d+)\s*$", line[who])  # Moodle writes "Participant 12345", in its language
        student = student_of(number[1], students) if number else None
        if student not in marks and not (number and number[1] in students):
            student = line[login].strip()
            student = None if number and student in students.values() else student  # another row's, by its number
        if marks.get(student) is not None:
            line[where] = f"{marks[student]:g}"
            filled += 1
            seen.add(student)
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(lines)
    return out.getvalue(), filled, sorted(s for s, mark in marks.items() if mark is not None and s not in seen)


def _column(header: list[str], assignment: str) -> str:
    plain = [re.sub(r" \(\d+\)$", "", name).casefold() for name in header]
    alike = [name for name, words in zip(header, plain, strict=True) if _same(words, assignment)]
    if len(alike) != 1:
        raise ValueError(f"{len(alike)} columns are called {assignment!r}: {', '.join(header)[:200]}")
    return alike[0]


def _same(words: str, assignment: str) -> bool:
    return re.sub(r"\W+", " ", words).strip() == re.sub(r"\W+", " ", assignment.casefold()).strip()


def _check_points(table: Path, lines, header: list[str], where: int, most: float) -> None:
    if "Maximum Grade" in header:
        found = {line[header.index("Maximum Grade")] for line in lines[1:] if len(line) == len(header)}
    else:
        found = {line[where] for line in lines[1:] if len(line) > where and "Points Possible" in line[0]}
    for text in found:
        number = re.fullmatch(r"\s*(\d+)(?:[.,](\d+))?\s*", text)
        if number and abs(float(f"{number[1]}.{number[2] or 0}") - most) > 1e-6:
            raise ValueError(f"{table} counts to {text.strip()} points, the assignment to {most:g}: set it there first")
