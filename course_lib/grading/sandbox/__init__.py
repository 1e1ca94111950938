"""A sandbox for kernels: what a student's notebook may see, use and leave behind. Linux, by bubblewrap.

A kernel in it has no network, a read-only system, and of the machine's files only Python, the packages that it may
import, and what lies beside its own notebook. It writes into a folder of its own, of limited size. Memory, processes
and time are limited, and all that it started ends with it. There is nothing to set up as an administrator: bubblewrap
uses the name spaces of Linux, and these may be used by everybody on most systems.

It is a kernel provisioner of Jupyter's, so nbgrader, nbclient, JupyterLab and papermill run it as they run any
kernel:

    python -m course_lib.grading.sandbox              # does a kernel work in it on this machine?
    python -m course_lib.grading.sandbox install      # a kernel "python3-sandbox", which nbgrader can be told to use:
                                                      # c.Execute.kernel_name = "python3-sandbox"

- `view`: the file system that the kernel sees, as arguments of bubblewrap
- `provisioner`: starts, interrupts and ends the kernel; how it is reached without a network stands there
- `watch`: the limits on what all its processes have together
- `calls`: what it may not ask of the system
- `warm` and `parent`: a kernel that need not import PyTorch first. It is forked, by its own setting, from a process in
  the sandbox that has imported what is needed; a fresh process for each notebook, in a sandbox of its own, to which
  nothing comes from the one before

What it does not do: it is no virtual machine. A fault of the Linux kernel that a process can use is open to the
student's as well. Of the memory that the system itself keeps for a process, not all can be counted from outside
(`watch`). And what happens inside of the student's own process is out of its reach: marks that cannot be
forged are the subject of `course_lib.grading.outside`.
"""

from course_lib.grading.sandbox.view import SandboxMissing, bubblewrap

__all__ = ["SandboxMissing", "bubblewrap"]
