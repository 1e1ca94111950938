"""course_lib.grading.pack and unpack: probabilities as text, and what is said of a text that is none."""

import base64

import numpy as np
import pytest

from course_lib.grading import CheckFailed, pack, unpack


def test_a_probability_comes_back_within_one_in_512():
    p = np.concatenate([np.random.default_rng(0).random(1000), [0.0, 1.0, 0.5, 0.25]])
    back = unpack(pack(p))
    assert back.dtype == np.float64 and back.shape == p.shape
    assert np.abs(back - p).max() <= 1 / 512
    assert 0 < back.min() and back.max() < 1  # so that no log loss is infinite


def test_no_answer_changes():
    p = np.array([0.5, np.nextafter(0.5, 0), 0.499, 0.501])
    assert ((unpack(pack(p)) >= 0.5) == (p >= 0.5)).all()


def test_the_text_is_base64_in_lines():
    p = (np.arange(300) % 256 + 0.5) / 256
    lines = pack(p).split("\n")
    assert [len(line) for line in lines] == [100] * 4
    assert base64.b64decode("".join(lines)) == bytes(i % 256 for i in range(300))


def test_what_was_read_is_written_alike():
    text = pack(np.random.default_rng(1).random(50))
    assert pack(unpack(text)) == text


@pytest.mark.parametrize("kind", ["list", "float32", "torch", "tensorflow"])
def test_probabilities_may_come_from_any_framework(kind):
    import tensorflow as tf
    import torch

    made = {
        "list": lambda p: p,
        "float32": lambda p: np.array(p, dtype=np.float32),
        "torch": lambda p: torch.tensor(p, requires_grad=True),
        "tensorflow": tf.constant,
    }[kind]
    assert unpack(pack(made([0.0, 0.3, 1.0]))) == pytest.approx([0.5 / 256, 76.5 / 256, 255.5 / 256], abs=1e-12)


@pytest.mark.parametrize(
    ("probabilities", "said"),
    [
        (np.full((4, 2), 0.5), "have (4, 2)"),
        (np.full((4, 2), 0.5), "probabilities[:, 1]"),
        ([], "yours have (0,)"),
        (0.5, "yours have ()"),
        ([0.1, np.nan], "none is NaN"),
        ([0.1, 1.0001], "take the softmax first"),
        ([0.1, -0.0001], "take the softmax first"),
        ([0, 1, 1], "an array of floats"),
        (None, "is None"),
    ],
)
def test_what_is_no_probability_is_refused(probabilities, said):
    with pytest.raises(CheckFailed) as failure:
        pack(probabilities)
    assert said in " ".join(str(failure.value).split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "Not written yet: there is no ANSWERS"),
        (np.ones(3), "ANSWERS should be the text that `pack` returned; it is a ndarray"),
        (b"AAAA", "it is a bytes"),
        ("AAA", "Copy the whole text again"),
        ("AA-AA", "Copy the whole text again"),
        ("AA-A", "Copy the whole text again"),
        ("AAAé", "Copy the whole text again"),
        ("AAAA", "ANSWERS holds 3 probabilities; there should be 2,000"),
        ("", "ANSWERS holds 0 probabilities"),
    ],
)
def test_what_pack_did_not_write_is_refused(text, said):
    with pytest.raises(CheckFailed) as failure:
        unpack(text, 2000, "ANSWERS")
    assert said in " ".join(str(failure.value).split())


def test_white_space_does_not_count():
    assert unpack("\n AA \t\n AA\r\n", 3).tolist() == [0.5 / 256] * 3


def test_any_number_is_read_where_none_is_asked_for():
    assert len(unpack("AAAAAAAA")) == 6
