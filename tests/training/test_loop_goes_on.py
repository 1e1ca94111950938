"""What the loop saves: a training of any objective and optimizer goes on exactly, and another one does not."""

import functools
import shutil

import pytest
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.checkpoints.weights import CheckpointError
from course_lib.training.training_file import read_training, write_training
from tests.support import tasks
from tests.support.tasks import DROPOUT, module, train


@pytest.fixture(params=["torch", "tensorflow"])
def library(request):
    return request.param


def test_the_last_update_of_an_epoch_may_have_fewer_batches(library, tmp_path):
    """Five batches by twos make three updates; saved in the middle of an epoch, the training goes on exactly."""

    def run(steps, folder):
        model = tasks.build(library, "classification", DROPOUT)
        optimizer = module(library, "optimizers").adamw(model, layer_decay=0.7)
        found = train(library, "classification", model, accumulate=2, steps=steps, checkpoint=folder,
                      optimizer=optimizer, validation=tasks.batches("classification", 1)(0))  # fmt: skip
        return found, tasks.LIBRARIES[library].get_state(model)

    run(4, tmp_path)
    (resumed, weights), (expected, others) = run(8, tmp_path), run(8, None)
    assert_array_equal(expected.tokens, [16, 16, 8, 16, 16, 8, 16, 16])
    assert_allclose(resumed.loss, expected.loss, rtol=1e-6)
    for name, value in others.items():
        if not name.endswith("k_proj.bias"):  # its gradient is zero but for rounding, which Adam magnifies
            assert_allclose(weights[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("layer_decay", [1.0, 0.8])
def test_each_weight_has_its_own_averages_in_the_file(tmp_path, layer_decay):
    """In PyTorch, which counts them in the order of the optimizer's groups."""
    model = tasks.build("torch", "classification")
    optimizer = module("torch", "optimizers").adamw(model, layer_decay=layer_decay)
    train("torch", "classification", model, steps=1, optimizer=optimizer, checkpoint=tmp_path)
    arrays, _ = read_training(tmp_path)
    for name, weight in model.named_parameters():
        average = optimizer.state[weight]["exp_avg"].numpy()
        assert_array_equal(arrays[f"optimizer.{name}:exp_avg"], average, err_msg=name)


def test_validations_of_several_parts_are_saved(library, tmp_path):
    settings = {"validation": tasks.batches("pretraining", 1)(0), "checkpoint": tmp_path}
    first = train(library, "pretraining", steps=2, validate_every=1, **settings)
    again = train(library, "pretraining", steps=2, validate_every=1, **settings)
    assert first.validation == again.validation and first.best == again.best
    assert again.best.parts["next"].n_tokens == 8


def run(library, folder, task="classification", optimizer=0.1, **more):
    model = tasks.build(library, task)
    if optimizer is not None:
        optimizer = module(library, "optimizers").adamw(model, optimizer)
    return train(library, task, model, optimizer=optimizer, checkpoint=folder, **more)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """library -> the folder of a training of one update, made once: tracing it takes TensorFlow seconds."""

    @functools.cache
    def folder(library):
        run(library, made := tmp_path_factory.mktemp(library), steps=1)
        return made

    return folder


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"accumulate": 2}, "accumulate=1, this one has accumulate=2"),
        ({"optimizer": 0.2}, "optimizer=.*0.1.*, this one has optimizer=.*0.2"),
        ({"optimizer": None}, "optimizer=.*AdamW.*, this one has optimizer=None"),
        ({"task": "distillation"}, "objective='classification', this one has objective='distillation of"),
        ({"given": lambda epoch: [b._replace(labels=b.labels * 0) for b in tasks.batches("classification")(epoch)]},
         "holds a training on other data"),
    ],
)  # fmt: skip
def test_another_training_is_refused(library, saved, tmp_path, changes, message):
    with pytest.raises(CheckpointError, match=message):
        run(library, shutil.copytree(saved(library), tmp_path / "copy"), steps=2, **changes)


@pytest.mark.parametrize("library", ["torch"])
def test_a_training_with_another_teacher_is_refused(library, tmp_path):
    for seed in (8, 9):
        teacher = tasks.build(library, "distillation", seed=seed)
        objective = module(library, "objectives").distillation(teacher)
        arguments = {"steps": seed - 7, "checkpoint": tmp_path, "progress": False}
        call = (tasks.build(library, "distillation"), tasks.batches("distillation"), objective)
        if seed == 8:
            module(library, "loop").train(*call, **arguments)
            continue
        with pytest.raises(CheckpointError, match="the checksum of the teacher"):
            module(library, "loop").train(*call, **arguments)


def test_a_file_that_does_not_say_it_means_the_papers_adam(tmp_path):
    """As those do that were written when there was one objective only."""
    train("torch", "translation", steps=1, checkpoint=tmp_path)
    arrays, facts = read_training(tmp_path)
    for name in ("objective", "accumulate", "optimizer"):
        del facts["settings"][name]
    write_training(tmp_path, arrays, facts)
    model = tasks.build("torch", "translation")
    with pytest.raises(CheckpointError, match="optimizer=None, this one has"):
        optimizer = module("torch", "optimizers").adamw(model)
        train("torch", "translation", model, steps=2, checkpoint=tmp_path, optimizer=optimizer)
    assert len(train("torch", "translation", steps=2, checkpoint=tmp_path).loss) == 2
