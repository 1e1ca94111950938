"""What ends a training, how many updates are left, and what its bar shows: on a clock that the test moves."""

import pytest

from course_lib.training import bar
from course_lib.training.history import Evaluation
from course_lib.training.limits import Limits
from course_lib.training.run import Run


def stepping(limits, seconds=2.0):
    """A run of four batches an epoch; after each update of so many seconds, the run as it then is."""
    now = [0.0]
    run = Run(lambda epoch: [0, 1, 2, 3], Limits(**limits), clock=lambda: now[0])
    with run:
        for _ in run:
            now[0] += seconds(run.step) if callable(seconds) else seconds
            run.record(run.step + 1.0, 5)
            yield run


@pytest.mark.parametrize(
    ("limits", "updates", "name"),
    [
        ({"steps": 3}, 3, "steps"),
        ({"epochs": 2}, 8, "epochs"),
        ({"seconds": 5.5}, 3, "seconds"),
        ({"seconds": 6.0}, 3, "seconds"),
        ({"steps": 9, "epochs": 2}, 8, "epochs"),
        ({"steps": 7, "epochs": 2, "seconds": 100.0}, 7, "steps"),
    ],
)
def test_the_limit_that_comes_first_ends_it(limits, updates, name):
    *_, run = stepping(limits)
    assert (run.step, run.stopped_by) == (updates, name)


def test_patience_counts_the_validations_since_the_best():
    for run, nll in zip(stepping({"steps": 9, "patience": 2}), (3.0, 2.0, 4.0, 5.0), strict=True):
        run.validated(Evaluation(1, nll, 0.0), dict)
    assert (run.step, run.best.step, run.stopped_by) == (4, 2, "patience")


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"epochs": 4}, 16),
        ({"epochs": 4, "steps": 12}, 12),
        ({"epochs": 4, "seconds": 30.0}, 15),
        ({"steps": 9, "seconds": 30.0}, 9),
    ],
)
def test_the_updates_until_the_end_are_the_fewest_of_all_limits(limits, expected):
    run = next(stepping(limits))
    assert run.limits.updates(run) == expected


def test_an_end_by_time_is_never_before_the_updates_that_were_made():
    runs = stepping({"seconds": 5.0})
    assert [run.limits.updates(run) for run in runs] == [2, 2, 3]


@pytest.mark.parametrize(
    ("limits", "error", "message"),
    [
        ({}, ValueError, "training needs an end: give epochs, steps or seconds"),
        ({"patience": 3}, ValueError, "training needs an end"),
        ({"epochs": 0}, ValueError, "epochs must be positive, got 0"),
        ({"steps": 2.5}, ValueError, "steps must be a whole number, got 2.5"),
        ({"steps": 3, "patience": 1.5}, ValueError, "patience must be a whole number"),
        ({"seconds": "3"}, TypeError, "seconds"),
    ],
)
def test_what_is_no_limit(limits, error, message):
    with pytest.raises(error, match=message):
        Limits(**limits)
    assert Limits(seconds=0.5).seconds == 0.5, "of seconds, a fraction will do"


@pytest.mark.parametrize(
    ("limits", "end"), [({"seconds": 30.0}, 15), ({"seconds": 30.0, "steps": 12}, 12), ({"seconds": 1e9}, 16)]
)
def test_with_a_limit_of_time_the_bar_knows_its_end(limits, end):
    """2 s an update, so that 15 updates go into 30 s; what comes first counts."""
    totals = []
    with bar.Bar() as shown:
        for run in stepping({"epochs": 4, **limits}):
            shown.show(run)
            totals.append(shown.bar.total)
    assert shown.bar.n == len(totals) == totals[-1] == totals[10] == end


def test_the_end_follows_the_speed():
    """An update takes 1 s at first, later 2 s: of the 20 updates that seemed to go into 20 s, 12 do."""
    totals = []
    with bar.Bar() as shown:
        for run in stepping({"seconds": 20.0}, lambda step: 1.0 if step < 4 else 2.0):
            shown.show(run)
            totals.append(shown.bar.total)
    assert (totals[0], totals[-1], len(totals)) == (20, 12, 12)


def test_the_bar_shows_the_last_updates_and_the_last_validation(monkeypatch):
    """From the third update on, as of a training that goes on; an update takes 2 s at first, later 1 s."""
    monkeypatch.setattr(bar, "RECENT", 2)
    with bar.Bar() as shown:
        for run in stepping({"steps": 6}, lambda step: 2.0 if step < 3 else 1.0):
            if run.step in (2, 4):
                run.validated(Evaluation(1, 11.0 - run.step, 0.0), dict)
            if run.step >= 3:
                shown.show(run)
    assert (shown.bar.initial, shown.bar.n, shown.bar.total) == (2, 6, 6)
    assert "loss 5.500, valid 7.000, 5 tokens/s" in str(shown.bar)
