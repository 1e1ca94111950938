"""Gradebooks in memory, and nbgrader's ways with a gradebook where a process has many of them."""

import contextlib
import functools
import itertools
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from course_lib._extras import needed

with needed("lab"):
    import nbgrader.api
    from nbgrader.api import Base
    from sqlalchemy import event
    from sqlalchemy.pool import NullPool

IN_MEMORY = "course-lib-in-memory"  # in the URL of such a gradebook
_names: set[str] = set()  # of those that this process has open
_create_engine, _create_all = nbgrader.api.create_engine, Base.metadata.create_all


@contextlib.contextmanager
def in_memory(path: Path) -> Iterator[str]:
    """The URL of a copy of the gradebook in this file, which this process alone has, during this block."""
    # The first name is the same in each process: a forked one finds the engine of this URL, with what it has compiled.
    name = next(name for number in itertools.count() if (name := f"file:{IN_MEMORY}-{number}") not in _names)
    place = f"{name}?mode=memory&cache=shared"
    _names.add(name)
    try:
        with contextlib.closing(sqlite3.connect(place, uri=True)) as copy:  # there as long as somebody has it open
            with contextlib.closing(sqlite3.connect(path)) as file:
                file.backup(copy)
            yield f"sqlite:///{place}&uri=true"
    finally:
        _names.remove(name)


@functools.lru_cache(8)
def _engine(url: str, **settings):
    """nbgrader opens a gradebook a dozen times in a grading, and SQLAlchemy compiles what is asked once for an engine.

    No connection is kept, so that forked processes may go on with it; and that of a gradebook that could not be opened
    would go on with a file that was replaced since.
    """
    engine = _create_engine(url, **{"poolclass": NullPool, **settings})
    if IN_MEMORY in str(url):  # where somebody else has not yet committed, who reads would fail, and not wait
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA read_uncommitted = 1"))
    return engine


def _create_missing(bind, *given, **settings) -> None:
    """nbgrader looks for every table each time, and one in memory is a copy that has them."""
    if IN_MEMORY not in str(bind.engine.url):
        _create_all(bind, *given, **settings)


nbgrader.api.create_engine, Base.metadata.create_all = _engine, _create_missing
