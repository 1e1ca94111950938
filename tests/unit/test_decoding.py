"""Greedy search, beam search and sampling, against loops written from their definitions."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax, softmax

from course_lib.decoding.search import beam_search, greedy, next_probabilities, sample

PAD, END, START, V = 0, 1, 2, 5


class Toy:
    """Random logits that depend on the sentence's source (its padding left out) and on all ids so far.

    It keeps its own history of ids: the ones it is given must continue it, as `reorder` says. `sizes` is the number of
    rows of each call. Padding and the start token are never predicted.
    """

    def __init__(self, sources, end_bonus=0.0):
        self.sources, self.end_bonus = [[i for i in row if i != PAD] for row in np.asarray(sources).tolist()], end_bonus
        self.history, self.sizes = None, []

    def __call__(self, ids):
        if self.history is not None:
            assert_array_equal(ids[:, :-1], self.history)
        assert len(ids) == len(self.sources)
        self.history = np.array(ids)
        self.sizes.append(len(ids))
        return np.array([self.of(source, row) for source, row in zip(self.sources, ids.tolist(), strict=True)])

    def of(self, source, ids):
        logits = np.random.default_rng([*source, 99, *ids]).normal(size=V) * 2
        logits[[PAD, START]] = -np.inf
        logits[END] += self.end_bonus
        return logits

    def reorder(self, rows):
        assert not np.array_equal(rows, np.arange(len(self.sources))), "called without need"
        self.sources = [self.sources[row] for row in rows]
        self.history = self.history[rows]


SOURCES = np.array([[3, 4, 5, 6], [7, 0, 0, 0], [3, 3, 0, 0], [8, 9, 3, 0], [5, 0, 0, 0]])
STARTS = np.full((5, 1), START)


def continuations(model, source, max_len):
    """Every hypothesis there is: (log-probability, ids), ended or max_len long."""
    for length in range(1, max_len + 1):
        for body in itertools.product([3, 4], repeat=length - 1):
            for last in [END] if length < max_len else [END, 3, 4]:
                ids, total = [START], 0.0
                for token in (*body, last):
                    total += log_softmax(model.of(source, ids))[token]
                    ids.append(token)
                yield total, ids[1:]


def beam_by_hand(model, source, max_len, width, alpha):
    """One sentence, hypothesis by hypothesis, without looking ahead."""
    open_, done = [(0.0, [START])], []
    for length in range(1, max_len + 1):
        grown = []
        for total, ids in open_:
            scores = log_softmax(model.of(source, ids))
            grown += [(total + scores[token], [*ids, token]) for token in range(V)]
        grown = sorted(grown, key=lambda pair: -pair[0])[: width - len(done)]
        done += [(t / ((5 + length) / 6) ** alpha, ids[1:]) for t, ids in grown if ids[-1] == END]
        open_ = [(t, ids) for t, ids in grown if ids[-1] != END and t > -np.inf]
    done += [(t / ((5 + max_len) / 6) ** alpha, ids[1:]) for t, ids in open_]
    return sorted(done, key=lambda pair: -pair[0])


def unpadded(rows):
    return [[i for i in row if i != PAD] for row in np.asarray(rows).tolist()]


def test_greedy_takes_the_most_probable_token_until_the_end():
    model = Toy(SOURCES)
    found = greedy(model, STARTS, END, 12)
    for source, row in zip(Toy(SOURCES).sources, unpadded(found), strict=True):
        ids = [START]
        while ids[-1] != END and len(ids) <= 12:
            ids.append(int(np.argmax(model.of(source, ids))))
        assert row == ids[1:]
    assert found.dtype == np.int64 and found.shape[1] == max(map(len, unpadded(found)))


def test_rows_that_have_ended_cost_nothing():
    model = Toy(SOURCES, end_bonus=2.0)
    lengths = [len(row) for row in unpadded(greedy(model, STARTS, END, 12))]
    assert len(set(lengths)) > 1
    assert model.sizes == [sum(length >= step for length in lengths) for step in range(1, max(lengths) + 1)]


def test_a_model_without_reorder_sees_ids_alone():
    whole = Toy([[3]] * 4)
    prompts = np.array([[START, 3], [START, 4], [4, 4], [3, 4]])
    found = greedy(lambda ids: np.array([whole.of([3], row) for row in ids.tolist()]), prompts, END, 9)
    assert_array_equal(found, greedy(whole, prompts, END, 9))


def test_ties_go_to_the_smaller_id():
    flat = lambda ids: np.zeros((len(ids), 6))  # noqa: E731
    assert_array_equal(greedy(flat, [[START]], 5, 3), [[0, 0, 0]])
    assert_array_equal(beam_search(flat, [[START]], 5, 3, width=1).ids[0], [[0, 0, 0]])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_beam_of_width_one_is_greedy(seed, alpha):
    sources = SOURCES + 10 * seed
    beam = beam_search(Toy(sources), STARTS, END, 9, width=1, alpha=alpha)
    assert_array_equal(beam.ids[:, 0], greedy(Toy(sources), STARTS, END, 9))


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
def test_a_beam_wide_enough_finds_everything(alpha):
    found = beam_search(Toy(SOURCES), STARTS, END, 4, width=60, alpha=alpha, n_best=31)
    for source, ids, scores in zip(Toy(SOURCES).sources, found.ids, found.scores, strict=True):
        every = [(t / ((5 + len(i)) / 6) ** alpha, i) for t, i in continuations(Toy([source]), source, 4)]
        every.sort(key=lambda pair: -pair[0])
        assert len(every) == 31
        assert unpadded(ids) == [i for _, i in every]
        assert_allclose(scores, [score for score, _ in every], rtol=1e-10)


@pytest.mark.parametrize("width", [2, 3, 5])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("end_bonus", [-1.0, 2.0])
def test_beam_search_is_what_it_says(width, alpha, end_bonus):
    found = beam_search(Toy(SOURCES, end_bonus), STARTS, END, 8, width, alpha, n_best=2)
    for source, ids, scores in zip(Toy(SOURCES).sources, found.ids, found.scores, strict=True):
        expected = beam_by_hand(Toy([source], end_bonus), source, 8, width, alpha)[:2]
        assert unpadded(ids) == [i for _, i in expected]
        assert_allclose(scores, [score for score, _ in expected], rtol=1e-10)


@pytest.mark.parametrize("decode", [
    lambda model, start: greedy(model, start, END, 9),
    lambda model, start: beam_search(model, start, END, 9, width=3).ids[:, 0],
])  # fmt: skip
def test_a_padded_batch_equals_its_sentences_one_by_one(decode):
    together = decode(Toy(SOURCES), STARTS)
    for row, source in zip(unpadded(together), SOURCES, strict=True):
        assert unpadded(decode(Toy([source]), STARTS[:1])) == [row]


@pytest.mark.parametrize("decode", [
    lambda model, start, limits: greedy(model, start, END, limits),
    lambda model, start, limits: sample(model, start, END, limits, rng_of(0), top_k=1),
    lambda model, start, limits: beam_search(model, start, END, limits, width=3).ids[:, 0],
])  # fmt: skip
def test_every_row_has_a_limit_of_its_own(decode):
    limits = np.array([2, 7, 1, 4, 3])
    model = Toy(SOURCES, -3.0)
    together = unpadded(decode(model, STARTS, limits))
    for row, source, limit in zip(together, SOURCES, limits, strict=True):
        assert unpadded(decode(Toy([source], -3.0), STARTS[:1], limit)) == [row]
    assert [len(row) for row in together] == limits.tolist()
    assert len(model.sizes) == 7 and len(set(model.sizes)) > 1


class Forbidding(Toy):
    """Has no end before the third token."""

    def of(self, source, ids):
        logits = super().of(source, ids)
        return np.where((len(ids) < 3) & (np.arange(V) == END), -np.inf, logits)


@pytest.mark.parametrize("decode", [
    lambda model, **options: greedy(model, STARTS, END, 9, **options),
    lambda model, **options: sample(model, STARTS, END, 9, rng_of(0), **options),
    lambda model, **options: beam_search(model, STARTS, END, 9, 3, n_best=2, **options).ids.reshape(10, -1),
])  # fmt: skip
def test_the_end_is_impossible_before_min_len(decode):
    found = unpadded(decode(Toy(SOURCES, 3.0), min_len=2))
    assert found == unpadded(decode(Forbidding(SOURCES, 3.0)))
    assert min(map(len, found)) == 3, "the end token comes after them"
    assert min(map(len, unpadded(decode(Toy(SOURCES, 3.0))))) == 1


def test_without_an_end_there_is_nothing_to_forbid():
    found = [greedy(Toy(SOURCES), STARTS, None, 4, min_len=min_len) for min_len in (0, 3)]
    assert_array_equal(*found)


def test_hopeless_hypotheses_cost_nothing():
    # The end at once has 0.98. The rest never ends, and its 0.02 can earn no length penalty that makes up for it.
    calls = []

    def next_logits(ids):
        calls.append(len(ids))
        end = 0.98 if ids.shape[1] == 1 else 0.0
        with np.errstate(divide="ignore"):
            return np.log([[0.0, end, 0.0, 0.7 * (1 - end), 0.3 * (1 - end)]] * len(ids))

    assert beam_search(next_logits, [[START]], END, 50, width=4).ids.tolist() == [[[END]]]
    assert calls == [1]
    beam_search(next_logits, [[START]], END, 50, width=4, n_best=2)
    assert len(calls) == 51, "the second best has to be found"


@pytest.mark.parametrize(
    ("alpha", "best", "score"),
    [
        (0.0, [END], np.log(0.4)),
        (1.0, [3, END], np.log(0.6 * 0.6) * 6 / 7),
        (3.0, [3, 4, END], np.log(0.6 * 0.4) * (6 / 8) ** 3),
    ],
)
def test_length_penalty_of_a_worked_example(alpha, best, score):
    after = {(START,): {END: 0.4, 3: 0.6}, (START, 3): {END: 0.6, 4: 0.4}, (START, 3, 4): {END: 1.0}}

    def next_logits(ids):
        with np.errstate(divide="ignore"):
            return np.log([[after[tuple(row)].get(token, 0.0) for token in range(V)] for row in ids.tolist()])

    found = beam_search(next_logits, [[START]], END, 5, width=3, alpha=alpha)
    assert found.ids[0, 0].tolist() == best
    assert_allclose(found.scores, [[score]])


def test_fewer_hypotheses_than_asked_for_are_padded():
    only_end = lambda ids: np.where(np.arange(V) == END, 0.0, -np.inf)[None].repeat(len(ids), 0)  # noqa: E731
    ids, scores = beam_search(only_end, [[START]], END, 5, width=3, n_best=3)
    assert_array_equal(ids, [[[END], [PAD], [PAD]]])
    assert_allclose(scores, [[0.0, -np.inf, -np.inf]])


def test_without_an_end_all_rows_reach_the_limit():
    assert greedy(Toy(SOURCES, 9.0), STARTS, None, 3).tolist() == [[END] * 3] * 5


def test_samples_follow_the_distribution():
    logits = np.array([0.5, -1.0, 2.0, 0.0, -np.inf])
    drawn = sample(lambda ids: logits[None].repeat(len(ids), 0), np.full((20_000, 1), START), None, 1, rng_of(0), 1.5)
    shares = np.bincount(drawn[:, 0], minlength=V) / 20_000
    assert_allclose(shares, softmax(logits / 1.5), atol=0.012)
    assert shares[4] < 1e-9


def rng_of(seed):
    return np.random.default_rng(seed)


def test_top_k_and_top_p_of_a_worked_example():
    logits = np.log([[0.1, 0.4, 0.2, 0.3], [0.25, 0.25, 0.25, 0.25]])
    assert_allclose(next_probabilities(logits, top_k=2), [[0, 4 / 7, 0, 3 / 7], [0.5, 0.5, 0, 0]])
    assert_allclose(next_probabilities(logits, top_p=0.65), [[0, 4 / 7, 0, 3 / 7], [1 / 3, 1 / 3, 1 / 3, 0]])
    assert_allclose(next_probabilities(logits, top_p=0.75), [[0, 4 / 9, 2 / 9, 3 / 9], [1 / 3, 1 / 3, 1 / 3, 0]])
    # the nucleus is measured in what top_k has left: 4/9 + 3/9 > 0.75, although 0.4 + 0.3 is not
    assert_allclose(next_probabilities(logits[:1], top_k=3, top_p=0.75), [[0, 4 / 7, 0, 3 / 7]])
    assert_allclose(next_probabilities(logits, top_k=9, top_p=1.0), np.exp(logits))


def test_temperature_sharpens_and_flattens():
    logits = np.array([[1.0, 2.0, 0.0]])
    assert_allclose(next_probabilities(logits, 0.5), softmax(2 * logits, axis=1))
    assert next_probabilities(logits, 0.1).max() > 0.99 and next_probabilities(logits, 50.0).max() < 0.35


def test_sampling_from_the_best_token_alone_is_greedy():
    expected = greedy(Toy(SOURCES), STARTS, END, 9)
    for options in ({"top_k": 1}, {"top_p": 1e-9}, {"temperature": 1e-3}):
        assert_array_equal(sample(Toy(SOURCES), STARTS, END, 9, rng_of(0), **options), expected)


def test_the_generator_decides_the_sample():
    first, again, other = (sample(Toy(SOURCES), STARTS, END, 9, rng_of(seed)) for seed in (0, 0, 1))
    assert_array_equal(first, again)
    assert first.shape != other.shape or (first != other).any()


def test_luck_does_not_depend_on_when_the_other_rows_end():
    company = [np.concatenate([SOURCES[:1]] * 5), SOURCES]
    for seed in range(10):
        rows = [unpadded(sample(Toy(sources, 1.0), STARTS, END, 9, rng_of(seed)))[0] for sources in company]
        assert rows[0] == rows[1]


@pytest.mark.parametrize("decode", [greedy, beam_search, lambda *a: sample(*a, rng_of(0))])
@pytest.mark.parametrize(
    ("start", "end_id", "max_len", "error", "message"),
    [
        ([START], END, 5, ValueError, r"start must have shape \(B, t\).*got \(1,\)"),
        (np.zeros((0, 1), int), END, 5, ValueError, "start must have shape"),
        ([[]], END, 5, ValueError, "start must have shape"),
        ([[0.5]], END, 5, TypeError, "start must be integers, got float64"),
        ([[START]], END, 0, ValueError, "max_len must be 1 or more, got 0"),
        ([[START]], END, [3, 4], ValueError, r"or one for each of the 1 rows; got \(2,\)"),
        ([[START]], V, 5, ValueError, r"end_id must lie in 0 \.\.\. 4"),
    ],
)
def test_bad_arguments(decode, start, end_id, max_len, error, message):
    with pytest.raises(error, match=message):
        decode(Toy([[3]]), start, end_id, max_len)


@pytest.mark.parametrize("decode", [greedy, beam_search, lambda *a, **options: sample(*a, rng_of(0), **options)])
def test_bad_min_len(decode):
    with pytest.raises(ValueError, match="min_len must be 0 or more, got -1"):
        decode(Toy([[3]]), [[START]], END, 5, min_len=-1)
    with pytest.raises(ValueError, match="or min_len forbids the end"):
        decode(lambda ids: np.where(np.arange(V) == END, 0.0, -np.inf)[None], [[START]], END, 5, min_len=1)


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        (np.zeros((2, V)), r"must return logits \(N, V\) with N = 1 rows, got \(2, 5\)"),
        (np.zeros(V), r"got \(5,\)"),
        (np.full((1, V), np.nan), "returned NaN"),
        (np.full((1, V), np.inf), r"NaN or \+inf"),
        (np.full((1, V), -np.inf), "allows no token at all"),
    ],
)
@pytest.mark.parametrize("decode", [greedy, beam_search, lambda *a: sample(*a, rng_of(0))])
def test_bad_logits(decode, logits, message):
    with pytest.raises(ValueError, match=message):
        decode(lambda ids: logits, [[START]], END, 5)


@pytest.mark.parametrize(("width", "n_best"), [(0, 1), (2, 3), (2, 0), (1.5, 1), (2, True), ("2", 1)])
def test_bad_widths(width, n_best):
    with pytest.raises(ValueError, match="1 <= n_best <= width|(width|n_best) must be a whole number of 1 or more"):
        beam_search(Toy([[3]]), [[START]], END, 5, width=width, n_best=n_best)


def test_bad_alpha():
    with pytest.raises(ValueError, match="alpha must be a number of 0 or more, got -1"):
        beam_search(Toy([[3]]), [[START]], END, 5, alpha=-1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "temperature must be above 0, got 0.0; `greedy`"),
        ({"top_k": 0}, "top_k must be 1 or more"),
        ({"top_p": 0.0}, r"top_p must lie in \(0, 1\]"),
        ({"top_p": 1.1}, r"top_p must lie in \(0, 1\]"),
    ],
)
def test_bad_sampling(options, message):
    with pytest.raises(ValueError, match=message):
        sample(Toy([[3]]), [[START]], END, 5, rng_of(0), **options)
    with pytest.raises(TypeError, match="must be a np.random.Generator"):
        sample(Toy([[3]]), [[START]], END, 5, 0)
