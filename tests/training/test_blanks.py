"""The baselines of a masked language model: counts against a loop over the text, probabilities that are ones."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from course_lib.batches.masked import MaskedBatch, MaskedBatches, Masking
from course_lib.batches.texts import IGNORED
from course_lib.evaluation.blank_baselines import COMPONENTS, NeighbourModel

PAD, CLS, SEP, MASK = 3, 1, 2, 4
V = 20
MASKING = Masking(V, MASK, PAD, (0, CLS, SEP))


def text(rng, n):
    """Tokens of which each often follows a certain other one."""
    ids = [rng.integers(5, V)]
    while len(ids) < n:
        ids.append(5 + (3 * ids[-1] + 1) % 15 if rng.random() < 0.7 else rng.integers(5, V))
    return np.array(ids)


@pytest.fixture(scope="module")
def sequences():
    rng = np.random.default_rng(0)
    return [np.array([CLS, *text(rng, rng.integers(1, 12)), SEP]) for _ in range(300)]


@pytest.fixture(scope="module")
def batches(sequences):
    return list(MaskedBatches(sequences[:60], Masking(V, MASK, PAD, (0, CLS, SEP), 0.3, 0.6, 0.2), 16, seed=1))


def counted(sequences):
    """The counts by loops: count[context][token] for both neighbours, the one before, the one behind and none."""
    tables = [defaultdict(Counter) for _ in range(4)]
    for ids in sequences:
        sides = [PAD, *ids.tolist(), PAD]
        for before, token, behind in zip(sides, sides[1:], sides[2:], strict=False):
            if token >= 5:
                for table, context in zip(tables, ((before, behind), before, behind, None), strict=True):
                    table[context][token] += 1
    return tables


def expected_probabilities(tables, weights_of, batches):
    """The probability of each token in each blank, from its definition."""
    both, before, behind, anywhere = tables
    total = sum(anywhere[None].values()) + V - 5
    share = [0] * 5 + [(anywhere[None][token] + 1) / total for token in range(5, V)]
    for ids, labels in batches:
        for row, answers in zip(ids.tolist(), labels, strict=True):
            for place in np.flatnonzero(answers != IGNORED):
                left = row[place - 1] if place else PAD
                right = row[place + 1] if place + 1 < len(row) else PAD
                found = both.get((left, right), {}), before.get(left, {}), behind.get(right, {})
                weights = weights_of(*(sum(counts.values()) for counts in found), row[place] == MASK)
                yield [
                    sum(weight * (counts.get(token, 0) / sum(counts.values()) if counts else share[token])
                        for weight, counts in zip(weights[:3], found, strict=True))
                    + weights[3] * share[token]
                    + weights[4] * (share[token] if row[place] == MASK else row[place] == token)
                    for token in range(V)
                ]  # fmt: skip


def group(model):
    """The weights that `model` takes for a blank, by the counts of its neighbours."""

    def weights(both, before, behind, is_mask):
        number = (before > 0) + 2 * (behind > 0)
        if both:
            number = 4 + sum(both >= least for least in (2, 4, 16))
        return model.weights[2 * number + is_mask]

    return weights


@pytest.mark.parametrize("tuned", [False, True])
def test_probabilities_are_those_of_a_loop_over_the_text(sequences, batches, tuned):
    train = sequences[40:]
    model = NeighbourModel(train, MASKING)
    if tuned:
        model.tune(batches)
        assert model.weights.std(axis=0).min() > 0.03
    expected = np.array(list(expected_probabilities(counted(train), group(model), batches)))
    assert_allclose(model.probabilities(batches), expected, atol=1e-12)
    answers = np.concatenate([batch.labels[batch.labels != IGNORED] for batch in batches])
    assert_allclose(model.losses(batches), -np.log(expected[np.arange(len(answers)), answers]), rtol=1e-9)
    assert_array_equal(model.predictions(batches), expected.argmax(axis=1))


@pytest.mark.parametrize("tuned", [False, True])
def test_probabilities_sum_to_one_and_special_tokens_have_none(sequences, batches, tuned):
    model = NeighbourModel(sequences, MASKING)
    found = (model.tune(batches) if tuned else model).probabilities(batches)
    assert_allclose(found.sum(axis=1), 1)
    # only a blank that shows a special token could give it a probability, and none does
    assert (found[:, :5] == 0).all() and (found[:, 5:] > 0).all()
    assert_allclose(model.shares.sum(), 1)
    assert_allclose(model.weights.sum(axis=1), 1)
    assert model.weights.shape[1] == len(COMPONENTS) == 5


def test_unigram_entropy(sequences, batches):
    model = NeighbourModel(sequences, MASKING)
    counts = Counter(np.concatenate(sequences).tolist())
    n = sum(counts[token] for token in range(5, V)) + V - 5
    answers = np.concatenate([batch.labels[batch.labels != IGNORED] for batch in batches])
    assert_allclose(model.unigram_losses(batches), [-np.log((counts[token] + 1) / n) for token in answers])


def test_a_token_never_seen_has_a_probability():
    model = NeighbourModel([np.array([CLS, 5, 6, SEP])], MASKING)
    batch = MaskedBatch(np.array([[CLS, MASK, 6, SEP]]), np.array([[IGNORED, 9, IGNORED, IGNORED]]))
    for found in (model.losses([batch]), model.unigram_losses([batch]), model.tune([batch]).losses([batch])):
        assert np.isfinite(found).all()
    assert_allclose(model.unigram_losses([batch]), np.log(17))


def test_neighbours_help_and_tuning_helps():
    rng = np.random.default_rng(3)
    train, valid, test = ([np.array([CLS, *text(rng, 30), SEP]) for _ in range(n)] for n in (300, 100, 100))
    valid, test = (list(MaskedBatches(part, MASKING, 32)) for part in (valid, test))
    model = NeighbourModel(train, MASKING)
    equal, unigram = model.losses(test).mean(), model.unigram_losses(test).mean()
    assert model.tune(valid) is model
    tuned = model.losses(test).mean()
    assert tuned < equal - 0.1 and equal < unigram - 0.5
    answers = np.concatenate([labels[labels != IGNORED] for _, labels in test])
    assert (model.predictions(test) == answers).mean() > 0.6
    one_side = model.weights.copy()
    one_side[:, [1, 3]] += one_side[:, [0, 2]] / 2
    one_side[:, [0, 2]] = 0
    model.weights = one_side
    assert model.losses(test).mean() > tuned + 0.1, "what stands behind the blank helps"


def test_a_token_that_is_shown_may_be_the_answer(sequences):
    stays = list(MaskedBatches(sequences, Masking(V, MASK, PAD, (0, CLS, SEP), 0.3, 0.0, 0.0), 32))
    model = NeighbourModel(sequences, MASKING).tune(stays)
    answers = np.concatenate([labels[labels != IGNORED] for _, labels in stays])
    assert model.losses(stays).mean() < 0.1 and (model.predictions(stays) == answers).mean() > 0.98


def test_weights_stay_equal_where_nothing_was_tuned(sequences):
    batch = MaskedBatch(np.array([[MASK, MASK, MASK]]), np.array([[IGNORED, 6, IGNORED]]))
    model = NeighbourModel(sequences, MASKING).tune([batch])
    assert_allclose(np.delete(model.weights, 1, axis=0), 0.2)
    assert_allclose(model.losses([batch]), model.unigram_losses([batch]))


def test_sequences_without_ends_and_padded_ones(sequences):
    """Padding is what stands beside the ends, in the text and in a batch."""
    bare = [np.array([5, 6, 7]), np.array([8])]
    rows = np.array([[5, 6, 7], [8, PAD, PAD]])
    batches = [
        MaskedBatch(np.array([[5, MASK, 7], [MASK, PAD, PAD]]), np.array([[-100, 6, -100], [8, -100, -100]])),
        MaskedBatch(np.array([[MASK, 6, MASK]]), np.array([[5, -100, 7]])),
    ]
    models = [NeighbourModel(texts, MASKING) for texts in (bare, rows)]
    for model in models:
        assert_array_equal(model.predictions(batches), [6, 8, 5, 7])
        expected = list(expected_probabilities(counted(bare), group(model), batches))
        assert_allclose(model.probabilities(batches), expected, atol=1e-12)


def test_blanks_of_pairs_too(sequences):
    class Batch:  # as a PretrainingBatch, which has more fields
        ids, segments, labels = np.array([[CLS, MASK, 6, SEP]]), None, np.array([[-100, 9, -100, -100]])

    assert NeighbourModel(sequences, MASKING).losses([Batch]).shape == (1,)


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ([], ValueError, "there must be a token that is not special"),
        ([np.array([CLS, SEP])], ValueError, "there must be a token that is not special"),
        ([np.array([5, V])], ValueError, r"ids must lie in 0 \.\.\. 19, got 3 to 20"),
        ([np.array([-1, 5])], ValueError, r"ids must lie in 0 \.\.\. 19"),
        (["text"], TypeError, "encode the texts"),
    ],
)
def test_texts_that_cannot_be_counted(texts, error, message):
    with pytest.raises(error, match=message):
        NeighbourModel(texts, MASKING)


@pytest.mark.parametrize("nothing", [[], [MaskedBatch(np.array([[5]]), np.array([[IGNORED]]))]])
def test_no_blank_at_all(sequences, nothing):
    model = NeighbourModel(sequences, MASKING)
    for function in (model.tune, model.losses, model.unigram_losses, model.predictions):
        with pytest.raises(ValueError, match="there must be a batch with a blank"):
            function(nothing)


def test_no_weight_becomes_zero():
    """What never helped on the validation text may be the only one to know the answer of another blank."""
    train = [np.array([CLS, 5, 6, 7, SEP])] * 50
    blank = MaskedBatch(np.array([[5, MASK, 7]] * 200), np.array([[-100, 6, -100]] * 200))
    model = NeighbourModel(train, MASKING).tune([blank])
    other = MaskedBatch(np.array([[5, MASK, 7]]), np.array([[-100, 9, -100]]))
    assert 0 < model.losses([other])[0] < 10
