"""Run notebooks under nbval in forks of one process that has imported what every lecture imports.

    python -m tests.support.lecture_process

Reads one job per line from standard input, {"path": path, "timeout": seconds} as JSON; writes one list per line:
pytest's return code, and what it wrote to standard output and standard error. To import PyTorch and TensorFlow takes a
kernel six seconds. Imports alone start no thread and open no device, so that a fork of them is as good as fresh.
"""

import gc
import importlib
import json
import os
import signal
import sys
import tempfile
import threading
import time

import pytest

IMPORTED = ("ipykernel.kernelapp", "nbval.plugin", "course_lib.numpy", "course_lib.torch", "course_lib.tensorflow")
# course_lib.tensorflow comes before TensorFlow, whose banner it holds back
IMPORTED += ("tensorflow", "keras", "torch.nn", "course_lib.lecture.show")

ELSEWHERE = ("assignments", "book", "course_lib.grading", "tests")  # what changes here is no reason to run it again

INLINE = "module://matplotlib_inline.backend_inline"  # a kernel names it too late: Keras imports Matplotlib


class Kernel:
    """A forked process that becomes a kernel when it is told its command; what jupyter_client needs of a Popen."""

    stdin = stdout = stderr = None

    def __init__(self):
        said, self._say = os.pipe()
        self.returncode = None
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._say)
            os.setsid()
            with os.fdopen(said) as pipe:
                launched = pipe.read()
            if launched:  # else the one who should have said it has ended
                become_kernel(*json.loads(launched))
            os._exit(0)
        os.close(said)

    def launch(self, command, *, env, cwd, **streams):
        """Stands for jupyter_client's `launch_kernel`; the kernel's own output is thrown away, as nbval asks."""
        with os.fdopen(self._say, "w") as pipe:  # fails for a second kernel: there is one of each notebook
            json.dump([command[command.index("-f") :], {**env, "JPY_PARENT_PID": str(os.getpid())}, str(cwd)], pipe)
        return self

    def poll(self):
        """None while it runs, then its return code."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout=None):
        """The return code, when it has ended."""
        while self.poll() is None:
            time.sleep(0.05)
        return self.returncode

    def send_signal(self, number):
        """To the kernel alone."""
        os.kill(self.pid, number)

    def kill(self):
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self):
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)


def become_kernel(arguments, environment, folder):
    """Do as `python -m ipykernel_launcher` does."""
    from ipykernel.kernelapp import IPKernelApp

    os.environ.clear()
    os.environ.update(environment)
    known = [name for name in sys.modules if name.startswith(tuple(f"{each}." for each in ELSEWHERE))]
    sys.modules |= dict.fromkeys([*ELSEWHERE, *known])  # None: to import it is an error
    os.chdir(folder)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    sys.argv = ["ipykernel_launcher", *arguments]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    IPKernelApp.launch_instance()


class Patience:
    """A cell that has ended has five seconds for its outputs with nbval, and no option changes that."""

    def pytest_collection_modifyitems(self, items):
        for item in items:
            item.output_timeout = 600


def compare(path):
    """Run a notebook under nbval and compare its outputs; pytest's return code."""
    from jupyter_client.provisioning import local_provisioner

    local_provisioner.launch_kernel = Kernel().launch
    folder = os.path.dirname(path)
    os.chdir(folder)
    command = ["-c", os.devnull, "--rootdir", folder, "-p", "no:cacheprovider"]
    command += ["-q", "--tb=short", "--color=no", "--nbval", "--nbval-current-env", "--nbval-cell-timeout=7200"]
    return pytest.main([*command, "--nbval-kernel-startup-timeout=600", path], plugins=[Patience()])


def in_a_fork(path, timeout):
    """The return code of `compare` and what it wrote."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            os.setsid()
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            code = 70
            try:
                code = int(compare(path))
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        timer = threading.Timer(timeout, os.killpg, (child, signal.SIGKILL))
        timer.start()
        _, status = os.waitpid(child, 0)
        timer.cancel()
        timer.join()  # the next fork is again of one thread
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read().decode(errors="replace"))
    return [os.waitstatus_to_exitcode(status), *said]


def main():
    """Serve until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what an import prints is no answer
    os.environ["MPLBACKEND"] = INLINE
    sys.modules["rfc3987_syntax"] = None  # compiles 38 grammars of addresses, for a second: a notebook has none
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # else the collector of a fork would write to, and so copy, all that is shared
    for line in sys.stdin:
        job = json.loads(line)
        answers.write(json.dumps(in_a_fork(job["path"], job["timeout"])) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
