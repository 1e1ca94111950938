"""Plant every bug, and record in passed.json that all were caught: what `make mutation` does.

With `--changed` only those of the files that changed since the record was written: the others are in it as they stand.
The tests that noticed run once more, on the library without a bug, and must pass there.
"""

import subprocess
import sys

import pytest
from planting import HERE, TESTS, record


class Witnesses:
    """A pytest plug-in that collects the tests that noticed."""

    def __init__(self):
        self.names = set()

    def pytest_runtest_logreport(self, report):
        self.names |= {value for name, value in report.user_properties if name == "witness"}


def main(arguments: list[str]) -> int:
    """Run pytest with these arguments; record only if there are no others, so that nothing was left out."""
    witnesses = Witnesses()
    common = ["-p", "no:cacheprovider", "-n", "auto"]
    which = [] if "--changed" in arguments else ["--all-bugs"]
    arguments = [argument for argument in arguments if argument != "--changed"]
    code = int(pytest.main([str(HERE / "test_planted_bugs.py"), *which, *common, *arguments], [witnesses]))
    if code == 0:
        names = [str(TESTS.parent / name) for name in sorted(witnesses.names)]
        code = subprocess.run([sys.executable, "-m", "pytest", "-q", *common, *names], cwd=TESTS.parent).returncode
    if code == 0 and not arguments:
        record()
        print("Every bug was caught; tests/mutation/passed.json says so of the library as it is.")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
