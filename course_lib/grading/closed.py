"""Close a module for the length of an assignment whose subject it already contains."""

import importlib.abc
import sys

from course_lib.grading.compare import CheckFailed


class _Closed(importlib.abc.MetaPathFinder):
    def __init__(self, names: tuple[str, ...], reason: str):
        self.names = names
        self.reason = reason

    def find_spec(self, fullname, path=None, target=None):
        if fullname in self.names:
            raise ImportError(f"`{fullname}` is closed in this notebook. {self.reason}")
        return None


def close_modules(*names: str, reason: str) -> None:
    """Make `import name` raise an `ImportError` that gives the reason, in this process from now on.

    It keeps an honest student within the rules. It stops nobody who sets out to undo it: the code and the
    checks share one process.

    Args:
        names: full module names, such as "torch" or "course_lib.numpy".
        reason: one sentence that says what to do instead.
    """
    sys.meta_path[:] = [f for f in sys.meta_path if not (isinstance(f, _Closed) and f.names == names)]
    sys.meta_path.insert(0, _Closed(names, reason))


def expect_closed(*names: str) -> None:
    """Check that none of the modules was loaded.

    Raises:
        CheckFailed: with the names of those that were.
    """
    loaded = [name for name in names if sys.modules.get(name) is not None]
    if loaded:
        raise CheckFailed(
            f"This notebook loaded {', '.join(loaded)}, which the assignment's rules close. Remove the import, "
            "restart the kernel and run all cells."
        )
