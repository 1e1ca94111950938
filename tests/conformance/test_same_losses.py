"""The same weights and the same batches: both frameworks take the same path in every task of the course."""

import importlib

import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.support import tasks

SETTINGS = {"rate": 3e-3, "steps": 50, "max_norm": 1.0, "validate_every": 25, "progress": False}


def run(library, task, **more):
    training = f"course_lib.{library}.training"
    loop, optimizers = (importlib.import_module(f"{training}.{name}") for name in ("loop", "optimizers"))
    model = tasks.build(library, task)
    decay = 1.0 if task == "next_token" else 0.8  # a table has no layers
    optimizer = optimizers.adamw(model, weight_decay=0.1, layer_decay=decay)
    held_out = tasks.batches(task, 2, seed=9)(0)
    objective = tasks.objective(library, task)
    return loop.train(model, tasks.batches(task), objective, held_out, optimizer=optimizer, **{**SETTINGS, **more})


@pytest.mark.parametrize("task", tasks.TASKS)
def test_both_frameworks_take_the_same_path(task):
    ours, theirs = (run(library, task) for library in ("torch", "tensorflow"))
    assert len(ours.loss) == 50 and ours.loss[-5:].mean() < ours.loss[:5].mean() - 0.02
    assert_allclose(ours.loss, theirs.loss, rtol=0, atol=1e-3)
    assert_array_equal(ours.tokens, theirs.tokens)
    for a, b in zip(ours.validation, theirs.validation, strict=True):
        assert_allclose(a.nll, b.nll, atol=1e-3)
        assert_allclose(a.accuracy, b.accuracy, atol=0.02)
