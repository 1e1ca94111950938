"""A folder with another training than the one that is called says so; the same one in another form goes on."""

import functools
import importlib
import shutil
import zlib

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.checkpoints.weights import CheckpointError
from course_lib.models.seq2seq import Seq2SeqConfig
from course_lib.models.transformer import TransformerConfig
from course_lib.training.training_file import read_training, write_training
from tests.support import translators


@pytest.fixture(params=["torch", "tensorflow"])
def library(request):
    return request.param


def resume(library, folder, model=None, batches=None, **changes):
    module = importlib.import_module(f"course_lib.{library}.training.translation")
    arguments = {"rate": 3e-3, "steps": 2, "checkpoint": folder, "progress": False} | changes
    return module.train(model or translators.build(library), batches or translators.batches(), **arguments)


@pytest.fixture
def saved(library, tmp_path, saved_once):
    """A folder with a training of two updates, the test's own copy."""
    return shutil.copytree(saved_once(library), tmp_path / "saved")


@pytest.fixture(scope="module")
def saved_once(tmp_path_factory):
    """(library, how a model is made) -> such a folder, made once: tracing a training takes TensorFlow seconds."""

    @functools.cache
    def folder(library, make=None, settings=()):
        made = tmp_path_factory.mktemp(library)
        resume(library, made, make and make(library, **dict(settings)))
        return made

    return folder


def held_out(seed=5):
    return translators.batches(20, 10, seed)(0)


def test_a_training_with_validation_is_not_resumed_without(library, tmp_path):
    """Its best weights of then would be taken for those of the end."""
    resume(library, tmp_path, validation=held_out())
    with pytest.raises(CheckpointError, match="holds a training with validation, this one has none"):
        resume(library, tmp_path, steps=3)


def test_a_training_without_validation_is_not_resumed_with_one(library, saved):
    with pytest.raises(CheckpointError, match="holds a training without validation, this one has one"):
        resume(library, saved, steps=3, validation=held_out())


def test_a_validation_of_an_earlier_version_is_not_forgotten(tmp_path):
    """Files were written whose settings say nothing of it."""
    resume("torch", tmp_path, validation=held_out())
    arrays, facts = read_training(tmp_path)
    facts["settings"] = {name: value for name, value in facts["settings"].items() if "validation" not in name}
    write_training(tmp_path, arrays, facts)
    with pytest.raises(CheckpointError, match="holds a training with validation, this one has none"):
        resume("torch", tmp_path, steps=3)
    assert len(resume("torch", tmp_path, steps=3, validation=held_out()).loss) == 3


def of_config(library, **settings):
    config = TransformerConfig(23, 23, **{"d_model": 12, "n_layers": 1, "n_heads": 3, "d_ff": 20, **settings})
    return translators.LIBRARIES[library].Transformer(config)


def recurrent(library, **settings):
    return translators.LIBRARIES[library].Seq2Seq(Seq2SeqConfig(23, 23, 12, 12, **settings))


OTHERWISE = [
    (of_config, {"positions": None}, {"positions": "sinusoidal"}, "positions=None, this one .*='sinusoidal'"),
    (of_config, {"positions": None}, {"positions": "rotary"}, "positions=None, this one .*='rotary'"),
    (recurrent, {"score": "dot"}, {"score": None}, "score='dot', this one has score=None"),
    (recurrent, {"score": "dot"}, {"score": "dot", "order": "luong"}, "order='bahdanau', this one .*='luong'"),
]
# the other way round, in PyTorch alone: what is compared are the same settings
ROUND = [
    (of_config, {"positions": "sinusoidal"}, {"positions": None}, "positions='sinusoidal', this one .*=None"),
    (recurrent, {"score": None}, {"score": "dot"}, "score=None, this one has score='dot'"),
]


@pytest.mark.parametrize(
    ("library", "make", "before", "after", "message"),
    [(library, *case) for library in ("torch", "tensorflow") for case in OTHERWISE] + [("torch", *c) for c in ROUND],
)
def test_a_model_that_computes_otherwise_from_the_same_weights(
    library, saved_once, tmp_path, make, before, after, message
):
    folder = shutil.copytree(saved_once(library, make, tuple(before.items())), tmp_path / "saved")
    with pytest.raises(CheckpointError, match=message):
        resume(library, folder, make(library, **after), steps=3)


def test_a_second_model_of_the_same_class_goes_on(library, saved_once, tmp_path):
    """Keras gives each one a name of its own."""
    folder = shutil.copytree(saved_once(library, recurrent, (("score", "dot"),)), tmp_path / "saved")
    assert len(resume(library, folder, recurrent(library, score="dot"), steps=3).loss) == 3


def with_other(change):
    plain = translators.batches()
    return lambda epoch: [change(*batch[:2]) for batch in plain(epoch)]


def test_a_last_batch_that_differs_anywhere_is_other_data(library, saved):
    def other_start(source, target):
        return source, np.concatenate([target[:, :1] + 1, target[:, 1:]], axis=1)

    def other_shape(source, target):  # the same numbers in the same order
        half = source.shape[1] // 2 if source.shape[1] % 2 == 0 else None
        return (source.reshape(-1, half) if half else source.reshape(-1)[None]), target

    for change in (other_start, other_shape):
        with pytest.raises(CheckpointError, match="holds a training on other data"):
            resume(library, saved, batches=with_other(change), steps=3)


@pytest.mark.parametrize(("library", "dtype"), [("torch", ">i8"), ("torch", np.uint16), ("tensorflow", np.int32)])
def test_the_same_numbers_of_another_type_are_the_same_data(library, saved, dtype):
    same = with_other(lambda source, target: (source.astype(dtype), target.astype(dtype)))
    found = resume(library, saved, batches=same, steps=4)
    assert_allclose(found.loss, resume(library, None, steps=4).loss, rtol=1e-5)


def test_an_earlier_checksum_is_still_understood(tmp_path):
    """The first one left out the first target tokens and the shapes, and depended on the type of the numbers."""
    resume("torch", tmp_path, steps=8)
    arrays, facts = read_training(tmp_path)
    assert facts.pop("batch")
    source, target, _ = translators.batches()(1)[1]
    facts["last_batch"] = zlib.crc32(np.ascontiguousarray(target[:, 1:]), zlib.crc32(source))
    write_training(tmp_path, arrays, facts)
    with pytest.raises(CheckpointError, match="other data"):
        resume("torch", tmp_path, batches=translators.batches(seed=4), steps=9)
    assert len(resume("torch", tmp_path, steps=9).loss) == 9


def test_an_epoch_that_can_be_read_once_only_is_named_when_a_training_goes_on(library, saved):
    plain = translators.batches()
    with pytest.raises(TypeError, match="epoch 0 must be a sequence of batches, got list_iterator"):
        resume(library, saved, batches=lambda epoch: iter(plain(epoch)), steps=3)


def test_numpys_numbers_are_those_they_stand_for(library, tmp_path):
    resume(library, tmp_path, smoothing=np.float32(0.1), max_norm=np.float32(0.3))
    assert len(resume(library, tmp_path, smoothing=0.1, max_norm=0.3, steps=3).loss) == 3
    with pytest.raises(CheckpointError, match=r"max_norm=0\.3\d*, this one has max_norm=None"):
        resume(library, tmp_path, smoothing=0.1, steps=4)


def test_weights_that_are_set_inside_autocast_are_computed_with():
    """Autocast keeps the copies of the weights that it cast when the model was called before."""
    model, other = (translators.build("torch", "transformer") for _ in range(2))
    with torch.no_grad():
        for weight in other.parameters():
            weight.mul_(1.5)
    ids = torch.as_tensor(translators.batches()(0)[0][0])
    with torch.autocast("cpu", torch.bfloat16):
        model(ids, ids)
        translators.LIBRARIES["torch"].set_state(model, translators.LIBRARIES["torch"].get_state(other))
        assert torch.equal(model(ids, ids).logits, other(ids, ids).logits)


def test_a_training_goes_on_inside_autocast_after_a_look_at_the_model(tmp_path):
    ids = torch.as_tensor(translators.batches()(0)[0][0])

    def losses(steps, folder):
        model = translators.build("torch", "transformer")
        with torch.autocast("cpu", torch.bfloat16):
            model(ids, ids)
            return resume("torch", folder, model, steps=steps, rate=1e-2).loss

    losses(5, tmp_path)
    assert_array_equal(losses(8, tmp_path), losses(8, None))
