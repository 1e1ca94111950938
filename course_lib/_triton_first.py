"""Import Triton before TensorFlow: the other way round, the process dies as soon as PyTorch loads Triton.

The PyTorch of the package registry comes with Triton on Linux. Triton and TensorFlow each bring an LLVM of their own,
and Triton's does not survive being loaded second: making any optimizer of PyTorch's then ends in a segmentation fault
or in "LLVM ERROR: inconsistency in registered CommandLine options" (tensorflow/tensorflow#124205). `install` therefore
makes the first import of TensorFlow import Triton just before.

It is at work in every Python that has the course installed, in whatever order torch and tensorflow are imported and
whether or not the course is: the installation puts a copy of this file and a `.pth` file that calls it beside the
packages. Without an installation (PYTHONPATH alone, `python -S`), importing anything of course_lib does the same.
What that cannot mend is a process that had TensorFlow without Triton before; it then hides Triton, which
PyTorch does without (all but `torch.compile` for a GPU), and says so.

This file imports nothing of the course, because it runs whenever Python starts.
"""

import sys

EARLY, LATE = "triton", "tensorflow"


class TritonFirst:
    """An import hook that finds nothing and, asked for TensorFlow, imports Triton if it is there."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """None, so that the import goes on to those who find modules."""
        if name == LATE and EARLY not in sys.modules:
            try:
                import triton  # noqa: F401
            except Exception:  # none is installed; or a broken one, of which PyTorch will tell who needs it
                pass
        return None


def install() -> None:
    """Make the first import of TensorFlow import Triton before; where it comes too late, hide Triton and warn."""
    if EARLY in sys.modules:
        return
    if LATE not in sys.modules:
        if not any(getattr(hook, "__name__", None) == "TritonFirst" for hook in sys.meta_path):
            sys.meta_path.insert(0, TritonFirst)
        return
    from importlib.util import find_spec

    if find_spec(EARLY) is not None:
        import warnings

        sys.modules[EARLY] = None  # importing it is an ImportError from now on, which PyTorch expects
        warnings.warn(
            "TensorFlow was imported before Triton, which would end this process; Triton stays out, so torch.compile "
            "cannot use a GPU here. Restart Python and import course_lib (or triton) first",
            RuntimeWarning,
            stacklevel=3,
        )
