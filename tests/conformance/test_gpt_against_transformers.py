"""GPT equals `transformers`' GPT2LMHeadModel on random configurations, by files both ways: 1e-5, in NumPy 1e-9.

Ten configurations in each library, or as many as `--configurations` says, if these are more.
"""

import numpy as np
import pytest
import torch
import transformers
from numpy.testing import assert_allclose
from safetensors.numpy import load_file, save_file

from course_lib.decoding.search import greedy
from course_lib.errors import CheckpointError
from course_lib.models.blocks import ACTIVATIONS
from course_lib.models.gpt import GPTConfig
from tests.support.backends import BACKENDS, NUMPY, TORCH

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def pytest_generate_tests(metafunc):
    if "number" in metafunc.fixturenames:
        n = max(metafunc.config.getoption("--configurations"), 10)
        found = [(b, i) for b in BACKENDS for i in range(n)]
        metafunc.parametrize(("library", "number"), found, ids=[f"{b}-{i}" for b, i in found])


def case(number):
    """A configuration, and ids (B, T): of every second model with padding, in its first row on the left."""
    rng = np.random.default_rng([20190214, number])
    n_heads, vocab = int(rng.integers(1, 6)), int(rng.integers(12, 60))
    d_model = n_heads * int(rng.integers(2, 9))
    config = GPTConfig(
        vocab,
        d_model,
        n_layers=int(rng.integers(1, 4)),
        n_heads=n_heads,
        d_ff=[4 * d_model, int(rng.integers(5, 50))][number % 2],
        max_len=int(rng.integers(9, 30)),
        activation=ACTIVATIONS[(number + 2) % len(ACTIVATIONS)],
        norm_eps=[1e-5, 1e-3][number % 2],
        dropout=0.1 * (number % 3),
        embedding_dropout=0.1 * (number % 4),
        attention_dropout=0.1 * (number % 5),
        pad_id=[None, int(rng.integers(0, 5))][number % 2],
        end_id=[None, 5, 6][number % 3],
    )
    ids = rng.integers(6, vocab, size=(int(rng.integers(2, 5)), int(rng.integers(4, 10))))
    if config.pad_id is not None:
        ids[0, :2] = config.pad_id
        ids[1, 2:] = config.pad_id
    return config, ids


def their_model(config, seed):
    """A random model of `transformers`, with weights large enough to matter everywhere."""
    torch.manual_seed(seed)
    settings = config.to_hugging_face() | {"attn_implementation": "eager"}
    model = transformers.GPT2LMHeadModel(transformers.AutoConfig.for_model(**settings)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
    return model


def compare(backend, ours, theirs, ids):
    """Logits, states and weights of the real tokens; theirs are told the positions that their `generate` takes."""
    theirs = theirs.double() if backend is NUMPY else theirs.float()
    real = np.ones(ids.shape, bool) if ours.config.pad_id is None else ids != ours.config.pad_id
    mask = torch.from_numpy(real * 1)
    given = {"attention_mask": mask, "position_ids": (mask.cumsum(1) - 1).clamp(min=0)}
    with torch.no_grad():
        expected = theirs(torch.from_numpy(ids), **given, output_hidden_states=True, output_attentions=True)
    output = backend.call(ours, ids, return_layers=True)
    tolerance = {"rtol": 1e-9, "atol": 1e-9} if backend is NUMPY else {"rtol": 1e-5, "atol": 1e-5}
    assert_allclose(output.logits[real], expected.logits.numpy()[real], **tolerance)
    assert len(output.hidden) == ours.config.n_layers + 1  # the last of theirs is normalised
    for result, reference in zip(output.hidden[:-1], expected.hidden_states[:-1], strict=True):
        assert_allclose(result[real], reference.numpy()[real], **tolerance)
    for result, reference in zip(output.weights, expected.attentions, strict=True):
        assert_allclose(result.swapaxes(1, 2)[real], reference.numpy().swapaxes(1, 2)[real], **tolerance)


def test_equal_and_opened_both_ways(library, number, tmp_path):
    config, ids = case(number)
    theirs = their_model(config, number)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = library.lib.GPT.from_pretrained(tmp_path / "theirs")
    assert ours.config == config
    compare(library, ours, theirs, ids)
    ours.save_pretrained(tmp_path / "ours")
    opened, report = transformers.GPT2LMHeadModel.from_pretrained(
        tmp_path / "ours", attn_implementation="eager", output_loading_info=True
    )
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
    compare(library, ours, opened.eval(), ids)
    states = [load_file(tmp_path / side / "model.safetensors") for side in ("ours", "theirs")]
    assert states[0].keys() == states[1].keys()
    for key in states[0]:
        assert_allclose(states[0][key], states[1][key], rtol=1e-6, err_msg=key)


def test_greedy_search_says_what_theirs_says():
    """Of prompts that are padded on the left, with a cache on both sides."""
    config, _ = case(1)
    theirs = their_model(config, 0)
    ours = TORCH.lib.GPT(config).eval()
    weights = {name: value.numpy() for name, value in theirs.state_dict().items()}
    TORCH.lib.set_state(ours, ours.family.names.ours(weights))
    prompts = np.array([[config.pad_id, config.pad_id, 7, 8], [9, 6, 8, 7]])
    given = {"attention_mask": torch.from_numpy((prompts != config.pad_id) * 1), "pad_token_id": config.pad_id}
    expected = theirs.generate(torch.from_numpy(prompts), **given, do_sample=False, max_new_tokens=5, eos_token_id=None)
    found = greedy(ours.next_logits(2), prompts, None, 5)
    np.testing.assert_array_equal(found, expected[:, 4:].numpy())
    assert len(np.unique(found)) > 2


@pytest.mark.parametrize("kind", ["old", "GPT2Model", "GPT2ForSequenceClassification", "GPT2DoubleHeadsModel"])
def test_other_files_of_a_gpt2_open_too(kind, tmp_path):
    """Those of before there was a prefix, with the causal mask and the tied table; of other classes."""
    config, ids = case(0)
    whole = their_model(config, 3)
    if kind == "old":
        whole.save_pretrained(tmp_path)
        state = load_file(tmp_path / "model.safetensors")
        state = {name.removeprefix("transformer."): value for name, value in state.items()}
        state |= {"h.0.attn.bias": np.ones((1, 1, 9, 9), np.float32), "lm_head.weight": state["wte.weight"]}
        state |= {"h.0.attn.masked_bias": np.full(1, -1e4, np.float32)}
        save_file(state, tmp_path / "model.safetensors")
    else:
        other = getattr(transformers, kind)(whole.config)
        getattr(other, "transformer", other).load_state_dict(whole.transformer.state_dict())
        other.save_pretrained(tmp_path)
    compare(TORCH, TORCH.lib.GPT.from_pretrained(tmp_path), whole, ids)


def test_an_output_matrix_of_its_own_is_refused(tmp_path):
    config, _ = case(0)
    their_model(config, 0).save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    save_file(state | {"lm_head.weight": state["transformer.wte.weight"] + 1}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="the output matrix is not the token table"):
        NUMPY.lib.GPT.from_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="missing: position.weight"):
        save_file({"transformer.wte.weight": state["transformer.wte.weight"]}, tmp_path / "model.safetensors")
        NUMPY.lib.GPT.from_pretrained(tmp_path)


def test_defaults_of_an_absent_key_are_those_of_transformers():
    theirs = transformers.GPT2Config().to_dict()
    assert GPTConfig.from_hugging_face({"model_type": "gpt2"}) == GPTConfig.from_hugging_face(theirs)
    for number in range(6):
        config = case(number)[0]
        again = transformers.GPT2Config(**config.to_hugging_face()).to_dict()
        assert GPTConfig.from_hugging_face(again) == config
