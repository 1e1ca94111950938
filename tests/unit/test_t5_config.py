"""course_lib.models.t5: the configuration, its border to config.json, and the buckets of relative positions."""

from dataclasses import replace

import numpy as np
import pytest

from course_lib.errors import UnsupportedConfigError
from course_lib.models.position_tables import relative_buckets
from course_lib.models.t5 import T5Config

SETTINGS = {
    "model_type": "t5", "is_encoder_decoder": True, "vocab_size": 50, "d_model": 12, "num_layers": 3,
    "num_decoder_layers": 2, "num_heads": 4, "d_kv": 5, "d_ff": 30, "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 20, "dropout_rate": 0.25, "layer_norm_epsilon": 1e-7,
    "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "initializer_factor": 0.5, "pad_token_id": 2,
    "decoder_start_token_id": 3, "eos_token_id": 4,
}  # fmt: skip
EXPECTED = T5Config(50, 12, 3, 2, 4, 5, 30, 8, 20, 0.25, 1e-7, "gelu_new", True, False, 0.5, 2, 3, 4)


def test_every_setting_is_read_and_written():
    assert T5Config.from_hugging_face(SETTINGS) == EXPECTED
    assert EXPECTED.to_hugging_face("X") == SETTINGS | {"architectures": ["X"]}


@pytest.mark.parametrize("name, activation, gated", [
    ("relu", "relu", False),
    ("gelu", "gelu", False),
    ("gated-silu", "silu", True),
    ("gated-relu", "relu", True),
    ("gelu_new", "gelu_new", False),
])  # fmt: skip
def test_kinds_of_feed_forward(name, activation, gated):
    found = T5Config.from_hugging_face(SETTINGS | {"feed_forward_proj": name})
    assert found == replace(EXPECTED, activation=activation, gated=gated)
    assert found.to_hugging_face()["feed_forward_proj"] == name


@pytest.mark.parametrize("changes, expected", [
    ({"num_decoder_layers": None}, {"n_decoder_layers": 3}),
    ({"decoder_start_token_id": None}, {"start_id": 2}),
    ({"eos_token_id": None}, {"end_id": None}),
    ({"eos_token_id": [5, 6]}, {"end_id": 5}),
    ({"tie_word_embeddings": True}, {"tie_output": True}),
    ({"tie_word_embeddings": True, "scale_decoder_outputs": False}, {}),  # as transformers 5 writes what is untied
    ({"tie_word_embeddings": True, "scale_decoder_outputs": True}, {"tie_output": True}),
    ({"feed_forward_proj": None}, {"activation": "relu", "gated": False}),
])  # fmt: skip
def test_what_a_setting_stands_for(changes, expected):
    assert T5Config.from_hugging_face(SETTINGS | changes) == replace(EXPECTED, **expected)


def test_a_silent_file_is_the_small_t5():
    assert T5Config.from_hugging_face({"model_type": "t5"}) == T5Config()


def test_nonsense_in_a_file_is_an_unsupported_configuration():
    for key in SETTINGS:
        for value in ("much", "a-relu", -1, [], [1.5], {"a": 1}):
            if key == "eos_token_id" and value == []:
                continue
            with pytest.raises(UnsupportedConfigError):
                T5Config.from_hugging_face(SETTINGS | {key: value})
                pytest.fail(f"{key}={value!r} is taken")


@pytest.mark.parametrize("changes, message", [
    ({"is_encoder_decoder": False}, "is_encoder_decoder=False; the course's T5 computes True only"),
    ({"model_type": "roberta"}, "computes 't5' only; RobertaModel and the other classes of that name open it"),
    ({"model_type": "mt5"}, "computes 't5' only$"),
    ({"model_type": None}, 'names no "model_type"'),
])  # fmt: skip
def test_settings_that_ours_does_not_compute(changes, message):
    with pytest.raises(UnsupportedConfigError, match=message):
        T5Config.from_hugging_face(SETTINGS | changes)


@pytest.mark.parametrize("changes, message", [
    ({"n_heads": 0}, "n_heads must be an integer of 1 or more"),
    ({"n_decoder_layers": 0}, "n_decoder_layers must be an integer of 1 or more"),
    ({"d_head": 0}, "d_head must be an integer of 1 or more"),
    ({"n_buckets": 3}, "n_buckets must be a whole number of 4 or more, got 3"),
    ({"max_distance": 16}, "max_distance must be 17 or more, .* first 16 distances .* n_buckets=32; got 16"),
    ({"dropout": 1.0}, "dropout is a probability"),
    ({"norm_eps": 0.0}, "norm_eps is added to a variance"),
    ({"activation": "tanh"}, "activation must be one of"),
    ({"activation": "gelu", "gated": True}, 'a gate goes by "gelu_new"'),
    ({"gated": "yes"}, "gated must be one of True, False"),
    ({"tie_output": 1}, "tie_output must be one of True, False"),
    ({"init_factor": -0.1}, "init_factor is a factor of 0 or more"),
    ({"pad_id": 32128}, "pad_id must be an id of the vocabulary"),
    ({"start_id": 32128}, "start_id must be an id of the vocabulary"),
    ({"end_id": 32128}, "end_id must be an id of the vocabulary"),
    ({"pad_id": 1}, "the token 1 ends a text, so it cannot be padding"),
])  # fmt: skip
def test_values_that_make_no_model(changes, message):
    with pytest.raises(ValueError, match=message):
        T5Config(**changes)


def test_t5s_buckets_by_hand():
    """32 buckets: 8 of 16 are exact for each direction, then the distances grow by sqrt(2) a bucket, up to 128."""
    both, back = relative_buckets(), relative_buckets(bidirectional=False)
    assert both.shape == back.shape == (257,) and both.dtype == np.int64
    begins = [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]
    for bucket, (first, after) in enumerate(zip(begins, [*begins[1:], 129], strict=True)):
        for distance in range(first, after):
            assert both[128 - distance] == bucket
            assert distance == 0 or both[128 + distance] == 16 + bucket
    assert (back[128:] == 0).all() and (np.diff(back[:129]) <= 0).all()
    assert [back[128 - d] for d in (1, 15, 16, 18, 19, 128)] == [1, 15, 16, 16, 17, 31]


@pytest.mark.parametrize("arguments, message", [
    ((3, 9), "n_buckets must be a whole number of 4 or more"),
    ((1, 9, False), "n_buckets must be a whole number of 2 or more"),
    ((8, 0), "max_distance must be a whole number of 1 or more"),
    ((8, 2), "max_distance must be 3 or more"),
    ((8, 4, False), "max_distance must be 5 or more"),
])  # fmt: skip
def test_buckets_that_there_are_not(arguments, message):
    with pytest.raises(ValueError, match=message):
        relative_buckets(*arguments)


def test_the_fewest_buckets():
    assert relative_buckets(2, 2, False).tolist() == [1, 1, 0, 0, 0]
    assert relative_buckets(4, 2).tolist() == [1, 1, 0, 3, 3]
