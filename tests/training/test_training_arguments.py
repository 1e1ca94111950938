"""What a training is given by mistake gets one clear error before the first update; what can be meant is taken."""

import importlib

import numpy as np
import pytest
import translators
from numpy.testing import assert_array_equal

from course_lib.batching import Batches, PairBatches, padded
from course_lib.training import Run

NAN, INF = float("nan"), float("inf")


@pytest.fixture(params=["torch", "tensorflow"])
def library(request):
    return request.param


def train(library, batches=None, model=None, **arguments):
    module = importlib.import_module(f"course_lib.{library}.translation")
    settings = {"steps": 1, "progress": False, **arguments}
    return module.train(model or translators.build(library), batches or translators.batches(), **settings)


def test_pair_batches_are_taken_as_they_are():
    batches = PairBatches(*translators.pairs(), 200)
    steps = len(batches) + 2
    ours, expected = (train("torch", given, steps=steps) for given in (batches, batches.epoch))
    assert_array_equal(ours.loss, expected.loss)


def test_what_shows_only_in_the_training():
    with pytest.raises(TypeError, match="epoch 0 must be a sequence of batches, got list_iterator"):
        train("torch", lambda epoch: iter([]))
    with pytest.raises(ValueError, match="the rate at step 1 must be a number of 0 or more, got -inf"):
        train("torch", rate=lambda step: -INF if step else 1.0, steps=2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"batches": translators.batches()(0)}, TypeError, "a function of the epoch, such as .* got list"),
        ({"validation": translators.batches()}, TypeError, "validation must be a sequence of batches.* got function"),
        ({"validation": iter([])}, TypeError, "validation must be a sequence of batches.* got list_iterator"),
        ({"validation": []}, ValueError, "validation has no batches"),
        ({"rate": -1}, ValueError, "the rate must be a number of 0 or more, got -1"),
        ({"rate": NAN}, ValueError, "the rate must be a number of 0 or more, got nan"),
        ({"max_norm": -1.0}, ValueError, "max_norm must be positive, got -1.0"),
        ({"max_norm": NAN}, ValueError, "max_norm must be positive, got nan"),
        ({"save_every": NAN}, ValueError, "save_every must be a number of 0 or more"),
    ],
)
def test_what_makes_no_training(library, arguments, error, message):
    with pytest.raises(error, match=message):
        train(library, **arguments)


def test_a_model_that_does_not_translate(library):
    import classifiers

    for model in (classifiers.build(library).model, classifiers.build(library).model.bert):
        with pytest.raises(TypeError, match="a Bert.* does not read source and target"):
            train(library, model=model)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lr": -1.0}, "lr must be a number of 0 or more, got -1.0"),
        ({"lr": NAN}, "lr must be a number of 0 or more, got nan"),
        ({"weight_decay": -0.1}, "weight_decay must be a number of 0 or more"),
        ({"max_norm": -1.0}, "max_norm must be positive"),
    ],
)
def test_what_makes_no_fine_tuning(framework, examples, arguments, message):
    with pytest.raises(ValueError, match=message):
        framework.training.train(framework.model, *examples, progress=False, **arguments)


IDS = np.array([3, 4])
NO_IDS = [
    (["a text"], TypeError, r"\[0\] is 'a text', not token ids; encode the texts by a tokenizer first"),
    ([IDS, None], TypeError, r"\[1\] is None, not token ids"),
    ("a text", TypeError, "must be many arrays of token ids, got str"),
    (None, TypeError, "must be many arrays of token ids, got NoneType"),
    ([IDS, np.array([0.5])], TypeError, r"\[1\] must be integers, got float64"),
    ([[1, 2], [3.5]], TypeError, r"\[1\] must be integers, got float64"),
    ([IDS[None]], ValueError, r"\[0\] must have shape \(length,\), got \(1, 2\)"),
]


@pytest.mark.parametrize(("ids", "error", "message"), NO_IDS)
def test_what_is_no_ids(ids, error, message):
    for make in (Batches, padded, lambda ids: PairBatches([IDS], ids), lambda ids: PairBatches(ids, [IDS])):
        with pytest.raises(error, match=message):
            make(ids)


@pytest.mark.parametrize(("ids", "error", "message"), NO_IDS[:2])
def test_what_is_no_ids_is_not_trained_on(framework, ids, error, message):
    with pytest.raises(error, match=message):
        framework.training.train(framework.model, ids, np.zeros(len(ids), int), progress=False)


def test_lists_of_ids_are_taken():
    assert_array_equal(padded([[1, 2], [3]]), [[1, 2], [3, 0]])
    assert_array_equal(Batches([[1, 2], [3]])[0].ids, [[3, 0], [1, 2]])


def test_with_a_limit_of_time_the_bar_knows_its_end(capsys):
    """2 s an update, so that 15 updates go into 30 s; the fewest updates of several limits count."""
    for limits, expected in (({"seconds": 30.0}, 15), ({"seconds": 30.0, "steps": 12}, 12), ({"seconds": 1e9}, None)):
        now = [0.0]
        run, seen = Run(translators.batches(), 0, **{"epochs": 4, **limits}, clock=lambda: now[0]), []  # noqa: B023
        with run:
            for _ in run:
                now[0] += 2.0
                run.record(1.0)
                seen.append(run.bar.total)
        assert seen[10] == (expected or 24) and seen[-1] == len(seen) == (expected or 24)
