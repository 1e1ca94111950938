"""Run a notebook's code cells as a kernel would, quickly: one warm process, one fork per notebook.

    python -m tests.support.scorer_process MODULE...    imports these modules once, before the forks

Reads one job per line from standard input, {"cells": [source, ...], "environment": {name: value}}; writes one JSON
list of lists of outputs (nbformat's) per line. A child that does not end within LIMIT_S is killed, and the answer
is null. A cell is compiled once: most of a notebook is the same in every submission, and IPython's own way to a
compiled cell takes longer than all that the cell does.
"""

import ast
import functools
import importlib
import json
import linecache
import os
import select
import signal
import sys

from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import course_lib.grading  # noqa: F401  (imported once, before the forks)

outputs: list = []


class _Stream:
    """Standard output, and standard error, which `ExecuteToTheEnd` takes for it as well."""

    encoding = "utf-8"

    def write(self, text):
        if outputs and outputs[-1]["output_type"] == "stream":
            outputs[-1]["text"] += text
        else:
            outputs.append({"output_type": "stream", "name": "stdout", "text": text})
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


LIMIT_S = 1800  # the hidden tests of twenty seeds share a fork, and an endless loop is stopped by its own check


class _Shell(InteractiveShell):
    displayhook_class = _Hook

    def _showtraceback(self, etype, evalue, stb):
        outputs.append({"output_type": "error", "ename": etype.__name__, "evalue": str(evalue), "traceback": list(stb)})


@functools.cache
def _compiled(source):
    """The statements of a cell and its last expression, either may be None; None for what IPython must read."""
    name = f"<ipython-input-{hash(source):x}>"
    try:
        body = ast.parse(source, name).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        parts = (
            compile(ast.Module(body, []), name, "exec") if body else None,
            compile(ast.Expression(last.value), name, "eval") if last else None,
        )
    except SyntaxError:  # a student's error, or a magic command
        return None
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    return parts


def _run(shell, sources):
    sys.stdout = sys.stderr = _Stream()
    everything = []
    for source in sources:
        outputs.clear()
        parts = _compiled(source)
        if parts is None:
            shell.run_cell(source)
        else:
            _execute(shell, *parts)
        everything.append(list(outputs))
    return everything


def _execute(shell, statements, last):
    try:
        with shell.builtin_trap, shell.display_trap:
            if statements:
                exec(statements, shell.user_ns)
            if last:
                sys.displayhook(eval(last, shell.user_ns))
    except SystemExit as left:
        outputs.append({"output_type": "error", "ename": "SystemExit", "evalue": str(left), "traceback": []})
    except BaseException:
        shell.showtraceback()


def _in_a_fork(shell, sources, environment):
    for source in sources:
        _compiled(source)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.environ.update(environment)
        with os.fdopen(write, "w") as pipe:
            json.dump(_run(shell, sources), pipe)
        os._exit(0)
    os.close(write)
    chunks = []
    while select.select([read], [], [], LIMIT_S)[0]:
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
    for name in sys.argv[1:]:
        importlib.import_module(name)
    shell = _Shell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    for line in sys.stdin:
        job = json.loads(line)
        answers.write(json.dumps(_in_a_fork(shell, job["cells"], job["environment"])) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
