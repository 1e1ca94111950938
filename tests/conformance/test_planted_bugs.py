"""The suite notices every bug that planted_bugs.py plants."""

import subprocess
import sys
from pathlib import Path

from bugs import BUGS

HERE = Path(__file__).parent


def test_there_are_bugs_in_every_framework_and_in_the_neutral_modules():
    places = [bug.file.split("/")[0] if "/" in bug.file else "neutral" for bug in BUGS]
    for place in ("numpy", "torch", "tensorflow", "neutral"):
        assert places.count(place) >= 10, place


def test_every_planted_bug_is_caught():
    run = subprocess.run([sys.executable, HERE / "planted_bugs.py"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
    assert f"{len(BUGS)} of {len(BUGS)} bugs caught" in run.stdout
