"""Grading on a Dask cluster: a scheduler and workers in another folder, started here and reached by 127.0.0.1 alone."""

import copy
import io
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import nbformat
import psutil
import pytest

from course_lib.grading.marking import answers, cluster, gradings
from course_lib.grading.marking.__main__ import main
from course_lib.grading.marking.alone import GRADING, NORMALISED, Marks, open_course, workplace
from course_lib.grading.marking.apart import Unfinished
from course_lib.grading.marking.batch import Batch
from course_lib.grading.marking.standing import COMMENT, GRADE, standing
from course_lib.grading.outside.seeds import SECRET
from tests.support.course import ASSIGNMENT, ROOT, Course, filled_in, reference_answers
from tests.support.sandbox import NEEDS_SANDBOX

distributed = pytest.importorskip("distributed")

WRONG = {"softmax": "def softmax(x):\n    return x"}
DIES = {"multi-head-attention": "import os\nos._exit(3)"}
PASSWORD = "said-by-nobody"


# What workers do in the tests: they import this file.


def echo(parcel):
    return b"echo of " + parcel


def dies(parcel):
    os._exit(1)


def dies_once(parcel):
    """The parcel is a path where the first that comes leaves a word."""
    path = Path(parcel.decode())
    if not path.exists():
        path.write_text("I was here")
        os._exit(1)
    return b"done"


def raises(parcel):
    raise RuntimeError("no such luck")


class Evil:
    """Leaves an empty file, with the number of the process, wherever it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return exec, (f"import os, pathlib\npathlib.Path({self.path!r}, str(os.getpid())).touch()",)


def evil(parcel):
    return Evil(parcel.decode())


def started(folder, *arguments):
    """A program of Dask's, in a folder of its own, with nothing but the library and this file."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(__file__).parent)])}
    with (folder / "log.txt").open("a") as log:
        command = [sys.executable, "-m", *arguments]
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)


def ended(process):
    family = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
    for member in family:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            pass
    process.wait()


def scheduler(folder, running):
    """The address of a scheduler, whose process is added to those that run."""
    file = folder / f"scheduler-{len(running)}.json"
    running.append(started(
        folder, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
        "--scheduler-file", str(file),
    ))  # fmt: skip
    end = time.monotonic() + 300
    while not file.exists() or not file.read_text().endswith("}"):
        assert time.monotonic() < end, (folder / "log.txt").read_text()
        time.sleep(0.1)
    return json.loads(file.read_text())["address"]


@pytest.fixture(scope="module")
def schedulers(tmp_path_factory):
    """Two schedulers' addresses, of which the second never has a worker, and the first one two."""
    folder = tmp_path_factory.mktemp("cluster")
    running = []
    try:
        addresses = [scheduler(folder, running) for _ in range(2)]
        running.append(started(
            folder, "distributed.cli.dask_worker", addresses[0], "--host", "127.0.0.1", "--nworkers", "2",
            "--nthreads", "1", "--no-dashboard", "--local-directory", str(folder),
        ))  # fmt: skip
        with distributed.Client(addresses[0], timeout=300, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=300)
        yield addresses
    finally:
        for process in running:
            ended(process)


@pytest.fixture
def course(generated, tmp_path, monkeypatch):
    """A course in which nobody gets feedback: where a work is graded, it is made on this machine."""
    monkeypatch.setattr(Batch, "_feedback", lambda self, gradebook, jobs: None)
    made = Course(tmp_path / "made", copied_from=generated.root)
    for name, value in made._environment("instructor").items():
        monkeypatch.setenv(name, value)
    with (made.root / "nbgrader_config.py").open("a") as config:
        config.write("c.Execute.timeout = 1800\nc.Execute.startup_timeout = 600\n")
    return made


def configured(course, line):
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write(line + "\n")
    return open_course(course.root)


def stands(course):
    """What the gradebook has of every student, and what the executed notebooks show; the files beside them."""
    found = {}
    with course.gradebook() as gradebook:
        for student in gradebook.students:
            folder = course.root / "autograded" / student.id / ASSIGNMENT
            names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
            cells = nbformat.read(folder / f"{ASSIGNMENT}.ipynb", as_version=4).cells
            shown = [[each.get("text", each.get("evalue")) for each in cell.get("outputs", [])] for cell in cells]
            found[student.id] = standing(gradebook, ASSIGNMENT, student.id), names, shown
    return found


@NEEDS_SANDBOX
def test_a_batch_comes_to_the_same_as_on_this_machine_and_goes_on_where_it_was(
    course, schedulers, tmp_path, monkeypatch, capsys
):
    answers_ = reference_answers(course.source) | {"explain": "1. The variance is $d_k$."}
    for student, cells in {"right": {}, "wrong": WRONG, "dies": DIES}.items():
        course.submit(student, filled_in(course.release, answers_ | cells))
    (course.root / "submitted" / "right" / ASSIGNMENT / "notes.csv").write_text("1,2")
    (course.root / SECRET).write_text("f" * 64)
    here = Course(tmp_path / "here", copied_from=course.root)
    shutil.copytree(course.root / "submitted", here.root / "submitted")
    shutil.copy(course.root / SECRET, here.root / SECRET)
    command = [ASSIGNMENT, "--course", str(course.root), "--scheduler", schedulers[0]]
    wait = gradings.wait_for_one

    def interrupted(*given):
        wait(*given)
        if "\n" in capsys.readouterr().out:
            raise KeyboardInterrupt

    assert main([ASSIGNMENT, "--course", str(here.root), "--jobs", "1"]) == 1
    capsys.readouterr()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(gradings, "wait_for_one", interrupted)
        main([*command, "--jobs", "1"])
    assert len(stands(course)) == 1
    assert main(command) == 1
    assert "2 graded now" in capsys.readouterr().out
    there = stands(here)
    assert set(there) == {"right", "wrong", "dies"}
    for student, (marks, names, shown) in stands(course).items():
        assert (marks, names) == there[student][:2], student
        assert shown == there[student][2], student
    assert course.scores("right")["test-softmax"] > course.scores("wrong")["test-softmax"]
    assert "notes.csv" in stands(course)["right"][1]
    assert not (course.root / GRADING).exists()


def test_work_whose_code_could_reach_the_scheduler_is_not_sent(course):
    for line, assignment in (("", "another"), ("c.ExecuteOutside.sandbox = 'off'", ASSIGNMENT)):
        with pytest.raises(ValueError, match=f"The works of {assignment} run with the rights .* without --scheduler"):
            cluster.places("tcp://127.0.0.1:9", configured(course, line), assignment)


def test_settings_that_are_no_values_are_named(course):
    with pytest.raises(ValueError, match="c.Execute.timeout_func is no plain value"):
        cluster.places("tcp://127.0.0.1:9", configured(course, "c.Execute.timeout_func = lambda cell: 1"), ASSIGNMENT)


def test_what_is_wrong_with_a_cluster_is_said_before_anything_is_graded(course, schedulers, monkeypatch, capsys):
    course.submit("anna", course.release)
    monkeypatch.setattr(cluster, "CONNECTING_S", 2)
    for address, why in (
        ("tcp://127.0.0.1:9", "The cluster at tcp://127.0.0.1:9 cannot be used: "),
        (schedulers[1], f"The scheduler at {schedulers[1]} has no workers: start some with `dask worker"),
    ):
        configured(course, "c.ExecuteOutside.sandbox = 'required'")
        assert main([ASSIGNMENT, "--course", str(course.root), "--scheduler", address]) == 2
        assert capsys.readouterr().err.startswith(why)
    monkeypatch.setattr(cluster, "CONNECTING_S", 30)
    monkeypatch.setitem(cluster.VERSIONS, "nbgrader", "99")
    with pytest.raises(ValueError, match="A worker of the cluster cannot grade: the worker has .* nbgrader 99"):
        cluster.places(schedulers[0], open_course(course.root), ASSIGNMENT)


@NEEDS_SANDBOX
def test_as_many_are_graded_at_a_time_as_the_workers_have_room_for(course, schedulers):
    configured(course, "c.ExecuteOutside.sandbox = 'required'")
    assert cluster.places(schedulers[0], open_course(course.root), ASSIGNMENT) == 2


def test_a_worker_that_dies_costs_another_try_then_a_named_trouble_and_nobody_else(schedulers, tmp_path):
    assert cluster.sent(schedulers[0], str(tmp_path / "once").encode(), dies_once) == b"done"
    with ThreadPoolExecutor() as pool:
        other = pool.submit(lambda: [cluster.sent(schedulers[0], b"%d" % n, echo) for n in range(5)])
        with pytest.raises(Unfinished, match="each worker of the cluster that it was given to died"):
            cluster.sent(schedulers[0], b"", dies, rounds=1)
        assert other.result() == [b"echo of %d" % n for n in range(5)]
    with pytest.raises(Unfinished, match="did not grade it: RuntimeError: no such luck"):
        cluster.sent(schedulers[0], b"", raises)


def test_a_cluster_without_workers_is_not_waited_for_for_ever(schedulers, monkeypatch):
    monkeypatch.setattr(cluster, "LONELY_S", 1)
    with pytest.raises(Unfinished, match="the cluster has had no worker for 1 seconds"):
        cluster.sent(schedulers[1], b"", echo)


def test_a_scheduler_that_ends_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECTING_S", 5)
    running = []
    address = scheduler(tmp_path, running)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(cluster.sent, address, b"", echo)
        time.sleep(3)
        ended(*running)
        with pytest.raises(Unfinished, match=f"the cluster at {address} did not grade it"):
            waiting.result(timeout=300)


def test_no_answer_is_unpickled(schedulers, tmp_path):
    with pytest.raises(Unfinished):
        cluster.sent(schedulers[0], str(tmp_path).encode(), evil)
    assert not (tmp_path / str(os.getpid())).exists()


def test_a_worker_gets_one_students_work_and_no_way_to_the_gradebook(course):
    solved = filled_in(course.release, reference_answers(course.source))
    for student in ("anna", "ben"):
        (course.root / NORMALISED / student / ASSIGNMENT).mkdir(parents=True)
        nbformat.write(solved, course.root / NORMALISED / student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb")
    with course.gradebook() as gradebook:
        gradebook.update_or_create_student("ben", email="ben@x.de")
    (course.root / "source" / ASSIGNMENT / "given.csv").write_text("3,4")
    configured(course, f"c.ExecuteOutside.warm = {{{ASSIGNMENT!r}: ['numpy']}}")
    app = open_course(course.root)
    with workplace(app):
        configured(course, f"c.CourseDirectory.db_url = 'postgresql+psycopg://u:{PASSWORD}@h/db'")
        parcel = cluster.packed(course.root, ASSIGNMENT, "anna", {}, True)
    with zipfile.ZipFile(io.BytesIO(parcel)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    work = f"{NORMALISED}/anna/{ASSIGNMENT}/{ASSIGNMENT}.ipynb"
    assert set(files) == {"job.json", ".grading/assignments.db", SECRET, work, f"source/{ASSIGNMENT}/given.csv"}
    for content in files.values():
        for secret in (PASSWORD, str(course.root), str(course.exchange)):
            assert secret.encode() not in content
    assert b"ben@x.de" not in files[".grading/assignments.db"]
    outside = json.loads(files["job.json"])["settings"]["ExecuteOutside"]
    assert outside["assignments"][ASSIGNMENT] == ["numpy"] and "warm" not in outside


def test_a_worker_with_other_versions_is_unfit():
    assert "and the course course_lib 99" in cluster.unfit({**cluster.VERSIONS, "course_lib": "99"})
    assert "torch installed, and the course" in cluster.unfit({**cluster.VERSIONS, "torch": "missing"})


def test_what_a_worker_cannot_read_is_its_answer():
    marks, files = answers.checked(cluster.grade_parcel(b"no archive"), {}, {}, None)
    assert marks == Marks({}, "on the worker: BadZipFile: File is not a zip file") and not files


def test_what_a_worker_cannot_grade_has_its_reason(monkeypatch):
    job = {"versions": cluster.VERSIONS, "seed": None, "limit_s": 60, "assignment": "hw", "student": "anna"}
    parcel = answers.archive_of({cluster.JOB: json.dumps(job).encode()})
    monkeypatch.setattr(cluster, "unfit", lambda versions: "")
    marks, _ = answers.checked(cluster.grade_parcel(parcel), {}, {}, None)
    why = "on the worker: its process ended with exit status 1, and without a result: KeyError: 'settings'"
    assert marks == Marks({}, why)


ENDS = {
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", "was ended by SIGKILL; it may have asked for too much memory"),
    "crashed": ("os.kill(os.getpid(), signal.SIGSEGV)", "was ended by SIGSEGV"),
    "left": ("os._exit(3)", "ended with exit status 3, and without a result"),
    "raised": ("raise ValueError('no luck')", "ended with exit status 1, and without a result: ValueError: no luck"),
    "too long": ("time.sleep(600)", "took more than 3 seconds"),
}


@pytest.mark.parametrize(("end", "how"), ENDS.values(), ids=ENDS)
@pytest.mark.skipif(sys.platform != "linux", reason="workers have the sandbox, which is Linux's")
def test_how_a_process_of_a_workers_ended_is_known_and_none_that_it_forked_goes_on(end, how, tmp_path):
    code = (
        "import os, signal, time\nfrom pathlib import Path\n"
        "child = os.fork()\nif not child: time.sleep(600)\n"
        f"Path('child').write_text(str(child))\n{end}"
    )
    assert cluster._run([sys.executable, "-c", code], tmp_path, {**os.environ}, 3) == how
    child, last = int((tmp_path / "child").read_text()), time.monotonic() + 60
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < last
        time.sleep(0.1)


WORKING = """
import os, sys, time
from pathlib import Path
from course_lib.grading.marking import cluster

cluster.grade_alone = lambda *given: time.sleep(600)
if os.fork() == 0:
    cluster.main(Path(sys.argv[1]))
else:
    time.sleep(3)
    os._exit(9)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it is started, not forked")
def test_what_a_worker_was_grading_when_it_died_ends_and_leaves_nothing(tmp_path):
    folder = tmp_path / "grading-1"
    folder.mkdir()
    job = {"assignment": "hw", "student": "anna", "stood": {}, "is_known": True, "limit_s": 600, "settings": {}}
    (folder / "job.json").write_text(json.dumps(job))
    done = subprocess.run([sys.executable, "-c", WORKING, str(folder)], check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 9
    end = time.monotonic() + 60
    while folder.exists() or any(str(folder) in each.info["cmdline"] for each in psutil.process_iter(["cmdline"], [])):
        assert time.monotonic() < end
        time.sleep(0.2)


# What is looked at in an answer


GRADED = dict(zip(GRADE, (1.5, None, None, False), strict=True))
TO_BE_READ = dict(zip(GRADE, (None, None, None, True), strict=True))
NO_RESPONSE = dict(zip(COMMENT, ("No response.", None), strict=True))
STANDS = {
    "timestamp": "2026-11-03T17:00:00", "extension": None,
    "notebooks": {"hw": {
        "penalty": None, "grades": {"q": GRADED, "text": TO_BE_READ}, "comments": {"code": NO_RESPONSE},
    }},
}  # fmt: skip
ASKED = {"hw": answers.Asked({"q": 2.0, "text": 4.0}, by_hand={"text"}, commented={"code", "text"})}
HANDED_IN = datetime(2026, 11, 3, 17)


def test_an_answer_is_what_was_answered():
    archive = answers.answer(STANDS, "Stopped: x", {"hw.ipynb": b"{}", "data/a.csv": b"1"})
    marks, files = answers.checked(archive, {}, ASKED, HANDED_IN)
    assert marks == Marks(STANDS, "Stopped: x")
    assert {str(path): content for path, content in files.items()} == {"hw.ipynb": b"{}", "data/a.csv": b"1"}
    by_hand = copy.deepcopy(STANDS)
    by_hand["notebooks"]["hw"]["grades"]["q"]["manual_score"] = 2.0
    for when in (HANDED_IN, None):  # where nobody knows it, it is that of the work before
        assert answers.checked(answers.answer(by_hand, ""), by_hand, ASKED, when)[0] == Marks(by_hand, "")
    why = answers.answer({}, "nbgrader: no kernel")
    assert answers.checked(why, by_hand, ASKED, HANDED_IN)[0] == Marks({}, "nbgrader: no kernel")


@pytest.mark.parametrize(("path", "value", "why"), [
    (("timestamp",), "2026-11-03T17:00:00+01:00", "the time"),
    (("timestamp",), "yesterday", "the time"),
    (("timestamp",), "2199-11-03T17:00:00", "the time"),
    (("timestamp",), None, "the time"),
    (("extension",), 3600.0, "the extension"),
    (("more",), 1, "the parts of a submission"),
    (("notebooks", "other"), {}, "the notebooks"),
    (("notebooks",), {}, "the notebooks"),
    (("notebooks", "hw", "penalty"), "1", "the penalty"),
    (("notebooks", "hw", "penalty"), float("nan"), "the penalty"),
    (("notebooks", "hw", "penalty"), -1.0, "the penalty"),
    (("notebooks", "hw", "more"), 1, "the parts of a notebook"),
    (("notebooks", "hw", "grades", "other"), GRADED, "the questions"),
    (("notebooks", "hw", "grades"), {"q": GRADED}, "the questions"),
    (("notebooks", "hw", "grades"), {}, "the questions"),
    (("notebooks", "hw", "grades", "q", "auto_score"), None, "the points of q"),
    (("notebooks", "hw", "grades", "q", "auto_score"), 2.5, "the points of q"),
    (("notebooks", "hw", "grades", "q", "auto_score"), -1, "the points of q"),
    (("notebooks", "hw", "grades", "q", "auto_score"), float("nan"), "the points of q"),
    (("notebooks", "hw", "grades", "q", "auto_score"), True, "the points of q"),
    (("notebooks", "hw", "grades", "q", "auto_score"), "2", "the points of q"),
    (("notebooks", "hw", "grades", "q", "manual_score"), 2.0, "the hand mark of q"),
    (("notebooks", "hw", "grades", "q", "extra_credit"), 2.0, "the hand mark of q"),
    (("notebooks", "hw", "grades", "q", "needs_manual_grade"), 0, "the grade of q"),
    (("notebooks", "hw", "grades", "q", "cell_id"), "x", "the grade of q"),
    (("notebooks", "hw", "comments", "code", "auto_comment"), "x" * 10_001, "the comment on code"),
    (("notebooks", "hw", "comments", "code", "auto_comment"), 1, "the comment on code"),
    (("notebooks", "hw", "comments", "code", "manual_comment"), "well done", "the hand comment on code"),
    (("notebooks", "hw", "comments", "code", "id"), "x", "the comment on code"),
    (("notebooks", "hw", "comments", "other"), NO_RESPONSE, "the cells with a comment"),
])  # fmt: skip
def test_marks_that_nobody_can_have_are_refused(path, value, why):
    made = copy.deepcopy(STANDS)
    place = made
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    with pytest.raises(Unfinished, match=f"the worker's answer cannot be used: .*{why}"):
        answers.checked(answers.answer(made, ""), {}, ASKED, HANDED_IN)


@pytest.mark.parametrize(("stands", "why"), [({}, ""), (STANDS, "nbgrader: no kernel"), ({}, "Stopped: x")])
def test_an_answer_has_marks_or_a_reason_why_not(stands, why):
    with pytest.raises(Unfinished, match="that there are marks and a reason why not, or neither"):
        answers.checked(answers.answer(stands, why), {}, ASKED, HANDED_IN)


@pytest.mark.parametrize("name", ["../up", "executed/../../up", "/etc/passwd", "executed", "executed/c:x", "other/x"])
def test_a_file_that_leads_elsewhere_is_refused(name):
    archive = answers.archive_of({"marks.json": b'{"stands": {}, "why": "x"}', name: b""})
    with pytest.raises(Unfinished, match="has no place"):
        answers.checked(archive, {}, ASKED, HANDED_IN)


@pytest.mark.parametrize("archive", [
    b"", b"{}", answers.archive_of({}), answers.archive_of({"marks.json": b"[" * 100_000}),
    answers.archive_of({"marks.json": b'{"stands": {}}'}),
    answers.archive_of({"marks.json": b'{"stands": 1, "why": 1}'}),
    answers.archive_of({str(n): b"" for n in range(1001)}),
], ids=["empty", "json", "nothing", "deep", "no reason", "other kinds", "many"])  # fmt: skip
def test_what_is_no_answer_is_refused(archive):
    with pytest.raises(Unfinished, match="the worker's answer cannot be used"):
        answers.checked(archive, {}, ASKED, HANDED_IN)


def test_an_answer_that_unpacks_to_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(answers, "ROOM", 1000)
    with pytest.raises(Unfinished, match="it has more than"):
        answers.checked(answers.answer({}, "x", {"hw.ipynb": bytes(2000)}), {}, ASKED, HANDED_IN)
