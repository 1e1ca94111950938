"""A T5 trained by the loop to fill in spans: the same in both frameworks, and what it learns."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.batches.corrupted import CorruptedBatches, SpanCorruption
from course_lib.models.t5 import T5Config
from tests.support import states, tasks
from tests.support.backends import TENSORFLOW, TORCH

# 2 ... 11 are the tokens of a text, 12 ... 15 sentinels
CONFIG = T5Config(16, 12, 1, 1, 3, 5, 20, n_buckets=8, max_distance=6, dropout=0.0, activation="gelu_new", gated=True,
                  tie_output=False)  # fmt: skip
CORRUPTION = SpanCorruption(16, 4, density=0.3, mean_span=2.0, rolled=True)
BOTH = {"torch": TORCH, "tensorflow": TENSORFLOW}


@functools.cache
def batches(seed=0):
    """Texts that count up by 1 or by 2, padded to one shape, which XLA compiles once."""
    rng = np.random.default_rng(7)
    starts, by = rng.integers(10, size=(40, 1)), rng.integers(1, 3, size=(40, 1))
    ids = 2 + (starts + by * np.arange(12)) % 10
    texts = [row[: rng.integers(8, 13)] for row in ids]
    return CorruptedBatches(texts, CORRUPTION, batch_size=8, seed=seed, multiple=16)


def trained(library, steps, config=CONFIG, given=None, **settings):
    model = BOTH[library].make("T5", config, state=states.random_state(states.t5(config), seed=2, scale=0.3))
    loop, objectives = tasks.module(library, "loop"), tasks.module(library, "objectives")
    given = batches().epoch if given is None else given
    objective = objectives.translation(smoothing=0.0)
    history = loop.train(model, given, objective, rate=3e-3, steps=steps, progress=False, **settings)
    return history, BOTH[library].lib.get_state(model), model


def test_fifty_steps_agree_between_the_frameworks():
    """At a rate of 1e-2, PyTorch's own float32 and float64 are 0.03 apart after as many."""
    runs = [trained(library, 50) for library in BOTH]
    losses = [history.loss for history, _, _ in runs]
    assert len(losses[0]) == 50
    assert_allclose(losses[0], losses[1], rtol=0, atol=1e-3)
    assert losses[0][-5:].mean() < 0.7 * losses[0][0]
    before = states.random_state(states.t5(CONFIG), seed=2, scale=0.3)
    for name, value in runs[0][1].items():
        assert_allclose(runs[1][1][name], value, rtol=0, atol=1e-3, err_msg=name)
        assert abs(before[name] - value).max() > 1e-2, name


@pytest.mark.parametrize("library", BOTH)
def test_what_is_wrong_with_a_batch_is_said_before_the_training(library):
    with pytest.raises(ValueError, match=r"the source of batch 0 of validation must lie in 0 ... 14"):
        trained(library, 1, replace(CONFIG, vocab_size=15), validation=batches(None))
    with pytest.raises(ValueError, match=r"the target of batch 0 of validation must lie in 0 ... 14"):
        held_out = [(np.full((2, 4), 3), np.full((2, 4), 15))]
        trained(library, 1, replace(CONFIG, vocab_size=15), validation=held_out)
    with pytest.raises(ValueError, match="the batches are padded with 0, but the model takes 5 for padding"):
        trained(library, 1, replace(CONFIG, pad_id=5), validation=batches(None))
