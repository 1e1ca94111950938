"""Fixtures: an empty cache, pip cut off from everything but a folder of wheels, a toy data set in it, an archive."""

import io
import os
import tarfile
from dataclasses import replace

import pytest

from course_lib.data.registry import REGISTRY
from tests.support.toys import FILES, build_wheel, sha256, toy_entry


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder, which does not exist yet."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("COURSE_DATA_DIR", str(folder))
    monkeypatch.delenv("COURSE_DATA_SOURCE", raising=False)
    return folder


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """The only folder in which pip finds anything."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "wheels"
    folder.mkdir()
    settings = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1", "PIP_RETRIES": "0", "PIP_TIMEOUT": "600"}
    for name, value in {**settings, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}.items():
        monkeypatch.setenv(name, value)
    return folder


@pytest.fixture
def toy(cache, wheels, monkeypatch):
    """The registry entry "toy", whose wheel lies where pip finds it."""
    entry = toy_entry(build_wheel(wheels, FILES), FILES)
    monkeypatch.setitem(REGISTRY, "toy", entry)
    return entry


@pytest.fixture
def from_index(monkeypatch):
    """A function that makes pip use the package index at a URL instead of the folder of wheels."""

    def use(url):
        monkeypatch.delenv("PIP_NO_INDEX", raising=False)
        monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
        monkeypatch.setenv("PIP_INDEX_URL", url)

    return use


@pytest.fixture
def place(tmp_path, cache, monkeypatch):
    """A function that puts an archive of TED talks where the registry looks for it second; the first is gone."""

    def put(files, **changes):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            for name, text in {**files, "README": "more than we want"}.items():
                data = text.encode()
                member = tarfile.TarInfo(f"datasets/pt_to_en/{name}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        path = tmp_path / "talks.tar.gz"
        path.write_bytes(packed.getvalue())
        entry = REGISTRY["ted-pt-en"]
        found = {"size": len(packed.getvalue()), "sha256": sha256(packed.getvalue())}
        urls = ((tmp_path / "gone.tar.gz").as_uri(), path.as_uri())
        ours = replace(entry.archive, urls=urls, **{**found, **changes})
        monkeypatch.setitem(REGISTRY, "ted-pt-en", replace(entry, archive=ours))

    return put
