"""LoRA in both frameworks that train: the same numbers, and only the narrow matrices change."""

import importlib
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from safetensors.numpy import load_file

from course_lib.checkpoints.weights import write_checkpoint
from course_lib.errors import CheckpointError
from course_lib.masks import padding_mask
from course_lib.models.albert import AlbertConfig
from course_lib.models.bert import BertConfig
from tests.support import states
from tests.support.backends import NUMPY, TENSORFLOW, TORCH

CONFIG = BertConfig(13, 6, 2, 3, 10, 7, dropout=0.0, attention_dropout=0.0, pad_id=2, n_classes=3)
IDS = np.array([[3, 5, 12, 1, 7], [9, 4, 2, 2, 2]])
MASK = padding_mask(IDS, 2)
NAME = "BertForSequenceClassification"
STATE = states.random_state(states.classifier(CONFIG), seed=4)
LAYERS = [f"bert.encoder.layers.{i}.attention.{part}_proj" for i in (0, 1) for part in "qv"]


def lora_of(backend):
    return importlib.import_module(f"course_lib.{backend.name}.lora")


def adapted(backend, folder, seed=5):
    """A classifier with a LoRA whose matrices all count, the same in both frameworks."""
    model = backend.make(NAME, CONFIG, state=STATE)
    if not (folder / "config.json").is_file():
        rng = np.random.default_rng(seed)
        weights = {name: 1.5 * STATE[name].astype(np.float32) for name in ("classifier.weight", "classifier.bias")}
        for layer in LAYERS:
            for name, shape in {"lora_a": (2, 6), "lora_b": (6, 2)}.items():
                weights[f"{layer}.{name}"] = rng.normal(size=shape).astype(np.float32)
        settings = {"rank": 2, "alpha": 3.0, "parts": ["q_proj", "v_proj"], "also": ["classifier"]}
        write_checkpoint(folder, {"lora": settings}, weights)
    lora_of(backend).load_lora(model, folder)
    return model


def trained(backend, model):
    """How many numbers a training may change."""
    if backend is TORCH:
        return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    return sum(int(np.prod(variable.shape)) for variable in model.trainable_variables)


def stepped(backend, model, rate=0.1):
    """One step of plain gradient descent on the sum of the logits' squares."""
    if backend is TORCH:
        import torch

        optimizer = torch.optim.SGD([weight for weight in model.parameters() if weight.requires_grad], rate)
        model.eval()(torch.from_numpy(IDS), mask=torch.from_numpy(MASK))[0].square().sum().backward()
        optimizer.step()
        return
    import tensorflow as tf

    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(model(tf.constant(IDS), mask=tf.constant(MASK))[0]))
    values = model.trainable_variables
    for variable, slope in zip(values, tape.gradient(loss, [v.value for v in values]), strict=True):
        variable.assign_sub(rate * slope)


def test_the_outputs_are_at_first_what_they_were(training_backend):
    model = training_backend.make(NAME, CONFIG, state=STATE)
    before = training_backend.call(model, IDS, mask=MASK).logits
    assert lora_of(training_backend).add_lora(model, rank=2, alpha=3.0) == LAYERS
    assert_allclose(training_backend.call(model, IDS, mask=MASK).logits, before, rtol=1e-6)
    assert trained(training_backend, model) == 4 * (2 * 6 + 6 * 2)


def test_what_is_trained_besides(training_backend):
    model = training_backend.make(NAME, CONFIG, state=STATE)
    names = lora_of(training_backend).add_lora(model, 1, parts="linear1", also="classifier")
    assert names == [f"bert.encoder.layers.{i}.feed_forward.linear1" for i in (0, 1)]
    assert trained(training_backend, model) == 2 * (6 + 10) + 3 * 6 + 3


def test_a_lora_is_a_sum(training_backend, tmp_path):
    """W + (alpha / rank) B A, written out here; the state of the model is these sums."""
    model = adapted(training_backend, tmp_path)
    matrices = load_file(tmp_path / "model.safetensors")
    whole = STATE | {name: value for name, value in matrices.items() if name.startswith("classifier")}
    for layer in LAYERS:
        product = matrices[f"{layer}.lora_b"] @ matrices[f"{layer}.lora_a"]
        whole[f"{layer}.weight"] = STATE[f"{layer}.weight"] + 1.5 * product
    expected = NUMPY.call(NUMPY.make(NAME, CONFIG, state=whole), IDS, mask=MASK).logits
    plain = NUMPY.call(NUMPY.make(NAME, CONFIG, state=STATE), IDS, mask=MASK).logits
    assert abs(expected - plain).max() > 0.01
    assert_allclose(training_backend.call(model, IDS, mask=MASK).logits, expected, rtol=1e-4, atol=1e-5)
    state = training_backend.lib.get_state(model)
    assert state.keys() == STATE.keys()
    for name, value in whole.items():
        assert_allclose(state[name], value, rtol=1e-4, atol=1e-5, err_msg=name)
    opened = type(model).from_pretrained(model.save_pretrained(tmp_path / "whole"))
    assert_allclose(training_backend.call(opened, IDS, mask=MASK).logits, expected, rtol=1e-4, atol=1e-5)


def test_a_step_changes_the_narrow_matrices_alike_and_nothing_else(tmp_path):
    found = {}
    for backend in (TORCH, TENSORFLOW):
        model = adapted(backend, tmp_path / "start")
        stepped(backend, model)
        found[backend] = load_file(lora_of(backend).save_lora(model, tmp_path / backend.name) / "model.safetensors")
        after = backend.lib.get_state(model)
        for name, value in STATE.items():
            changed = abs(after[name] - value).max() > 1e-4
            assert changed == (name.startswith("classifier") or name.removesuffix(".weight") in LAYERS), name
    start = load_file(tmp_path / "start" / "model.safetensors")
    for name, value in start.items():
        assert abs(found[TORCH][name] - value).max() > 1e-5, name
        assert_allclose(found[TENSORFLOW][name], found[TORCH][name], rtol=1e-3, atol=1e-5, err_msg=name)
    assert found[TORCH].keys() == found[TENSORFLOW].keys() == start.keys()


def test_merged_it_is_a_model_like_any_other(training_backend, tmp_path):
    model = adapted(training_backend, tmp_path)
    before, state = training_backend.call(model, IDS, mask=MASK).logits, training_backend.lib.get_state(model)
    lora_of(training_backend).merge_lora(model)
    assert_allclose(training_backend.call(model, IDS, mask=MASK).logits, before, rtol=1e-5, atol=1e-6)
    after = training_backend.lib.get_state(model)
    for name, value in state.items():
        assert_allclose(after[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
    assert trained(training_backend, model) == sum(value.size for value in STATE.values())
    training_backend.lib.set_state(model, STATE)
    lora_of(training_backend).add_lora(model, 3)
    assert trained(training_backend, model) == 4 * (3 * 6 + 6 * 3)


def test_a_state_goes_in_whole(training_backend, tmp_path):
    """The LoRA is zero after, so that the model is what the state says."""
    model = adapted(training_backend, tmp_path)
    training_backend.lib.set_state(model, STATE)
    expected = NUMPY.call(NUMPY.make(NAME, CONFIG, state=STATE), IDS, mask=MASK).logits
    assert_allclose(training_backend.call(model, IDS, mask=MASK).logits, expected, rtol=1e-4, atol=1e-5)


def test_a_fresh_lora_starts_alike(training_backend, tmp_path):
    """A uniform within sqrt(6 / d_in), B zero, which is nothing to save; here after the smallest of steps."""
    config = BertConfig(13, 96, 1, 3, 10, 7)
    model = training_backend.make("BertModel", config)
    lora_of(training_backend).add_lora(model, 16)
    with pytest.raises(ValueError, match="the LoRA of this model is zero: it was not trained, or"):
        lora_of(training_backend).save_lora(model, tmp_path)
    stepped(training_backend, model, rate=1e-6)
    state = load_file(lora_of(training_backend).save_lora(model, tmp_path) / "model.safetensors")
    for name, value in state.items():
        if name.endswith("lora_b"):
            assert 0 < abs(value).max() < 1e-2
        else:
            assert value.shape == (16, 96) and 0.22 < abs(value).max() <= 0.25 and abs(value.std() - 0.144) < 0.01
    settings = json.loads((tmp_path / "config.json").read_text())["lora"]
    assert settings == {"rank": 16, "alpha": 16.0, "parts": ["q_proj", "v_proj"], "also": []}


def test_layers_that_are_shared_have_one_lora(training_backend):
    config = AlbertConfig(13, 6, 4, 3, 10, 7, d_embedding=4)
    model = training_backend.make("AlbertModel", config)
    names = lora_of(training_backend).add_lora(model, 2)
    assert names == [f"encoder.layers.0.attention.{part}_proj" for part in "qv"]


def test_what_makes_no_lora(training_backend, tmp_path):
    lora = lora_of(training_backend)
    model = training_backend.make(NAME, CONFIG, state=STATE)
    for arguments, message in [
        ({"rank": 0}, "rank must be a whole number of 1 or more, got 0"),
        ({"alpha": 0.0}, "alpha must be positive, got 0.0"),
        ({"parts": ("q_proj", "query")}, "parts='query' names no linear layer of this model; its .*layers are q_proj"),
        ({"also": ("head",)}, "also='head' names no part of this model; its parts are bert, classifier"),
    ]:
        with pytest.raises(ValueError, match=message):
            lora.add_lora(model, **arguments)
    assert trained(training_backend, model) == sum(value.size for value in STATE.values()), "nothing was frozen"
    with pytest.raises(ValueError, match="this model has no LoRA to save; `add_lora` adds one"):
        lora.save_lora(model, tmp_path)
    lora.add_lora(model)
    with pytest.raises(ValueError, match="this model has a LoRA already; `merge_lora` makes it a part of the weights"):
        lora.add_lora(model)
    other = training_backend.make("BertModel", BertConfig(13, 12, 1, 3, 10, 7))
    other.save_pretrained(tmp_path / "model")
    with pytest.raises(CheckpointError, match="holds no LoRA that save_lora wrote"):
        lora.load_lora(other, tmp_path / "model")
    stepped(training_backend, model)
    lora.save_lora(model, tmp_path / "lora")
    before = training_backend.lib.get_state(other)
    with pytest.raises(CheckpointError, match="do not fit the model"):
        lora.load_lora(other, tmp_path / "lora")
    after = training_backend.lib.get_state(other)
    assert trained(training_backend, other) == sum(value.size for value in after.values()), "it is as it was"
    assert all((after[name] == value).all() for name, value in before.items())
