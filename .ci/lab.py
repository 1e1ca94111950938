"""Open the lectures in JupyterLab: what `make lab` does; its arguments go to `jupyter lab`.

JupyterLab says forty lines before its address, and the reader needs the address: errors and what JupyterLab calls
critical (the address is) come to the terminal, all else to a log file. One that runs already is opened.
"""

import json
import os
import signal
import sys
import webbrowser
from pathlib import Path

# The imports take seconds, and a traceback of them tells nobody anything.
signal.signal(signal.SIGINT, lambda *_: os.write(2, b"\nInterrupted.\n") and os._exit(130))

from jupyter_core.paths import jupyter_runtime_dir  # noqa: E402
from jupyter_server.serverapp import list_running_servers  # noqa: E402

HERE = Path(__file__).resolve().parent
COURSE = HERE.parent  # lectures, assignments and the pages that lectures link to are all under it
START = "lab/tree/notebooks"


def running():
    """The address of a JupyterLab that shows the lectures of this checkout, or None."""
    for server in list_running_servers():
        if os.path.realpath(server["root_dir"]) == str(COURSE):
            token = f"?token={server['token']}" if server["token"] else ""
            return f"{server['url']}{START}{token}"
    return None


def log_to(file):
    """JupyterLab's logging: errors to the terminal, everything to `file`."""
    handlers = {
        "console": {"level": "ERROR"},
        "file": {"class": "logging.FileHandler", "filename": str(file), "formatter": "console", "level": "INFO"},
    }
    both = {"handlers": ["console", "file"]}
    return {"handlers": handlers, "loggers": {"ServerApp": both, "LabApp": both}}


def main(arguments):
    """Open JupyterLab, and return when it has ended, or at once if it runs already."""
    address = None if arguments else running()
    if address:
        print(f"JupyterLab runs already: {address}\nCtrl-C in its own terminal stops it.")
        webbrowser.open(address)
        return 0
    if hasattr(os, "geteuid") and os.geteuid() == 0 and "--allow-root" not in arguments:
        print('JupyterLab does not like to run as root: in a container, say make lab ARGS="--allow-root --ip=0.0.0.0"')
        return 1
    runtime = Path(jupyter_runtime_dir())
    log = runtime / "attention-course-lab.log"
    try:
        runtime.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")
    except OSError as error:
        print(f"Cannot write {error.filename} ({error.strerror}): set JUPYTER_RUNTIME_DIR to a folder of yours.")
        return 1
    print(f"Starting JupyterLab; Ctrl-C, twice, stops it. Its log: {log}", flush=True)
    os.chdir(COURSE)
    folders = [str(HERE / "jupyter"), os.environ.get("JUPYTER_CONFIG_PATH")]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, folders))
    quiet = f"--Application.logging_config={json.dumps(log_to(log))}"
    from jupyterlab.labapp import main as lab  # takes a second that the messages above need not wait for

    signal.signal(signal.SIGINT, signal.default_int_handler)  # JupyterLab stops its kernels first
    try:
        return lab([quiet, f"--LabApp.default_url=/{START}", *arguments])
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
