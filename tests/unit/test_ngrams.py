"""Kneser-Ney counts against a loop written from the definition, and probabilities that add up to one."""

from collections import defaultdict

import numpy as np
import pytest
from numpy.testing import assert_allclose

from course_lib.evaluation.ngrams import KneserNey

V, BORDER = 9, 0


def text(rng, n):
    ids = [int(rng.integers(1, V))]
    while len(ids) < n:
        ids.append(1 + (3 * ids[-1] + 1) % (V - 1) if rng.random() < 0.6 else int(rng.integers(1, V)))
    return np.array(ids)


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    return [text(rng, rng.integers(1, 15)) for _ in range(60)]


class Loop:
    """The same model by its definition: dictionaries of tuples, one n-gram after the other."""

    def __init__(self, texts, order, discounts=None):
        self.order = order
        grams = [defaultdict(int) for _ in range(order + 1)]
        for ids in texts:
            padded = [BORDER] * (order - 1) + ids.tolist()
            for end in range(order - 1, len(padded)):
                for n in range(1, order + 1):
                    grams[n][tuple(padded[end - n + 1 : end + 1])] += 1
        self.counts = {order: dict(grams[order])}
        for n in range(1, order):
            self.counts[n] = defaultdict(int)
            for longer in grams[n + 1]:
                self.counts[n][longer[1:]] += 1
        self.discounts = self.derived() if discounts is None else discounts

    def derived(self):
        found = []
        for n in range(1, self.order + 1):
            c = [sum(count == i for count in self.counts[n].values()) for i in (1, 2, 3, 4)]
            if 0 in c:
                found.append([0.5, 1.0, 1.5])
                continue
            y = c[0] / (c[0] + 2 * c[1])
            raw = [1 - 2 * y * c[1] / c[0], 2 - 3 * y * c[2] / c[1], 3 - 4 * y * c[3] / c[2]]
            found.append([min(max(d, 1e-3), i) for d, i in zip(raw, (1, 2, 3), strict=True)])
        return found

    def p(self, token, context, n=None):
        n = self.order if n is None else n
        if n == 0:
            return 1 / V
        before = tuple(([BORDER] * self.order + list(context))[len(context) + self.order - n + 1 :])
        follow = {gram[-1]: count for gram, count in self.counts[n].items() if gram[:-1] == before}
        lower = self.p(token, context, n - 1)
        if not follow:
            return lower
        d = self.discounts[n - 1]
        total, kinds = sum(follow.values()), [0, 0, 0]
        for count in follow.values():
            kinds[min(count, 3) - 1] += 1
        own = follow.get(token, 0)
        own -= d[min(own, 3) - 1] if own else 0
        return own / total + sum(a * b for a, b in zip(d, kinds, strict=True)) / total * lower


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_probabilities_are_those_of_the_loop(texts, order):
    model, loop = KneserNey(texts[:40], V, BORDER, order), Loop(texts[:40], order)
    assert_allclose(model.discounts, loop.discounts, rtol=1e-12)
    new = texts[40:50]
    for ids, losses in zip(new, model.losses(new), strict=True):
        assert losses.shape == ids.shape
        expected = [-np.log(loop.p(token, ids[:t].tolist())) for t, token in enumerate(ids.tolist())]
        assert_allclose(losses, expected, rtol=1e-10)


@pytest.mark.parametrize("context", [[], [3], [1, 4, 5, 8, 2, 7], [8, 8, 8, 8, 8]])
@pytest.mark.parametrize("order", [1, 2, 4])
def test_probabilities_add_up_to_one(texts, order, context):
    model = KneserNey(texts, V, BORDER, order)
    p = model.probabilities(context)
    assert p.shape == (V,) and p.min() > 0
    assert_allclose(p.sum(), 1, rtol=1e-12)
    losses = model.losses([np.array([*context, 6])])[0]
    assert_allclose(p[6], np.exp(-losses[-1]), rtol=1e-12)


def test_other_discounts_are_those_of_the_loop(texts):
    model = KneserNey(texts, V, BORDER, 3)
    model.discounts[:] = [[0.3, 0.9, 1.1], [0.7, 1.2, 2.2], [0.9, 1.6, 2.8]]
    loop = Loop(texts, 3, model.discounts.tolist())
    ids = np.array([5, 2, 7, 7, 1, 4])
    expected = [-np.log(loop.p(token, ids[:t].tolist())) for t, token in enumerate(ids.tolist())]
    assert_allclose(model.losses([ids])[0], expected, rtol=1e-10)


def test_tuning_makes_the_tuning_texts_more_probable_and_keeps_a_distribution(texts):
    train, tuning = texts[:40], texts[40:]
    model = KneserNey(train, V, BORDER, 3)
    before, start = np.concatenate(model.losses(tuning)).mean(), model.discounts.copy()
    assert model.tune(tuning) is model
    assert np.concatenate(model.losses(tuning)).mean() < before - 1e-3
    assert not np.allclose(model.discounts, start)
    assert (model.discounts > 0).all() and (model.discounts < [1, 2, 3]).all()
    assert_allclose(model.probabilities([4, 5]).sum(), 1, rtol=1e-12)
    for n in range(3):  # no single discount could be moved to gain much
        for step in (-0.05, 0.05):
            other = KneserNey(train, V, BORDER, 3)
            other.discounts[:] = model.discounts
            other.discounts[n, 0] = np.clip(other.discounts[n, 0] + step, 0, 1)
            assert np.concatenate(other.losses(tuning)).mean() > np.concatenate(model.losses(tuning)).mean() - 2e-3


def test_a_token_frequent_behind_one_other_alone_is_no_guess_elsewhere():
    """What Kneser and Ney count: 2 comes often but always behind 1; 3 comes as often behind many."""
    texts = [np.array([1, 2])] * 6 + [np.array([n, 3]) for n in (3, 4, 5, 6, 7, 8)]
    p = KneserNey(texts, V, BORDER, 2).probabilities([0])  # after what has no context of its own but the border
    model = KneserNey(texts, V, BORDER, 2)
    unseen = model.probabilities([2])
    assert unseen[3] > 2 * unseen[2] and p.sum() == pytest.approx(1)


def test_texts_do_not_run_into_each_other():
    model = KneserNey([np.array([1, 2]), np.array([3, 4])], V, BORDER, 2)
    assert model.probabilities([2])[3] == pytest.approx(model.probabilities([4])[3])
    assert model.probabilities([])[3] > model.probabilities([2])[3]


def test_an_empty_text_among_others_has_no_losses(texts):
    losses = KneserNey(texts, V, BORDER, 3).losses([np.array([], dtype=int), np.array([4, 5]), np.array([], dtype=int)])
    assert [len(part) for part in losses] == [0, 2, 0]


@pytest.mark.parametrize(
    ("texts", "order", "error", "message"),
    [
        ([], 2, ValueError, "at least one token"),
        ([np.array([], dtype=int)], 2, ValueError, "at least one token"),
        ([np.array([1, V])], 2, ValueError, r"ids must lie in 0 \.\.\. 8, got 1 to 9"),
        ([np.array([-1, 2])], 2, ValueError, r"ids must lie in 0 \.\.\. 8"),
        (["text"], 2, TypeError, "encode the texts"),
        ([np.array([1])], 0, ValueError, "order must be a whole number of 1 or more"),
        ([np.array([1])], 20, ValueError, "62 bits"),
    ],
)
def test_texts_that_cannot_be_counted(texts, order, error, message):
    with pytest.raises(error, match=message):
        KneserNey(texts, V, BORDER, order)


def test_discounts_far_from_the_derived_discounts_are_found(texts):
    """Text that repeats itself little wants large discounts, of counts above one too."""
    rng = np.random.default_rng(3)
    train, tuning = [np.array([1, 2, 3] * 20)], [rng.integers(1, V, 40) for _ in range(5)]
    model = KneserNey(train, V, BORDER, 2).tune(tuning)
    assert model.discounts[1, 2] > 2.9, "random tokens want everything that was counted to be given away"
