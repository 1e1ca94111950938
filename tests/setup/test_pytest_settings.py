"""The settings of the tests: which library is tested, from whatever folder, and what is said of planted bugs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
MUTATION = '''
import pytest

@pytest.mark.parametrize("name", ["a.py: 1", "b.py: 1", "b.py: 2"])
def test_a_planted_bug_is_caught(name):
    if name == "b.py: 1":
        raise KeyboardInterrupt
'''
CHILD = '''
import os, subprocess, sys, warnings

def test_the_process_of_a_test_has_the_same_library(tmp_path):
    code = "import course_lib; print(course_lib.PLACE)"
    assert subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path, text=True) == "here\\n"

def test_warns():
    warnings.warn("an error here", UserWarning)
'''


@pytest.fixture
def checkout(tmp_path):
    """A checkout with our settings and a library of its own; another library would be found before it."""
    for name, place in (("checkout", "here"), ("other", "elsewhere")):
        (tmp_path / name / "course_lib").mkdir(parents=True)
        (tmp_path / name / "course_lib" / "__init__.py").write_text(f"PLACE = {place!r}\n")
    root = tmp_path / "checkout"
    for name, text in (("mutation/test_planted_bugs.py", MUTATION), ("unit/test_child.py", CHILD)):
        (root / "tests" / name).parent.mkdir(parents=True)
        (root / "tests" / name).write_text(text)
    for name in ("conftest.py", "__init__.py"):
        shutil.copy(TESTS / name, root / "tests")
    shutil.copy(TESTS.parent / "pyproject.toml", root)
    (tmp_path / "test_outside.py").write_text("import warnings\n\ndef test_warns(): warnings.warn('no error here')\n")
    return root


def start(folder, *arguments):
    """pytest in a folder, with the other library on Python's path: its process, both streams in one."""
    hidden = ("PYTEST_", "PYTHONPATH")  # of the run around this one
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    other = next(path for path in folder.parents if (path / "other").is_dir()) / "other"
    environment |= {"PYTHONPATH": str(other), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # the others take a second
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "xdist", *arguments]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def run(folder, *arguments):
    """The same to its end: the exit code, and what it says."""
    with start(folder, *arguments) as process:
        said = process.communicate()[0]
    return process.returncode, said


@pytest.mark.parametrize(("folder", "processes"), [(".", "1"), ("tests/unit", "0")])
def test_the_library_beside_the_tests_is_tested(checkout, folder, processes):
    """By the processes that the tests start, too."""
    code, said = run(checkout / folder, "-n", processes, "-k", "same_library")
    assert code == 0 and "1 passed" in said, said


def test_another_library_is_not_tested(checkout):
    code, said = run(checkout, "-o", "pythonpath=", "--import-mode=importlib", "tests/unit")
    other = checkout.parent / "other"
    assert code == pytest.ExitCode.USAGE_ERROR and "Traceback" not in said
    assert f"these tests are of {checkout / 'course_lib'}, but Python would import course_lib from {other}" in said


@pytest.mark.parametrize("rootdir", ["tests", ".."])
def test_warnings_are_errors_in_some_folders_whatever_the_root_is(checkout, rootdir):
    """And not in a test outside of all our folders."""
    settings = ("-c", "pyproject.toml", f"--rootdir={rootdir}")
    code, said = run(checkout, *settings, "tests/unit", "../test_outside.py", "-k", "test_warns")
    assert code == pytest.ExitCode.TESTS_FAILED and "1 failed, 1 passed" in said, said
    assert "UserWarning: an error here" in said


FAILURES = '''
import time
from pathlib import Path
import pytest

@pytest.fixture
def broken():
    raise OSError("no room\\nat all")

def test_error(broken): pass

def test_fails(): assert False, "the reason\\nand more"

def test_waits():
    for _ in range(60_000):
        if Path("go").exists(): return
        time.sleep(0.01)
    raise TimeoutError
'''


@pytest.mark.parametrize("processes", ["0", "1"])
def test_a_failure_is_named_with_its_reason_before_the_end(checkout, processes):
    (checkout / "tests" / "unit" / "test_failures.py").write_text(FAILURES)
    (checkout / "tests" / "unit" / "test_syntax.py").write_text("1 +")
    arguments = ("-n", processes, "--tb=no", "--no-summary")
    code, said = run(checkout, *arguments, "tests/unit/test_failures.py", "-k", "not waits")
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "\nERROR tests/unit/test_failures.py::test_error - OSError: no room\n" in said, said
    assert "\nFAILED tests/unit/test_failures.py::test_fails - AssertionError: the reason\n" in said
    code, said = run(checkout, *arguments, "tests/unit/test_syntax.py")
    assert code and "\nERROR tests/unit/test_syntax.py - E   SyntaxError: invalid syntax\n" in said, said


def test_a_run_in_several_processes_says_again_and_again_what_is_running(checkout):
    (checkout / "tests" / "unit" / "test_failures.py").write_text(FAILURES)
    conftest = checkout / "tests" / "conftest.py"
    assert "\nEVERY = 60 " in conftest.read_text()
    conftest.write_text(conftest.read_text().replace("\nEVERY = 60 ", "\nEVERY = 0.05 "))
    running = r"s: 2 tests ended, 2 failed; running: tests/unit/test_failures.py::test_waits for \d+ s\n"
    with start(checkout, "-n", "1", "tests/unit/test_failures.py") as process:
        said = ""
        while not re.search(running, said) and (line := process.stdout.readline()):
            said += line
        (checkout / "go").touch()  # what is running ends when it was named
        said += process.stdout.read()
    assert re.search(running, said) and "1 passed" in said, said


def test_an_interrupted_run_says_how_many_bugs_of_how_many_were_planted(checkout):
    """One was caught, one was interrupted, one has not begun."""
    for processes in ("0", "1"):
        code, said = run(checkout, "tests/mutation", "-n", processes)
        assert code == pytest.ExitCode.INTERRUPTED and "2 files" in said and "a.py, b.py.\n1 of their 3 bugs" in said
    code, said = run(checkout, "tests/mutation", "-k", "a.py")
    assert code == 0 and "Their 1 bugs were planted" in said, said
