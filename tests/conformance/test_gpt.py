"""What must hold of a GPT: causality, padding, order, gradients, decoding by steps, dropout, fresh weights, errors."""

import copy
import functools
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.errors import UnsupportedConfigError
from course_lib.models.bert import BertConfig
from course_lib.models.gpt import GPTConfig
from tests.support import states
from tests.support.backends import NUMPY, TENSORFLOW, TORCH

CONFIG = GPTConfig(11, 12, n_layers=1, n_heads=3, d_ff=10, max_len=8, dropout=0.0, attention_dropout=0.0,
                   embedding_dropout=0.0)  # fmt: skip
PADDED = replace(CONFIG, pad_id=4, n_layers=2)  # two layers: what a step does to the next one
IDS = np.array([[1, 8, 3, 2, 6, 7, 7], [1, 5, 7, 9, 8, 2, 3]])
LEFT, RIGHT = np.array([[4, 4, 1, 8, 3], [2, 9, 7, 10, 6]]), np.array([[1, 8, 3, 4, 4], [2, 9, 7, 10, 6]])
KINDS = {"unpadded": (CONFIG, "attention"), "padded": (PADDED, "fused_attention")}  # each value once
EACH = pytest.mark.parametrize("kind", KINDS)


@functools.cache
def build(backend, kind="unpadded"):
    """One model for all tests that ask for the same: TensorFlow traces each model's steps anew."""
    config, attention = KINDS[kind]
    state = states.random_state(states.gpt(config))
    return backend.make("GPT", config, attention=backend.function(attention), state=state)


def read(step, ids, first=1):
    """The logits after each token from number `first` on, (N, t, V)."""
    return np.stack([step(ids[:, :t]) for t in range(first, ids.shape[1] + 1)], axis=1)


@EACH
def test_the_future_changes_nothing_before_it(backend, kind):
    model = build(backend, kind)
    before = backend.call(model, IDS).logits
    for t in range(1, 7):
        changed = IDS.copy()
        changed[:, t:] = (changed[:, t:] + 5) % 11
        after = backend.call(model, changed).logits
        assert_allclose(after[:, :t], before[:, :t], **backend.tolerance)
        assert np.abs(after[:, t] - before[:, t]).max() > 1e-2


@pytest.mark.parametrize("ids", [LEFT, RIGHT], ids=["left", "right"])
def test_a_padded_batch_equals_its_texts_one_by_one(backend, ids):
    model = build(backend, "padded")
    together = backend.call(model, ids).logits
    for row, found in zip(ids, together, strict=True):
        real = row != 4
        assert_allclose(found[real], backend.call(model, row[None, real]).logits[0], **backend.tolerance)


def test_without_a_padding_id_every_token_is_real(backend):
    """Also the one that is padding elsewhere."""
    state = states.random_state(states.gpt(CONFIG))
    models = (backend.make("GPT", replace(CONFIG, pad_id=pad_id), state=state) for pad_id in (4, None))
    hidden, seen = (backend.call(model, RIGHT[:1]).logits for model in models)
    assert_allclose(seen[:, :3], hidden[:, :3], **backend.tolerance)
    assert np.abs(seen[:, 4] - hidden[:, 4]).max() > 1e-3


def test_order_matters(backend):
    model = build(backend)
    before, after = (backend.call(model, IDS[:, order]).logits[:, -1] for order in ([0, 1, 2, 3], [1, 0, 2, 3]))
    assert np.abs(after - before).max() > 1e-2


@EACH
def test_gradients(kind):
    """By every weight: PyTorch's against TensorFlow's, and both against central differences of the reference."""
    results = {b: b.gradients(build(b, kind), RIGHT)[1] for b in (TORCH, TENSORFLOW, NUMPY)}
    assert results[TORCH].keys() == states.gpt(KINDS[kind][0]).keys()
    for name, gradient in results[TORCH].items():
        assert_allclose(results[TENSORFLOW][name], gradient, rtol=1e-4, atol=5e-5, err_msg=name)
        numerical = results[NUMPY][name]
        known = ~np.isnan(numerical)
        assert known.any()
        assert_allclose(gradient[known], numerical[known], rtol=1e-4, atol=5e-5, err_msg=name)


@EACH
def test_reading_by_steps_equals_the_whole(backend, kind):
    model = build(backend, kind)
    whole = backend.call(model, IDS).logits
    for cached in (True, False):
        found = read(model.next_logits(2, cached), IDS)
        assert isinstance(found, np.ndarray)
        assert_allclose(found, whole, **backend.tolerance)
    assert_allclose(read(model.next_logits(), IDS[1:]), whole[1:], **backend.tolerance)


@EACH
def test_several_new_tokens_at_once(backend, kind):
    """A prompt, then more than one."""
    model = build(backend, kind)
    step, whole = model.next_logits(2), backend.call(model, IDS).logits
    for t in (3, 4, 7):
        assert_allclose(step(IDS[:, :t]), whole[:, t - 1], **backend.tolerance)


@pytest.mark.parametrize("cached", [True, False])
def test_prompts_that_are_padded_on_the_left_and_rows_that_end(backend, cached):
    """A row that is finished is filled up with padding, while the other goes on."""
    model = build(backend, "padded")
    step = model.next_logits(2, cached)
    more = np.concatenate([LEFT, [[9, 4], [5, 3]]], axis=1)
    for t in (5, 6, 7):
        assert_allclose(step(more[:, :t]), backend.call(model, more[:, :t]).logits[:, -1], **backend.tolerance)
    alone = backend.call(model, more[:1, 2:6]).logits[:, -1]
    step = model.next_logits(2, cached)
    step(more[:, :3])
    assert_allclose(step(more[:, :6])[:1], alone, **backend.tolerance)


@pytest.mark.parametrize("cached", [True, False])
@EACH
def test_rows_may_be_reordered_repeated_and_left_out(backend, kind, cached):
    model, ids = build(backend, kind), np.array([[1, 8], [1, 5]])
    step = model.next_logits(2, cached)
    step(ids)
    for rows, new in (([1, 0, 0], [4, 6, 7]), ([2, 0], [3, 8]), ([1, 1], [2, 7])):
        step.reorder(np.array(rows))
        ids = np.concatenate([ids[rows], np.array(new)[:, None]], axis=1)
        assert_allclose(step(ids), backend.call(model, ids).logits[:, -1], **backend.tolerance)
    assert_allclose(ids[0], [1, 5, 4, 8, 2])


def test_steps_follow_an_attention_function_that_was_exchanged(backend):
    """Also after the first call, for which TensorFlow traces the model."""
    model = backend.make("GPT", CONFIG, state=states.random_state(states.gpt(CONFIG)))
    before = read(model.next_logits(2), IDS[:, :3])
    model.decoder.layers[-1].self_attention.attention = functools.partial(backend.function("attention"), scale=3.0)
    after = backend.call(model, IDS[:, :3]).logits
    assert np.abs(after - before).max() > 1e-3
    assert_allclose(read(model.next_logits(2), IDS[:, :3]), after, **backend.tolerance)


def test_every_layer_is_returned_when_asked_for(backend):
    model = backend.make("GPT", replace(CONFIG, n_layers=2))
    assert backend.call(model, IDS)[1:] == (None, None)
    output = backend.call(model, IDS, return_layers=True)
    assert [hidden.shape for hidden in output.hidden] == [(2, 7, 12)] * 3
    assert [weights.shape for weights in output.weights] == [(2, 3, 7, 7)] * 2
    for weights in output.weights:
        assert_allclose(weights.sum(-1), 1.0, rtol=1e-5)
        assert not np.triu(weights, 1).any()


def test_fresh_weights(backend):
    """Normal; the matrices before a residual are narrower by the square root of the number of residuals."""
    config = GPTConfig(90, 64, n_layers=8, n_heads=4, d_ff=80, max_len=50, init_std=0.5)
    for name, value in backend.lib.get_state(backend.make("GPT", config)).items():
        if value.ndim == 2:
            std = 0.5 / 4 if name.endswith(("out_proj.weight", "linear2.weight")) else 0.5
            assert_allclose(value.std(), std, rtol=0.06, err_msg=name)
            assert abs(value.mean()) < 0.1 * std
        else:
            assert_allclose(value, 1.0 if name.endswith("weight") else 0.0, err_msg=name)


def test_dropout_of_the_embeddings_the_attentions_and_the_sub_layers(training_backend):
    backend, attention, seen = training_backend, training_backend.function("attention"), []

    def noting(q, k, v, mask=None, dropout=0.0, **options):
        seen.append(dropout)
        return attention(q, k, v, mask, **options)

    config = GPTConfig(11, 60, 1, 3, 10, 8, dropout=0.4, attention_dropout=0.2, embedding_dropout=0.3)
    model = backend.make("GPT", config, attention=noting)
    assert model.decoder.config.dropout == 0.4
    for ids, pad_id in ((IDS, None), (RIGHT, 4)):
        model = backend.make("GPT", replace(config, pad_id=pad_id), attention=noting)
        seen.clear()
        hidden = backend.call(model, ids, training=True, return_layers=True).hidden
        assert seen == [0.2]
        assert_allclose((hidden[0] == 0.0).mean(), 0.3, atol=6 * np.sqrt(0.21 / hidden[0].size))
        still = backend.call(model, ids, return_layers=True).hidden
        assert seen == [0.2, 0.0] and not (still[0] == 0.0).any()
        kept = hidden[0] != 0.0
        assert_allclose(hidden[0][kept] * 0.7, still[0][kept], rtol=1e-5, atol=1e-6)


def test_reading_by_steps_uses_no_dropout_and_leaves_the_mode_alone(training_backend):
    model = training_backend.make("GPT", replace(CONFIG, dropout=0.5, attention_dropout=0.5, embedding_dropout=0.5))
    if hasattr(model, "train"):
        model.train()
    first, again = (read(model.next_logits(2), IDS[:, :2]) for _ in range(2))
    assert_allclose(first, again, rtol=1e-6)
    if hasattr(model, "train"):
        assert model.training


def test_steps_in_half_precision_in_pytorch():
    import torch

    model = build(TORCH, "padded").eval()
    expected = read(model.next_logits(2), LEFT)
    for dtype, bound in ((torch.bfloat16, 16 * 2**-8), (torch.float16, 16 * 2**-11)):
        half = copy.deepcopy(model).to(dtype)
        with torch.autocast("cpu", dtype=dtype):
            under_autocast = read(model.next_logits(2), LEFT)
        for found in (read(half.next_logits(2), LEFT), under_autocast):
            assert found.dtype == np.float32
            assert np.abs(found - expected).max() / np.abs(expected).max() < bound


@pytest.mark.parametrize("policy, rounding", [("mixed_float16", 2.0**-11), ("mixed_bfloat16", 2.0**-8)])
def test_steps_in_half_precision_in_tensorflow(policy, rounding):
    model = build(TENSORFLOW, "padded")
    half = TENSORFLOW.lib.GPT(PADDED, dtype=policy)
    TENSORFLOW.lib.set_state(half, TENSORFLOW.lib.get_state(model))
    expected, found = (read(of.next_logits(2), LEFT[:, :3]) for of in (model, half))
    assert found.dtype == np.float32
    assert 0 < np.abs(found - expected).max() / np.abs(expected).max() < 40 * rounding


def test_a_folder_opens_as_it_was_saved_and_with_more_tokens(backend, tmp_path):
    model = build(backend, "padded")
    opened = type(model).from_pretrained(model.save_pretrained(tmp_path), attention=backend.function("fused_attention"))
    assert opened.config == PADDED
    expected = backend.call(model, LEFT).logits
    assert_allclose(backend.call(opened, LEFT).logits, expected, **backend.tolerance)
    assert backend.call(opened, LEFT, return_layers=True).weights == (None, None)
    larger = type(model).from_pretrained(tmp_path, vocab_size=13, dropout=0.3)
    assert larger.config == replace(PADDED, vocab_size=13, dropout=0.3)
    assert_allclose(backend.call(larger, LEFT).logits[..., :11], expected, **backend.tolerance)


@EACH
def test_bad_ids(backend, kind):
    model = build(backend, kind)
    for ids, error, message in [
        (IDS + 5, ValueError, "ids must lie in 0 ... 10"),
        (IDS.astype(float), TypeError, "ids must be integers"),
        (IDS[0], ValueError, r"ids must have shape \(B, T\)"),
        (np.ones((2, 9), dtype=int), ValueError, "9 tokens is over the maximum of 8"),
    ]:
        with pytest.raises(error, match=message):
            backend.call(model, ids)
    for cached in (True, False):
        step = model.next_logits(2, cached)
        step(np.ones((2, 8), dtype=int))
        with pytest.raises(ValueError, match="9 tokens is over the maximum of 8"):
            step(np.ones((2, 9), dtype=int))
        with pytest.raises(ValueError, match="ids must lie in 0 ... 10"):
            model.next_logits(2, cached)(IDS + 5)
    with pytest.raises(ValueError, match="`reorder` chooses other rows"):
        model.next_logits(3)(IDS)


def test_another_models_configuration_or_folder(backend, tmp_path):
    config = BertConfig(11, 12, 1, 3, 10, 8)
    with pytest.raises(TypeError, match="a GPT is built of a GPTConfig, got BertConfig"):
        backend.make("GPT", config)
    with pytest.raises(TypeError, match="a BERT is built of a BertConfig, got GPTConfig"):
        backend.make("BertModel", CONFIG)
    backend.make("BertModel", config).save_pretrained(tmp_path / "bert")
    with pytest.raises(UnsupportedConfigError, match="holds no GPT: .*; BertModel and the other classes of that name"):
        backend.lib.GPT.from_pretrained(tmp_path / "bert")
    build(backend).save_pretrained(tmp_path / "gpt")
    with pytest.raises(UnsupportedConfigError, match="holds no BERT: .*model_type='gpt2'"):
        backend.lib.BertModel.from_pretrained(tmp_path / "gpt")


@pytest.mark.parametrize("cached", [True, False])
def test_a_cache_reads_one_token_at_a_time(backend, cached, monkeypatch):
    """And without one, all tokens are read again at every step."""
    model = backend.make("GPT", CONFIG)
    step, read_tokens, reads = model.next_logits(2, cached), model.step, []

    def noting(self, ids, state):
        reads.append(ids.shape[1])
        return read_tokens(ids, state)

    monkeypatch.setattr(type(model), "step", noting)
    for t in (1, 2, 3):
        step(IDS[:, :t])
    assert reads == ([1, 1, 1] if cached else [1, 2, 3])
