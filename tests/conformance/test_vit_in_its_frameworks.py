"""A Vision Transformer as a model of PyTorch and of TensorFlow: half precision, compiled, exported, copied."""

import copy
import io
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
import torch
from numpy.testing import assert_allclose

from course_lib.models.vit import ViTConfig
from tests.support import states
from tests.support.backends import TENSORFLOW, TORCH

CONFIG = ViTConfig((6, 9), 3, 2, 12, n_layers=1, n_heads=3, d_ff=10, n_classes=4)
IMAGES = np.random.default_rng(0).normal(size=(3, 2, 6, 9)).astype(np.float32)
LARGER = np.random.default_rng(1).normal(size=(2, 2, 12, 15)).astype(np.float32)


def build(backend, config=CONFIG, **options):
    return backend.make("ViT", config, state=states.random_state(states.vit(config)), **options)


def logits(model, images, **options):
    with torch.no_grad():
        return model(torch.from_numpy(images), **options).logits.numpy()


@pytest.mark.parametrize("images", [IMAGES, LARGER], ids=["own", "interpolated"])
@pytest.mark.parametrize("dtype, rounding", [(torch.bfloat16, 2.0**-8), (torch.float16, 2.0**-11)], ids=str)
def test_half_precision_in_pytorch(dtype, rounding, images):
    """The weights themselves, or the products alone; images come in float32."""
    model = build(TORCH).eval()
    expected = logits(model, images, interpolate=True)
    half = copy.deepcopy(model).to(dtype)
    with torch.no_grad():
        found = [half(torch.from_numpy(images), interpolate=True).logits]
        with torch.autocast("cpu", dtype=dtype):
            found.append(model(torch.from_numpy(images), interpolate=True).logits)
    for one in found:
        assert one.dtype == dtype
        assert 0 < np.abs(one.float().numpy() - expected).max() / np.abs(expected).max() < 16 * rounding


@pytest.mark.parametrize("policy, rounding", [("mixed_float16", 2.0**-11), ("mixed_bfloat16", 2.0**-8)])
def test_half_precision_in_tensorflow(policy, rounding):
    half, model = build(TENSORFLOW, dtype=policy), build(TENSORFLOW)
    for images in (IMAGES, LARGER):
        expected, found = (of(images, interpolate=True).logits for of in (model, half))
        assert found.dtype == half.compute_dtype
        worst = np.abs(tf.cast(found, tf.float32) - expected).max() / np.abs(expected).max()
        assert 0 < worst < 40 * rounding


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # PyTorch's own, from its compiler
def test_compiled_whole_for_both_ways_of_positions():
    """Without a break in the graph."""
    model = build(TORCH, attention=TORCH.function("fused_attention")).eval()
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    for images in (IMAGES, LARGER):
        found, expected = (logits(of, images, interpolate=images is LARGER) for of in (compiled, model))
        assert_allclose(found, expected, rtol=1e-4, atol=2e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:The given buffer is not writable")  # torch.export.load's own, before 2.13
def test_exported_for_any_batch_saved_and_opened():
    model = build(TORCH).eval()
    axes = {"images": {0: torch.export.Dim.DYNAMIC}}
    program = torch.export.export(model, (torch.from_numpy(IMAGES),), dynamic_shapes=axes, strict=False)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    opened = torch.export.load(file).module()
    for images in (IMAGES, IMAGES[:2]):
        output = opened(torch.from_numpy(images))
        assert type(output).__name__ == "ViTOutput"
        assert_allclose(output.logits.detach(), logits(model, images), rtol=1e-4, atol=2e-6)


def test_under_vmap_and_functional_call():
    model, other = build(TORCH).eval(), TORCH.make("ViT", CONFIG).eval()
    images = torch.from_numpy(IMAGES)
    with torch.no_grad():
        found = torch.vmap(lambda image: model(image[None]).logits[0])(images)
        given = torch.func.functional_call(other, dict(model.named_parameters()), (images,)).logits
    for one in (found, given):
        assert_allclose(one, logits(model, IMAGES), rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("shape", [(None, 2, 6, 9), (None,) * 4], ids=["any batch", "nothing known"])
def test_a_compiled_function_of_any_batch(shape):
    model, traces = build(TENSORFLOW), []

    @tf.function(input_signature=[tf.TensorSpec(shape)], autograph=False)
    def compiled(images):
        traces.append(images.shape)
        return model(images).logits

    for images in (IMAGES, IMAGES[:1]):
        assert_allclose(compiled(images), model(images).logits, rtol=1e-4, atol=1e-5)
    assert len(traces) == 1


def test_compiled_by_xla_also_with_positions_between_the_learned():
    model = build(TENSORFLOW)
    compiled = tf.function(lambda images: model(images, interpolate=True).logits, jit_compile=True, autograph=False)
    assert_allclose(compiled(LARGER), model(LARGER, interpolate=True).logits, rtol=1e-4, atol=1e-5)


def test_a_compiled_function_must_know_the_size_to_interpolate():
    model = build(TENSORFLOW)
    unknown = tf.function(lambda images: model(images, interpolate=True).logits, autograph=False)
    with pytest.raises(ValueError, match="give the images of its input_signature their height and width"):
        unknown.get_concrete_function(tf.TensorSpec((None, 2, None, None)))


def test_keras_serves_images(tmp_path):
    """By the signature of what is saved; `export` has the same, and test_cnn.py tries it."""
    model = build(TENSORFLOW, replace(CONFIG, n_classes=3))
    tf.saved_model.save(model, str(tmp_path))
    saved = tf.saved_model.load(str(tmp_path))
    for images in (IMAGES, IMAGES[:1]):
        expected = model(images).logits
        (found,) = saved.signatures["serving_default"](tf.constant(images)).values()
        assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
