"""A GPT trained by the loop on the next token: the same in both frameworks, and what it learns."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.batches.texts import Batch
from course_lib.models.gpt import GPTConfig
from tests.support import states, tasks
from tests.support.backends import TENSORFLOW, TORCH

CONFIG = GPTConfig(12, 12, n_layers=1, n_heads=3, d_ff=20, max_len=11, dropout=0.0, attention_dropout=0.0,
                   embedding_dropout=0.0, pad_id=1)  # fmt: skip
BOTH = {"torch": TORCH, "tensorflow": TENSORFLOW}


def batches(epoch):
    """Texts that count up by 1 or by 2, every second one padded on the left, the others on the right."""
    rng = np.random.default_rng([5, epoch])
    found = []
    for _ in range(5):
        ids = 2 + (rng.integers(10, size=(8, 1)) + rng.integers(1, 3, size=(8, 1)) * np.arange(10)) % 10
        for i, row in enumerate(ids):
            n = rng.integers(0, 5)
            row[slice(0, n) if i % 2 else slice(10 - n, 10)] = 1
        found.append(Batch(ids, np.arange(8)))
    return found


def trained(library, steps, config=CONFIG, **settings):
    model = BOTH[library].make("GPT", config, state=states.random_state(states.gpt(config), seed=2))
    loop, objectives = tasks.module(library, "loop"), tasks.module(library, "objectives")
    history = loop.train(
        model, batches, objectives.next_token(), rate=1e-2, steps=steps, progress=False, **settings
    )
    return history, BOTH[library].lib.get_state(model), model


def test_fifty_steps_agree_between_the_frameworks():
    runs = [trained(library, 50) for library in BOTH]
    losses = [history.loss for history, _, _ in runs]
    assert len(losses[0]) == 50
    assert_allclose(losses[0], losses[1], rtol=0, atol=1e-3)
    assert losses[0][-1] < 0.5 * losses[0][0]
    before = states.random_state(states.gpt(CONFIG), seed=2)
    for name, value in runs[0][1].items():
        if not name.endswith("k_proj.bias"):  # it adds the same to all scores of a query, so its gradient is noise
            assert_allclose(runs[1][1][name], value, rtol=0, atol=1e-3, err_msg=name)
            assert abs(before[name] - value).max() > 1e-2, name


@pytest.mark.parametrize("library", BOTH)
def test_what_is_wrong_with_a_batch_is_said_before_the_training(library):
    with pytest.raises(ValueError, match="over the maximum of 6"):
        trained(library, 1, replace(CONFIG, max_len=6))
    with pytest.raises(ValueError, match="must lie in 0 ... 8"):
        trained(library, 1, replace(CONFIG, vocab_size=9))


@pytest.mark.parametrize("library", BOTH)
def test_a_gpt_translates_nothing(library):
    model = BOTH[library].make("GPT", CONFIG)
    pairs = lambda epoch: [(batches(0)[0].ids, batches(0)[0].ids)]  # noqa: E731
    objective = tasks.module(library, "objectives").translation()
    with pytest.raises(TypeError, match="a GPT does not read source and target.* a GPT learns `next_token`"):
        tasks.module(library, "loop").train(model, pairs, objective, rate=1e-2, steps=1, progress=False)
