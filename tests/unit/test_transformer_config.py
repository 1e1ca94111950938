"""course_lib.models.transformer: TransformerConfig and its presets."""

import dataclasses

import pytest

from course_lib.models.transformer import PRESETS, TransformerConfig


def test_the_paper_by_default():
    config = TransformerConfig(37000, 37000)
    assert config == TransformerConfig.preset("base", 37000, 37000)
    assert (config.n_layers, config.d_model, config.n_heads, config.d_ff) == (6, 512, 8, 2048)
    assert config.dropout == pytest.approx(0.1) and config.attention_dropout == 0 and not config.pre_norm
    assert config.activation == "relu" and config.positions == "sinusoidal" and config.tie_output


def test_presets():
    sizes = {
        name: (c.n_layers, c.d_model, c.d_ff, c.n_heads)
        for name, c in ((name, TransformerConfig.preset(name, 7, 9)) for name in PRESETS)
    }
    assert sizes["big"] == (6, 1024, 4096, 16)
    assert sizes["tutorial"] == (4, 128, 512, 8)
    changed = TransformerConfig.preset("tiny", 7, 9, dropout=0.25, n_layers=5)
    assert (changed.source_vocab, changed.target_vocab, changed.n_layers) == (7, 9, 5)
    assert changed.dropout == pytest.approx(0.25)
    with pytest.raises(ValueError, match="the preset must be one of 'base', 'big'"):
        TransformerConfig.preset("huge", 7, 9)


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TransformerConfig(7, 9).d_model = 3


@pytest.mark.parametrize("name", ["source_vocab", "target_vocab", "d_model", "n_layers", "n_heads", "d_ff", "max_len"])
@pytest.mark.parametrize("value", [0, -3, 2.0, True, "12", None])
def test_sizes_are_integers_of_one_or_more(name, value):
    with pytest.raises(ValueError, match=f"{name} must be an integer of 1 or more, got {value!r}"):
        TransformerConfig(**{"source_vocab": 7, "target_vocab": 9, name: value})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_heads": 7}, "multiple of n_heads"),
        ({"dropout": 1.0}, "dropout is a probability"),
        ({"attention_dropout": -0.1}, "dropout is a probability"),
        ({"activation": "tanh"}, "activation must be one of"),
        ({"norm": "batch"}, "norm must be one of 'layer', 'rms'"),
        ({"n_kv_heads": 3}, "multiple of n_kv_heads"),
        ({"n_kv_heads": 0}, "n_kv_heads must be an integer of 1 or more"),
        ({"positions": "absolute"}, "positions must be one of"),
        ({"d_model": 9, "n_heads": 3}, "even"),
        ({"d_model": 9, "n_heads": 3, "positions": "rotary"}, "d_head .* of rotary positions must be an even"),
        ({"pad_id": 8}, "0 ... 6 for source_vocab=7; got 8"),
        ({"pad_id": 8, "source_vocab": 9, "target_vocab": 8}, "0 ... 7 for target_vocab=8; got 8"),
        ({"pad_id": -5}, "pad_id must be an id"),
        ({"norm_eps": -1}, "norm_eps .* positive number, got -1"),
        ({"tie_output": "no"}, "tie_output must be one of True, False; got 'no'"),
        ({"share_embeddings": True}, "one vocabulary, got source_vocab=7 and target_vocab=9"),
    ],
)
def test_what_cannot_be(changes, message):
    with pytest.raises(ValueError, match=message):
        TransformerConfig(**{"source_vocab": 7, "target_vocab": 9, **changes})


def test_odd_sizes_need_no_sinusoids():
    assert TransformerConfig(7, 9, d_model=9, n_heads=3, positions="learned").d_model == 9
    assert TransformerConfig(7, 9, d_model=9, n_heads=3, positions=None).positions is None
