"""The suite notices every bug: here those of the files that changed since all were caught, with --all-bugs all."""

import ast
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


def is_plain(statement: ast.stmt) -> bool:
    """Whether nothing is computed or decided: an import, a docstring, a name or a table, a class of nothing else."""
    if isinstance(statement, ast.ClassDef):
        return all(map(is_plain, statement.body))
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return not any(isinstance(node, (ast.Call, ast.IfExp, ast.comprehension)) for node in ast.walk(statement))
    return isinstance(statement, (ast.Import, ast.ImportFrom))


def without_bugs() -> list[str]:
    """The files of the library that have no bugs although something could be wrong in them."""
    found = []
    for path in sorted(LIBRARY.rglob("*.py")):
        file, tree = path.relative_to(LIBRARY).as_posix(), ast.parse(path.read_text(encoding="utf-8"))
        if not all(map(is_plain, tree.body)) and not bugs_of(file):
            found.append(file)
    return found


def test_every_file_of_the_library_that_computes_or_decides_has_bugs():
    bare = without_bugs()
    assert not bare, f"plant some in tests/mutation/bugs/{bare[0].removesuffix('.py')}.toml: {', '.join(bare)}"


def test_there_are_bugs_in_every_framework_and_in_the_neutral_modules():
    frameworks = ("numpy", "torch", "tensorflow")
    places = [place if (place := bug.file.split("/")[0]) in frameworks else "neutral" for bug in EVERY]
    for place in (*frameworks, "neutral"):
        assert places.count(place) >= 40, place
