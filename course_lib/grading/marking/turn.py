"""One run at a time over a course, and one that is ended from outside ends in order."""

import contextlib
import errno
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import filelock

LOCK = ".marking.lock"


@contextlib.contextmanager
def only_run(root: Path) -> Iterator[None]:
    """A block in which no other run works on the course in the folder `root`: it would take this one for interrupted.

    Where the file system has no locks, or lets us write nothing, that is said, and the block entered as it is.

    Raises
    ------
    ValueError : there is another one, or no such folder, or nobody can tell, as the lock is another account's.
    """
    if not root.is_dir():
        raise ValueError(f"{root} is no folder of a course")
    # The operating system's, so it ends with the processes that hold it. All who may grade here may open it, whatever
    # the umask of who came first.
    lock = filelock.FileLock(root / LOCK, mode=0o666)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise ValueError(f"Another run is grading in {root.resolve()}: wait for its end.") from None
    except (OSError, NotImplementedError) as error:
        if getattr(error, "errno", None) == errno.EACCES and (root / LOCK).exists():
            raise ValueError(
                f"{root.resolve() / LOCK} belongs to another account and cannot be opened, so that nobody can tell "
                "whether a run of that account is grading here. When none is, remove the file."
            ) from None
        print(
            f"Warning: {root.resolve() / LOCK} cannot be locked ({getattr(error, 'strerror', None) or error}): nothing "
            "keeps a second run out. See to it that no other one grades in this course until this one has ended.",
            file=sys.stderr,
        )
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def ending_in_order() -> Iterator[None]:
    """A block that SIGTERM, or SIGHUP of a closed terminal, ends as Ctrl-C does: what it had begun is taken back.

    Python itself would be gone at once. A second signal waits until that is done.
    """

    def end(number: int, frame) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)  # as a shell has it

    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    # `nohup` ignores SIGHUP, and means it.
    before = {each: signal.SIG_DFL for each in signals if signal.getsignal(each) is signal.SIG_DFL}
    for each in before:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
