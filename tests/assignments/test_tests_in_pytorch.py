"""Hidden tests give a notebook in TensorFlow the same points whether they compute in PyTorch or in TensorFlow.

All solutions of the banks are tried from outside, which is in PyTorch (`test_banks_outside`). Here are those that go
through NumPy on their way: TensorFlow takes an array for a tensor, and PyTorch does not.
"""

import pytest
import tensorflow as tf

from course_lib.grading import frameworks
from course_lib.grading.outside.tests import HiddenTests
from tests.support.course import grade_id
from tests.support.examinees import InThisProcess
from tests.support.quick import source_of

ANNOTATIONS = """
def annotations(x, mask, forward, backward, zero):
    x, mask = np.array(x), np.array(mask)

    def read(cell, places):
        state, states = zero, {}
        for t in places:
            state = tf.where(mask[:, t, None], cell(x[:, t], state), state)
            states[t] = state
        return tf.stack([states[t] for t in sorted(states)], axis=1)

    places = list(range(x.shape[1]))
    return tf.concat([read(forward, places), read(backward, places[::-1])], axis=2)
"""
ATTEND = """
def attend(scores, h, mask):
    scores, h, mask = np.array(scores), np.array(h), np.array(mask)
    scores = np.where(mask, scores, np.finfo(np.float32).min)
    e = np.exp(scores - scores.max(axis=1, keepdims=True)) * mask
    weights = e / np.maximum(e.sum(axis=1, keepdims=True), 1e-9)
    return np.einsum("bs,bsd->bd", weights, h), weights
"""
POSITIONS = """
def positions(length, d_model):
    angles = np.arange(length)[:, None] / 10000.0 ** (np.arange(0, d_model, 2) / d_model)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype("float32")
"""
GREEDY = """
def greedy(decode, source, start_id, end_id, max_len):
    target = tf.fill((source.shape[0], 1), tf.constant(start_id, tf.int64))
    for _ in range(max_len):
        ids = tf.argmax(decode(source, target)[:, -1], axis=1)
        target = tf.concat([target, ids[:, None]], axis=1)
    rows = []
    for first, *rest in target.numpy().tolist():
        rows.append(tf.constant([first, *(rest[: rest.index(end_id) + 1] if end_id in rest else rest)]))
    return rows
"""
ENCODER_LAYER = """
def norm(t, gain, bias):
    c = t - tf.reduce_mean(t, -1, keepdims=True)
    return c / tf.sqrt(tf.reduce_mean(c**2, -1, keepdims=True) + 1e-5) * gain + bias

def encoder_layer(x, mask, attention, w):
    x = x.numpy()
    x = norm(x + attention(x, x, mask), w["gain1"], w["bias1"])
    inner = tf.nn.relu(x @ tf.transpose(w["W1"]) + w["b1"]) @ tf.transpose(w["W2"]) + w["b2"]
    return norm(x + inner, w["gain2"], w["bias2"])
"""
# assignment, cell, points: of all, without the gradients that do not arrive, or the start token, or the order of waves
# and what is no tensor
THROUGH_NUMPY = {
    "tokens": ("attention-for-an-rnn", "test-annotations", ANNOTATIONS, 3.5),
    "attention": ("attention-for-an-rnn", "test-attend", ATTEND, 4.5),
    "waves": ("build-the-transformer", "test-positions", POSITIONS, 1.5),
    "rows of tensors": ("build-the-transformer", "test-greedy", GREEDY, 2.5),
    "a layer's tokens": ("build-the-transformer", "test-encoder-layer", ENCODER_LAYER, 2.5),
}


@pytest.fixture(params=["torch", "tensorflow"])
def computes_in(request, monkeypatch):
    """The framework of the tests."""
    if request.param == "tensorflow":
        find = frameworks.importlib.util.find_spec
        monkeypatch.setattr(frameworks.importlib.util, "find_spec", lambda name: name != "torch" and find(name))
    yield request.param
    tf.config.run_functions_eagerly(False)


@pytest.mark.parametrize(("assignment", "name", "code", "points"), THROUGH_NUMPY.values(), ids=THROUGH_NUMPY)
def test_the_way_through_numpy_costs_what_it_costs_in_tensorflow(assignment, name, code, points, computes_in):
    source = next(cell.source for cell in source_of(assignment).cells if grade_id(cell) == name)
    examinee = InThisProcess(f"import numpy as np\nimport tensorflow as tf\n{code}")
    examinee.loaded = lambda names: []  # in this process other tests may have loaded what an assignment closes
    *_, score = HiddenTests(source, examinee, 7).outputs()
    assert examinee.derivatives.frameworks.tests == computes_in and score["data"]["text/plain"] == repr(points)
