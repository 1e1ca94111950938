"""Folders that a student hands in, while something happens to them, for tests."""

import errno
from collections.abc import Callable
from pathlib import Path

from course_lib.grading.marking import unread


def when_opened(monkeypatch, happens: Callable[[Path], None]) -> None:
    """Before a file or folder is opened there, `happens` gets its path; it may raise what the system would."""
    opened = unread._open

    def opening(top, place, flags):
        happens(top / place)
        return opened(top, place, flags)

    monkeypatch.setattr(unread, "_open", opening)


def refuse(monkeypatch, is_refused: Callable[[Path], bool]) -> None:
    """What `is_refused` says so of cannot be opened; rights would not bind root."""

    def happens(path):
        if is_refused(path):
            raise PermissionError(errno.EACCES, "Permission denied")

    when_opened(monkeypatch, happens)
