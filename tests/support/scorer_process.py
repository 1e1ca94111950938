"""Run a notebook's code cells as a kernel would, quickly: one warm process, one fork per notebook.

Reads one JSON list of cell sources per line from standard input; writes one JSON list of lists of outputs
(nbformat's) per line. A child that does not end within 60 seconds is killed, and the answer is null.
"""

import json
import os
import select
import signal
import sys

import numpy.random  # noqa: F401  (imported once, before the forks)
from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import course_lib.grading  # noqa: F401

outputs: list = []


class _Stream:
    def __init__(self, name):
        self.name, self.encoding = name, "utf-8"

    def write(self, text):
        if outputs and outputs[-1].get("name") == self.name:
            outputs[-1]["text"] += text
        else:
            outputs.append({"output_type": "stream", "name": self.name, "text": text})
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return False


class _Hook(DisplayHook):
    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        outputs.append({"output_type": "execute_result", "data": format_dict, "metadata": {}, "execution_count": 1})

    def finish_displayhook(self):
        pass


class _Shell(InteractiveShell):
    displayhook_class = _Hook

    def _showtraceback(self, etype, evalue, stb):
        outputs.append(
            {"output_type": "error", "ename": etype.__name__, "evalue": str(evalue), "traceback": list(stb)}
        )


def _run(shell, sources):
    sys.stdout, sys.stderr = _Stream("stdout"), _Stream("stderr")
    everything = []
    for source in sources:
        outputs.clear()
        shell.run_cell(source, store_history=True)
        everything.append(list(outputs))
    return everything


def _in_a_fork(shell, sources):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(write, "w") as pipe:
            json.dump(_run(shell, sources), pipe)
        os._exit(0)
    os.close(write)
    chunks = []
    while select.select([read], [], [], 60)[0]:
        chunk = os.read(read, 1 << 16)
        if not chunk:
            break
        chunks.append(chunk)
    else:
        os.kill(child, signal.SIGKILL)
    os.close(read)
    _, status = os.waitpid(child, 0)
    return json.loads(b"".join(chunks)) if status == 0 else None


def main():
    """Serve until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    shell = _Shell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    for line in sys.stdin:
        answers.write(json.dumps(_in_a_fork(shell, json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
