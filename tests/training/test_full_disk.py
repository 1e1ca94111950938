"""Saving a training on a disk that is full: a clear error, the old file stays, and a training goes on meanwhile."""

import contextlib
import errno
import importlib
import resource
import subprocess

import numpy as np
import pytest

from course_lib.training.training_file import FILE, read_training, write_training
from tests.support import translators

ROOM = 16 * 1024  # bytes; a training here takes some 60,000


@contextlib.contextmanager
def full():
    """No file of this process may grow beyond ROOM: what the system then answers to a write is an error of its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def full_disk(folder):
    """A small disk of its own where that is allowed, and otherwise a limit to the size of files."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={4 * ROOM}", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True).returncode == 0
    except OSError:
        mounted = False
    try:
        with contextlib.nullcontext() if mounted else full():
            yield
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_named_and_the_old_file_stays(tmp_path):
    with full_disk(tmp_path):
        write_training(tmp_path, {"a": np.ones(3)}, {"step": 1})
        with pytest.raises(OSError, match=r"not saved: .* \(1\.0 MB needed, .* MB free on the disk\)") as caught:
            write_training(tmp_path, {"a": np.zeros(250_000, np.float32)}, {"step": 2})
        assert caught.value.errno in (errno.ENOSPC, errno.EFBIG)
        assert caught.value.filename == str(tmp_path / FILE)
        assert read_training(tmp_path)[1] == {"step": 1}
        assert [path.name for path in tmp_path.iterdir()] == [FILE]


class Filling(list):
    """Batches; the disk is full from the third one on, until the `last`."""

    def __init__(self, items, last, limit):
        super().__init__(items)
        self.last, self.limit = last, limit

    def __getitem__(self, i):
        if i == 2:
            self.limit.enter_context(full())
        if i == self.last:
            self.limit.close()
        return super().__getitem__(i)


def train(framework, folder, last, steps=6):
    model = translators.build(framework)
    with contextlib.ExitStack() as limit:
        pairs = translators.batches()
        history = importlib.import_module(f"course_lib.{framework}.training.translation").train(
            model,
            lambda epoch: Filling(pairs(epoch), last, limit),
            steps=steps,
            checkpoint=folder,
            save_every=0.0,
            progress=False,
        )
    return history


def test_a_training_goes_on_while_the_disk_is_full(tmp_path):
    with pytest.warns(RuntimeWarning, match=r"not saved: .*; the training goes on, and tries again in 0 s") as warned:
        history = train("torch", tmp_path, last=4)
    assert len([w for w in warned if "not saved" in str(w.message)]) == 2
    assert len(history.loss) == 6 and read_training(tmp_path)[1]["step"] == 6


@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_the_last_state_that_is_not_saved_is_an_error(framework, tmp_path):
    with pytest.warns(RuntimeWarning, match="tries again"), pytest.raises(OSError, match="not saved"):
        train(framework, tmp_path, last=None, steps=5)
    assert read_training(tmp_path)[1]["step"] == 2


def test_a_folder_that_cannot_be_is_an_error_before_the_training(tmp_path):
    (tmp_path / "file").write_text("")

    def batches(epoch):
        pytest.fail("the training has begun")

    with pytest.raises(OSError, match=r"no training can be saved there.*file/folder"):
        importlib.import_module("course_lib.torch.training.translation").train(
            translators.build("torch"), batches, steps=1, checkpoint=tmp_path / "file" / "folder", progress=False
        )
