"""A Vision Transformer trained by the loop on labelled images: the same in both frameworks, and what it learns."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.batches.images import ImageBatch, ImageBatches
from course_lib.batches.texts import IGNORED
from course_lib.models.bert import BertConfig
from course_lib.models.vit import ViTConfig
from course_lib.training import reading
from tests.support import states, tasks
from tests.support.backends import TENSORFLOW, TORCH

CONFIG = ViTConfig((6, 9), 3, 2, 12, n_layers=1, n_heads=3, d_ff=20, n_classes=3)
BOTH = {"torch": TORCH, "tensorflow": TENSORFLOW}
RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, size=48)
IMAGES = RNG.normal(size=(48, 2, 6, 9)).astype(np.float32)
IMAGES[np.arange(48), 0, 1, 3 * LABELS + 1] += 3  # the class is the column of patches that holds a bright pixel


def trained(library, steps, config=CONFIG, batches=None, **settings):
    model = BOTH[library].make("ViT", config, state=states.random_state(states.vit(config), seed=2))
    loop, objectives = tasks.module(library, "loop"), tasks.module(library, "objectives")
    batches = ImageBatches(IMAGES, LABELS, 16, seed=3) if batches is None else batches
    objective = objectives.image_classification()
    history = loop.train(model, batches.epoch, objective, rate=1e-2, steps=steps, progress=False, **settings)
    return history, BOTH[library].lib.get_state(model), loop.evaluate(model, ImageBatches(IMAGES, LABELS), objective)


def test_fifty_steps_agree_between_the_frameworks():
    runs = [trained(library, 50) for library in BOTH]
    losses = [history.loss for history, _, _ in runs]
    assert len(losses[0]) == 50
    assert_allclose(losses[0], losses[1], rtol=0, atol=1e-3)
    assert losses[0][-1] < 0.5 * losses[0][0]
    assert_allclose([evaluation.nll for *_, evaluation in runs], runs[0][2].nll, atol=1e-3)
    assert runs[0][2].accuracy > 0.9
    before = states.random_state(states.vit(CONFIG), seed=2)
    for name, value in runs[0][1].items():
        if not name.endswith("k_proj.bias"):  # it adds the same to all scores of a query, so its gradient is noise
            assert_allclose(runs[1][1][name], value, rtol=0, atol=1e-3, err_msg=name)
            assert abs(before[name] - value).max() > 1e-2, name


@pytest.mark.parametrize("library", BOTH)
def test_what_is_wrong_with_a_batch_is_said_before_the_training(library):
    for config, message in (
        (replace(CONFIG, n_classes=2), "the labels of batch 0 of epoch 0 must lie in 0 ... 1"),
        (replace(CONFIG, image_size=9), "the images of batch 0 of epoch 0 must be of 9 x 9 pixels"),
        (replace(CONFIG, n_channels=3), r"the images of batch 0 of epoch 0 must have shape \(B, 3, height, width\)"),
        (replace(CONFIG, n_classes=1), "a classifier of one class has nothing to learn"),
    ):
        with pytest.raises(ValueError, match=message):
            trained(library, 1, config)


def test_how_a_batch_is_read():
    model = SimpleNamespace(config=CONFIG)
    labels = np.array([0, IGNORED, 2])
    update = reading.images(model, "B", ImageBatch(IMAGES[:3].astype(np.float64), labels))
    assert update.counts == (2,) and update.arrays["images"].dtype == np.float32
    assert_allclose(update.arrays["images"], IMAGES[:3])
    assert_allclose(update.arrays["labels"], labels)
    for batch, error, message in [
        (ImageBatch((IMAGES[:3] * 9).astype(np.uint8), labels), TypeError, "the images of B must be .* divide bytes"),
        (ImageBatch(IMAGES[:3], labels[:2]), ValueError, "the labels of B has the shape .* does not fit its images"),
        (ImageBatch(IMAGES[:3], labels / 2), TypeError, "the labels of B must be integers"),
        (ImageBatch(IMAGES[:3, 0], labels), ValueError, r"must have shape \(B, C, height, width\)"),
        (IMAGES[:3], TypeError, r"B must be a ImageBatch\(images, labels\)"),
    ]:
        with pytest.raises(error, match=message):
            reading.images(model, "B", batch)
    with pytest.raises(TypeError, match="a SimpleNamespace reads no images"):
        reading.images(SimpleNamespace(config=BertConfig(9, 8, 1, 2, 8)), "B", ImageBatch(IMAGES[:3], labels))


def test_batches_of_images():
    batches = ImageBatches(IMAGES, LABELS, 20, seed=3)
    assert [len(batch.labels) for batch in batches] == [20, 20, 8]
    for epoch in (batches, batches.epoch(4)):
        images, labels = (np.concatenate(parts) for parts in zip(*epoch, strict=True))
        order = [int(np.flatnonzero((IMAGES == image).all(axis=(1, 2, 3)))[0]) for image in images]
        assert sorted(order) == list(range(48)) and order != sorted(order)
        assert_allclose(labels, LABELS[order])
    assert np.abs(batches[0].images - batches.epoch(1)[0].images).max() > 1
    assert_allclose(ImageBatches(IMAGES, LABELS, 20, epoch=1, seed=3)[0].images, batches.epoch(1)[0].images)
    assert_allclose(ImageBatches(IMAGES, LABELS, 20, seed=None)[1].images, IMAGES[20:40])
    assert batches[0].images.dtype == np.float32 and batches[0].labels.dtype == np.int64


def test_bytes_become_numbers_from_0_to_1():
    pixels = np.array([0, 51, 255], dtype=np.uint8).reshape(1, 1, 1, 3)
    found = ImageBatches(pixels, [4], seed=None)[0].images
    assert found.dtype == np.float32
    assert_allclose(found.ravel(), [0, 0.2, 1])


@pytest.mark.parametrize("images, labels, options, error, message", [
    (IMAGES[0], LABELS, {}, ValueError, r"images must have shape \(N, C, height, width\)"),
    (IMAGES[:0], LABELS[:0], {}, ValueError, "N of 1 or more"),
    (IMAGES, LABELS[:-1], {}, ValueError, r"one label for each of 48 images, got \(47,\)"),
    (IMAGES, LABELS / 2, {}, TypeError, "labels must be integers"),
    (IMAGES.astype(int), LABELS, {}, TypeError, "images must be numbers of floating point, or bytes, got int64"),
    (IMAGES, LABELS, {"batch_size": 0}, ValueError, "batch_size must be a whole number"),
    (IMAGES, LABELS, {"epoch": -1}, ValueError, "epoch must be a whole number"),
])  # fmt: skip
def test_what_makes_no_batches(images, labels, options, error, message):
    with pytest.raises(error, match=message):
        ImageBatches(images, labels, **options)
