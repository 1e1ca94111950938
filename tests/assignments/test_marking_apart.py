"""Running a notebook to its end, and work in a process of its own: without a course."""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import nbformat
import nbgrader.api
import psutil
import pytest
from nbgrader.api import Gradebook, Student
from nbgrader.converters import Autograde
from sqlalchemy.exc import DatabaseError, OperationalError

from course_lib.grading.marking import alone, batch
from course_lib.grading.marking import apart as apart_module
from course_lib.grading.marking.alone import cores, for_rebuilt, open_course, reason
from course_lib.grading.marking.apart import FORK, Apart, Unfinished, apart
from course_lib.grading.marking.execute import STOPPED, ExecuteToTheEnd, writable
from course_lib.grading.marking.gradings import Gradings
from course_lib.grading.marking.in_memory import in_memory
from tests.support.running import still_running
from tests.support.sandbox import wait_for

NOISY = """import sys, threading, time
def complain():
    while True:
        print("a thread of an earlier part", file=sys.stderr, flush=True)
        time.sleep(0.01)
threading.Thread(target=complain, daemon=True).start()
print("x" * 50_000)"""


def executed(tmp_path, *sources, **limits):
    """The outputs of every cell."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    patience = {"startup_timeout": 600, "timeout": 1800, "iopub_timeout": 600}  # a busy machine is slow, not wrong
    execute = ExecuteToTheEnd(kernel_name="python3", **({"notebook_limit": 3600} | patience | limits))
    execute.preprocess(notebook, {"metadata": {"path": str(tmp_path)}})
    return [cell.outputs for cell in notebook.cells]


def test_what_ran_before_a_kernel_died_stays(tmp_path):
    before, fatal, after = executed(tmp_path, "1 + 1", "import os\nos._exit(3)", "2 + 2")
    assert before[0].data["text/plain"] == "2"
    assert fatal[-1].ename == after[0].ename == STOPPED
    assert "ended its own kernel in cell 2" in after[0].evalue


def test_no_word_on_standard_error_is_a_failure_and_not_all_of_them_are_kept(tmp_path):
    first, second = executed(tmp_path, NOISY, "import time\ntime.sleep(0.3)\n0.5", most_output=10_000)
    assert {output.name for output in [*first, *second] if output.output_type == "stream"} == {"stdout"}
    assert second[-1].output_type == "execute_result" or "execute_result" in {o.output_type for o in second}
    assert sum(len(output.text) for output in first) == 10_000


def test_what_a_kernel_prints_in_pieces_is_shown_in_one(tmp_path):
    prints = "import sys, time\nfor n in range(3):\n    print(n, flush=True)\n    time.sleep(0.3)"
    shows = "print('a')\ndisplay(7)\nprint('b', flush=True)\nprint('c', file=sys.stderr)"
    (whole,), (before, shown, after) = executed(tmp_path, prints, shows)
    assert whole.text == "0\n1\n2\n"
    assert (before.text, shown.data["text/plain"], sorted(after.text.split())) == ("a\n", "7", ["b", "c"])


def test_a_notebook_has_a_limit_of_its_own(tmp_path):
    ((output,),) = executed(tmp_path, "1 + 1", notebook_limit=-1)
    assert output.ename == STOPPED and "seconds were over" in output.evalue


def test_an_error_that_the_notebook_calls_so_is_no_notice_of_the_grader(tmp_path):
    forged = "class NotebookStopped(Exception):\n    pass\nraise NotebookStopped('Stopped: give me all points')"
    (outputs,) = executed(tmp_path, forged, allow_errors=True)
    errors = [output for output in outputs if output.output_type == "error"]
    assert errors and all(each.ename != STOPPED and "all points" in each.evalue for each in errors)


def test_a_cell_can_have_a_limit_of_its_own(tmp_path):
    asleep = "import time\ntime.sleep(20)"
    stopped, after = executed(tmp_path, asleep, "1 + 1", timeout_func=lambda cell: 2 if cell.source == asleep else 1800)
    assert stopped[-1].output_type == "error" and after[0].data["text/plain"] == "2"


ABOVE = """Traceback (most recent call last):
  File "utils.py", line 542, in capture_log
    app.start()
nbgrader.converters.base.NbGraderException: Please see the the above traceback for details on the specific errors.
"""
LOGGED = """[WARNING] Attribute 'checksum' for cell test has changed!
[ERROR] There was an error processing assignment: course/submitted/anna/hw
[ERROR] Traceback (most recent call last):
      File "base.py", line 370, in convert_notebooks
        self.convert_single_notebook(notebook_filename)
      File "execute.py", line 30, in preprocess
        raise ValueError(why)
    {}
[ERROR] There was an error processing assignment 'hw' for student 'anna'
[ERROR] Please see the the above traceback for details on the specific errors on the above failures.
"""


@pytest.mark.parametrize(("log", "error", "why"), [
    (LOGGED.format("ValueError: no kernel 'julia'"), ABOVE, "ValueError: no kernel 'julia'"),
    (LOGGED.format("KeyError"), ABOVE, "KeyError"),
    (LOGGED.format("sqlite3.OperationalError: database is locked\n    [SQL: SELECT]\n    (See https://x)"), ABOVE,
     "sqlite3.OperationalError: database is locked"),
    ("[ERROR] The schema is too old.\n    Run nbgrader update.\n[ERROR] Please see the above\n", ABOVE,
     "The schema is too old. Run nbgrader update."),
    (None, ABOVE.partition("nbgrader.")[0] + "KeyError: 'anna'\n", "KeyError: 'anna'"),
    (None, None, "it gave no reason"),
])  # fmt: skip
def test_the_reason_is_the_error_that_nbgrader_had(log, error, why):
    said = {"success": False} | ({"log": log} if log else {}) | ({"error": error} if error else {})
    assert reason(said).startswith(why)
    assert "above traceback" not in reason(said)


def double(x):
    return 2 * x


def test_work_apart_returns_raises_and_ends():
    assert apart(600, double, 4) == 8
    with pytest.raises(TypeError):
        apart(600, double, None)
    with pytest.raises(Unfinished, match="its process ended with exit status 1, and without a result"):
        apart(600, os._exit, 1)
    if hasattr(signal, "SIGKILL"):
        with pytest.raises(Unfinished, match="its process was ended by SIGKILL; it may have asked for too much memory"):
            apart(600, signal.raise_signal, signal.SIGKILL)
        with pytest.raises(Unfinished, match="its process was ended by SIGTERM$"):
            apart(600, signal.raise_signal, signal.SIGTERM)
    with pytest.raises(Unfinished, match="more than 0.2 seconds"):
        apart(0.2, time.sleep, 20)


def searches():
    """A search that no other thread interrupts, and that goes on for hours."""
    re.match("(a+)+$", 40 * "a" + "b")


def runs(told):
    works = Apart(600, time.sleep, 600), Apart(600, searches)
    told.send([work._process.pid for work in works])
    time.sleep(600)


class Unreadable(Exception):
    """With another number of arguments than it has: nobody can read it who gets it from another process."""

    def __init__(self, one, two):
        super().__init__(one)


class Pickled(Exception):
    """As any class is where Dask has imported tblib: with what it came of."""

    def __reduce__(self):
        return _pickled, (self.args, self.__cause__, self.__context__)


def _pickled(args, *others):
    return Pickled(*args)


def fails_with_a_context():
    try:
        raise Unreadable("one", "two")
    except Unreadable as error:
        raise Pickled("told") from error


def test_what_an_error_came_of_need_not_be_read():
    with pytest.raises(Pickled, match="^told$"):
        apart(600, fails_with_a_context)


def test_what_is_under_way_ends_with_a_run_that_is_killed():
    context = multiprocessing.get_context(FORK)
    here, there = context.Pipe()
    run = context.Process(target=runs, args=(there,))
    run.start()
    works = [psutil.Process(number) for number in here.recv()]
    while sys.platform == "linux" and works[1].cpu_times().user < 0.2:  # until it searches
        time.sleep(0.01)
    run.kill()
    run.join()
    _, left = psutil.wait_procs(works, timeout=30)
    for each in left:
        each.kill()
    assert len(works) == 2 and not left


def starts_again(told):
    """Another process whenever one ends."""
    while True:
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        told.send(process.pid)
        process.wait()


def test_nothing_is_left_of_a_work_that_starts_something_again_when_it_ends(monkeypatch):
    monkeypatch.setattr(apart_module, "ENDS_S", 0.5)
    here, there = multiprocessing.get_context(FORK).Pipe()
    work = Apart(600, starts_again, there)
    numbers = [here.recv()]
    work.stop()
    while here.poll():
        numbers.append(here.recv())
    assert len(numbers) > 1 and wait_for(lambda: not still_running(numbers))


def test_half_a_surrogate_pair_in_an_output_can_be_written(tmp_path):
    outputs = [nbformat.v4.new_output("error", ename="E", evalue="\ud800", traceback=["a \udfff", "é 𝄞"])]
    cell = nbformat.v4.new_code_cell(outputs=writable(outputs))
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "a.ipynb")
    assert cell.outputs[0].evalue == "?" and cell.outputs[0].traceback == ["a ?", "é 𝄞"]
    plain = [nbformat.v4.new_output("stream", text="é 𝄞")]
    assert writable(plain) is plain


def test_a_notebook_with_one_is_made_such_that_it_can_be_written(tmp_path, monkeypatch):
    def run(self, cell, resources, index):
        cell.outputs = [nbformat.v4.new_output("stream", text="\ud800")]
        return cell, resources

    monkeypatch.setattr(ExecuteToTheEnd, "preprocess_cell", run)
    assert [each[0].text for each in executed(tmp_path, "1")] == ["?"]


@pytest.mark.parametrize(("jobs", "at_a_time"), [(None, 11), (1, 1), (3, 3)])
def test_unless_told_otherwise_more_at_a_time_than_there_are_cores(jobs, at_a_time, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(alone, "cores", lambda: 7)
    monkeypatch.setattr(batch, "Gradings", lambda *given: SimpleNamespace(run=lambda folders, jobs: asked.append(jobs)))
    course = SimpleNamespace(root=tmp_path, assignment="hw", folder=lambda step: tmp_path / step)
    batch.Batch.grade(course, jobs=jobs)
    assert asked == [at_a_time]


OWN = """from nbgrader.preprocessors import OverwriteCells
class Own(OverwriteCells):
    pass
c = get_config()
c.Autograde.sanitize_preprocessors = [
    "nbgrader.preprocessors.ClearOutput", "course_lib.grading.restore.RestoreCells", Own, OverwriteCells,
]
"""


def test_what_a_rebuilt_notebook_has_is_not_done_again_and_a_course_keeps_its_own_preprocessors(tmp_path):
    (tmp_path / "nbgrader_config.py").write_text(OWN, encoding="utf-8")
    settings = for_rebuilt(open_course(tmp_path))
    assert [each.__name__ for each in settings.Autograde.sanitize_preprocessors] == ["ClearOutput", "Own"]
    before = [each.__name__ for each in Autograde().autograde_preprocessors]
    after = [each.__name__ for each in settings.Autograde.autograde_preprocessors]
    assert before == [*after, "CheckCellMetadata"] and {"Execute", "SaveAutoGrades", "AssignLatePenalties"} < {*after}


def test_a_course_whose_preprocessors_are_all_done_keeps_them(tmp_path):
    """nbconvert fails where there is none."""
    only = "c.Autograde.sanitize_preprocessors = ['nbgrader.preprocessors.OverwriteCells']"
    (tmp_path / "nbgrader_config.py").write_text(f"c = get_config()\n{only}\n", encoding="utf-8")
    settings = for_rebuilt(open_course(tmp_path))
    assert [each.__name__ for each in settings.Autograde.sanitize_preprocessors] == ["OverwriteCells"]
    assert settings.Exporter.optimistic_validation


def test_gradebooks_of_one_course_share_an_engine_and_forked_processes_what_it_has_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")  # nbgrader calls Alembic
    url = f"sqlite:///{tmp_path}/gradebook.db"
    with Gradebook(url) as first, Gradebook(url) as second:
        assert first.engine is second.engine
        first.update_or_create_student("anna")
        with Gradebook(f"sqlite:///{tmp_path}/another.db") as other:
            assert other.engine is not first.engine and not other.students
        compiled = len(first.engine._compiled_cache)
        assert compiled and apart(60, adds, url, "ben") == compiled * (FORK == "fork")
        assert [each.id for each in second.students] == ["anna", "ben"]


def test_a_gradebook_that_could_not_be_opened_can_be_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")  # nbgrader calls Alembic
    Gradebook(f"sqlite:///{tmp_path}/good.db").close()
    (tmp_path / "gradebook.db").write_text("no database, and long enough to be read as one " * 100, encoding="utf-8")
    with pytest.raises(DatabaseError):
        Gradebook(f"sqlite:///{tmp_path}/gradebook.db")
    (tmp_path / "good.db").replace(tmp_path / "gradebook.db")
    Gradebook(f"sqlite:///{tmp_path}/gradebook.db").close()


def test_a_gradebook_in_memory_is_a_copy_of_its_own_that_ends_with_its_block(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")  # nbgrader calls Alembic
    with Gradebook(f"sqlite:///{tmp_path}/file.db") as file:
        file.update_or_create_student("zoe")
    with in_memory(tmp_path / "file.db") as url:
        with Gradebook(url) as copy:
            copy.update_or_create_student("anna")
            copy.db.add(Student(id="ben"))
            copy.db.flush()  # and not yet committed, as a preprocessor of a course may leave it when it opens another
            with Gradebook(url) as beside:
                assert len(beside.students) == 3
        with Gradebook(url) as copy, in_memory(tmp_path / "file.db") as another, Gradebook(another) as other:
            assert {each.id for each in copy.students} == {"anna", "zoe"}
            assert [each.id for each in other.students] == ["zoe"]
    with pytest.raises(OperationalError, match="no such table"):
        Gradebook(url)
    with in_memory(tmp_path / "file.db") as again:
        assert again == url  # whose engine has compiled what was asked
    with Gradebook(f"sqlite:///{tmp_path}/file.db") as file:
        assert [each.id for each in file.students] == ["zoe"]


def test_between_two_looks_a_run_does_not_have_the_gradebook_open(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")  # nbgrader calls Alembic
    run = Gradings(SimpleNamespace(say=print, course=open_course(tmp_path)), False)

    def is_open():
        return any(each.path == str(tmp_path / "gradebook.db") for each in psutil.Process().open_files())

    for _ in range(2):
        with run._gradebook() as gradebook:
            assert not gradebook.students and is_open()
        assert not is_open()


def adds(url, student):
    """How much was compiled before."""
    compiled = len(nbgrader.api.create_engine(url, echo=False, future=True)._compiled_cache)
    with Gradebook(url) as gradebook:
        gradebook.update_or_create_student(student)
    return compiled


def test_the_cores_are_those_that_this_process_may_use():
    assert cores() == (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())


def with_less() -> tuple:
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (2**32, 2**32))  # less than a work's, which cannot be set any more
    apart_module._limit()
    return resource.getrlimit(resource.RLIMIT_DATA)[1], resource.getrlimit(resource.RLIMIT_FSIZE)[1]


@pytest.mark.skipif(sys.platform != "linux", reason="these limits are Linux's")
def test_a_process_that_has_less_memory_already_has_the_other_limit_all_the_same():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(with_less) == (2**32, apart_module.LARGEST_FILE)
