"""What stands in the gradebook for one student: kept before a regrading, and put back where that does not end well."""

from datetime import datetime, timedelta

from course_lib._extras import needed

with needed("lab"):
    from nbgrader.api import Gradebook, MissingEntry

GRADE = ("auto_score", "manual_score", "extra_credit", "needs_manual_grade")
COMMENT = ("auto_comment", "manual_comment")


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


def put_back(gradebook: Gradebook, assignment: str, student: str, stood: dict) -> None:
    """Make the gradebook what it was when `standing` returned `stood`: a new submission goes, an old one is itself."""
    try:
        submission = gradebook.find_submission(assignment, student)
    except MissingEntry:
        return
    if not stood:
        gradebook.remove_submission(assignment, student)
        return
    submission.timestamp = datetime.fromisoformat(stood["timestamp"]) if stood["timestamp"] else None
    submission.extension = timedelta(seconds=stood["extension"]) if stood["extension"] is not None else None
    for notebook in submission.notebooks:
        kept = stood["notebooks"].get(notebook.name, {"penalty": None, "grades": {}, "comments": {}})
        notebook.late_submission_penalty = kept["penalty"]
        for rows, values in ((notebook.grades, kept["grades"]), (notebook.comments, kept["comments"])):
            for row in rows:
                for name, value in values.get(row.name, {}).items():
                    setattr(row, name, value)
    gradebook.db.commit()


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
