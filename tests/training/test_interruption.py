"""Ctrl-C during a training: the last complete update is saved, and a training that goes on from there is exact."""

import importlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.training.interruption import Interruption
from course_lib.training.training_file import FILE, read_training
from tests.support import translators
from tests.support.resume_process import train as process_train


class Interrupting(list):
    """Batches; taking the one at `place` interrupts."""

    def __init__(self, items, place, interrupt):
        super().__init__(items)
        self.place, self.interrupt = place, interrupt

    def __getitem__(self, i):
        if i == self.place:
            self.interrupt()
        return super().__getitem__(i)


def by_signal():
    signal.raise_signal(signal.SIGINT)


def by_exception():
    raise KeyboardInterrupt


def train(library, folder, batches):
    model = translators.build(library, dropout=0.3)
    settings = {"rate": 3e-3, "steps": 13, "validate_every": 4, "progress": False, "save_every": 1e9}
    held_out = translators.batches(20, seed=5)(0)
    try:
        module = importlib.import_module(f"course_lib.{library}.training.translation")
        history = module.train(model, batches, held_out, checkpoint=folder, **settings)
    except KeyboardInterrupt:
        history = None
    return model, history


@pytest.mark.parametrize(
    ("library", "interrupt", "done"),
    [("torch", by_signal, 9), ("torch", by_exception, 8), ("tensorflow", by_exception, 8)],
)
def test_interrupted_and_resumed_is_as_good_as_undisturbed(library, tmp_path, interrupt, done):
    """At the third batch of the second epoch: by a signal, after which the update is made, or before it."""
    plain = translators.batches(30, 5)

    def interrupting(epoch):
        return Interrupting(plain(epoch), 2 if epoch else None, interrupt)

    model, history = train(library, tmp_path, interrupting)
    assert history is None and read_training(tmp_path)[1]["step"] == done
    assert library != "torch" or not any(module.training for module in model.modules())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    resumed, expected = train(library, tmp_path, plain), train(library, None, plain)
    assert_array_equal(resumed[1].loss, expected[1].loss)
    assert resumed[1].best.step == expected[1].best.step
    assert [look.nll for look in resumed[1].validation] == [look.nll for look in expected[1].validation]
    get_state = translators.LIBRARIES[library].get_state
    for name, value in get_state(expected[0]).items():
        assert_array_equal(get_state(resumed[0])[name], value, err_msg=name)


@pytest.mark.parametrize("library", ["torch", "tensorflow"])
def test_ctrl_c_in_a_process(library, tmp_path):
    """A signal from outside, at any moment of the third epoch or later, to a training that saves nothing by itself."""
    command = [sys.executable, "-m", "tests.support.resume_process", library, str(tmp_path), "30000", "0.02", "1e9"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while (line := process.stdout.readline()) != "epoch 2\n":
        assert line, process.communicate()[1]
    time.sleep(np.random.default_rng().uniform(0.0, 0.2))
    assert not (tmp_path / FILE).exists()
    process.send_signal(signal.SIGINT)
    errors = process.communicate()[1]
    assert process.returncode != 0 and "KeyboardInterrupt" in errors, errors
    step = read_training(tmp_path)[1]["step"]
    assert 12 <= step < 30_000
    resumed, expected = process_train(library, tmp_path, step + 5), process_train(library, None, step + 5)
    # Another process may compute with another number of threads, which changes the last bits.
    assert_allclose(resumed.loss, expected.loss, rtol=1e-5, err_msg=f"interrupted after update {step}")


def test_interrupted_before_the_first_update_nothing_is_saved(tmp_path):
    """What has no last batch could never be resumed."""
    library, plain = "torch", translators.batches(30, 5)
    _, history = train(library, tmp_path, lambda epoch: Interrupting(plain(epoch), 0, by_exception))
    assert history is None and not (tmp_path / FILE).exists()
    assert len(train(library, tmp_path, plain)[1].loss) == 13


def test_an_interruption_in_the_middle_of_an_update_waits_for_its_end(tmp_path):
    model = translators.build("torch", dropout=0.3)
    calls = []

    def interrupt(*_):
        calls.append(1)
        if len(calls) == 3:
            by_signal()

    model.register_forward_hook(interrupt)
    settings = {"rate": 3e-3, "checkpoint": tmp_path, "save_every": 1e9, "progress": False}
    with pytest.raises(KeyboardInterrupt):
        training = importlib.import_module("course_lib.torch.training.translation")
        training.train(model, translators.batches(), steps=9, **settings)
    assert len(calls) == 3 and read_training(tmp_path)[1]["step"] == 3 and not model.training


def test_the_second_ctrl_c_interrupts_at_once():
    with pytest.raises(KeyboardInterrupt), Interruption() as interruption:
        by_signal()
        assert interruption.asked
        by_signal()
        pytest.fail("the second one was swallowed")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_another_handler_and_another_thread_stay_as_they_are():
    caught = []
    before = signal.signal(signal.SIGINT, lambda *_: caught.append(1))
    try:
        with Interruption() as interruption:
            by_signal()
        assert caught and not interruption.asked
    finally:
        signal.signal(signal.SIGINT, before)
    done = []

    def work():
        with Interruption():
            done.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [signal.default_int_handler]


class Failing(list):
    """Sequences of which one cannot be read."""

    def __getitem__(self, i):
        if i == 7:
            raise OSError("gone")
        return super().__getitem__(i)


def test_the_mode_is_put_right_when_an_error_comes_out(examples):
    from tests.support.classifiers import build

    run, sequences = build("torch"), Failing(examples[0])
    with pytest.raises(OSError, match="gone"):
        run.training.train(run.model, sequences, examples[1], progress=False)
    assert not run.model.training
    for mode in (True, False):
        run.model.train(mode)
        for function, model in ((run.training.predict, run.model), (run.training.embed, run.model.bert)):
            with pytest.raises(OSError, match="gone"):
                function(model, sequences)
            assert model.training == mode
    model = translators.build("torch")
    for mode in (True, False):
        model.train(mode)
        with pytest.raises(OSError, match="gone"):
            held_out = Interrupting(translators.batches()(0), 1, lambda: Failing(range(9))[7])
            translation = importlib.import_module("course_lib.torch.training.translation")
            translation.evaluate(model, (held_out[i] for i in range(3)))
        assert model.training == mode
