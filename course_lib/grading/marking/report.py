"""The table of marks with a status beside every score, and the summary that ends a run."""

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from course_lib._extras import needed
from course_lib.files import replacing
from course_lib.grading.marking.record import ATTENTION, GRADED, NOTHING, WAITING, Entry, load, status

with needed("lab"):
    from nbgrader.api import Gradebook, MissingEntry
    from nbgrader.plugins import ExportPlugin

COLUMNS = [
    "assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email",
    "raw_score", "late_submission_penalty", "score", "max_score", "status", "why",
]  # fmt: skip
FORMULA = ("=", "+", "-", "@")
SHOWN = 20  # lines of the summary per status


def table(gradebook: Gradebook, assignment: str, entries: Mapping[str, Entry]) -> list[dict]:
    """One row for every student of the course, and for everybody who handed in: nbgrader's columns, status and why.

    A score is None where nothing could be graded, or nothing was handed in; it is never a zero that nobody gave.
    """
    known = gradebook.find_assignment(assignment)
    people = {student.id: student for student in gradebook.students}
    made = []
    for name in sorted({*people, *entries}):
        person, entry = people.get(name), entries.get(name)
        try:
            submission = gradebook.find_submission(assignment, name)
        except MissingEntry:
            submission = None
        marked = submission if submission and (entry is None or entry.marked) else None
        penalty = (marked.late_submission_penalty or 0.0) if marked else None
        made.append({
            "assignment": assignment,
            "duedate": submission.duedate if submission else known.duedate,
            "timestamp": submission.timestamp if submission else None,
            "student_id": name,
            **{key: getattr(person, key, None) for key in ("last_name", "first_name", "email")},
            "raw_score": marked.score if marked else None,
            "late_submission_penalty": penalty,
            "score": max(0.0, marked.score - penalty) if marked else None,
            "max_score": known.max_score,
            "status": status(marked, entry),
            "why": entry.why if entry else "",
        })  # fmt: skip
    return made


def final_marks(rows: Iterable[dict]) -> dict[str, float | None]:
    """Scores by student; None for those that are not final."""
    return {row["student_id"]: row["score"] if row["status"].endswith(GRADED) else None for row in rows}


def write_table(rows: Iterable[dict], path: Path) -> None:
    """Write grades.csv, whole or not at all; what is None is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([for_spreadsheet(row[column]) for column in COLUMNS] for row in rows)
    with replacing(path.parent) as scratch:
        (scratch / path.name).write_text(text.getvalue(), encoding="utf-8", errors="replace")


def summary(rows: list[dict], problems: Iterable[str], graded: int, root: Path, feedback: Path) -> str:
    """How many stand where, everybody who needs somebody, and what to do."""
    place = root.name if root.name == "assignments" else root
    lines = [f"{graded} graded now. {rows[0]['assignment'] if rows else 'Nobody'}: {_counts(rows)}."]
    for title, name, advice in [
        ("Needs attention", ATTENTION, "Their scores are blank, or not whole. Mend or ask again, then run this again."),
        ("Waiting for a hand mark", WAITING, f"In {place}: jupyter lab, Nbgrader, Formgrader; then run this again."),
    ]:
        found = [row for row in rows if row["status"].endswith(name)]
        if found:
            lines += ["", f"{title} ({len(found)}). {advice}"]
            shown = found[:SHOWN] if name == WAITING else found
            lines += [_line(row) for row in shown]
            lines += [f"  and {len(found) - len(shown)} more"] if len(shown) < len(found) else []
    again = [row["student_id"] for row in rows if row["status"].startswith("resubmitted")]
    if again:
        lines += ["", f"Resubmitted ({len(again)}), the later work counts: {', '.join(again)}"]
    problems = list(problems)
    if problems:
        lines += ["", "Could not be told, and was left out or taken as it stands:", *(f"  {each}" for each in problems)]
    lines += ["", f"Grades: {root / 'grades.csv'}. Feedback: {feedback}."]
    return "\n".join(lines)


class StatusExport(ExportPlugin):
    """`nbgrader export` with the same table, for all assignments; set in nbgrader_config.py."""

    def export(self, gradebook: Gradebook) -> None:
        """Write grades.csv, or the file that `--to` names."""
        rows = []
        for assignment in gradebook.assignments:
            if not self.assignment or assignment.name in map(str, self.assignment):
                marks = Path(self.parent.coursedir.root, "marks", f"{assignment.name}.json")
                rows += table(gradebook, assignment.name, load(marks))
        wanted = set(map(str, self.student))
        write_table([row for row in rows if not wanted or row["student_id"] in wanted], Path(self.to or "grades.csv"))


def _counts(rows: list[dict]) -> str:
    names = [GRADED, WAITING, ATTENTION, NOTHING]
    counts = {name: sum(row["status"].endswith(name) for row in rows) for name in names}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "nothing is handed in"


def _line(row: dict) -> str:
    score = "no score" if row["score"] is None else f"{row['score']:g} of {row['max_score']:g}"
    return f"  {row['student_id']} ({score})" + (f": {_printable(row['why'])}" if row["why"] else "")


def _printable(text: str) -> str:
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text if len(text) < 300 else text[:297] + "..."


def for_spreadsheet(value):
    """A text that a table program would take for a formula gets an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.lstrip()[:1] in FORMULA else value
