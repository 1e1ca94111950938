"""The suite notices every bug: here those of the files that changed since all were caught, with --all-bugs all."""

import json
import subprocess
import sys

import pytest
from planting import HERE, LIBRARY, bugs_of, changed, files, with_bug

EVERY = [bug for file in files() for bug in bugs_of(file)]


def pytest_generate_tests(metafunc):
    if "bug" in metafunc.fixturenames:
        chosen = files() if metafunc.config.getoption("--all-bugs") else changed()
        metafunc.parametrize("bug", [bug for bug in EVERY if bug.file in chosen], ids=str)


@pytest.fixture(scope="session")
def planter():
    """A process that tries one bug after another."""
    command = [sys.executable, HERE / "planter.py"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE) as process:
        yield process  # then its input is closed, which ends it


def test_a_planted_bug_is_caught(planter, bug, record_property):
    print(json.dumps(bug._asdict()), file=planter.stdin, flush=True)
    answer = json.loads(planter.stdout.readline())
    assert answer["code"] != 0, f"no test of {bug.tests} noticed"
    assert answer["code"] == 1, f"the tests did not run to a failure: exit code {answer['code']}\n{answer['log']}"
    record_property("witness", answer["failed"][0])


def test_every_bug_can_be_planted():
    failures = []
    for bug in EVERY:
        try:
            with_bug((LIBRARY / bug.file).read_text(encoding="utf-8"), bug)
        except (OSError, SyntaxError, ValueError) as error:
            failures.append(f"{bug}: {error}")
    assert not failures, "\n".join(failures)


def test_there_are_bugs_in_every_framework_and_in_the_neutral_modules():
    frameworks = ("numpy", "torch", "tensorflow")
    places = [place if (place := bug.file.split("/")[0]) in frameworks else "neutral" for bug in EVERY]
    for place in (*frameworks, "neutral"):
        assert places.count(place) >= 40, place
