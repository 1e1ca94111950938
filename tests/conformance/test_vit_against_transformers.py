"""ViT equals `transformers`' ViTForImageClassification and ViTModel on random configurations, by files both ways.

Within 1e-5, in NumPy 1e-6, since theirs makes every softmax in float32. Ten configurations in each library, or as many
as `--configurations` says, if these are more.
"""

import numpy as np
import pytest
import torch
import transformers
from numpy.testing import assert_allclose
from safetensors.numpy import load_file, save_file

from course_lib.errors import CheckpointError
from course_lib.models.blocks import ACTIVATIONS
from course_lib.models.vit import ViTConfig
from tests.support.backends import BACKENDS, NUMPY, TORCH

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def pytest_generate_tests(metafunc):
    if "number" in metafunc.fixturenames:
        n = max(metafunc.config.getoption("--configurations"), 10)
        found = [(b, i) for b in BACKENDS for i in range(n)]
        metafunc.parametrize(("library", "number"), found, ids=[f"{b}-{i}" for b, i in found])


def case(number):
    """A configuration, every second one of images that are no squares, and images."""
    rng = np.random.default_rng([20201022, number])
    n_heads, patch = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    rows, columns = (int(n) for n in rng.integers(1, 5, size=2))
    config = ViTConfig(
        image_size=(rows * patch, columns * patch) if number % 2 else (1 + rows) * patch,
        patch_size=patch,
        n_channels=int(rng.integers(1, 5)),
        d_model=n_heads * int(rng.integers(2, 9)),
        n_layers=int(rng.integers(1, 4)),
        n_heads=n_heads,
        d_ff=int(rng.integers(5, 50)),
        n_classes=int(rng.integers(1, 7)),
        activation=ACTIVATIONS[number % len(ACTIVATIONS)],
        norm_eps=[1e-12, 1e-3][number % 2],
        qkv_bias=number % 4 > 1,
        dropout=0.1 * (number % 3),
        attention_dropout=0.1 * (number % 5),
    )
    return config, rng.normal(size=(int(rng.integers(1, 4)), config.n_channels, *config.size))


def their_model(config, seed, kind="ViTForImageClassification"):
    """A random model of `transformers`, with weights large enough to matter everywhere."""
    torch.manual_seed(seed)
    settings = config.to_hugging_face() | {"attn_implementation": "eager"}
    model = getattr(transformers, kind)(transformers.AutoConfig.for_model(**settings)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
    return model


def compare(backend, ours, theirs, images, **options):
    theirs = theirs.double() if backend is NUMPY else theirs.float()
    pixels = torch.from_numpy(images).to(theirs.dtype)
    with torch.no_grad():
        expected = theirs(pixels, output_hidden_states=True, output_attentions=True, **options)
        last_hidden = theirs.vit(pixels, **options).last_hidden_state
    ours_too = {"interpolate": True} if options else {}
    output = backend.call(ours, images, return_layers=True, **ours_too)
    tolerance = {"rtol": 1e-6, "atol": 1e-6} if backend is NUMPY else {"rtol": 1e-5, "atol": 1e-5}
    assert_allclose(output.logits, expected.logits.numpy(), **tolerance)
    assert_allclose(output.last_hidden, last_hidden.numpy(), **tolerance)
    for found, reference in ((output.hidden, expected.hidden_states), (output.weights, expected.attentions)):
        assert len(found) == len(reference) > 0
        for result, one in zip(found, reference, strict=True):
            assert_allclose(result, one.numpy(), **tolerance)


def test_equal_and_opened_both_ways(library, number, tmp_path):
    config, images = case(number)
    theirs = their_model(config, number)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = library.lib.ViT.from_pretrained(tmp_path / "theirs")
    assert ours.config == config
    compare(library, ours, theirs, images)
    ours.save_pretrained(tmp_path / "ours")
    opened, report = transformers.ViTForImageClassification.from_pretrained(
        tmp_path / "ours", attn_implementation="eager", output_loading_info=True
    )
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
    compare(library, ours, opened.eval(), images)
    states = [load_file(tmp_path / side / "model.safetensors") for side in ("ours", "theirs")]
    assert states[0].keys() == states[1].keys()
    for key in states[0]:
        assert_allclose(states[0][key], states[1][key], rtol=1e-6, err_msg=key)


SIZES = [(9, 15), (18, 12), (3, 6), (4 * 3, 9 * 3), (12, 27)]  # of patches of 3 x 3; the last two have 36, as the model


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_positions_are_interpolated_as_theirs(backend, size):
    """More and fewer patches, in any shape, from a grid of 6 x 6."""
    config = ViTConfig(18, 3, 2, 8, 1, 2, 9, 3)
    theirs = their_model(config, 5)
    weights = {name: value.numpy() for name, value in theirs.state_dict().items()}
    ours = backend.make("ViT", config, state=ours_of(theirs))
    assert weights["vit.embeddings.position_embeddings"].std() > 0.1
    images = np.random.default_rng(0).normal(size=(2, 2, *size))
    compare(backend, ours, theirs, images, interpolate_pos_encoding=True)


def ours_of(theirs):
    """The weights of a model of theirs under our names, as its file holds them."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        return NUMPY.lib.get_state(NUMPY.lib.ViT.from_pretrained(folder))


@pytest.mark.parametrize("kind", ["ViTModel", "ViTForMaskedImageModeling"])
def test_files_of_other_classes_open_with_a_fresh_classifier(kind, tmp_path):
    config, images = case(0)
    other = their_model(config, 3, kind)
    other.save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=rf"missing: classifier.*new=\['classifier'\].*saved from a {kind}"):
        TORCH.lib.ViT.from_pretrained(tmp_path)
    ours = TORCH.lib.ViT.from_pretrained(tmp_path, new="classifier", n_classes=4)
    assert ours.config.n_classes == 4
    with torch.no_grad():
        expected = getattr(other, "vit", other)(torch.from_numpy(images).float()).last_hidden_state
    assert_allclose(TORCH.call(ours, images).last_hidden, expected.numpy(), rtol=1e-5, atol=1e-5)


def test_what_does_not_fit_is_said(tmp_path):
    config, _ = case(0)
    their_model(config, 0).save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=r"of the wrong shape: position.weight.*the checkpoint has image_size="):
        NUMPY.lib.ViT.from_pretrained(tmp_path, image_size=7 * config.patch_size)
    state = load_file(tmp_path / "model.safetensors")
    twice = np.repeat(state["vit.embeddings.cls_token"], 2, axis=0)
    save_file(state | {"vit.embeddings.cls_token": twice}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"vit.embeddings.cls_token \(2, 1, \d+\) is no 1 weight"):
        NUMPY.lib.ViT.from_pretrained(tmp_path)


def test_defaults_of_an_absent_key_are_those_of_transformers():
    theirs = transformers.ViTConfig().to_dict()
    assert ViTConfig.from_hugging_face({"model_type": "vit"}) == ViTConfig.from_hugging_face(theirs) == ViTConfig()
    for number in range(6):
        config = case(number)[0]
        again = transformers.ViTConfig(**config.to_hugging_face()).to_dict()
        assert ViTConfig.from_hugging_face(again) == config
