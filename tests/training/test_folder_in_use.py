"""One folder, one training at a time; one that nobody may write into is noticed before hours of training."""

import errno
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from course_lib.checkpoints.weights import CheckpointError
from course_lib.training.training_file import FILE, alone_in, read_training, write_training
from tests.support import translators

HOLDER = """
import sys
from course_lib.training.training_file import alone_in
with alone_in(sys.argv[1]):
    print(1, flush=True)
    input()
"""


@pytest.fixture(params=["torch", "tensorflow"])
def library(request):
    return request.param


def train(library, folder, **changes):
    module = importlib.import_module(f"course_lib.{library}.training.translation")
    arguments = {"rate": 3e-3, "steps": 2, "checkpoint": folder, "progress": False} | changes
    return module.train(translators.build(library), translators.batches(), **arguments)


def test_a_second_training_into_the_same_folder_is_refused_and_the_first_goes_on(library, tmp_path):
    said = []

    def rate(step):
        if step == 1 and not said:
            with pytest.raises(CheckpointError, match="another training is being saved into .*; wait for its end") as e:
                train(library, tmp_path, seed=1)
            said.append(str(e.value))
        return 3e-3

    assert len(train(library, tmp_path, rate=rate).loss) == 2
    assert str(tmp_path) in said[0] and read_training(tmp_path)[1]["settings"]["seed"] == 0
    assert len(train(library, tmp_path, steps=3).loss) == 3, "the folder is free again"


def test_another_process_keeps_its_folder_and_its_half_written_file(tmp_path):
    path = os.pathsep.join(sys.path)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    with process:
        assert process.stdout.readline() == "1\n"
        theirs = tmp_path / f".{FILE}.{process.pid}"
        theirs.write_text("half of it")
        write_training(tmp_path, {}, {"step": 1})
        with pytest.raises(CheckpointError, match="another training"), alone_in(tmp_path):
            pytest.fail("two at once")
        assert theirs.exists()
        process.kill()
    with alone_in(tmp_path):
        assert not theirs.exists(), "the one who wrote it is gone"


def test_an_error_gives_the_folder_back(tmp_path):
    def rate(step):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as kept:  # with its traceback, as a notebook keeps the last one
        train("torch", tmp_path, rate=rate)
    assert len(train("torch", tmp_path).loss) == 2 and kept


@pytest.fixture
def read_only(monkeypatch):
    """A call of it makes the whole file system read-only, for what `pathlib` does."""

    def refuse(path, *arguments, **options):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    def begin():
        for name in ("touch", "write_bytes", "unlink"):
            monkeypatch.setattr(Path, name, refuse)

    return begin


def test_a_folder_that_has_become_read_only_is_noticed_before_the_first_update(library, tmp_path, read_only):
    train(library, tmp_path)
    read_only()
    asked = []
    with pytest.raises(OSError, match="no training can be saved there: Read-only file system"):
        train(library, tmp_path, steps=4, rate=lambda step: asked.append(step) or 3e-3)
    assert asked == [0, 1], "those of the saved updates"
    assert len(train(library, tmp_path).loss) == 2, "one that is over is loaded"


def test_what_cannot_be_removed_does_not_hide_why_it_was_not_saved(tmp_path, read_only):
    read_only()
    with pytest.raises(OSError, match="the training was not saved: Read-only file system"):
        write_training(tmp_path, {}, {"step": 1})
