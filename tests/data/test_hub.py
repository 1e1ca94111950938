"""The canonical source: our side of it in full, the hub's client replaced by a folder laid out as the hub lays it."""

import errno
import inspect
import shutil
import sys
from dataclasses import replace
from fnmatch import fnmatch

import huggingface_hub
import numpy as np
import pyarrow
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled
from pyarrow import parquet

from course_lib.data import DataError, fetch, is_cached, reviews, verify
from course_lib.data.registry import REGISTRY, DataSet, File, HubRepo
from tests.support.toys import FILES, sha256

REVISION = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(cache, tmp_path, monkeypatch):
    """The hub's files, under hub/REPOSITORY/REVISION/; calls are recorded in `hub.calls`."""
    real = inspect.signature(huggingface_hub.snapshot_download)
    root = tmp_path / "hub"

    class Hub:
        calls = []

        @staticmethod
        def add(repo, revision, path, data):
            file = root / repo / revision / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)

    def snapshot_download(*arguments, **options):
        call = real.bind(*arguments, **options).arguments  # fails if the client has no such parameter
        Hub.calls.append(call)
        origin = root / call["repo_id"] / call["revision"]
        if not origin.is_dir():
            raise LocalEntryNotFoundError(f"no revision {call['revision']}")
        for file in origin.rglob("*"):
            name = file.relative_to(origin).as_posix()
            if file.is_file() and any(fnmatch(name, pattern) for pattern in call["allow_patterns"]):
                target = call["local_dir"] / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, target)
        (call["local_dir"] / ".cache" / "huggingface").mkdir(parents=True)
        return str(call["local_dir"])

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return Hub


@pytest.fixture
def model(hub, monkeypatch):
    """A checkpoint that only the hub has; its repository holds more files than we want."""
    for name, data in {**FILES, "pytorch_model.bin": b"a pickle"}.items():
        hub.add("authors/toy", REVISION, name, data)
    files = (File("config.json", "config.json"), File("weights.bin", "weights.bin", None, sha256(FILES["weights.bin"])))
    entry = DataSet(
        "toy-hub", "checkpoint", "A toy", "CC0-1.0", (), hub=(HubRepo("authors/toy", "model", REVISION, files),)
    )
    monkeypatch.setitem(REGISTRY, entry.name, entry)
    return entry


def test_fetch_takes_the_listed_files_of_the_pinned_revision(hub, model, cache, monkeypatch):
    folder = fetch("toy-hub", source="canonical")
    assert folder == cache / "toy-hub-canonical"
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".stamp.json"} == FILES
    (call,) = hub.calls
    assert (call["repo_id"], call["repo_type"], call["revision"]) == ("authors/toy", "model", REVISION)
    assert call["allow_patterns"] == ["config.json", "weights.bin"], "nothing else is worth a download"
    monkeypatch.setenv("COURSE_DATA_SOURCE", "canonical")
    assert fetch("toy-hub") == folder and len(hub.calls) == 1
    assert {path.name for path in cache.iterdir()} <= {folder.name, f".{folder.name}.lock"}


def test_default_source_never_asks_the_hub(hub, model):
    with pytest.raises(DataError, match="no source 'pypi'; set COURSE_DATA_SOURCE=canonical"):
        fetch("toy-hub")
    assert hub.calls == []


def test_file_without_a_registered_hash_is_checked_against_the_first_download(hub, model):
    folder = fetch("toy-hub", source="canonical")
    assert verify("toy-hub", "canonical") == []
    (folder / "config.json").write_bytes(b'{"toy": fals}\n')
    (problem,) = verify("toy-hub", "canonical")
    assert "config.json is damaged" in problem
    fetch("toy-hub", source="canonical")
    assert verify("toy-hub", "canonical") == [] and len(hub.calls) == 2


def test_files_of_another_revision_are_fetched_again_though_no_hash_is_registered(hub, model, monkeypatch):
    folder, newer = fetch("toy-hub", source="canonical"), "f" * 40
    for name, data in {**FILES, "config.json": b'{"toy": 2}'}.items():
        hub.add("authors/toy", newer, name, data)
    monkeypatch.setitem(REGISTRY, "toy-hub", replace(model, hub=(replace(model.hub[0], revision=newer),)))
    assert not is_cached("toy-hub", "canonical")
    assert (fetch("toy-hub", source="canonical") / "config.json").read_bytes() == b'{"toy": 2}'
    assert verify("toy-hub", "canonical") == [] and (folder / "weights.bin").read_bytes() == FILES["weights.bin"]


def test_wrong_hash(hub, model, cache):
    hub.add("authors/toy", REVISION, "weights.bin", b"others")
    with pytest.raises(DataError, match=f"weights.bin of authors/toy@0123456789ab has SHA-256 {sha256(b'others')}"):
        fetch("toy-hub", source="canonical")
    assert not is_cached("toy-hub", "canonical") and not list(cache.glob("*toy-hub-canonical*/*"))


def test_unknown_revision(hub, model, monkeypatch):
    monkeypatch.setitem(REGISTRY, "toy-hub", replace(model, hub=(replace(model.hub[0], revision="f" * 40),)))
    with pytest.raises(DataError, match="did not deliver authors/toy@ffffffffffff.*no revision ffff"):
        fetch("toy-hub", source="canonical")


def test_file_that_the_repository_lacks(hub, model, monkeypatch):
    repo = replace(model.hub[0], files=(*model.hub[0].files, File("vocab.txt", "vocab.txt")))
    monkeypatch.setitem(REGISTRY, "toy-hub", replace(model, hub=(repo,)))
    with pytest.raises(DataError, match="holds no file vocab.txt"):
        fetch("toy-hub", source="canonical")


@pytest.mark.parametrize(
    "error",
    [
        LocalEntryNotFoundError("cannot reach the hub"),
        ConnectionRefusedError(errno.ECONNREFUSED, "cannot reach the hub"),
        OfflineModeIsEnabled("cannot reach the hub"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_network(hub, model, cache, monkeypatch, error):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(DataError, match="did not deliver authors/toy@.*check the network.*cannot reach the hub"):
        fetch("toy-hub", source="canonical")
    assert [path.name for path in cache.iterdir() if not path.name.endswith(".lock")] == []


def test_full_disk(hub, model, monkeypatch):
    def fail(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(DataError, match="The disk of .* is full"):
        fetch("toy-hub", source="canonical")


def test_missing_client_names_the_extra_to_install(model, cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(DataError, match=r"huggingface_hub: run `pip install -e '\.\[canonical\]'`"):
        fetch("toy-hub", source="canonical")


@pytest.fixture
def canonical_reviews(hub, monkeypatch):
    """The two review repositories with four and two rows, in the layout and the column types of the real ones."""
    corpora = {
        "imdb": (["Dreadful.<br /><br />Truly.", "A joy", "Ça alors!", "Meh"], [0, 1, 1, 0]),
        "rotten-tomatoes": (["effective but too-tepid biopic", "interminably bleak"], [1, 0]),
    }
    entry, repos = REGISTRY["movie-reviews"], []
    for repo in entry.hub:
        (file,) = repo.files
        texts, labels = corpora[file.name.removesuffix(".parquet")]
        table = pyarrow.table({"text": pyarrow.array(texts), "label": pyarrow.array(labels, pyarrow.int64())})
        sink = pyarrow.BufferOutputStream()
        parquet.write_table(table, sink)
        hub.add(repo.repo, repo.revision, file.path, sink.getvalue().to_pybytes())
        hub.add(repo.repo, repo.revision, "README.md", b"a data card")
        repos.append(replace(repo, files=(replace(file, sha256=None, size=None),)))
    monkeypatch.setitem(REGISTRY, "movie-reviews", replace(entry, hub=tuple(repos)))
    return corpora


def test_canonical_reviews_load_like_the_default_ones(canonical_reviews, hub):
    texts, labels = reviews.load("imdb", source="canonical")
    assert list(texts) == ["Dreadful. Truly.", "A joy", "Ça alors!", "Meh"] and texts.dtype == object
    np.testing.assert_array_equal(labels, [0, 1, 1, 0])
    assert labels.dtype == np.int64
    texts, labels = reviews.load("rotten-tomatoes", source="canonical")
    assert list(texts) == canonical_reviews["rotten-tomatoes"][0]
    np.testing.assert_array_equal(labels, [1, 0])
    assert [call["repo_type"] for call in hub.calls] == ["dataset", "dataset"], "each repository once"
    (fetch("movie-reviews", source="canonical") / "rotten-tomatoes.parquet").unlink()
    assert not is_cached("movie-reviews", "canonical"), "the files of both count"


def test_missing_parquet_reader_names_the_extra_to_install(canonical_reviews, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"pyarrow: run `pip install -e '\.\[canonical\]'`"):
        reviews.load("imdb", source="canonical")
