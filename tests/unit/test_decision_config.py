"""course_lib.models.decision: the configuration, its border to config.json, the checks of steps, the names."""

from types import SimpleNamespace

import numpy as np
import pytest

from course_lib.errors import UnsupportedConfigError
from course_lib.models.decision import DecisionConfig, check_config, check_steps

SETTINGS = {
    "model_type": "decision_transformer", "state_dim": 5, "act_dim": 2, "hidden_size": 12, "n_layer": 2, "n_head": 4,
    "n_inner": 30, "max_ep_len": 20, "action_tanh": False, "resid_pdrop": 0.25, "attn_pdrop": 0.35, "embd_pdrop": 0.15,
    "layer_norm_epsilon": 1e-7, "activation_function": "silu", "initializer_range": 0.5,
}  # fmt: skip
EXPECTED = DecisionConfig(5, 2, 12, 2, 4, 30, 20, False, 0.25, 0.35, 0.15, 1e-7, "silu", 0.5)


def test_every_setting_is_read_and_written():
    assert DecisionConfig.from_hugging_face(SETTINGS) == EXPECTED
    written = SETTINGS | {"architectures": ["X"], "vocab_size": 1, "n_positions": 1}
    assert EXPECTED.to_hugging_face("X") == written


def test_what_a_silent_file_says():
    silent = {"model_type": "decision_transformer", "n_inner": None, "n_positions": 1024, "vocab_size": 1}
    assert DecisionConfig.from_hugging_face(silent) == DecisionConfig()
    assert DecisionConfig.from_hugging_face(silent | {"hidden_size": 24}).d_ff == 96


def test_layers_and_heads_by_their_other_names():
    """As in `transformers`, whose attribute_map has these, they come first where a file has both."""
    for more in ({}, {"n_layer": 7, "n_head": 6}):
        settings = {key: value for key, value in SETTINGS.items() if key not in ("n_layer", "n_head")} | more
        settings |= {"num_hidden_layers": 2, "num_attention_heads": 4}
        assert DecisionConfig.from_hugging_face(settings) == EXPECTED
    assert DecisionConfig.from_hugging_face(SETTINGS | {"num_hidden_layers": None}) == EXPECTED


def test_the_block():
    block = EXPECTED.block
    assert (block.dropout, block.attention_dropout, block.activation, block.norm_eps) == (0.25, 0.35, "silu", 1e-7)
    assert (block.d_model, block.n_heads, block.d_ff, block.pre_norm) == (12, 4, 30, True)
    assert EXPECTED.residual_scale == 0.5


def test_nonsense_in_a_file_is_an_unsupported_configuration():
    for key in SETTINGS:
        for value in ("much", -1, [1], {"a": 1}):
            with pytest.raises(UnsupportedConfigError):
                DecisionConfig.from_hugging_face(SETTINGS | {key: value})
                pytest.fail(f"{key}={value!r} is taken")


@pytest.mark.parametrize("changes, message", [
    ({"scale_attn_weights": False}, "the course's Decision Transformer computes True only"),
    ({"scale_attn_by_inverse_layer_idx": True}, "computes False only"),
    ({"add_cross_attention": True}, "computes False only"),
    ({"model_type": "gpt2"}, "computes 'decision_transformer' only"),
    ({"model_type": None}, "a Decision Transformer's says \"decision_transformer\""),
])  # fmt: skip
def test_settings_that_ours_does_not_compute(changes, message):
    with pytest.raises(UnsupportedConfigError, match=message):
        DecisionConfig.from_hugging_face(SETTINGS | changes)


@pytest.mark.parametrize("changes, message", [
    ({"d_state": 0}, "d_state must be an integer of 1 or more"),
    ({"d_action": 2.0}, "d_action must be an integer of 1 or more"),
    ({"max_len": 0}, "max_len must be an integer of 1 or more"),
    ({"n_heads": 5}, "d_model must be a positive multiple of n_heads"),
    ({"action_tanh": "no"}, "action_tanh must be one of True, False"),
    ({"embedding_dropout": 1.0}, "embedding_dropout is a probability"),
    ({"norm_eps": 0.0}, "norm_eps is added to a variance"),
    ({"activation": "tanh"}, "activation must be one of"),
    ({"init_std": -0.1}, "init_std is a standard deviation"),
    ({"init_std": "wide"}, "init_std is a standard deviation"),
])  # fmt: skip
def test_values_that_make_no_model(changes, message):
    with pytest.raises(ValueError, match=message):
        DecisionConfig(**changes)
    assert DecisionConfig(np.int64(3)).d_state == 3


def test_another_models_configuration():
    with pytest.raises(TypeError, match="a Decision Transformer is built of a DecisionConfig, got None"):
        check_config(None)


def array(*shape, dtype="float32"):
    return SimpleNamespace(shape=shape, dtype=dtype)


GOOD = {"states": array(2, 3, 5), "actions": array(2, 3, 2), "returns": array(2, 3, 1), "times": array(2, 3)}


@pytest.mark.parametrize("changes, error, message", [
    ({"states": array(2, 3, 4)}, ValueError, r"states of B must have shape \(B, T, 5\), got \(2, 3, 4\)"),
    ({"actions": array(2, 2)}, ValueError, r"actions of B must have shape \(B, T, 2\), got \(2, 2\)"),
    ({"returns": array(2, 3)}, ValueError, r"returns of B must have shape \(B, T, 1\).*write returns\[..., None\]"),
    ({"returns": array(2, 4, 1)}, ValueError, r"a return and a time: returns of B \(2, 4, 1\) .* times \(2, 3\)"),
    ({"states": array(1, 3, 5)}, ValueError, r"each step has a state.*states of B \(1, 3, 5\) do not fit"),
    ({"times": array(2, 4)}, ValueError, r"states of B \(2, 3, 5\) do not fit the times \(2, 4\)"),
    ({"states": array(2, 3, 5, dtype="uint8")}, TypeError, "states of B must be .*floating point, got uint8$"),
    ({"actions": array(2, 3, dtype="int64")}, TypeError, r"actions of B .* is a vector, np.eye\(2\)\[action\]"),
])  # fmt: skip
def test_steps_that_do_not_fit(changes, error, message):
    check_steps(EXPECTED, **GOOD)
    check_steps(EXPECTED, array(None, 3, None), array(2, None, 2), array(2, 3, 1), array(None, None))
    with pytest.raises(error, match=message):
        check_steps(EXPECTED, **{**GOOD, **changes}, of=" of B")
