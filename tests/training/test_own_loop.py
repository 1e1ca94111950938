"""A loop of the reader's own, as the documentation shows it: saved, interrupted and resumed like ours."""

import doctest
import inspect

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import course_lib.tensorflow.training.loop
import course_lib.torch.training.loop
import course_lib.training.run
from course_lib.checkpoints.weights import CheckpointError
from course_lib.training.bar import Bar
from course_lib.training.history import Evaluation
from course_lib.training.limits import Limits
from course_lib.training.run import Run
from course_lib.training.saving import Saving


def test_the_documented_loop_runs_as_it_stands():
    tests = doctest.DocTestFinder().find(course_lib.training.run, "run")
    results = [doctest.DocTestRunner().run(test) for test in tests]
    assert sum(result.attempted for result in results) >= 8 and not any(result.failed for result in results)


X = np.random.default_rng(0).normal(size=(6, 8, 3))
Y = X @ [1.0, -2.0, 0.5]


def batches(epoch):
    return [(X[i], Y[i]) for i in np.random.default_rng(epoch).permutation(6)]


def train(folder, steps, data=batches, rate=0.1, at=None):
    run, saving = Run(data, Limits(steps=steps)), Saving(folder, every=0, settings={"rate": rate, "noise": None})
    weight = np.zeros(3)
    with run, saving, Bar(show=False) as bar:
        if (saved := saving.resume(run)) is not None:
            weight = saved["weight"]
        for x, y in run:
            if run.step == at:
                raise ZeroDivisionError
            error = x @ weight - y
            weight = weight - rate * error @ x / len(x)
            run.record((error**2).mean(), len(x))
            if run.is_due(4):
                with run.paused():
                    run.validated(Evaluation(1, float(np.abs(weight).sum()), 0.0), lambda w=weight: {"weight": w})
            if saving.is_due(run):
                saving.save(run, {"weight": weight})
            bar.show(run)
    return weight, run.history(), run.best_weights


def test_it_is_resumed_exactly(tmp_path):
    with pytest.raises(ZeroDivisionError):
        train(tmp_path, 17, at=9)
    resumed, expected = train(tmp_path, 17), train(None, 17)
    assert_array_equal(resumed[0], expected[0])
    assert_array_equal(resumed[1].loss, expected[1].loss)
    assert_array_equal(resumed[1].tokens, [8] * 17)
    assert [look.nll for look in resumed[1].validation] == [look.nll for look in expected[1].validation]
    assert_array_equal(resumed[2]["weight"], expected[2]["weight"])
    assert resumed[1].best.step == expected[1].best.step and resumed[1].stopped_by == "steps"


def test_another_one_is_refused(tmp_path):
    train(tmp_path, 5)
    with pytest.raises(CheckpointError, match="rate=0.1, this one has rate=0.2"):
        train(tmp_path, 6, rate=0.2)
    with pytest.raises(CheckpointError, match="other data"):
        train(tmp_path, 6, data=lambda epoch: [(x, y + 1e-9) for x, y in batches(epoch)])


def test_one_place_serves_a_run_and_the_one_that_goes_on(tmp_path):
    saving = Saving(tmp_path)
    for steps in (3, 5):
        run = Run(batches, Limits(steps=steps))
        with run, saving:
            assert (saving.resume(run) is None) == (steps == 3)
            for _ in run:
                run.record(1.0, 8)
                if saving.is_due(run):
                    saving.save(run, {})
    assert len(run.history().loss) == 5


def test_both_frameworks_loops_stand_on_one_screen():
    for module in (course_lib.torch.training.loop, course_lib.tensorflow.training.loop):
        source = inspect.getsource(module.train)
        assert source[source.rindex('"""') :].count("\n") <= 50
