"""A training that diverges says so at once, with what to do, and keeps what was good."""

import importlib
import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.training.history import Evaluation
from course_lib.training.limits import Limits
from course_lib.training.run import Run
from course_lib.training.saving import Saving
from course_lib.training.training_file import read_training
from tests.support import classifiers, translators

NAN = float("nan")


@pytest.fixture(params=["torch", "tensorflow"])
def library(request):
    return request.param


def training(library):
    return importlib.import_module(f"course_lib.{library}.training.translation")


def looks(monkeypatch, library, values):
    """Validations that say these values, whatever the model is."""
    values = iter(values)
    loop = importlib.import_module(f"course_lib.{library}.training.loop")
    monkeypatch.setattr(loop, "evaluate", lambda *_: Evaluation(1, next(values), 0.0))


@pytest.mark.parametrize(("library", "bad"), [("torch", NAN), ("torch", math.inf), ("tensorflow", NAN)])
def test_a_first_validation_without_a_number_is_not_the_best(library, monkeypatch, bad):
    looks(monkeypatch, library, [bad, 5.0, 3.0, 4.0])
    model, held_out = translators.build(library), translators.batches(10)(0)
    with pytest.warns(RuntimeWarning, match="validation after update 2 is"):
        history = training(library).train(
            model, translators.batches(), held_out, steps=8, validate_every=2, progress=False
        )
    assert history.best.nll == 3.0 and history.best.step == 6


def test_patience_ends_a_training_whose_validations_are_never_a_number(monkeypatch):
    library = "torch"
    looks(monkeypatch, library, [NAN] * 9)
    model, held_out = translators.build(library), translators.batches(10)(0)
    with pytest.warns(RuntimeWarning, match="is nan"):
        history = training(library).train(
            model, translators.batches(), held_out, steps=18, validate_every=2, patience=3, progress=False
        )
    assert history.stopped_by == "patience" and history.best is None and len(history.loss) == 6


def test_a_loss_that_is_no_number_ends_the_training_and_the_best_is_kept(library, tmp_path):
    model, held_out = translators.build(library, "transformer"), translators.batches(30, seed=5)(0)

    def rate(step):
        return 1e-3 if step < 6 else 1e38

    with pytest.raises(FloatingPointError, match="diverged; lower the rate.*best weights, those after update [36]"):
        training(library).train(
            model,
            translators.batches(),
            held_out,
            rate=rate,
            steps=60,
            validate_every=3,
            checkpoint=tmp_path,
            save_every=0.0,
            progress=False,
        )
    arrays, facts = read_training(tmp_path)
    assert facts["step"] <= 8 and np.isfinite(arrays["run.loss"]).all()
    assert all(np.isfinite(value).all() for value in arrays.values())
    assert_allclose(training(library).evaluate(model, held_out).nll, facts["best"][2], rtol=1e-5)
    assert library != "torch" or not model.training


def test_weights_that_are_no_numbers_are_not_saved(tmp_path):
    run, saving = Run(translators.batches(), Limits(steps=3)), Saving(tmp_path, every=0)
    with run, saving:
        for step, _ in enumerate(run):
            run.record(1.0, 1)
            if step == 0:
                saving.save(run, {"model.a": np.ones(2)})
            else:
                with pytest.raises(FloatingPointError, match=r"a is not finite.*after update 1"):
                    saving.save(run, {"model.a": np.array([1.0, NAN])})
    assert read_training(tmp_path)[1]["step"] == 1


SAYS_SO = r"the loss of update \d+ is .*: the training diverged; lower the rate"


def test_fine_tuning_that_diverges_says_so(examples):
    run = classifiers.build("torch")
    with pytest.raises(FloatingPointError, match=SAYS_SO):
        run.training.train(run.model, *examples, epochs=4, lr=1e36, batch_size=16, progress=False)
    assert not run.model.training


def test_kerass_training_is_ended_by_the_callback():
    progress = importlib.import_module("course_lib.tensorflow.training.classifier").Progress(3, show=False)
    progress.on_train_batch_end(0, {"loss": 1.0})
    with pytest.raises(FloatingPointError, match=SAYS_SO.replace(r"\d+", "2")):
        progress.on_train_batch_end(1, {"loss": NAN})


def test_a_last_update_that_diverges_is_no_success(library):
    """Its loss, from before it, is a number."""
    with pytest.raises(FloatingPointError, match="is not finite: the training diverged; lower the rate"):
        training(library).train(
            translators.build(library), translators.batches(), rate=3e38, steps=1, max_norm=1.0, progress=False
        )


def test_after_a_last_update_that_diverges_the_best_is_kept():
    model, held_out = translators.build("torch"), translators.batches(10)(0)
    settings = {"rate": lambda step: 3e38 if step == 3 else 1e-3, "steps": 4, "validate_every": 1, "progress": False}
    with warnings.catch_warnings(), pytest.raises(FloatingPointError, match="not finite.*best weights, .* update 3"):
        warnings.simplefilter("ignore", RuntimeWarning)  # of the last validation
        training("torch").train(model, translators.batches(), held_out, **settings)
    assert all(np.isfinite(value).all() for value in translators.LIBRARIES["torch"].get_state(model).values())


def test_a_last_update_of_fine_tuning_that_diverges_is_no_success(framework, examples):
    sequences, labels = examples[0][:8], examples[1][:8]
    rates = {"lr": 1e36, "warmup": 0.0, "weight_decay": 1e6}
    with pytest.raises(FloatingPointError, match="is not finite: the training diverged; lower the rate"):
        framework.training.train(framework.model, sequences, labels, progress=False, **rates)
