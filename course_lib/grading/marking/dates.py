"""The roster, due dates, extensions and late days: two tables beside the assignments, written into the gradebook.

`roster.csv` has the columns student_id, first_name, last_name, email, lms_id (all but the first may be missing).
`dates.csv` has assignment, due, student_id: a row without a student is the due date, one with a student the extension.
"""

import csv
import math
from datetime import UTC, datetime
from pathlib import Path

from course_lib._extras import needed
from course_lib.grading.marking.files import safe_name

with needed("lab"):
    from nbgrader.api import Gradebook
    from nbgrader.utils import parse_utc
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
    ValueError : a column or an id is missing, twice there, or no name for a folder.
    """
    roster: dict[str, dict[str, str]] = {}
    for line, row in rows(path, "student_id"):
        student = row["student_id"]
        if safe_name(student) != student or student in roster:
            raise ValueError(f"{path}, line {line}: {student!r} is no student_id, or stands there twice")
        roster[student] = row
    return roster


def write_roster(gradebook: Gradebook, roster: dict[str, dict[str, str]]) -> None:
    """Make the students known to the gradebook, with names and the number that the learning system has for them."""
    for student, row in roster.items():
        names = {key: row[key] for key in ("first_name", "last_name", "email") if row.get(key)}
        gradebook.update_or_create_student(student, **names, lms_user_id=row.get("lms_id") or None)


def write_dates(gradebook: Gradebook, path: Path, assignment: str) -> None:
    """Write the due date of an assignment and its extensions, of those who have handed in, into the gradebook.

    Raises
    ------
    ValueError : a date cannot be read, or an extension stands there without a due date.
    """
    found = [(line, row) for line, row in rows(path, "assignment", "due") if row["assignment"] == assignment]
    due = [_date(path, line, row["due"]) for line, row in found if not row.get("student_id")]
    if not found:
        return
    if len(due) != 1:
        raise ValueError(f"{path}: {assignment} needs one row with a due date and no student; there are {len(due)}")
    gradebook.update_or_create_assignment(assignment, duedate=due[0])
    extended = {row["student_id"]: _date(path, line, row["due"]) for line, row in found if row.get("student_id")}
    for submission in gradebook.assignment_submissions(assignment):
        until = extended.get(submission.student_id)
        submission.extension = until - due[0] if until else None
    gradebook.db.commit()


def rows(path: Path, *needed_columns: str) -> list[tuple[int, dict[str, str]]]:
    """The rows of a table with their lines, stripped; the separator is the comma or, where there is more of it, `;`.

    Raises
    ------
    ValueError : a column is missing; names it.
    """
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8-sig")
    first = text.partition("\n")[0]
    reader = csv.DictReader(text.splitlines(), delimiter=";" if first.count(";") > first.count(",") else ",")
    missing = [name for name in needed_columns if name not in (reader.fieldnames or [])]
    if missing:
        raise ValueError(f"{path} lacks the column {missing[0]}; its first line is {first[:80]!r}")
    clean = (
        {key.strip(): (value or "").strip() for key, value in row.items() if isinstance(key, str)} for row in reader
    )
    return [(number, row) for number, row in enumerate(clean, start=2) if any(row.values())]


def _date(path: Path, line: int, text: str) -> datetime:
    """UTC, without a zone: as nbgrader keeps it. A text without a zone is in UTC."""
    try:
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            return parse_utc(text)
    except (ValueError, OverflowError):
        raise ValueError(f"{path}, line {line}: {text!r} is no date such as 2026-12-01 18:00+01:00") from None
    return time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time
