"""A stream cut into windows: every token is predicted once, epochs differ, and a text is read with overlaps."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from course_lib.batches.streams import StreamBatches, joined, strides


def test_documents_stand_between_ends():
    found = joined([np.array([1, 2]), np.array([], dtype=int), np.array([3])], 9)
    assert_array_equal(found, [9, 1, 2, 9, 9, 3, 9])
    assert found.dtype == np.int64


def test_windows_follow_each_other_and_share_one_token():
    stream = np.arange(1000)
    batches = StreamBatches(stream, length=10, batch_size=4, seed=3)
    windows = np.concatenate([batch.ids for batch in batches])
    assert {batch.ids.shape for batch in batches} == {(4, 11)} and windows.dtype == np.int64
    assert_array_equal(windows, windows[:, :1] + np.arange(11))
    starts = np.sort(windows[:, 0])
    assert len(set(windows[:, 1:].ravel())) == windows[:, 1:].size, "a token is predicted once in an epoch"
    assert set(np.diff(starts)) <= {10, 20, 30, 40} and len(starts) == 96  # of 99 windows those that fill batches


def test_epochs_begin_elsewhere_and_have_another_order():
    first = StreamBatches(np.arange(1000), 10, 4, seed=3)
    second, again = first.epoch(1), first.epoch(0)
    assert not np.array_equal(first[0].ids, second[0].ids)
    assert_array_equal(first[2].ids, again[2].ids)
    firsts = {int(first.epoch(e)[0].ids[0, 0]) % 10 for e in range(40)}
    assert len(firsts) > 5 and len(first) == len(second)
    other = StreamBatches(np.arange(1000), 10, 4, seed=4)
    assert not np.array_equal(first[0].ids, other[0].ids)


def test_the_last_token_can_be_predicted_and_no_window_leaves_the_stream():
    stream, ends = np.arange(64), set()
    for seed in range(60):
        for batch in StreamBatches(stream, 8, 7, seed):
            ends.add(int(batch.ids.max()))
            assert batch.ids.shape == (7, 9)
    assert max(ends) == 63


@pytest.mark.parametrize(
    ("stream", "change", "error", "message"),
    [
        (np.arange(63), {}, ValueError, "must have 64 tokens or more"),
        (np.zeros((2, 64), int), {}, ValueError, "must have 64 tokens or more"),
        (np.arange(64.0), {}, TypeError, "must be integers"),
        (np.arange(64), {"length": 0}, ValueError, "length must be"),
        (np.arange(64), {"batch_size": 0}, ValueError, "batch_size must be"),
        (np.arange(64), {"seed": -1}, ValueError, "seed must be"),
        (np.arange(64), {"epoch": -1}, ValueError, "epoch must be"),
    ],
)
def test_streams_that_cannot_be_cut(stream, change, error, message):
    with pytest.raises(error, match=message):
        StreamBatches(stream, **{"length": 8, "batch_size": 7} | change)


SIZES = [(2, 8, 4), (9, 8, 4), (10, 8, 4), (50, 8, 3), (50, 8, 8), (7, 8, 1)]


@pytest.mark.parametrize(("n", "length", "stride"), SIZES)
def test_every_token_is_predicted_once_with_as_much_before_it_as_can_be(n, length, stride):
    found = []
    for first, last, new in strides(n, length, stride):
        assert 0 <= first < last < n and last - first <= length and 1 <= new <= last - first
        labels = np.arange(first + 1, last + 1)[-new:]
        found += labels.tolist()
        assert all(label - first >= min(label, length - stride + 1) for label in labels)
    assert found == list(range(1, n))


def test_strides_are_as_wide_as_asked():
    assert list(strides(12, 8, 4)) == [(0, 8, 8), (3, 11, 3)]
    assert list(strides(17, 8, 4)) == [(0, 8, 8), (4, 12, 4), (8, 16, 4)]


@pytest.mark.parametrize(
    ("n", "stride", "message"), [(1, 4, "n_tokens must be"), (9, 0, "stride"), (9, 9, "8 at most")]
)
def test_strides_that_lead_nowhere(n, stride, message):
    with pytest.raises(ValueError, match=message):
        list(strides(n, 8, stride))
