"""The test files run in any order and alone: no two want the same module name, and none relies on another's.

What tests share is the package `tests.support`. The programmes with tests beside them, `make mutation` and
`make bench`, import the modules of their own folder.
"""

import ast
import os
import subprocess
import sys
from collections import Counter
from importlib import metadata
from pathlib import Path

TESTS = Path(__file__).parents[1]
FILES = sorted(path for path in TESTS.rglob("*.py") if "variants" not in path.parts)
SUPPORT, PROGRAMMES = TESTS / "support", (TESTS, TESTS / "mutation", TESTS / "benchmarks")
HELPERS = {path.stem: path for path in FILES if not path.stem.startswith(("test_", "__")) and path.stem != "conftest"}


def imported(path):
    """The first part of every module name that a file imports, also inside its functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0]


def test_no_two_files_have_one_name():
    """pytest puts each folder on the path, so that of two modules with one name the second is never imported."""
    counted = Counter(path.stem for path in FILES if path.stem not in ("conftest", "__init__"))
    assert "backends" in counted and "test_masks" in counted
    assert [name for name, times in counted.items() if times > 1] == []


def test_no_helper_has_the_name_of_a_module_from_elsewhere():
    elsewhere = sys.stdlib_module_names | metadata.packages_distributions().keys() | {"course_lib"}
    assert HELPERS.keys() & elsewhere == set()


def test_nobody_imports_conftest():
    """Every folder has one, and whose it would be depends on the order."""
    assert [path.name for path in FILES if "conftest" in imported(path)] == []


def test_a_helper_stands_in_support():
    beside = [path for path in HELPERS.values() if path.parent not in (SUPPORT, *PROGRAMMES)]
    assert HELPERS["backends"].parent == SUPPORT and beside == []


def test_a_helper_is_imported_from_support():
    """By a name of its own alone it would be found only if its folder happens to be on the path."""
    foreign = [
        f"{path.relative_to(TESTS)} imports {name}"
        for path in FILES
        for name in set(imported(path)) & HELPERS.keys()
        if HELPERS[name].parent != path.parent or path.parent == SUPPORT
    ]
    assert foreign == []


def test_all_files_are_collected_in_reversed_order():
    """Of a run of all tests, every second process has done so; where it could not, no test has begun."""
    files = [str(path) for path in sorted(FILES, reverse=True) if path.stem.startswith("test_")]
    done = Path(os.environ["COURSE_TESTS_SHARED"], "collected-backwards")
    if done.exists() and done.read_text(encoding="utf-8").splitlines() == files:
        return
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", *files]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # the plugins take seconds and collect nothing here
    collected = subprocess.run(command, cwd=TESTS.parent, env=alone, capture_output=True, text=True, check=False)
    assert collected.returncode == 0, collected.stdout[-3000:] + collected.stderr[-3000:]
