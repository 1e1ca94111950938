"""The start of a BERT's pretraining: heads that look where they are told, and the same numbers in every framework."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.errors import UnsupportedConfigError
from course_lib.models.bert import BertConfig
from course_lib.models.bert_start import OFFSETS, TABLE_STD, bert_start
from course_lib.models.roberta import RobertaConfig
from tests.support.backends import NUMPY

CONFIG = BertConfig(60, d_model=64, n_layers=2, n_heads=4, d_ff=96, max_len=24, dropout=0.0, attention_dropout=0.0)
IDS = np.random.default_rng(0).integers(1, 60, (6, 20))


@pytest.fixture
def shares():
    share = np.random.default_rng(1).random(60)
    share[0] = 0
    return share / share.sum()


def weights(config, state, backend=NUMPY):
    """The attention weights of the first layer, (B, H, T, T)."""
    model = backend.make("BertForMaskedLM", config, state=state)
    return backend.call(model, IDS, return_layers=True).weights[0]


@pytest.mark.parametrize("pre_norm", [False, True])
@pytest.mark.parametrize("offsets", [OFFSETS, (3, -1)])
def test_each_head_of_the_first_layer_looks_at_its_distance(pre_norm, offsets):
    config = replace(CONFIG, pre_norm=pre_norm)
    found = weights(config, bert_start(config, offsets=offsets))
    middle = np.arange(4, 16)
    for head in range(config.n_heads):
        by_distance = {d: found[:, head, middle, middle + d].mean() for d in range(-4, 5)}
        if head < len(offsets):
            assert max(by_distance, key=by_distance.get) == offsets[head]
            assert by_distance[offsets[head]] > 0.4
        else:
            assert max(by_distance.values()) < 0.15
    plain = weights(config, bert_start(config, offsets=()))
    assert max(plain[:, 0, middle, middle + d].mean() for d in range(-4, 5)) < 0.15


def test_the_first_prediction_is_nearly_the_unigram_distribution(shares):
    model = NUMPY.make("BertForMaskedLM", CONFIG, state=bert_start(CONFIG, 3 * shares))
    logits = NUMPY.call(model, IDS).logits
    p = np.exp(logits - logits.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    divergence = (p[..., 1:] * np.log(p[..., 1:] / shares[1:])).sum(-1)
    assert p[..., 0].max() < 1e-8 and divergence.mean() < 0.15
    assert_allclose(bert_start(CONFIG, 3 * shares)["head.bias"][1:], np.log(shares[1:]), rtol=1e-5)


@pytest.mark.parametrize("name", ["BertForMaskedLM", "BertForPreTraining"])
@pytest.mark.parametrize("pre_norm", [False, True])
def test_a_model_of_any_framework_takes_it_and_computes_the_same(backend, name, pre_norm, shares):
    config = replace(CONFIG, pre_norm=pre_norm)
    state = bert_start(config, shares, next_sentence=name == "BertForPreTraining", seed=3)
    model, reference = (library.make(name, config, state=state) for library in (backend, NUMPY))
    for found, expected in zip(backend.call(model, IDS)[:2], NUMPY.call(reference, IDS)[:2], strict=True):
        if expected is not None:
            assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    for key, value in backend.lib.get_state(model).items():
        assert_array_equal(np.float32(value), state[key])


def test_matrices_keep_the_size_of_what_passes_through_them():
    config = BertConfig(50, d_model=128, n_layers=2, n_heads=4, d_ff=512, max_len=16)
    state = bert_start(config, next_sentence=True)
    layer = {name.removeprefix("bert.encoder.layers.1."): value for name, value in state.items()}
    for name, inputs in {"attention.q_proj": 128, "feed_forward.linear1": 128, "feed_forward.linear2": 512}.items():
        assert_allclose(layer[f"{name}.weight"].std(), inputs**-0.5, rtol=0.05)
    assert_allclose(state["head.transform.weight"].std(), 128**-0.5, rtol=0.05)
    assert not any(value.any() for name, value in state.items() if name.endswith("bias"))
    position, token = (state[f"bert.embeddings.{name}.weight"] for name in ("position", "token"))
    assert_allclose((position[:, :32] ** 2).mean(), TABLE_STD**2, rtol=1e-4)
    assert np.abs(position[:, 32:]).max() < TABLE_STD / 2 and token[:, :32].std() < TABLE_STD / 5
    assert_allclose(token[:, 32:].std(), TABLE_STD, rtol=0.05)
    assert all(value.dtype == np.float32 for value in state.values())


def test_vectors_of_counts_are_turned_and_scaled_but_keep_their_angles():
    vectors = np.random.default_rng(2).normal(size=(60, 48)) * np.linspace(1, 30, 48)
    vectors[[0, 4]] = 0
    found = bert_start(CONFIG, vectors=vectors)["bert.embeddings.token.weight"][:, 16:]
    known = [i for i in range(60) if i not in (0, 4)]

    def cosines(table):
        unit = table / np.linalg.norm(table, axis=1, keepdims=True)
        return unit @ unit.T

    assert_allclose(cosines(found[known].astype(float)), cosines(vectors[known]), atol=1e-5)
    assert_allclose(found[known].std(), TABLE_STD, rtol=1e-4)
    size = found[known].std(axis=0)
    assert size.max() < 3 * size.min()  # before, one feature had thirty times another's
    assert found[[0, 4]].any(axis=1).all() and not np.allclose(found[0], found[4])


def test_a_seed_says_all():
    one, same, other = (bert_start(CONFIG, seed=seed) for seed in (5, 5, 6))
    assert all(np.array_equal(one[name], same[name]) for name in one)
    assert not np.array_equal(one["head.transform.weight"], other["head.transform.weight"])


@pytest.mark.parametrize("options, message", [
    ({"shares": np.ones(59)}, "one number of 0 or more for each of 60 tokens"),
    ({"shares": -np.ones(60)}, "one number of 0 or more"),
    ({"shares": np.zeros(60)}, "one number of 0 or more"),
    ({"shares": np.full(60, np.nan)}, "one number of 0 or more"),
    ({"vectors": np.ones((60, 64))}, r"finite numbers \(60, 48\)"),
    ({"vectors": np.zeros((60, 48))}, "finite numbers"),
    ({"vectors": np.full((60, 48), np.inf)}, "finite numbers"),
    ({"offsets": (1, 2, 3, 4, 5)}, "5 offsets for n_heads=4"),
    ({"offsets": (0,)}, "whole numbers other than 0"),
    ({"offsets": (1.5,)}, "whole numbers other than 0"),
    ({"seed": -1}, "seed"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        bert_start(CONFIG, **options)


def test_only_a_bert_with_an_even_head_is_started():
    with pytest.raises(UnsupportedConfigError, match="not of a RobertaConfig"):
        bert_start(RobertaConfig(60, d_model=64, n_layers=2, n_heads=4, d_ff=96, max_len=24))
    odd = BertConfig(60, d_model=12, n_layers=1, n_heads=4, d_ff=8, max_len=8)
    with pytest.raises(ValueError, match="an even number of features, they have 3"):
        bert_start(odd)
    assert bert_start(odd, offsets=())
