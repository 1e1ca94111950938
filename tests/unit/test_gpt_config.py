"""course_lib.models.gpt: the configuration and its border to config.json."""

import pytest

from course_lib.errors import UnsupportedConfigError
from course_lib.models.gpt import GPTConfig

SETTINGS = {
    "model_type": "gpt2", "vocab_size": 50, "n_embd": 12, "n_layer": 3, "n_head": 4, "n_inner": 30, "n_positions": 20,
    "resid_pdrop": 0.25, "attn_pdrop": 0.35, "embd_pdrop": 0.15, "layer_norm_epsilon": 1e-7,
    "activation_function": "silu", "initializer_range": 0.5, "pad_token_id": 2, "eos_token_id": 3, "bos_token_id": 3,
}  # fmt: skip
EXPECTED = GPTConfig(50, 12, 3, 4, 30, 20, 0.25, 0.35, 0.15, 1e-7, "silu", 0.5, 2, 3)


def test_every_setting_is_read_and_written():
    assert GPTConfig.from_hugging_face(SETTINGS) == EXPECTED
    assert EXPECTED.to_hugging_face("X") == SETTINGS | {"architectures": ["X"]}


def test_what_the_smallest_gpt2_says():
    said = {"model_type": "gpt2", "vocab_size": 50257, "n_inner": None, "eos_token_id": 50256, "n_ctx": 1024}
    assert GPTConfig.from_hugging_face(said) == GPTConfig(end_id=50256)
    assert GPTConfig.from_hugging_face({"model_type": "gpt2", "n_embd": 24}).d_ff == 96


@pytest.mark.parametrize("changes, pad_id, end_id", [
    ({"pad_token_id": 3}, None, 3),  # the end of a text must be seen
    ({"pad_token_id": None}, None, 3),
    ({"eos_token_id": None}, 2, None),
    ({"eos_token_id": 50256}, 2, None),
    ({"eos_token_id": [4, 5]}, 2, 4),
    ({"eos_token_id": [2, 5]}, None, 2),
])  # fmt: skip
def test_padding_and_the_end_of_a_text(changes, pad_id, end_id):
    found = GPTConfig.from_hugging_face(SETTINGS | changes)
    assert (found.pad_id, found.end_id) == (pad_id, end_id)


def test_the_end_is_that_of_gpt2_where_a_file_is_silent():
    silent = {name: value for name, value in SETTINGS.items() if name != "eos_token_id"}
    assert GPTConfig.from_hugging_face(silent | {"vocab_size": 50257}).end_id == 50256
    assert GPTConfig.from_hugging_face(silent).end_id is None


def test_nonsense_in_a_file_is_an_unsupported_configuration():
    for key in SETTINGS.keys() - {"bos_token_id", "eos_token_id"}:
        for value in ("much", -1, [1], {"a": 1}):
            with pytest.raises(UnsupportedConfigError):
                GPTConfig.from_hugging_face(SETTINGS | {key: value})
                pytest.fail(f"{key}={value!r} is taken")
    for value in ("much", {"a": 1}):
        with pytest.raises(UnsupportedConfigError):
            GPTConfig.from_hugging_face(SETTINGS | {"eos_token_id": value})


@pytest.mark.parametrize("changes, message", [
    ({"scale_attn_weights": False}, "scale_attn_weights=False; the course's GPT computes True only"),
    ({"scale_attn_by_inverse_layer_idx": True}, "computes False only"),
    ({"add_cross_attention": True}, "computes False only"),
    ({"tie_word_embeddings": False}, "computes True only"),
    ({"model_type": "roberta"}, "computes 'gpt2' only; RobertaModel and the other classes of that name open it"),
    ({"model_type": "openai-gpt"}, "computes 'gpt2' only$"),
    ({"model_type": None}, 'names no "model_type"'),
])  # fmt: skip
def test_settings_that_ours_does_not_compute(changes, message):
    with pytest.raises(UnsupportedConfigError, match=message):
        GPTConfig.from_hugging_face(SETTINGS | changes)


@pytest.mark.parametrize("changes, message", [
    ({"n_heads": 5}, "d_model must be a positive multiple of n_heads"),
    ({"n_layers": 0}, "n_layers must be an integer of 1 or more"),
    ({"embedding_dropout": 1.0}, "embedding_dropout is a probability"),
    ({"norm_eps": 0.0}, "norm_eps is added to a variance"),
    ({"activation": "tanh"}, "activation must be one of"),
    ({"init_std": -0.1}, "init_std is a standard deviation"),
    ({"pad_id": 50257}, "pad_id must be an id of the vocabulary"),
    ({"end_id": 50257}, "end_id must be an id of the vocabulary"),
    ({"pad_id": 4, "end_id": 4}, "the token 4 ends a text, so it cannot be padding"),
])  # fmt: skip
def test_values_that_make_no_model(changes, message):
    with pytest.raises(ValueError, match=message):
        GPTConfig(**changes)
