"""course_lib.models.whisper: the configuration, its border to config.json, the checks of sounds, the names."""

from dataclasses import replace

import numpy as np
import pytest

from course_lib.errors import UnsupportedConfigError
from course_lib.models.position_tables import sinusoidal_halves
from course_lib.models.whisper import WHISPER, WhisperConfig, check_config, check_sounds

SETTINGS = {
    "model_type": "whisper", "is_encoder_decoder": True, "tie_word_embeddings": True, "vocab_size": 50,
    "num_mel_bins": 7, "d_model": 12, "encoder_layers": 3, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 6, "encoder_ffn_dim": 30, "decoder_ffn_dim": 20, "max_source_positions": 9,
    "max_target_positions": 8, "dropout": 0.25, "attention_dropout": 0.35, "activation_dropout": 0.15,
    "activation_function": "silu", "init_std": 0.5, "pad_token_id": 2, "decoder_start_token_id": 3, "eos_token_id": 4,
}  # fmt: skip
EXPECTED = WhisperConfig(50, 7, 12, 3, 2, 4, 6, 30, 20, 9, 8, 0.25, 0.35, 0.15, "silu", 0.5, 2, 3, 4)


def test_every_setting_is_read_and_written():
    assert WhisperConfig.from_hugging_face(SETTINGS) == EXPECTED
    more = {"architectures": ["X"], "bos_token_id": 4, "begin_suppress_tokens": None}
    assert EXPECTED.to_hugging_face("X") == SETTINGS | more
    assert EXPECTED.to_hugging_face()["architectures"] == ["WhisperForConditionalGeneration"]


@pytest.mark.parametrize("changes, expected", [
    ({"eos_token_id": None}, {"end_id": None}),
    ({"eos_token_id": [5, 6]}, {"end_id": 5}),
    ({"pad_token_id": 4}, {"pad_id": 4}),  # as in Whisper's own files
    ({"suppress_tokens": [1, 2], "begin_suppress_tokens": [3], "scale_embedding": False, "encoder_layerdrop": 0.1}, {}),
])  # fmt: skip
def test_what_a_setting_stands_for(changes, expected):
    assert WhisperConfig.from_hugging_face(SETTINGS | changes) == replace(EXPECTED, **expected)


def test_a_silent_file_is_the_tiny_whisper():
    assert WhisperConfig.from_hugging_face({"model_type": "whisper"}) == WhisperConfig()
    assert WhisperConfig().max_frames == 3000


def test_the_blocks_of_encoder_and_decoder():
    encoder, decoder = EXPECTED.block, EXPECTED.decoder_block
    assert (encoder.n_heads, encoder.d_ff, decoder.n_heads, decoder.d_ff) == (4, 30, 6, 20)
    for block in (encoder, decoder):
        assert (block.d_model, block.dropout, block.attention_dropout) == (12, 0.25, 0.35)
        assert block.feed_forward_dropout == 0.15
        assert (block.activation, block.norm_eps, block.pre_norm) == ("silu", 1e-5, True)
        assert block.for_attention["key_bias"] is False and block.for_attention["linear_bias"] is True


def test_nonsense_in_a_file_is_an_unsupported_configuration():
    for key in SETTINGS:
        for value in ("much", -1, [], [1.5], {"a": 1}):
            with pytest.raises(UnsupportedConfigError):
                WhisperConfig.from_hugging_face(SETTINGS | {key: value})
                pytest.fail(f"{key}={value!r} is taken")


@pytest.mark.parametrize("changes, message", [
    ({"is_encoder_decoder": False}, "is_encoder_decoder=False; the course's Whisper computes True only"),
    ({"tie_word_embeddings": False}, "tie_word_embeddings=False; the course's Whisper computes True only"),
    ({"model_type": "roberta"}, "computes 'whisper' only; RobertaModel and the other classes of that name open it"),
    ({"model_type": None}, 'names no "model_type"; a Whisper\'s says "whisper"'),
])  # fmt: skip
def test_settings_that_ours_does_not_compute(changes, message):
    with pytest.raises(UnsupportedConfigError, match=message):
        WhisperConfig.from_hugging_face(SETTINGS | changes)


@pytest.mark.parametrize("changes, message", [
    *(({name: 0}, f"{name} must be an integer of 1 or more") for name in (
        "vocab_size", "n_mels", "d_model", "n_layers", "n_decoder_layers", "n_heads", "n_decoder_heads", "d_ff",
        "d_decoder_ff", "max_source_len", "max_len",
    )),
    ({"n_heads": 5}, "d_model must be a positive multiple of n_heads"),
    ({"n_decoder_heads": 5}, "a multiple of n_decoder_heads, too, got d_model=12, n_decoder_heads=5"),
    ({"d_model": 15, "n_heads": 3, "n_decoder_heads": 5}, "d_model must be an even number of 2 or more"),
    ({"d_model": 2, "n_heads": 2, "n_decoder_heads": 1}, "d_model must be 4 or more, for the sinusoids"),
    ({"dropout": 1.0}, "dropout is a probability"),
    ({"attention_dropout": -0.1}, "attention_dropout is a probability"),
    ({"feed_forward_dropout": 1.0}, "feed_forward_dropout is a probability"),
    ({"activation": "tanh"}, "activation must be one of"),
    ({"init_std": -0.1}, "init_std is a standard deviation"),
    ({"init_std": "wide"}, "init_std is a standard deviation"),
    ({"pad_id": 50}, "pad_id must be an id of the vocabulary"),
    ({"start_id": 50}, "start_id must be an id of the vocabulary"),
    ({"end_id": 50}, "end_id must be an id of the vocabulary"),
])  # fmt: skip
def test_values_that_make_no_model(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(EXPECTED, **changes)
    assert replace(EXPECTED, d_model=np.int64(24)).d_model == 24
    assert replace(EXPECTED, d_model=4, n_heads=1, n_decoder_heads=2, end_id=None).end_id is None


def test_another_models_configuration():
    assert check_config(EXPECTED) is EXPECTED
    with pytest.raises(TypeError, match="a Whisper is built of a WhisperConfig, got None"):
        check_config(None)


@pytest.mark.parametrize("shape, message", [
    ((2, 6, 9), r"sounds of B must have shape \(B, 7, F\), got \(2, 6, 9\)$"),
    ((2, 9, 7), r"got \(2, 9, 7\); frames stand last"),
    ((7, 9), r"got \(7, 9\); one sound becomes a batch by \[None\]"),
    ((7,), r"got \(7\)$"),
    ((None, 6, None), r"got \(\?, 6, \?\)$"),
    ((2, 7, 0), "must have 1 to 18 frames, two for each of max_source_len=9 positions, got 0; cut the sound"),
    ((2, 7, 19), "got 19"),
])  # fmt: skip
def test_sounds_that_do_not_fit(shape, message):
    for good in ((2, 7, 1), (1, 7, 18), (None, None, None), (None, 7, None)):
        check_sounds(EXPECTED, good, "float16")
    with pytest.raises(ValueError, match=message):
        check_sounds(EXPECTED, shape, "float32", "sounds of B")
    with pytest.raises(TypeError, match="^features must be numbers of floating point, as `log_mel` makes; got int16"):
        check_sounds(EXPECTED, shape, "int16")


def test_the_names_of_all_weights_go_out_and_come_back():
    names = WHISPER.of(EXPECTED).names
    ours = {
        "conv1.weight": 0, "conv2.bias": 1, "encoder.layers.2.attention.k_proj.weight": 2,
        "decoder.layers.0.cross_attention.q_proj.bias": 3, "decoder.layers.1.norm2.weight": 4,
        "decoder.layers.1.norm3.bias": 5, "encoder.layers.1.norm2.bias": 6, "encoder.norm.weight": 7,
        "decoder.layers.1.feed_forward.linear2.weight": 8, "token.weight": 9, "position.weight": 10,
    }  # fmt: skip
    theirs = names.theirs(dict(ours), headed=True)
    sinusoids = theirs.pop("model.encoder.embed_positions.weight")
    assert sinusoids.shape == (9, 12) and sinusoids.dtype == np.float32
    assert {name.removeprefix("model."): value for name, value in theirs.items()} == {
        "encoder.conv1.weight": 0, "encoder.conv2.bias": 1, "encoder.layers.2.self_attn.k_proj.weight": 2,
        "decoder.layers.0.encoder_attn.q_proj.bias": 3, "decoder.layers.1.encoder_attn_layer_norm.weight": 4,
        "decoder.layers.1.final_layer_norm.bias": 5, "encoder.layers.1.final_layer_norm.bias": 6,
        "encoder.layer_norm.weight": 7, "decoder.layers.1.fc2.weight": 8, "decoder.embed_tokens.weight": 9,
        "decoder.embed_positions.weight": 10,
    }  # fmt: skip
    assert all(name.startswith("model.") for name in theirs)
    assert names.ours(theirs) == ours


def test_sinusoids_in_halves_by_hand():
    """Six features: wavelengths 2 pi, 200 pi and 20000 pi."""
    table = sinusoidal_halves(3, 6)
    angles = np.arange(3)[:, None] * [1, 0.01, 0.0001]
    assert table.dtype == np.float64
    np.testing.assert_allclose(table, np.concatenate([np.sin(angles), np.cos(angles)], axis=1), rtol=1e-12)
    with pytest.raises(ValueError, match="d_model of sinusoidal positions must be an even number"):
        sinusoidal_halves(3, 7)
    with pytest.raises(ValueError, match="d_model must be 4 or more, for a shortest wavelength and a longest"):
        sinusoidal_halves(3, 2)
