"""A training killed at a random moment and resumed has the loss curve of one undisturbed; damaged files say so."""

import importlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.checkpoints.weights import CheckpointError
from course_lib.models.seq2seq import Seq2SeqConfig
from course_lib.training.training_file import FILE, read_training, write_training
from tests.support import translators
from tests.support.resume_process import train

STEPS = 30_000  # of the one that is killed: no delay of the kill may see it end
FRAMEWORKS = ["torch", "tensorflow"]


@pytest.fixture(params=FRAMEWORKS)
def framework(request):
    return request.param


def start(framework, folder, slow):
    command = [sys.executable, "-m", "tests.support.resume_process", framework, str(folder), str(STEPS), str(slow)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_killed_and_resumed_is_as_good_as_undisturbed(framework, tmp_path):
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
    steps = facts["step"] + 15
    undisturbed, resumed = train(framework, None, steps), train(framework, tmp_path, steps)
    assert_allclose(resumed.loss, undisturbed.loss, rtol=1e-5, err_msg=f"killed after step {facts['step']}")
    assert_allclose([v.nll for v in resumed.validation], [v.nll for v in undisturbed.validation], rtol=1e-5)
    assert_array_equal(resumed.tokens, undisturbed.tokens)
    assert len(resumed.seconds) == steps and (np.diff(resumed.seconds) >= 0).all()


def test_interrupted_anywhere_the_weights_are_the_same(framework, tmp_path):
    """Also at the end of an epoch (6 batches) and beside a validation (every 4 updates)."""
    get_state = importlib.import_module(f"course_lib.{framework}").get_state
    run = importlib.import_module(f"course_lib.{framework}.training.translation").train
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
    return importlib.import_module(f"course_lib.{framework}.training.translation").train(model, batches, **arguments)


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
    run = importlib.import_module(f"course_lib.{framework}.training.translation").train
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

    monkeypatch.setattr("course_lib.training.training_file.os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_training(tmp_path, {"a": np.zeros(3)}, {"step": 2})
    assert read_training(tmp_path)[1] == {"step": 1}
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def held_out(seed=5, n=20, size=10):
    return translators.batches(n, size, seed)(0)


def test_other_validation_data_are_refused(framework, tmp_path):
    """The old data's best would silently be the new one's."""
    resume(framework, tmp_path, steps=3, validation=held_out())
    fewer = held_out()[:1]
    wider = [(np.pad(source, ((0, 0), (0, 1))), target) for source, target, _ in held_out()]
    for other in (held_out(6), fewer, wider):
        with pytest.raises(CheckpointError, match="the checksum of validation"):
            resume(framework, tmp_path, validation=other)


def test_the_same_validation_data_are_taken(tmp_path):
    resume("torch", tmp_path, steps=3, validation=held_out())
    assert len(resume("torch", tmp_path, validation=held_out()).validation) == 2


@pytest.mark.parametrize("kind", [np.int32, torch.as_tensor], ids=["int32", "tensor"])
def test_the_same_validation_data_in_another_form(tmp_path, kind):
    resume("torch", tmp_path, steps=3, validation=held_out(), validate_every=1)
    same = [tuple(map(kind, batch)) for batch in held_out()]
    assert len(resume("torch", tmp_path, validation=same, validate_every=1).validation) == 5


def test_another_padding_is_refused(tmp_path):
    framework, run = "torch", importlib.import_module("course_lib.torch.training.translation").train
    settings = {"checkpoint": tmp_path, "progress": False}
    for pad_id in (0, 22):
        model = translators.LIBRARIES[framework].Seq2Seq(Seq2SeqConfig(23, 23, 12, 12, pad_id=pad_id))
        if pad_id == 0:
            run(model, translators.batches(), steps=1, **settings)
            continue
        with pytest.raises(CheckpointError, match="pad_id=0, this one has pad_id=22"):
            run(model, translators.batches(), steps=2, **settings)


def freeze(framework, part):
    if framework == "torch":
        part.requires_grad_(False)
    else:
        part.trainable = False


@pytest.mark.parametrize(
    ("framework", "frozen"),
    [("torch", (None, "target")), ("torch", ("source", None))] + [(name, ("source", "target")) for name in FRAMEWORKS],
)
def test_other_frozen_parameters_are_refused(framework, tmp_path, frozen):
    """Adam's averages would go to other parameters."""
    library = translators.LIBRARIES[framework]
    run = importlib.import_module(f"course_lib.{framework}.training.translation").train
    arguments = {"rate": 3e-3, "checkpoint": tmp_path, "progress": False}
    for steps, part in zip((2, 3), frozen, strict=True):
        model = translators.build(framework)
        if part:
            freeze(framework, getattr(model, part))
        before = library.get_state(model)
        if steps == 2:
            run(model, translators.batches(), steps=steps, **arguments)
            continue
        with pytest.raises(CheckpointError, match=r"other parameters: .*(source|target)\.weight"):
            run(model, translators.batches(), steps=steps, **arguments)
    for name, value in library.get_state(model).items():
        assert_array_equal(value, before[name], err_msg=name)


@pytest.mark.parametrize("parts", [("model", "model"), (None, "model"), ("output", "model"), ("model", None)])
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # PyTorch looks itself
def test_a_training_goes_on_whether_compiled_or_not(tmp_path, parts):
    run = importlib.import_module("course_lib.torch.training.translation").train
    arguments = {"rate": 3e-3, "progress": False}

    def losses(steps, part, folder):
        model = translators.build("torch")
        if part == "model":
            model = torch.compile(model, backend="eager")
        elif part:
            setattr(model, part, torch.compile(getattr(model, part), backend="eager"))
        return run(model, translators.batches(), steps=steps, checkpoint=folder, **arguments).loss

    losses(2, parts[0], tmp_path)
    assert_allclose(losses(4, parts[1], tmp_path), losses(4, None, None), rtol=1e-5)


def test_an_older_file_of_a_compiled_model_is_resumed(tmp_path):
    resume("torch", tmp_path, steps=3)
    arrays, facts = read_training(tmp_path)
    arrays = {name.replace("optimizer.", "optimizer._orig_mod."): value for name, value in arrays.items()}
    write_training(tmp_path, arrays, {name: fact for name, fact in facts.items() if name != "trainable"})
    assert len(resume("torch", tmp_path).loss) == 5


class Averaging(translators.TorchSketch):
    """A user's own model, which keeps something besides its weights."""

    def __init__(self, dropout):
        super().__init__(dropout)
        self.average = torch.nn.BatchNorm1d(translators.D)
        self.register_buffer("none", torch.tensor(-float("inf")))

    def forward(self, source_ids, target_ids):
        self.average(self.source(source_ids).flatten(0, 1))
        return super().forward(source_ids, target_ids)


def test_buffers_are_saved_and_belong_to_the_best(tmp_path):
    run = importlib.import_module("course_lib.torch.training.translation").train
    arguments = {"progress": False, "validation": held_out(), "validate_every": 1}

    def averages(stops, folder, rate):
        for steps in stops:
            torch.manual_seed(0)
            model = Averaging(0.0)
            history = run(model, translators.batches(), steps=steps, checkpoint=folder, rate=rate, **arguments)
        return history.best.step, model.state_dict()

    def then_worse(step):
        return 1e-3 if step < 2 else 1e3

    for rate in (1e-3, then_worse):
        folder = tmp_path / str(rate)[:3]
        best, expected = averages([5], None, rate)
        again, found = averages([3, 5], folder, rate)
        assert best == again == (5 if rate == 1e-3 else 2) and int(expected["average.num_batches_tracked"]) == best
        for name in ("average.running_mean", "average.running_var", "average.num_batches_tracked"):
            assert_allclose(found[name], expected[name], rtol=1e-4, err_msg=name)


def test_numbers_may_be_numpys(framework, tmp_path):
    settings = {"seed": np.int64(1), "max_norm": np.float32(1), "smoothing": np.float32(0.125)}
    resume(framework, tmp_path, steps=2, **settings)
    plain = {name: value.item() for name, value in settings.items()}
    assert len(resume(framework, tmp_path, steps=np.int64(3), **plain).loss) == 3


def test_a_file_without_an_update_starts_afresh(tmp_path):
    """Earlier versions wrote one when Ctrl-C came before the first update."""
    framework = "torch"
    resume(framework, tmp_path, steps=1)
    arrays, facts = read_training(tmp_path)
    facts |= {"step": 0, "epoch": 0, "position": 0, "last_batch": 0, "rates": [[0, 3e-3], [-1, 3e-3]]}
    write_training(tmp_path, arrays, facts)
    expected = resume(framework, None, steps=2)
    assert_allclose(resume(framework, tmp_path, steps=2).loss, expected.loss, rtol=1e-6)
