"""`python -m course_lib.grading.sandbox`: does the sandbox work here? A kernel is started in it, as for an assignment.

With `install`, a kernel in it for Jupyter.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

from course_lib._extras import needed
from course_lib.grading.outside.execute import LIMITS, SandboxedSpecs
from course_lib.grading.sandbox.calls import filter_of
from course_lib.grading.sandbox.provisioner import sandboxed
from course_lib.grading.sandbox.view import bubblewrap
from course_lib.grading.sandbox.warm import end_parents

with needed("lab"):
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import KernelManager

KERNEL = "python3-sandbox"
STARTS_S = 120


def main(arguments: list[str] | None = None) -> int:
    """Say whether it works, and what is weaker here than elsewhere, and return 0; 1 where it does not work."""
    parser = argparse.ArgumentParser(prog="python -m course_lib.grading.sandbox", description=__doc__)
    parser.add_argument("action", nargs="?", choices=["check", "install"], default="check")
    parser.add_argument("--packages", nargs="+", metavar="NAME", help="what it may import; all that is installed")
    parser.add_argument("--prefix", default=sys.prefix, help="where it is installed; this environment")
    chosen = parser.parse_args(arguments)
    as_for_an_assignment = {"packages": chosen.packages or ["numpy"], **LIMITS}
    try:
        seconds, _ = started(**as_for_an_assignment)
        print(f"The sandbox works here, by {bubblewrap()}. A kernel started in it and computed, in {seconds:.1f} s.")
        _, why = started(**as_for_an_assignment, warm=["json"])
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    except RuntimeError as error:
        print(f"bubblewrap works here, and no kernel does in it: {error}", file=sys.stderr)
        return 1
    finally:
        end_parents()
    if why:
        print(f"Kernels cannot start warm, and c.ExecuteOutside.warm has no effect: {why}")
    else:
        print("Kernels can start warm, too (c.ExecuteOutside.warm).")
    if not filter_of():
        print(
            f"For {platform.machine()}, the sandbox does not know the numbers of the system's calls, and refuses none. "
            "What a kernel may use is limited less well, and it could send the grader to sockets outside."
        )
    if os.geteuid() == 0:
        print(
            "You are root. Grade as another user: a hole in the sandbox would be one in the machine, and the system "
            "itself sets no limit to the processes of root."
        )
    if chosen.action == "install":
        specs = KernelSpecManager()
        settings = {"packages": chosen.packages} if chosen.packages else {}
        spec = sandboxed(specs.get_kernel_spec("python3"), **settings)
        spec.display_name += ", in a sandbox"
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "kernel.json").write_text(json.dumps(spec.to_dict(), indent=1), encoding="utf-8")
            place = specs.install_kernel_spec(folder, KERNEL, prefix=chosen.prefix)
        print(f"{place} has the kernel {KERNEL}. For nbgrader: c.Execute.kernel_name = {KERNEL!r}")
    return 0


def started(**settings) -> tuple[float, str]:
    """Start a kernel with these settings of a `SandboxProvisioner`, let it compute, and end it.

    Returns
    -------
    the seconds that this took, and why it started cold; "" where it did not, or was not to start warm

    Raises
    ------
    SandboxMissing : there is no bubblewrap, or it does not work on this machine.
    ValueError : a package is not installed.
    RuntimeError : the kernel ended, or did not answer.
    """
    manager = KernelManager(kernel_name="python3", kernel_spec_manager=SandboxedSpecs(settings=settings))
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        manager.start_kernel(cwd=folder)
        client = manager.blocking_client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=STARTS_S)
            reply = client.execute("", user_expressions={"product": "6 * 7"}, reply=True, timeout=STARTS_S)
            product = reply["content"].get("user_expressions", {}).get("product", {})
            if product.get("data", {}).get("text/plain") != "42":
                raise RuntimeError(f"it does not compute ({product or reply['content']})")
            return time.monotonic() - begun, manager.provisioner.not_warm
        except TimeoutError as error:
            raise RuntimeError(str(error)) from error
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    sys.exit(main())
