"""The convolutional network: its values by a loop, alike in every framework, its size, and that it learns."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.batches.images import ImageBatches
from course_lib.models.cnn import CNNConfig
from tests.support import states, tasks
from tests.support.backends import TENSORFLOW, TORCH

CONFIG = CNNConfig((6, 9), 2, widths=(4, 5), depth=2, n_classes=3)  # the second stage halves 4 columns, of 9 / 2
IMAGES = np.random.default_rng(0).normal(size=(3, 2, 6, 9))
STATE = states.random_state(states.cnn(CONFIG))


def by_loops(image):
    """From the definition, a pixel at a time."""
    x = image
    for number in range(4):
        weight, bias = STATE[f"convolutions.{number}.weight"], STATE[f"convolutions.{number}.bias"]
        height, width = x.shape[1:]
        y = np.empty((len(weight), height, width))
        for row in range(height):
            for column in range(width):
                y[:, row, column] = bias
                for i in (-1, 0, 1):
                    for j in (-1, 0, 1):
                        if 0 <= row + i < height and 0 <= column + j < width:
                            y[:, row, column] += weight[:, :, i + 1, j + 1] @ x[:, row + i, column + j]
        x = np.maximum(y, 0)
        if number % 2:
            rows, columns = range(0, height - 1, 2), range(0, width - 1, 2)
            x = np.array([[[z[i : i + 2, j : j + 2].max() for j in columns] for i in rows] for z in x])
    return STATE["classifier.weight"] @ x.mean(axis=(1, 2)) + STATE["classifier.bias"], x


def test_values(backend):
    found = backend.call(backend.make("CNN", CONFIG, state=STATE), IMAGES)
    for image, logits, features in zip(IMAGES, *found, strict=True):
        expected = by_loops(image)
        assert_allclose(logits, expected[0], **backend.tolerance)
        assert_allclose(features, expected[1], **backend.tolerance)
        assert features.any()


def test_gradients():
    results = {b: b.gradients(b.make("CNN", CONFIG, state=STATE), IMAGES)[1] for b in (TORCH, TENSORFLOW)}
    for name, gradient in results[TORCH].items():
        assert_allclose(results[TENSORFLOW][name], gradient, rtol=1e-4, atol=5e-5, err_msg=name)
        assert gradient.any(), name


def test_fresh_weights_keep_the_variance(backend):
    model = backend.make("CNN", CNNConfig(8, 3, (40,), 2))
    for name, d_in in (("convolutions.0.weight", 3), ("convolutions.1.weight", 40)):
        value = backend.lib.get_state(model)[name]
        assert_allclose(value.std(), (2 / (9 * d_in)) ** 0.5, rtol=6 / np.sqrt(2 * value.size))
    assert not backend.lib.get_state(model)["convolutions.1.bias"].any()


def test_the_number_of_parameters_is_counted_and_can_be_asked_for(backend):
    state = backend.lib.get_state(backend.make("CNN", CONFIG))
    assert {name: value.shape for name, value in state.items()} == states.cnn(CONFIG)
    assert CONFIG.n_parameters == sum(value.size for value in state.values())
    found = CNNConfig.of_size(20_000, n_stages=2, n_classes=4)
    assert found.widths[1] == 2 * found.widths[0] and found.n_classes == 4
    wider = CNNConfig(widths=tuple(width + width // found.widths[0] for width in found.widths), n_classes=4)
    assert found.n_parameters <= 20_000 < wider.n_parameters
    with pytest.raises(ValueError, match="30 parameters are too few; one feature takes"):
        CNNConfig.of_size(30)


@pytest.mark.parametrize("images, error, message", [
    ((IMAGES * 9).astype(np.uint8), TypeError, "divide bytes by 255"),
    (IMAGES[..., :6], ValueError, "must be of 6 x 9 pixels .*, got 6 x 6(?!; `interp)"),
    (np.moveaxis(IMAGES, 1, -1), ValueError, "channels that stand last"),
], ids=["bytes", "size", "channels"])  # fmt: skip
def test_bad_images(backend, images, error, message):
    with pytest.raises(error, match=message):
        backend.call(backend.make("CNN", CONFIG), images)


@pytest.mark.parametrize("changes, message", [
    ({"widths": ()}, "widths must be integers"),
    ({"widths": (4, 0)}, "widths must be integers"),
    ({"depth": 0}, "depth must be an integer"),
    ({"n_classes": 0}, "n_classes must be an integer"),
    ({"image_size": (4, 40)}, r"3 stages halve \(4, 40\) pixels"),
    ({"image_size": 8.0}, "image_size must be an integer"),
])  # fmt: skip
def test_sizes_that_make_no_model(backend, changes, message):
    with pytest.raises(ValueError, match=message):
        CNNConfig(**changes)
    with pytest.raises(TypeError, match="a CNN is built of a CNNConfig, got 3"):
        backend.make("CNN", 3)


def test_fifty_steps_agree_between_the_frameworks():
    rng = np.random.default_rng(1)
    labels, images = rng.integers(0, 3, size=40), 0.5 * rng.normal(size=(40, 2, 6, 9)).astype(np.float32)
    images[labels == 1, 0] += 1
    images[labels == 2, 1] -= 1
    config = CNNConfig((6, 9), 2, (4,), 1, 3)  # of one convolution: TensorFlow traces each anew
    batches, losses, state = ImageBatches(images, labels, 10), [], states.random_state(states.cnn(config))
    for library, backend in (("torch", TORCH), ("tensorflow", TENSORFLOW)):
        objective = tasks.module(library, "objectives").image_classification()
        model = backend.make("CNN", config, state=state)
        train = tasks.module(library, "loop").train
        losses.append(train(model, batches.epoch, objective, rate=1e-2, steps=50, progress=False).loss)
    assert_allclose(losses[0], losses[1], rtol=0, atol=1e-3)
    assert np.mean(losses[0][-4:]) < 0.3 * np.mean(losses[0][:4])


def test_keras_serves_images(tmp_path):
    import tensorflow as tf

    model = TENSORFLOW.make("CNN", CONFIG, state=STATE)
    model.export(tmp_path, verbose=False)
    images, opened = IMAGES.astype(np.float32), tf.saved_model.load(str(tmp_path))
    assert_allclose(opened.serve(images), model(images).logits, rtol=1e-4, atol=1e-5)
