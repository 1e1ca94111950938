"""BERT against the loop specification: embeddings, model, masked language model, classifier."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.models.bert import BertConfig
from tests.support import specification, states

CONFIG = BertConfig(
    vocab_size=13, d_model=6, n_layers=2, n_heads=3, d_ff=10, max_len=7, n_segments=3, n_classes=4, dropout=0.5
)
IDS = np.array([[2, 5, 12, 1, 7], [9, 4, 4, 0, 0]])
SEGMENTS = np.array([[0, 0, 1, 1, 2], [1, 1, 0, 0, 0]])
MASK = (IDS != 0)[:, None, None, :]
SIZES = (CONFIG.n_layers, CONFIG.n_heads)

ARCHITECTURES = {name: shapes(CONFIG) for name, shapes in states.BERTS.items()}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_names_and_shapes_of_the_weights(backend, name):
    state = backend.lib.get_state(backend.make(name, CONFIG))
    assert {key: value.shape for key, value in state.items()} == ARCHITECTURES[name]


@pytest.mark.parametrize("segments", [None, SEGMENTS], ids=["no segments", "segments"])
@pytest.mark.parametrize("mask", [None, MASK], ids=["no mask", "padding"])
def test_bert_model(backend, mask, segments):
    state = states.random_state(ARCHITECTURES["BertModel"])
    model = backend.make("BertModel", CONFIG, state=state)
    output = backend.call(model, IDS, mask=mask, segments=segments, return_layers=True)
    last, pooled, hidden, tables = specification.bert(state, "", IDS, mask, segments, *SIZES)
    assert_allclose(output.last_hidden, last, **backend.tolerance)
    assert_allclose(output.pooled, pooled, **backend.tolerance)
    for result, expected in zip(output.hidden, hidden, strict=True):
        assert_allclose(result, expected, **backend.tolerance)
    for result, expected in zip(output.weights, tables, strict=True):
        assert_allclose(result, expected, **backend.tolerance)


def test_embeddings(backend):
    state = states.random_state(ARCHITECTURES["BertModel"])
    model = backend.make("BertModel", CONFIG, state=state)
    _, _, hidden, _ = specification.bert(state, "", IDS, None, SEGMENTS, *SIZES)
    assert_allclose(backend.call(model.embeddings, IDS, segments=SEGMENTS), hidden[0], **backend.tolerance)


def test_bert_without_a_pooler(backend):
    state = states.random_state(states.bert(CONFIG, pooler=False))
    model = backend.make("BertModel", CONFIG, pooler=False, state=state)
    output = backend.call(model, IDS, mask=MASK)
    assert output.pooled is None and output.hidden is None and output.weights is None
    assert_allclose(output.last_hidden, specification.bert(state, "", IDS, MASK, None, *SIZES)[0], **backend.tolerance)


def test_masked_lm(backend):
    state = states.random_state(ARCHITECTURES["BertForMaskedLM"])
    model = backend.make("BertForMaskedLM", CONFIG, state=state)
    logits = backend.call(model, IDS, mask=MASK, segments=SEGMENTS).logits
    assert_allclose(logits, specification.masked_lm(state, IDS, MASK, SEGMENTS, *SIZES), **backend.tolerance)


def test_classifier(backend):
    state = states.random_state(ARCHITECTURES["BertForSequenceClassification"])
    model = backend.make("BertForSequenceClassification", CONFIG, state=state)
    logits = backend.call(model, IDS, mask=MASK, segments=SEGMENTS).logits
    assert_allclose(logits, specification.classifier(state, IDS, MASK, SEGMENTS, *SIZES), **backend.tolerance)


@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if name != "BertModel"])
def test_heads_return_the_layers_when_asked(backend, name):
    state = states.random_state(ARCHITECTURES[name])
    model = backend.make(name, CONFIG, state=state)
    output = backend.call(model, IDS, mask=MASK, return_layers=True)
    _, _, hidden, tables = specification.bert(state, "bert.", IDS, MASK, None, *SIZES)
    assert_allclose(output.hidden[-1], hidden[-1], **backend.tolerance)
    assert_allclose(output.weights[0], tables[0], **backend.tolerance)
    assert len(output.hidden) == 3 and len(output.weights) == 2


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_fused_attention_changes_no_output(backend, name):
    state = states.random_state(ARCHITECTURES[name])
    plain = backend.make(name, CONFIG, state=state)
    fused = backend.make(name, CONFIG, attention=backend.function("fused_attention"), state=state)
    expected = backend.call(plain, IDS, mask=MASK)[0]
    assert_allclose(backend.call(fused, IDS, mask=MASK)[0], expected, **backend.tolerance)


def test_relu_from_the_config(backend):
    config = BertConfig(vocab_size=13, d_model=6, n_layers=1, n_heads=2, d_ff=10, max_len=7, activation="relu")
    state = states.random_state(states.masked_lm(config))
    model = backend.make("BertForMaskedLM", config, state=state)
    expected = specification.masked_lm(state, IDS, MASK, None, 1, 2, activation="relu")
    assert_allclose(backend.call(model, IDS, mask=MASK).logits, expected, **backend.tolerance)


def test_norm_eps_reaches_embeddings_layers_and_head(backend):
    """One normalisation at a time is fed numbers so small that its epsilon decides."""
    eps = 1e-4
    config = BertConfig(vocab_size=13, d_model=6, n_layers=1, n_heads=3, d_ff=10, max_len=7, norm_eps=eps)
    state = states.random_state(states.masked_lm(config))
    small = {
        "embeddings": [f"bert.embeddings.{table}.weight" for table in ("token", "segment", "position")],
        "head": ["head.transform.weight", "head.transform.bias"],
    }
    for names in small.values():
        changed = state | {name: 1e-2 * state[name] for name in names}
        model = backend.make("BertForMaskedLM", config, state=changed)
        expected = specification.masked_lm(changed, IDS, MASK, None, 1, 3, eps=eps)
        assert_allclose(backend.call(model, IDS, mask=MASK).logits, expected, rtol=1e-4, atol=2e-5)
        other = specification.masked_lm(changed, IDS, MASK, None, 1, 3, eps=1e-12)
        assert np.abs(other - expected).max() > 1e-3  # the epsilon does decide here


def test_fresh_weights_are_berts(backend):
    """Normal with init_std, biases zero, gains one (the released BERT, and the same in every framework)."""
    config = BertConfig(
        vocab_size=200, d_model=48, n_layers=1, n_heads=2, d_ff=96, max_len=64, n_segments=40, init_std=0.02
    )
    for name in ARCHITECTURES:
        for key, value in backend.lib.get_state(backend.make(name, config)).items():
            if key.endswith("bias"):
                assert_allclose(value, 0.0, atol=1e-12, err_msg=key)
            elif "norm" in key:
                assert_allclose(value, 1.0, rtol=1e-6, err_msg=key)
            else:
                band = 6 * 0.02 / np.sqrt(2 * value.size)  # six standard errors of a standard deviation
                assert abs(value.std() - 0.02) < band, f"{name} {key} starts with std {value.std():.3f}"
