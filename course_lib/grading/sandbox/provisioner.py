"""A kernel provisioner of Jupyter's that starts its kernel in a sandbox.

Without a network a kernel cannot be reached by TCP. It has its sockets in a folder of its own, in memory and of
limited size, and the client connects to them through `/proc/PID/root`, the file system as the kernel's process sees
it. A folder that both share would do as well, but the student could fill the disk through it.
"""

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from course_lib._extras import needed
from course_lib.grading.sandbox.calls import filter_of
from course_lib.grading.sandbox.view import ISOLATED, SOCKETS, SandboxMissing, arguments, bubblewrap, import_path
from course_lib.grading.sandbox.watch import Limits, watch

with needed("lab"):
    import psutil
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner
    from traitlets import Float, Integer, List, Unicode

NAME = "course-sandbox"  # of the entry point
STARTS_S = 30
CONNECTION = f"{SOCKETS}/connection.json"
QUIET = ("sh", "-c", 'exec "$@" 2>/dev/null', "sh")  # what bubblewrap itself says is read, and nothing else
# What a kernel may know of its surroundings. NBGRADER_EXECUTION, since a notebook may leave out its training then.
PASSED = ("LANG", "LC_ALL", "TZ", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MPLBACKEND",
          "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "TF_CPP_MIN_LOG_LEVEL", "NBGRADER_EXECUTION")  # fmt: skip


class SandboxProvisioner(LocalProvisioner):
    """Runs a kernel in bubblewrap. Its settings stand in `kernel.json`, under `kernel_provisioner.config`."""

    packages = List(Unicode(), None, allow_none=True, help="Distributions it may import; None: all.").tag(config=True)
    hidden = List(Unicode(), help="Folders that it must not see.").tag(config=True)
    memory = Integer(4 * 2**30, help="Bytes for all processes together, and for each.").tag(config=True)
    processes = Integer(128, help="Processes, the kernel's own included.").tag(config=True)
    scratch = Integer(256 * 2**20, help="Bytes that it may write.").tag(config=True)
    seconds = Float(3600, help="Seconds from the start to the end of the kernel.").tag(config=True)

    ended = ""  # why the kernel was ended from outside
    kernel_pid = None  # as the system outside counts

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Put the command into a sandbox.

        Raises
        ------
        SandboxMissing : there is no bubblewrap, or it does not work on this machine.
        """
        program = bubblewrap()
        self.parent.transport, self.parent.ip = "ipc", f"{SOCKETS}/s"
        kwargs = await super().pre_launch(**kwargs)
        command = [CONNECTION if part == self.parent.connection_file else part for part in kwargs["cmd"]]
        if os.path.realpath(command[0]) == os.path.realpath(sys.executable):
            command[0] = sys.executable
        self._told, self._tell = os.pipe()
        # Not the file that Jupyter has: in that, after a restart, the place of the sockets is that of the last kernel.
        known = json.dumps({**self.parent.get_connection_info(), "key": self.parent.session.key.decode()}, default=str)
        self._known, self._refused = _holding(known.encode()), _holding(filter_of())
        kwargs["cmd"] = [
            program, *ISOLATED, "--info-fd", str(self._tell), "--clearenv", *self._environment(kwargs.get("env") or {}),
            *arguments(Path(kwargs.get("cwd") or os.getcwd()), self.scratch, self.packages, self.hidden),
            *self._refusal(), "--ro-bind-data", str(self._known), CONNECTION,
            "--", *QUIET, *self._limits_of_each(), *command,
        ]  # fmt: skip
        return kwargs

    async def launch_kernel(self, cmd: list[str], **kwargs: Any):
        """Start it, and find it among the system's processes."""
        self.ended = ""
        nothing = subprocess.DEVNULL
        passed = [self._tell, self._known, self._refused]
        self.process = subprocess.Popen(
            cmd, stdin=nothing, stdout=nothing, stderr=subprocess.PIPE, pass_fds=passed, start_new_session=True
        )
        for number in passed:
            os.close(number)
        self.pid, self.cwd = self.process.pid, kwargs.get("cwd")
        try:
            first = await self._first()
            self.kernel_pid = await self._kernel(first)
        finally:
            os.close(self._told)
            self.process.stderr.close()
        root = f"/proc/{self.kernel_pid}/root"
        self.parent.ip = f"{root}{SOCKETS}/s"
        self.connection_info = self.parent.get_connection_info()
        limits = Limits(self.memory, self.processes, self.seconds, self.scratch)
        watch(psutil.Process(self.pid), root, limits, self._end)
        return self.connection_info

    async def send_signal(self, signum: int) -> None:
        """An interrupt goes to the kernel alone: it would end bubblewrap, and with it everything."""
        if not self.process:
            return
        if signum == signal.SIGINT:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.kernel_pid, signum)
        else:
            self.process.send_signal(signal.SIGKILL)

    def _end(self, why: str) -> None:
        self.ended = why
        if self.process:
            self.process.kill()

    def _limits_of_each(self) -> list[str]:
        """What one process may have; of processes it counts threads as well."""
        limits = {"data": self.memory, "nproc": 4 * self.processes, "fsize": self.scratch, "core": 0, "nofile": 1024}
        return ["prlimit", *(f"--{name}={limit}" for name, limit in limits.items()), "--"]

    def _refusal(self) -> list[str]:
        """The filter of the system's calls, where there is one for this machine."""
        return ["--seccomp", str(self._refused)] if filter_of() else []

    def _environment(self, given: dict[str, str]) -> list[str]:
        kept = {name: given[name] for name in PASSED if name in given}
        kept |= {"PATH": f"{sys.prefix}/bin:/usr/bin:/bin", "HOME": "/tmp", "USER": "student"}
        kept |= {"PYTHONPATH": import_path(), "PYTHONDONTWRITEBYTECODE": "1", "IPYTHONDIR": "/tmp/.ipython"}
        return [part for name, value in kept.items() for part in ("--setenv", name, value)]

    async def _first(self) -> int:
        """The process number of the sandbox's first process, which bubblewrap tells."""
        said, last = "", time.monotonic() + STARTS_S
        while not said.rstrip().endswith("}"):
            if select.select([self._told], [], [], 0)[0]:
                part = os.read(self._told, 4096).decode()
                said += part
                if not part:
                    raise SandboxMissing(f"bubblewrap did not start: {self.process.stderr.read().decode()[:300]}")
            elif time.monotonic() > last:
                raise SandboxMissing(f"bubblewrap did not start within {STARTS_S} seconds")
            else:
                await asyncio.sleep(0.005)
        return json.loads(said)["child-pid"]

    async def _kernel(self, first: int) -> int:
        last = time.monotonic() + STARTS_S
        while time.monotonic() < last:
            with contextlib.suppress(psutil.NoSuchProcess):
                for child in psutil.Process(first).children():
                    return child.pid
            if self.process.poll() is not None:
                raise SandboxMissing(f"bubblewrap ended: {self.process.stderr.read().decode()[:300]}")
            await asyncio.sleep(0.005)
        raise SandboxMissing(f"no kernel started in the sandbox within {STARTS_S} seconds")


def _holding(content: bytes) -> int:
    """A file without a name, to be read from its beginning."""
    number = os.memfd_create("held")
    os.write(number, content)
    os.lseek(number, 0, os.SEEK_SET)
    return number


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
