"""A training killed at a random moment and resumed has the loss curve of one undisturbed; damaged files say so."""

import importlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import translators
from numpy.testing import assert_allclose, assert_array_equal
from resume_process import train

from course_lib.checkpoints import FILE, read_training, write_training
from course_lib.weights import CheckpointError

HERE = Path(__file__).parent
STEPS = 30


@pytest.fixture(params=["torch", "tensorflow"])
def framework(request):
    return request.param


def start(framework, folder, slow):
    command = [sys.executable, str(HERE / "resume_process.py"), framework, str(folder), str(STEPS), str(slow)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_killed_and_resumed_is_as_good_as_undisturbed(framework, tmp_path):
    undisturbed = train(framework, None, STEPS)
    process = start(framework, tmp_path, 0.03)
    while not (tmp_path / FILE).exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    time.sleep(np.random.default_rng().uniform(0.0, 0.4))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "killed too late"
    _, facts = read_training(tmp_path)
    assert 0 < facts["step"] < STEPS
    resumed = train(framework, tmp_path, STEPS)
    assert_allclose(resumed.loss, undisturbed.loss, rtol=1e-5, err_msg=f"killed after step {facts['step']}")
    assert_allclose([v.nll for v in resumed.validation], [v.nll for v in undisturbed.validation], rtol=1e-5)
    assert_array_equal(resumed.tokens, undisturbed.tokens)
    assert len(resumed.seconds) == STEPS and (np.diff(resumed.seconds) >= 0).all()


def test_interrupted_anywhere_the_weights_are_the_same(framework, tmp_path):
    """Also at the end of an epoch (6 batches) and beside a validation (every 4 updates)."""
    get_state = importlib.import_module(f"course_lib.{framework}").get_state
    run = importlib.import_module(f"course_lib.{framework}.translation").train
    arguments = {"rate": 3e-3, "smoothing": 0.1, "validate_every": 4, "progress": False}

    def last_weights(stops, folder):
        for steps in stops:
            model = translators.build(framework, dropout=0.3)
            run(model, translators.batches(30, 5), steps=steps, checkpoint=folder, **arguments)
            assert read_training(folder)[1]["step"] == steps, "saved at the end, and not from the start again"
        return get_state(model)

    expected = last_weights([13], tmp_path / "at once")
    for name, value in last_weights([4, 6, 7, 13], tmp_path / "in pieces").items():
        # An update is 3e-3; threads add in another order each time, and Adam enlarges that where a gradient is near 0.
        assert_allclose(value, expected[name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_one_that_is_over_is_loaded(framework, tmp_path):
    first, again = train(framework, tmp_path, 9), train(framework, tmp_path, 9)
    assert_array_equal(first.loss, again.loss)
    assert first.validation == again.validation and first.best == again.best and again.stopped_by == "steps"
    assert_array_equal(first.seconds, again.seconds)


def resume(framework, folder, **changes):
    arguments = {"rate": 3e-3, "steps": 5, "checkpoint": folder, "progress": False} | changes
    batches = arguments.pop("batches", translators.batches())
    model = translators.build(framework, dropout=0.3)
    return importlib.import_module(f"course_lib.{framework}.translation").train(model, batches, **arguments)


def test_other_settings_or_data_are_refused(framework, tmp_path):
    resume(framework, tmp_path, steps=3)
    with pytest.raises(CheckpointError, match=r"smoothing=0\.1, this one has smoothing=0\.2"):
        resume(framework, tmp_path, smoothing=0.2)
    with pytest.raises(CheckpointError, match="other data"):
        resume(framework, tmp_path, batches=translators.batches(seed=4))
    with pytest.raises(CheckpointError, match="other data"):
        resume(framework, tmp_path, batches=translators.batches(size=30))
    with pytest.raises(CheckpointError, match=r"the rate of step 0=0\.003, this one has the rate of step 0=0\.004"):
        resume(framework, tmp_path, rate=4e-3)
    with pytest.raises(CheckpointError, match=r"the rate of step 2=0\.003, this one has the rate of step 2=0\.001"):
        resume(framework, tmp_path, rate=lambda step: 3e-3 / (step + 1))
    with pytest.raises(CheckpointError, match="clock='perf_counter', this one has clock='process_time'"):
        resume(framework, tmp_path, clock=time.process_time)
    assert len(resume(framework, tmp_path, rate=lambda step: 3e-3).loss) == 5


@pytest.mark.parametrize(
    ("framework", "model"), [("torch", "transformer"), ("torch", "seq2seq"), ("tensorflow", "seq2seq")]
)
def test_another_dropout_is_refused(framework, tmp_path, model):
    run = importlib.import_module(f"course_lib.{framework}.translation").train
    settings = {"checkpoint": tmp_path, "progress": False}
    run(translators.build(framework, model, dropout=0.1), translators.batches(), steps=1, **settings)
    with pytest.raises(CheckpointError, match=r"dropout=0\.1, this one has dropout=0\.2"):
        run(translators.build(framework, model, dropout=0.2), translators.batches(), steps=2, **settings)


def test_a_file_of_an_earlier_version_is_resumed(tmp_path):
    """One that kept fewer settings, and no rates."""
    resume("torch", tmp_path, steps=3)
    arrays, facts = read_training(tmp_path)
    facts["settings"] = {name: facts["settings"][name] for name in ("smoothing", "max_norm", "seed")}
    write_training(tmp_path, arrays, {name: fact for name, fact in facts.items() if name != "rates"})
    assert len(resume("torch", tmp_path).loss) == 5


def test_a_damaged_file_says_so(tmp_path):
    write_training(tmp_path, {"a": np.arange(1000.0)}, {"step": 1})
    content = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(content[: len(content) // 2])
    with pytest.raises(CheckpointError, match="no training to resume"):
        read_training(tmp_path)


def test_arrays_and_facts_come_back(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.uint8([1, 2]), "c": np.int64(7), "empty": np.zeros((0, 3))}
    write_training(tmp_path / "new" / "folder", arrays, {"step": 3, "text": "é", "number": 0.1})
    found, facts = read_training(tmp_path / "new" / "folder")
    assert facts == {"step": 3, "text": "é", "number": 0.1}
    assert found.keys() == arrays.keys()
    for name, value in arrays.items():
        assert_array_equal(found[name], value)
        assert found[name].dtype == np.asarray(value).dtype and found[name].shape == np.shape(value)
    assert read_training(tmp_path) is None


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    write_training(tmp_path, {"a": np.ones(3)}, {"step": 1})

    def full(*args):
        raise OSError("no space left on device")

    monkeypatch.setattr("course_lib.checkpoints.os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_training(tmp_path, {"a": np.zeros(3)}, {"step": 2})
    assert read_training(tmp_path)[1] == {"step": 1}
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
