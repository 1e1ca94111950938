"""What the gradebook says of one student, as JSON has it: it goes to whoever grades, and comes back with marks."""

from datetime import datetime, timedelta
from pathlib import Path

from course_lib._extras import needed

with needed("lab"):
    from nbgrader.api import Base, Gradebook, MissingEntry
    from sqlalchemy import create_engine, insert, select

GRADE = ("auto_score", "manual_score", "extra_credit", "needs_manual_grade")
COMMENT = ("auto_comment", "manual_comment")
OF_STUDENTS = {"student", "submitted_assignment", "submitted_notebook", "grade", "comment"}  # tables


def standing(gradebook: Gradebook, assignment: str, student: str) -> dict:
    """Times, marks and comments of a submission, as JSON has them; empty where there is no submission."""
    try:
        submission = gradebook.find_submission(assignment, student)
    except MissingEntry:
        return {}
    return {
        "timestamp": submission.timestamp.isoformat() if submission.timestamp else None,
        "extension": submission.extension.total_seconds() if submission.extension else None,
        "notebooks": {
            notebook.name: {
                "penalty": notebook.late_submission_penalty,
                "grades": _values(notebook.grades, GRADE),
                "comments": _values(notebook.comments, COMMENT),
            }
            for notebook in submission.notebooks
        },
    }


def enter(gradebook: Gradebook, assignment: str, student: str, stands: dict) -> None:
    """Make the gradebook say of a submission what `standing` returned; a student or submission that it lacks is new."""
    gradebook.update_or_create_student(student)
    with gradebook.db.no_autoflush:  # which SQLAlchemy would warn of while nbgrader joins the new rows
        submission = gradebook.update_or_create_submission(assignment, student)
    submission.timestamp = datetime.fromisoformat(stands["timestamp"]) if stands["timestamp"] else None
    submission.extension = timedelta(seconds=stands["extension"]) if stands["extension"] is not None else None
    for notebook in submission.notebooks:
        entered = stands["notebooks"].get(notebook.name, {"penalty": None, "grades": {}, "comments": {}})
        notebook.late_submission_penalty = entered["penalty"]
        for rows, values in ((notebook.grades, entered["grades"]), (notebook.comments, entered["comments"])):
            for row in rows:
                for name, value in values.get(row.name, {}).items():
                    setattr(row, name, value)
    gradebook.db.commit()


def definitions(gradebook: Gradebook, path: Path) -> None:
    """Write a gradebook of SQLite that has the assignments of this one, and nobody's work."""
    engine = create_engine(f"sqlite:///{path}")
    Base.metadata.create_all(engine)
    with engine.begin() as target:
        for table in Base.metadata.sorted_tables:
            if table.name not in OF_STUDENTS and (rows := gradebook.db.execute(select(table)).mappings().all()):
                target.execute(insert(table), [dict(row) for row in rows])
    engine.dispose()


def keep_reviewed(gradebook: Gradebook, assignment: str, student: str, stood: dict) -> None:
    """The same work was graded again: what a person marked need not be marked once more, if its test says the same."""
    submission = gradebook.find_submission(assignment, student)
    for notebook in submission.notebooks:
        kept = stood["notebooks"].get(notebook.name, {"grades": {}})["grades"]
        for row in notebook.grades:
            before = kept.get(row.name, {})
            reviewed = before.get("manual_score") is not None and not before["needs_manual_grade"]
            if reviewed and row.auto_score == before["auto_score"]:
                row.needs_manual_grade = False
    gradebook.db.commit()


def _values(rows, names: tuple[str, ...]) -> dict[str, dict]:
    return {row.name: {name: getattr(row, name) for name in names} for row in rows}
