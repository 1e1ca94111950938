"""`make lab`: the address and how to stop it come to the terminal, the log goes to a file; twice opens once."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "lab.py"


@pytest.fixture
def environment(tmp_path):
    """JupyterLab keeps all it writes in `tmp_path`, and no browser opens."""
    folders = {f"JUPYTER_{name}_DIR": str(tmp_path / name) for name in ("RUNTIME", "CONFIG", "DATA")}
    settings = {"JUPYTERLAB_SETTINGS_DIR": str(tmp_path / "settings"), "JUPYTERLAB_WORKSPACES_DIR": str(tmp_path / "w")}
    return {**os.environ, **folders, **settings, "BROWSER": "echo opened %s"}


def test_the_address_is_said_once_and_a_second_call_opens_what_runs(environment, tmp_path):
    said = tmp_path / "said"
    arguments = ["--no-browser", "--allow-root", "--port", "0"]
    with said.open("w") as terminal:
        server = subprocess.Popen(
            [sys.executable, SCRIPT, *arguments], env=environment, stdout=terminal, stderr=subprocess.STDOUT
        )
    try:
        while not (address := re.search(r"http://localhost:\d+/lab/tree/notebooks\?token=\w+", said.read_text())):
            assert server.poll() is None, said.read_text()
            time.sleep(0.1)
        again = subprocess.check_output([sys.executable, SCRIPT], env=environment, text=True)
        assert f"runs already: {address[0]}" in again and f"opened {address[0]}" in again
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
    lines = said.read_text().splitlines()
    assert len(lines) < 12 and not [line for line in lines if re.search("INFO|WARN|nbgrader", line)], lines
    assert "Ctrl-C, twice, stops it" in lines[0]
    log = Path(lines[0].split("log: ")[1])
    assert log.parent == tmp_path / "RUNTIME" and "extension was successfully loaded" in log.read_text()


def test_what_jupyterlab_refuses_comes_to_the_terminal(environment):
    refused = subprocess.run(
        [sys.executable, SCRIPT, "--allow-root", "--ServerApp.port=many"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert refused.returncode != 0 and "many" in refused.stdout + refused.stderr


@pytest.mark.parametrize("module", ["jupyter_server", "jupyterlab"])
def test_an_interruption_before_jupyterlab_runs_ends_in_one_line(environment, tmp_path, module):
    begun = tmp_path / "begun"
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / f"{module}.py").write_text(
        f"import pathlib, time; pathlib.Path({str(begun)!r}).touch(); time.sleep(600)"
    )
    process = subprocess.Popen(
        [sys.executable, SCRIPT, "--allow-root", "--no-browser"],
        env=environment | {"PYTHONPATH": str(tmp_path / "slow")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not begun.exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert (process.communicate()[1].strip(), process.returncode) == ("Interrupted.", 130)


def test_a_folder_that_cannot_be_written_is_named(environment):
    environment["JUPYTER_RUNTIME_DIR"] = "/dev/null/runtime"
    done = subprocess.run([sys.executable, SCRIPT, "--allow-root"], env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr == ""
    assert done.stdout.startswith("Cannot write /dev/null/runtime") and "set JUPYTER_RUNTIME_DIR to" in done.stdout


def test_root_is_told_what_to_say(environment):
    code = f"import os, runpy; os.geteuid = lambda: 0; runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and 'make lab ARGS="--allow-root' in done.stdout and done.stderr == ""
