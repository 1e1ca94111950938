"""`python -m course_lib.grading.sandbox`: does the sandbox work here? With `install`, a kernel in it for Jupyter."""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from course_lib._extras import needed
from course_lib.grading.sandbox.provisioner import sandboxed
from course_lib.grading.sandbox.view import SandboxMissing, bubblewrap

with needed("lab"):
    from jupyter_client.kernelspec import KernelSpecManager

KERNEL = "python3-sandbox"


def main(arguments: list[str] | None = None) -> int:
    """Say whether it works, and return 0; 1 where it does not."""
    parser = argparse.ArgumentParser(prog="python -m course_lib.grading.sandbox", description=__doc__)
    parser.add_argument("action", nargs="?", choices=["check", "install"], default="check")
    parser.add_argument("--packages", nargs="+", metavar="NAME", help="what it may import; all that is installed")
    parser.add_argument("--prefix", default=sys.prefix, help="where it is installed; this environment")
    chosen = parser.parse_args(arguments)
    try:
        print(f"The sandbox works here, by {bubblewrap()}.")
    except SandboxMissing as error:
        print(error, file=sys.stderr)
        return 1
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


if __name__ == "__main__":
    sys.exit(main())
