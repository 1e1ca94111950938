"""T5 equals `transformers`' T5ForConditionalGeneration on random configurations, by files both ways, within 1e-5.

Ten configurations in each library, or as many as `--configurations` says, if these are more.
"""

import json

import numpy as np
import pytest
import torch
import transformers
from numpy.testing import assert_allclose
from safetensors.numpy import load_file, save_file
from transformers.models.t5.modeling_t5 import T5Attention

from course_lib.decoding.search import greedy
from course_lib.errors import CheckpointError
from course_lib.models.position_tables import relative_buckets
from course_lib.models.t5 import T5Config
from tests.support.backends import BACKENDS, NUMPY, TORCH

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

# the plain feed-forward layer and the gated one of T5 1.1, and what else a file may name
FEED_FORWARDS = [("relu", False), ("gelu_new", True), ("silu", True), ("gelu", False), ("relu", True)]


def pytest_generate_tests(metafunc):
    if "number" in metafunc.fixturenames:
        n = max(metafunc.config.getoption("--configurations"), 10)
        found = [(b, i) for b in BACKENDS for i in range(n)]
        metafunc.parametrize(("library", "number"), found, ids=[f"{b}-{i}" for b, i in found])


def case(number):
    """A configuration, and ids of sources (B, S) and targets (B, T), both longer than its longest near distance."""
    rng = np.random.default_rng([20191023, number])
    vocab, pad_id = int(rng.integers(16, 60)), [0, 3, 4][number % 3]
    activation, gated = FEED_FORWARDS[number % len(FEED_FORWARDS)]
    config = T5Config(
        vocab,
        d_model=int(rng.integers(5, 25)),
        n_layers=1 + number % 3,
        n_decoder_layers=1 + number // 2 % 3,
        n_heads=int(rng.integers(1, 5)),
        d_head=int(rng.integers(2, 8)),
        d_ff=int(rng.integers(5, 40)),
        n_buckets=[32, 8, 12, 6][number % 4],
        max_distance=[128, 9, 20, 7][number % 4] if number < 8 else 17,
        dropout=0.1 * (number % 4),
        norm_eps=[1e-6, 1e-3][number % 2],
        activation=activation,
        gated=gated,
        tie_output=number % 4 < 2,
        init_factor=[1.0, 0.5][number // 2 % 2],
        pad_id=pad_id,
        start_id=[pad_id, 5][number % 2],
        end_id=[1, 2, None][number // 3 % 3],
    )
    n_rows = int(rng.integers(2, 5))
    source, target = (rng.integers(6, vocab, size=(n_rows, int(rng.integers(*reach)))) for reach in ((12, 28), (9, 25)))
    source[0, :2] = source[1, 7:] = target[1, 6:] = pad_id
    target[:, 0] = config.start_id
    return config, source, target


def their_model(config, seed):
    """A random model of `transformers`, with weights large enough to matter everywhere."""
    torch.manual_seed(seed)
    settings = config.to_hugging_face() | {"attn_implementation": "eager"}
    model = transformers.T5ForConditionalGeneration(transformers.AutoConfig.for_model(**settings)).eval()
    if not config.tie_output:  # since version 5 it ties them at first, whatever is asked
        model.lm_head.weight = torch.nn.Parameter(config.d_model**-0.5 * torch.randn_like(model.shared.weight))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.add_((1.0 if "relative" in name else 0.2) * torch.randn_like(weight))
    return model


def compare(backend, ours, theirs, source, target):
    """Logits, states and weights; at a target's padding, which theirs does not hide either, as well."""
    theirs = theirs.double() if backend is NUMPY else theirs.float()  # but for their norm, which is float32 always
    mask = torch.from_numpy((source != ours.config.pad_id) * 1)
    inputs = {"input_ids": torch.from_numpy(source), "decoder_input_ids": torch.from_numpy(target)}
    with torch.no_grad():
        expected = theirs(**inputs, attention_mask=mask, output_hidden_states=True, output_attentions=True)
    output = backend.call(ours, source, target, return_layers=True)
    tolerance = {"rtol": 1e-5, "atol": 1e-5}
    assert_allclose(output.logits, expected.logits.numpy(), **tolerance)
    real, every = mask.numpy() == 1, np.ones(target.shape, bool)
    for found, reference, at in [
        (output.encoder_hidden[:-1], expected.encoder_hidden_states[:-1], real),  # the last of theirs is normalised
        (output.encoder_weights, expected.encoder_attentions, real),
        (output.decoder_hidden[:-1], expected.decoder_hidden_states[:-1], every),
        (output.self_weights, expected.decoder_attentions, every),
        (output.cross_weights, expected.cross_attentions, every),
    ]:
        assert len(found) == len(reference)
        for a, b in zip(found, reference, strict=True):
            a, b = (x.swapaxes(1, 2) if x.ndim == 4 else x for x in (a, b.numpy()))  # queries first
            assert_allclose(a[at], b[at], **tolerance)


def test_equal_and_opened_both_ways(library, number, tmp_path):
    config, source, target = case(number)
    theirs = their_model(config, number)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = library.lib.T5.from_pretrained(tmp_path / "theirs")
    assert ours.config == config
    compare(library, ours, theirs, source, target)
    ours.save_pretrained(tmp_path / "ours")
    opened, report = transformers.T5ForConditionalGeneration.from_pretrained(
        tmp_path / "ours", attn_implementation="eager", output_loading_info=True
    )
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
    compare(library, ours, opened.eval(), source, target)
    states = [load_file(tmp_path / side / "model.safetensors") for side in ("ours", "theirs")]
    assert states[0].keys() == states[1].keys()
    for key in states[0]:
        assert_allclose(states[0][key], states[1][key], rtol=1e-6, err_msg=key)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_buckets_are_theirs(bidirectional):
    """But where a whole number of their float32 is rounded below itself, in strange sizes alone."""
    for n_buckets in (4, 6, 8, 12, 16, 20, 32, 64):
        for max_distance in (20, 33, 64, 128, 200):
            if max_distance <= n_buckets // 2:
                continue
            distances = torch.arange(-max_distance, max_distance + 1)
            expected = T5Attention._relative_position_bucket(distances, bidirectional, n_buckets, max_distance)
            found = relative_buckets(n_buckets, max_distance, bidirectional)
            np.testing.assert_array_equal(found, expected, err_msg=f"{n_buckets} {max_distance}")


def test_greedy_search_says_what_theirs_says():
    config, source, _ = case(7)
    theirs = their_model(config, 0)
    ours = TORCH.lib.T5(config).eval()
    weights = {name: value.numpy() for name, value in theirs.state_dict().items()}
    TORCH.lib.set_state(ours, ours.family.of(config).names.ours(weights))
    given = {"attention_mask": torch.from_numpy((source != config.pad_id) * 1), "pad_token_id": config.pad_id}
    expected = theirs.generate(torch.from_numpy(source), **given, do_sample=False, max_new_tokens=6, eos_token_id=None)
    found = greedy(ours.next_logits(source), np.full((len(source), 1), config.start_id), None, 6)
    np.testing.assert_array_equal(found, expected[:, 1:].numpy())
    assert len(np.unique(found)) > 5


@pytest.mark.parametrize("kind", ["copies", "old bias", "T5Model", "tied head"])
def test_other_files_of_a_t5_open_too(kind, tmp_path):
    """Those with copies of the token table, with the bias of cross-attention of before, and of the class without it."""
    config, source, target = case(4)
    assert config.tie_output
    whole = their_model(config, 3)
    (transformers.T5Model(whole.config) if kind == "T5Model" else whole).save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    if kind == "T5Model":
        their_state = {name: value.contiguous() for name, value in whole.state_dict().items()}
        state = {name: their_state[name].numpy() for name in state}
    elif kind == "copies":
        state |= {f"{side}.embed_tokens.weight": state["shared.weight"] for side in ("encoder", "decoder")}
        del state["shared.weight"]
    elif kind == "tied head":
        state["lm_head.weight"] = state["shared.weight"]
    else:
        state["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] = np.ones((32, 2), np.float32)
    save_file(state, tmp_path / "model.safetensors")
    compare(TORCH, TORCH.lib.T5.from_pretrained(tmp_path), whole, source, target)


def test_tables_that_are_not_one_are_refused(tmp_path):
    config, _, _ = case(0)
    their_model(config, 0).save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    for name in ("lm_head.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"):
        save_file(state | {name: state["shared.weight"] + 1}, tmp_path / "model.safetensors")
        with pytest.raises(CheckpointError, match=f"{name} is not shared.weight"):
            NUMPY.lib.T5.from_pretrained(tmp_path)


def test_an_output_matrix_that_a_file_lacks_may_start_afresh(tmp_path):
    config, _, _ = case(3)
    assert not config.tie_output
    their_model(config, 0).save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    del state["lm_head.weight"]
    save_file(state, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"missing: out_proj.weight; to start with .* pass new=\['out_proj'\]"):
        NUMPY.lib.T5.from_pretrained(tmp_path)
    NUMPY.lib.T5.from_pretrained(tmp_path, new="out_proj")


def test_defaults_of_an_absent_key_are_those_of_transformers():
    theirs = transformers.T5Config().to_dict()
    assert T5Config.from_hugging_face({"model_type": "t5"}) == T5Config.from_hugging_face(theirs) == T5Config()
    for number in range(6):
        config = case(number)[0]
        again = transformers.T5Config(**config.to_hugging_face()).to_dict()
        assert T5Config.from_hugging_face(json.loads(json.dumps(again))) == config
