"""Checkpoints that are opened with other sizes: more tokens keep the known ones, and nothing else is taken."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.errors import CheckpointError
from course_lib.models.albert import AlbertConfig
from course_lib.models.bert import BertConfig
from tests.support import states

CONFIG = BertConfig(11, 6, 2, 3, 10, 7)
IDS = np.array([[2, 5, 10, 7]])


def test_known_tokens_keep_their_vectors(backend, tmp_path):
    model = backend.make("BertForMaskedLM", CONFIG)
    state = {name: states.random_state({name: value.shape}, seed=2)[name]
             for name, value in backend.lib.get_state(model).items()}  # fmt: skip
    backend.lib.set_state(model, state)
    larger = type(model).from_pretrained(model.save_pretrained(tmp_path), vocab_size=13)
    assert larger.config == dataclasses.replace(CONFIG, vocab_size=13)
    found = backend.lib.get_state(larger)
    for name, value in state.items():
        assert_allclose(found[name][: len(value)], value, rtol=1e-6, err_msg=name)
    for name in ("bert.embeddings.token.weight", "head.bias"):
        assert len(found[name]) == 13
    new = found["bert.embeddings.token.weight"][11:]
    assert new.std() > 0 and abs(new).max() < 0.1, "as fresh ones are"
    assert_array_equal(found["head.bias"][11:], 0.0)
    logits = backend.call(larger, IDS).logits
    assert_allclose(logits[..., :11], backend.call(model, IDS).logits, **backend.tolerance)


def test_small_embeddings_grow_too(backend, tmp_path):
    model = backend.make("AlbertModel", AlbertConfig(11, 6, 2, 3, 10, 7, d_embedding=4))
    larger = type(model).from_pretrained(model.save_pretrained(tmp_path), vocab_size=12)
    assert_allclose(backend.call(larger, IDS)[0], backend.call(model, IDS)[0], **backend.tolerance)


def test_other_sizes_are_refused_by_what_to_do(backend, tmp_path):
    model = backend.make("BertModel", CONFIG)
    model.save_pretrained(tmp_path)
    for changes, found in [({"n_layers": 1}, "n_layers=2"), ({"vocab_size": 9}, "vocab_size=11"),
                           ({"d_model": 12, "d_ff": 8, "vocab_size": 20}, "d_model=6, d_ff=10")]:  # fmt: skip
        message = f"the checkpoint has {found}, and only a larger vocab_size keeps its weights: build a model of other"
        with pytest.raises(CheckpointError, match=message):
            type(model).from_pretrained(tmp_path, **changes)
