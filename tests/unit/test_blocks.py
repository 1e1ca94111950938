"""BlockConfig: what it accepts, what it refuses, and what the models' configurations make of it."""

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

from course_lib.models.bert import BertConfig
from course_lib.models.blocks import BlockConfig
from course_lib.models.transformer import TransformerConfig


@pytest.mark.parametrize("changes, message", [
    ({"d_model": 0}, "d_model must be an integer of 1 or more, got 0"),
    ({"d_ff": 2.5}, "d_ff must be an integer of 1 or more, got 2.5"),
    ({"n_heads": 5}, "multiple of n_heads, got d_model=12, n_heads=5"),
    ({"n_kv_heads": 3}, "n_heads must be a positive multiple of n_kv_heads, got n_heads=4, n_kv_heads=3"),
    ({"n_kv_heads": 0}, "n_kv_heads must be an integer of 1 or more, got 0"),
    ({"d_head": 0}, "d_head must be an integer of 1 or more, got 0"),
    ({"dropout": 1.0}, "dropout is a probability"),
    ({"attention_dropout": -0.1}, "attention_dropout is a probability"),
    ({"feed_forward_dropout": 1.0}, "feed_forward_dropout is a probability"),
    ({"activation": "swish"}, "activation must be one of 'gelu', 'relu', 'gelu_new', 'silu'; got 'swish'"),
    ({"norm": "batch"}, "norm must be one of 'layer', 'rms'; got 'batch'"),
    ({"norm_eps": 0.0}, "norm_eps .* positive"),
    ({"pre_norm": "yes"}, "pre_norm must be one of True, False; got 'yes'"),
    ({"linear_bias": 1}, "linear_bias must be one of True, False; got 1"),
    ({"qkv_bias": 1}, "qkv_bias must be one of True, False; got 1"),
    ({"key_bias": 1}, "key_bias must be one of True, False; got 1"),
    ({"gated": None}, "gated must be one of True, False; got None"),
    ({"scale": 0.0}, "scale must be a positive number, got 0.0"),
    ({"scale": "1"}, "scale must be a positive number, got '1'"),
    ({"rotary_base": -1.0}, "rotary_base must be a positive number, got -1.0"),
    ({"rotary_base": 100.0}, "d_head of rotary positions must be an even number.*got 3"),
])  # fmt: skip
def test_what_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        BlockConfig(**{"d_model": 12, "n_heads": 4, "d_ff": 8, **changes})


def test_heads_of_any_size_where_it_is_given():
    assert BlockConfig(12, 5, 8, d_head=6, rotary_base=10.0).d_head == 6


def test_it_cannot_be_changed_and_numbers_of_numpy_become_plain():
    block = BlockConfig(np.int64(12), np.int32(4), 8, dropout=np.float64(0.5))
    assert type(block.d_model) is int and type(block.dropout) is float
    with pytest.raises(FrozenInstanceError):
        block.d_model = 13


@pytest.mark.parametrize("config", [
    BertConfig(13, 12, 2, 4, 20, dropout=0.3, attention_dropout=0.2, norm_eps=1e-3, activation="relu"),
    TransformerConfig(13, 13, 12, 2, 6, 20, dropout=0.3, attention_dropout=0.2, norm_eps=1e-3, activation="gelu",
                      pre_norm=True, positions="rotary"),
    TransformerConfig(13, 13, 12, 2, 4, 20, positions="learned"),
], ids=["BERT", "Transformer, rotary", "Transformer"])  # fmt: skip
def test_the_block_of_a_model(config):
    """Every field that both know has the model's value; the others say what these models always are."""
    shared = {field.name for field in fields(BlockConfig)} & {field.name for field in fields(config)}
    assert shared >= {"d_model", "n_heads", "d_ff", "dropout", "attention_dropout", "activation", "norm_eps"}
    assert all(getattr(config.block, name) == getattr(config, name) for name in shared)
    assert config.block.rotary_base == (10000.0 if getattr(config, "positions", None) == "rotary" else None)
    block = config.block
    assert (block.norm, block.linear_bias, block.gated, block.n_kv_heads, block.scale) == (
        "layer",
        True,
        False,
        None,
        None,
    )
