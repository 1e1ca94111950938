"""Masked cross-entropy with label smoothing: the definition, the same in three frameworks, gradients and edges."""

import importlib

import numpy as np
import pytest
import tensorflow as tf
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch.nn import functional as F

FRAMEWORKS = ["numpy", "torch", "tensorflow"]
TENSOR = {"numpy": np.asarray, "torch": torch.as_tensor, "tensorflow": tf.convert_to_tensor}
EPS = 0.13


@pytest.fixture
def batch():
    rng = np.random.default_rng(11)
    labels = rng.integers(1, 6, size=(3, 4))
    labels[0, 2:] = labels[2, 3:] = 0
    return 2.0 * rng.normal(size=(3, 4, 6)), labels


def loss_of(framework, logits, labels, **settings):
    as_tensor = TENSOR[framework]
    out = importlib.import_module(f"course_lib.{framework}").cross_entropy(
        as_tensor(logits), as_tensor(labels), **settings
    )
    return [float(value) for value in out]


def definition(logits, labels, pad_id, smoothing):
    """-sum q log p over every real token, written out."""
    losses, nll = [], []
    for row, label in zip(logits.reshape(-1, logits.shape[-1]), labels.ravel(), strict=True):
        if label != pad_id:
            log_p = np.log(np.exp(row) / np.exp(row).sum())
            q = np.full(len(row), smoothing / len(row))
            q[label] += 1 - smoothing
            losses.append(-(q * log_p).sum())
            nll.append(-log_p[label])
    return np.mean(losses), np.mean(nll), len(nll)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("smoothing", [0.0, EPS])
@pytest.mark.parametrize("pad_id", [0, 3])
def test_values(framework, batch, smoothing, pad_id):
    expected = definition(*batch, pad_id, smoothing)
    assert_allclose(loss_of(framework, *batch, pad_id=pad_id, smoothing=smoothing), expected, rtol=1e-12)


def test_torch_has_the_same_loss_built_in(batch):
    logits, labels = map(torch.as_tensor, batch)
    theirs = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=0, label_smoothing=EPS)
    assert_allclose(loss_of("torch", *batch, smoothing=EPS)[0], theirs, rtol=1e-12)


@pytest.mark.parametrize("smoothing", [0.0, EPS])
def test_gradients(batch, smoothing):
    logits, labels = batch
    expected, step = np.zeros_like(logits), 1e-6
    for place in np.ndindex(logits.shape):
        ends = []
        for sign in (1, -1):
            moved = logits.copy()
            moved[place] += sign * step
            ends.append(loss_of("numpy", moved, labels, smoothing=smoothing)[0])
        expected[place] = (ends[0] - ends[1]) / (2 * step)
    assert not expected[labels == 0].any()
    ours = torch.tensor(logits, requires_grad=True)
    importlib.import_module("course_lib.torch").cross_entropy(ours, torch.as_tensor(labels), 0, smoothing)[0].backward()
    assert_allclose(ours.grad, expected, atol=1e-8)
    variable = tf.Variable(logits)
    with tf.GradientTape() as tape:
        loss = importlib.import_module("course_lib.tensorflow").cross_entropy(variable, labels, 0, smoothing)[0]
    assert_allclose(tape.gradient(loss, variable), expected, atol=1e-8)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_padding_changes_nothing(framework, batch):
    logits, labels = batch
    wider = np.pad(logits, ((0, 0), (0, 2), (0, 0)), constant_values=7.0), np.pad(labels, ((0, 0), (0, 2)))
    assert_allclose(loss_of(framework, *wider, smoothing=EPS), loss_of(framework, *batch, smoothing=EPS), rtol=1e-12)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_batch_of_padding_alone_is_zero(framework, batch):
    assert loss_of(framework, batch[0], np.zeros((3, 4), dtype=int), smoothing=EPS) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_padding_id_need_not_be_a_token(framework, batch):
    logits, labels = batch
    outside = np.where(labels == 0, -100, labels)
    assert_allclose(loss_of(framework, logits, outside, pad_id=-100), loss_of(framework, logits, labels), rtol=1e-12)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_large_logits_do_not_overflow(framework, batch):
    logits, labels = batch
    assert np.isfinite(loss_of(framework, 1e4 * logits, labels, smoothing=EPS)).all()


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_bad_arguments(framework, batch):
    logits, labels = batch
    with pytest.raises(ValueError, match=r"labels \(B, T\)"):
        loss_of(framework, logits, labels[:, :3])
    with pytest.raises(ValueError, match=r"labels \(B, T\)"):
        loss_of(framework, logits[0], labels)
    for smoothing in (-0.1, 1.0, float("nan")):
        with pytest.raises(ValueError, match="smoothing is a probability"):
            loss_of(framework, logits, labels, smoothing=smoothing)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("smoothing", [0.0, EPS])
@pytest.mark.parametrize("bad", [-np.inf, np.nan])
def test_logits_of_padding_that_are_no_numbers_change_nothing(framework, batch, bad, smoothing):
    logits, labels = batch
    expected = loss_of(framework, logits, labels, smoothing=smoothing)
    for tokens in (slice(0, 1), slice(0, 3), slice(None)):
        broken = logits.copy()
        broken[labels == 0, tokens] = bad
        assert_array_equal(loss_of(framework, broken, labels, smoothing=smoothing), expected)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_token_that_cannot_be_costs_nothing(framework, batch):
    """A model may give its padding token -inf everywhere, as it never says it."""
    logits, labels = batch
    logits[..., 0] = -np.inf
    tensors = torch.tensor(logits, requires_grad=True), torch.as_tensor(labels)
    theirs = F.cross_entropy(tensors[0].flatten(0, 1), tensors[1].flatten(), ignore_index=0)
    theirs.backward()
    assert_allclose(loss_of(framework, logits, labels)[:2], [theirs.item()] * 2, rtol=1e-12)
    if framework == "tensorflow":
        variable = tf.Variable(logits)
        with tf.GradientTape() as tape:
            loss = importlib.import_module("course_lib.tensorflow").cross_entropy(variable, labels)[0]
        gradient = tape.gradient(loss, variable).numpy()
    elif framework == "torch":
        ours = torch.tensor(logits, requires_grad=True)
        importlib.import_module("course_lib.torch").cross_entropy(ours, tensors[1])[0].backward()
        gradient = ours.grad
    else:
        return
    assert_allclose(gradient, tensors[0].grad, atol=1e-12)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("kind", [np.asarray, np.ndarray.tolist])
def test_labels_may_be_arrays_and_lists(framework, batch, kind):
    logits, labels = batch
    loss = importlib.import_module(f"course_lib.{framework}").cross_entropy(TENSOR[framework](logits), kind(labels))[0]
    assert_allclose(float(loss), loss_of(framework, logits, labels)[0], rtol=1e-12)
