"""Span corruption: how much is taken out, where, what is written of it, and back; batches of it."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

from course_lib.batches.corrupted import CorruptedBatches, SpanCorruption
from course_lib.training.arguments import check_padding
from course_lib.training.teacher_forcing import teacher_forcing

V, N = 90, 30  # 30 sentinels, 60 ... 89


def corruption(**options):
    return SpanCorruption(**{"vocab_size": V, "n_sentinels": N, **options})


def texts(n=60, least=2, most=50, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(2, V - N, size=rng.integers(least, most + 1)) for _ in range(n)]


def runs(out):
    """The numbers of tokens that stay and go, by turns."""
    return [len(list(group)) for _, group in itertools.groupby(out)]


def test_the_papers_example(monkeypatch):
    """Thank you <X> me to your party <Y> week: figure 2 of Raffel et al. 2020, there with a last sentinel <Z>."""
    words = "thank you for inviting me to your party last week".split()
    ids = np.arange(2, 2 + len(words))
    out = np.isin(words, ["for", "inviting", "last"])
    monkeypatch.setattr(SpanCorruption, "spans", lambda self, length, rng: out)
    source, target = corruption().corrupted(ids, np.random.default_rng())
    assert_array_equal(source, [2, 3, 89, 6, 7, 8, 9, 88, 11, 1])
    assert_array_equal(target, [0, 89, 4, 5, 88, 10, 1])
    assert_array_equal(corruption().restored(source, target), ids)


@pytest.mark.parametrize("length, density, mean_span, n_out, n_spans", [
    (500, 0.15, 3.0, 75, 25),  # section 3.3.4
    (512, 0.15, 3.0, 77, 26),
    (10, 0.15, 3.0, 2, 1),
    (2, 0.15, 3.0, 1, 1),  # one at least
    (2, 0.99, 1.0, 1, 1),  # and one stays
    (30, 0.5, 1.0, 15, 15),
    (10, 0.8, 1.0, 8, 2),  # no more spans than tokens before them
])  # fmt: skip
def test_tokens_and_spans_depend_on_the_length(length, density, mean_span, n_out, n_spans):
    made = corruption(density=density, mean_span=mean_span)
    assert made.counts(length) == (n_out, n_spans)
    out = made.spans(length, np.random.default_rng(3))
    assert out.shape == (length,) and out.sum() == n_out and len(runs(out)) == 2 * n_spans
    assert not out[0] and out[-1]
    source, target = made.corrupted(np.full(length, 7), np.random.default_rng(3))
    assert made.lengths(length) == (len(source), len(target))


def test_all_choices_of_spans_are_equally_likely():
    """Of 8 tokens, 4 out in 2 spans: (3, 1), (2, 2), (1, 3) that stay and likewise that go."""
    made, rng = corruption(density=0.5, mean_span=2.0), np.random.default_rng(1)
    counts = dict.fromkeys(itertools.product(((3, 1), (2, 2), (1, 3)), repeat=2), 0)
    for _ in range(3000):
        lengths = runs(made.spans(8, rng))
        counts[tuple(lengths[::2]), tuple(lengths[1::2])] += 1
    assert stats.chisquare(list(counts.values())).pvalue > 1e-6


def test_spans_that_are_rolled_may_stand_anywhere():
    """All places of a text's only span are equally likely, also round its ends; else it is the last tokens."""
    made, rng = corruption(rolled=True), np.random.default_rng(1)
    outs = np.array([made.spans(10, rng) for _ in range(3000)])
    assert (outs.sum(1) == 2).all()
    assert stats.chisquare(outs.sum(0)).pvalue > 1e-6
    assert {len(runs(out)) for out in outs} == {2, 3}
    lengths = {tuple(map(len, made.corrupted(np.full(10, 5), rng))) for _ in range(200)}
    assert lengths == {made.lengths(10), tuple(n + 1 for n in made.lengths(10))}
    assert corruption().spans(10, rng).tolist() == [False] * 8 + [True] * 2


@pytest.mark.parametrize("options", [
    {},
    {"density": 0.5},
    {"density": 0.4, "mean_span": 1.5, "end_id": 7},
    {"rolled": True},
], ids=str)  # fmt: skip
def test_the_spans_go_back(options):
    made, rng = corruption(**options), np.random.default_rng(2)
    for ids in texts():
        ids = np.where(ids == made.end_id, 8, ids)
        source, target = made.corrupted(ids, rng)
        assert source.dtype == target.dtype == np.int64
        assert source[-1] == target[-1] == made.end_id and target[0] == 0
        n_spans = int((source >= V - N).sum())
        assert n_spans - made.counts(len(ids))[1] in ([0, 1] if made.rolled else [0])
        for side in (source, target):  # each sentinel once, from the end of the vocabulary down
            assert_array_equal(side[side >= V - N], V - 1 - np.arange(n_spans))
        assert len(ids) == sum((side < V - N).sum() for side in (source, target)) - 3
        assert_array_equal(made.restored(source, target), ids)
        padding = np.zeros(3, dtype=int)
        assert_array_equal(made.restored(np.append(source, padding), np.append(target[1:], padding)), ids)


def test_what_a_model_wrote_is_put_where_it_belongs():
    source = [5, 89, 6, 88, 1, 4]
    for target, expected in [
        ([0, 88, 9, 89, 7, 8, 1], [5, 7, 8, 6, 9]),
        ([89, 7], [5, 7, 6]),
        ([3, 3, 88, 9, 87, 4, 89, 1, 7], [5, 6, 9]),
        ([89, 7, 88, 9, 89, 8, 1], [5, 7, 6, 9]),
        ([], [5, 6]),
    ]:
        assert_array_equal(corruption().restored(np.array(source), np.array(target, dtype=int)), expected)


def test_an_epoch_has_every_text_once_and_its_spans():
    sequences, made = texts(), corruption()
    batches = CorruptedBatches(sequences, made, batch_size=8, pad_id=0, multiple=4)
    assert len(batches) == 8
    seen = []
    for batch in batches:
        assert batch.source.shape[1] % 4 == batch.target.shape[1] % 4 == 0
        example = teacher_forcing(batch)
        assert (example.inputs[:, 0] == 0).all() and (example.labels[:, 0] == V - 1).all()
        for source, target, row in zip(*batch, strict=True):
            assert_array_equal(made.restored(source, target), sequences[row])
            seen.append(int(row))
    assert sorted(seen) == list(range(60))


def test_batches_depend_on_seed_and_epoch_alone():
    sequences = texts()
    make = lambda **options: CorruptedBatches(sequences, corruption(density=0.5), 8, **options)  # noqa: E731
    first = make(seed=3)
    again = make(seed=3).epoch(2).epoch(0)
    for a, b in zip(first, again, strict=True):
        assert all(map(np.array_equal, a, b))
    by_row = lambda batches: {int(r): s.tolist() for b in batches for s, r in zip(b.source, b.rows, strict=True)}  # noqa: E731
    long = [i for i, ids in enumerate(sequences) if len(ids) > 20]
    for other in (first.epoch(1), make(seed=4)):
        found, before = by_row(other), by_row(first)
        assert sum(found[i] == before[i] for i in long) < 0.2 * len(long)
    still, moved = make(seed=None), make(seed=None).epoch(5)
    for a, b in zip(still, moved, strict=True):
        assert all(map(np.array_equal, a, b))
    lengths = [len(sequences[r]) for b in still for r in b.rows]
    assert lengths == sorted(lengths)


def test_texts_of_one_length_make_batches_of_one_shape():
    made = corruption()
    batches = CorruptedBatches([np.full(40, 5)] * 20, made, batch_size=5)
    assert {batch.source.shape[1:] + batch.target.shape[1:] for batch in batches} == {made.lengths(40)}


def test_another_padding_than_the_models_is_refused():
    with pytest.raises(ValueError, match="the batches are padded with 9, but the model takes 0"):
        check_padding(CorruptedBatches(texts(), corruption(), pad_id=9), 0)


@pytest.mark.parametrize("options, message", [
    ({"density": 0.0}, "density must lie between 0 and 1"),
    ({"density": 1.0}, "density must lie between 0 and 1"),
    ({"mean_span": 0.5}, "mean_span must be 1 or more"),
    ({"n_sentinels": 0}, "n_sentinels must be a whole number of 1 or more"),
    ({"end_id": 60}, r"end_id must be below the sentinels, 60 \.\.\. 89, got 60"),
    ({"start_id": 89}, "start_id must be below the sentinels"),
    ({"start_id": -1}, "start_id must be a whole number of 0 or more"),
    ({"vocab_size": 20}, "must be below the sentinels"),
])  # fmt: skip
def test_settings_that_make_no_corruption(options, message):
    with pytest.raises(ValueError, match=message):
        corruption(**options)


@pytest.mark.parametrize("ids, error, message", [
    ([5], ValueError, "length must be a whole number of 2 or more, got 1"),
    ([5, 60], ValueError, r"below the sentinels; got ids from 5 to 60"),
    ([5, -1], ValueError, r"below the sentinels; got ids from -1 to 5"),
    ([5, 1, 6], ValueError, "must not hold its end, 1"),
    ([[5, 6]], ValueError, r"must have shape \(length,\)"),
    ([5.0, 6.0], TypeError, "must be integers"),
    ("five", TypeError, "not token ids"),
    ([5] * 700, ValueError, "700 tokens has 35 spans for 30 sentinels"),
])  # fmt: skip
def test_texts_that_cannot_be_corrupted(ids, error, message):
    with pytest.raises(error, match=message):
        corruption().corrupted(np.array(ids) if not isinstance(ids, str) else ids, np.random.default_rng())


@pytest.mark.parametrize("changes, message", [
    ({"sequences": []}, "there must be at least one sequence"),
    ({"sequences": [np.array([4, 5]), np.array([4])]}, "length must be a whole number of 2 or more"),
    ({"batch_size": 0}, "batch_size must be"),
    ({"multiple": 0}, "multiple must be"),
    ({"epoch": -1}, "epoch must be"),
])  # fmt: skip
def test_batches_that_cannot_be_made(changes, message):
    with pytest.raises(ValueError, match=message):
        CorruptedBatches(**{"sequences": texts(), "corruption": corruption(), **changes})


def test_a_span_that_is_cut_in_two_needs_a_sentinel_more():
    corruption().counts(600)
    with pytest.raises(ValueError, match="600 tokens has 31 spans for 30 sentinels"):
        corruption(rolled=True).counts(600)


@pytest.mark.parametrize("source, target", [([[5]], [6]), ([5], [[6]])])
def test_only_one_text_is_restored(source, target):
    with pytest.raises(ValueError, match="must have shape"):
        corruption().restored(np.array(source), np.array(target))
