"""A lecture is run again after every change on which its outputs depend, and after no other."""

import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support import came_out

TESTS = Path(__file__).parents[1]
RUNNING = {"tests/conftest.py", "tests/lectures/test_execution.py", "tests/support/lecture_process.py"}


def cell(source="print(0.25)", text="0.25\n", **changes):
    output = {"output_type": "stream", "name": "stdout", "text": [text]}
    found = {"cell_type": "code", "id": "a", "metadata": {}, "source": source, "outputs": [output]}
    return found | {"execution_count": 1} | changes


def write(path, *cells):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))


@pytest.fixture(autouse=True)
def no_other_repository(monkeypatch):
    """As a hook of git's names one."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A checkout of two lectures, both recorded."""
    monkeypatch.setattr(came_out, "ROOT", tmp_path)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / "packages"))
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    for name in (
        *RUNNING,
        "course_lib/torch/attention.py",
        "course_lib/training/loop.py",
        "course_lib/grading/marks.py",
        "notebooks/experiments/recorded/a.json",
        "notebooks/live/a.svg",
        "packages/torch-2.13.0+cpu.dist-info/METADATA",
        "packages/pip-23.2.dist-info/METADATA",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("# as it was\n")
    (tmp_path / ".gitignore").write_text("__pycache__/\n/packages/\n")
    prose = {"cell_type": "markdown", "id": "b", "metadata": {}, "source": "A quarter."}
    write(tmp_path / "notebooks" / "11-first.ipynb", prose, cell())
    write(tmp_path / "notebooks" / "12-second.ipynb", cell("1", "1"))
    subprocess.run(["git", "add", "--all"], cwd=tmp_path, check=True)
    came_out.record(came_out.fingerprints(), [])
    assert came_out.unchanged() == {"11-first", "12-second"}
    return tmp_path


@pytest.mark.parametrize(
    "changed",
    [
        cell(text="0.26\n"),
        cell("print(0.250)"),
        cell(metadata={"tags": ["nbval-skip"]}),
        cell(execution_count=None),  # nbval compares only what has run
        cell(outputs=[]),
        cell(cell_type="markdown"),
    ],
)
def test_a_lecture_whose_code_or_output_changed_is_run(course, changed):
    write(course / "notebooks" / "11-first.ipynb", changed)
    assert came_out.unchanged() == {"12-second"}


def test_a_lecture_whose_prose_changed_is_not_run(course):
    prose = {"cell_type": "markdown", "id": "c", "metadata": {}, "source": "One in four."}
    write(course / "notebooks" / "11-first.ipynb", cell(id="d", metadata={"collapsed": True}, execution_count=7), prose)
    assert came_out.unchanged() == {"11-first", "12-second"}


@pytest.mark.parametrize(
    "name",
    [
        *sorted(RUNNING),
        "course_lib/torch/attention.py",
        "course_lib/training/loop.py",
        "course_lib/training/new.txt",
        "notebooks/experiments/recorded/a.json",
        "notebooks/experiments/new.ipynb",
    ],
)
def test_all_are_run_after_a_change_of_what_they_use(course, name):
    path = course / name
    path.write_text("# as it is\n")
    assert came_out.unchanged() == set()
    path.unlink()
    assert len(came_out.fingerprints()) == 2 and len(came_out.unchanged()) == (2 if "new" in name else 0)


EXPERIMENTS = {
    "small": "from notebooks.experiments import harness, plots",
    "smaller": "from notebooks.experiments import harness",
    "harness": "",
    "plots": "import small",
}


@pytest.mark.parametrize("code", ["from notebooks.experiments import small", ["x = [\n", "'recorded/small.json']"]])
def test_a_lecture_is_run_after_a_change_of_an_experiment_that_it_names_or_that_these_name(course, code):
    folder, second = course / "notebooks" / "experiments", course / "notebooks" / "12-second.ipynb"
    for name, text in EXPERIMENTS.items():
        (folder / f"{name}.py").write_text(text)
        (folder / "recorded" / f"{name}.json").write_text("{}")
    (folder / "recorded" / "small").mkdir()
    write(second, cell(code), cell("1"))
    came_out.record(came_out.fingerprints(), [])
    for name in (
        "small.py",
        "plots.py",
        "harness.py",
        "recorded/small.json",
        "recorded/plots.json",
        "recorded/small/runs.npz",
        "recorded/small/small.py",
    ):
        before = (folder / name).read_text() if (folder / name).exists() else None
        (folder / name).write_text("# as it is")
        assert came_out.unchanged() == {"11-first"}, name
        (folder / name).unlink() if before is None else (folder / name).write_text(before)
        assert came_out.unchanged() == {"11-first", "12-second"}, name
    for name in ("smaller.py", "recorded/smaller.json", "new.py"):
        (folder / name).write_text("# as it is")
        assert came_out.unchanged() == {"11-first", "12-second"}, name
    for name in ("__init__.py", "recorded/__init__.py", "recorded/a.json", "tables/a.csv"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("# as it is")
        assert came_out.unchanged() == set(), name
        came_out.record(came_out.fingerprints(), [])


@pytest.mark.parametrize(
    "name",
    ["course_lib/grading/marks.py", "course_lib/__pycache__/a.pyc", "notebooks/live/a.svg", "tests/test_a.py", "a.md"],
)
def test_none_is_run_after_a_change_of_what_they_cannot_use(course, name):
    (course / name).parent.mkdir(exist_ok=True)
    (course / name).write_text("# as it is\n")
    assert came_out.unchanged() == {"11-first", "12-second"}


def test_all_are_run_with_another_package_or_version(course):
    packages = course / "packages"
    (packages / "pip-23.2.dist-info").rename(packages / "pip-26.0.dist-info")
    assert len(came_out.unchanged()) == 2
    (packages / "jax-0.9.dist-info").mkdir()
    assert came_out.unchanged() == set()
    (packages / "jax-0.9.dist-info").rmdir()
    assert len(came_out.unchanged()) == 2
    (packages / "torch-2.13.0+cpu.dist-info").rename(packages / "torch-2.13.1+cpu.dist-info")
    assert came_out.unchanged() == set()


@pytest.mark.parametrize("name", ["python_version", "system", "machine"])
def test_all_are_run_with_another_python_or_system(course, monkeypatch, name):
    monkeypatch.setattr(platform, name, lambda: "another")
    assert came_out.unchanged() == set()


@pytest.mark.parametrize("name", ["COURSE_DATA_SOURCE", "COURSE_DEVICE"])
def test_all_are_run_with_another_setting(course, monkeypatch, name):
    monkeypatch.setenv(name, "another")
    assert came_out.unchanged() == set()


@pytest.mark.parametrize("text", [None, "{", "[]", '"11-first"', '{"11-first": null}', b"\xff"])
def test_all_are_run_without_a_record_that_can_be_read(course, text):
    path = course / came_out.RECORD
    path.unlink()
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert came_out.unchanged() == set()


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"cells": [{"cell_type": "code"}]}', '{"cells": 1}'])
def test_a_lecture_that_cannot_be_read_is_run(course, text):
    (course / "notebooks" / "11-first.ipynb").write_text(text)
    assert came_out.unchanged() == {"12-second"}


def test_all_are_run_where_git_does_not_know_the_files(course, monkeypatch):
    for folder in (course / ".git", course / "notebooks" / "experiments", course / "tests", course / "course_lib"):
        shutil.rmtree(folder)
    subprocess.run(["git", "init", "-q"], cwd=course, check=True)
    assert came_out.fingerprints() == {}  # as in a folder that the repository around it ignores
    shutil.rmtree(course / ".git")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(course.parent))
    assert came_out.fingerprints() == {} and came_out.unchanged() == set()
    (course / "tests").mkdir()
    (course / "tests" / "conftest.py").touch()
    (course / "git").write_text("#!/bin/sh\nprintf 'tests/conftest.py\\0'; exit 1\n")
    (course / "git").chmod(0o755)
    for path in (str(course), ""):  # a git that stops half-way, and none
        monkeypatch.setenv("PATH", path)
        assert came_out.fingerprints() == {}


def test_to_record_one_leaves_the_others(course):
    write(course / "notebooks" / "11-first.ipynb", cell("2", "2"))
    (course / "notebooks" / "12-second.ipynb").rename(course / "notebooks" / "13-third.ipynb")
    now, before = came_out.fingerprints(), came_out.recorded()
    came_out.record({"13-third": now["13-third"]}, [])
    assert came_out.recorded() == {"11-first": before["11-first"], "13-third": now["13-third"]}  # the second is gone
    came_out.record(now, ["13-third"])
    assert came_out.recorded() == {"11-first": now["11-first"]} and came_out.unchanged() == {"11-first"}


def test_of_this_course_the_files_are_found():
    """All lectures have a fingerprint, each its own, and git finds whatever they are said to use."""
    found = came_out.fingerprints()
    assert len(found) > 20 and len(set(found.values())) == len(found)
    assert found == came_out.fingerprints()
    listed = subprocess.check_output(["git", "ls-files", *came_out.FILES], cwd=TESTS.parent, text=True).splitlines()
    assert RUNNING <= set(listed) and "course_lib/torch/attention.py" in listed
    assert any(name.startswith("notebooks/experiments/recorded/") for name in listed)


STANDS_IN = {
    "course_lib/__init__.py": "",
    "course_lib/numpy.py": "",
    "course_lib/torch.py": "",
    "course_lib/tensorflow.py": "",
    "course_lib/lecture/__init__.py": "",
    "course_lib/lecture/show.py": "CLAIM = 'claim'\n",
    "tensorflow.py": "",
    "keras.py": "",
    "torch/__init__.py": "",
    "torch/nn.py": "",
    "absl.py": "",
}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Our tests of lectures with five small ones, and with empty modules for the library and the frameworks."""
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("__pycache__/\n")
    for name, text in STANDS_IN.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    support = [f"tests/support/{name}.py" for name in ("__init__", "came_out", "lecture_files", "lecture_process")]
    for name in (*RUNNING, *support, "tests/__init__.py", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TESTS.parent / name, tmp_path / name)
    changes = "from pathlib import Path\nn = Path('../course_lib/numpy.py').write_text('1')"
    for name, notebook in (
        ("11-right", cell()),
        ("12-wrong", cell(text="0.26\n")),
        ("13-unnamed", cell()),
        ("14-recorded", cell()),
        ("15-changes", cell(changes, outputs=[])),
    ):
        write(tmp_path / "notebooks" / f"{name}.ipynb", notebook)
    monkeypatch.setattr(came_out, "ROOT", tmp_path)
    now = {"14-recorded": came_out.fingerprints()["14-recorded"]}
    (tmp_path / came_out.RECORD).write_text(json.dumps({"12-wrong": "before", "13-unnamed": "before"} | now))
    return tmp_path


def run(checkout, *arguments):
    """What pytest says of the lectures, and what is recorded then."""
    hidden = ("PYTEST_", "PYTHONPATH", "COURSE_")  # of the run around this one
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "xdist", "tests/lectures/test_execution.py"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    said = subprocess.run([*command, *arguments], cwd=checkout, env=environment, check=False, **streams).stdout
    return said, json.loads((checkout / came_out.RECORD).read_text())


def test_lectures_that_came_out_again_are_recorded_and_not_run_again(checkout):
    before = came_out.recorded()
    said, now = run(checkout, "--all-lectures", "--setup-plan", "-k", "recorded")
    assert "SETUP    M nbval" in said and "skipped" not in said and now == before, said
    said, now = run(checkout, "--record-lectures", "-n", "1", "-k", "comes_out_again and not unnamed")
    assert "1 failed, 2 passed, 1 skipped" in said and "--all-lectures` runs it" in said, said
    assert "3 of 4 lectures ran." in said and "now has the 1 that came out again" in said, said
    assert "Not 15-changes: files changed meanwhile" in said
    assert now.pop("11-right") != before.pop("12-wrong") and now == before
    (checkout / "course_lib" / "numpy.py").write_text("")
    assert came_out.unchanged() == {"11-right", "14-recorded"}
