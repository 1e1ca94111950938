"""What must hold of a Whisper: what enters its stacks, causality, gradients, decoding, dropout, fresh weights."""

import copy
import functools
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import erf

from course_lib.decoding.search import beam_search, greedy, sample
from course_lib.errors import UnsupportedConfigError
from course_lib.models.bert import BertConfig
from course_lib.models.whisper import WhisperConfig
from tests.support import states
from tests.support.backends import NUMPY, TENSORFLOW, TORCH

# heads and widths of encoder and decoder differ; an odd number of frames, so that the last position sees an end
CONFIG = WhisperConfig(
    13, 5, 12, 1, 2, 3, 2, 10, 14, max_source_len=6, max_len=8, pad_id=4, start_id=2, end_id=1, activation="relu"
)
FEATURES = np.random.default_rng(0).normal(size=(2, 5, 9))
TARGET = np.array([[2, 8, 3, 9, 6, 7, 7], [2, 5, 7, 9, 8, 12, 3]])


@functools.cache
def build(backend, attention="attention", **changes):
    """One model for all tests that ask for the same: TensorFlow traces each model's steps anew."""
    config = replace(CONFIG, **changes)
    state = states.random_state(states.whisper(config), scale=0.5)
    return backend.make("Whisper", config, attention=backend.function(attention), state=state)


def read(step, ids, first=1):
    """The logits after each token from number `first` on, (N, t, V)."""
    return np.stack([step(ids[:, :t]) for t in range(first, ids.shape[1] + 1)], axis=1)


def close(backend):
    """As of any model; weights of half a unit make logits of ten."""
    return {name: 10 * value for name, value in backend.tolerance.items()}


def gelu(x):
    return x * (1 + erf(x / np.sqrt(2))) / 2


def convolved(x, weight, bias, stride):
    """As a loop says it: x (F, d_in) with a frame of zeros at both ends."""
    padded = np.concatenate([np.zeros_like(x[:1]), x, np.zeros_like(x[:1])])
    return np.array([np.einsum("kc,ock->o", padded[f : f + 3], weight) + bias for f in range(0, len(x), stride)])


@pytest.mark.parametrize("n", [1, 2, 8, 9])
def test_what_the_encoder_reads(backend, n):
    """Two convolutions with the GELU, whatever feed-forward has, then the sinusoids of each place."""
    state = NUMPY.lib.get_state(build(NUMPY))
    found = backend.call(build(backend), FEATURES[..., :n], TARGET, return_layers=True).encoder_hidden[0]
    assert found.shape == (2, (n + 1) // 2, 12)
    for row, sound in zip(found, FEATURES[..., :n], strict=True):
        x = gelu(convolved(sound.T, state["conv1.weight"], state["conv1.bias"], 1))
        x = gelu(convolved(x, state["conv2.weight"], state["conv2.bias"], 2))
        angles = np.arange(len(x))[:, None] * 10000.0 ** (-np.arange(6) / 5)
        assert_allclose(row, x + np.concatenate([np.sin(angles), np.cos(angles)], axis=1), **close(backend))


def test_what_the_decoder_reads_and_says(backend):
    """Tokens and learned positions; the logits are products with the tokens' vectors."""
    state, model = NUMPY.lib.get_state(build(NUMPY)), build(backend)
    output = backend.call(model, FEATURES, TARGET, return_layers=True)
    expected = state["token.weight"][TARGET] + state["position.weight"][:7]
    assert_allclose(output.decoder_hidden[0], expected, **close(backend))
    hidden = output.decoder_hidden[-1]
    hidden = (hidden - hidden.mean(-1, keepdims=True)) / np.sqrt(hidden.var(-1, keepdims=True) + 1e-5)
    hidden = hidden * state["decoder.norm.weight"] + state["decoder.norm.bias"]
    assert_allclose(output.logits, hidden @ state["token.weight"].T, rtol=1e-4, atol=1e-4)


def test_the_future_changes_nothing_before_it(backend):
    model = build(backend)
    before = backend.call(model, FEATURES, TARGET).logits
    for t in range(1, 7):
        changed = TARGET.copy()
        changed[:, t:] = (changed[:, t:] + 5) % 13
        after = backend.call(model, FEATURES, changed).logits
        assert_allclose(after[:, :t], before[:, :t], **close(backend))
        assert np.abs(after[:, t] - before[:, t]).max() > 1e-2


def test_the_end_of_a_sound_is_seen_from_the_first_token_on(backend):
    changed = FEATURES.copy()
    changed[..., -1] += 1
    before, after = (backend.call(build(backend), sound, TARGET).logits for sound in (FEATURES, changed))
    assert (np.abs(after - before).max(axis=-1) > 1e-3).all()


def test_the_fused_attention_gives_the_same(backend):
    expected = backend.call(build(backend), FEATURES, TARGET).logits
    found = backend.call(build(backend, "fused_attention"), FEATURES, TARGET)
    assert_allclose(found.logits, expected, rtol=1e-4, atol=1e-4)
    output = backend.call(build(backend, "fused_attention"), FEATURES, TARGET, return_layers=True)
    assert output.cross_weights == (None, None) and output.encoder_weights == (None,)


def test_gradients():
    """By the sound and every weight: PyTorch's against TensorFlow's, and both against central differences."""
    results = {b: b.gradients(build(b), FEATURES[..., :5], TARGET[:, :4]) for b in (TORCH, TENSORFLOW, NUMPY)}
    assert results[TORCH][1].keys() == states.whisper(CONFIG).keys()
    close = {"rtol": 1e-3, "atol": 1e-3}
    numerical = results[NUMPY][0][0]
    known = ~np.isnan(numerical)
    for found in (results[b][0][0] for b in (TORCH, TENSORFLOW)):
        assert_allclose(found[known], numerical[known], **close)
    for name, gradient in results[TORCH][1].items():
        assert_allclose(results[TENSORFLOW][1][name], gradient, **close, err_msg=name)
        numerical = results[NUMPY][1][name]
        known = ~np.isnan(numerical)
        assert known.any() and np.abs(gradient).max() > 1e-2, name
        assert_allclose(gradient[known], numerical[known], **close, err_msg=name)


def test_reading_by_steps_equals_the_whole(backend):
    model = build(backend)
    whole = backend.call(model, FEATURES, TARGET).logits
    for cached in (True, False):
        found = read(model.next_logits(backend.tensor(FEATURES), cached), TARGET)
        assert isinstance(found, np.ndarray)
        assert_allclose(found, whole, **close(backend))
    # TensorFlow traces a function of its own for a single sound, and for several tokens
    step = model.next_logits(FEATURES[1:])
    for t in (3, 4, 7):
        assert_allclose(step(TARGET[1:, :t]), whole[1:, t - 1], **close(backend))


@pytest.mark.parametrize("cached", [True, False])
def test_rows_may_be_reordered_repeated_and_left_out(backend, cached):
    model, sounds, ids = build(backend), FEATURES, TARGET[:, :2]
    step = model.next_logits(sounds, cached)
    step(ids)
    for rows, new in (([1, 0, 0], [4, 6, 7]), ([2, 0], [3, 8]), ([1, 1], [2, 7])):
        step.reorder(np.array(rows))
        sounds, ids = sounds[rows], np.concatenate([ids[rows], np.array(new)[:, None]], axis=1)
        assert_allclose(step(ids), backend.call(model, sounds, ids).logits[:, -1], **close(backend))


def test_the_searches_find_the_same_with_and_without_a_cache(backend):
    model = build(backend)
    start, seen = np.full((2, 1), CONFIG.start_id), set()
    for search in (
        lambda next_logits: greedy(next_logits, start, None, 6),
        lambda next_logits: sample(next_logits, start, 1, 6, np.random.default_rng(3), temperature=9.0, pad_id=4),
        lambda next_logits: beam_search(next_logits, start, 1, 6, 3).ids,
    ):
        found = [search(model.next_logits(FEATURES, cached)) for cached in (True, False)]
        np.testing.assert_array_equal(*found)
        seen |= set(found[0].ravel().tolist())
    assert len(seen) > 4


def test_steps_follow_an_attention_function_that_was_exchanged(backend):
    """Also after the first call, for which TensorFlow traces the model."""
    config = replace(CONFIG, n_decoder_layers=1)
    model = backend.make("Whisper", config, state=states.random_state(states.whisper(config), scale=0.5))
    before = model.next_logits(FEATURES)(TARGET[:, :3])
    for part in (
        model.encoder.layers[0].attention,
        model.decoder.layers[-1].self_attention,
        model.decoder.layers[-1].cross_attention,
    ):
        inner = part.attention

        def softer(q, k, v, mask=None, inner=inner, **options):
            return inner(q, k, v, mask, scale=3.0, **options)

        part.attention = softer
        after = backend.call(model, FEATURES, TARGET[:, :3]).logits[:, -1]
        assert np.abs(after - before).max() > 1e-3
        before = model.next_logits(FEATURES)(TARGET[:, :3])
        assert_allclose(before, after, rtol=1e-4, atol=1e-4)


def test_every_layer_is_returned_when_asked_for(backend):
    assert backend.call(build(backend), FEATURES, TARGET)[1:] == (None,) * 5
    output = backend.call(build(backend), FEATURES, TARGET, return_layers=True)
    assert output.logits.shape == (2, 7, 13)
    assert [hidden.shape for hidden in output.encoder_hidden] == [(2, 5, 12)] * 2
    assert [hidden.shape for hidden in output.decoder_hidden] == [(2, 7, 12)] * 3
    assert [weights.shape for weights in output.encoder_weights] == [(2, 3, 5, 5)]
    assert [weights.shape for weights in output.self_weights] == [(2, 2, 7, 7)] * 2
    assert [weights.shape for weights in output.cross_weights] == [(2, 2, 7, 5)] * 2
    for weights in (*output.encoder_weights, *output.self_weights, *output.cross_weights):
        assert_allclose(weights.sum(-1), 1.0, rtol=1e-5)


def test_fresh_weights(backend):
    config = WhisperConfig(70, 30, 48, 1, 1, 3, 2, 60, 60, 9, 40, pad_id=0, start_id=1, end_id=2, init_std=0.5)
    for name, value in backend.lib.get_state(backend.make("Whisper", config)).items():
        if value.ndim > 1:
            assert_allclose(value.std(), 0.5, rtol=6 / np.sqrt(2 * value.size), err_msg=name)
            assert abs(value.mean()) < 6 * 0.5 / np.sqrt(value.size), name
        else:
            assert_allclose(value, 1.0 if name.endswith("weight") else 0.0, err_msg=name)


def test_dropout_of_what_enters_the_stacks_the_attentions_and_the_sub_layers(training_backend):
    backend, attention, seen = training_backend, training_backend.function("attention"), []

    def noting(q, k, v, mask=None, dropout=0.0, **options):
        seen.append(dropout)
        return attention(q, k, v, mask, **options)

    rates = {"dropout": 0.3, "attention_dropout": 0.2, "feed_forward_dropout": 0.1}
    config = replace(CONFIG, d_model=60, n_decoder_layers=1, **rates)
    model = backend.make("Whisper", config, attention=noting)
    for stack in (model.encoder, model.decoder):
        assert (stack.config.dropout, stack.config.feed_forward_dropout) == (0.3, 0.1)
    output = backend.call(model, FEATURES, TARGET, training=True, return_layers=True)
    assert seen == [0.2] * 3
    still = backend.call(model, FEATURES, TARGET, return_layers=True)
    assert seen == [0.2] * 3 + [0.0] * 3
    for name in ("encoder_hidden", "decoder_hidden"):
        hidden, whole = (getattr(of, name)[0] for of in (output, still))
        assert_allclose((hidden == 0.0).mean(), 0.3, atol=6 * np.sqrt(0.21 / hidden.size))
        kept = hidden != 0.0
        assert_allclose(hidden[kept] * 0.7, whole[kept], rtol=1e-5, atol=1e-6)


def test_reading_by_steps_uses_no_dropout_and_leaves_the_mode_alone(training_backend):
    config = replace(CONFIG, n_decoder_layers=1, dropout=0.5, attention_dropout=0.5)
    model = training_backend.make("Whisper", config)
    if hasattr(model, "train"):
        model.train()
    first, again = (read(model.next_logits(FEATURES), TARGET[:, :2]) for _ in range(2))
    assert_allclose(first, again, rtol=1e-6)
    if hasattr(model, "train"):
        assert model.training


def test_steps_in_half_precision_in_pytorch():
    import torch

    model = build(TORCH).eval()
    expected = read(model.next_logits(FEATURES), TARGET[:, :4])
    for dtype, bound in ((torch.bfloat16, 24 * 2**-8), (torch.float16, 24 * 2**-11)):
        half = copy.deepcopy(model).to(dtype)
        with torch.autocast("cpu", dtype=dtype):
            under_autocast = read(model.next_logits(FEATURES), TARGET[:, :4])
        for found in (read(half.next_logits(FEATURES), TARGET[:, :4]), under_autocast):
            assert found.dtype == np.float32 and np.isfinite(found).all()
            assert np.abs(found - expected).max() / np.abs(expected).max() < bound


def test_steps_in_half_precision_in_tensorflow():
    model = build(TENSORFLOW)
    half = TENSORFLOW.lib.Whisper(CONFIG, dtype="mixed_bfloat16")
    TENSORFLOW.lib.set_state(half, TENSORFLOW.lib.get_state(model))
    expected, found = (read(of.next_logits(FEATURES), TARGET[:, :3]) for of in (model, half))
    assert found.dtype == np.float32
    assert 0 < np.abs(found - expected).max() / np.abs(expected).max() < 40 * 2.0**-8


def test_a_folder_opens_as_it_was_saved_and_with_more_tokens(backend, tmp_path):
    model = build(backend)
    opened = type(model).from_pretrained(model.save_pretrained(tmp_path), attention=backend.function("fused_attention"))
    assert opened.config == CONFIG
    expected = backend.call(model, FEATURES, TARGET).logits
    assert_allclose(backend.call(opened, FEATURES, TARGET).logits, expected, rtol=1e-4, atol=1e-4)
    assert backend.call(opened, FEATURES, TARGET, return_layers=True).cross_weights == (None, None)
    larger = type(model).from_pretrained(tmp_path, vocab_size=15, pad_id=14, dropout=0.3)
    assert larger.config == replace(CONFIG, vocab_size=15, pad_id=14, dropout=0.3)
    assert_allclose(backend.call(larger, FEATURES, TARGET).logits[..., :13], expected, **close(backend))


BAD = {
    "bands": (FEATURES.swapaxes(1, 2), ValueError, r"features must have shape \(B, 5, F\), got \(2, 9, 5\); frames st"),
    "one": (FEATURES[0], ValueError, r"must have shape \(B, 5, F\), got \(5, 9\); one sound becomes a batch by \[None"),
    "none": (FEATURES[..., :0], ValueError, "features must have 1 to 12 frames"),
    "long": (np.tile(FEATURES, 2)[..., :13], ValueError, "to 12 frames, two for each of max_source_len=6 .*got 13"),
    "bytes": (FEATURES.astype(np.int64), TypeError, "features must be numbers of floating point, as `log_mel` makes"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_sounds(backend, kind):
    sounds, error, message = BAD[kind]
    with pytest.raises(error, match=message):
        backend.call(build(backend), sounds, TARGET)
    with pytest.raises(error, match=message):
        build(backend).next_logits(sounds)


def test_bad_ids(backend):
    model = build(backend)
    for ids, error, message in [
        (TARGET + 5, ValueError, "must lie in 0 ... 12"),
        (TARGET.astype(float), TypeError, "must be integers"),
        (TARGET[0], ValueError, r"must have shape \(B, T\)"),
    ]:
        with pytest.raises(error, match=f"target_ids {message}"):
            backend.call(model, FEATURES, ids)
    with pytest.raises(ValueError, match="there must be one target for each source"):
        backend.call(model, FEATURES, TARGET[:1])
    with pytest.raises(ValueError, match="a sequence of 9 tokens is over the maximum of 8"):
        backend.call(model, FEATURES, np.tile(TARGET, 2)[:, :9])
    for cached in (True, False):
        with pytest.raises(ValueError, match="ids must lie in 0 ... 12"):
            model.next_logits(FEATURES, cached)(TARGET + 5)
        step = model.next_logits(FEATURES, cached)
        step(np.tile(TARGET, 2)[:, :8])
        with pytest.raises(ValueError, match="a sequence of 9 tokens is over the maximum of 8"):
            step(np.tile(TARGET, 2)[:, :9])


def test_another_models_configuration_or_folder(backend, tmp_path):
    config = BertConfig(11, 12, 1, 3, 10, 8)
    with pytest.raises(TypeError, match="a Whisper is built of a WhisperConfig, got BertConfig"):
        backend.make("Whisper", config)
    backend.make("BertModel", config).save_pretrained(tmp_path / "bert")
    with pytest.raises(UnsupportedConfigError, match="holds no Whisper: .*; BertModel and the other classes of that"):
        backend.lib.Whisper.from_pretrained(tmp_path / "bert")


def test_steps_of_tensorflow_are_traced_once_for_all_sounds_and_lengths():
    model = build(TENSORFLOW)
    functions = model._compiled()
    for sounds in (FEATURES, FEATURES[..., :4]):
        read(model.next_logits(sounds), TARGET[:, :3])
    assert model._compiled() is functions


@pytest.mark.parametrize("cached", [True, False])
def test_a_cache_reads_one_token_at_a_time(backend, cached, monkeypatch):
    """And without one, all tokens are read again at every step."""
    model = build(backend)
    step, read_tokens, reads = model.next_logits(FEATURES, cached), model.step, []

    def noting(self, ids, state):
        reads.append(ids.shape[1])
        return read_tokens(ids, state)

    monkeypatch.setattr(type(model), "step", noting)
    for t in (1, 2, 3):
        step(TARGET[:, :t])
    assert reads == ([1, 1, 1] if cached else [1, 2, 3])


def test_a_saved_model_serves_sounds_of_any_length(tmp_path):
    import tensorflow as tf

    model = build(TENSORFLOW, n_decoder_layers=1)
    tf.saved_model.save(model, str(tmp_path))
    served = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    for n in (9, 4):
        inputs = {"features": TENSORFLOW.tensor(FEATURES[..., :n]), "target_ids": tf.constant(TARGET[:, :n])}
        (logits,) = served(**inputs).values()
        assert_allclose(logits, model(**inputs).logits, rtol=1e-4, atol=1e-4)


def test_what_is_read_again_and_again_lies_as_it_is_read():
    """In PyTorch: the sound that the encoder's layers read, and of the memory what each new token does."""
    model = build(TORCH)
    sound = model.embed_source(TORCH.tensor(FEATURES).to(model.conv1.weight))
    caches = model.start(model.encode(FEATURES)).caches
    assert sound.is_contiguous()
    assert all(x.is_contiguous() for cache in caches for x in (cache.memory_keys, cache.memory_values))
