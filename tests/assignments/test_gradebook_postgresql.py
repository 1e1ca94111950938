"""PostgreSQL as the gradebook: on a server of the tests' own, a batch comes to the same as it does with SQLite."""

import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Base, Gradebook
from nbgrader.apps.api import NbGraderAPI
from sqlalchemy import create_engine, select, text

from course_lib.grading.marking import alone, trial
from course_lib.grading.marking.__main__ import main
from course_lib.grading.marking.standing import copy_gradebook, standing
from tests.support.course import ASSIGNMENT, Course, filled_in, maximum, reference_answers

PASSWORD = "said-by-nobody"
ROLE = "instructor"
WRONG = {"softmax": "def softmax(x):\n    return x"}
COMMENT = "Größer als die Varianz: $d_k$ 😀"
DATES = f"assignment,due,student_id\n{ASSIGNMENT},2026-11-03 18:00+01:00,\n{ASSIGNMENT},2026-11-05 17:00,extended\n"
STAMPS = {"right": "2026-11-03 16:59:00", "late": "2026-11-06 12:00:00", "extended": "2026-11-05 16:00:00"}
ROSTER = "student_id,first_name,last_name\nright,Änne,Zwei\nlate,,\nabsent,Al,Eins\n"
IDS = {"id", "submission_id", "notebook_id", "assignment_id", "index"}  # drawn, or counted, anew in each gradebook


def programs() -> Path | None:
    """The folder of PostgreSQL's own programs, which Debian keeps off the PATH; None where there is none."""
    found = shutil.which("initdb")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    places = [*([Path(found).resolve()] if found else []), *reversed(debian)]
    return places[0].parent if places else None


NEEDS_SERVER = pytest.mark.skipif(
    programs() is None, reason="there is no PostgreSQL: install Debian's package postgresql, or your system's"
)


def test_continuous_integration_has_a_server():
    if os.environ.get("CI"):
        assert programs(), "install Debian's package postgresql, or nothing here is tested"


@pytest.fixture(scope="module")
def server():
    """A server with a role, reached by a socket in a folder that only it may enter; the start of its URLs, and more.

    It runs as another user where we are root, who may not run one. It keeps the time of Tokyo, as nobody here does.
    """
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a path to a socket has 107 letters at most
    as_user = {}
    if os.geteuid() == 0:
        import pwd  # which Windows lacks

        accounts = {user.pw_name: user for user in pwd.getpwall()}
        account = accounts.get("postgres") or accounts["nobody"]
        as_user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        os.chown(folder, account.pw_uid, account.pw_gid)
    (folder / "password").write_text(PASSWORD)
    (folder / "password").chmod(0o644)  # in a folder that is closed

    def run(program, *arguments):
        command = [programs() / program, "-D", folder / "data", *arguments]
        done = subprocess.run(
            command, cwd=folder, **as_user, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600
        )
        assert done.returncode == 0, done.stdout

    run("initdb", "-U", ROLE, "--pwfile", folder / "password", "-A", "scram-sha-256", "--no-locale", "-E", "UTF8")
    options = f"-k {folder} -c listen_addresses= -c fsync=off -c timezone=Asia/Tokyo"
    try:
        run("pg_ctl", "-w", "-l", folder / "log", "-o", options, "start")
        yield lambda database: f"postgresql+psycopg://{ROLE}:{PASSWORD}@/{database}?host={folder}"
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(folder)


@contextmanager
def administered(server):
    """A connection that may make databases."""
    engine = create_engine(server("postgres"), isolation_level="AUTOCOMMIT")
    with closing(engine.connect()) as connection:
        yield connection
    engine.dispose()


def configured(course, url):
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write(
            "c.ExecuteOutside.sandbox = 'off'\nc.Execute.timeout = 1800\nc.Execute.startup_timeout = 600\n"
            "c.LateDays.free = 1\nc.LateDays.share = 0.1\n"
        )
        config.write(f"c.CourseDirectory.db_url = {url!r}\n" if url else "")
    (course.root / "dates.csv").write_text(DATES)
    (course.root / "roster.csv").write_text(ROSTER, encoding="utf-8")


def hand_in(course, student, notebook, stamp=""):
    course.submit(student, notebook)
    if stamp:
        (course.root / "submitted" / student / ASSIGNMENT / "timestamp.txt").write_text(f"{stamp} UTC")


def graded(course):
    """The command, as an instructor runs it; its status and all that it says."""
    status, said = course.marking(ASSIGNMENT, "--jobs", "1")
    said = re.sub(r"  \(\d+ of \d+.*\)$", "", said, flags=re.MULTILINE)  # how long it takes is not the same
    return status, said.replace(str(course.folder), "FOLDER")


def gradebook(course):
    return alone.gradebook_of(alone.open_course(course.root))


def marked_by_hand(course):
    with gradebook(course) as book:
        grade = book.find_grade("explain", ASSIGNMENT, ASSIGNMENT, "late")
        grade.manual_score, grade.needs_manual_grade = 3.5, False
        book.find_comment("explain", ASSIGNMENT, ASSIGNMENT, "late").manual_comment = COMMENT
        book.db.commit()


@pytest.fixture(scope="module")
def courses(generated, server, tmp_path_factory):
    """The same course with SQLite and with PostgreSQL after the same two runs, and what these said."""
    with administered(server) as connection:
        connection.execute(text("CREATE DATABASE course"))
    made = {}
    for name, url in (("sqlite", ""), ("postgresql", server("course"))):
        course = Course(tmp_path_factory.mktemp(name), copied_from=generated.root)
        configured(course, url)
        if url:
            (course.root / "gradebook.db").unlink()
            course.nbgrader("generate_assignment", ASSIGNMENT, "--force")
        answers = reference_answers(course.source) | {"explain": "1. The variance is $d_k$."}
        right, wrong = filled_in(course.release, answers), filled_in(course.release, answers | WRONG)
        for student, notebook in {"right": right, "late": wrong, "extended": right, "again": wrong}.items():
            hand_in(course, student, notebook, STAMPS.get(student, ""))
        hand_in(course, "broken", right)
        (course.root / "submitted" / "broken" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").write_bytes(b"{")
        said = [graded(course)]
        marked_by_hand(course)
        nbformat.write(right, course.root / "submitted" / "again" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb")
        said.append(graded(course))
        made[name] = course, said
    return made


def all_rows(url):
    """Every row of every table."""
    engine = create_engine(url)
    with closing(engine.connect()) as connection:
        found = {
            table.name: sorted(map(str, connection.execute(select(table)))) for table in Base.metadata.sorted_tables
        }
    engine.dispose()
    return found


def stands(course):
    """All that the gradebook has of every student, and what nbgrader computes of it."""
    found = {}
    with gradebook(course) as book:
        for student in book.students:
            submission = next((each for each in student.submissions if each.name == ASSIGNMENT), None)
            computed = submission and (
                submission.score, submission.max_score, submission.late_submission_penalty,
                submission.total_seconds_late, submission.needs_manual_grade, submission.duedate,
            )  # fmt: skip
            names = student.first_name, student.last_name
            found[student.id] = names, computed, standing(book, ASSIGNMENT, student.id)
    return found


@NEEDS_SERVER
def test_every_mark_comment_time_and_penalty_is_that_of_sqlite(courses):
    found = {name: stands(course) for name, (course, _) in courses.items()}
    assert found["postgresql"] == found["sqlite"]
    of = {student: computed for student, (_, computed, _) in found["postgresql"].items()}
    most = sum(maximum(courses["sqlite"][0].source).values())
    assert set(of) == {"right", "late", "extended", "again", "absent"} and of["absent"] is None
    assert of["right"][0] == of["extended"][0] == of["again"][0] == most and of["late"][0] < most + 3.5
    assert (of["right"][3], of["extended"][3], of["late"][3]) == (0, 0, (2 * 24 + 19) * 3600)  # seconds
    assert of["late"][2] == 2 * 0.1 * of["late"][1]  # three days have begun, one is free
    assert COMMENT in str(found["postgresql"]["late"][2]) and found["postgresql"]["right"][0] == ("Änne", "Zwei")


@NEEDS_SERVER
def test_the_runs_say_and_write_the_same(courses):
    (lite, lite_said), (post, post_said) = courses["sqlite"], courses["postgresql"]
    assert post_said == lite_said
    assert [status for status, _ in post_said] == [1, 1] and "broken" in post_said[1][1]
    for name in ("grades.csv", f"marks/{ASSIGNMENT}.csv"):
        assert (post.root / name).read_bytes() == (lite.root / name).read_bytes()
    post.nbgrader("export", "--to", "own.csv")
    assert (post.root / "own.csv").read_bytes() == (post.root / "grades.csv").read_bytes()
    with (post.root / "grades.csv").open(encoding="utf-8", newline="") as lines:
        rows = {row["student_id"]: row for row in csv.DictReader(lines)}
    assert rows["again"]["status"].startswith("resubmitted") and rows["broken"]["status"] == "needs attention"
    pages = {path.parts[-3] for path in (post.root / "feedback").rglob("*.html")}
    assert pages == {"right", "late", "extended", "again"}


@NEEDS_SERVER
def test_formgrader_shows_the_same(courses):
    """What its pages ask nbgrader for."""

    def plain(value):
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items() if key not in IDS}
        return sorted(map(plain, value), key=str) if isinstance(value, list | set) else value

    found = {}
    for name, (course, _) in courses.items():
        app = alone.open_course(course.root)
        api = NbGraderAPI(app.coursedir, parent=app)
        found[name] = plain([
            api.get_assignments(), api.get_students(), api.get_submissions(ASSIGNMENT), api.get_notebooks(ASSIGNMENT),
            api.get_notebook_submissions(ASSIGNMENT, ASSIGNMENT), api.get_student_submissions("late"),
            api.get_student_notebook_submissions("late", ASSIGNMENT),
        ])  # fmt: skip
    assert found["postgresql"] == found["sqlite"]


@NEEDS_SERVER
def test_the_password_stands_in_the_configuration_alone(courses):
    course, said = courses["postgresql"]
    assert PASSWORD not in str(said)
    with_it = {
        path.name for path in course.folder.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()
    }
    assert with_it == {"nbgrader_config.py"}


@NEEDS_SERVER
def test_a_new_gradebook_has_the_version_that_nbgrader_upgrades_from(courses, server, monkeypatch):
    monkeypatch.setenv("PATH", courses["postgresql"][0]._environment("instructor")["PATH"])
    with administered(server) as connection:
        connection.execute(text("CREATE DATABASE new"))
    versions = []
    for url in (server("new"), server("course")):
        with Gradebook(url, "attention") as book:
            versions.append(book.db.execute(text("SELECT version_num FROM alembic_version")).scalars().all())
    assert versions[0] == versions[1] and len(versions[0]) == 1


@NEEDS_SERVER
def test_a_dry_run_reads_the_gradebook_and_could_write_nothing(courses, server, monkeypatch, capsys):
    """Every transaction of the database is made one that may not write; and only the marks of two are looked at."""
    course, _ = courses["postgresql"]
    for key, value in course._environment("instructor").items():
        monkeypatch.setenv(key, value)
    elsewhere = course.folder / "not-handed-in"
    elsewhere.mkdir()
    for student in ("extended", "again", "broken"):
        (course.root / "submitted" / student).rename(elsewhere / student)
    before = all_rows(server("course"))
    with administered(server) as connection:
        connection.execute(text("ALTER DATABASE course SET default_transaction_read_only = on"))
        try:
            trials = trial.dry_run(course.root, ASSIGNMENT, jobs=1, say=lambda line: None)
        finally:
            connection.execute(text("ALTER DATABASE course RESET default_transaction_read_only"))
            for path in elsewhere.iterdir():
                path.rename(course.root / "submitted" / path.name)
    found = {each.student: each for each in trials}
    assert set(found) == {"right", "late", "extended", "again"}
    assert [each.differences for each in trials] == [[]] * 4
    assert found["again"].said == "It has recorded marks, and no work in submitted/"
    assert all_rows(server("course")) == before


@NEEDS_SERVER
def test_a_copy_of_a_gradebook_has_every_row_and_none_is_made_of_what_is_no_gradebook(courses, server, tmp_path):
    copy_gradebook(server("course"), tmp_path / "copy.db")
    assert all_rows(f"sqlite:///{tmp_path / 'copy.db'}") == all_rows(server("course"))
    with pytest.raises(ValueError, match="cannot be read: .*does not exist") as raised:
        copy_gradebook(server("postgres"), tmp_path / "other.db")
    assert PASSWORD not in str(raised.value)


@NEEDS_SERVER
def test_a_password_that_is_wrong_is_not_repeated(courses, server, generated, tmp_path, monkeypatch, capsys):
    said = refused(server("course").replace(PASSWORD, "mis-typed"), generated, tmp_path, monkeypatch, capsys)
    assert f"The gradebook postgresql+psycopg://{ROLE}:***@/course cannot be read" in said
    assert "password authentication failed" in said and "mis-typed" not in said and PASSWORD not in said


def refused(url, generated, tmp_path, monkeypatch, capsys) -> str:
    """What a run says that cannot begin."""
    course = Course(tmp_path / "refused", copied_from=generated.root)
    configured(course, url)
    for key, value in course._environment("instructor").items():
        monkeypatch.setenv(key, value)
    assert main([ASSIGNMENT, "--course", str(course.root)]) == 2
    said = capsys.readouterr()
    assert said.out == "" and not (course.root / "marks").exists()
    return said.err


def test_a_server_that_is_not_there_is_named(generated, tmp_path, monkeypatch, capsys):
    pytest.importorskip("psycopg")
    url = f"postgresql+psycopg://{ROLE}@/course?host={tmp_path}&password={PASSWORD}"
    said = refused(url, generated, tmp_path, monkeypatch, capsys)
    assert said.startswith(f"The gradebook postgresql+psycopg://{ROLE}@/course cannot be read: ")
    assert PASSWORD not in said and "Traceback" not in said


def test_a_driver_that_is_not_installed_is_named_with_what_to_install(generated, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    said = refused("postgresql+psycopg://u:p@/course", generated, tmp_path, monkeypatch, capsys)
    assert "needs psycopg, which is not installed" in said and '".[postgresql]"' in said
