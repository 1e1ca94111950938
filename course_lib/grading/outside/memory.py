"""How much memory this process may take while functions of the tests compute with what a student's code gives them.

A sum of two small tensors, one wide and one high, may be as large as the machine's memory.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

MEMORY = 2**30  # bytes, for all that functions of the tests compute in one call of a student's: right ones need few


def end_of_memory() -> int | None:
    """The bytes that this process has when it has taken `MEMORY` more; None where the system does not say."""
    try:
        import resource  # which Windows has not

        return int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize() + MEMORY
    except (ImportError, OSError):
        return None


@contextlib.contextmanager
def at_most(bytes: int | None) -> Iterator[None]:
    """A block in which this process has so many; more of them raise a `MemoryError`, or PyTorch's `RuntimeError`."""
    if bytes is None:
        yield
        return
    import resource

    own = resource.getrlimit(resource.RLIMIT_DATA)
    most = min(each for each in (bytes, *own) if each != resource.RLIM_INFINITY)
    resource.setrlimit(resource.RLIMIT_DATA, (most, own[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, own)
