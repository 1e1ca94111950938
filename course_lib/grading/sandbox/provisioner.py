"""A kernel provisioner of Jupyter's that starts its kernel in a sandbox.

Without a network a kernel cannot be reached by TCP. It has its sockets in a folder of its own, in memory and of
limited size, and the client connects to them through `/proc/PID/root`, the file system as the kernel's process sees
it. A folder that both share would do as well, but the student could fill the disk through it.
"""

import asyncio
import contextlib
import functools
import json
import logging
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from course_lib._extras import needed
from course_lib.grading.sandbox.calls import filter_of
from course_lib.grading.sandbox.view import ISOLATED, SOCKETS, SandboxMissing, arguments, bubblewrap, import_path
from course_lib.grading.sandbox.warm import CONNECTION, Forked, Job, Kind, NotWarm, begun, forked, holding, started
from course_lib.grading.sandbox.watch import Limits, watch

with needed("lab"):
    import psutil
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner
    from traitlets import Float, Integer, List, Unicode

NAME = "course-sandbox"  # of the entry point
STARTS_S = 30
QUIET = ("sh", "-c", 'exec "$@" 2>/dev/null', "sh")  # what bubblewrap itself says is read, and nothing else
# What a kernel may know of its surroundings. NBGRADER_EXECUTION, since a notebook may leave out its training then.
PASSED = ("LANG", "LC_ALL", "TZ", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MPLBACKEND",
          "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "TF_CPP_MIN_LOG_LEVEL", "NBGRADER_EXECUTION")  # fmt: skip
# To replace operations by oneDNN's, TensorFlow goes through all its kernels when it meets one that is new to a process:
# a sixth of what a short notebook takes. The results differ in their last digits, and in which numbers beside a NaN or
# an infinity are NaN. Who grades may set another value.
ONEDNN = "TF_ENABLE_ONEDNN_OPTS"


class SandboxProvisioner(LocalProvisioner):
    """Runs a kernel in bubblewrap. Its settings stand in `kernel.json`, under `kernel_provisioner.config`."""

    packages = List(Unicode(), None, allow_none=True, help="Distributions it may import; None: all.").tag(config=True)
    hidden = List(Unicode(), help="Folders that it must not see.").tag(config=True)
    memory = Integer(4 * 2**30, help="Bytes for all processes together, and for each.").tag(config=True)
    processes = Integer(128, help="Processes, the kernel's own included.").tag(config=True)
    scratch = Integer(256 * 2**20, help="Bytes that it may write.").tag(config=True)
    seconds = Float(3600, help="Seconds from the start to the end of the kernel.").tag(config=True)
    warm = List(Unicode(), help="Modules that it has imported when it starts: it is forked with them.").tag(config=True)

    ended = ""  # why the kernel was ended from outside
    kernel_pid = None  # as the system outside counts
    _process_of_kernel: Forked | None = None  # of this number, as long as it is the kernel's
    _around: subprocess.Popen | None = None  # of a cold start: a child of this process, which has to be waited for
    not_warm = ""  # why the kernel started cold where it should have started warm

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """See that there is a sandbox, and that the kernel has its sockets there.

        Raises
        ------
        SandboxMissing : there is no bubblewrap, or it does not work on this machine.
        """
        bubblewrap()
        self.parent.transport, self.parent.ip = "ipc", f"{SOCKETS}/s"
        kwargs = await super().pre_launch(**kwargs)
        command = [CONNECTION if part == self.parent.connection_file else part for part in kwargs["cmd"]]
        if os.path.realpath(command[0]) == os.path.realpath(sys.executable):
            command[0] = sys.executable
        return kwargs | {"cmd": command}

    async def launch_kernel(self, cmd: list[str], **kwargs: Any):
        """Start it, warm or cold, and find it among the system's processes.

        Raises
        ------
        SandboxMissing : the sandbox does not start.
        """
        self.ended, self.not_warm, self.cwd = "", "", kwargs.get("cwd")
        folder, environment = Path(self.cwd or os.getcwd()), self._environment(kwargs.get("env") or {})
        # Not the file that Jupyter has: in that, after a restart, the place of the sockets is that of the last kernel.
        known = json.dumps({**self.parent.get_connection_info(), "key": self.parent.session.key.decode()}, default=str)
        if not (self.warm and await self._start_warm(cmd, folder, environment, known)):
            await self._start_cold(cmd, folder, environment, known)
        self.pid = self.process.pid
        self._process_of_kernel = self._kernel_itself()
        self.parent.ip = f"/proc/{self.kernel_pid}/root{SOCKETS}/s"
        self.connection_info = self.parent.get_connection_info()
        limits = Limits(self.memory, self.processes, self.seconds)
        with contextlib.suppress(psutil.NoSuchProcess):  # it may have ended again
            watch(psutil.Process(self.pid), limits, self._end)
        return self.connection_info

    def begin(self, env: Mapping[str, str] = os.environ) -> None:
        """Start what kernels with these settings are forked from; `prepare` waits for it, and says where it fails.

        env : the variables with which their kernels will be started
        """
        with contextlib.suppress(NotWarm, OSError, SandboxMissing):
            begun(self._kind(self._environment(env)))

    async def prepare(self, env: Mapping[str, str] = os.environ) -> str:
        """Start what kernels with these settings are forked from, and wait until it can be.

        A process that forks others, each of which grades, does this first: they share it then.

        env : the variables with which their kernels will be started

        Returns
        -------
        "", or why kernels will start cold

        Raises
        ------
        SandboxMissing : there is no bubblewrap, or it does not work on this machine.
        """
        try:
            await started(self._kind(self._environment(env)))
        except (NotWarm, OSError) as error:
            return str(error)
        return ""

    async def _start_warm(self, command: list[str], folder: Path, environment: list[str], known: str) -> bool:
        """Whether it could be forked."""
        python, *arguments = [part for part in command if not part.startswith("-X")]
        try:
            if [python, *arguments[:2]] != [sys.executable, "-m", "ipykernel_launcher"]:
                raise NotWarm(f"this kernel is not Python's own here, but {' '.join(command[:3])}")
            job = Job(arguments[2:], known, self._limits_of_each(), self.scratch, folder)
            self.process, self.kernel_pid = await forked(self._kind(environment), job)
        except (NotWarm, OSError) as error:  # an old Linux lacks a call
            self.not_warm = str(error)
            _say_once(f"Kernels start cold in the sandbox: {error}")
        return not self.not_warm

    async def _start_cold(self, command: list[str], folder: Path, environment: list[str], known: str) -> None:
        told, tell = os.pipe()
        connection, refused = holding(known.encode()), holding(filter_of())
        nothing, passed = subprocess.DEVNULL, [tell, connection, refused]
        limits = ["prlimit", *(f"--{name}={limit}" for name, limit in self._limits_of_each().items()), "--"]
        command = [
            bubblewrap(), *ISOLATED, "--info-fd", str(tell), *environment,
            *arguments(folder, self.scratch, self.packages, self.hidden),
            *(["--seccomp", str(refused)] if filter_of() else []), "--ro-bind-data", str(connection), CONNECTION,
            "--", *QUIET, *limits, *command,
        ]  # fmt: skip
        try:
            # without the grader's variables: those of bubblewrap's own process are read in the sandbox, /proc/1/environ
            around = subprocess.Popen(
                command, stdin=nothing, stdout=nothing, stderr=subprocess.PIPE, pass_fds=passed, env={},
                start_new_session=True,
            )  # fmt: skip
        except BaseException:
            os.close(told)
            raise
        finally:
            for number in passed:
                os.close(number)
        first = None
        try:
            first = await self._first(told, around)
            self.kernel_pid = await self._kernel(first, around)
            # the first process of its name space, with which the system itself ends all others, whatever they did
            self.process, self._around = Forked(first), around
        except BaseException:
            around.kill()
            if first:  # which does not end with it
                with contextlib.suppress(ProcessLookupError):
                    os.kill(first, signal.SIGKILL)
            raise
        finally:
            os.close(told)
            around.stderr.close()

    async def wait(self) -> int | None:
        """Wait until it has ended."""
        result = await super().wait()
        if self._around:
            self._around.wait()  # it ends with the first process
            self._around = None
        return result

    async def send_signal(self, signum: int) -> None:
        """An interrupt goes to the kernel alone: it would end bubblewrap, and with it everything."""
        if not self.process:
            return
        if signum == signal.SIGINT:
            if self._process_of_kernel:
                self._process_of_kernel.send_signal(signum)
        else:
            self.process.send_signal(signal.SIGKILL)

    def _end(self, why: str) -> None:
        self.ended = why
        if self.process:
            self.process.kill()

    def _kernel_itself(self) -> Forked | None:
        """The kernel's own process, by more than its number, which is another's when it has ended; None if it has."""
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            kernel = Forked(self.kernel_pid)
            return kernel if psutil.Process(self.kernel_pid).ppid() == self.process.pid else None
        return None

    def _limits_of_each(self) -> dict[str, int]:
        """What one process may have, and no more than the grader may itself; of processes it counts threads as well."""
        import resource  # which Windows has not

        wanted = {"data": self.memory, "nproc": 4 * self.processes, "fsize": self.scratch, "core": 0, "nofile": 1024}
        for name, most in wanted.items():
            _, own = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))
            wanted[name] = most if own == resource.RLIM_INFINITY else min(most, own)
        return wanted

    def _kind(self, environment: list[str]) -> Kind:
        packages = None if self.packages is None else tuple(self.packages)
        return Kind(tuple(self.warm), packages, tuple(self.hidden), tuple(environment))

    def _environment(self, given: dict[str, str]) -> list[str]:
        kept = {name: given[name] for name in PASSED if name in given} | {ONEDNN: given.get(ONEDNN, "0")}
        kept |= {"PATH": f"{sys.prefix}/bin:/usr/bin:/bin", "HOME": "/tmp", "USER": "student"}
        kept |= {"PYTHONPATH": import_path(), "PYTHONDONTWRITEBYTECODE": "1", "IPYTHONDIR": "/tmp/.ipython"}
        return [part for name, value in kept.items() for part in ("--setenv", name, value)]

    async def _first(self, told: int, around: subprocess.Popen) -> int:
        """The process number of the sandbox's first process, which the bubblewrap around it tells."""
        said, last = "", time.monotonic() + STARTS_S
        while not said.rstrip().endswith("}"):
            if select.select([told], [], [], 0)[0]:
                part = os.read(told, 4096).decode()
                said += part
                if not part:
                    raise SandboxMissing(f"bubblewrap did not start: {around.stderr.read().decode()[:300]}")
            elif time.monotonic() > last:
                raise SandboxMissing(f"bubblewrap did not start within {STARTS_S} seconds")
            else:
                await asyncio.sleep(0.005)
        return json.loads(said)["child-pid"]

    async def _kernel(self, first: int, around: subprocess.Popen) -> int:
        last = time.monotonic() + STARTS_S
        while time.monotonic() < last:
            with contextlib.suppress(psutil.NoSuchProcess):
                for child in psutil.Process(first).children():
                    return child.pid
            if around.poll() is not None:
                raise SandboxMissing(f"bubblewrap ended: {around.stderr.read().decode()[:300]}")
            await asyncio.sleep(0.005)
        raise SandboxMissing(f"no kernel started in the sandbox within {STARTS_S} seconds")


@functools.cache
def _say_once(what: str) -> None:
    logging.getLogger(__name__).warning(what)


def sandboxed(spec: KernelSpec, **settings: Any) -> KernelSpec:
    """The same kernel, in a sandbox with these settings."""
    factory = KernelProvisionerFactory.instance()
    # By the installed entry point, and where the course is not installed but lies on the path, without it
    factory.provisioners.setdefault(
        NAME, EntryPoint(NAME, f"{__name__}:SandboxProvisioner", KernelProvisionerFactory.GROUP_NAME)
    )
    made = KernelSpec.from_resource_dir(spec.resource_dir) if spec.resource_dir else KernelSpec(**spec.to_dict())
    made.metadata = {**made.metadata, "kernel_provisioner": {"provisioner_name": NAME, "config": settings}}
    return made
