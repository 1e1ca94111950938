"""The roster, due dates, extensions and late days: two tables beside the assignments, written into the gradebook.

`roster.csv` has the columns student_id, first_name, last_name, email, lms_id (all but the first may be missing).
`dates.csv` has assignment, due, student_id: a row without a student is the due date, one with a student the extension.
"""

import csv
import io
import math
from datetime import datetime
from pathlib import Path

from course_lib._extras import needed
from course_lib.grading.marking.files import safe_name, table_text
from course_lib.grading.marking.moments import moment

with needed("lab"):
    from nbgrader.api import Gradebook
    from traitlets import Float, Integer
    from traitlets.config import LoggingConfigurable


class LateDays(LoggingConfigurable):
    """What a day after the due date costs. A day that has begun counts."""

    free = Integer(0, help="Days that a student may be late without a loss, over all assignments.").tag(config=True)
    share = Float(0.0, help="Share of an assignment's points that each further day costs.").tag(config=True)

    def apply(self, gradebook: Gradebook) -> dict[tuple[str, str], str]:
        """Write the penalties of all submissions into the gradebook; what to say, by assignment and student.

        Free days go to the assignments in the order in which they were due. No penalty is larger than the score.
        Where a day costs nothing, what another plugin of nbgrader's wrote stays.
        """
        said = {}
        assignments = [assignment for assignment in gradebook.assignments if assignment.duedate]
        left = {student.id: self.free for student in gradebook.students}
        for assignment in sorted(assignments, key=lambda assignment: assignment.duedate):
            for submission in assignment.submissions:
                days = math.ceil(submission.total_seconds_late / 86_400)
                used = min(days, left[submission.student_id])
                left[submission.student_id] -= used
                if days:
                    free = f", {used} of them free" if self.free else ""
                    said[assignment.name, submission.student_id] = f"{days} day{'s' * (days > 1)} late{free}"
                if self.share:
                    _charge(submission, self.share * submission.max_score * (days - used))
        gradebook.db.commit()
        return said


def _charge(submission, penalty: float) -> None:
    for notebook in submission.notebooks:
        notebook.late_submission_penalty = min(penalty, notebook.score) or None
        penalty -= notebook.late_submission_penalty or 0


def read_roster(path: Path) -> dict[str, dict[str, str]]:
    """The students of roster.csv by id; none where there is no file.

    Raises
    ------
    ValueError : a column or an id is missing, twice there, or no name for a folder; a number could be two students'.
    """
    roster: dict[str, dict[str, str]] = {}
    numbers: dict[str, str] = {}
    for line, row in rows(path, "student_id"):
        student, number = row["student_id"], row.get("lms_id")
        if safe_name(student) != student or student in roster:
            raise ValueError(f"{path}, line {line}: {student!r} is no student_id, or stands there twice")
        if number and number in numbers:
            raise ValueError(f"{path}, line {line}: {student} and {numbers[number]} have the same lms_id {number!r}")
        roster[student] = row
        numbers |= {number: student} if number else {}
    for student in roster:
        if numbers.get(student, student) != student and not roster[student].get("lms_id"):
            raise ValueError(
                f"{path}: {student!r} is a student_id, and the lms_id of {numbers[student]}: give {student} an lms_id, "
                "too, or nobody can tell whose work comes under this number"
            )
    return roster


def write_roster(gradebook: Gradebook, roster: dict[str, dict[str, str]]) -> None:
    """Make the students known to the gradebook, with names and the number that the learning system has for them."""
    for student, row in roster.items():
        names = {key: row[key] for key in ("first_name", "last_name", "email") if row.get(key)}
        gradebook.update_or_create_student(student, **names, lms_user_id=row.get("lms_id") or None)


def read_dates(path: Path, assignment: str) -> tuple[datetime | None, dict[str, datetime]]:
    """The due date of an assignment in dates.csv, None where it has none, and the ends of its extensions by student.

    Raises
    ------
    ValueError : a date cannot be read, or could be meant in two ways; an extension stands there without a due date,
        twice, or before it.
    """
    found = [(line, row) for line, row in rows(path, "assignment", "due") if row["assignment"] == assignment]
    due = [_date(path, line, row["due"]) for line, row in found if not row.get("student_id")]
    if not found:
        return None, {}
    if len(due) != 1:
        raise ValueError(f"{path}: {assignment} needs one row with a due date and no student; there are {len(due)}")
    extended: dict[str, datetime] = {}
    for line, row in found:
        student = row.get("student_id")
        if student:
            until = _date(path, line, row["due"])
            if student in extended or until < due[0]:
                raise ValueError(
                    f"{path}, line {line}: {student} has two extensions, or one that ends before it is due"
                )
            extended[student] = until
    return due[0], extended


def write_dates(gradebook: Gradebook, path: Path, assignment: str) -> list[str]:
    """Write the due date of an assignment and its extensions, of those who have handed in, into the gradebook.

    Returns those who have an extension and are no student: a name that is misspelt.

    Raises
    ------
    ValueError : as `read_dates`.
    """
    due, extended = read_dates(path, assignment)
    if due is None:
        return []
    gradebook.update_or_create_assignment(assignment, duedate=due)
    for submission in gradebook.assignment_submissions(assignment):
        until = extended.get(submission.student_id)
        submission.extension = until - due if until else None
    gradebook.db.commit()
    return sorted(set(extended) - {student.id for student in gradebook.students})


def rows(path: Path, *needed_columns: str) -> list[tuple[int, dict[str, str]]]:
    """The rows of a table with their lines, stripped; the separator is what the first line has most of: , ; or tab.

    Raises
    ------
    ValueError : a column is missing; names it.
    """
    if not path.exists():
        return []
    text = table_text(path)
    first = text.partition("\n")[0]
    reader = csv.DictReader(io.StringIO(text), delimiter=max(",;\t", key=first.count))
    reader.fieldnames = [name.strip() for name in reader.fieldnames or []]
    missing = [name for name in needed_columns if name not in (reader.fieldnames or [])]
    if missing:
        raise ValueError(f"{path} lacks the column {missing[0]}; its first line is {first[:80]!r}")
    clean = ({key: (value or "").strip() for key, value in row.items() if isinstance(key, str)} for row in reader)
    return [(number, row) for number, row in enumerate(clean, start=2) if any(row.values())]


def _date(path: Path, line: int, text: str) -> datetime:
    """UTC, without a zone: as nbgrader keeps it. A day without an hour counts to its end."""
    time = moment(text, end_of_day=True)
    if time is None:
        raise ValueError(
            f"{path}, line {line}: {text!r} is no date that can be meant in one way alone; "
            "write 2026-12-01 18:00+01:00, or 01.12.2026 18:00 Europe/Berlin"
        )
    return time
