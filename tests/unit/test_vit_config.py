"""course_lib.models.vit and .images: the configuration, its border to config.json, and the checks of images."""

import numpy as np
import pytest

from course_lib.errors import UnsupportedConfigError
from course_lib.models.images import check_images
from course_lib.models.vit import ViTConfig

SETTINGS = {
    "model_type": "vit", "image_size": [12, 20], "patch_size": 4, "num_channels": 1, "hidden_size": 12,
    "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 30, "hidden_dropout_prob": 0.25,
    "attention_probs_dropout_prob": 0.35, "layer_norm_eps": 1e-7, "hidden_act": "silu", "qkv_bias": False,
    "initializer_range": 0.5, "id2label": {"0": "cat", "1": "dog", "2": "cow"},
    "label2id": {"cat": 0, "dog": 1, "cow": 2},
}  # fmt: skip
EXPECTED = ViTConfig((12, 20), 4, 1, 12, 3, 4, 30, 3, 0.25, 0.35, 1e-7, "silu", False, 0.5, ("cat", "dog", "cow"))


def test_every_setting_is_read_and_written():
    assert ViTConfig.from_hugging_face(SETTINGS) == EXPECTED
    assert EXPECTED.to_hugging_face("X") == SETTINGS | {"architectures": ["X"], "image_size": (12, 20)}


def test_what_a_silent_file_says():
    assert ViTConfig.from_hugging_face({"model_type": "vit", "qkv_bias": None}) == ViTConfig()
    assert ViTConfig.from_hugging_face({"model_type": "vit", "num_labels": 7}).n_classes == 7


def test_sizes_grids_and_tokens():
    assert (EXPECTED.size, EXPECTED.grid, EXPECTED.n_tokens) == ((12, 20), (3, 5), 16)
    square = ViTConfig([np.int64(32).item()] * 2, 8)
    assert (square.image_size, square.size, square.grid, square.n_tokens) == (32, (32, 32), (4, 4), 17)
    assert ViTConfig(np.int64(32), 8) == square
    assert ViTConfig.from_hugging_face(SETTINGS | {"patch_size": [4, 4]}) == EXPECTED


def test_the_block():
    block = EXPECTED.block
    assert (block.dropout, block.attention_dropout, block.activation, block.norm_eps) == (0.25, 0.35, "silu", 1e-7)
    assert block.pre_norm is True and block.qkv_bias is False and block.linear_bias is True
    assert block.for_attention["qkv_bias"] is False


@pytest.mark.parametrize("changes", [
    {"patch_size": [4, 2]}, {"patch_size": 5}, {"image_size": 0}, {"num_channels": "three"}, {"qkv_bias": "yes"},
    {"hidden_act": "tanh"}, {"hidden_size": 13}, {"id2label": {"a": "cat"}}, {"id2label": ["cat"]},
    {"layer_norm_eps": [1]}, {"initializer_range": -1},
])  # fmt: skip
def test_nonsense_in_a_file_is_an_unsupported_configuration(changes):
    with pytest.raises(UnsupportedConfigError, match="this config.json cannot be used"):
        ViTConfig.from_hugging_face(SETTINGS | changes)


@pytest.mark.parametrize("kind, message", [
    ("deit", "has model_type='deit'; the course's ViT computes 'vit' only$"),
    (3, "has model_type=3; the course's ViT computes 'vit' only$"),
    ("albert", "computes 'vit' only; AlbertModel and the other classes of that name open it"),
    (None, "names no \"model_type\"; a ViT's says \"vit\""),
])  # fmt: skip
def test_another_model(kind, message):
    with pytest.raises(UnsupportedConfigError, match=message):
        ViTConfig.from_hugging_face(SETTINGS | {"model_type": kind})


@pytest.mark.parametrize("changes, message", [
    ({"image_size": (224, 220)}, "224 x 220 pixels .* cannot be cut into patches of 16 x 16"),
    ({"image_size": 8}, "8 x 8 pixels .* cannot be cut into patches of 16 x 16"),
    ({"image_size": (224, 224, 3)}, "image_size must be an integer of 1 or more, or two of them"),
    ({"image_size": 224.0}, "image_size must be an integer of 1 or more, or two of them"),
    ({"image_size": True}, "image_size must be an integer of 1 or more, or two of them"),
    ({"patch_size": (16, 16)}, "patch_size must be an integer of 1 or more"),
    ({"n_channels": 0}, "n_channels must be an integer of 1 or more"),
    ({"n_heads": 5}, "d_model must be a positive multiple of n_heads"),
    ({"n_classes": 0}, "n_classes must be an integer of 1 or more"),
    ({"dropout": 1.0}, "dropout is a probability"),
    ({"attention_dropout": -0.5}, "attention_dropout is a probability"),
    ({"norm_eps": 0.0}, "norm_eps is added to a variance"),
    ({"activation": "tanh"}, "activation must be one of"),
    ({"qkv_bias": None}, "qkv_bias must be one of True, False"),
    ({"init_std": -0.1}, "init_std is a standard deviation"),
    ({"labels": ("cat",)}, "there are 1 labels for n_classes=2"),
])  # fmt: skip
def test_values_that_make_no_model(changes, message):
    with pytest.raises(ValueError, match=message):
        ViTConfig(**changes)


def test_lengths_that_are_not_known_yet_pass():
    check_images((None, None, None, None), "float32", 3, (8, 8))
    with pytest.raises(ValueError, match=r"must have shape \(B, 3, height, width\), got \(\?, 2, \?, 8\)"):
        check_images((None, 2, None, 8), "torch.float16", 3, (8, 8))
    with pytest.raises(ValueError, match="the pixels must be of 8 x 6 pixels .*, got None x 8"):
        check_images((None, 3, None, 8), "float64", 3, (8, 6), "the pixels")
    with pytest.raises(TypeError, match="must be numbers of floating point, got complex64$"):
        check_images((1, 3, 8, 8), "complex64", 3)
