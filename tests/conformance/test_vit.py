"""What must hold of a Vision Transformer: patches, order, gradients, dropout, fresh weights, other sizes, errors."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.errors import UnsupportedConfigError
from course_lib.models.bert import BertConfig
from course_lib.models.position_tables import cubic_weights
from course_lib.models.vit import ViTConfig
from tests.support import states
from tests.support.backends import NUMPY, TENSORFLOW, TORCH

CONFIG = ViTConfig((6, 9), 3, 2, 12, n_layers=1, n_heads=3, d_ff=10, n_classes=4)  # 2 rows of 3 patches
IMAGES = np.random.default_rng(0).normal(size=(3, 2, 6, 9))


@functools.cache
def build(backend, attention="attention", **changes):
    config = replace(CONFIG, **changes)
    return backend.make("ViT", config, attention=backend.function(attention), state=state_of(config))


def state_of(config):
    return states.random_state(states.vit(config))


def test_patches_are_those_of_the_formula(backend):
    """Row by row from the upper left corner; of each patch the channels, of these the rows (section 3.1)."""
    found = backend.call(backend.function("image_to_patches"), IMAGES, 3)
    expected = [
        [image[:, row : row + 3, column : column + 3].ravel() for row in (0, 3) for column in (0, 3, 6)]
        for image in IMAGES
    ]
    assert_allclose(found, np.array(expected), rtol=1e-6)


@pytest.mark.parametrize("patch", [0, 2, 4, 5])
def test_patches_must_fill_the_image(backend, patch):
    with pytest.raises(ValueError, match=f"6 x 9 pixels .* cannot be cut into patches of {patch} x {patch}"):
        backend.call(backend.function("image_to_patches"), IMAGES, patch)


def test_the_input_of_the_encoder_is_that_of_equation_1(backend):
    """A class token and x E + b, with the positions; E is a convolution's weight."""
    state, embedded = state_of(CONFIG), backend.call(build(backend), IMAGES, return_layers=True).hidden[0]
    patches = NUMPY.call(NUMPY.lib.image_to_patches, IMAGES, 3)
    linear = patches @ state["patches.weight"].reshape(12, -1).T + state["patches.bias"]
    expected = np.concatenate([np.broadcast_to(state["class_token"], (3, 1, 12)), linear], axis=1)
    assert_allclose(embedded, expected + state["position.weight"], **backend.tolerance)


def test_without_positions_the_order_of_the_patches_does_not_matter(backend):
    """Places of patches exchanged as wholes; with positions they do."""
    moved = IMAGES.copy()
    moved[..., :3, 0:3], moved[..., 3:, 6:9] = IMAGES[..., 3:, 6:9], IMAGES[..., :3, 0:3]
    without = state_of(CONFIG)
    without["position.weight"] = np.zeros_like(without["position.weight"])
    blind = backend.make("ViT", CONFIG, state=without)
    before, after = (backend.call(blind, images) for images in (IMAGES, moved))
    assert_allclose(after.logits, before.logits, **backend.tolerance)
    order = [0, 6, 2, 3, 4, 5, 1]
    assert_allclose(after.last_hidden, before.last_hidden[:, order], **backend.tolerance)
    seeing = build(backend)
    before, after = (backend.call(seeing, images).logits for images in (IMAGES, moved))
    assert np.abs(after - before).max() > 1e-2


def test_each_image_by_itself(backend):
    model = build(backend)
    together = backend.call(model, IMAGES).logits
    for image, found in zip(IMAGES, together, strict=True):
        assert_allclose(found, backend.call(model, image[None]).logits[0], **backend.tolerance)


def test_the_fused_attention_gives_the_same(backend):
    found, expected = (backend.call(build(backend, kind), IMAGES) for kind in ("fused_attention", "attention"))
    assert_allclose(found.logits, expected.logits, **backend.tolerance)


def test_gradients():
    """By every weight: PyTorch's against TensorFlow's, and both against central differences of the reference."""
    results = {b: b.gradients(build(b, qkv_bias=False), IMAGES) for b in (TORCH, TENSORFLOW, NUMPY)}
    assert results[TORCH][1].keys() == states.vit(replace(CONFIG, qkv_bias=False)).keys()
    assert_allclose(results[TENSORFLOW][0][0], results[TORCH][0][0], rtol=1e-4, atol=5e-5)
    for name, gradient in results[TORCH][1].items():
        assert_allclose(results[TENSORFLOW][1][name], gradient, rtol=1e-4, atol=5e-5, err_msg=name)
        numerical = results[NUMPY][1][name]
        known = ~np.isnan(numerical)
        assert known.any()
        assert_allclose(gradient[known], numerical[known], rtol=1e-4, atol=5e-5, err_msg=name)


def test_every_layer_is_returned_when_asked_for(backend):
    model = backend.make("ViT", replace(CONFIG, n_layers=2))
    assert backend.call(model, IMAGES)[2:] == (None, None)
    output = backend.call(model, IMAGES, return_layers=True)
    assert output.logits.shape == (3, 4) and output.last_hidden.shape == (3, 7, 12)
    assert [hidden.shape for hidden in output.hidden] == [(3, 7, 12)] * 3
    assert [weights.shape for weights in output.weights] == [(3, 3, 7, 7)] * 2
    for weights in output.weights:
        assert_allclose(weights.sum(-1), 1.0, rtol=1e-5)


def test_fresh_weights(backend):
    config = ViTConfig((40, 20), 4, 3, 64, 2, 4, 80, 9, init_std=0.5)
    for name, value in backend.lib.get_state(backend.make("ViT", config)).items():
        if value.ndim > 1 or name == "class_token":
            assert_allclose(value.std(), 0.5, rtol=6 / np.sqrt(2 * value.size), err_msg=name)
            assert abs(value.mean()) < 0.25
        else:
            assert_allclose(value, 1.0 if name.endswith("weight") else 0.0, err_msg=name)


def test_dropout_of_the_tokens_the_attentions_and_the_sub_layers(training_backend):
    backend, attention, seen = training_backend, training_backend.function("attention"), []

    def noting(q, k, v, mask=None, dropout=0.0, **options):
        seen.append(dropout)
        return attention(q, k, v, mask, **options)

    model = backend.make("ViT", replace(CONFIG, d_model=60, dropout=0.3, attention_dropout=0.2), attention=noting)
    assert model.encoder.config.dropout == 0.3
    hidden = backend.call(model, IMAGES, training=True, return_layers=True).hidden[0]
    still = backend.call(model, IMAGES, return_layers=True).hidden[0]
    assert seen == [0.2, 0.0] and not (still == 0.0).any()
    assert_allclose((hidden == 0.0).mean(), 0.3, atol=6 * np.sqrt(0.21 / hidden.size))
    kept = hidden != 0.0
    assert_allclose(hidden[kept] * 0.7, still[kept], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n, n_new", [(5, 5), (4, 9), (7, 3), (1, 4)])
def test_cubic_weights(n, n_new):
    """Equal to PyTorch's along both axes; rows add up to 1, and each stands as the mirrored one from the other end."""
    import torch
    from torch.nn import functional as F

    weights = cubic_weights(n, n_new)
    assert_allclose(weights.sum(axis=1), 1.0)
    assert_allclose(weights, weights[::-1, ::-1], atol=1e-12)
    if n == n_new:
        assert_allclose(weights, np.eye(n), atol=1e-12)
    grid = np.random.default_rng(0).normal(size=(n, 6))
    expected = F.interpolate(torch.from_numpy(grid)[None, None], (n_new, 11), mode="bicubic", align_corners=False)
    assert_allclose(weights @ grid @ cubic_weights(6, 11).T, expected[0, 0].numpy(), atol=1e-12)


def test_the_bicubic_images_of_tensorflow_are_others():
    """Why `tf.image.resize` does not interpolate the positions, as the docstring of `cubic_weights` says."""
    import tensorflow as tf

    grid = np.random.default_rng(0).normal(size=(1, 6, 6, 1))
    theirs = tf.image.resize(grid, (11, 11), "bicubic").numpy()[0, ..., 0]
    assert np.abs(theirs - cubic_weights(6, 11) @ grid[0, ..., 0] @ cubic_weights(6, 11).T).max() > 0.05
    inner = cubic_weights(6, 11, a=-0.5) @ grid[0, ..., 0] @ cubic_weights(6, 11, a=-0.5).T
    assert_allclose(theirs[4:7, 4:7], inner[4:7, 4:7], atol=2e-3)  # theirs takes its cubic from a table


@pytest.mark.parametrize("size", [(12, 9), (6, 6), (3, 18)], ids=str)
def test_other_sizes_alike_in_every_framework(backend, size):
    """From a grid of 2 x 3, which `transformers` would take for a square; the last has as many patches as the model."""
    images = np.random.default_rng(1).normal(size=(2, 2, *size))
    found, expected = (b.call(build(b), images, interpolate=True) for b in (backend, NUMPY))
    assert_allclose(found.logits, expected.logits, **TORCH.tolerance)
    assert found.last_hidden.shape == (2, 1 + size[0] * size[1] // 9, 12)
    state = state_of(CONFIG)
    grid = np.einsum(
        "ar,bc,rcd->abd",
        cubic_weights(2, size[0] // 3),
        cubic_weights(3, size[1] // 3),
        state["position.weight"][1:].reshape(2, 3, 12),
    )
    table = backend.array(build(backend).positions(size))
    assert_allclose(table[0], state["position.weight"][0], rtol=1e-6)
    assert_allclose(table[1:].reshape(grid.shape), grid, rtol=1e-4, atol=1e-5)


def test_the_models_own_size_is_not_interpolated(backend):
    found = (backend.call(build(backend), IMAGES, interpolate=choice).logits for choice in (True, False))
    assert_allclose(*found, rtol=1e-12)


def test_a_folder_opens_as_it_was_saved(backend, tmp_path):
    labels = ("cat", "dog", "cow", "hen")
    model = build(backend, labels=labels)
    opened = type(model).from_pretrained(model.save_pretrained(tmp_path), attention=backend.function("fused_attention"))
    assert opened.config == replace(CONFIG, labels=labels)
    assert_allclose(backend.call(opened, IMAGES).logits, backend.call(model, IMAGES).logits, **backend.tolerance)
    assert backend.call(opened, IMAGES, return_layers=True).weights == (None,)
    three = type(model).from_pretrained(tmp_path, new="classifier", n_classes=3)
    assert three.config.labels is None and backend.call(three, IMAGES).logits.shape == (3, 3)


SHAPE = r"must have shape \(B, 2, height, width\), got "
BAD = {
    "bytes": ((IMAGES * 9).astype(np.uint8), TypeError, "must be numbers of floating point.*divide bytes by 255"),
    "one image": (IMAGES[0], ValueError, SHAPE + r"\(2, 6, 9\); .* images\[None\]"),
    "channels last": (np.moveaxis(IMAGES, 1, -1), ValueError, SHAPE + r"\(3, 6, 9, 2\); channels .*moveaxis"),
    "three channels": (IMAGES[:, [0, 1, 1]], ValueError, SHAPE + r"\(3, 3, 6, 9\)"),
    "turned": (IMAGES.swapaxes(2, 3), ValueError, "of 6 x 9 pixels .*, got 9 x 6; `interpolate=True` takes any"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_bad_images(backend, kind):
    images, error, message = BAD[kind]
    with pytest.raises(error, match=message):
        backend.call(build(backend), images)


def test_bad_images_of_any_size(backend):
    with pytest.raises(ValueError, match="6 x 8 pixels .* cannot be cut into patches of 3 x 3"):
        backend.call(build(backend), IMAGES[..., :8], interpolate=True)
    with pytest.raises(ValueError, match="channels that stand last"):
        backend.call(build(backend), np.moveaxis(IMAGES, 1, -1), interpolate=True)


def test_another_models_configuration_or_folder(backend, tmp_path):
    config = BertConfig(11, 12, 1, 3, 10, 8)
    with pytest.raises(TypeError, match="a ViT is built of a ViTConfig, got BertConfig"):
        backend.make("ViT", config)
    backend.make("BertModel", config).save_pretrained(tmp_path / "bert")
    with pytest.raises(UnsupportedConfigError, match="holds no ViT: this config.json has model_type='bert'"):
        backend.lib.ViT.from_pretrained(tmp_path / "bert")
    build(backend).save_pretrained(tmp_path / "vit")
    with pytest.raises(UnsupportedConfigError, match="holds no BERT: .*model_type='vit'"):
        backend.lib.BertModel.from_pretrained(tmp_path / "vit")
