"""Whisper equals `transformers`' WhisperForConditionalGeneration on random configurations, by files both ways.

Within 1e-5: ten configurations in each library, or as many as `--configurations` says, if these are more.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from numpy.testing import assert_allclose
from safetensors.numpy import load_file, save_file

from course_lib.decoding.search import greedy
from course_lib.errors import CheckpointError
from course_lib.models.whisper import WhisperConfig
from tests.support.backends import BACKENDS, NUMPY, TORCH

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def pytest_generate_tests(metafunc):
    if "number" in metafunc.fixturenames:
        n = max(metafunc.config.getoption("--configurations"), 10)
        found = [(b, i) for b in BACKENDS for i in range(n)]
        metafunc.parametrize(("library", "number"), found, ids=[f"{b}-{i}" for b, i in found])


def case(number):
    """A configuration, as many frames (B, n_mels, F) as theirs insists on, and targets (B, T)."""
    rng = np.random.default_rng([20221206, number])
    vocab, heads = int(rng.integers(16, 60)), [(1, 2), (3, 1), (2, 2), (2, 6)][number % 4]
    config = WhisperConfig(
        vocab,
        n_mels=int(rng.integers(3, 12)),
        d_model=6 * int(rng.integers(1, 5)),
        n_layers=1 + number % 3,
        n_decoder_layers=1 + number // 2 % 3,
        n_heads=heads[0],
        n_decoder_heads=heads[1],
        d_ff=int(rng.integers(5, 40)),
        d_decoder_ff=int(rng.integers(5, 40)),
        max_source_len=int(rng.integers(4, 12)),
        max_len=int(rng.integers(9, 15)),
        dropout=0.1 * (number % 4),
        attention_dropout=0.1 * (number % 3),
        feed_forward_dropout=0.1 * (number % 2),
        activation=["gelu", "relu", "silu", "gelu_new"][number // 2 % 4],
        init_std=[0.02, 0.1][number % 2],
        pad_id=[0, 3, 4][number % 3],
        start_id=5,
        end_id=[1, None, 4][number // 3 % 3],
    )
    n_rows = int(rng.integers(2, 5))
    features = rng.normal(size=(n_rows, config.n_mels, config.max_frames)).astype(np.float32)
    target = rng.integers(6, vocab, size=(n_rows, int(rng.integers(4, config.max_len + 1))))
    target[1, 3:] = config.pad_id
    target[:, 0] = config.start_id
    return config, features, target


def their_model(config, seed):
    """A random model of `transformers`, with weights large enough to matter everywhere; its sinusoids stay."""
    torch.manual_seed(seed)
    settings = config.to_hugging_face() | {"attn_implementation": "eager"}
    model = transformers.WhisperForConditionalGeneration(transformers.AutoConfig.for_model(**settings)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name != "model.encoder.embed_positions.weight":
                weight.add_(0.2 * torch.randn_like(weight))
    return model


def compare(backend, ours, theirs, features, target):
    """Logits, states and weights; at a target's padding, which theirs does not hide either, as well."""
    theirs = theirs.double() if backend is NUMPY else theirs.float()
    inputs = {"input_features": torch.from_numpy(features), "decoder_input_ids": torch.from_numpy(target)}
    if backend is NUMPY:
        inputs["input_features"] = inputs["input_features"].double()
    with torch.no_grad():
        expected = theirs(**inputs, output_hidden_states=True, output_attentions=True)
    output = backend.call(ours, features, target, return_layers=True)
    tolerance = {"rtol": 1e-5, "atol": 1e-5}
    assert_allclose(output.logits, expected.logits.numpy(), **tolerance)
    for found, reference in [
        (output.encoder_hidden[:-1], expected.encoder_hidden_states[:-1]),  # the last of theirs is normalised
        (output.encoder_weights, expected.encoder_attentions),
        (output.decoder_hidden[:-1], expected.decoder_hidden_states[:-1]),
        (output.self_weights, expected.decoder_attentions),
        (output.cross_weights, expected.cross_attentions),
    ]:
        assert len(found) == len(reference)
        for a, b in zip(found, reference, strict=True):
            assert_allclose(a, b.numpy(), **tolerance)


def test_equal_and_opened_both_ways(library, number, tmp_path):
    config, features, target = case(number)
    theirs = their_model(config, number)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = library.lib.Whisper.from_pretrained(tmp_path / "theirs")
    assert ours.config == config
    compare(library, ours, theirs, features, target)
    ours.save_pretrained(tmp_path / "ours")
    opened, report = transformers.WhisperForConditionalGeneration.from_pretrained(
        tmp_path / "ours", attn_implementation="eager", output_loading_info=True
    )
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
    compare(library, ours, opened.eval(), features, target)
    states = [load_file(tmp_path / side / "model.safetensors") for side in ("ours", "theirs")]
    assert states[0].keys() == states[1].keys()
    for key in states[0]:
        # their sinusoids are of angles in float32
        tolerance = {"rtol": 0, "atol": 3e-6} if "encoder.embed_positions" in key else {"rtol": 1e-6}
        assert_allclose(states[0][key], states[1][key], **tolerance, err_msg=key)


def test_greedy_search_says_what_theirs_says(tmp_path):
    config, features, _ = case(5)
    theirs = their_model(config, 0)
    theirs.save_pretrained(tmp_path)
    ours = TORCH.lib.Whisper.from_pretrained(tmp_path)
    start = torch.full((len(features), 1), config.start_id)
    given = {"decoder_input_ids": start, "max_new_tokens": 6, "do_sample": False, "eos_token_id": None}
    # that of all models; Whisper's own cuts sounds into windows and adds tokens of its vocabulary
    expected = transformers.GenerationMixin.generate(theirs, torch.from_numpy(features), **given)
    found = greedy(ours.next_logits(features), start.numpy(), None, 6)
    np.testing.assert_array_equal(found, expected[:, 1:].numpy())
    assert len(np.unique(found)) > 3 and len(np.unique(found, axis=0)) == len(features)


@pytest.mark.parametrize("kind", ["WhisperModel", "tied head", "head alone", "half"])
def test_other_files_of_a_whisper_open_too(kind, tmp_path):
    """Those of the class without a head, with the copy of the token table, with that alone, of half precision."""
    config, features, target = case(4)
    whole = their_model(config, 3)
    (whole.model if kind == "WhisperModel" else whole).save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    table = "model.decoder.embed_tokens.weight"
    if kind == "WhisperModel":
        assert table not in state
    elif kind == "tied head":
        state["proj_out.weight"] = state[table]
    elif kind == "head alone":
        state["proj_out.weight"] = state.pop(table)
    else:
        state = {name: value.astype(np.float16) for name, value in state.items()}
        whole = whole.half().float()
    save_file(state, tmp_path / "model.safetensors")
    ours = TORCH.lib.Whisper.from_pretrained(tmp_path)
    if kind == "half":  # the sinusoids are exact, whatever the file has rounded
        with torch.no_grad():
            whole.model.encoder.embed_positions.weight.copy_(ours.sound_position.table)
    compare(TORCH, ours.float(), whole, features, target)


def test_tables_that_are_not_one_are_refused(tmp_path):
    config, _, _ = case(0)
    their_model(config, 0).save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    table = "model.decoder.embed_tokens.weight"
    save_file(state | {"proj_out.weight": state[table] + 1}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=f"proj_out.weight is not {table}"):
        NUMPY.lib.Whisper.from_pretrained(tmp_path)


@pytest.mark.parametrize("prefix", ["model.", ""])
@pytest.mark.parametrize("change", ["learned", "turned", "wider"])
def test_positions_of_the_encoder_that_are_no_sinusoids_are_refused(prefix, change, tmp_path):
    config, _, _ = case(0)
    their_model(config, 0).save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    state = {prefix + name.removeprefix("model."): value for name, value in state.items()}
    name = f"{prefix}encoder.embed_positions.weight"
    learned = state[name].copy()
    learned[2, 1] += 0.005
    changes = {"learned": learned, "turned": state[name][::-1].copy(), "wider": np.tile(state[name], 2)}
    save_file(state | {name: changes[change]}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=f"{name} .* holds other positions than the sinusoids"):
        NUMPY.lib.Whisper.from_pretrained(tmp_path)


def test_fewer_and_more_positions_than_the_file_has(tmp_path):
    """Sinusoids are computed, so a sound may be as long as one says; a shorter one is read by the same weights."""
    config, features, target = case(2)
    their_model(config, 0).save_pretrained(tmp_path)
    expected = NUMPY.lib.Whisper.from_pretrained(tmp_path)(features, target).logits
    for n in (config.max_source_len + 5, 3):
        ours = NUMPY.lib.Whisper.from_pretrained(tmp_path, max_source_len=n)
        assert ours.config == replace(config, max_source_len=n)
        if n > 3:
            assert_allclose(ours(features, target).logits, expected)
        else:
            assert ours(features[..., :6], target).logits.shape == expected.shape
        saved = load_file(ours.save_pretrained(tmp_path / str(n)) / "model.safetensors")
        assert saved["model.encoder.embed_positions.weight"].shape == (n, config.d_model)


def test_the_sinusoids_are_theirs_at_whispers_own_length():
    """Within the rounding of their angles of up to 1500 radians in float32."""
    from transformers.models.whisper.modeling_whisper import sinusoids

    table = TORCH.lib.SinusoidalPositions(384, 1500, halves=True).table
    found, expected = table.numpy(), sinusoids(1500, 384).numpy()
    assert_allclose(found, expected, rtol=0, atol=2e-4)
    assert_allclose(found[:20], expected[:20], rtol=0, atol=3e-6)


def test_defaults_of_an_absent_key_are_those_of_transformers():
    theirs = transformers.WhisperConfig().to_dict()
    read = WhisperConfig.from_hugging_face
    assert read({"model_type": "whisper"}) == read(theirs) == WhisperConfig()
    for number in range(6):
        config = case(number)[0]
        again = transformers.WhisperConfig(**config.to_hugging_face()).to_dict()
        assert read(json.loads(json.dumps(again))) == config
