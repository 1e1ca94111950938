"""nbgrader's own command line, with hidden tests outside the student's process and a kernel in the sandbox."""

import asyncio
import os
import shutil
import threading
from types import SimpleNamespace

import nbformat
import psutil
import pytest

from course_lib.grading.marking.__main__ import main
from course_lib.grading.marking.alone import gradebook_of, open_course
from course_lib.grading.marking.batch import Batch
from course_lib.grading.marking.gradings import Gradings
from course_lib.grading.outside import prepared, tests
from course_lib.grading.outside.configured import OFF, REQUIRED
from course_lib.grading.outside.execute import ExecuteOutside
from course_lib.grading.sandbox import warm
from course_lib.grading.sandbox.provisioner import SandboxProvisioner
from course_lib.grading.sandbox.view import SandboxMissing
from tests.support.course import ASSIGNMENT, ROOT, filled_in, generated_course, grade_id, maximum, reference_answers
from tests.support.sandbox import NEEDS_SANDBOX, wait_for

pytestmark = NEEDS_SANDBOX
LAST = "multi-head-attention"
ENDS_IN_A_CALL = "import os\ndef padding_mask(ids, pad_id=0):\n    os._exit(1)"
ENDS_IN_A_CELL = "import os\nos._exit(1)"
WORD = "'hid' 'den'"  # what it looks for, in pieces, so that it does not find itself
CURIOUS = f"\nprint('tests', [each[:40] for each in In if {WORD} in each], [n for n in dir() if {WORD} in n])"
WHERE = "\nimport os\nprint('folder', os.getcwd(), os.environ.get('COURSE_GRADING_SEED'))"
SHOWS_INPUT = "\ndef split_heads(x, n_heads):\n    raise ValueError(x[0, 0])"


WORKS = {
    "curious": {LAST: CURIOUS + WHERE},
    "ends-in-a-call": {"padding-mask": ENDS_IN_A_CALL},
    "ends-in-a-cell": {"padding-mask": ENDS_IN_A_CELL},
    "shows-1": {"split-heads": SHOWS_INPUT},
    "shows-2": {"split-heads": SHOWS_INPUT},
}


class Graded:
    """A course in which a student is graded when a test first asks."""

    def __init__(self, course):
        self.course, self.done = course, set()
        self.most = maximum(course.source)
        answers = reference_answers(course.source)
        for student, cells in WORKS.items():
            own = {name: code if name == "padding-mask" else answers[name] + code for name, code in cells.items()}
            course.submit(student, filled_in(course.release, answers | own))

    def grade(self, student: str, *options: str, ok=True) -> str:
        self.done.add(student)
        return self.course.nbgrader("autograde", ASSIGNMENT, "--student", student, *options, ok=ok)

    def scores(self, student: str) -> dict[str, float]:
        if student not in self.done:
            self.grade(student, "--force")  # another test may have graded it in its own way
        scores = self.course.scores(student)
        return {name: scores[name] for name in self.most}

    def shown(self, student: str, name: str) -> str:
        """What a cell showed."""
        if student not in self.done:
            self.grade(student, "--force")  # another test may have graded it in its own way
        path = self.course.root / "autograded" / student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
        cell = next(cell for cell in nbformat.read(path, as_version=4).cells if grade_id(cell) == name)
        return "\n".join(output.get("text", "") or "\n".join(output.get("traceback", [])) for output in cell.outputs)


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A course with all works handed in."""
    return Graded(generated_course(tmp_path_factory.mktemp("outside")))


def test_no_test_ever_enters_the_students_process(graded):
    assert "tests [] []" in graded.shown("curious", LAST)
    assert graded.scores("curious") == graded.most


def test_the_kernel_is_in_the_sandbox_and_knows_no_seed(graded):
    assert "folder /tmp/work None" in graded.shown("curious", LAST)


@pytest.mark.parametrize("student", ["ends-in-a-call", "ends-in-a-cell"])
def test_who_ends_a_kernel_loses_that_part_alone(graded, student):
    assert graded.scores(student) == graded.most | {"test-padding-mask": 0}
    if student == "ends-in-a-cell":
        assert "the code ended its own kernel" in graded.shown(student, "padding-mask")


def test_the_report_says_what_happened(graded):
    said = " ".join(graded.shown("ends-in-a-call", "test-padding-mask").split())
    assert "0 of 2 points" in said and said.count("Your code ended the process that it runs in.") == 2
    assert "`padding_mask` ended its process in earlier tests" in said


def test_inputs_are_other_ones_for_other_students_and_the_same_when_graded_again(graded):
    shown = [graded.shown(f"shows-{n}", "test-split-heads") for n in (1, 2)]
    assert all("ValueError" in each for each in shown) and shown[0] != shown[1]
    graded.grade("shows-1", "--force")
    assert graded.shown("shows-1", "test-split-heads") == shown[0]
    data = graded.course.root / "submitted" / "shows-1" / ASSIGNMENT / "answers.json"
    data.write_text("[]")  # what was printed of the inputs is of no use in a file, either
    graded.grade("shows-1", "--force")
    data.unlink()
    assert graded.shown("shows-1", "test-split-heads") not in shown


def test_feedback_has_the_report(graded):
    graded.scores("curious")
    graded.course.nbgrader("generate_feedback", ASSIGNMENT, "--student", "curious")
    page = graded.course.root / "feedback" / "curious" / ASSIGNMENT / f"{ASSIGNMENT}.html"
    assert "each query sees itself and the past" in page.read_text()


def test_without_a_sandbox_nothing_is_graded_unless_that_is_wanted(graded, tmp_path, monkeypatch):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "env"):
        (programs / name).symlink_to(shutil.which(name, path="/usr/bin:/bin"))
    monkeypatch.setenv("PATH", str(programs))  # and of this environment's own programs; see `Course`
    said = graded.grade("curious", "--force", ok=False)
    assert "There is no sandbox on this machine. Install bubblewrap" in said and "'off'" in said
    monkeypatch.setenv("COURSE_GRADING_SANDBOX", "off")
    graded.grade("curious", "--force")
    assert graded.scores("curious") == graded.most
    assert f"folder {graded.course.root}" in graded.shown("curious", LAST)
    monkeypatch.undo()
    graded.done.discard("curious")


def test_an_assignment_that_nobody_has_named_is_not_graded_by_nbgrader_either_unless_as_nbgrader_does(graded):
    path = graded.course.root / "nbgrader_config.py"
    config = path.read_text()
    named = f"c.ExecuteOutside.assignments['misspelt'] = c.ExecuteOutside.assignments.pop({ASSIGNMENT!r})\n"
    try:
        path.write_text(config + named)
        said = graded.course.nbgrader("autograde", ASSIGNMENT, "--force", ok=False)
        assert said.count(f"Nothing is graded: nbgrader_config.py names {ASSIGNMENT!r} neither in") == 1
        assert said.count("'misspelt' is no assignment of this course") == 1 and "Traceback" not in said
        assert said.count(f"has removed the executed notebook of {min(WORKS)!r} first, if there was one") == 1
        started = {line for line in said.splitlines() if "Creating/updating student" in line}
        assert len(started) == 1 < len(WORKS)  # no second one, and of the first nothing is left
        assert not (graded.course.root / "autograded" / min(WORKS) / ASSIGNMENT).exists()
        path.write_text(config + named + f"c.ExecuteOutside.as_nbgrader = [{ASSIGNMENT!r}]\n")
        graded.grade("curious", "--force")
        assert graded.scores("curious") == graded.most
        assert "tests [] []" not in graded.shown("curious", LAST)
    finally:
        path.write_text(config)
        graded.done.clear()


LOOKS = "import sys\nprint('there', 'numpy' in sys.modules)\n"  # in the first cell, before anything is imported


@pytest.fixture
def two(tmp_path, monkeypatch):
    """A course whose kernels are to be warm, with works of two students, both right; nobody gets feedback."""
    course = generated_course(tmp_path / "warm")
    for name, value in course._environment("instructor").items():
        monkeypatch.setenv(name, value)
    configured(course, "c.Execute.timeout, c.Execute.startup_timeout = 1800, 600")
    configured(course, f"c.ExecuteOutside.warm = {{{ASSIGNMENT!r}: ['numpy', 'numpy.random']}}")
    for student in ("anna", "ben"):
        work = filled_in(course.release, reference_answers(course.source))
        work.cells.insert(0, nbformat.v4.new_code_cell(LOOKS + f"print({student!r})"))
        course.submit(student, work)
    monkeypatch.setattr(warm, "_parents", {})
    monkeypatch.setattr(Batch, "_feedback", lambda self, gradebook, jobs: None)
    yield course
    warm.end_parents()


@pytest.fixture
def makers(tmp_path, monkeypatch):
    """A file in which the number of every process stands that has started to import what kernels are forked from."""
    starts, makers = warm.Parent.__init__, tmp_path / "makers"
    makers.touch()

    def noted(self, kind):
        with makers.open("a") as file:  # a forked process writes here, too
            file.write(f"{os.getpid()}\n")
        starts(self, kind)

    monkeypatch.setattr(warm.Parent, "__init__", noted)
    return makers


def configured(course, line):
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write(line + "\n")


def first_shown(course, student):
    path = course.root / "autograded" / student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    return nbformat.read(path, as_version=4).cells[0].outputs[0].text.splitlines()


def test_all_kernels_of_a_batch_can_start_from_one_that_has_imported_and_ends_with_it(two, makers, capsys):
    """And a batch with nothing new imports nothing."""
    assert main([ASSIGNMENT, "--course", str(two.root), "--jobs", "2"]) == 0
    assert "started cold" not in capsys.readouterr().out
    assert makers.read_text() == f"{os.getpid()}\n"
    for student in ("anna", "ben"):
        assert first_shown(two, student) == ["there True", student]
        scores = two.scores(student)
        assert {name: scores[name] for name in maximum(two.source)} == maximum(two.source)
    assert not warm._parents
    assert main([ASSIGNMENT, "--course", str(two.root)]) == 0 and "0 graded now" in capsys.readouterr().out
    assert makers.read_text() == f"{os.getpid()}\n"


def test_what_each_grading_would_do_is_done_once_before_any_begins(two):
    """Hidden tests are compiled, and the schemas of notebooks read."""
    tests.compiled.cache_clear()
    tests.names_asked_for.cache_clear()
    nbformat.validator.validators.clear()
    batch = Batch(two.root, ASSIGNMENT)
    Gradings(batch, force=False).run([], 1)
    read = len(nbformat.validator.validators)
    hidden = prepared.hidden_tests(
        {"db_url": batch.course.coursedir.db_url, "notebook": ASSIGNMENT, "assignment": ASSIGNMENT}
    )
    for source in hidden.values():
        body, last = tests.compiled(source)
        tests.names_asked_for(source)
    for relaxed in (False, True):
        nbformat.validate(nbformat.v4.new_notebook(), relax_add_props=relaxed)
    for kept in (tests.compiled, tests.names_asked_for):
        assert kept.cache_info().misses == len(hidden) <= kept.cache_info().hits and hidden
    assert len(nbformat.validator.validators) == read


@pytest.mark.parametrize("slip", ["def (", "", "if True: pass", "break\n1"])
def test_hidden_tests_with_a_slip_are_named_before_anybody_is_graded(two, slip, capsys):
    with gradebook_of(open_course(two.root)) as gradebook:
        cells = gradebook.find_notebook(ASSIGNMENT, ASSIGNMENT).source_cells
        cell = next(cell for cell in cells if cell.name in maximum(two.source) and "hidden_tests" in cell.source)
        name, cell.source = cell.name, slip
        gradebook.db.commit()
    assert main([ASSIGNMENT, "--course", str(two.root)]) == 2
    said = capsys.readouterr().err
    assert f"The hidden tests of {name!r} in {ASSIGNMENT!r} cannot run: " in said and "generate_assignment" in said
    assert not (two.root / "autograded").exists()


def test_where_that_one_has_ended_another_takes_its_place_for_all_that_follow(two, makers, monkeypatch):
    ends = Gradings._end

    def ends_and_kills(self, *job):
        ends(self, *job)
        for parent in warm._parents.values():
            for first in psutil.Process(parent.process.pid).children():
                first.kill()
            assert wait_for(lambda parent=parent: parent.is_gone)

    monkeypatch.setattr(Gradings, "_end", ends_and_kills)
    assert main([ASSIGNMENT, "--course", str(two.root), "--jobs", "1"]) == 0
    assert makers.read_text() == f"{os.getpid()}\n" * 2


def test_the_courses_kernels_start_with_the_frameworks_that_an_assignment_allows_but_for_tensorflow():
    settings = ExecuteOutside(parent=open_course(ROOT / "assignments"))
    assert settings.warm[ASSIGNMENT] == ["numpy"]
    for name, packages in settings.assignments.items():
        assert settings.warm[name] == [each for each in ("numpy", "torch") if each in packages], name


def test_where_a_kernel_cannot_be_warm_it_starts_cold_and_that_is_said(two, capsys):
    configured(two, f"c.ExecuteOutside.warm = {{{ASSIGNMENT!r}: ['numpy', 'no_such_module']}}")
    assert main([ASSIGNMENT, "--course", str(two.root), "--jobs", "2"]) == 0
    said = capsys.readouterr().out
    assert "c.ExecuteOutside.warm has no effect, kernels started cold: ModuleNotFoundError: No module named" in said
    assert first_shown(two, "ben") == ["there False", "ben"]


@pytest.mark.parametrize("why", ["", "no module named 'x'"])
def test_the_frameworks_of_warm_kernels_are_imported_once_for_the_hidden_tests_of_all(why, monkeypatch):
    """And meanwhile in the sandbox, where that has begun: it would not begin beside an import of this process."""
    found, meanwhile, begun = [], [], threading.Event()

    async def prepare(self, env):
        begun.set()
        for _ in range(500):
            if len(found) < 2:
                await asyncio.sleep(0.01)
        meanwhile.extend(found)
        return why

    monkeypatch.setattr(prepared, "bubblewrap", lambda: "bwrap")
    monkeypatch.setattr(SandboxProvisioner, "begin", lambda self, env: found.append("the sandbox"))
    monkeypatch.setattr(SandboxProvisioner, "prepare", prepare)
    monkeypatch.setattr(prepared, "_have", lambda name: begun.wait(60) and not found.append(name))
    settings = SimpleNamespace(
        sandbox=REQUIRED, assignments={"hw": []}, warm={"hw": ["x", "torch"]}, sandbox_settings=lambda *_: {}
    )
    assert prepared.prepare_sandbox(settings, "hw", "/") == why and found == meanwhile == ["the sandbox", "torch"]


def test_without_a_sandbox_nothing_is_imported_for_warm_kernels_and_each_grading_says_why(monkeypatch):
    def missing():
        raise SandboxMissing("none")

    monkeypatch.setattr(prepared, "bubblewrap", missing)
    monkeypatch.setattr(prepared, "_have", None)
    settings = SimpleNamespace(sandbox=REQUIRED, assignments={"hw": []}, warm={"hw": ["torch"]})
    assert prepared.prepare_sandbox(settings, "hw", "/") == ""


@pytest.mark.parametrize(("sandbox", "ends"), [(REQUIRED, "immediate"), (OFF, "graceful")])
def test_a_kernel_is_killed_where_all_that_it_started_ends_with_it(sandbox, ends):
    running = ExecuteOutside(assignments={"hw": []}, sandbox=sandbox)
    running._assignment, running._packages, running._root = "hw", [], "/"
    running.create_kernel_manager()
    assert running.shutdown_kernel == ends


def test_a_warm_kernel_has_what_answers_and_a_cold_one_has_nothing():
    settings = ExecuteOutside(assignments={"warm": [], "cold": []}, warm={"warm": ["numpy"]})
    found = [settings.sandbox_settings(each, "/")["warm"] for each in ("warm", "cold")]
    assert found == [["numpy", "course_lib.grading.answering"], []]


def test_a_signal_that_ends_a_run_ends_it_while_a_framework_is_imported_and_an_error_does_not(monkeypatch):
    asked = []

    def fails(name):
        asked.append(name)
        raise {"a": SystemExit, "b": RuntimeError}[name]

    monkeypatch.setattr(prepared.importlib, "import_module", fails)
    prepared._have.cache_clear()
    with pytest.raises(SystemExit):
        prepared._have("a")
    assert prepared._have("b") is prepared._have("b") is False and asked == ["a", "b"]
    prepared._have.cache_clear()
