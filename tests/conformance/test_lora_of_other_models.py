"""A LoRA in models of the user's own, in compiled ones, and in a training with validation."""

import importlib

import keras
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from safetensors.numpy import load_file
from torch import nn

from course_lib.batches.texts import TextBatches
from course_lib.models.bert import BertConfig
from course_lib.torch.lora import add_lora, load_lora, merge_lora, save_lora
from course_lib.torch.models.bert_heads import BertForSequenceClassification
from course_lib.torch.state import get_state, set_state
from tests.support.backends import TORCH

CONFIG = BertConfig(13, 6, 2, 3, 10, 12, dropout=0.0, attention_dropout=0.0)
RNG = np.random.default_rng(3)
TEXTS = [RNG.integers(1, 13, RNG.integers(3, 9)) for _ in range(12)]
LABELS = np.array([int(text[0] > 6) for text in TEXTS])
IDS = torch.from_numpy(RNG.integers(1, 13, (2, 5)))


class Own(nn.Module):
    """PyTorch's own encoder layer, which in evaluation reads the matrices of its parts past their `forward`."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(13, 6)
        self.layer = nn.TransformerEncoderLayer(6, 2, 10, 0.0, batch_first=True)

    def forward(self, ids):
        return self.layer(self.embed(ids))


class Shared(nn.Module):
    def __init__(self, tied):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6) if tied else self.a
        self.b.weight = self.a.weight
        self.c = nn.Linear(6, 6)

    def forward(self, x):
        return self.c(self.b(self.a(x)))


def moved(model):
    """A model whose LoRA counts."""
    for name, weight in model.named_parameters():
        if name.endswith("lora_b"):
            nn.init.normal_(weight)
    return model


def copy_of(model, fresh):
    set_state(fresh, get_state(model))
    return fresh


@pytest.mark.parametrize("part", ["linear1", "linear2", "out_proj"])
def test_a_lora_counts_in_torchs_own_layers(part):
    model = Own()
    add_lora(model, 2, parts=part)
    moved(model).train()
    outputs = model(IDS)
    outputs.square().sum().backward()
    (adapted,) = (layer for layer in model.modules() if hasattr(layer, "lora_b"))
    assert adapted.lora_a.grad.abs().max() > 0 and adapted.lora_b.grad.abs().max() > 0
    with torch.no_grad():
        for name, other in (("evaluated", model.eval()), ("copied", copy_of(model, Own()).eval())):
            assert_allclose(other(IDS), outputs.detach(), rtol=1e-4, atol=1e-5, err_msg=name)
        merge_lora(model)
        assert_allclose(model(IDS), outputs.detach(), rtol=1e-4, atol=1e-5)


def test_a_shared_layer_has_one_lora_in_all_its_places():
    model, x = Shared(tied=False), torch.randn(3, 6)
    assert add_lora(model, 2, parts="a") == ["a"]
    assert moved(model).a is model.b
    expected = model(x).detach()
    assert_allclose(copy_of(model, Shared(tied=False))(x).detach(), expected, rtol=1e-4, atol=1e-5)
    merge_lora(model)
    assert model.a is model.b
    assert_allclose(model(x).detach(), expected, rtol=1e-4, atol=1e-5)


def test_a_shared_layer_of_keras_has_one_lora(tmp_path):
    from course_lib.tensorflow import lora
    from course_lib.tensorflow.state import get_state as state_of

    def shared():
        model = keras.Model()
        model.a = model.b = keras.layers.Dense(6)
        model.a.build((None, 6))
        return model

    model = shared()
    assert lora.add_lora(model, 2, parts=("a",)) == ["a"]
    model.a.lora_kernel_b.assign(np.ones((2, 6)))
    assert set(load_file(lora.save_lora(model, tmp_path) / "model.safetensors")) == {"a.lora_a", "a.lora_b"}
    other = shared()
    other.a._kernel.assign(model.a._kernel)
    lora.load_lora(other, tmp_path)
    for name, value in state_of(model).items():
        assert_allclose(state_of(other)[name], value, rtol=1e-6, err_msg=name)


def test_a_shared_matrix_has_no_lora():
    model = Shared(tied=True)
    with pytest.raises(ValueError, match="the matrix of a is that of another layer, too, so it can have no LoRA of"):
        add_lora(model, parts="a")
    assert all(weight.requires_grad for weight in model.parameters())
    assert add_lora(model, parts="c") == ["c"]


@torch.no_grad()  # with gradients the compiler itself warns of a part that is compiled
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "part"])
def test_a_compiled_model_has_its_own_names(whole, tmp_path):
    model = TORCH.make("BertForSequenceClassification", CONFIG).eval()
    plain = BertForSequenceClassification(CONFIG).eval()
    copy_of(model, plain)
    if whole:
        model = torch.compile(model, backend="eager")
    else:
        model.bert.encoder = torch.compile(model.bert.encoder, backend="eager")
    before = model(IDS)[0]
    names = add_lora(model, 2, also="classifier")
    assert names == [f"bert.encoder.layers.{i}.attention.{part}_proj" for i in (0, 1) for part in "qv"]
    free = {name.replace("_orig_mod.", "") for name, weight in model.named_parameters() if weight.requires_grad}
    assert {name for name in free if "lora" not in name} == {"classifier.weight", "classifier.bias"}
    assert_allclose(model(IDS)[0], before, rtol=1e-5, atol=1e-6)
    after = moved(model)(IDS)[0]
    assert abs(after - before).max() > 1e-4
    load_lora(plain, save_lora(model, tmp_path))
    assert_allclose(plain(IDS)[0], after, rtol=1e-4, atol=1e-5)
    merge_lora(model)
    assert_allclose(model(IDS)[0], after, rtol=1e-4, atol=1e-5)
    assert add_lora(model, 1) == names


def test_the_best_weights_keep_their_lora_apart(training_backend, tmp_path):
    """The frozen matrices stay as they were, and A and B are those of the best validation."""
    lora, loop, objectives = (
        importlib.import_module(f"course_lib.{training_backend.name}.{part}")
        for part in ("lora", "training.loop", "training.objectives")
    )
    model = training_backend.make("BertForSequenceClassification", CONFIG)
    state = training_backend.lib.get_state(model)
    lora.add_lora(model, 2, also="classifier")
    batches, objective = TextBatches(TEXTS, LABELS, 4), objectives.classification()
    wrong = TextBatches(TEXTS, 1 - LABELS, 12)  # which gets worse soon, so that the best is not the last
    history = loop.train(model, batches, objective, wrong, rate=0.05, epochs=4, validate_every=1, progress=False)
    assert history.best.step < 12
    assert_allclose(loop.evaluate(model, wrong, objective).nll, history.best.nll, rtol=1e-5)
    matrices = load_file(lora.save_lora(model, tmp_path) / "model.safetensors")
    found = training_backend.lib.get_state(model)
    for name, value in state.items():
        layer = name.removesuffix(".weight")
        if f"{layer}.lora_b" in matrices:
            product = 8 * matrices[f"{layer}.lora_b"] @ matrices[f"{layer}.lora_a"]
            assert abs(product).max() > 1e-4
            assert_allclose(found[name] - product, value, rtol=1e-4, atol=1e-6, err_msg=name)
        elif "classifier" not in name:
            assert_array_equal(found[name], value, err_msg=name)
