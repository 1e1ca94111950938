"""Seq2SeqConfig: what it refuses, and the way to config.json and back."""

from dataclasses import fields

import numpy as np
import pytest

from course_lib.errors import CheckpointError
from course_lib.models.seq2seq import Seq2SeqConfig, read_config, write_config

SIZES = {"source_vocab": 9, "target_vocab": 11, "d_model": 3, "d_hidden": 4}


@pytest.mark.parametrize("settings, message", [
    ({"cell": "transformer"}, "cell must be one of 'rnn', 'gru', 'lstm'; got 'transformer'"),
    ({"score": "concat"}, "score must be one of None, 'dot', 'general', 'additive'; got 'concat'"),
    ({"order": "vaswani"}, "order must be one of 'bahdanau', 'luong'; got 'vaswani'"),
    ({"dropout": 1.0}, r"in \[0, 1\), got 1.0"),
    ({"d_hidden": 5}, "even d_hidden of 2 or more, got 5"),
    ({"d_hidden": 0}, "even d_hidden of 2 or more, got 0"),
    ({"source_vocab": 0}, "source_vocab must be an integer of 1 or more, got 0"),
    ({"target_vocab": 2.5}, "target_vocab must be an integer of 1 or more, got 2.5"),
    ({"d_model": 0}, "d_model must be an integer of 1 or more, got 0"),
    ({"pad_id": 9}, r"0 \.\.\. 8 for source_vocab=9; got 9"),
])  # fmt: skip
def test_what_no_model_can_have_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Seq2SeqConfig(**{**SIZES, **settings})


def test_a_config_goes_to_a_file_and_back():
    config = Seq2SeqConfig(9, 11, np.int64(3), 4, "lstm", "general", 0.5, 8, "luong")
    settings = write_config(config)
    assert set(settings) == {field.name for field in fields(config)}
    assert type(settings["d_model"]) is int
    assert read_config(settings) == config
    assert read_config(SIZES) == Seq2SeqConfig(9, 11, 3, 4)


@pytest.mark.parametrize("settings, message", [
    ({"n_heads": 2}, "unexpected keyword argument 'n_heads'; Transformer.from_pretrained opens a model with heads"),
    ({"cell": "elman"}, "describe a recurrent translator: cell must be one of 'rnn', 'gru', 'lstm'; got 'elman'$"),
])  # fmt: skip
def test_settings_of_another_model(settings, message):
    with pytest.raises(CheckpointError, match=message):
        read_config({**SIZES, **settings})
