"""What the gradebook says of one student, as JSON has it: it goes to whoever grades, and comes back with marks."""

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from course_lib._extras import needed

with needed("lab"):
    from nbgrader.api import Base, BaseCell, Gradebook, MissingEntry
    from sqlalchemy import create_engine, insert, select
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError

GRADE = ("auto_score", "manual_score", "extra_credit", "needs_manual_grade")
COMMENT = ("auto_comment", "manual_comment")
BY_HAND = {"manual_score", "extra_credit", "manual_comment"}  # of these, what only a person enters
NOTHING = {"timestamp": None, "extension": None, "notebooks": {}}  # of a submission without marks
OF_STUDENTS = {"student", "submitted_assignment", "submitted_notebook", "grade", "comment"}  # tables
PATIENCE_S = 60  # for whoever is writing into a gradebook that is to be copied
WAL = bytes([2, 2])  # bytes 18 and 19 of a file of SQLite that keeps a write-ahead log


def standing(gradebook: Gradebook, assignment: str, student: str) -> dict:
    """Times, marks and comments of a submission, as JSON has them; empty where there is no submission."""
    try:
        submission = gradebook.find_submission(assignment, student)
    except MissingEntry:
        return {}
    names = names_of_cells(gradebook)
    return {
        "timestamp": submission.timestamp.isoformat() if submission.timestamp else None,
        "extension": submission.extension.total_seconds() if submission.extension else None,
        "notebooks": {
            notebook.name: {
                "penalty": notebook.late_submission_penalty,
                "grades": _values(notebook.grades, names, GRADE),
                "comments": _values(notebook.comments, names, COMMENT),
            }
            for notebook in submission.notebooks
        },
    }


def enter(gradebook: Gradebook, assignment: str, student: str, stands: dict, by_hand: bool = True) -> None:
    """Make the gradebook say of a submission what `standing` returned; a student or submission that it lacks is new.

    by_hand : also what only a person enters; without it, what the gradebook has of that stays, and asks for a look
    """
    gradebook.update_or_create_student(student)
    with gradebook.db.no_autoflush:  # which SQLAlchemy would warn of while nbgrader joins the new rows
        submission = gradebook.update_or_create_submission(assignment, student)
    submission.timestamp = datetime.fromisoformat(stands["timestamp"]) if stands["timestamp"] else None
    submission.extension = timedelta(seconds=stands["extension"]) if stands["extension"] is not None else None
    names = names_of_cells(gradebook)
    for notebook in submission.notebooks:
        entered = stands["notebooks"].get(notebook.name, {"penalty": None, "grades": {}, "comments": {}})
        notebook.late_submission_penalty = entered["penalty"]
        for rows, values in ((notebook.grades, entered["grades"]), (notebook.comments, entered["comments"])):
            for row in rows:
                for name, value in values.get(names.get(row.cell_id), {}).items():
                    if by_hand or name not in BY_HAND:
                        setattr(row, name, value)
        for row in () if by_hand else notebook.grades:
            row.needs_manual_grade = row.needs_manual_grade or row.manual_score is not None  # as nbgrader has it
    gradebook.db.commit()


def names_of_cells(gradebook: Gradebook) -> dict[str, str]:
    """The name of each cell, by its id: a mark or a comment asks for that of its own cell by itself, one by one.

    Where somebody has removed a cell from the gradebook, there are marks of none.
    """
    return dict(map(tuple, gradebook.db.query(BaseCell.id, BaseCell.name)))


def definitions(gradebook: Gradebook, path: Path) -> None:
    """Write a gradebook of SQLite that has the assignments of this one, and nobody's work."""
    _write_tables(gradebook.db, path, left_out=OF_STUDENTS)


def copy_gradebook(url: str, path: Path) -> None:
    """Write what the gradebook at `url` has at one moment into a new gradebook of SQLite; the first is only read.

    Raises
    ------
    ValueError : there is no gradebook that can be read, or it is neither of SQLite nor of PostgreSQL.
    """
    with explained(url):
        parsed = make_url(url)
        if parsed.get_backend_name() == "postgresql":
            engine = create_engine(parsed)
            try:
                with engine.connect() as connection:
                    # One snapshot for all tables, in a transaction that could not write if it tried.
                    reader = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
                    _write_tables(reader, path)
            finally:
                engine.dispose()
        elif parsed.get_backend_name() == "sqlite" and parsed.database and Path(parsed.database).is_file():
            _back_up(Path(parsed.database), path)
        else:
            raise ValueError(f"There is no gradebook of SQLite or of PostgreSQL at {shown(url)}.")


@contextlib.contextmanager
def explained(url: str) -> Iterator[None]:
    """A block that reaches for the gradebook at `url`.

    Raises
    ------
    ValueError : it cannot be reached, or read; says why. No password is in it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ValueError(
            f"The gradebook {shown(url)} needs {error.name}, which is not installed. For PostgreSQL, run "
            'pip install ".[postgresql]" in the folder of the course, and let c.CourseDirectory.db_url begin with '
            "postgresql+psycopg://"
        ) from None
    except (SQLAlchemyError, sqlite3.Error) as error:
        why = " ".join(str(error.orig if isinstance(error, DBAPIError) else error).split())
        raise ValueError(f"The gradebook {shown(url)} cannot be read: {why[:300]}") from None


def shown(url: str) -> str:
    """The URL of a gradebook, without what a person may keep secret in it."""
    try:
        return make_url(url).set(query={}).render_as_string(hide_password=True)
    except SQLAlchemyError:
        return "that c.CourseDirectory.db_url names"


def keep_reviewed(gradebook: Gradebook, assignment: str, student: str, stood: dict) -> None:
    """The same work was graded again: what a person marked need not be marked once more, if its test says the same."""
    submission, names = gradebook.find_submission(assignment, student), names_of_cells(gradebook)
    for notebook in submission.notebooks:
        kept = stood["notebooks"].get(notebook.name, {"grades": {}})["grades"]
        for row in notebook.grades:
            before = kept.get(names.get(row.cell_id), {})
            reviewed = before.get("manual_score") is not None and not before["needs_manual_grade"]
            if reviewed and row.auto_score == before["auto_score"]:
                row.needs_manual_grade = False
    gradebook.db.commit()


def _write_tables(source, path: Path, left_out: set[str] = frozenset()) -> None:
    """Write the tables of a gradebook into a new one of SQLite; `source` is a connection or a session of SQLAlchemy."""
    engine = create_engine(f"sqlite:///{path}")
    Base.metadata.create_all(engine)
    with engine.begin() as target:
        for table in Base.metadata.sorted_tables:
            if table.name not in left_out and (rows := source.execute(select(table)).mappings().all()):
                target.execute(insert(table), [dict(row) for row in rows])
    engine.dispose()


def _back_up(gradebook: Path, path: Path) -> None:
    """By SQLite's own backup, which takes in a write-ahead log, and waits for whoever writes."""
    end = time.monotonic() + PATIENCE_S

    def progress(status: int, remaining: int, total: int) -> None:
        if time.monotonic() > end:
            raise ValueError(f"Somebody has been writing into {gradebook} for {PATIENCE_S} seconds: try again later.")

    with gradebook.open("rb") as file:
        keeps_log = file.read(20)[18:] == WAL
    # A log that nobody has open is made by the first reader, and only one that may write removes it at the end.
    mode = "rw" if keeps_log and not gradebook.with_name(f"{gradebook.name}-wal").exists() else "ro"
    uri = f"{gradebook.absolute().as_uri()}?mode={mode}"
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as source:
        source.execute("PRAGMA query_only = ON")
        with contextlib.closing(sqlite3.connect(path)) as target:
            source.backup(target, progress=progress)


def _values(rows, names: dict[str, str], columns: tuple[str, ...]) -> dict[str, dict]:
    known = [row for row in rows if row.cell_id in names]
    return {names[row.cell_id]: {column: getattr(row, column) for column in columns} for row in known}
