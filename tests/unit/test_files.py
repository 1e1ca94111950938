"""Files are replaced whole or not at all, whatever fails; and nobody in the library writes in any other way."""

import ast
import contextlib
import errno
import json
import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import pytest

import course_lib
from course_lib import files
from course_lib.checkpoints import weights
from course_lib.checkpoints.weights import CheckpointError, read_checkpoint, write_checkpoint
from course_lib.files import replacing
from course_lib.training.training_file import write_training
from tests.support.writers import WRITERS, contents

ROOT = Path(course_lib.__file__).parent


def write(folder, text, *names, gone=()):
    with replacing(folder, gone) as scratch:
        for name in names:
            (scratch / name).write_text(text)


def test_new_files_take_the_places_of_old_ones(tmp_path):
    folder = tmp_path / "new" / "folder"
    write(folder, "old", "a", "b", "c")
    write(folder, "new", "a", "b", gone=["c", "never there"])
    assert contents(folder) == {"a": b"new", "b": b"new"}


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_a_failure_changes_nothing(tmp_path, error):
    write(tmp_path, "old", "a", "b")
    with pytest.raises(type(error)), replacing(tmp_path, gone=["b"]) as scratch:
        (scratch / "a").write_text("new")
        raise error
    assert contents(tmp_path) == {"a": b"old", "b": b"old"}


@pytest.mark.parametrize("names", ["a", "ab"])
def test_whoever_may_read_new_files_may_read_these(tmp_path, names):
    """safetensors makes files that their owner alone may read, and a class shares a folder."""
    previous = os.umask(0o027)
    try:
        with replacing(tmp_path) as scratch:
            for name in names:
                os.close(os.open(scratch / name, os.O_CREAT | os.O_WRONLY, 0o600))
        write_checkpoint(tmp_path, {}, {"a": np.zeros(3)})
        write_training(tmp_path, {"a": np.zeros(3)}, {})
    finally:
        os.umask(previous)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o640}


def interrupted(folder, monkeypatch):
    """A checkpoint whose second file was not exchanged any more."""
    write_checkpoint(folder, {"version": 1}, {"a": np.zeros(1)})
    replace, seen = os.replace, []

    def once(source, target):
        seen.append(target)
        if len(seen) == 2:
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(files.os, "replace", once)
        write_checkpoint(folder, {"version": 2}, {"a": np.ones(1)})
    return next(folder.glob(".*"))


def test_files_of_two_models_are_noticed(tmp_path, monkeypatch):
    left = interrupted(tmp_path, monkeypatch)
    with pytest.raises(CheckpointError, match="was interrupted, .* moving model.safetensors from .* into it"):
        read_checkpoint(tmp_path)
    (left / "model.safetensors").replace(tmp_path / "model.safetensors")  # as the message says
    settings, state = read_checkpoint(tmp_path)
    assert settings == {"version": 2} and state["a"] == 1


def test_saving_again_mends_it(tmp_path, monkeypatch):
    interrupted(tmp_path, monkeypatch)
    write_checkpoint(tmp_path, {"version": 3}, {"a": np.ones(1)})
    assert read_checkpoint(tmp_path)[0] == {"version": 3}
    assert sorted(contents(tmp_path)) == ["config.json", "model.safetensors"]


@contextlib.contextmanager
def set_at_last(event):
    """A block after which nobody waits for the event, however it ended."""
    try:
        yield
    finally:
        event.set()


def patiently(monkeypatch):
    """Whoever reads here waits 300 times as long as usual for an exchange: another may have to wait for a processor."""
    monkeypatch.setattr(files, "_PATIENCE", 300 * files._PATIENCE)


def paused(monkeypatch, reached, go_on):
    """The first exchange in this process stops before its second file, until `go_on` is set."""
    replace, seen = os.replace, []

    def once(source, target):
        seen.append(target)
        if len(seen) == 2:
            reached.set()
            assert go_on.wait(300)
        replace(source, target)

    monkeypatch.setattr(files.os, "replace", once)


def test_two_that_save_at_once(tmp_path, monkeypatch):
    """The second waits until the first has exchanged its files, whatever it calls the folder."""
    reached, go_on = threading.Event(), threading.Event()
    paused(monkeypatch, reached, go_on)
    (tmp_path / "model").mkdir()
    (tmp_path / "link").symlink_to("model")
    with ThreadPoolExecutor() as pool, set_at_last(go_on):
        first = pool.submit(write, tmp_path / "model", "first", "a", "b")
        assert reached.wait(300)
        second = pool.submit(write, tmp_path / "link", "second", "a", "b")
        assert wait([second], timeout=0.3).not_done
        assert contents(tmp_path / "model")["b" if "b" in contents(tmp_path / "model") else "a"] == b"first"
        go_on.set()
        first.result(), second.result()
    assert contents(tmp_path / "model") == {"a": b"second", "b": b"second"}
    assert len(list((tmp_path / "model").iterdir())) == 2


def test_whoever_reads_while_another_saves_waits(tmp_path, monkeypatch):
    """And finds the new files, not an interruption nor the files of two models."""
    patiently(monkeypatch)
    write_checkpoint(tmp_path, {"version": 1}, {"a": np.full(1, 1.0)})
    reached, go_on = threading.Event(), threading.Event()
    paused(monkeypatch, reached, go_on)
    with ThreadPoolExecutor() as pool, set_at_last(go_on):
        saved = pool.submit(write_checkpoint, tmp_path, {"version": 2}, {"a": np.full(1, 2.0)})
        assert reached.wait(300)
        read = pool.submit(read_checkpoint, tmp_path)
        assert wait([read], timeout=0.1).not_done
        go_on.set()
        saved.result()
        assert read.result() == ({"version": 2}, {"a": 2.0})


def test_files_that_are_exchanged_between_two_looks(tmp_path, monkeypatch):
    """A whole save between the reading of the settings and that of the weights."""
    write_checkpoint(tmp_path, {"version": 1}, {"a": np.full(1, 1.0)})
    read, seen = weights._read_weights, []

    def late(folder):
        if not seen:
            seen.append(folder)
            write_checkpoint(tmp_path, {"version": 2}, {"a": np.full(1, 2.0)})
        return read(folder)

    monkeypatch.setattr(weights, "_read_weights", late)
    assert read_checkpoint(tmp_path) == ({"version": 2}, {"a": 2.0})


def test_processes_that_save_and_read_at_once(tmp_path, monkeypatch):
    """Three write the same folder again and again; whoever reads finds a whole model each time."""
    patiently(monkeypatch)
    code = (
        "import sys, numpy as np\n"
        "from course_lib.checkpoints.weights import write_checkpoint\n"
        "for i in range(40):\n"
        "    write_checkpoint(sys.argv[1], {'v': [sys.argv[2], i]}, {'a': np.array([int(sys.argv[2]), i])})\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT.parent)}
    write_checkpoint(tmp_path, {"v": ["0", 0]}, {"a": np.array([0, 0])})
    savers = [
        subprocess.Popen([sys.executable, "-c", code, tmp_path, str(k)], env=environment, stderr=subprocess.PIPE)
        for k in range(3)
    ]
    n_read, mixed = 0, []
    while any(saver.poll() is None for saver in savers):
        settings, state = read_checkpoint(tmp_path)
        n_read += 1
        mixed += [(settings, state)] if [int(v) for v in settings["v"]] != state["a"].tolist() else []
    assert [saver.communicate()[1] for saver in savers] == [b""] * 3 and n_read > 10 and not mixed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]


def test_a_remainder_is_kept_from_those_that_save_other_files(tmp_path, monkeypatch):
    """A tokenizer saved into the folder does not make a whole model of two halves."""
    left = interrupted(tmp_path, monkeypatch)
    write(tmp_path, "new", "tokenizer.json", "vocab.txt")
    assert left.is_dir()
    with pytest.raises(CheckpointError, match="was interrupted"):
        read_checkpoint(tmp_path)
    write(tmp_path, "new", "vocab.txt")
    write_checkpoint(tmp_path, {"version": 3}, {"a": np.ones(1)})
    assert read_checkpoint(tmp_path)[0] == {"version": 3} and not left.exists()


@pytest.mark.parametrize("gone", [False, True])
def test_a_folder_in_the_way_of_a_file(tmp_path, gone):
    write(tmp_path, "old", "a")
    (tmp_path / "b").mkdir()
    with pytest.raises(IsADirectoryError, match="nothing was changed") as caught:
        write(tmp_path, "new", "a", "c", *([] if gone else ["b"]), gone=["b"] if gone else [])
    assert caught.value.filename == str(tmp_path / "b")
    assert contents(tmp_path) == {"a": b"old"} and len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("kind", [OSError, RuntimeError, Exception])
def test_an_error_of_the_system_names_the_folder(tmp_path, kind, number):
    """Also one that a library in Rust reports by a text of its own."""
    with pytest.raises(OSError) as caught, replacing(tmp_path) as scratch:
        if kind is OSError:
            raise OSError(number, os.strerror(number), str(scratch / "a"))
        raise kind(f"Error while serializing: I/O error: {os.strerror(number)} (os error {number})")
    assert caught.value.errno == number and caught.value.filename == str(tmp_path)
    assert os.strerror(number) in str(caught.value) and "nothing was changed" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot_hold_files(tmp_path):
    (tmp_path / "file").touch()
    for place in ("file", "file/below"):
        with pytest.raises(OSError, match="nothing was changed"), replacing(tmp_path / place):
            pytest.fail("there is no folder to write in")


def test_every_writer_on_a_full_disk(tmp_path):
    """Each saves something small, then something large where there is no room for it.

    The disk is a small one of its own where the system lets us mount it; where it does not, and besides, the process
    may write no file of more than some bytes.
    """
    disk = tmp_path / "disk"
    disk.mkdir()
    command = [sys.executable, "-m", "tests.support.writers", str(disk)]
    mount = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    on_a_small_disk = f'mount -t tmpfs -o size=1m none {disk} && "$@"'
    try:
        may_mount = subprocess.run([*mount, f"mount -t tmpfs none {disk}"], capture_output=True).returncode == 0
    except FileNotFoundError:  # a system without unshare
        may_mount = False
    modes = ["limit", "disk"] if may_mount else ["limit"]
    command = [*mount, on_a_small_disk, "sh", *command] if may_mount else command
    environment = {**os.environ, "PYTHONPATH": str(ROOT.parent)}
    run = subprocess.run([*command, *modes], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert set(found) == {f"{mode} {name}" for mode in modes for name in WRITERS}
    wrong = {
        case: result
        for case, result in found.items()
        if result["errno"] != (errno.ENOSPC if case.startswith("disk") else errno.EFBIG)
        or str(disk) not in str(result["filename"])
        or not result["unchanged"]
    }
    assert not wrong, wrong


# what writes without `replacing`, and why it may
ALLOWED = {
    "data/sources/wheel.py _extract": "into a folder that is moved into the cache when it is whole",
    "data/sources/archive.py download": "into a folder that is moved into the cache when it is whole",
    "data/sources/archive.py _download": "into a folder that is moved into the cache when it is whole",
    "data/cache.py _write_stamp": "beside its place, then renamed; a stamp that is lost costs a look at the files",
    "grading/contain.py _descriptor_silenced": "the null device",
    "grading/marking/cluster.py grade_elsewhere": "into a folder that is moved into the course when it is whole",
    "grading/marking/cluster.py main": "into a temporary folder on a worker; the answer beside its place, then renamed",
    "grading/marking/laying.py _write": "beside its place, then renamed",
    "grading/marking/laying.py _note": "beside its place, then renamed; half a note is none",
    "grading/marking/normalise.py write": "made anew from what was handed in by every run",
    "grading/marking/trial.py _copy": "into a temporary copy of a course, which goes when the trial ends",
    "grading/outside/seeds.py _draw": "beside its place, then linked there, unless another was quicker",
    "grading/sandbox/__main__.py main": "into a temporary folder, from which Jupyter installs",
    "grading/sandbox/watch.py put_behind": "a setting of the system for a process",
    "training/training_file.py write_training": "beside its place, then renamed",
    "training/training_file.py prepare_folder": "a probe that goes at once",
}


def writes(call):
    name = ast.unparse(call.func)
    if name.endswith(("write_text", "write_bytes", "save_file", "serialize_file", "_fast.save", "_fast.model.save")):
        return True
    modes = [
        value.value for value in [*call.args, *(k.value for k in call.keywords)] if isinstance(value, ast.Constant)
    ]
    return name.split(".")[-1] == "open" and any(isinstance(m, str) and set(m) & set("wax+") for m in modes)


def unguarded(node, where="", guarded=False):
    """(function, line) of every call that writes outside a `with replacing(...)` block."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        where = node.name
    if isinstance(node, ast.With):
        guarded |= any(ast.unparse(item.context_expr).startswith("replacing(") for item in node.items)
    if isinstance(node, ast.Call) and writes(node) and not guarded:
        yield where, node.lineno
    for child in ast.iter_child_nodes(node):
        yield from unguarded(child, where, guarded)


def test_nobody_writes_in_any_other_way():
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        for where, line in unguarded(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(f"{path.relative_to(ROOT)} {where}", []).append(line)
    assert "data/sources/wheel.py _extract" in found, "the walk finds those that may"
    assert not set(found) - set(ALLOWED), {name: found[name] for name in set(found) - set(ALLOWED)}
